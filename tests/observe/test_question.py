"""Which of the notes that exist the Observer is shown, and what of them."""

from datetime import UTC, date, datetime, timedelta

import pytest

from omg.config import Config, Observation
from omg.identity import identity_of_session
from omg.journal import commit_receipt, new_receipt
from omg.memory import Memory
from omg.message.turn import Message, Turn
from omg.node.note import Source
from omg.observe.question import Observer, TalkSoFar, message_text, render_question, shown_notes
from omg.observe.reply import ShownToObserver
from omg.plan.drafts import Plan
from omg.plan.edits import Edit

MAIN = "agent:main:main"
NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)


class ByMeaning:
    """Vectors of three numbers: how much a text is about the kiln, about sleep, and about anything."""

    id, dim = "by-meaning", 3

    def __call__(self, texts):
        import numpy

        about = [
            [any(w in t.lower() for w in ("kiln", "furnace", "stoneware")), "sleep" in t.lower(), 0.1]
            for t in texts
        ]
        rows = numpy.array(about, dtype="float32")
        return rows / numpy.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def graph(home):
    memory = Memory(Config(home=home), embed=None)
    yield memory.graph(identity_of_session(MAIN))
    for graph in memory.registry.kept():
        graph.close()


def write(graph, *notes):
    plan = Plan(graph, date(2026, 2, 1))
    for n, (title, text, more) in enumerate(notes):
        source = Source(MAIN, f"u{n}", 1_770_000_000_000 + n)
        plan.apply(
            Edit("create", title, text, **{"type": "fact", "sources": (source,), "origin": "user", **more})
        )
    with graph.lock():
        commit_receipt(graph, new_receipt("observation", NOW, plan.changes()))


def asked(graph, *texts, session=MAIN, window=128_000, **observation):
    start = int(NOW.timestamp() * 1000)
    messages = [Message(f"m{n}", "user", text, start + n) for n, text in enumerate(texts)]
    config = Config(home=graph.folder, observation=Observation(**observation))
    observer = Observer(ask=lambda question: None, model="any", window=window)
    shown = shown_notes(Plan(graph, NOW.date()), messages, TalkSoFar(session, {}), observer, config)
    return render_question(shown).split("# Messages")[0]


def test_a_relevant_note_is_shown_once_and_with_its_whole_text(graph):
    write(
        graph,
        (
            "Kiln",
            "The kiln trips the breaker.",
            {"body": "The kiln trips the breaker. Bought in 2019 from [[nodes/fact/jo|Jo]]."},
        ),
        ("Shelf", "The kiln shelf is long.", {"body": "One shelf. " * 30}),
        ("Base", "The kiln base is longer.", {"body": "One base. " * 100}),
    )
    text = asked(graph, "The kiln, its shelf and its base", previous_observer_tokens=3_500)
    assert "Kiln: The kiln trips the breaker.\n    Bought in 2019 from Jo.\n" in text
    assert text.count("One shelf.") == 30
    assert 30 < text.count("One base.") < 42
    assert "\n    … One base." in text
    assert len(text) < 1_200


def test_the_number_of_shown_notes_grows_with_the_turn_and_the_window(graph):
    write(
        graph,
        *((f"Kiln {n}", f"The kiln fired load {n} " + "of stoneware mugs " * 12, {}) for n in range(120)),
    )
    few = asked(graph, *["the kiln load"] * 4)
    said = [f"load {n} of the kiln, " + "and so on " * 60 for n in range(60)]
    many, small = asked(graph, *said), asked(graph, *said, window=16_000)
    fixed = asked(graph, *said, previous_observer_tokens=300)
    assert many.count("\nn") > 1.5 * few.count("\nn") > 0
    assert small.count("\nn") < many.count("\nn")
    assert fixed.count("\nn") < 8


def test_the_question_says_how_many_notes_are_not_shown(graph):
    write(graph, *((f"Kiln {n}", f"The kiln fired load {n}.", {}) for n in range(30)))
    text = asked(graph, "How was the kiln?")
    shown = text.count("\nn")
    assert f"(and {30 - shown} more, none of them nearer to these messages)" in text


OTHERS = [(f"Shelf {n}", f"Shelf number {n} holds bowls.", {}) for n in range(12)]


def test_all_notes_of_a_small_vault_are_shown(graph):
    write(graph, ("Car", "The user drives a Skoda Fabia from 2016.", {}), *OTHERS[:11])
    assert "] Car: The user" in asked(graph, "it's a 2018, I looked in the papers")
    write(graph, *OTHERS[11:])
    assert "] Car: The user" not in asked(graph, "it's a 2018, I looked in the papers")


@pytest.mark.parametrize("hours, shown", [(1, True), (30, False)])
def test_the_note_of_the_previous_turn_is_shown_even_if_the_message_does_not_mention_it(graph, hours, shown):
    write(graph, ("Car", "The user drives a Skoda Fabia from 2016.", {}), *OTHERS)
    at = int((NOW - timedelta(hours=hours)).timestamp() * 1000)
    said = (
        Message("a0", "assistant", "Your Fabia is from 2016.", at),
        Message("a1", "assistant", "And the tyres are due.", at + 1),
    )
    graph.archive([graph.put(f"{at:015d}-a0", Turn(MAIN, messages=said)).name])
    assert ("] Car: The user" in asked(graph, "No, 2018, I looked in the papers.")) == shown
    assert "Car" not in asked(graph, "No, 2018, I looked in the papers.", session="agent:main:other")


