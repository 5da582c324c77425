"""
omg_correct: a note says what the user says now, and what it said stays. Only a whole sentence of the user's changes it at
once; anything else is a proposal (tools/test_proposals.py). Without the tool the rules follow a correction, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from omg.curate import supersede_by, take_back, undoable
from omg.message.envelope import MEMORY_UNCHANGED, MEMORY_WRITTEN, result_without_memory
from omg.node.note import Node
from omg.plan.edits import split_history
from tests.tools.test_tools import ALICE, BOB, Agent, Answer

DAY_MS = 86_400_000
AT = int(datetime(2026, 2, 19, 9, tzinfo=UTC).timestamp() * 1000)
JOB = "The user works as a nurse."
DENTIST = "I see the dentist on 2026-03-05 at 10:30."


@pytest.fixture
def agent(home: Path) -> Iterator[Agent]:
    made = Agent(home)
    yield made
    made.home.close()


def remember(agent: Agent, text: str, *, said: str = "", type: str = "fact", **more: str) -> str:
    """A note of Alice's; its path. Without *said* she says just that."""
    agent.n += 1
    context = {"userMessage": {"id": f"r{agent.n}", "text": said or text, "timestamp": AT + agent.n}}
    made = agent.use("omg_remember", ALICE, more=context, text=text, type=type, **more)
    return str(made["details"]["path"])


def correct(
    agent: Agent, said: str, old: str, new: str, *, days: int = 7, more: Answer | None = None, **params: str
) -> Answer:
    """What the agent is answered when it corrects on the word of what Alice *said*, a week later."""
    agent.n += 1
    message = {"id": f"c{agent.n}", "text": said, "timestamp": AT + days * DAY_MS + agent.n}
    return agent.use(
        "omg_correct", ALICE, more={"userMessage": message, **(more or {})}, old=old, new=new, **params
    )


def note(agent: Agent, path: str) -> Node:
    graph = agent.home.find(ALICE)
    return graph.vault.read(graph.index.resolve(path) or path)


def text_of(agent: Agent, path: str) -> str:
    return agent.home.find(ALICE).vault.file(path).read_text()


def rewrite(agent: Agent, path: str, text: str, *, ours: bool = False) -> None:
    """Save *text* as the file of a note, as a person does; *ours*: as if OMG had written it."""
    graph = agent.home.find(ALICE)
    graph.vault.file(path).write_text(text)
    if ours:
        graph.vault.remember(path, text.encode())
    agent.home.registry.refresh(graph, wait_s=1)


@pytest.mark.parametrize(
    "old",
    ["{path}", "[[{path}]]", "dentist on 2026-03-05", DENTIST, "the dentist appointment at 10:30 on 5 March"],
)
def test_a_plan_that_the_user_moves_gets_its_new_day_and_keeps_its_former_text(
    agent: Agent, old: str
) -> None:
    path = remember(agent, DENTIST, type="episode", title="Dentist appointment", when="2026-03-05")
    new = "I see the dentist on 2026-03-12 at 09:00."
    done = correct(agent, f"{new[:-1]}! Please correct that.", old.format(path=path), new)
    assert done["text"].startswith(f"Corrected [[{path}]]"), done["text"]
    made = note(agent, path)
    assert (made.description, made.event, made.updated) == (new, "2026-03-12", date(2026, 2, 26))
    main, _, history = made.body.partition("## History\n")
    assert new in main
    assert "2026-03-05" not in main
    assert history == f"- 2026-02-19: {DENTIST}"
    assert [s.id for s in made.sources] == ["r1", "c2"]
    assert made.origin == "user"
    assert "2026-03-12" in agent.use("omg_search", ALICE, query="dentist")["text"]


def test_a_corrected_sentence_of_the_body_is_replaced_in_place(agent: Agent) -> None:
    path = remember(agent, "Ada is the user's sister.")
    more = "\n\n- Works with Dr. Costa in Ghent.\n- Has two cats.\n"
    rewrite(agent, path, text_of(agent, path).rstrip() + more, ours=True)
    done = correct(
        agent,
        "Not in Ghent. Works with Dr. Costa in Bruges.",
        "works with Dr. Costa",
        "Works with Dr. Costa in Bruges.",
    )
    assert "The note's history keeps the former sentence: Works with Dr. Costa in Ghent." in done["text"]
    main, _, history = note(agent, path).body.partition("\n\n## History\n")
    assert main.endswith("- Works with Dr. Costa in Bruges.\n- Has two cats.")
    assert history == "- 2026-02-19: Works with Dr. Costa in Ghent."


