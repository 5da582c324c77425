"""
Vault: reads, writes and removes notes, and keeps what a person wrote. The only module that writes a .md file.

    write, remove   the bytes are compared with those the caller read, then replaced in one step
    settle          somebody saved into a file that we had just replaced: their bytes win
    ours            whether OMG wrote a note's words, even if the file was moved or its head reformatted
    theirs          which parts of a note a person wrote: single properties, or everything

No person's bytes are lost, not even in a race. The caller holds the vault's lock for every change (graph/graph.py).
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

# --- a note as its parts, each with a mark by which it is known again

BODY_PART = "body"
OWN_PART = "own"  # all properties that are none of ours
TARGET = re.compile(r"(?<=\[\[)[^\[\]|#\n\\]+")
Names = Callable[[str], Iterable[str]]  # every name under which a link finds the note


def read_note(data: bytes) -> Node | None:
    """*data* as a note; None if it is not a note, or has no id to recognise it by."""
    try:
        node = parse_node(data.decode("utf-8"), "")
    except (BadNode, UnicodeDecodeError):
        return None
    return node if node.id else None


def part_values(node: Node) -> dict[str, str]:
    """Each part's name and its value as text. A known property with an unreadable value is given as written."""
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
    """A hash of *text* without its link targets, followed by one hash for each target."""
    return ",".join(
        [short_mark(TARGET.sub("", text)), *(short_mark(plain_target(t)) for t in TARGET.findall(text))]
    )


def changed_parts(node: Node, known: Mapping[str, str], names: Names) -> frozenset[str]:
    """The parts of *node* that differ from the marks in *known*."""
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
FORMS = "templates"  # Obsidian's templates for new notes: they are not notes
Bytes = bytes  # the class has a method of that name


ORIGINS_OF_OURS = ("user", "assistant", "tool")  # a person's own note has "human", or none


def as_corrected(node: Node, theirs: Iterable[str]) -> Node:
    """Make the description and the first sentence of *node* agree where a person corrected only one of them."""
    if (BODY_PART in theirs) == ("description" in theirs):
        return node
    first = next(iter(split_sentences(with_labels(node.body.strip()).partition("\n")[0])), "").strip()
    was, now = set(written_words(node.description)), set(written_words(first))
    if node.description in with_labels(node.body) or 2 * len(was & now) < max(len(was), len(now), 1):
        return node
    if "description" in theirs:
        if len(now - was) > len(was - now):
            return node  # the sentence tells more than the description did
        return replace(node, body=node.body.replace(first, node.description, 1))
    if now < was and 2 * len(now) <= len(was):
        return node  # it leaves the rest to the description: "Anna keeps it." of "Anna keeps the gate code."
    return replace(node, description=first)


def described_by_text(node: Node) -> Node:
    """
    *node* with the first line below its title as its description, if the description only repeats the title. The title
    stays in front of that line if the file is not named after it.
    """
    if node.description != node.title:
        return node
    line = first_text_line(node.body if node.heading else H1.sub("", node.body, count=1))
    named = slugify(node.title) == slugify(node.path.rpartition("/")[2])
    return replace(node, description=line if named else f"{node.title}: {line}") if line else node


