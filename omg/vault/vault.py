"""
Vault: reads, writes and removes notes, and keeps what a person wrote. The only module that writes a .md file.

    write, remove   the bytes are compared with those the caller read, then replaced in one step
    settle          somebody saved into a file that we had just replaced: their bytes win
    ours            whether OMG wrote its words, wherever the file was moved and however its head is laid out
    theirs          which parts of it are a person's: properties of the head, or all

No person's bytes are lost, not even to a race. Whoever changes a vault holds its lock (graph/graph.py). Not here: what
a note says (node/note.py), and what belongs in it (plan/drafts.py).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import BadNode, NotFound, OutsideVault, Stale
from ..node.fields import READERS
from ..node.markdown import slugify
from ..node.note import Node, head_of, parse_node, render_node
from .files import (
    LEFTOVER,
    Record,
    Written,
    case_twin,
    digest,
    file_contents,
    flush_folder,
    held_name,
    is_ordinary_name,
    joined,
    place_new,
    put_file,
    short_hash,
    swap_file,
)

# --- a note as its parts, each with a mark by which it is known again

BODY_PART = "body"
OWN_PART = "own"  # all properties that are none of ours
TARGET = re.compile(r"(?<=\[\[)[^\[\]|#\n\\]+")
Names = Callable[[str], Iterable[str]]  # all that the note answers to which a link leads to


def read_note(data: bytes) -> Node | None:
    """*data* as a note; None if it is none, or has no id by which it could be known again."""
    try:
        node = parse_node(data.decode("utf-8"), "")
    except (BadNode, UnicodeDecodeError):
        return None
    return node if node.id else None


def canonical(node: Node) -> bytes:
    return render_node(node).encode("utf-8")


def part_values(node: Node) -> dict[str, str]:
    """Part → what it says, as text. A known property whose value we cannot read is there as it stands."""
    found = head_of(node)
    own = {key: found.pop(key) for key in found.keys() - READERS.keys()}
    parts = {key: value_text(value) for key, value in found.items()}
    if own:
        parts[OWN_PART] = value_text(own)
    return {**parts, BODY_PART: node.full_body}


def value_text(value: Any) -> str:
    return json.dumps(whole_value(value), sort_keys=True, ensure_ascii=False)


def whole_value(value: Any) -> Any:
    """*value* as JavaScript has it: 1.0 is 1, and nothing is the empty text."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case None:
            return ""
        case list():
            return [whole_value(item) for item in value]
        case dict():
            return {key: whole_value(item) for key, item in value.items()}
    return value


def part_marks(node: Node) -> dict[str, str]:
    return {part: mark_of(text) for part, text in part_values(node).items()}


def mark_of_id(node: Node) -> str:
    return mark_of(value_text(node.id))


def mark_of(text: str) -> str:
    """A hash of *text* without the targets of its links, then one of each of them."""
    return ",".join(
        [short_mark(TARGET.sub("", text)), *(short_mark(plain_target(t)) for t in TARGET.findall(text))]
    )


def changed_parts(node: Node, known: Mapping[str, str], names: Names) -> frozenset[str]:
    """The parts of *node* that are not as the marks *known* have them."""
    now = part_values(node)
    gone = known.keys() - now.keys()
    return frozenset(
        gone | {p for p, text in now.items() if p not in known or not is_same(text, known[p], names)}
    )


def is_same(text: str, known: str, names: Names) -> bool:
    if mark_of(text) == known:
        return True
    was, *targets = known.split(",")
    found = TARGET.findall(text)
    return (
        short_mark(TARGET.sub("", text)) == was
        and len(found) == len(targets)
        and all(
            short_mark(plain_target(now)) == then
            or any(short_mark(plain_target(name)) == then for name in names(now))
            for now, then in zip(found, targets, strict=True)
        )
    )


def plain_target(target: str) -> str:
    return target.strip().removesuffix(".md").casefold()


def short_mark(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=4).hexdigest()


# Copies that Syncthing, Dropbox, Nextcloud and Obsidian Sync leave where two devices changed one note.
CONFLICT = re.compile(
    r"\.sync-conflict-\d{8}-\d{6}|\((?:[^()]{0,99}\bconflicted copy\b[^()]{0,99}|conflict(?:[^()\d]{0,99}\d[^()]{0,99})?)\)$",
    re.I,
)

SAYING = frozenset((BODY_PART, "description"))  # the parts of a note that say something
RESTATED_KEPT = 10_000
FORMS = "templates"  # what Obsidian makes new notes from: forms, and no notes
Bytes = bytes  # the class has a method of that name


