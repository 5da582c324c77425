"""People are told apart by their sender ids, and no message has a time that has not come."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from harness import AT, Agent, entry, hand_over

from omg.message.turn import Message
from omg.text.characters import plain_form
from omg.tools.reading import message_in
from omg.worker.intake import arrived

GROUP = "agent:main:telegram:group:-100"
LATER = int(datetime(2036, 1, 1, tzinfo=UTC).timestamp() * 1000)


def heard(agent: Agent, *said: tuple[str, str, str], at: int = AT, reason: str = "turn") -> None:
    """Messages of a group: display name, sender id and words of each, observed together."""
    entries = []
    for name, id, text in said:
        agent.n += 1
        meta = {"senderName": name, "senderId": id}
        entries.append(entry(f"g{agent.n}", text, at + agent.n, **{"__openclaw": meta}))
    hand_over(agent.home.folder, *entries, session=GROUP, reason=reason)
    agent.home.work(force=True)


def speakers(agent: Agent) -> list[str]:
    graph = agent.home.find(GROUP)
    return [m.sender for m in graph.index.messages([f"g{n}" for n in range(1, agent.n + 1)])]


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize(
    "names",
    [
        ("Ann", "Ann"),
        ("Ann", "ann"),
        ("Ann Lee", "Ann Kim"),
        ("Ann", "Ann Lee"),
        ("Ann", "Ａnn"),
        ("Ann", "Ann\u200b"),
        ("Ann", "Ann; Bob"),
        ("Ann", "Ann: I pay. Bob"),
    ],
)
def test_two_anns_in_a_group_are_two_people(home: Path, names: tuple[str, str], together: bool) -> None:
    agent = Agent(home)
    said = [
        (names[0], "1", "I am allergic to penicillin."),
        (names[1], "2", "I am not allergic to penicillin."),
    ]
    for turn in [said] if together else [[s] for s in said]:
        heard(agent, *turn)
    first, second = speakers(agent)
    assert (first, plain_form(second).lower()[:5]) == (names[0], "ann-2")
    graph = agent.home.find(GROUP)
    notes = [graph.vault.read(e.path) for e in graph.index.entries() if e.path.startswith("nodes/")]
    assert all(n.status == "active" for n in notes)
    assert not [n for n in notes if "g1" in {s.id for s in n.sources} and "g2" in {s.id for s in n.sources}]


@pytest.mark.parametrize("names", [("Ann", "Ann", "Ann-2"), ("Ann-2", "Ann", "Ann"), ("Ann", "Ann-2", "Ann")])
def test_nobody_can_use_another_persons_label_as_their_name(home: Path, names: tuple[str, ...]) -> None:
    agent = Agent(home)
    heard(agent, *[(name, str(n), f"I own {n} boats.") for n, name in enumerate(names)])
    assert len({speaker.casefold() for speaker in speakers(agent)}) == 3


def test_a_group_member_keeps_one_label_even_if_two_members_have_the_same_name(home: Path) -> None:
    agent = Agent(home)
    heard(agent, ("Ann", "1", "I play the cello."), ("Bob", "3", "I play chess."), ("Ann", "2", "I ski."))
    heard(
        agent,
        ("Ann", "1", "I live in Rome."),
        ("Ann", "2", "I live in Oslo."),
        ("Bob", "3", "I live in Bonn."),
    )
    assert speakers(agent) == ["Ann", "Bob", "Ann-2", "Ann", "Ann-2", "Bob"]


def test_a_message_dated_in_the_future_gets_the_time_of_its_arrival_unless_it_is_imported(home: Path) -> None:
    agent = Agent(home)
    heard(agent, ("Ann", "1", "I live in Rome."), at=LATER)
    heard(agent, ("Ann", "1", "I ski."), at=LATER, reason="import")
    heard(agent, ("Ann", "1", "I row."), at=AT)
    times = {m.id: m.timestamp for m in agent.home.find(GROUP).index.messages(["g1", "g2", "g3"])}
    assert (times["g2"], times["g3"]) == (LATER + 2, AT + 3)
    assert abs(times["g1"] - agent.home.registry.now_ms()) < 3_600_000


def test_a_time_a_few_hours_ahead_is_kept_and_a_time_a_year_ahead_is_not() -> None:
    now = 1_795_000_000_000
    assert arrived(Message("a", "user", "x", now + 3_600_000), now).timestamp == now + 3_600_000
    assert arrived(Message("a", "user", "x", now + 400 * 86_400_000), now).timestamp == now


def test_a_tool_message_dated_in_the_future_gets_the_time_of_its_arrival() -> None:
    now = 1_795_000_000_000
    assert message_in({"id": "a", "text": "x", "timestamp": LATER}, now).timestamp == now
    assert message_in({"id": "a", "text": "x", "timestamp": now - 5}, now).timestamp == now - 5
