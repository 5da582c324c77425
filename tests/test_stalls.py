"""
No text holds the interpreter: what meets foreign text takes no longer than the text is long.

Every expression is walked with the worst texts made of it (worst.py), every function that reads what came from
outside with corpora/stalls.py. CPU time, not the clock's: the machine may be busy. What is cheap is not measured.
"""

import ast
import importlib
import json
import pkgutil
import re
import signal
import time
from contextlib import contextmanager
from datetime import UTC, date
from itertools import pairwise
from pathlib import Path

import pytest
from corpora.stalls import shapes
from worst import units

import omg
from omg.dates.rules import resolve_dates
from omg.index.rows import plain_body, text_columns
from omg.index.store import terms_of
from omg.message.drop import read_drop
from omg.message.turn import material_in
from omg.node.markdown import with_history_line
from omg.node.note import parse_node
from omg.rules.assertions import LONGEST_SENTENCE, compiled_words
from omg.rules.observer import last_request

HERE = Path(omg.__file__).parent
FLOOR_S = 0.02  # below it nothing is measured; a square would show far above at these lengths
GIVEN_UP_S = 2  # of CPU, on one text
ENDS = ("\0", "\n\0", "")


@contextmanager
def given_up_after(seconds):
    """A walk over something that is no line ends here, and not after an hour: `re` looks for signals."""

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


def grows(work, made):
    """Why *work* is no line over *made*(chars): its times at 12, 25 and 50 kB; None if it is one."""
    try:
        if seconds(work, made(6_000)) < FLOOR_S / 20 or seconds(work, made(12_500)) < FLOOR_S:
            return None
        for pause_s in (
            0,
            0.5,
            2,
        ):  # the machine is slow for a while: all three are taken anew when that is over
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


def uses(source, name):
    """How a module asks the expression *name*; nothing where it only stands there."""
    found = re.findall(rf"\b{name}\.(match|fullmatch|search|sub|finditer|findall|split)\b", source)
    return set(found)


def expressions():
    """`(where, expression, how it is asked)` of all that omg compiles: names, literals in calls, tables of rules."""
    modules = [
        importlib.import_module(m.name)
        for m in pkgutil.walk_packages(omg.__path__, "omg.")
        if not m.name.endswith("__main__")
    ]
    source = {p: p.read_text("utf-8") for p in HERE.rglob("*.py")}
    found = {}

    def walk(value, where, how, depth=0):
        if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
            key = (value.pattern, value.flags)
            found.setdefault(key, (where, value, set()))[2].update(how)
        elif depth < 4 and isinstance(value, tuple | list | set | frozenset):
            for inner in value:
                walk(inner, where, how, depth + 1)
        elif depth < 4 and isinstance(value, dict):
            for inner in value.values():
                walk(inner, where, how, depth + 1)
        elif depth < 4 and type(value).__module__.startswith("omg.") and hasattr(value, "__slots__"):
            for name in value.__slots__:
                walk(getattr(value, name, None), where, how, depth + 1)

    for module in modules:
        for name, value in vars(module).items():
            if isinstance(value, re.Pattern | tuple | list | dict):
                walk(value, f"{module.__name__}.{name}", uses(source[Path(module.__file__)], name))
    for path, text in source.items():
        for call in ast.walk(ast.parse(text)):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.args):
                continue
            first, owner = call.args[0], call.func.value
            if isinstance(owner, ast.Name) and owner.id == "re" and isinstance(first, ast.Constant):
                named = {n.attr for n in ast.walk(call) if isinstance(n, ast.Attribute)}
                flags = sum(
                    getattr(re, name) for name in named & {"I", "M", "S", "DOTALL", "IGNORECASE", "ASCII"}
                )
                where = f"{path.relative_to(HERE)}:{call.lineno}"
                if isinstance(first.value, str) and call.func.attr not in ("escape", "compile"):
                    walk(re.compile(first.value, flags), where, {call.func.attr})
    return [(where, value, how or {"search"}) for where, value, how in found.values()]


