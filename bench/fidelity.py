#!/usr/bin/env python3
"""
What of recorded replies stands in the vault after the code has taken them in: each loss is printed, and the shares.

    python bench/fidelity.py --recorded FILE.jsonl.gz… --data FOLDER… [--out DIR] [--json]

    --out  a folder of bench/replay.py whose run is read; without a run in it, one is made there

A sentence is kept if it stands, in its words, in a description, a body or a history of some note; a title, if a note is or
was called so; a property, if the note has the last value that was given to it; an update, if its text stands in the note
that it names, and in no description of another; a verdict of the night, if what it says is so. Reasons are those that the code
gives. A label ("The assistant: ") that the code put before a sentence is wrong where the reply does not say that the
assistant said it: it cites no message of the assistant's, or names the assistant neither in the sentence nor in the one before.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import replay
from questions.files import read
from questions.notes import Note, as_read, called, read_notes, sentences, slug, stands_in
from questions.recorded import Row, Titled, groups_in, read_recorded

FIGURES = (
    *("body sentences", "descriptions", "titles", "updates", "supersedes", "drops", "edits without a loss"),
    *("type", "priority", "event", "loop", "standing", "tags", "links"),
    *("merge", "supersede", "contradict", "link", "describe", "retitle", "close", "keep"),
)
HEAD = ("type", "priority", "event", "loop", "standing")
LABEL = re.compile(r"(?:^|[.!?”\"] )([^.!?:\n-]{1,40}): $")


@dataclass(eq=False)
class Wanted:
    """A note as the replies want it: what was said of it in their order, and its properties in the end."""

    names: list[str] = field(default_factory=list)  # titles, the last is its own
    texts: list[str] = field(default_factory=list)  # descriptions
    bodies: list[str] = field(default_factory=list)  # sentences
    head: dict[str, Any] = field(default_factory=dict)
    tags: set[str] = field(default_factory=set)
    links: list[Wanted] = field(default_factory=list)


@dataclass
class Chat:
    """One chat's replies, and the vault they came to."""

    rows: list[Row]
    notes: list[Note]
    run: Mapping[str, Any]
    wanted: list[Wanted] = field(default_factory=list)
    about: dict[tuple[int, str], Wanted] = field(default_factory=dict)  # edit → the note that it is about
    counts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    losses: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.all = "\n".join(note.all for note in self.notes)
        self.by_path = {note.path: note for note in self.notes}
        self.reasons = {
            place: why.partition(": ")[2]
            for place in ((g["row"], g["edit"]) for g in self.run["given"])
            for why in self.told_of(place)
        }

    def told_of(self, edit: tuple[int, str]) -> Iterator[str]:
        """What the code said of an edit of a batch that it dropped."""
        places = [(g["request"], g["place"]) for g in self.run["given"] if (g["row"], g["edit"]) == edit]
        for request, why in self.run["told"]:
            if any(request == n and why.startswith(f"dropped edit {place}: ") for n, place in places):
                yield why

    def count(self, what: str, kept: bool | str, row: Row, edit: str, said: str) -> None:
        """*kept*: whether, or what became of it instead."""
        self.counts[what]["all"] += 1
        if kept is True:
            self.counts[what]["kept"] += 1
            return
        self.counts[what][kept or "lost"] += 1
        why = self.reasons.get((row.n, edit), "" if (row.n, edit) not in self.left else "no request got it")
        self.losses.append(
            {"what": what, "row": row.n, "edit": edit, "said": said, "as": kept or "lost", "why": why}
        )

    @property
    def left(self) -> set[tuple[int, str]]:
        return {(int(n), i) for n, i in (place.split(", edit ") for place in self.run["left"])}

    def note_of(self, wanted: Wanted) -> Note | None:
        """The note of the vault that is *wanted*: by its names and by what it says."""

        def fit(note: Note) -> tuple[int, int]:
            named = len({slug(name) for name in wanted.names} & note.names)
            said = sum(stands_in(text, note.all) for text in (*wanted.texts, *wanted.bodies))
            return 3 * named + said, slug(wanted.names[-1]) == slug(note.title)

        best = max(self.notes, key=fit, default=None)
        return best if best is not None and fit(best)[0] else None

    def successor(self, note: Note) -> Note:
        """What *note* was superseded by, to the end of the chain."""
        for _ in self.notes:
            there = str(note.head.get("superseded_by") or "").strip("[]").partition("|")[0]
            if there not in self.by_path:
                break
            note = self.by_path[there]
        return note


