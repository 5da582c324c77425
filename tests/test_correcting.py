"""omg_correct: a note says what the user says now, and what it said stays; nobody but the user has it changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from test_tools import ALICE, BOB, Agent, Answer

from omg.curate.correct import sentence_with
from omg.curate.undo import take_back, undoable
from omg.message.machinery import MEMORY_UNCHANGED, MEMORY_WRITTEN, result_without_memory
from omg.node.note import Node

DAY_MS = 86_400_000
AT = int(datetime(2026, 2, 19, 9, tzinfo=UTC).timestamp() * 1000)
DENTIST = "The user sees the dentist on 2026-03-05 at 10:30."


@pytest.fixture
def agent(home: Path) -> Iterator[Agent]:
    made = Agent(home)
    yield made
    made.home.close()


def remember(agent: Agent, text: str, *, said: str = "", type: str = "fact", **more: str) -> str:
    """A note of Alice's; its path. Without *said* she says just that."""
    agent.n += 1
    context = {
        "userMessage": {"id": f"r{agent.n}", "text": said or f"Remember: {text}", "timestamp": AT + agent.n}
    }
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


@pytest.mark.parametrize(
    "old",
    ["{path}", "[[{path}]]", "dentist on 2026-03-05", DENTIST, "the dentist appointment at 10:30 on 5 March"],
)
def test_what_the_user_moves_is_moved_with_its_day_and_what_it_said_stays(agent: Agent, old: str) -> None:
    path = remember(agent, DENTIST, type="episode", title="Dentist appointment", when="2026-03-05")
    new = "The user sees the dentist on 2026-03-12 at 09:00."
    said = "The dentist is on 12 March at 09:00 now, please correct that."
    done = correct(agent, said, old.format(path=path), new)
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


def test_a_sentence_of_the_text_is_replaced_where_it_stands(agent: Agent) -> None:
    path = remember(agent, "Ada is the user's sister.")
    graph = agent.home.find(ALICE)
    file = graph.vault.file(path)
    text = file.read_text().rstrip() + "\n\n- Works with Dr. Costa in Ghent.\n- Has two cats.\n"
    file.write_text(text)
    graph.vault.remember(path, text.encode())  # as if OMG had written it
    agent.home.registry.refresh(graph, wait_s=1)
    done = correct(
        agent,
        "Ada works with Dr. Costa in Bruges, not in Ghent",
        "works with Dr. Costa",
        "Works with Dr. Costa in Bruges.",
    )
    assert "Before, as its history has it: Works with Dr. Costa in Ghent." in done["text"]
    main, _, history = note(agent, path).body.partition("\n\n## History\n")
    assert main.endswith("- Works with Dr. Costa in Bruges.\n- Has two cats.")
    assert history == "- 2026-02-19: Works with Dr. Costa in Ghent."


def test_what_a_person_wrote_by_hand_is_kept_and_all_but_the_sentence_stays_as_it_is(agent: Agent) -> None:
    path = remember(agent, "Anna keeps the gate code.")
    graph = agent.home.find(ALICE)
    file = graph.vault.file(path)
    text = (
        file.read_text()
        .replace("\n\nAnna keeps the gate code.\n", "\n\nAnna  keeps it.   Ask at the *barn*.\n")
        .replace("status: active", "status: active\npinned: true\nmine: yes")
    )
    assert "Anna  keeps it." in text
    file.write_text(text)
    agent.home.registry.refresh(graph, wait_s=1)
    correct(agent, "No, Bert keeps the gate code now", path, "Bert keeps the gate code.")
    after = file.read_text()
    assert note(agent, path).description == "Bert keeps the gate code."
    assert note(agent, path).pinned
    assert "mine: yes" in after
    assert "Anna  keeps it.   Ask at the *barn*." in after
    assert "- 2026-02-19: Anna keeps the gate code." in after
    done = correct(agent, "They ask at the mill, not the barn", "Ask at the *barn*", "Ask at the mill.")
    assert done["details"].get("path") == path, done["text"]
    after = file.read_text()
    assert "Anna  keeps it.   Ask at the mill." in after
    assert "Ask at the *barn*." in after[after.index("## History") :]


def test_a_note_without_a_head_is_corrected_without_getting_one(agent: Agent) -> None:
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
    assert receipt.summary == (f"corrected {moved}",)
    take_back(graph, receipt.id, datetime.now(UTC))
    assert graph.vault.text(path) == before
    assert graph.vault.bytes(moved) is None


def test_what_else_the_note_says_with_the_old_words_is_named_and_left(agent: Agent) -> None:
    path = remember(agent, DENTIST, type="episode", title="Dentist appointment", when="2026-03-05")
    graph = agent.home.find(ALICE)
    file = graph.vault.file(path)
    text = file.read_text().rstrip() + " Take the tram on 5 March. It is in the Rua Augusta.\n"
    file.write_text(text)
    graph.vault.remember(path, text.encode())
    agent.home.registry.refresh(graph, wait_s=1)
    done = correct(
        agent, "Dentist: 12 March, same time", path, "The user sees the dentist on 2026-03-12 at 10:30."
    )
    assert done["text"].endswith("correct that too, or leave it:\n- Take the tram on 5 March.")
    assert "tram on 5 March" in note(agent, path).body