def asked(expression, how):
    """As the code asks it: from the text's beginning alone, or from every place in it."""
    if how <= {"match", "fullmatch"}:
        return getattr(expression, "match" if "match" in how else "fullmatch")
    return lambda text: [None for _ in expression.finditer(text)]


def test_no_expression_takes_longer_than_the_text_is_long():
    walked = expressions()
    assert len(walked) > 250  # it finds them
    slow = []
    for where, expression, how in walked:
        work = asked(expression, how)
        for head, unit in units(expression, most=8):
            for end in ENDS:
                if why := grows(work, lambda n, h=head, u=unit, e=end: h + u * (n // len(u)) + e):
                    slow.append(f"{where}: {head!r} + {unit!r} * n + {end!r}: {why}")
                    break
            if slow and slow[-1].startswith(f"{where}:"):
                break
    assert not slow, "\n".join(slow)


def test_the_cues_of_a_sentence_are_quick_at_the_longest_sentence():
    """They meet one sentence at a time, of LONGEST characters at the most; no text reaches them whole."""
    (patterns, cues), slow = compiled_words(), []
    for pattern in (*patterns.values(), *(p for cue in cues for p in cue.patterns)):
        for head, unit in units(pattern, most=8):
            text = (head + unit * LONGEST_SENTENCE)[:LONGEST_SENTENCE]
            if (took := min(seconds(pattern.search, text) for _ in range(2))) > 0.05:
                slow.append(f"{pattern.pattern[:80]}: {head!r} + {unit!r} * n: {took:.3f} s")
    assert not slow, "\n".join(slow)


def test_the_walk_finds_what_is_no_line(monkeypatch):
    monkeypatch.setitem(globals(), "GIVEN_UP_S", 0.5)  # these are slow by far
    for bad in (r"\s+$", r"<!--.*?-->", r"(?:[#>*+-]+[ \t]+)*\w", r"\[\[(?:[^\]|]*\|)?([^\]]*)\]\]"):
        work = asked(re.compile(bad, re.S), {"search"})
        assert any(
            grows(work, lambda n, h=head, u=unit, e=end: h + u * (n // len(u)) + e)
            for head, unit in units(re.compile(bad, re.S), most=12)
            for end in ENDS
        ), bad


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


READERS = {
    "taken in": taken_in,
    "a note": a_note,
    "a question": terms_of,
    "days spoken of": lambda text: resolve_dates(text, date(2026, 3, 4)),
    "whose words": material_in,
    "what is asked": last_request,
}


@pytest.mark.parametrize("reader", READERS)
def test_no_text_keeps_a_reader_longer_than_it_is_long(reader):
    work = READERS[reader]
    work("warm up, tomorrow at five")
    names = [name for name, _ in shapes(100)]
    texts = {n: dict(shapes(n)) for n in (6_000, 12_500, 25_000, 50_000)}
    slow = []
    for name in names:
        try:
            # A square of that is under a second at 12 kB; what is slow once may be the machine's doing.
            if any(seconds(work, texts[6_000][name]) < 0.05 for _ in range(2)):
                continue
        except TimeoutError:
            slow.append(f"{name}: more than {GIVEN_UP_S} s at 6 kB")
            continue
        if why := grows(work, lambda n, name=name: texts[n][name]):
            slow.append(f"{name}: {why}")
    assert not slow, "\n".join(slow)


def test_a_note_with_thousands_of_aliases_is_filed_at_once():
    head = "".join(f"- another name, number {n}\n" for n in range(5_000))
    node = parse_node(f"---\nid: omg/fact/a\ntype: fact\naliases:\n{head}---\nNo heading.\n", "nodes/fact/a")
    start = time.process_time()
    with given_up_after(4):
        text_columns(node, UTC)
    assert time.process_time() - start < 2
