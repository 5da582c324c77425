#!/usr/bin/env python3
"""
Measures how much of recorded model replies the vault keeps: prints each loss, and the share kept of each kind.

    python bench/fidelity.py --recorded FILE.jsonl.gz… --data FOLDER… [--out DIR] [--json]

    --out  a folder with a run of bench/replay.py; without a run there, one is made

What counts as kept:

    sentence   some note has it word for word, in its description, body or history
    title      a note is or was called so
    update     the note that it names has its text; "beside" means that another note's description has the text
    supersede  the former note is superseded
    drop       a history has the sentence, and the note's text no longer has it
    property   the note has the last value that a reply gave; an open loop may be done by now
    verdict    the vault agrees with it

Reasons for a loss come from the code. A label is what the code put before a sentence of a reply ("The assistant: "). A
label is wrong unless the edit cites a message of the assistant's, and this sentence or the one before it names the
assistant.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import replay
from questions.files import read
from questions.notes import Note, as_read, called, read_notes, sentences, slug, stands_in
from questions.recorded import Row, Titled, groups_in, read_recorded

from omg.reflect.verdicts import OPS

HEAD = ("type", "priority", "event", "loop", "standing")
FIGURES = (
    *("body sentences", "descriptions", "titles", "updates", "supersedes", "drops", "edits without a loss"),
    *(*HEAD, "tags", "links"),
    *OPS,
)
LABEL = re.compile(r"(?:^|[.!?”\"] )([^.!?:\n-]{1,40}): $")

Place = tuple[int, str]  # a recorded request, and the edit of its reply


@dataclass(eq=False)
class Wanted:
    """A note as the replies want it: its titles and sentences, in the replies' order, and its last properties."""

    titles: list[str] = field(default_factory=list)
    descriptions: list[str] = field(default_factory=list)
    bodies: list[str] = field(default_factory=list)  # sentences
    head: dict[str, Any] = field(default_factory=dict)
    tags: set[str] = field(default_factory=set)
    links: list[Wanted] = field(default_factory=list)
    note: Note | None = None  # of the vault

    @property
    def name(self) -> str:
        return (self.titles or self.descriptions or [""])[-1]


@dataclass
class Chat:
    """One chat's replies, the vault that they made, and the records of the run by bench/replay.py."""

    rows: list[Row]
    notes: list[Note]
    run: Mapping[str, Any]
    wanted: dict[Place, Wanted] = field(default_factory=dict)  # what each edit is about
    reasons: dict[Place, str] = field(default_factory=dict)
    counts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    losses: list[dict[str, Any]] = field(default_factory=list)

    @property
    def edits(self) -> Iterator[tuple[Row, Place, dict[str, Any]]]:
        return ((row, (row.n, i), e) for row in self.rows if row.kind == "observe" for i, e in row.edits)

    def count(self, what: str, kept: bool | str, place: Place, said: str) -> None:
        """Count one *what* (a sentence, a title …). *kept* is True, or a word for what happened instead."""
        row, edit = place
        became = "no request got it" if f"{row}, edit {edit}" in self.run["left"] else kept or "lost"
        self.counts[what].update(all=1, **{"kept" if kept is True else became: 1})
        if kept is not True:
            why = self.reasons.get(place, "")
            self.losses.append(
                {"what": what, "row": row, "edit": edit, "as": became, "why": why, "said": said}
            )

    def successor(self, note: Note) -> Note:
        """Return the note that replaced *note*, at the end of the chain of successors."""
        by_path = {note.path: note for note in self.notes}
        for _ in self.notes:
            note = by_path.get(str(note.head.get("superseded_by") or "").strip("[]").partition("|")[0], note)
        return note


# --- what the replies want