# --- what the replies want


def follow(chat: Chat) -> None:
    """Fill what *chat* wants, edit by edit."""
    for row in (row for row in chat.rows if row.kind == "observe"):
        new: dict[str, Wanted] = {}  # titles of this reply's edits
        for i, edit in row.edits:
            about = find(chat, row.notes, new, edit.get("node") or "") if edit["op"] == "update" else None
            if about is None:
                about = Wanted()
                chat.wanted.append(about)
            chat.about[row.n, i] = about
            if title := edit.get("title"):
                about.names.append(title)
                new.setdefault(slug(title), about)
            about.names = about.names or [edit.get("description", "")[:60]]
            about.texts += [edit["description"]] if edit.get("description") else []
            about.bodies += sentences(edit["body"]) if has_body(edit) else []
            about.head |= {key: edit[key] for key in HEAD if edit.get(key) not in (None, False)}
            about.tags = {*(() if "clear" in edit.get("tags", ()) else about.tags), *edit.get("tags", ())} - {
                "clear"
            }
        for i, edit in row.edits:
            found = (find(chat, row.notes, new, name) for name in edit.get("links") or ())
            chat.about[row.n, i].links += [there for there in found if there is not None]


def find(chat: Chat, notes: Mapping[str, Titled], new: Mapping[str, Wanted], name: str) -> Wanted | None:
    """The note that a reply calls *name*: a handle of *notes*, or the title of an edit of it."""
    if name not in notes:
        return new.get(slug(name))
    title, begins = notes[name].title, notes[name].begins
    said = (
        w
        for w in reversed(chat.wanted)
        if begins and any(" ".join(t.split()).startswith(begins) for t in w.texts)
    )
    titled = (w for w in reversed(chat.wanted) if slug(title) in map(slug, w.names))
    return next(said, None) or next(titled, None)


def has_body(edit: Mapping[str, Any]) -> bool:
    return bool(edit.get("body")) and edit["body"] != "clear"


# --- what stands in the vault


def compare(chat: Chat) -> None:
    follow(chat)
    there = {id(wanted): chat.note_of(wanted) for wanted in chat.wanted}
    for row in (row for row in chat.rows if row.kind == "observe"):
        for i, edit in row.edits:
            about = chat.about[row.n, i]
            note = there[id(about)]
            for sentence in sentences(edit["body"]) if has_body(edit) else ():
                chat.count("body sentences", stands_in(sentence, chat.all), row, i, sentence)
            for sentence in [edit["description"]] if edit.get("description") else ():
                chat.count("descriptions", stands_in(sentence, chat.all), row, i, sentence)
            if title := edit.get("title"):
                chat.count("titles", bool(called(chat.notes, title)), row, i, title)
            if edit["op"] != "create":
                chat.count(
                    f"{edit['op']}s",
                    changed(chat, row, edit, note, there),
                    row,
                    i,
                    f"{about.names[-1]}: {edit.get('description') or edit.get('body') or ''}",
                )
            for sentence in edit.get("drop") or ():
                chat.count("drops", dropped(chat, sentence, note), row, i, sentence)
    # Of a note's properties the last edit of it is told.
    rows = {row.n: row for row in chat.rows}
    for (n, i), wanted in {id(w): (place, w) for place, w in chat.about.items()}.values():
        for key, kept, said in properties(chat, wanted, there):
            chat.count(key, kept, rows[n], i, f"{wanted.names[-1]}: {said}")
    broken = {(loss["row"], loss["edit"]) for loss in chat.losses}
    chat.counts["edits without a loss"] = Counter(all=len(chat.about), kept=len(chat.about.keys() - broken))
    verdicts(chat)