def test_a_plan_that_is_due_is_shown_whatever_the_talk_is_about(graph):
    write(
        graph,
        ("Dentist", "A dentist appointment.", {"event": "2026-03-04", "loop": "open", "type": "episode"}),
        ("Trip", "A trip to Gdynia.", {"event": "2026-09-04", "loop": "open", "type": "episode"}),
        ("Party", "A party.", {"event": "2026-03-03", "type": "episode"}),
        *OTHERS,
    )
    text = asked(graph, "I'm back, it went well.")
    assert "Dentist" in text
    assert "Trip" not in text
    assert "Party" not in text


def test_notes_on_one_subject_are_listed_together(graph):
    write(
        graph,
        ("Kiln element", "The element of the kiln glows.", {}),
        ("Tea order", "The tea of Ines and the kiln were ordered: oolong.", {}),
        ("Kiln shelf", "A shelf is cracked in the kiln.", {}),
    )
    lines = [
        line.split("] ")[1].split(":")[0]
        for line in asked(graph, "kiln kiln tea").splitlines()
        if "] " in line
    ]
    assert sorted(lines) == ["Kiln element", "Kiln shelf", "Tea order"]
    assert abs(lines.index("Kiln element") - lines.index("Kiln shelf")) == 1


def test_a_note_is_also_found_by_its_meaning(home):
    memory = Memory(Config(home=home), embed=ByMeaning())
    graph = memory.graph(identity_of_session(MAIN))
    write(
        graph, ("Kiln", "The kiln trips the breaker.", {}), ("Nights", "Ines has trouble with her sleep.", {})
    )
    while graph.index.embed():
        pass
    text = asked(graph, "That furnace did it again!")
    graph.close()
    assert "\nn1 [fact, said 2026-02-01] Kiln: " in text


def test_at_most_twelve_open_loops_due_soon_are_shown(graph):
    day = NOW.date()
    write(
        graph,
        *(
            (f"Task {n}", f"Number {n}.", {"event": (day + timedelta(n % 9)).isoformat(), "loop": "open"})
            for n in range(40)
        ),
    )
    assert asked(graph, "Hello there", previous_observer_tokens=3_500).count("\nn") == 12


def test_an_assistants_prose_is_shown_whole_and_its_long_code_is_cut():
    code = "```python\n" + "print('kiln')\n" * 100 + "```"
    prose = "Heat it slowly, " * 60
    shown = message_text(Message("a0", "assistant", f"Try this:\n{code}\n{prose}", 0), set())
    assert shown.startswith("Try this:\n```python\nprint('kiln')")
    assert "characters of code]" in shown and shown.count("print") < 40
    assert shown.endswith(prose.strip())


def test_short_code_of_an_assistant_is_shown_whole():
    text = "Run this:\n```\nomg doctor\n```\nThen tell me."
    assert message_text(Message("a0", "assistant", text, 0), set()) == text


def advice(*lines):
    filler = [f"{n}. **Point {n}**: something general about pottery and patience." for n in range(1, 40)]
    return "\n\n".join(
        ["Gladly, here is what can be done.", *filler[:20], *lines, *filler[20:], "Shall I order it?"]
    )


def test_of_a_long_reply_the_observer_sees_both_ends_and_the_lines_the_person_answers():
    reply = advice(
        "- **Skutt**: 2,400 watts, in stock, with a warranty of two years and a guide to how one builds it in."
    )
    messages = [
        Message("m0", "user", "The kiln's element broke. What now?", 0),
        Message("m1", "assistant", reply, 1),
        Message("m2", "user", "I'll take the Skutt, then.", 2),
    ]
    shown = render_question(ShownToObserver({m.id: (MAIN, m) for m in messages}, {}, UTC))
    assert "2,400 watts, in stock" in shown
    assert "Gladly, here is what can be done." in shown and "Shall I order it?" in shown
    assert len(shown) < 2_200 < len(reply) and "\n…\n" in shown


def test_the_words_of_a_person_are_shown_whole():
    text = advice("And I hate the smell of wax.")
    assert message_text(Message("m0", "user", text, 0), {"wax"}) == text


def test_a_short_reply_is_shown_whole():
    text = "Fire it at 1240 °C.\n\n- Slowly.\n- With the lid ajar."
    assert message_text(Message("m0", "assistant", text, 0), set()) == text


def test_a_long_reply_in_one_paragraph_is_shown_as_fully_as_one_with_many_lines():
    reply = " ".join(f"Step {n} is to wedge the clay for a while and then to let it rest." for n in range(60))
    shown = message_text(Message("a0", "assistant", reply, 0), {"glaze"})
    assert 1_200 < len(shown) < 2_000 < len(reply)
    assert shown.startswith("Step 0 is") and "Step 10 is" in shown and shown.endswith("let it rest.")


def test_a_long_plan_is_shown_from_its_start_if_the_answer_repeats_none_of_its_words():
    days = [f"- Day {n}: Louvre, lunch, then a walk along the Seine and an early night." for n in range(40)]
    reply = "\n".join(["Here is a proposal.", *days, "Shall I book?"])
    shown = message_text(Message("a0", "assistant", reply, 0), {"perfect"})
    assert "- Day 0: Louvre" in shown and "- Day 10: Louvre" in shown and shown.endswith("Shall I book?")