def follow(chat: Chat) -> None:
    """Fill in the notes that *chat* wants, edit by edit, and find each wanted note in the vault."""
    for row in (row for row in chat.rows if row.kind == "observe"):
        new: dict[str, Wanted] = {}  # titles of this reply's edits
        for i, edit in row.edits:
            named = find(chat, row.notes, edit.get("node") or "", new) if edit["op"] == "update" else None
            chat.wanted[row.n, i] = about = named or Wanted()
            about.titles += [edit["title"]] if edit.get("title") else []
            about.descriptions += [edit["description"]] if edit.get("description") else []
            about.bodies += body_of(edit)
            about.head |= {key: edit[key] for key in HEAD if edit.get(key) not in (None, False)}
            tags = {*edit.get("tags", ())}
            about.tags = (set() if "clear" in tags else about.tags) | (tags - {"clear"})
            for title in about.titles:
                new.setdefault(slug(title), about)
        for i, edit in row.edits:
            links = (find(chat, row.notes, name, new) for name in edit.get("links") or ())
            chat.wanted[row.n, i].links += [there for there in links if there is not None]
    for about in chat.wanted.values():
        about.note = about.note or nearest(chat, about)


def find(chat: Chat, notes: Mapping[str, Titled], name: str, new: Mapping[str, Wanted]) -> Wanted | None:
    """Find the note that a reply calls *name*: a handle of *notes*, a description, a title, or another edit's title."""
    if name not in notes:
        return new.get(slug(name))
    begins, title = notes[name].begins, slug(notes[name].title)
    all = [*chat.wanted.values()][::-1]
    said = [w for w in all if begins and any(" ".join(d.split()).startswith(begins) for d in w.descriptions)]
    return next(iter(said), None) or next((w for w in all if title in map(slug, w.titles)), None)


def nearest(chat: Chat, wanted: Wanted) -> Note | None:
    """Return the vault's note that matches *wanted* best, by first sentence, titles and share of its text."""
    names, first = {*map(slug, wanted.titles)}, (wanted.descriptions or wanted.bodies)[:1]

    def fit(note: Note) -> tuple[int, bool]:
        said = sum(stands_in(text, note.all) for text in (*first * 5, *wanted.descriptions, *wanted.bodies))
        return 3 * len(names & note.names) + said, slug(note.title) in names

    best = max(chat.notes, key=fit, default=None)
    return best if best and fit(best)[0] else None


def body_of(edit: Mapping[str, Any]) -> list[str]:
    return sentences(edit["body"]) if edit.get("body") not in (None, "", "clear") else []


# --- what stands in the vault


def compare(chat: Chat) -> None:
    follow(chat)
    places = {(g["request"], f"dropped edit {g['place']}"): (g["row"], g["edit"]) for g in chat.run["given"]}
    for request, line in chat.run["told"]:
        what, _, why = line.partition(": ")
        if (request, what) in places:
            chat.reasons[places[request, what]] = why
    all = "\n".join(note.all for note in chat.notes)
    for row, place, edit in chat.edits:
        about = chat.wanted[place]
        for sentence in body_of(edit):
            chat.count("body sentences", stands_in(sentence, all), place, sentence)
        if said := edit.get("description"):
            chat.count("descriptions", stands_in(said, all), place, said)
        if title := edit.get("title"):
            chat.count("titles", bool(called(chat.notes, title)), place, title)
        if edit["op"] == "update":
            chat.count(
                "updates",
                changed(chat, edit, about.note),
                place,
                f"{about.name}: {said or edit.get('body')}",
            )
        elif edit["op"] == "supersede":
            old = find(chat, row.notes, edit.get("node") or "", {})
            gone = bool(old and old.note and old.note.head.get("status") == "superseded")
            chat.count("supersedes", gone or "beside", place, f"{old and old.name}, by {about.name}")
        for sentence in edit.get("drop") or ():
            still = about.note is not None and stands_in(sentence, as_read(about.note.text))
            there = any(stands_in(sentence, as_read(note.history)) for note in chat.notes)
            chat.count("drops", "stands still" if still else there, place, sentence)
    for place, about in {id(about): (place, about) for place, about in chat.wanted.items()}.values():
        for key, kept, said in properties(chat, about):  # at the last edit of a note
            chat.count(key, kept, place, f"{about.name}: {said}")
    whole = chat.wanted.keys() - {(loss["row"], loss["edit"]) for loss in chat.losses}
    chat.counts["edits without a loss"] = Counter(all=len(chat.wanted), kept=len(whole))
    verdicts(chat)