def test_a_sentence_that_contains_a_link_is_corrected_in_the_description_and_in_the_body(
    agent: Agent,
) -> None:
    path = remember(agent, "Astrid is not coming to Svalbard after all.")
    head, _, text = text_of(agent, path).rpartition("\nAstrid is not")
    linked = f"{head}\n[[nodes/project/svalbard-trip|Astrid]] is not{text}"
    rewrite(agent, path, linked, ours=True)
    new = "Astrid is coming to Svalbard."
    done = correct(agent, f"{new} Please correct that.", "Astrid is not coming to Svalbard after all.", new)
    assert "The note also has these" not in done["text"]
    made = note(agent, path)
    assert (made.description, made.body.partition("\n\n## History\n")[0].strip()) == (new, new)
    assert made.body.endswith("- 2026-02-19: Astrid is not coming to Svalbard after all.")


@pytest.mark.parametrize(
    "said",
    [
        "Correct your note: {}",
        "Please correct your memory: {}",
        "Good news, correct that: {}",
        "Could you fix that please: {}",
        "Correct your note: “{}”",
    ],
)
def test_a_correction_after_words_like_please_correct_counts_as_said_by_the_user(
    agent: Agent, said: str
) -> None:
    path = remember(agent, "My favourite colour is green.")
    new = "My favourite colour is teal."
    assert correct(agent, said.format(new), path, new)["text"].startswith("Corrected [[")
    assert note(agent, path).description == new


def test_a_longer_sentence_that_begins_with_the_old_words_is_not_changed(agent: Agent) -> None:
    path = remember(agent, "Ada lives in Ghent.")
    longer = "[[nodes/fact/ada|Ada]] lives in Ghent with Leif."
    head, _, text = text_of(agent, path).rpartition("\nAda lives in Ghent.")
    rewrite(agent, path, f"{head}\n{longer}{text}")
    done = correct(agent, "Ada lives in Bruges.", "Ada lives in Ghent.", "Ada lives in Bruges.")
    assert longer in text_of(agent, path)
    assert "says more than `old`: Ada lives in Ghent with Leif." in done["text"]


@pytest.mark.parametrize("old", ["I prefer aisle seats on trains.", "{path}"])
def test_a_sentence_corrected_by_hand_in_the_text_can_be_corrected_again(agent: Agent, old: str) -> None:
    path = remember(agent, "I prefer window seats on trains.")
    head, _, text = text_of(agent, path).rpartition("window")
    rewrite(agent, path, f"{head}aisle{text}")
    new = "I prefer table seats on trains."
    correct(agent, f"Correction: {new}", old.format(path=path), new)
    main, (line,) = split_history(note(agent, path).body)
    assert "table" in note(agent, path).description and "table" in main and "aisle" not in main
    assert "aisle" in line


def test_a_correction_changes_only_its_sentence_in_a_note_edited_by_hand(agent: Agent) -> None:
    path = remember(agent, "Anna keeps the gate code.")
    text = (
        text_of(agent, path)
        .replace("\n\nAnna keeps the gate code.\n", "\n\nAnna  keeps it.   Ask at the *barn*.\n")
        .replace("status: active", "status: active\npinned: true\nmine: yes")
    )
    assert "Anna  keeps it." in text
    rewrite(agent, path, text)
    correct(agent, "No. Bert keeps the gate code.", path, "Bert keeps the gate code.")
    after = text_of(agent, path)
    assert note(agent, path).description == "Bert keeps the gate code."
    assert note(agent, path).pinned
    assert "mine: yes" in after
    assert "Anna  keeps it.   Ask at the *barn*." in after
    assert "- 2026-02-19: Anna keeps the gate code." in after
    done = correct(agent, "Ask at the mill.", "Ask at the *barn*", "Ask at the mill.")
    assert done["details"].get("path") == path, done["text"]
    after = text_of(agent, path)
    assert "Anna  keeps it.   Ask at the mill." in after
    assert "Ask at the *barn*." in after[after.index("## History") :]