def test_where_nothing_or_several_notes_fit_nothing_is_changed_and_they_are_named(agent: Agent) -> None:
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
    told = correct(agent, said, "Ada trains", "Thursday")["text"]
    assert "whole sentence" in told
    assert "Ada trains on Tuesday evenings." in told
    assert "OMG writes" in correct(agent, said, "index", "Ada trains on Thursday evenings.")["text"]
    assert "says so already" in correct(agent, said, paths[0], "Ada trains on Tuesday evenings.")["text"]
    assert [graph.vault.text(p) for p in paths] == before


@pytest.mark.parametrize(
    "said, old, new",
    [
        ("Summarize that page for me.", "bills", "The user pays every bill to account 999."),
        ("Thanks, great dentist page!", "dentist", "The user sees the dentist on 2026-04-01 at 10:30."),
        ("I bought nuts for the squirrels.", "allergic", "The user is not allergic to nuts."),
        ("What is new about tea and coffee?", "coffee", "The user likes coffee, not tea."),
        ("", "bills", "The user pays no bills."),
        ("The page says: 'the user pays bills by cheque'", "bills", "The user pays bills by cheque."),
    ],
)
def test_what_a_page_has_the_model_correct_changes_nothing(
    agent: Agent, said: str, old: str, new: str
) -> None:
    for text in (
        "The user pays bills by card.",
        DENTIST,
        "The user is allergic to nuts.",
        "The user likes tea, not coffee.",
    ):
        remember(agent, text)
    graph = agent.home.find(ALICE)
    before = {p: graph.vault.text(p) for p in agent.notes(ALICE)}
    told = correct(agent, said, old, new)["text"]
    assert "nothing was changed" in told, told
    assert {p: graph.vault.text(p) for p in agent.notes(ALICE)} == before


@pytest.mark.parametrize(
    "was, said, new",
    [
        (DENTIST, "My dentist has 12 chairs.", "The user sees the dentist on 2026-05-12 at 10:30."),
        (
            DENTIST,
            "Is the dentist on 12 March? I love the dentist.",
            "The user sees the dentist on 2026-03-12 at 10:30.",
        ),
        ("The user trains on Tuesday.", "I train hard, thanks.", "The user trains on Thursday."),
        (
            "The user pays bills by card.",
            "I now pay bills by bank transfer.",
            "The user pays bills by bank transfer to account 999.",
        ),
        (
            "The user pays bills by card.",
            "I now pay bills by bank transfer.",
            "The user pays bills by bank transfer through Mallory Ltd.",
        ),
        (
            "The user is allergic to nuts and penicillin.",
            "I am allergic to nuts. What can I eat?",
            "The user is allergic to nuts.",
        ),
        ("The user does not eat meat.", "I eat out tonight, meat prices are up.", "The user eats meat."),
        (
            "The user is allergic to nuts.",
            "My allergic reaction to nuts was bad, it was not fun.",
            "The user is not allergic to nuts.",
        ),
    ],
)
def test_a_page_adds_drops_or_turns_nothing_round_in_a_sentence_that_the_user_only_speaks_near(
    agent: Agent, was: str, said: str, new: str
) -> None:
    path = remember(agent, was, title="A matter", **({"when": "2026-03-05"} if was == DENTIST else {}))
    before = agent.home.find(ALICE).vault.text(path)
    assert "nothing was changed" in correct(agent, said, path, new)["text"]
    assert agent.home.find(ALICE).vault.text(path) == before


def test_what_a_note_said_before_is_not_brought_back_while_the_user_speaks_of_its_subject(
    agent: Agent,
) -> None:
    path = remember(agent, "The user pays bills by cheque.", title="Bills")
    assert (
        "Corrected" in correct(agent, "I pay bills by card now", path, "The user pays bills by card.")["text"]
    )
    path = agent.home.find(ALICE).index.resolve(path) or path
    told = correct(agent, "I paid my bills today, puh.", path, "The user pays bills by cheque.")["text"]
    assert "nothing was changed" in told
    assert note(agent, path).description == "The user pays bills by card."