def changed(chat: Chat, edit: Mapping[str, Any], note: Note | None) -> bool | str:
    """Return whether *note* or its history has the text of *edit*; "beside" if another note has the text."""
    if note is None:
        return False
    said = [edit["description"]] if edit.get("description") else body_of(edit)
    if not said:  # nothing but properties
        return all(edit[key] == "clear" or has(note, key, edit[key]) for key in HEAD if edit.get(key))
    others = [as_read(other.description) for other in chat.notes if other is not note]
    if any(stands_in(s, other) for s in said for other in others):
        return "beside"
    return any(stands_in(s, note.all) for s in said)


def properties(chat: Chat, about: Wanted) -> Iterator[tuple[str, bool, str]]:
    note = about.note
    for key, value in about.head.items():
        if value != "clear":
            yield key, note is not None and has(note, key, value), str(value)
    for tag in sorted(about.tags):
        yield (
            "tags",
            note is not None and slug(tag) in (slug(str(t)) for t in note.head.get("tags") or ()),
            tag,
        )
    for other in (other for other in dict.fromkeys(about.links) if other is not about):
        there = {other.note.path, chat.successor(other.note).path} if other.note else set()
        yield "links", note is not None and bool(there & {note.path, *note.links()}), other.name


def has(note: Note, key: str, value: Any) -> bool:
    """Return whether *note* has the property *key* with *value*. A month as `event` is stored as the month's days."""
    there = note.head.get(key)
    if key == "event":
        given, days = (re.split(r"\.\.|/", str(text)) for text in (value, there))
        return days[0].startswith(given[0]) and days[-1].startswith(given[-1])
    return bool(there == value or (key, value, there) == ("loop", "open", "done"))


def verdicts(chat: Chat) -> None:
    """Count the nights' verdicts. The code gives its reasons in the order of the verdicts."""
    lost: dict[Place, tuple[str, str]] = {}
    for row in (row for row in chat.rows if row.kind == "notes"):
        groups = groups_in(row.request)
        for i, verdict in row.edits:
            if verdict["op"] not in OPS:
                continue  # a night linked, retitled and described notes then
            shown = groups[i.partition(".")[0]]
            pair = [note_shown(chat, shown[verdict[key]]) for key in ("node", "other") if verdict.get(key)]
            if all(pair) and is_so(chat, verdict, [note for note in pair if note]):
                chat.count(verdict["op"], True, (row.n, i), "")
            else:
                said = f"{shown[verdict['node']].title}: {verdict.get('why')}"
                lost[row.n, i] = verdict["op"], said
    told = [line for _, line in chat.run["told"] if line.startswith("refused g")]
    for given in (given for given in chat.run["given"] if (given["row"], given["edit"]) in lost):
        place = given["row"], given["edit"]
        begins = f"refused {given['place']}, {lost[place][0]}: "
        at = next((n for n, line in enumerate(told) if line.startswith(begins)), None)
        if at is not None:
            chat.reasons.setdefault(place, told[at].removeprefix(begins))
            del told[: at + 1]
    for place, (op, said) in lost.items():
        chat.count(op, False, place, said)


def note_shown(chat: Chat, shown: Titled) -> Note | None:
    """The note of the vault that a nightly request showed."""
    said = [note for note in chat.notes if shown.begins and stands_in(shown.begins, note.all)]
    about = find(chat, {"n": shown}, "n", {})
    named = called(said, shown.title) or called(chat.notes, shown.title) or said
    return named[0] if named else about.note if about else None


def is_so(chat: Chat, verdict: Mapping[str, Any], notes: list[Note]) -> bool:
    """Return whether the vault agrees with *verdict* on *notes*."""
    node, other, op = notes[0], notes[-1], verdict["op"]
    if op in ("close", "keep"):
        return (node.head.get("loop") == "open") == (op == "keep")
    if op == "contradict":
        return other.path in node.links() and node.path in other.links()
    return chat.successor(node) is chat.successor(other)  # merge, supersede: one note says it