def test_correcting_a_note_without_frontmatter_adds_no_frontmatter(agent: Agent) -> None:
    remember(agent, "Ada is the user's sister.")
    graph = agent.home.find(ALICE)
    file = graph.vault.root / "nodes" / "gate.md"
    file.write_text("The gate code is kept by Anna.\r\n\r\nAsk her.\r\n")
    agent.home.registry.refresh(graph, wait_s=1)
    done = correct(
        agent, "Bert keeps the gate code", "gate code is kept by Anna", "Bert keeps the gate code."
    )
    assert done["details"].get("path") == "nodes/gate", done["text"]
    assert file.read_bytes().startswith(b"Bert keeps the gate code.\r\n\r\nAsk her.\r\n")
    assert b"The gate code is kept by Anna." in file.read_bytes()


def test_a_correction_is_one_cycle_and_undo_takes_it_back(agent: Agent) -> None:
    path = remember(agent, "Ada lives in Ghent.", title="Ada lives in Ghent")
    graph = agent.home.find(ALICE)
    before = graph.vault.text(path)
    done = correct(agent, "Ada lives in Bruges", path, "Ada lives in Bruges.")
    moved = done["details"]["path"]
    assert note(agent, moved).title == "Ada lives in Bruges"
    assert note(agent, path).description == "Ada lives in Bruges."  # its former name leads there
    receipt = undoable(graph, None)
    assert f"`omg undo {receipt.id}` takes it back" in done["text"]
    assert receipt.summary == (f"corrected {moved}",)
    take_back(graph, receipt.id, datetime.now(UTC))
    assert graph.vault.text(path) == before
    assert graph.vault.bytes(moved) is None


@pytest.mark.parametrize(
    "was, says, title, named",
    [
        (
            "I start my new job at Kongsberg on 2027-01-04.",
            "I start at Kongsberg on 2027-02-01.",
            "Job",
            "Job",
        ),
        ("I live in Ghent.", "I live in Bruges.", "Ghent", "I live in Bruges"),
        ("I eat nuts and eggs.", "I eat nuts.", "Nuts and eggs", "I eat nuts"),
        ("I fly on 2027-01-04.", "I fly on 2027-02-01.", "Fly on 4 January 2027", "I fly on 2027-02-01"),
        (
            "I plan a surprise weekend in Tallinn for Saara.",
            "The Tallinn weekend is off, because Saara has to work.",
            "Surprise weekend in Tallinn",
            "Surprise weekend in Tallinn",
        ),
    ],
)
def test_a_corrected_note_is_renamed_only_if_its_title_contains_the_corrected_value(
    agent: Agent, was: str, says: str, title: str, named: str
) -> None:
    path = remember(agent, was, title=title, type="identity")
    done = correct(agent, says, path, says)
    kept = note(agent, done["details"]["path"])
    assert (kept.description, kept.title) == (says, named)
    assert (kept.path == path) is (title == named)


def test_other_sentences_with_the_old_value_are_listed_and_not_changed(agent: Agent) -> None:
    path = remember(agent, DENTIST, type="episode", title="Dentist appointment", when="2026-03-05")
    more = " Take the tram on 5 March. It is in the Rua Augusta.\n"
    rewrite(agent, path, text_of(agent, path).rstrip() + more, ours=True)
    new = "I see the dentist on 2026-03-12 at 10:30."
    done = correct(agent, new, path, new)
    assert done["text"].endswith("correct them, or leave them:\n- Take the tram on 5 March.")
    assert "tram on 5 March" in note(agent, path).body


def test_a_correction_that_matches_no_note_or_several_notes_changes_nothing(agent: Agent) -> None:
    paths = [remember(agent, f"{who} trains on Tuesday evenings.") for who in ("Ada", "Bo")]
    graph = agent.home.find(ALICE)
    before = [graph.vault.text(p) for p in paths]
    said = "Ada trains on Thursday evenings now"
    told = correct(agent, said, "trains on Tuesday evenings", "Ada trains on Thursday evenings.")["text"]
    assert "several notes" in told
    assert all(f"[[{p}]]" in told for p in paths)
    told = correct(agent, said, "Cy trains on Tuesdays", "Cy trains on Thursday evenings.")["text"]
    assert "no note says 'Cy trains on Tuesdays'" in told
    assert all(f"[[{p}]]" in told for p in paths)
    told = correct(agent, said, "The kiln is cold", "The kiln is hot by now.")["text"]
    assert told == "no note says 'The kiln is cold'"
    assert "OMG writes" in correct(agent, said, "index", "Ada trains on Thursday evenings.")["text"]
    assert "already says this" in correct(agent, said, paths[0], "Ada trains on Tuesday evenings.")["text"]
    assert [graph.vault.text(p) for p in paths] == before


