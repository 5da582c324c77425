"""
Every place where a graph and its home keep text, and how words are found in it.

    <graph>/pending/           messages that are not observed yet
    <graph>/archive/           the observed messages
    <graph>/replaced/<stamp>/  a graph that a former version of `omg rebuild` replaced
    <home>/joined/<folder>/    the graph of another account of the same person, as it was before the two were merged

`every_message` reads all messages except those below replaced/. In joined/<folder>/, the file joined.json names the
graph that now holds the account's memory. It also names the account's former vault, if this vault is outside the
folder.

Only `copies_of` changes files: it removes a half-finished rebuild. removal.py makes all other changes.
"""

from __future__ import annotations

import os
import re
import shutil
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ..config import configured, configured_agents, workspace_of
from ..errors import BadInput, BadNode, NotFound
from ..graph.graph import Graph
from ..graph.state import read_object
from ..index.store import rows_of
from ..journal import readable
from ..message.turn import Message, message_from_json
from ..node.markdown import link_targets, slugify
from ..node.note import LOG_FOLDER, parse_node
from ..text.characters import without_unseen
from ..vault.files import LEFTOVER

# --- Finds words in a text, and replaces them.
# Words are found in any spelling: upper or lower case, full-width, composed or not, with invisible characters in
# between, across the end of a line or of a quoted line, with hyphens as in a file's name, or escaped as in JSON.
# Accents count. `blanked` removes everything that `holds_words` finds.


BLANK = "(forgotten)"  # no brackets and no colon, because BLANK may stand in a link, in a head, and in JSON
SLUG_CHARS = 3
READINGS = 3  # a call's arguments are JSON within a drop, which may be JSON within a log

# Hyphens join the words of a file's name. Each line of a quotation begins with ">".
WORD_GAP = re.compile(r"[\s\u2800]+(?:>[\s\u2800>]*)?|(?<=\w)[-_\u2010-\u2015\u2212]{1,3}(?=\w)")
ESCAPED = re.compile(
    r'\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[nrtbf"\\/])'
)
ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