def labels(chat: Chat) -> list[dict[str, Any]]:
    """Return the labels that the code put before sentences of the replies."""
    said = as_read("\n".join(edit.get("body") or "" for _, _, edit in chat.edits))
    texts = {note.path: as_read(note.text) for note in chat.notes}
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row, place, edit in chat.edits:
        heard = any(
            f"\n{h} {row.messages[h].at[1]} assistant" in row.request
            for h in edit["sources"]
            if h in row.messages
        )
        before = edit.get("description") or ""
        for sentence in body_of(edit):
            right, part = heard and "assistant" in f"{before} {sentence}".lower(), as_read(sentence)
            before = sentence
            for path, text in texts.items():
                label = LABEL.search(text[: text.find(part)]) if part in text else None
                if label and f"{label[1]}: {part}" not in said:
                    value = {
                        "label": label[1],
                        "right": right,
                        "note": path,
                        "row": place[0],
                        "edit": place[1],
                    }
                    found[path, label[1], part] = value | {"said": sentence}
    return [*found.values()]


# --- what is printed


def report_of(chat: Chat) -> dict[str, Any]:
    compare(chat)
    marks = labels(chat)
    kinds = Counter(f"{note.head.get('type')}: {note.head.get('origin')}" for note in chat.notes)
    shown: dict[str, list[str]] = defaultdict(list)
    for given in (given for given in chat.run["given"] if "shown" in given):
        shown[given["shown"]].append(f"{given['row']}.{given['edit']}")
    figures = {what: dict(chat.counts[what]) for what in FIGURES if chat.counts[what]["all"]}
    return {
        "omg": chat.run["omg"],
        "figures": {
            what: n | {"share": round(n.get("kept", 0) / n["all"], 4)} for what, n in figures.items()
        },
        "labels": len(marks),
        "wrong_labels": [mark for mark in marks if not mark["right"]],
        "origins": dict(sorted(kinds.items())),
        "updated_notes_shown": shown,
        "losses": chat.losses,
    }


def show(id: str, report: Mapping[str, Any]) -> None:
    print(f"\n## {id} ({report['omg']})\n")
    for loss in report["losses"]:
        why = f" [{loss['why']}]" if loss["why"] else ""
        said = " ".join(loss["said"].split())[:200]
        print(f"{loss['what']}, {loss['row']}.{loss['edit']}, {loss['as']}{why}: {said}")
    for mark in report["wrong_labels"]:
        said = f"{mark['label']}: {mark['said'][:150]}"
        print(f"wrong label, {mark['row']}.{mark['edit']}, {mark['note']}: {said}")
    print()
    for what, n in report["figures"].items():
        rest = ", ".join(f"{key} {n[key]}" for key in n if key not in ("all", "kept", "share"))
        print(f"{what:20} {n.get('kept', 0):4} of {n['all']:4}  {n['share']:6.1%}  {rest}".rstrip())
    print(f"labels put before sentences: {report['labels']}, of them wrong: {len(report['wrong_labels'])}")
    print("origins:", ", ".join(f"{key} {n}" for key, n in report["origins"].items()))
    for how, edits in report["updated_notes_shown"].items():
        print(f"updated notes that the request showed {how}: {len(edits)} ({', '.join(edits)})")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    replay.inputs(parser)
    parser.set_defaults(against=None, observe="recorded", nights="end", slices=0)
    args = parser.parse_args()
    if not args.recorded:
        parser.error("--recorded names no replies")
    with ExitStack() as stack:
        out = args.out or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="omg-fidelity-")))
        if not (out / "this").exists() and (troubles := replay.replayed(args, out)["troubles"]):
            sys.exit("\n".join(troubles))
        reports = {}
        for file in sorted(args.recorded):
            id = file.name.removesuffix(".jsonl.gz")
            if (run := read(out / "this" / f"{id}.json")) is None:
                sys.exit(f"{out / 'this'} has no finished run of {id}; name another folder for --out")
            notes = read_notes(replay.vault_of(out / "this" / id))
            reports[id] = report_of(Chat(read_recorded(file), notes, run))
            show(id, reports[id])
    if args.json:
        print(json.dumps(reports))


if __name__ == "__main__":
    main()