FRIDAY = "The dentist appointment is on Friday at 15:00."
LATER = "The dentist appointment is on Friday at 15:30."
SAM, PRIYA = "The user's boss is Sam.", "The user's boss is Priya."
GYM, GYM_LATER = "The gym closes at 15:00 on Sundays.", "The gym closes at 15:30 on Sundays."


@pytest.mark.parametrize(
    "said, was, new",
    [
        ("dentist at 15:30", FRIDAY, LATER),
        ("Sorry, the dentist is at 15:30, not 15:00.", FRIDAY, LATER),
        ("The dentist was moved to 15:30.", FRIDAY, LATER),
        ("dentist on Thursday", FRIDAY, "The dentist appointment is on Thursday at 15:00."),
        ("Not 15:00, dentist at 15:30. Thanks!", FRIDAY, LATER),
        ("Ada owes 70", "Ada owes Bo 50 euros.", "Ada owes Bo 70 euros."),
        ("No, my coach is Griet.", "My coach is now Piet, not Ann.", "My coach is Griet."),
        (
            "Please correct that: the tax is due on 2 April.",
            "The tax is due in May.",
            "The tax is due on 2026-04-02.",
        ),
        (
            "My sister Ana arrives on 12 March, not 13 March.",
            "Jonas's sister Ana arrives on 2026-03-13 and stays.",
            "Jonas's sister Ana arrives on 2026-03-12 and stays.",
        ),
        ("No, my boss is Priya.", SAM, PRIYA),
        ("No, my boss is Priya.", "The user's boss is Sam, in Ghent.", "The user's boss is Priya, in Ghent."),
        ("No, I live in Porto.", "The user lives in Lisbon.", "The user lives in Porto."),
        ("That's wrong, it closes at 15:30.", GYM, GYM_LATER),
        ("No. That is not right, it closes at 15:30 now.", GYM, GYM_LATER),
        ("It closes at 15:30 now.", GYM, GYM_LATER),
        ("No, it's 15:30, not 15:00.", GYM, GYM_LATER),
        ("The gym closes at 15:30 on Sundays now.", GYM, GYM_LATER),
    ],
)
def test_a_sentence_is_corrected_if_the_user_said_only_the_changed_part(
    agent: Agent, said: str, was: str, new: str
) -> None:
    path = remember(agent, was)
    assert correct(agent, said, path, new, days=0)["text"].startswith("Corrected [[")
    assert (note(agent, path).description, note(agent, path).origin) == (new, "user")