def changed(
    chat: Chat, row: Row, edit: Mapping[str, Any], note: Note | None, there: Mapping[int, Note | None]
) -> bool | str:
    """Whether *edit* changed the note that it names, or what became of it: "beside" (a second note), "lost"."""
    said = (
        [edit["description"]]
        if edit.get("description")
        else sentences(edit["body"])
        if has_body(edit)
        else []
    )
    if edit["op"] == "supersede":
        old = find(chat, row.notes, {}, edit.get("node") or "")
        former = there.get(id(old)) if old else None
        if note is None or not stands_in(said[0], chat.all):
            return False
        return former is None or former.head.get("status") == "superseded" or "beside"
    if note is None:
        return False
    if not said:
        return all(
            same_value(key, edit[key], note.head.get(key)) or edit[key] == "clear" or key == "title"
            for key in (*HEAD, "title")
            if edit.get(key)
        )
    here = any(stands_in(part, chat.successor(note).all) or stands_in(part, note.all) for part in said)
    beside = [
        n
        for n in chat.notes
        if n is not note and any(stands_in(part, as_read(n.description)) for part in said)
    ]
    return "beside" if beside and not (here and beside == [chat.successor(note)]) else here


def dropped(chat: Chat, sentence: str, note: Note | None) -> bool | str:
    if note is not None and stands_in(sentence, as_read(note.text)):
        return "stands still"
    return any(stands_in(sentence, as_read(n.history)) for n in chat.notes)


def properties(
    chat: Chat, wanted: Wanted, there: Mapping[int, Note | None]
) -> Iterator[tuple[str, bool, str]]:
    note = there[id(wanted)]
    for key, value in wanted.head.items():
        if value != "clear":
            yield key, note is not None and same_value(key, value, note.head.get(key)), str(value)
    for tag in sorted(wanted.tags):
        yield "tags", note is not None and slug(tag) in map(slug, map(str, note.head.get("tags") or ())), tag
    for target in dict.fromkeys(wanted.links):
        other = there[id(target)]
        if target is not wanted:
            paths = {other.path, chat.successor(other).path} if other else set()
            yield (
                "links",
                note is not None and bool(paths & note.links() | paths & {note.path}),
                target.names[-1],
            )


def same_value(key: str, given: Any, value: Any) -> bool:
    """An event of a month is the month's days in the vault; a loop that was open may be done by now."""
    if key == "event":
        ends = [re.split(r"\.\.|/", str(text)) for text in (given, value)]
        return all(
            b.startswith(a) for a, b in zip((ends[0][0], ends[0][-1]), (ends[1][0], ends[1][-1]), strict=True)
        )
    return bool(given == value or (key, given, value) == ("loop", "open", "done"))


def verdicts(chat: Chat) -> None:
    """Each verdict of the nights; reasons are told in the order of the verdicts that were given."""
    lost = []
    for row in (row for row in chat.rows if row.kind == "notes"):
        groups = groups_in(row.request)
        for i, verdict in row.edits:
            notes = groups[i.partition(".")[0]]
            pair = [note_shown(chat, notes[verdict[key]]) for key in ("node", "other") if verdict.get(key)]
            done = all(pair) and holds(chat, verdict, [note for note in pair if note])
            lost += [(row, i, verdict)] * (not done)
            if done:
                chat.count(verdict["op"], True, row, i, "")
    given = {(g["row"], g["edit"]): g["place"] for g in chat.run["given"]}
    told = [why for _, why in chat.run["told"] if why.startswith("refused g")]
    for row, i, verdict in lost:
        begin = f"refused {given.get((row.n, i))}, {verdict['op']}: "
        if (why := next((why for why in told if why.startswith(begin)), None)) is not None:
            told = told[told.index(why) + 1 :]
            chat.reasons[row.n, i] = why.removeprefix(begin)
        title = groups_in(row.request)[i.partition(".")[0]][verdict["node"]].title
        chat.count(verdict["op"], False, row, i, f"{title}: {verdict.get('why')}")


def note_shown(chat: Chat, shown: Titled) -> Note | None:
    """The note of the vault that a nightly request showed."""
    said = [n for n in chat.notes if stands_in(shown.begins, n.all)] if shown.begins else []
    if found := called(said, shown.title) or called(chat.notes, shown.title) or said:
        return found[0]
    wanted = find(chat, {"n": shown}, {}, "n")
    return chat.note_of(wanted) if wanted else None


def holds(chat: Chat, verdict: Mapping[str, Any], notes: Sequence[Note]) -> bool:
    """Whether what *verdict* says of *notes* is so in the vault."""
    node, other, op = notes[0], notes[-1], verdict["op"]
    if op in ("close", "keep"):
        return (node.head.get("loop") == "open") == (op == "keep")
    if op == "retitle":
        return slug(verdict["title"]) in node.names
    if op == "describe":
        return stands_in(verdict["description"], node.all)
    if op == "link":
        return other.path in node.links()
    if op == "contradict":
        return other.path in node.links() and node.path in other.links()
    return chat.successor(node) is chat.successor(other)  # merge, supersede: one note says it


