"""
No text holds the interpreter: what meets foreign text takes no longer than the text is long.

Every function that reads what came from outside is given the shapes of corpora/stalls.py at growing lengths. CPU time is
measured, not the clock's, since the machine may be busy. What is cheap is not measured.
"""

import json
import signal
import time
from contextlib import contextmanager, suppress
from datetime import UTC, date
from itertools import pairwise

import pytest
from corpora.stalls import shapes

from omg.dates.rules import resolve_dates
from omg.index.rows import plain_body, text_columns
from omg.index.store import terms_of
from omg.message.drop import read_drop
from omg.message.statements import statements_in
from omg.message.turn import Message, material_in
from omg.node.markdown import with_history_line
from omg.node.note import parse_node
from omg.rules.observer import last_request, observe_offline

FLOOR_S = 0.02  # below it nothing is measured; a square would show far above at these lengths
GIVEN_UP_S = 2  # of CPU, on one text


@contextmanager
def given_up_after(seconds):
    """Ends what takes longer than *seconds* of CPU: `re` looks for signals."""

    def give_up(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def seconds(work, text):
    start = time.process_time()
    with given_up_after(GIVEN_UP_S):
        work(text)
    return time.process_time() - start


def is_quick(work, text):
    with suppress(TimeoutError):
        return seconds(work, text) < 0.05
    return False


def grows(work, made):
    """None if the time of *work* is proportional to the length of *made*(chars); else its times at 12, 25 and 50 kB."""
    try:
        for pause_s in (0, 0.5, 2):  # where the machine is slow for a while, all three are measured anew
            time.sleep(pause_s)
            times = [float("inf")] * 3
            for _ in range(6):  # what is slow once may be its doing, too: the least of all tries counts
                for n, chars in enumerate((12_500, 25_000, 50_000)):
                    times[n] = min(times[n], seconds(work, made(chars)))
                if all(b <= 2.5 * max(a, FLOOR_S / 2) for a, b in pairwise(times)):
                    return None
    except TimeoutError:
        return f"more than {GIVEN_UP_S} s"
    return " → ".join(f"{t:.3f}" for t in times)


def taken_in(text):
    said = {"role": "user", "content": text}
    call = {"type": "toolCall", "id": "c", "name": "x", "arguments": {"a": text}}
    entries = [
        {"entryId": "m1", "message": said},
        {"entryId": "m2", "message": {"role": "assistant", "content": [call]}},
    ]
    read_drop(json.dumps({"v": 1, "sessionKey": "agent:main:main", "entries": entries}).encode())


def a_note(text):
    node = parse_node(f"---\nid: omg/fact/a\ntype: fact\n---\n{text}", "nodes/fact/a")
    assert isinstance(node.title, str) and isinstance(node.wikilinks, tuple)
    plain_body(node.body, node.title)
    with_history_line(text, "- a line")


def noted(text):
    observe_offline([Message("m1", "user", text, 1_772_000_000_000)], (), UTC)


READERS = {
    "taken in": taken_in,
    "a note": a_note,
    "a question": terms_of,
    "days spoken of": lambda text: resolve_dates(text, date(2026, 3, 4)),
    "whose words": material_in,
    "what governs a statement": lambda text: statements_in(text, ()),
    "what is asked": last_request,
    "what the rules note": noted,
}


@pytest.mark.parametrize("reader", READERS)
def test_reading_any_text_takes_at_most_linear_time(reader):
    work = READERS[reader]
    work("warm up, tomorrow at five")
    names = [name for name, _ in shapes(100)]
    texts = {n: dict(shapes(n)) for n in (6_000, 12_500, 25_000, 50_000)}
    slow = []
    for name in names:
        # A square of that is under a second at 12 kB; what is slow once may be the machine's doing.
        if any(is_quick(work, texts[6_000][name]) for _ in range(2)):
            continue
        if why := grows(work, lambda n, name=name: texts[n][name]):
            slow.append(f"{name}: {why}")
    assert not slow, "\n".join(slow)


def test_a_note_with_thousands_of_aliases_is_indexed_quickly():
    head = "".join(f"- another name, number {n}\n" for n in range(5_000))
    node = parse_node(f"---\nid: omg/fact/a\ntype: fact\naliases:\n{head}---\nNo heading.\n", "nodes/fact/a")
    start = time.process_time()
    with given_up_after(4):
        text_columns(node, UTC)
    assert time.process_time() - start < 2