NUTS, CARD = "I am allergic to nuts and penicillin.", "I pay bills by card."
CHEQUE, TEA = "I pay bills by cheque.", "I like tea, not coffee."
GREEN, TEAL = "My favourite colour is green.", "My favourite colour is teal."
MAY = "I see the dentist on 2026-05-12 at 10:30."
NOT_JUST_THAT = [
    ("", CARD, "I pay no bills."),
    ("Summarize that page for me.", CARD, "I pay every bill to account 999."),
    ("My dentist has 12 chairs.", DENTIST, MAY),
    (MAY.replace(".", "?"), DENTIST, MAY),
    ("I bought nuts for the squirrels.", NUTS, "I am not allergic to nuts."),
    ("I am allergic to nuts. What can I eat?", NUTS, "I am allergic to eggs."),
    ("I eat out tonight, meat prices are up.", "I do not eat meat.", "I eat meat."),
    ("What is new about tea and coffee?", TEA, "I like coffee, not tea."),
    (f"The page says: {CHEQUE}", CARD, CHEQUE),
    (f"> {CHEQUE}\n\nwhat does that mean", CARD, CHEQUE),
    (f"'{CHEQUE}' Who says so?", CARD, CHEQUE),
    (f"Tom wrote: {TEAL}", GREEN, TEAL),
    (f"Correct this: {TEAL}", GREEN, TEAL),
    (f"Correct the mail: {TEAL}", GREEN, TEAL),
    (f"Did Tom say: {TEAL}?", GREEN, TEAL),
    ("no", FRIDAY, LATER),
    ("yes, do that", FRIDAY, LATER),
    ("15:30", FRIDAY, LATER),  # the answer to another question
    ("dentist at 15:30?", FRIDAY, LATER),
    ("Is the dentist at 15:30", FRIDAY, LATER),
    ("Maybe the dentist is at 15:30.", FRIDAY, LATER),
    ("If the dentist is at 15:30", FRIDAY, LATER),
    ("The dentist is not at 15:30.", FRIDAY, LATER),
    ("The dentist is no longer at 15:30.", FRIDAY, LATER),
    ("dentist at 15:30 is too late", FRIDAY, LATER),
    ("dentist on Thursday at 15:30", FRIDAY, LATER),
    ("dentist at 15:30, not on Friday", FRIDAY, LATER),
    ("dentist moved from 15:30", FRIDAY, LATER),
    ("his dentist is at 15:30", FRIDAY, LATER),
    ("dentist at 15:30", FRIDAY, "The dentist appointment is at 15:30."),
    ("dentist at 15:30", FRIDAY, "The dentist appointment in Kiel is on Friday at 15:30."),
    ("The page says: dentist at 15:30", FRIDAY, LATER),
    ("> dentist at 15:30", FRIDAY, LATER),
    ("“dentist at 15:30”", FRIDAY, LATER),
    ("Translate this:\n\ndentist at 15:30", FRIDAY, LATER),
    ("Ada owes Bo 50 euros!", "Ada owes Bo 50 euros.", "Bo owes Ada 50 euros."),
    ("allergic to eggs", NUTS, "I am allergic to eggs."),
    ("allergic to nuts", NUTS, "I am allergic to nuts."),
    ("allergic to nuts", NUTS, "I am not allergic to nuts."),
    ("I want to eat fish", "I do not eat meat.", "I do not eat fish."),
    ("I refused to pay 999 euros", "I pay 4 euros to Bo.", "I pay 999 euros to Bo."),
    ("I bought tea and coffee.", TEA, "I like coffee, not tea."),
    ("The invoice number is 999.", "I pay bills to account 4.", "I pay bills to account 999."),
    ("“No, my coach is Griet.” Who says that?", "My coach is Piet.", "My coach is Griet."),
    ("No, my coach is Griet?", "My coach is Piet.", "My coach is Griet."),
    ("No, his boss is Priya.", SAM, PRIYA),
    ("No, Tom's boss is Priya.", SAM, PRIYA),
    ("My boss is Priya, says the page.", SAM, PRIYA),
    ("> No, my boss is Priya.\n\nWho is that?", SAM, PRIYA),
    ("Priya", SAM, PRIYA),
    ("No, Priya.", SAM, PRIYA),
    ("Tom says that's wrong, it closes at 15:30.", GYM, GYM_LATER),
    ("That's wrong, says the page: it closes at 15:30.", GYM, GYM_LATER),
    ("“That's wrong, it closes at 15:30.” Is that so?", GYM, GYM_LATER),
    ("That's wrong, it closes at 15:30?", GYM, GYM_LATER),
    ("That's wrong.", GYM, GYM_LATER),
    ("This is spam: it closes at 15:30.", GYM, GYM_LATER),
    ("What about the museum? It closes at 15:30.", GYM, GYM_LATER),
    ("The museum is far. No, it closes at 15:30.", GYM, GYM_LATER),
    ("> The museum is open until 15:00.\n\nIt closes at 15:30.", GYM, GYM_LATER),
    ("```\nmuseum: 10:00 to 15:00\n```\nThat's wrong, it closes at 15:30.", GYM, GYM_LATER),
    ("No, it pays by cheque.", "The user pays by card.", "The user pays by cheque."),
]


@pytest.mark.parametrize("said, was, new", NOT_JUST_THAT)
def test_the_part_of_a_change_that_the_user_did_not_say_stays_a_proposal(
    agent: Agent, said: str, was: str, new: str
) -> None:
    path = remember(agent, was)
    before = agent.home.find(ALICE).vault.text(path)
    done = correct(agent, said, path, new, days=0)
    assert done["text"].startswith("Proposed as a correction of [["), done["text"]
    assert "which stays as it is" in done["text"] and "`omg confirm nodes/" in done["text"]
    made = note(agent, done["details"]["path"])
    assert (made.type, made.origin, made.description) == ("fact", "assistant", new)
    assert agent.home.find(ALICE).vault.text(path) == before