class Folding(dict[int, str]):
    """A table for `str.translate` that computes the plain form of each character at its first use."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", char).casefold())
        self[code] = without_unseen(plain)
        return self[code]


FOLDING = Folding()


def folded(text: str) -> str:
    return WORD_GAP.sub(" ", letters_of(text))


def letters_of(text: str) -> str:
    return text.lower() if text.isascii() else text.translate(FOLDING)


@lru_cache(maxsize=64)
def folded_words(words: str) -> str:
    """*words* in the form used for searching; "" if no visible character is left."""
    return folded(words).strip()


def holds_words(text: str, words: str) -> bool:
    sought = folded_words(words)
    return bool(sought) and any(
        # letters and digits have no gap inside, so they need no folded text, which costs most
        has_parts(reading, sought) and (sought.isalnum() or sought in folded(reading))
        for reading in readings(text, sought)
    )


def may_hold(line: str, words: str) -> bool:
    """Whether a text in the JSON of *line* may hold *words*. Quicker than to parse *line*."""
    folds = letters_of(line)
    return all(
        part in folds
        or (may_hide(line, part) and any(part in letters_of(r) for r in readings(line, part, READINGS + 1)))
        for part in folded_words(words).split(" ")
    )


def has_parts(text: str, sought: str) -> bool:
    """
    Whether *text* has each word of *sought*, in any order and with any text between the words.

    This is a quick test. The slower test for the whole phrase is in `holds_words`. *sought*: as returned by
    `folded_words`.
    """
    folds = letters_of(text)
    return all(part in folds for part in sought.split(" "))


def readings(text: str, sought: str, most: int = READINGS) -> Iterator[str]:
    """
    Yield *text*, then *text* with one level of JSON escapes decoded, then two levels, and so on.

    JSON inside JSON has several levels. Ends after *most* texts, or when no escape is left that can hide a part of
    *sought*.
    """
    yield text
    for _ in range(1, most):
        if not may_hide(text, sought):
            return
        text = ESCAPED.sub(unescape, text)
        yield text


def may_hide(text: str, sought: str) -> bool:
    """
    Whether JSON escapes in *text* may hide a part of *sought* from a plain search.

    - If *sought* has only letters and digits: whether *text* has an escape such as "\\u0041".
    - Otherwise: whether *text* has any backslash.
    """
    return ("\\u" if sought.isalnum() else "\\") in text


def unescape(found: re.Match[str]) -> str:
    escaped = found[0]
    if escaped[1] != "u":
        return ESCAPES.get(escaped[1], escaped[1])
    units = b"".join(int(escaped[at : at + 4], 16).to_bytes(2, "big") for at in range(2, len(escaped), 6))
    return units.decode("utf-16-be", errors="replace")


def blanked(text: str, words: str) -> str:
    """*text* with BLANK in place of *words*, wherever they occur. A second call changes nothing more."""
    if not holds_words(text, words):
        return text
    parts, end = [], 0
    for start, stop in word_spans(text, words):
        parts += [text[end:start], BLANK]
        end = stop
    return "".join(parts) + text[end:]


def slug_in_path(path: str, words: str) -> re.Match[str] | None:
    """
    The place in *path* where *words* stand as a file's name: without accents and marks, joined by hyphens. None if
    nowhere.
    """
    found = slug_pattern(words)
    return found and found.search(path)


def names_it(path: str, words: str) -> bool:
    return slug_in_path(path, words) is not None or holds_words(path, words)


@lru_cache(maxsize=64)
def slug_pattern(words: str) -> re.Pattern[str] | None:
    if sum(c.isalnum() for c in words) < SLUG_CHARS:
        return None  # a single letter such as "A." is part of most names
    return re.compile(rf"(?<![^/-]){re.escape(slugify(words))}(?![^/-])")


def word_spans(text: str, words: str) -> list[tuple[int, int]]:
    """The spans of *text* that hold *words*, in order. Overlapping spans become one."""
    found: list[tuple[int, int]] = []
    chars, places = text, [(at, at + 1) for at in range(len(text))]
    for _ in range(READINGS):
        found += sought_spans(chars, places, folded_words(words))
        if "\\" not in chars:
            break
        chars, places = unescaped_places(chars, places)
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(found):
        while stop < len(text) and (unicodedata.combining(text[stop]) or not without_unseen(text[stop])):
            stop += 1  # an accent belongs to the letter before it
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(stop, merged[-1][1])
        else:
            merged.append((start, stop))
    return merged


Places = list[tuple[int, int]]


def unescaped_places(chars: str, places: Places) -> tuple[str, Places]:
    """*chars* with JSON escapes resolved, and the place of each character in the original text."""
    said, where, end = [], [], 0
    for found in ESCAPED.finditer(chars):
        said += [chars[end : found.start()], unescape(found)]
        where += places[end : found.start()]
        where += [(places[found.start()][0], places[found.end() - 1][1])] * len(said[-1])
        end = found.end()
    return "".join(said) + chars[end:], where + places[end:]


def sought_spans(chars: str, places: Places, sought: str) -> Iterator[tuple[int, int]]:
    plain, where = [], []
    for char, place in zip(chars, places, strict=True):
        said = FOLDING[ord(char)]
        plain.append(said)
        where += [place] * len(said)
    text, kept, end = "".join(plain), [], 0
    for found in WORD_GAP.finditer(text):
        kept += where[end : found.start()]
        kept.append((where[found.start()][0], where[found.end() - 1][1]))
        end = found.end()
    kept += where[end:]
    text = WORD_GAP.sub(" ", text)
    at = text.find(sought)
    while at >= 0:
        yield kept[at][0], kept[at + len(sought) - 1][1]
        at = text.find(sought, at + len(sought))


# --- Recognises the texts and notes that name, cite or quote what is forgotten.


ID_IN_TEXT = re.compile(r"""\bid: *["']?([^"'\n,}]+)""")  # the id of a note, and the ids of its sources


@dataclass(frozen=True, slots=True)
class Trace:
    """
    What is forgotten: notes, messages, sessions and words. A text that names or holds one of these has to change.
    `names`: present and former paths, and ids, of notes.
    """

    names: frozenset[str] = frozenset()
    messages: frozenset[str] = frozenset()
    sessions: frozenset[str] = frozenset()  # sessions that had one of the messages
    text: str = ""  # words, in any spelling
    keys: frozenset[str] = frozenset()  # keys of sessions that are forgotten whole

    def in_note(self, text: str) -> bool:
        """Whether the note *text* cites one of the messages, links to one of the notes, or has the words."""
        named = ids_in(text) | set(link_targets(text))
        return bool(named & (self.names | self.messages)) or self.in_words(text)

    def in_words(self, text: str) -> bool:
        return holds_words(text, self.text)

    @property
    def paths(self) -> frozenset[str]:
        """
        Return the `names` that are paths, to search for them in any file.

        A title such as "API" is not searched for, because the word may be in the file by chance.
        """
        return frozenset(name for name in self.names if "/" in name)

    def in_line(self, line: str) -> bool:
        """Whether a line of a log, or an unparsed drop, names one of the notes, messages or words."""
        ids = self.paths | self.messages | self.sessions | self.keys
        return any(i in line for i in ids) or self.in_words(line)


def ids_in(text: str) -> set[str]:
    return {found.strip() for found in ID_IN_TEXT.findall(text)}


def message_holds(m: Message, words: str) -> bool:
    """Whether a message holds *words* in its text, its sender's name, or its tool calls."""
    return any(holds_words(text, words) for text in (m.sender, m.sender_id, *all_texts(m)))


def all_texts(m: Message) -> list[str]:
    """The text of a message, and its tool calls with their arguments."""
    texts = [m.text, m.tool, *(part for c in m.calls for part in (c.name, c.arguments))]
    return [text for text in texts if text]


def read_text(data: bytes | None) -> str:
    """The text in *data*, the bytes of a note; "" if *data* is None. Bytes that are not UTF-8 are replaced."""
    return (data or b"").decode("utf-8", errors="replace")


# --- notes


def reflecting(graph: Graph, gone: Collection[str]) -> set[str]:
    """
    The reflections made from the notes *gone*, and the reflections made from these reflections. Found by links and by
    `reflected_in`, because a model may use a note without naming it. Includes reflections that a person has deleted
    since.
    """
    named = {
        p: led_to(graph, link_targets(read_text(graph.vault.bytes(p))))
        for p in graph.vault.paths("reflections/")
        if not p.startswith(LOG_FOLDER)
    }
    found: set[str] = set()
    front = set(gone)
    while front:
        texts = {p: read_text(graph.vault.bytes(p)) for p in front}
        into = {where for p, text in texts.items() for where in led_to(graph, went_into(text, p))}
        front = (into | {p for p, there in named.items() if there & front}) - found - set(gone)
        found |= front
    return found


def led_to(graph: Graph, links: Iterable[str]) -> set[str]:
    return {graph.index.resolve(target) or target for target in links}


def went_into(text: str, path: str) -> tuple[str, ...]:
    """The paths of the reflections made from the note *text*."""
    if "reflected_in" not in text:  # quicker than to parse
        return ()
    try:
        return parse_node(text, path).reflected_in
    except BadNode:
        return ()


def former_paths(graph: Graph, messages: Collection[str]) -> set[str]:
    """The paths of notes that were made from *messages*, according to receipts, and that no longer exist."""
    receipts = [readable(graph, file) for file in (graph.folder / "receipts").glob("*.json")]
    changes = [change for receipt in receipts if receipt for change in receipt.changes]
    found = {c.path for c in changes if not ids_in(f"{c.before or ''}{c.after or ''}").isdisjoint(messages)}
    return {p for p in found if p.startswith("nodes/") and graph.vault.bytes(p) is None}


def notes_linking(graph: Graph, gone: Collection[str], former: Collection[str] = ()) -> list[str]:
    """The notes that stay and link to one of the notes *gone* or to one of the *former* paths."""
    found = {p for g in gone for p in graph.index.backlinks(g)}
    found |= {p for p, target in graph.index.dangling() if former and target in former}
    return sorted(p for p in found - set(gone) if not p.startswith(LOG_FOLDER))


def all_names(graph: Graph, paths: Collection[str]) -> set[str]:
    """Every name that the notes at *paths* have now or had before."""
    found = set(paths)
    for path in paths:
        with suppress(BadNode, NotFound):
            node = graph.vault.read(path)
            found |= {node.id, *node.aliases}
    return found


# --- Finds files around the notes that OMG may not change; each is named with its path.
#
#     in the vault   canvases, text files, .trash, what other programs keep in hidden folders: files of a person's own
#     around it      git histories, copies that a sync service makes
#     beside it      the gateway's transcripts and its memory files; OMG's own configuration
# Our own notes in .trash are removed (`our_trash`). Nothing here writes.


LOOKED_THROUGH = 5_000_000  # bytes; a larger file is not text that somebody wrote
TRASH = ".trash"  # Obsidian's folder for deleted files

# Files that a sync service leaves in a folder; and folders that a sync service copies whole.
SYNC_MARKS = ".stfolder .stignore .stversions .dropbox .sync .nextcloudsync.log .owncloudsync.log".split()
SYNC_FOLDERS = (
    "Dropbox",
    "Nextcloud",
    "ownCloud",
    "OneDrive",
    "Google Drive",
    "Mobile Documents",
    "iCloud Drive",
)


def our_trash(graph: Graph, trace: Trace) -> Iterator[str]:
    """
    The paths of notes in .trash that OMG wrote and that mention what is forgotten. Paths begin at the vault and have
    an extension.
    """
    for file in sorted((graph.vault.root / TRASH).rglob("*.md")):
        data = contents(file)
        if data is None or not (tells(trace, data) or cites(trace, data)):
            continue
        if graph.vault.ours(data) or cites(trace, data):
            yield file.relative_to(graph.vault.root).as_posix()


def cites(trace: Trace, data: bytes) -> bool:
    """Whether *data* is a note that was made from one of the messages in *trace*."""
    try:
        sources = parse_node(data.decode("utf-8", errors="replace"), TRASH).sources
    except BadNode:
        return False
    return any(s.id in trace.messages for s in sources if s.id)


def beyond_reach(graph: Graph, trace: Trace, skip: Collection[str]) -> tuple[str, ...]:
    """A line `path: reason` for each place that may still hold the forgotten text and that OMG may not change."""
    root, home = graph.vault.root.absolute(), graph.folder.parents[1].absolute()
    found = [
        f"{file}: a file of your own, or of another program; remove the text there yourself"
        for file in files_around(graph, skip)
        if in_file(trace, file)
    ]
    for folder in sorted({git for place in (root, home) if (git := history_of(place))}):
        found.append(f"{folder}: the history of git keeps what was committed")
    for place in sorted({sync for place in (root, home) if (sync := synced_by(place))}):
        found.append(
            f"{place}: the sync service's copies on other devices, and its older versions, are out of reach"
        )
    found += gateway_files(graph, home, trace)
    if in_file(trace, home / "omg.toml"):
        found.append(f"{home / 'omg.toml'}: your configuration has the words; remove them there yourself")
    return tuple(found)


def files_around(graph: Graph, skip: Collection[str]) -> Iterator[Path]:
    """
    Yield the files in the vault that are not notes, including files in hidden folders.

    The folder .git, the paths in *skip* and OMG's own temporary files are left out.
    """
    root = str(graph.vault.root)
    notes = {f"{p}.md" for p in graph.vault.paths(conflicts=None)}
    for folder, names, files in os.walk(root):
        names[:] = sorted(name for name in names if name != ".git")
        place = "" if folder == root else f"{folder[len(root) + 1 :]}/"
        for name in sorted(files):
            below = place + name
            if below not in notes and below not in skip and not LEFTOVER.fullmatch(name):
                yield Path(folder, name)


def in_file(trace: Trace, file: Path) -> bool:
    data = contents(file)
    return data is not None and (tells(trace, data) or trace.in_words(file.name))


def tells(trace: Trace, data: bytes) -> bool:
    text = data.decode("utf-8", errors="replace")
    return trace.in_words(text) or any(name in text for name in trace.paths | trace.keys)


def contents(file: Path) -> bytes | None:
    try:
        if file.is_symlink() or not file.is_file() or file.stat().st_size > LOOKED_THROUGH:
            return None
        return file.read_bytes()
    except OSError:
        return None


def history_of(place: Path) -> Path | None:
    return next((p / ".git" for p in (place, *place.parents) if (p / ".git").exists()), None)


def synced_by(place: Path) -> Path | None:
    for folder in (place, *place.parents):
        if any((folder / mark).exists() for mark in SYNC_MARKS) or folder.name.startswith(SYNC_FOLDERS):
            return folder
    return None


def gateway_files(graph: Graph, home: Path, trace: Trace) -> Iterator[str]:
    """A line `path: reason` for each file of the home's OpenClaw that may still hold the forgotten text."""
    config, state = configured(home) or ({}, home.parent)
    agent = graph.identity.agent or "main"
    if (folder := state / "agents" / agent).is_dir():
        yield f"{folder}: the gateway's own transcripts, which OMG never changes; delete a session with the gateway's commands"
    if agent not in configured_agents(config):
        return
    workspace, vault = workspace_of(config, agent, state), graph.vault.root
    for file in sorted((*workspace.glob("*.md"), *(workspace / "memory").rglob("*.md"))):
        if not file.is_relative_to(vault) and in_file(trace, file):
            yield f"{file}: a memory file of the agent's workspace"


JOINED = "joined.json"
# Files with what the Reflector has seen, and with a model's answers for a batch that is not observed yet
# (observe/run.py)
SEEN = ("reflected.json", "reflected.open.json", "replies.json")


def text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:  # another process finished the rebuild meanwhile
        return ""


Talk = list[tuple[str, Message]]  # session and message


def archived_messages(folder: Path, words: str = "") -> Iterator[tuple[str, Message]]:
    """
    `(session, message)` of each line in the archive *folder*. Skips lines torn by a crash, and lines that cannot hold
    *words*.
    """
    for file in sorted(folder.glob("*.jsonl")):
        for line in text_of(file).split("\n"):
            if words and not may_hold(line, words):
                continue
            with suppress(BadInput):
                message, session = message_from_json(line)
                yield session, message


def every_message(graph: Graph, words: str = "") -> Talk:
    """
    `(session, message)` of the archive, of pending turns, and of graphs that were merged into *graph*. With *words*,
    only messages that may hold *words*.
    """
    return [*archived_messages(graph.folder / "archive", words), *messages_beside(graph)]


def messages_beside(graph: Graph) -> Talk:
    """
    Return messages that are not in the archive of *graph* itself, as (session, message).

    These are the messages of pending turns, and all archived messages of graphs that were merged into *graph*.
    """
    joined = [said for folder in joined_folders(graph) for said in archived_messages(folder / "archive")]
    turns = [p.turn() for p in graph.intact()]
    return joined + [(turn.session, m) for turn in turns for m in turn.messages]


@dataclass(frozen=True, slots=True)
class Holding:
    """
    The result of one search for *words* in a graph.

    - *notes*: path → bytes of each note with the words in its path or text. Duplicates of notes, as a sync service
      makes them, are included.
    - *said*: (session, message) for each message with the words
    - *keys*: the session keys with the words

    A command searches once, because each way to forget ("forget", "redact") needs the same result.
    """

    words: str
    notes: dict[str, bytes]
    said: Talk
    keys: tuple[str, ...]


def holding(graph: Graph, words: str) -> Holding:
    """Search every note and message for *words*, whether the index has read it or not."""
    found, said = graph.vault.contents(), every_message(graph, words)
    sessions = {of for of, _ in said} | {graph.identity.key}
    return Holding(
        words,
        {path: data for path, data in found if names_it(path, words) or holds_words(read_text(data), words)},
        [(of, m) for of, m in said if message_holds(m, words)],
        tuple(sorted(of for of in sessions if holds_words(of, words))),
    )


@dataclass(frozen=True, slots=True)
class Conversations:
    """
    All messages of a graph, found by message id or by session.

    Archived messages are found through the index. *beside*: all messages that are not in the archive of *graph*. They
    are in pending turns, or in graphs that were merged into *graph*.
    """

    graph: Graph
    beside: Talk

    def sessions(self, ids: Collection[str]) -> set[str]:
        """The sessions that have one of the messages *ids*."""
        rows = self.graph.index.ask(rows_of, "select session from message where mid in", ids)
        return {session for (session,) in rows} | {of for of, m in self.beside if m.id in ids}

    def around(self, ids: Collection[str]) -> Talk:
        """All messages of the sessions that have one of the messages *ids*."""
        sessions = self.sessions(ids)
        rows = self.graph.index.ask(rows_of, "select session, line from message where session in", sessions)
        found = [(session, message_from_json(line)[0]) for session, line in rows]
        return found + [(of, m) for of, m in self.beside if of in sessions]


def conversations_of(graph: Graph) -> Conversations:
    graph.index.archive(graph.folder / "archive")
    return Conversations(graph, messages_beside(graph))


# --- copies of a graph


def copies_of(graph: Graph) -> Iterator[tuple[Path, Path]]:
    """
    Yield (folder, vault) of each older graph that is still on disk beside *graph*:

    - a graph that was merged into *graph*
    - a graph that an old version of `omg rebuild` kept when it rebuilt *graph* or a merged graph

    Also deletes what an interrupted rebuild left behind.
    """
    joined = joined_folders(graph)
    for folder in (graph.folder, *joined):
        shutil.rmtree(folder / "rebuild", ignore_errors=True)
        for old in replaced_folders(folder):
            yield old, old / "vault"
    for folder in joined:
        yield folder, Path(str(read_object(folder / JOINED).get("vault") or folder / "vault"))


def replaced_folders(folder: Path) -> list[Path]:
    """The folders of graphs that a former version of `omg rebuild` replaced. The present version keeps no replaced
    graph."""
    return sorted((folder / "replaced").glob("*/"))


def joined_folders(graph: Graph) -> list[Path]:
    folders = sorted((graph.folder.parents[1] / "joined").glob("*/"))
    return [folder for folder in folders if read_object(folder / JOINED).get("into") == graph.identity.key]


def looked_through(graph: Graph) -> list[tuple[int, str]]:
    """How many places of each kind a forgetting searches. For the report to the person."""
    home = graph.folder.parents[1]
    notes, around = len([*graph.vault.paths()]), sum(1 for _ in files_around(graph, ()))
    archived = graph.index.ask(lambda db: db.execute("select count(*) from message").fetchone()[0])
    receipts = sum(1 for _ in (graph.folder / "receipts").glob("*.json"))
    copies = len(replaced_folders(graph.folder)) + len(joined_folders(graph))
    logs = len({*home.glob("omg.log*"), *home.glob("events*.jsonl"), *home.glob("writes.jsonl")})
    found = [
        (notes, "notes and pages"),
        (around, "other files in the vault's folder"),
        (archived, "archived messages"),
        (len(graph.pending()), "turns that wait"),
        (receipts, "records of changes"),
        (copies, "copies of the memory"),
        (logs, "logs"),
    ]
    return [(n, name) for n, name in found if n]