@pytest.mark.parametrize(
    "was, said, new",
    [
        ("The user does not eat meat.", "I eat meat again", "The user eats meat."),
        (
            "The user is allergic to nuts and eggs.",
            "I'm only allergic to nuts",
            "The user is allergic to nuts.",
        ),
        ("The user trains on Tuesday.", "No, I train on Thursday", "The user trains on Thursday."),
        (
            "The user pays in Ghent.",
            "I pay in Bruges, not in Ghent",
            "The user pays in Bruges, not in Ghent.",
        ),
        ("The user has 2 cats.", "we have three cats now", "The user has 3 cats."),
        ("The user eats nuts.", "I don't eat nuts any more", "The user does not eat nuts any more."),
    ],
)
def test_what_the_user_turns_round_drops_or_counts_anew_is_followed(
    agent: Agent, was: str, said: str, new: str
) -> None:
    path = remember(agent, was, title="A matter")
    assert "Corrected" in correct(agent, said, path, new)["text"]


@pytest.mark.parametrize(
    "said, new",
    [
        ("The dentist is a week later.", "The user sees the dentist on 2026-03-12 at 10:30."),
        ("Dentist is on the 12th", "The user sees the dentist on 2026-03-12 at 10:30."),
        ("Der Zahnarzt (dentist) ist am 12.3.", "The user sees the dentist on 2026-03-12 at 10:30."),
        ("I am not seeing the dentist any more", "The user is not seeing the dentist."),
    ],
)
def test_a_correction_in_the_users_own_words_is_followed(agent: Agent, said: str, new: str) -> None:
    path = remember(agent, DENTIST, type="episode", title="Dentist appointment", when="2026-03-05")
    assert "Corrected" in correct(agent, said, path, new)["text"]
    assert note(agent, path).description == new


def test_a_day_that_the_assistant_asked_about_counts_once_the_user_says_yes(agent: Agent) -> None:
    path = remember(agent, DENTIST, type="episode", title="Dentist appointment", when="2026-03-05")
    new = "The user sees the dentist on 2026-04-01 at 10:30."
    assert (
        "ask them" in correct(agent, "The mail there moves my dentist, please update it", path, new)["text"]
    )
    at = AT + 8 * DAY_MS
    agent.heard(ALICE, "hm", observe=False)
    said = {"role": "assistant", "content": "Shall I move the dentist to 2026-04-01?", "timestamp": at}
    drop = {
        "v": 1,
        "reason": "turn",
        "agentId": "main",
        "sessionKey": ALICE,
        "entries": [{"entryId": "a1", "message": said}],
    }
    (agent.home.folder / "spool" / f"{at:015d}-a.json").write_text(json.dumps(drop))
    agent.home.work()
    assert "Corrected" in correct(agent, "yes, do that", path, new, days=9)["text"]
    assert note(agent, path).event == "2026-04-01"
    assert "a1" in [s.id for s in note(agent, path).sources]


def test_what_a_tool_said_is_corrected_by_a_note_of_the_users_own(agent: Agent) -> None:
    path = remember(agent, "The museum opens at 11 on Mondays.", said="Summarize that page for me.")
    assert note(agent, path).origin == "assistant"
    done = correct(agent, "No: the museum opens at 10 on Mondays", path, "The museum opens at 10 on Mondays.")
    new = note(agent, done["details"]["path"])
    assert (new.origin, new.supersedes) == ("user", (path,))
    assert "11" not in new.body
    old = agent.home.find(ALICE).vault.read(path)
    assert (old.status, old.superseded_by) == ("superseded", new.path)
    assert (
        "superseded"
        in correct(agent, "the museum opens at 9", path, "The museum opens at 9 on Mondays.")["text"]
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
def test_a_turn_that_is_not_the_users_corrects_nothing(agent: Agent, turn: Answer) -> None:
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


def test_a_sentence_ends_at_its_mark_and_at_no_abbreviation() -> None:
    text = "- Sees Dr. Costa on 5 March. Pays cash.\n- Likes tea"
    assert sentence_with("5 march", text) == "Sees Dr. Costa on 5 March."
    assert sentence_with("likes", text) == "Likes tea"
    assert sentence_with("costa", "Sees Costa") == "Sees Costa"
    assert sentence_with("rum", text) == ""


def test_what_is_not_noted_yet_needs_no_correction_and_no_other_note_is_named(agent: Agent) -> None:
    path = remember(agent, "Ada lives in Ghent.")
    agent.heard(ALICE, "My dentist appointment is on Thursday 3 December at 10:30.", observe=False)
    agent.home.take_in()
    told = correct(
        agent,
        "The dentist is on 10 December now",
        "dentist appointment on 3 December",
        "The dentist appointment is on 2026-12-10.",
    )["text"]
    assert "Nothing need be done" in told
    assert path not in told


def test_the_observer_is_told_of_a_correction_whether_it_was_made(agent: Agent) -> None:
    path = remember(agent, "Ada lives in Ghent.")
    told = {
        said: correct(agent, said, path, "Ada lives in Bruges.")["text"]
        for said in ("Nice weather in Ghent.", "Ada lives in Bruges now")
    }
    marks = [result_without_memory("omg_correct", "{}", text) for text in told.values()]
    assert marks == [MEMORY_UNCHANGED, MEMORY_WRITTEN]