@pytest.mark.parametrize("was, value", [(GYM, "15:30"), (SAM, "Priya"), ("Ada lives in Ghent.", "in Bruges")])
def test_a_correction_without_a_whole_sentence_is_refused_and_the_answer_quotes_the_note(
    agent: Agent, was: str, value: str
) -> None:
    done = correct(agent, f"hm, {value}", path := remember(agent, was), value, days=0)
    assert "has to be a whole sentence" in done["text"] and done["text"].endswith(was)
    assert note(agent, path).description == was


def test_a_day_that_only_the_assistant_gives_changes_nothing(agent: Agent) -> None:
    path = remember(agent, FRIDAY, when="2026-02-20")
    done = correct(agent, "dentist at 15:30", path, LATER, days=0, when="2026-05-01")
    assert note(agent, done["details"]["path"]).origin == "assistant"


def test_after_a_correction_the_proposal_to_make_it_is_removed(agent: Agent) -> None:
    path = remember(agent, FRIDAY)
    four = "The dentist appointment is on Friday at 16:00."
    proposed = correct(agent, "they called about the dentist", path, LATER, days=0)["details"]["path"]
    other = correct(agent, "what now", path, four, days=0)["details"]["path"]
    correct(agent, "dentist at 15:30", path, LATER, days=0)
    assert note(agent, path).description == LATER
    gone = agent.home.find(ALICE).vault.read(proposed)
    assert (gone.status, gone.superseded_by) == ("superseded", note(agent, path).path)
    assert note(agent, other).status == "active"  # nobody said that


def test_a_proposed_correction_is_withdrawn_when_its_note_is_replaced(agent: Agent) -> None:
    path = remember(agent, FRIDAY)
    proposed = correct(agent, "what now", path, LATER, days=0)["details"]["path"]
    heir = remember(agent, "The dentist has no time for me.")
    graph = agent.home.find(ALICE)
    supersede_by(graph, path, heir, datetime.now(UTC))
    gone = graph.vault.read(proposed)
    assert (gone.status, gone.superseded_by) == ("superseded", heir)


@pytest.mark.parametrize(
    "said", ["Remember that the parcel arrives on 26 February.", "The parcel arrives next Thursday."]
)
def test_a_note_that_the_user_asked_for_has_the_origin_user_in_any_spelling_of_the_day(
    agent: Agent, said: str
) -> None:
    made = note(agent, remember(agent, "The parcel arrives on 2026-02-26.", said=said))
    assert (made.origin, made.description) == ("user", "The parcel arrives on 2026-02-26.")
    other = note(agent, remember(agent, "The parcel arrives on 2026-02-27.", said=said))
    assert other.origin == "assistant"


@pytest.mark.parametrize(
    "was, said",
    [
        ("I do not eat meat.", "I eat meat."),
        ("I am allergic to nuts and eggs.", "I am allergic to nuts."),
        ("I train on Tuesday.", "I train on Thursday."),
        ("I pay in Ghent.", "I pay in Bruges, not in Ghent."),
        ("I have 2 cats.", "I have 3 cats."),
        ("I eat nuts.", "I don't eat nuts any more."),
        (DENTIST, "I am not seeing the dentist."),
        ("Der Zahnarzt ist am Dienstag.", "Der Zahnarzt ist am Freitag."),
    ],
)
def test_a_reversal_or_a_cancellation_or_a_new_number_corrects_the_note(
    agent: Agent, was: str, said: str
) -> None:
    path = remember(agent, was, title="A matter")
    assert (
        "The note's history keeps the former sentence"
        in correct(agent, f"Hm, no. {said}", path, said)["text"]
    )
    assert note(agent, path).description == said


def test_correcting_a_tools_note_makes_a_note_of_the_user(agent: Agent) -> None:
    path = remember(agent, "The museum opens at 11 on Mondays.", said="Summarize that page for me.")
    assert note(agent, path).origin == "assistant"
    done = correct(
        agent, "No. The museum opens at 10 on Mondays!", path, "The museum opens at 10 on Mondays."
    )
    new = note(agent, done["details"]["path"])
    assert (new.origin, new.supersedes) == ("user", (path,))
    assert "11" not in new.body
    old = agent.home.find(ALICE).vault.read(path)
    assert (old.status, old.superseded_by) == ("superseded", new.path)
    assert (
        "superseded"
        in correct(agent, "the museum opens at 9 on Mondays", path, "The museum opens at 9 on Mondays.")[
            "text"
        ]
    )