def labels(chat: Chat) -> list[dict[str, Any]]:
    """The labels that stand before sentences of the replies and are not the replies'."""
    said = as_read(
        "\n".join(
            edit.get("body") or "" for row in chat.rows if row.kind == "observe" for _, edit in row.edits
        )
    )
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in (row for row in chat.rows if row.kind == "observe"):
        for i, edit in row.edits:
            before = edit.get("description") or ""
            for sentence in sentences(edit["body"]) if has_body(edit) else ():
                right = "assistant" in (before + sentence).lower() and cites_assistant(row, edit)
                before, part = sentence, as_read(sentence)
                for note in chat.notes:
                    text = as_read(note.text)
                    label = LABEL.search(text[: text.find(part)]) if part in text else None
                    if label and f"{label[1]}: {part}" not in said:
                        found[note.path, label[1], part] = {
                            "label": label[1],
                            "right": right,
                            "note": note.path,
                            "said": sentence,
                            "row": row.n,
                            "edit": i,
                        }
    return [*found.values()]


def cites_assistant(row: Row, edit: Mapping[str, Any]) -> bool:
    return any(
        f"\n{h} {row.messages[h].at[1]} assistant" in row.request
        for h in edit["sources"]
        if h in row.messages
    )


# --- what is printed


def report_of(chat: Chat) -> dict[str, Any]:
    compare(chat)
    origins: dict[str, Counter[str]] = defaultdict(Counter)
    for note in chat.notes:
        origins[str(note.head.get("type"))][str(note.head.get("origin"))] += 1
    marks = labels(chat)
    return {
        "omg": chat.run["omg"],
        "figures": {
            what: n | {"share": round(n.get("kept", 0) / n["all"], 4)}
            for what in FIGURES
            if (n := dict(chat.counts[what]))
        },
        "labels": len(marks),
        "wrong_labels": [mark for mark in marks if not mark["right"]],
        "origins": {kind: dict(n) for kind, n in sorted(origins.items())},
        "updated_notes_shown": dict(Counter(g["shown"] for g in chat.run["given"] if "shown" in g)),
        "losses": chat.losses,
    }


def show(id: str, report: Mapping[str, Any]) -> None:
    print(f"\n## {id} ({report['omg']})\n")
    for loss in report["losses"]:
        why = f" [{loss['why']}]" if loss["why"] else ""
        print(
            f"{loss['what']}, {loss['row']}.{loss['edit']}, {loss['as']}{why}: {' '.join(loss['said'].split())[:200]}"
        )
    for mark in report["wrong_labels"]:
        print(
            f"wrong label, {mark['row']}.{mark['edit']}, {mark['note']}: {mark['label']}: {mark['said'][:150]}"
        )
    print()
    for what, n in report["figures"].items():
        rest = ", ".join(f"{key} {n[key]}" for key in n if key not in ("all", "kept", "share"))
        print(f"{what:16} {n.get('kept', 0):4} of {n['all']:4}  {n['share']:.1%}  {rest}")
    print(f"labels put before sentences: {report['labels']}, wrong: {len(report['wrong_labels'])}")
    print(
        "origins:",
        "; ".join(
            f"{kind}: {', '.join(f'{o} {n}' for o, n in c.items())}" for kind, c in report["origins"].items()
        ),
    )
    print(
        "updated notes were shown:",
        ", ".join(f"{how} {n}" for how, n in report["updated_notes_shown"].items()),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    replay.inputs(parser)
    parser.set_defaults(against=None, observe="recorded", nights="end", slices=0)
    args = parser.parse_args()
    with ExitStack() as stack:
        args.out = args.out or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="omg-fidelity-")))
        if not (args.out / "this").exists() and (troubles := replay.replayed(args, args.out)["troubles"]):
            sys.exit("\n".join(troubles))
        reports = {}
        for file in sorted(args.recorded):
            id = file.name.removesuffix(".jsonl.gz")
            run = read(args.out / "this" / f"{id}.json")
            notes = read_notes(replay.vault_of(args.out / "this" / id))
            reports[id] = report_of(Chat(read_recorded(file), notes, run))
            show(id, reports[id])
    if args.json:
        print(json.dumps(reports))


if __name__ == "__main__":
    main()
