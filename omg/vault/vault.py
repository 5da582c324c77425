"""
Vault: reads, writes and removes notes, and keeps what a person wrote. The only module that writes a .md file.

    write, remove   compare the bytes with those the caller read, then replace the file in one step
    settle          recovers what an editor saved into a file that OMG had just replaced
    ours            whether OMG wrote a note's text, even if the file was moved or its head reformatted
    theirs          which parts of a note a person wrote: single properties, or everything

A person's bytes are never lost, not even in a race. The caller holds the vault's lock for every change (graph/graph.py).
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
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import BadNode, NotFound, OutsideVault, Stale
from ..node.markdown import H1, first_text_line, slugify
from ..node.note import READERS, Node, head_of, parse_node
from ..text.characters import with_labels
from ..text.words import split_sentences, written_words
from . import files

# --- a note as its parts; the mark of a part, a hash, tells whether the part was changed

BODY_PART = "body"
OWN_PART = "own"  # all properties that OMG does not know
TARGET = re.compile(r"(?<=\[\[)[^\[\]|#\n\\]+")
Names = Callable[[str], Iterable[str]]  # link target → all names of that note


def read_note(data: bytes) -> Node | None:
    """Parse *data* as a note; None if it is not a note, or has no id."""
    try:
        node = parse_node(data.decode("utf-8"), "")
    except (BadNode, UnicodeDecodeError):
        return None
    return node if node.id else None


def part_values(node: Node) -> dict[str, str]:
    """Return the name of each part of *node* with its value as text. An unreadable value stays as written."""
    found = head_of(node)
    own = {key: found.pop(key) for key in found.keys() - READERS.keys()}
    parts = {key: value_text(value) for key, value in found.items()}
    if own:
        parts[OWN_PART] = value_text(own)
    return {**parts, BODY_PART: node.full_body}


def value_text(value: Any) -> str:
    return json.dumps(whole_value(value), sort_keys=True, ensure_ascii=False)


def whole_value(value: Any) -> Any:
    """Return *value* as Obsidian (JavaScript) would save it: 1.0 becomes 1, None becomes ""."""
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
    """Return a hash of *text* without its link targets, followed by one hash for each target."""
    return ",".join(
        [short_mark(TARGET.sub("", text)), *(short_mark(plain_target(t)) for t in TARGET.findall(text))]
    )


def changed_parts(node: Node, known: Mapping[str, str], names: Names) -> frozenset[str]:
    """Return the parts of *node* that differ from the marks in *known*. Links to the same note count as equal (*names*)."""
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


# Names of the copies that Syncthing, Dropbox, Nextcloud and Obsidian Sync make if two devices changed one note.
CONFLICT = re.compile(
    r"\.sync-conflict-\d{8}-\d{6}|\((?:[^()]{0,99}\bconflicted copy\b[^()]{0,99}|conflict(?:[^()\d]{0,99}\d[^()]{0,99})?)\)$",
    re.I,
)

SAYING = frozenset((BODY_PART, "description"))  # the parts of a note that say something
RESTATED_KEPT = 10_000
FORMS = "templates"  # Obsidian's templates for new notes: they are not notes
Bytes = bytes  # the class has a method of that name


ORIGINS_OF_OURS = ("user", "assistant", "tool")  # a person's own note has "human", or none


def as_corrected(node: Node, theirs: Iterable[str]) -> Node:
    """If a person corrected only the description, or only the first sentence, copy the correction to the other one.
    *theirs*: the parts that the person changed."""
    if (BODY_PART in theirs) == ("description" in theirs):
        return node
    first = next(iter(split_sentences(with_labels(node.body.strip()).partition("\n")[0])), "").strip()
    was, now = set(written_words(node.description)), set(written_words(first))
    if node.description in with_labels(node.body) or 2 * len(was & now) < max(len(was), len(now), 1):
        return node
    if "description" in theirs:
        if len(now - was) > len(was - now):
            return node  # the sentence says more than the description did
        return replace(node, body=node.body.replace(first, node.description, 1))
    if now < was and 2 * len(now) <= len(was):
        return node  # too short to describe the note: "Anna keeps it." of "Anna keeps the gate code."
    return replace(node, description=first)


def described_by_text(node: Node) -> Node:
    """
    If the description of *node* only repeats the title, replace it by the first line below the title. If the file is not
    named after the title, put the title before that line.
    """
    if node.description != node.title:
        return node
    line = first_text_line(node.body if node.heading else H1.sub("", node.body, count=1))
    named = slugify(node.title) == slugify(node.path.rpartition("/")[2])
    return replace(node, description=line if named else f"{node.title}: {line}") if line else node


class Vault:
    """
    The notes below *root*. A note's path is relative to *root*, with "/" and without ".md". Symbolic links are not
    followed.

    *written* is a file outside the vault that keeps hashes of what OMG wrote; without *written* they are in memory
    only. `names` is a function: link target → all names of the linked note. The graph sets `names` from its index.
    """

    def __init__(self, root: Path, written: Path | None = None) -> None:
        self.root = root
        self.names: Names = lambda target: ()
        self._written = files.Written(written)
        self._restated: dict[str, bool] = {}  # hash of a note's bytes → the answer of `restated`

    # --- looking

    def scan(self) -> Iterator[tuple[str, int, int]]:
        """Yield path, mtime (ns) and size (bytes) of every note. Raises NotFound if a folder cannot be listed."""
        for path, entry in self._notes():
            with suppress(FileNotFoundError):
                found = entry.stat(follow_symlinks=False)
                yield path, found.st_mtime_ns, found.st_size

    def paths(self, below: str = "", conflicts: bool | None = False) -> Iterator[str]:
        """
        Yield the path of every note, or of every note in the folder *below*, such as "nodes/". *conflicts*: True yields
        only conflict copies, False only other notes, None both. Dotfiles and names that some systems cannot hold are left
        out.
        """
        return (path for path, _ in self._notes(conflicts, below))

    def conflicts(self) -> list[str]:
        """Return the paths of the conflict copies that a sync service made of notes. A person has to merge the copies; they
        do not count as notes."""
        return [*self.paths(conflicts=True)]

    def others(self) -> Iterator[tuple[str, str]]:
        """
        Yield the path, with extension, of each file that is not a note, and why the file is not one ("" for an attachment).
        """
        for folder, entry in self._entries():
            named = entry.name.endswith(".md")
            if entry.name.startswith("."):
                continue
            if entry.is_symlink():
                why = "a symbolic link, which is not followed" if named or entry.is_dir() else ""
            elif named and entry.is_file():
                if files.is_ordinary_name(entry.name):
                    continue
                why = "has a name that not every system can hold"
            else:
                why = "no regular file" if named else ""
            yield folder + entry.name, why

    def file(self, path: str) -> Path:
        """Return the file of the note at *path*. Raises OutsideVault for a hidden name, a name that leads out of the vault,
        or a symbolic link."""
        *folders, name = path.split("/")
        if not all(map(files.is_ordinary_name, (*folders, name))):
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
        """Return the bytes of the note at *path*; None without a note. Raises BadNode if the file cannot be read, and
        OutsideVault as `file` does."""
        if (data := bytes_of(self.file(path), path)) is None:
            self._check_root()
        return data

    def contents(self) -> Iterator[tuple[str, Bytes]]:
        """Yield path and bytes of every note and conflict copy. Raises BadNode if a file cannot be read."""
        for path, entry in self._notes(conflicts=None):
            if (data := bytes_of(entry.path, path)) is not None:  # else removed just now
                yield path, data

    def text(self, path: str) -> str:
        """Return the text of the note at *path*, with BOM and line ends as in the file. Raises NotFound, BadNode,
        OutsideVault."""
        data = self.bytes(path)
        if data is None:
            raise NotFound(f"{path}.md: no such note in {self.root}")
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as e:
            raise BadNode(f"{path}.md: is not UTF-8 (byte {e.start}); save it as UTF-8") from e

    def read(self, path: str) -> Node:
        """Return the note at *path*, with a person's corrections applied (`parse`). Raises NotFound, BadNode, OutsideVault."""
        return self.parse(self.text(path), path)

    def parse(self, text: str, path: str) -> Node:
        """
        Parse *text* as the note at *path*, with a person's corrections applied. The file stays unchanged. Raises BadNode.

        If a person corrected only the description, or only the sentence that repeats the description, both get the
        correction. A person's own note without a description is described by its first line of text, not by its title.
        """
        node = parse_node(text, path)
        if node.origin in ORIGINS_OF_OURS:
            return as_corrected(node, self.theirs(text.encode("utf-8"), node))
        return described_by_text(node)

    # --- writing

    def mode(self, path: str) -> int:
        """Return the permission bits of a note's file. Raises NotFound."""
        try:
            return stat.S_IMODE(self.file(path).stat().st_mode)
        except FileNotFoundError as e:
            raise NotFound(f"{path}.md: no such note in {self.root}") from e

    def write(self, path: str, data: Bytes, was: Bytes | None, mode: int | None = None) -> None:
        """
        Replace *was*, the bytes that the caller read (None: no file), by *data*.

        An existing file keeps its permissions. A new file gets *mode*; by default only its owner can read the file.

        Raises Stale, and writes nothing, if the file no longer holds *was*, or if a new file's name differs from another
        file's name only in case: many systems take the two names for one.
        """
        file = self._expect(path, was)
        if data == was:
            return
        if was is None and (other := files.case_twin(file)):
            raise Stale(
                f"{path}.md: {other} exists and differs only in upper and lower case; many systems cannot keep both files"
            )
        before = self._written.get(path)
        record = self._record(data, was)
        # The record is written first. After a crash in between, the journal's replay writes the file. In the other order
        # OMG's own bytes would count as a person's.
        self._written.note(path, record)
        try:
            files.put_file(file, data, was, mode)
        except BaseException:
            self._written.note(path, before)
            raise

    def remove(self, path: str, was: Bytes) -> None:
        """Remove the note if its bytes are *was*; otherwise raise Stale and leave it."""
        file = self._expect(path, was)
        held = files.held_name(file, was, None)
        file.rename(held)
        if files.file_contents(held) != was:  # saved between our look and the rename
            files.place_new(held, file)
            raise Stale(f"{path}.md was saved while it was being removed")
        files.flush_folder(file.parent)
        self._written.note(path, None)

    def put_inbox(self, title: str, text: str) -> str:
        """Write *text* as a new note in the inbox, and return its path. A note of this title and text is not written twice."""
        return self._put_inbox(title, text.encode("utf-8"))

    def settle(self, older_than_s: float = 2.0) -> list[str]:
        """
        Recover text that a person's editor saved into the old file of a note while OMG replaced the file.

        - If only OMG has changed the note since, the saved text replaces the note's text.
        - Otherwise the saved text becomes a new note in the inbox.

        Old files that changed less than *older_than_s* ago wait for the next call. Returns the paths of the notes that
        now have the saved texts.
        """
        left = []
        steps = {}  # path and hash of the old content → hash of what OMG wrote there
        for folder, entry in self._entries():
            if found := files.LEFTOVER.fullmatch(entry.name):
                path, was = f"{folder}{found['name'] or ''}", found["was"] or ""  # a .tmp has neither
                steps[path, was] = found["new"]
                with suppress(OSError):
                    # When content or name of the old file last changed; our own replace changes the name.
                    left.append((os.lstat(entry.path).st_ctime, Path(entry.path), path, was))
        late = []
        for changed, held, path, was in sorted(left, reverse=True):  # the latest save goes first
            if time.time() - changed < older_than_s:
                continue
            try:
                data = files.file_contents(held) if was else None
            except OSError:  # a person's file that has such a name
                continue
            # An empty file is a save that was cut off: editors truncate a file before they write.
            if data and files.short_hash(data) != was:
                late.append(self._take_back(held, data, path, reached(steps, path, was)))
            held.unlink(missing_ok=True)
        return late

    # --- whose bytes

    def ours(self, data: Bytes) -> bool:
        """
        Whether OMG was the last to write the body of the note whose bytes are *data*.

        The note's path does not matter, because people move files. Single properties may still be a person's; `theirs`
        names these properties.
        """
        return BODY_PART not in self.theirs(data)

    def theirs(self, data: Bytes, node: Node | None = None) -> frozenset[str]:
        """
        Return which parts of *data* a person wrote: names of properties, "own" for properties that OMG does not know,
        and "body". *node*: the note in *data*, if already parsed.
        """
        record, parts_changed = self._compare(data, node)
        return parts_changed | record.theirs if record else parts_changed

    def reworded(self, data: Bytes) -> bool:
        """Whether OMG wrote the note in *data*, and a person then changed its text."""
        record, changed = self._compare(data)
        return record is not None and BODY_PART in record.marks and bool(changed & SAYING)

    def unchanged(self, data: Bytes) -> bool:
        """Whether *data* has exactly the properties and the body that OMG last wrote, in any layout."""
        return not self._compare(data)[1]

    def restated(self, path: str, hash: str) -> bool:
        """Whether a person wrote or changed the text of the note at *path*. *hash*: the hash of the note's bytes."""
        if record := self._written.find(hash):
            return bool(record.theirs & SAYING)
        if hash not in self._restated:
            data = self.bytes(path)
            self._restated[hash] = data is None or bool(self.theirs(data) & SAYING)
            if len(self._restated) > RESTATED_KEPT:
                del self._restated[next(iter(self._restated))]
        return self._restated[hash]

    def wrote(self, path: str) -> bool:
        """Whether OMG wrote the file at *path*, or crashed just before writing the file."""
        return self._written.get(path) is not None

    def read_only(self, path: str) -> bool:
        """Whether the note's file is marked read-only, even if OMG runs as root and could write."""
        try:
            return not self.file(path).stat().st_mode & 0o200
        except FileNotFoundError:
            return False

    def remember(self, path: str, data: Bytes) -> None:
        """Record *data*, which is already at *path*, as written by OMG."""
        known = self._written.get(path)
        if known is None or known.hash != files.digest(data) or not known.parts:
            self._written.note(path, self._record(data, None))

    def keep_persons_parts(self, path: str, data: Bytes) -> None:
        """
        Record the properties that a person set in the note at *path*, before the note moves.

        Use this only if OMG wrote the note's body: the body is recorded as OMG's. *data*: the bytes of the note's file.
        """
        self._written.note(path, self._record(data, data))

    def mark_not_ours(self, path: str) -> None:
        """Record that the file at *path* is not OMG's, or is gone."""
        self._written.note(path, None)

    def mark_theirs(self, path: str, data: Bytes) -> None:
        """Record that OMG wrote *data* to *path*, but that the body is a person's: OMG only added a line."""
        node = read_note(data)
        kept = {part: mark for part, mark in part_marks(node).items() if part != BODY_PART} if node else {}
        self._written.note(path, files.Record("", files.joined(kept)) if node else None)

    def compact(self) -> None:
        """Rewrite the file of records without outdated lines."""
        self._written.compact()

    # --- inside

    def _compare(self, data: Bytes, node: Node | None = None) -> tuple[files.Record | None, frozenset[str]]:
        """Return the record of the note in *data*, and the parts that differ from the record. *node* as in `theirs`."""
        if record := self._written.find(files.digest(data)):
            return record, frozenset()
        node = read_note(data) if node is None else node if node.id else None
        if node and (record := self._written.find(mark_of_id(node))):
            return record, changed_parts(node, record.marks, self.names)
        return None, frozenset({BODY_PART})

    def _record(self, data: Bytes, was: Bytes | None) -> files.Record:
        """Make the record for *data*, which replaces *was*. A person's properties stay recorded as the person's."""
        node = read_note(data)
        if node is None:
            return files.Record(files.digest(data))
        if was is None:  # a new file, perhaps of a note that moves
            known = self._written.find(mark_of_id(node))
            theirs = known.theirs if known else frozenset()
        else:
            theirs = self.theirs(was)
        return files.Record(
            files.digest(data), files.joined(part_marks(node)), frozenset() if BODY_PART in theirs else theirs
        )

    def _entries(self, below: str = "") -> Iterator[tuple[str, os.DirEntry[str]]]:
        """Yield each file with the path of its folder ("" or "nodes/fact/"), except files in hidden folders."""
        folders = [below]
        while folders:
            folder = folders.pop()
            try:
                entries = sorted(os.scandir(self.root / folder), key=lambda entry: entry.name)
            except (FileNotFoundError, NotADirectoryError):  # just removed, or not made yet
                self._check_root()
                continue
            except OSError as e:
                raise NotFound(f"{self.root / folder}: cannot be listed ({e.strerror})") from e
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    yield folder, entry
                elif files.is_ordinary_name(entry.name) and entry.path != str(self.root / FORMS):
                    folders.append(f"{folder}{entry.name}/")

    def _notes(
        self, conflicts: bool | None = False, below: str = ""
    ) -> Iterator[tuple[str, os.DirEntry[str]]]:
        """Yield the path of each note, as `paths` does, with the directory entry of its file."""
        for folder, entry in self._entries(below):
            name = entry.name.removesuffix(".md")
            if (
                name == entry.name
                or not files.is_ordinary_name(name)
                or not entry.is_file(follow_symlinks=False)
            ):
                continue
            if conflicts is None or copy_of_another(name) is conflicts:
                yield folder + name, entry

    def _check_root(self) -> None:
        """Raise NotFound if OMG has written to the vault and its folder is gone, as when a drive is not mounted."""
        if not self.root.is_dir() and self._written:
            raise NotFound(
                f"{self.root}: the vault is gone; bring it back, or correct its path in [vaults] of omg.toml"
            )

    def _expect(self, path: str, was: Bytes | None) -> Path:
        if self.bytes(path) != was:
            raise Stale(f"{path}.md was changed after it was read")
        return self.file(path)

    def _take_back(self, held: Path, data: Bytes, path: str, ours: set[str]) -> str:
        """
        Save the text *data*, which an editor wrote to an old file that OMG had replaced.

        - If the note at *path* still has OMG's text (hash in *ours*), *data* replaces this text.
        - Otherwise *data* becomes a new file in the inbox.

        *held*: the old file. Returns the path that now has *data*.
        """
        with suppress(Stale, BadNode, OutsideVault):
            now = self.bytes(path)
            if now == data:
                return path
            if files.short_hash(now) in ours:
                files.swap_file(held, data, self.file(path), now)
                return path
        return self._put_inbox(f"{path.rpartition('/')[2]} saved meanwhile", data)

    def _put_inbox(self, title: str, data: Bytes) -> str:
        first = path = f"inbox/{slugify(title)}"
        n = 1
        while True:
            with suppress(Stale, BadNode):  # the name was just taken, or is not a note's: try the next
                now = self.bytes(path)
                if now == data:
                    return path
                if now is None and not files.case_twin(self.file(path)):
                    files.put_file(self.file(path), data, None)
                    return path
            n += 1
            path = f"{first}-{n}"


def bytes_of(file: Path | str, path: str) -> bytes | None:
    try:
        return files.file_contents(file)
    except OSError as e:
        raise BadNode(f"{path}.md: cannot be read ({e.strerror}); mend its permissions") from e


def copy_of_another(name: str) -> bool:
    """Whether *name*, without ".md", is the name of a conflict copy, which a sync service made."""
    return bool(CONFLICT.search(name))


def reached(steps: Mapping[tuple[str, str], str], path: str, start: str) -> set[str]:
    """Return the hashes of all contents that OMG wrote to *path* after the content with the hash *start*."""
    found: set[str] = set()
    while (step := steps.get((path, start))) and step not in found:
        found.add(step)
        start = step
    return found