@pytest.mark.parametrize(
    "turn",
    [
        {"trigger": "heartbeat"},
        {"inputProvenance": {"kind": "inter_session"}},
        {
            "userMessage": {
                "id": "m8",
                "text": "Ada lives in Bruges",
                "provenance": {"kind": "internal_system"},
            }
        },
        {"userMessage": None},
    ],
)
def test_a_turn_without_a_message_of_the_user_corrects_nothing(agent: Agent, turn: Answer) -> None:
    path = remember(agent, "Ada lives in Ghent.")
    told = correct(agent, "Ada lives in Bruges", path, "Ada lives in Bruges.", more=turn)["text"]
    assert "needs a message of the user" in told
    assert note(agent, path).description == "Ada lives in Ghent."


def test_nobody_corrects_anothers_note(agent: Agent) -> None:
    path = remember(agent, "Ada lives in Ghent.")
    agent.heard(BOB, "I prefer coffee in the morning.")
    told = agent.use(
        "omg_correct", BOB, said=("b9", "Ada lives in Bruges"), old=path, new="Ada lives in Bruges."
    )["text"]
    assert "no note says" in told
    assert "Ghent" not in told


def test_a_correction_of_a_statement_that_is_still_pending_does_nothing(agent: Agent) -> None:
    path = remember(agent, "Ada lives in Ghent.")
    agent.heard(ALICE, "My dentist appointment is on Thursday 3 December at 10:30.", observe=False)
    agent.home.take_in()
    told = correct(
        agent,
        "The dentist is on 10 December now",
        "dentist appointment on 3 December",
        "The dentist appointment is on 2026-12-10.",
    )["text"]
    assert "nothing has to be done" in told
    assert path not in told


def test_the_observer_is_told_whether_a_correction_was_made(agent: Agent) -> None:
    path = remember(agent, "Ada lives in Ghent.")
    said = {"Ada lives in Bruges.": MEMORY_WRITTEN, "Ada lives in Bruges!": MEMORY_UNCHANGED}
    for text, mark in said.items():  # the second time, the note already says this
        told = correct(agent, text, path, "Ada lives in Bruges.")["text"]
        assert result_without_memory("omg_correct", "{}", told) == mark


@pytest.mark.parametrize(
    ("was", "said", "new"),
    [
        ("I have a severe penicillin allergy.", "I have a question.", "I have a question."),
        ("I need to take insulin at 08:00.", "I need to sleep.", "I need to sleep."),
        ("My card is late.", "My card bills are late.", "[[I pay account 999|My card bills are late.]]"),
        ("Ada drinks tea.", "She drinks coffee.", "Ada drinks coffee."),
        ("The gym closes at 15:00.", "That's spam, it closes at 15:30.", "The gym closes at 15:30."),
        ("It is open from 08:00 to 10:00.", "It is open from 9:30.", "It is open from 08:00 to 9:30."),
        ("Ada owes Bo 50 and Cy 60.", "Ada owes Bo 70.", "Ada owes Bo 50 and Cy 70."),
    ],
)
def test_a_harmless_sentence_of_the_user_corrects_no_other_note(
    agent: Agent, was: str, said: str, new: str
) -> None:
    path = remember(agent, was)
    done = correct(agent, said, path, new)
    assert "999" not in text_of(agent, done["details"]["path"])
    assert "card" in was or note(agent, path).description == was


def test_the_beginning_of_a_notes_name_finds_the_note(agent: Agent) -> None:
    trip = remember(agent, "I stay at the Avenida near the river.", title="Lisbon trip and hotel")
    sister = remember(agent, "My sister Maya lives in Lisbon.", title="Sister Maya")
    new = "My sister Maya left Lisbon and the river for Porto."
    answer = correct(agent, new, "Lisbon", new)
    assert answer["text"].startswith(f"Corrected [[{sister}]]"), answer["text"]
    assert note(agent, trip).description == "I stay at the Avenida near the river."


def test_the_short_name_from_a_prompt_is_enough_to_correct_a_note(agent: Agent) -> None:
    path = remember(agent, "I stay at the Avenida near the river.", title="Lisbon trip and hotel")
    new = "I stay at the Mirador near the river."
    assert correct(agent, new, "lisbon-trip", new)["text"].startswith(f"Corrected [[{path}]]")