class Vault:
    """
    The notes below *root*. A path is relative to it, has "/" and no ".md"; symbolic links are not followed.

    *written* is a file outside the vault for the hashes of what OMG wrote; without it they are kept in memory only.
    `names` gives the names under which a link finds a note; the vault itself does not resolve links.
    """

    def __init__(self, root: Path, written: Path | None = None) -> None:
        self.root = root
        self.names: Names = lambda target: ()
        self._written = files.Written(written)
        self._restated: dict[str, bool] = {}  # hash of a note's bytes, as a person left them → `restated`

    # --- looking

    def scan(self) -> Iterator[tuple[str, int, int]]:
        """Path, mtime in ns and size of every note. Raises NotFound if a folder is out of reach."""
        for path, entry in self._notes():
            with suppress(FileNotFoundError):
                found = entry.stat(follow_symlinks=False)
                yield path, found.st_mtime_ns, found.st_size

    def paths(self, below: str = "") -> Iterator[str]:
        """
        Every note except `conflicts`, or those below a folder such as "nodes/". Dotfiles and names that some systems cannot
        hold are left out.
        """
        return (path for path, _ in self._notes(below=below))

    def conflicts(self) -> list[str]:
        """Conflict copies that a sync service made of notes. They are for a person to merge and do not count as
        notes."""
        return [path for path, _ in self._notes(conflicts=True)]

    def others(self) -> Iterator[tuple[str, str]]:
        """
        Path, with extension, of each file that is not a note, and the reason if it looks like one.

        "" for an attachment.
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
        """The file of *path*. Raises OutsideVault unless it is plainly the name of a note in this vault."""
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
        """None if there is no such note. Raises BadNode if it cannot be read, OutsideVault as `file` does."""
        try:
            data = files.file_contents(self.file(path))
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
        """The note at *path*, saying what it says now (`parse`). Raises NotFound, BadNode, OutsideVault."""
        return self.parse(self.text(path), path)

    def parse(self, text: str, path: str) -> Node:
        """
        The note that *text* is, with the description that tells what it says now. Whoever shows, compares or changes a
        note reads it here; the file stays as it is. Raises BadNode.

        Where a person corrected only the description, or only the sentence that it repeats, both say the same again. A
        note of a person's own without a description is described by its first sentence or line, not by its title.
        """
        node = parse_node(text, path)
        if node.origin in ORIGINS_OF_OURS:
            return as_corrected(node, self.theirs(text.encode("utf-8"), node))
        return described_by_text(node)

    # --- writing

    def mode(self, path: str) -> int:
        """The permission bits of a note. Raises NotFound."""
        try:
            return stat.S_IMODE(self.file(path).stat().st_mode)
        except FileNotFoundError as e:
            raise NotFound(f"{path}.md: no such note in {self.root}") from e

    def write(self, path: str, data: Bytes, was: Bytes | None, mode: int | None = None) -> None:
        """
        Replace *was*, the bytes that the caller read (None: no file), by *data*.

        A file keeps its permissions; a new one gets *mode*, or what the system gives new files.

        Raises Stale, and writes nothing, if the file is no longer *was*, or if it is new and its name differs from
        another's only in case, because most desktops take these for one file.
        """
        file = self._expect(path, was)
        if data == was:
            return
        if was is None and (other := files.case_twin(file)):
            raise Stale(f"{path}.md: {other} is there, which many systems take for the same name")
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
        """The path of an inbox note with *text*: an existing one with just that text, or a new one."""
        return self._put_inbox(title, text.encode("utf-8"))

    def settle(self, older_than_s: float = 2.0) -> list[str]:
        """
        Take late saves out of inodes that were replaced at least this long ago; return the paths where they ended
        up.

        Late bytes go back to their note if only OMG has changed it since; otherwise they go to the inbox.
        """
        left = []
        steps = {}  # what we put in the place of what, for each path
        for folder, entry in self._entries():
            if found := files.LEFTOVER.fullmatch(entry.name):
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
                data = files.file_contents(held) if was else None
            except OSError:  # somebody's, by its name one of ours
                continue
            # An emptied file is a save that was cut off: editors truncate first and write then.
            if data and files.short_hash(data) != was:
                late.append(self._take_back(held, data, path, reached(steps, path, was)))
            held.unlink(missing_ok=True)
        return late

    # --- whose bytes

    def ours(self, data: Bytes) -> bool:
        """
        Whether OMG last wrote the words of *data*, to this note or to another one (people move files). Single
        properties may still be a person's; `theirs` names them.
        """
        return BODY_PART not in self.theirs(data)

    def theirs(self, data: Bytes, node: Node | None = None) -> frozenset[str]:
        """
        The parts of *data* that a person wrote: names of properties, "own" for what they added, "body". *node*: the
        note in *data*, if it is parsed already.
        """
        record, parts_changed = self._compare(data, node)
        return parts_changed | record.theirs if record else parts_changed

    def reworded(self, data: Bytes) -> bool:
        """Whether a person changed the text of a note of OMG's and wrote the file last."""
        record, changed = self._compare(data)
        return record is not None and BODY_PART in record.marks and bool(changed & SAYING)

    def unchanged(self, data: Bytes) -> bool:
        """Whether *data* says exactly what OMG last wrote, whatever its layout."""
        return not self._compare(data)[1]

    def restated(self, path: str, hash: str) -> bool:
        """Whether a person has changed the text of the note at *path* since OMG wrote it; *hash* of its bytes."""
        if record := self._written.find(hash):
            return bool(record.theirs & SAYING)
        if hash not in self._restated:
            data = self.bytes(path)
            self._restated[hash] = data is None or bool(self.theirs(data) & SAYING)
            if len(self._restated) > RESTATED_KEPT:
                del self._restated[next(iter(self._restated))]
        return self._restated[hash]

    def wrote(self, path: str) -> bool:
        """Whether OMG wrote the note at *path*, or was about to write it before a crash."""
        return self._written.get(path) is not None

    def read_only(self, path: str) -> bool:
        """Whether the note's file is read-only. This also holds if OMG runs as root and could write it."""
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
        """Record, before the note at *path* moves, which parts of the note a person wrote. *data* is the note as the
        file has it; OMG wrote its words."""
        self._written.note(path, self._record(data, data))

    def mark_not_ours(self, path: str) -> None:
        """Record that the file at *path* is not OMG's, or is gone."""
        self._written.note(path, None)

    def mark_theirs(self, path: str, data: Bytes) -> None:
        """Record *data*, which OMG wrote to *path*, as a person's text with a line added: known by its id, its
        words not OMG's."""
        node = read_note(data)
        kept = {part: mark for part, mark in part_marks(node).items() if part != BODY_PART} if node else {}
        self._written.note(path, files.Record("", files.joined(kept)) if node else None)

    def compact(self) -> None:
        """Forget the names of notes that are gone."""
        self._written.compact()

    # --- inside

    def _compare(self, data: Bytes, node: Node | None = None) -> tuple[files.Record | None, frozenset[str]]:
        """The record of the note in *data*, and the parts that have changed since. *node* as in `theirs`."""
        if record := self._written.find(files.digest(data)):
            return record, frozenset()
        node = read_note(data) if node is None else node if node.id else None
        if node and (record := self._written.find(mark_of_id(node))):
            return record, changed_parts(node, record.marks, self.names)
        return None, frozenset({BODY_PART})

    def _record(self, data: Bytes, was: Bytes | None) -> files.Record:
        """The record for *data*, which replaces *was*; a person's properties stay marked as theirs."""
        node = read_note(data)
        if node is None:
            return files.Record(files.digest(data))
        if was is None:  # a new place, perhaps of a note that is elsewhere now
            known = self._written.find(mark_of_id(node))
            theirs = known.theirs if known else frozenset()
        else:
            theirs = self.theirs(was)
        return files.Record(
            files.digest(data), files.joined(part_marks(node)), frozenset() if BODY_PART in theirs else theirs
        )

    def _entries(self, below: str = "") -> Iterator[tuple[str, os.DirEntry[str]]]:
        """All files with the path of their folder ("" or "nodes/fact/"), without those in hidden folders."""
        folders = [below]
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
                elif files.is_ordinary_name(entry.name) and entry.path != str(self.root / FORMS):
                    folders.append(f"{folder}{entry.name}/")

    def _notes(self, conflicts: bool = False, below: str = "") -> Iterator[tuple[str, os.DirEntry[str]]]:
        for folder, entry in self._entries(below):
            name = entry.name.removesuffix(".md")
            if (
                name == entry.name
                or not files.is_ordinary_name(name)
                or not entry.is_file(follow_symlinks=False)
            ):
                continue
            if copy_of_another(name) is conflicts:
                yield folder + name, entry

    def _check_root(self) -> None:
        """Raises NotFound if there was a vault and now there is none, as when a drive is not mounted."""
        if not self.root.is_dir() and self._written:
            raise NotFound(
                f"{self.root}: the vault is gone; bring it back, or correct its path in [vaults] of omg.toml"
            )

    def _expect(self, path: str, was: Bytes | None) -> Path:
        if self.bytes(path) != was:
            raise Stale(f"{path}.md is not what it was when it was read")
        return self.file(path)

    def _take_back(self, held: Path, data: Bytes, path: str, ours: set[str]) -> str:
        """Write *data*, which was saved into *held*, to *path* if one of *ours* is there, else to the inbox; return
        the path."""
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
            with suppress(Stale, BadNode):  # taken just now, or by what is no note: the next name then
                now = self.bytes(path)
                if now == data:
                    return path
                if now is None and not files.case_twin(self.file(path)):
                    files.put_file(self.file(path), data, None)
                    return path
            n += 1
            path = f"{first}-{n}"


def copy_of_another(name: str) -> bool:
    """Whether a note of that file name is a sync service's copy."""
    return bool(CONFLICT.search(name))


def reached(steps: Mapping[tuple[str, str], str], path: str, start: str) -> set[str]:
    """The hashes that OMG wrote to *path*, one after the other, since *start*."""
    found: set[str] = set()
    while (step := steps.get((path, start))) and step not in found:
        found.add(step)
        start = step
    return found