class Vault:
    """
    The notes below *root*. A path is relative to it, has "/" and no ".md"; symbolic links are not followed.

    *written* is a file outside the vault for the hashes of what we wrote; without one they are forgotten.
    `names` says what a note answers to that a link leads to; the vault itself does not know where links lead.
    """

    def __init__(self, root: Path, written: Path | None = None) -> None:
        self.root = root
        self.names: Names = lambda target: ()
        self._written = Written(written)
        self._restated: dict[str, bool] = {}  # hash of a note's bytes, as a person left them → `restated`

    # --- looking

    def scan(self) -> Iterator[tuple[str, int, int]]:
        """Path, mtime in ns and size of every note. Raises NotFound if a folder is out of reach."""
        for path, entry in self._notes():
            with suppress(FileNotFoundError):
                found = entry.stat(follow_symlinks=False)
                yield path, found.st_mtime_ns, found.st_size

    def paths(self) -> Iterator[str]:
        """Every note, less `conflicts`. Dotfiles are none, nor are names that not every system can hold."""
        return (path for path, _ in self._notes())

    def conflicts(self) -> list[str]:
        """Copies that a sync service made of a note: for a person to merge, and not notes of their own."""
        return [path for path, _ in self._notes(conflicts=True)]

    def others(self) -> Iterator[tuple[str, str]]:
        """
        Path, with its extension, of each file that is no note, and why what could be taken for one is none.

        "" for an attachment.
        """
        for folder, entry in self._entries():
            named = entry.name.endswith(".md")
            if entry.name.startswith("."):
                continue
            if entry.is_symlink():
                why = "a symbolic link, which is not followed" if named or entry.is_dir() else ""
            elif named and entry.is_file():
                if is_ordinary_name(entry.name):
                    continue
                why = "has a name that not every system can hold"
            else:
                why = "no regular file" if named else ""
            yield folder + entry.name, why

    def file(self, path: str) -> Path:
        """Where *path* lies. Raises OutsideVault for whatever is not plainly the name of a note in here."""
        *folders, name = path.split("/")
        if not all(map(is_ordinary_name, (*folders, name))):
            raise OutsideVault(
                f"{path!r} is not the path of a note; write it as folder/name, from {self.root} down"
            )
        file = self.root
        for part in (*folders, f"{name}.md"):
            file /= part
            if file.is_symlink():
                raise OutsideVault(f"{path}: {file} is a symbolic link; put the file itself there")
        return file

    def bytes(self, path: str) -> Bytes | None:
        """None if there is no such note. Raises BadNode if it cannot be read, OutsideVault as `file` does."""
        try:
            data = file_contents(self.file(path))
        except OSError as e:
            raise BadNode(f"{path}.md: cannot be read ({e.strerror}); mend its permissions") from e
        if data is None:
            self._check_root()
        return data

    def text(self, path: str) -> str:
        """With BOM and line ends as they are. Raises NotFound, BadNode, OutsideVault."""
        data = self.bytes(path)
        if data is None:
            raise NotFound(f"{path}.md: no such note in {self.root}")
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as e:
            raise BadNode(f"{path}.md: is not UTF-8 (byte {e.start}); save it as UTF-8") from e

    def read(self, path: str) -> Node:
        """Raises NotFound, BadNode, OutsideVault."""
        return parse_node(self.text(path), path)

    # --- writing

    def mode(self, path: str) -> int:
        """The permission bits of a note. Raises NotFound."""
        try:
            return stat.S_IMODE(self.file(path).stat().st_mode)
        except FileNotFoundError as e:
            raise NotFound(f"{path}.md: no such note in {self.root}") from e

    def write(self, path: str, data: Bytes, was: Bytes | None, mode: int | None = None) -> None:
        """
        Put *data* in the place of *was*, the bytes as the caller read them (None: there was no file).

        A file keeps its permissions; a new one gets *mode*, or what the system gives new files.

        Raises Stale, and nothing is written, if the file is not *was* any more, or if it would be a new one
        whose name differs from another's only in case: on most desktops these two are one file.
        """
        file = self._expect(path, was)
        if data == was:
            return
        if was is None and (other := case_twin(file)):
            raise Stale(f"{path}.md: {other} is there, which many systems take for the same name")
        before = self._written.get(path)
        record = self._record(data, was)
        # Ahead of the file: a crash in between leaves a hash too many, which the journal's replay makes true.
        # In the other order our own bytes would pass for a person's.
        self._written.note(path, record)
        try:
            put_file(file, data, was, mode)
        except BaseException:
            self._written.note(path, before)
            raise

    def remove(self, path: str, was: Bytes) -> None:
        """Take the note away, if its bytes are *was*. Raises Stale, and the file stays, if they are not."""
        file = self._expect(path, was)
        held = held_name(file, was, None)
        file.rename(held)
        if file_contents(held) != was:  # saved between our look and the rename
            place_new(held, file)
            raise Stale(f"{path}.md was saved while it was being removed")
        flush_folder(file.parent)
        self._written.note(path, None)

    def put_inbox(self, title: str, text: str) -> str:
        """The path of an inbox note that says *text*: a new one, or the one that says just that already."""
        return self._put_inbox(title, text.encode("utf-8"))

    def settle(self, older_than_s: float = 2.0) -> list[str]:
        """
        Look after what was replaced at least this long ago; returns the paths where late saves ended up.

        Late bytes go back to their note if all that happened there since is our own doing, else to the inbox.
        """
        left = []
        steps = {}  # what we put in the place of what, for each path
        for folder, entry in self._entries():
            if found := LEFTOVER.fullmatch(entry.name):
                path, was = f"{folder}{found['name'] or ''}", found["was"] or ""  # a .tmp has neither
                steps[path, was] = found["new"]
                with suppress(OSError):
                    # When the inode last changed: its content, or its name, as by our own replace.
                    left.append((os.lstat(entry.path).st_ctime, Path(entry.path), path, was))
        late = []
        for changed, held, path, was in sorted(left, reverse=True):  # the latest save goes first
            if time.time() - changed < older_than_s:
                continue
            try:
                data = file_contents(held) if was else None
            except OSError:  # somebody's, by its name one of ours
                continue
            # An emptied file is a save that was cut off: editors truncate first and write then.
            if data and short_hash(data) != was:
                late.append(self._take_back(held, data, path, reached(steps, path, was)))
            held.unlink(missing_ok=True)
        return late

    # --- whose bytes

    def ours(self, data: Bytes) -> bool:
        """
        Whether the words of *data* are those that we last wrote to a note, this one or another: people move files.

        Properties of its head may be a person's all the same; `theirs` names them.
        """
        return BODY_PART not in self.theirs(data)

    def theirs(self, data: Bytes) -> frozenset[str]:
        """The parts of *data* that a person wrote: names of properties, "own" for what they added, "body"."""
        record, parts_changed = self._compare(data)
        return parts_changed | record.theirs if record else parts_changed

    def reworded(self, data: Bytes) -> bool:
        """Whether a person has changed what a note of ours says, and was the last who wrote the file; *data*: its bytes."""
        record, changed = self._compare(data)
        return record is not None and BODY_PART in record.marks and bool(changed & SAYING)

    def unchanged(self, data: Bytes) -> bool:
        """Whether *data* says just what we last wrote, however it is laid out."""
        return not self._compare(data)[1]

    def restated(self, path: str, hash: str) -> bool:
        """Whether a person has changed what the note at *path* says since we wrote it; *hash* of its bytes."""
        if record := self._written.find(hash):
            return bool(record.theirs & SAYING)
        if hash not in self._restated:
            data = self.bytes(path)
            self._restated[hash] = data is None or bool(self.theirs(data) & SAYING)
            if len(self._restated) > RESTATED_KEPT:
                del self._restated[next(iter(self._restated))]
        return self._restated[hash]

    def wrote(self, path: str) -> bool:
        """Whether we have a note of our own at *path*, or were about to write it when a crash came."""
        return self._written.get(path) is not None

    def read_only(self, path: str) -> bool:
        """Whether its owner has locked the note: they mean it, and root's rights are no reason to differ."""
        try:
            return not self.file(path).stat().st_mode & 0o200
        except FileNotFoundError:
            return False

    def remember(self, path: str, data: Bytes) -> None:
        """Take *data*, which is at *path* already, for ours."""
        known = self._written.get(path)
        if known is None or known.hash != digest(data) or not known.parts:
            self._written.note(path, self._record(data, None))

    def keep_persons_parts(self, path: str, data: Bytes) -> None:
        """What of *data*, which is at *path* and of which the words are ours, is a person's: before it moves."""
        self._written.note(path, self._record(data, data))

    def mark_not_ours(self, path: str) -> None:
        """What is at *path* is none of ours, or not there any more."""
        self._written.note(path, None)

    def mark_theirs(self, path: str, data: Bytes) -> None:
        """*data*, which we wrote to *path*, is a person's text with a line of ours: known by its id, its text not ours."""
        node = read_note(data)
        kept = {part: mark for part, mark in part_marks(node).items() if part != BODY_PART} if node else {}
        self._written.note(path, Record("", joined(kept)) if node else None)

    def mark(self) -> None:
        """Note the parts of what an older version wrote, where it stands untouched. The caller holds the lock."""
        for path, hash in self._written.unmarked():
            with suppress(BadNode, OutsideVault):
                data = self.bytes(path)
                if data is not None and digest(data) == hash:
                    self._written.note(path, self._record(data, None))

    def compact(self) -> None:
        """Forget the names of notes that are gone."""
        self._written.compact()

    # --- inside

    def _compare(self, data: Bytes) -> tuple[Record | None, frozenset[str]]:
        """What we wrote to the note that *data* is, and the parts that are not so any more."""
        if record := self._written.find(digest(data)):
            return record, frozenset()
        node = read_note(data)
        if node and (record := self._written.find(mark_of_id(node))):
            return record, changed_parts(node, record.marks, self.names)
        # A line from before there were marks knows a note only as we would write it.
        if node and (record := self._written.find(digest(canonical(node)))):
            return record, frozenset()
        return None, frozenset({BODY_PART})

    def _record(self, data: Bytes, was: Bytes | None) -> Record:
        """What is to be known of *data*, which takes the place of *was*: a person's properties stay theirs."""
        node = read_note(data)
        if node is None:
            return Record(digest(data))
        if was is None:  # a new place, perhaps of a note that is elsewhere now
            known = self._written.find(mark_of_id(node))
            theirs = known.theirs if known else frozenset()
        else:
            theirs = self.theirs(was)
        return Record(digest(data), joined(part_marks(node)), frozenset() if BODY_PART in theirs else theirs)

    def _entries(self) -> Iterator[tuple[str, os.DirEntry[str]]]:
        """All but folders, with the path of their folder ("" or "nodes/fact/"); not those in hidden ones."""
        folders = [""]
        while folders:
            folder = folders.pop()
            try:
                entries = sorted(os.scandir(self.root / folder), key=lambda entry: entry.name)
            except (FileNotFoundError, NotADirectoryError):  # removed just now, or not begun
                self._check_root()
                continue
            except OSError as e:
                raise NotFound(f"{self.root / folder}: cannot be listed ({e.strerror})") from e
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    yield folder, entry
                elif is_ordinary_name(entry.name) and entry.path != str(self.root / FORMS):
                    folders.append(f"{folder}{entry.name}/")

    def _notes(self, conflicts: bool = False) -> Iterator[tuple[str, os.DirEntry[str]]]:
        for folder, entry in self._entries():
            name = entry.name.removesuffix(".md")
            if name == entry.name or not is_ordinary_name(name) or not entry.is_file(follow_symlinks=False):
                continue
            if copy_of_another(name) is conflicts:
                yield folder + name, entry

    def _check_root(self) -> None:
        """Raises NotFound if there was a vault and now there is none, as when a drive is not mounted."""
        if not self.root.is_dir() and self._written:
            raise NotFound(f"{self.root}: the vault is gone; bring it back, or correct its path")

    def _expect(self, path: str, was: Bytes | None) -> Path:
        if self.bytes(path) != was:
            raise Stale(f"{path}.md is not what it was when it was read")
        return self.file(path)

    def _take_back(self, held: Path, data: Bytes, path: str, ours: set[str]) -> str:
        """Put *data*, saved into *held*, to *path* if one of *ours* is there; returns where it went."""
        with suppress(Stale, BadNode, OutsideVault):
            now = self.bytes(path)
            if now == data:
                return path
            if short_hash(now) in ours:
                swap_file(held, data, self.file(path), now)
                return path
        return self._put_inbox(f"{path.rpartition('/')[2]} saved meanwhile", data)

    def _put_inbox(self, title: str, data: Bytes) -> str:
        first = path = f"inbox/{slugify(title)}"
        n = 1
        while True:
            with suppress(Stale, BadNode):  # taken just now, or by what is no note: the next name then
                now = self.bytes(path)
                if now == data:
                    return path
                if now is None and not case_twin(self.file(path)):
                    put_file(self.file(path), data, None)
                    return path
            n += 1
            path = f"{first}-{n}"


def copy_of_another(name: str) -> bool:
    """Whether a note of that file name is a sync service's copy."""
    return bool(CONFLICT.search(name))


def reached(steps: Mapping[tuple[str, str], str], path: str, start: str) -> set[str]:
    """What we put at *path*, one upon the other, since *start* was there."""
    found: set[str] = set()
    while (step := steps.get((path, start))) and step not in found:
        found.add(step)
        start = step
    return found
