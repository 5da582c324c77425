"""
Turns loose notes into messages: files that people leave in inbox/, and the agent's own memory files.

    <vault>/inbox/*.md                    a message for each paragraph, from a person; from the agent if a run of
                                          the agent may have written the file (Runs)
    <vault>/inbox/*.txt                   renamed to .md and read like an .md file; left alone if an agent may have
                                          written the file
    <workspace>/memory/YYYY-MM-DD.md      a message for each line, from the agent, in the owner's graph; only if
                                          nobody else reaches the agent, and for days since the graph was made
    <workspace>/MEMORY.md, memory/*.md    older memory files: `omg import --openclaw` reads them in the same way
    <home>/runs/<hash of the session>     runs under way: for each prompt that was built, a line with the time in ms
                                          since the epoch; removed once the transcript of the run arrives
    <home>/writes.jsonl                   files that runs wrote, as transcripts show (message/drop.py); kept for KEPT_MS

A message is new if no known message has the same id or the same key. The id is `inbox:<path>:<hash of the text>`, and
the key is made from the text alone. So a renamed note gives no new message, and a longer note gives only the added
text. The text of these files is never changed here.

A file in the inbox may come from a run of any session: everybody who reaches the agent can make the agent write files.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, date, datetime, time, tzinfo
from functools import partial
from pathlib import Path
from typing import Any

from .dates.days import day_of_ms
from .errors import OmgError
from .graph.graph import GRAPH_MARK, Graph
from .graph.state import State, append_lines, write_private
from .message.drop import SLACK_MS, Writes, clean_entries, folded_path
from .message.turn import Message, Turn, material_in
from .node.markdown import HISTORY_HEADING
from .node.note import Node, parse_node
from .text.words import without_list_mark
from .vault.files import place_new, read_if_changed
from .vault.vault import copy_of_another

PREFIX = "inbox:"
INBOX_SESSION = "inbox"  # the source of an inbox note has this instead of a conversation
SETTLED_S = 60  # seconds since the last save; before, somebody may still be writing
# The first words of a note that OMG makes for text that it could not write elsewhere (journal.py).
MEANT = "This was meant for `"
DAY_FILE = re.compile(r"\d{4}-\d\d-\d\d\.md")
DAY_BEFORE = re.compile(r"\d{4}-\d\d-\d\d(?!\d)")  # at the beginning of a file's name
SAYS_NOTHING = re.compile(r"#{1,6}(\s|$)|<!--|---+$|```|\|[\s:|-]+\|$")


CLIP_KEYS = ("url", "source", "link", "site", "website")
CLIP_TAGS = frozenset(("clippings", "clipping", "clipped"))
Wrote = Callable[[str, Iterable[int]], bool | None]  # as Runs.wrote


def take_loose(
    graph: Graph,
    now: datetime,
    known: dict[Path, tuple[int, ...]],
    wrote: Wrote = lambda name, at_ms: False,
    memory: Path | None = None,
    *,
    force: bool = False,
) -> int:
    """
    Make pending messages from new text in inbox files and the agent's daily notes.

    Returns how many messages are new.

    - *known*: file → the file's state when it was last read; updated here.
    - *wrote*: returns whether a run of the agent may have written a file. None: the run is not over, so the file waits.
    - *memory*: the folder with the agent's daily notes. Ignored if the vault is a folder `memory/omg`: then the daily
      notes are in the folder above the vault.
    - *force*: also read files that were saved just now.
    """
    texts = ((file, f"inbox/{file.stem}") for file in other_files(graph))
    files, taken = [*loose_notes(graph), *texts, *day_files(graph, memory)], 0
    there = {name for _, name in files} if (graph.vault.root / "inbox").is_dir() else graph.state().by_hand
    by_hand = {name: ns for name, ns in graph.state().by_hand.items() if name in there}
    for file, name in files:
        try:
            found = file.stat()
        except FileNotFoundError:
            continue
        mark = (found.st_mtime_ns, found.st_ctime_ns, found.st_size)
        if known.get(file) == mark or (not force and now.timestamp() - found.st_mtime < SETTLED_S):
            continue
        saved_ms = round(found.st_mtime * 1000), round(found.st_ctime * 1000)
        agents = name.startswith("inbox/") and wrote(file.name, saved_ms)
        if agents is None:
            continue  # the run that may have written the note is not over
        try:
            read = read_loose_file(graph, file, name, saved_ms[0], agents=agents)
        except (OmgError, OSError, UnicodeDecodeError):
            continue  # the index reports the fault
        if read is None:
            continue
        node, messages = read
        if node and not agents and (is_placed(node) or node.links or node.loop or not is_clipped(node)):
            by_hand[name] = found.st_mtime_ns
        taken += put_loose(graph, messages)
        known[file] = mark
    if by_hand != graph.state().by_hand:
        graph.update(partial(vouch_for, by_hand=by_hand))
    return taken


def read_loose_file(
    graph: Graph, file: Path, name: str, said_ms: int, *, agents: bool
) -> tuple[Node | None, tuple[Message, ...]] | None:
    """
    Return the note in *file* and the messages made from the text, as (note, messages).

    - For a daily note of the agent ("2026-03-05.md"), the note is None. Each line of the file becomes a message.
    - If OMG wrote the inbox file, or if the file is gone: (None, ()).
    - A person's .txt file in the inbox is first renamed to .md.
    - Returns None instead of the pair for any other file that is not .md.
    - *agents*: an agent may have written the file. Then the file is not renamed, and a .txt file gives None.
    """
    if file.suffix != ".md":
        if agents or why_no_note(file):
            return None
        place_new(file, file.with_suffix(".md"))
    if not name.startswith("inbox/"):
        day = day_named(file.stem)
        return None, clean_entries(line_entries(file, name, day, graph.zone)) if day else ()
    node = read_loose(graph, name)
    return node, note_messages(node, said_ms, agents=agents) if node else ()


def other_files(graph: Graph) -> list[Path]:
    """The files of the inbox that are not notes."""
    files = sorted((graph.vault.root / "inbox").glob("[!.]*"))
    return [f for f in files if f.suffix != ".md" and f.is_file() and not f.is_symlink()]


def why_no_note(file: Path) -> str:
    """Why *file*, one of `other_files`, cannot be renamed to a note, and what to do; "" if it can."""
    text = file.suffix.lower() == ".txt"
    if text and file.with_suffix(".md").exists():
        return f"{file.stem}.md is there already; give this file another name"
    with suppress(OSError, UnicodeDecodeError):
        if text and file.read_text("utf-8") is not None:
            return ""
    return "is neither a .md nor a .txt in UTF-8; save its words as a .md or .txt file"


def unread_files(graph: Graph) -> tuple[list[str], list[str]]:
    """
    Return two lists of inbox files: files not read yet, and files whose filing was undone.

    A filed note has a History section that says which notes the text went to. After an undo this section is
    missing. Files that can never be read are left out.
    """
    found, undone = [f"inbox/{file.name}" for file in other_files(graph) if not why_no_note(file)], []
    pending = graph.pending_keys()
    for _, name in loose_notes(graph):
        with suppress(OmgError, OSError, UnicodeDecodeError):  # the index reports the fault
            node = read_loose(graph, name)
            messages = note_messages(node, 0, agents=False) if node else ()
            if graph.unseen(messages):
                found.append(name)
            elif node and messages and HISTORY_HEADING not in node.full_body:
                undone += [name] * pending.isdisjoint(m.id for m in messages)
    return found, undone


def put_loose(graph: Graph, messages: Iterable[Message]) -> int:
    """
    Make a pending turn of the new messages among *messages*.

    Returns how many messages are new.
    """
    if fresh := graph.unseen(messages):
        what = hashlib.sha256("".join(m.id for m in fresh).encode()).hexdigest()[:16]
        turn = Turn(INBOX_SESSION, INBOX_SESSION, graph.identity.agent, "inbox", "", "", "", tuple(fresh))
        graph.put(f"{fresh[0].timestamp:015d}-{what}", turn)
    return len(fresh)


def vouch_for(state: State, by_hand: dict[str, int]) -> None:
    state.by_hand, state.epoch = by_hand, state.epoch + 1


def loose_notes(graph: Graph) -> Iterator[tuple[Path, str]]:
    """Yield the file and the path of each note in the inbox, except its README."""
    for file in sorted((graph.vault.root / "inbox").glob("*.md")):
        if file.stem.startswith(".") or file.stem == "README" or file.is_symlink():
            continue
        if not copy_of_another(file.stem):
            yield file, f"inbox/{file.stem}"


def day_files(graph: Graph, memory: Path | None) -> Iterator[tuple[Path, str]]:
    """
    Yield the file and the path of each daily note that OpenClaw's agent wrote since the graph was made. These notes
    lie in the folder above the vault, or in *memory*.
    """
    root, who = graph.vault.root, graph.identity
    if (root.parent.name, root.name) == ("memory", "omg"):
        memory = root.parent
    if memory is None or who.key != f"agent:{who.agent}:main":
        return
    begun = day_of_ms(round((graph.folder / GRAPH_MARK).stat().st_mtime * 1000), graph.zone)
    for file in sorted(memory.glob("????-??-??.md")):
        day = day_named(file.stem) if DAY_FILE.fullmatch(file.name) and not file.is_symlink() else None
        if day and day >= begun:
            yield file, f"memory/{file.stem}"


def agents_notes(memory: Path, zone: tzinfo) -> Iterator[tuple[Path, str, date]]:
    """
    Yield the file, the name and the day of each of the agent's own notes: files in *memory*, and MEMORY.md beside that
    folder. The day comes from the file's name. If the name has none, it is the day of the last save.
    """
    for file in [memory.parent / "MEMORY.md", *sorted(memory.glob("*.md"))]:
        if file.is_file() and not file.is_symlink():
            named = DAY_BEFORE.match(file.name)
            saved = day_of_ms(round(file.stat().st_mtime * 1000), zone)
            name = file.stem if file.parent == memory.parent else f"memory/{file.stem}"
            yield file, name, (named and day_named(named[0])) or saved


def day_named(name: str) -> date | None:
    try:
        return date.fromisoformat(name)
    except ValueError:
        return None


def read_loose(graph: Graph, path: str) -> Node | None:
    """Read the inbox note at *path*. Returns None if the file is gone, or if OMG wrote the file."""
    data = graph.vault.bytes(path)
    return None if data is None or graph.vault.ours(data) else parse_node(data.decode("utf-8"), path)


def is_placed(node: Node) -> bool:
    """Whether the properties of *node* make it a note of the graph, and not text to be filed."""
    return node.type != "note" or bool(node.sources)


def note_messages(node: Node, said_ms: int, *, agents: bool) -> tuple[Message, ...]:
    """
    Turn the paragraphs of the loose note *node* into messages.

    Returns no messages if the properties make *node* a note of the graph (`is_placed`). *agents*: an agent may
    have written the note. Then the properties are ignored, and the messages come from the agent.
    """
    if (is_placed(node) and not agents) or node.full_body.lstrip().startswith(MEANT):
        return ()
    # The words of a clipping are the web page's, so each paragraph is marked as a quotation.
    texts = [*map(quoted, paragraphs(node))] if is_clipped(node) else paragraphs(node)
    return clean_entries(inbox_entries("assistant" if agents else "user", node.path, texts, said_ms))


def quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.split("\n"))


def is_clipped(node: Node) -> bool:
    """Whether the properties of *node* say that the note was clipped from a web page."""
    led = any("://" in str(node.extra.get(key, "")) for key in CLIP_KEYS)
    return led or "clipped" in node.extra or not CLIP_TAGS.isdisjoint(tag.lower() for tag in node.tags)


def paragraphs(node: Node) -> list[str]:
    """
    Split the text of *node* into paragraphs; a heading goes with the text below it. A paragraph that the person
    passes on (a mail, code) is marked as a quotation, unless it already looks like one.
    """
    body = node.full_body.partition(f"{HISTORY_HEADING}\n")[0].replace("\r\n", "\n")
    found: list[str] = []
    above, at, body = "", 0, body.strip()
    material = material_in(body)
    for part in re.split(r"\n\s*\n", body):
        text = part.strip()
        at = body.index(text, at)
        within = any(s.start <= at and at + len(text) <= s.end for s in material)
        passed_on = within and not any(s.end - s.start == len(text) for s in material_in(text))
        if text and "\n" not in text and text.startswith("#"):
            above = f"{above}\n{text}".strip()
        elif text:
            found.append(f"{above}\n{quoted(text) if passed_on else text}".strip())
            above = ""
    return [*found, above] if above else found


def line_entries(file: Path, name: str, day: date, zone: tzinfo) -> Iterator[dict[str, Any]]:
    """The lines of one of the agent's files as entries of a drop, dated at noon of *day*."""
    lines = [without_list_mark(text.strip()) for text in file.read_text("utf-8").split("\n")]
    noon = datetime.combine(day, time(12), zone).astimezone(UTC)
    said = [text for text in lines if text and not SAYS_NOTHING.match(text)]
    return inbox_entries("assistant", name, said, round(noon.timestamp() * 1000))


def inbox_entries(role: str, path: str, texts: list[str], said_ms: int) -> Iterator[dict[str, Any]]:
    """The messages of an inbox file as entries of a drop."""
    return (inbox_entry(role, path, text, said_ms + n) for n, text in enumerate(texts))


def inbox_entry(role: str, path: str, text: str, at_ms: int, of: str = "") -> dict[str, Any]:
    """
    Make one message an entry of a drop. *of*: the name of the author. Without *of*, equal texts of different authors
    count as one message.
    """
    mark = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]
    message = {"role": role, "content": text, "timestamp": at_ms, "idempotencyKey": f"{PREFIX}{of}{mark}"}
    return {"entryId": f"{PREFIX}{path}:{mark}", "message": message}


def inbox_path(id: str) -> str | None:
    """The path of the inbox note from which the message *id* came; None for any other message."""
    path = id.removeprefix(PREFIX).rpartition(":")[0] if id.startswith(PREFIX) else ""
    return path if path.startswith("inbox/") else None


def is_by_hand(message: Message) -> bool:
    """Whether the message comes from an inbox note that a person wrote."""
    return message.role == "user" and message.id.startswith(PREFIX)


# --- Runs of an agent, which decide whether a person wrote an inbox file.

# The longest wait for a run's transcript. After it, the gateway has died, or no run followed the prompt.
LONGEST_MS = 3_600_000
KEPT_MS = 30 * 86_400_000  # a note is filed a minute after it is saved, but a vault may be away for days


class Runs:
    """Keeps the runs of agents, and tells which inbox files a run may have written."""

    def __init__(self, home: Path) -> None:
        self.folder, self.file = home / "runs", home / "writes.jsonl"
        self._guard = threading.Lock()
        self._shown: list[Writes] = []  # what is in `file`
        self._seen: tuple[int, int] | None = None  # inode and size of `file` when it was read

    def began(self, session: str, at_ms: int) -> None:
        """Record that a prompt was built for *session*."""
        self.folder.mkdir(exist_ok=True, mode=0o700)
        with self._guard, (self.folder / mark_name(session)).open("a", encoding="ascii") as file:
            file.write(f"{at_ms}\n")

    def took(self, session: str, drop: str, found: Iterable[Writes], now_ms: int, *, over: bool) -> None:
        """
        Record the writes *found* in the drop *drop* of the transcript of *session*.

        *over*: whether the runs that began before the drop have ended. False for a drop of a compaction, which
        happens in the middle of a run.
        """
        self._keep(w for w in found if w.end_ms > now_ms - KEPT_MS)
        if over and (made := re.match(r"(\d{1,15})-", drop)):
            self._end(self.folder / mark_name(session), int(made[1]))

    def settle(self, now_ms: int) -> None:
        """
        Record that a run which has not ended within LONGEST_MS may have written any file. Remove entries older than
        KEPT_MS.
        """
        for file in self._marks():
            begun = [ms for ms in run_starts(file) if ms < now_ms - LONGEST_MS]
            self._keep(Writes(ms - SLACK_MS, ms + LONGEST_MS, None) for ms in begun)
            if begun:
                self._end(file, max(begun))
        kept = [w for w in self.shown() if w.end_ms > now_ms - KEPT_MS]
        if len(kept) < len(self.shown()):
            write_private(self.file, "".join(writes_line(w) + "\n" for w in kept))

    def wrote(self, name: str, at_ms: Iterable[int]) -> bool | None:
        """
        Return whether an agent's run may have written the inbox file *name*.

        - True: a run may have written the file.
        - False: no run can have written the file.
        - None: not known yet, because a run that began before one of the times has not ended.

        *at_ms*: the times when the file's contents, name or permissions changed.
        """
        times = list(at_ms)
        for w in self.shown():
            if w.named is None and any(w.begin_ms <= ms <= w.end_ms for ms in times):
                return True
            # A file that an agent wrote stays the agent's if a person adds to it.
            if w.named and folded_path(name) in w.named and max(times) >= w.begin_ms:
                return True
        begun = [ms for file in self._marks() for ms in run_starts(file)]
        under_way = any(start - SLACK_MS <= ms <= start + LONGEST_MS for start in begun for ms in times)
        return None if under_way else False

    def shown(self) -> list[Writes]:
        """Return the recorded periods in which the agent may have written inbox files, oldest first."""
        if read := read_if_changed(self.file, self._seen):
            self._shown, self._seen = [*parsed_writes(read[0].decode("utf-8", "replace"))], read[1]
        return self._shown if self.file.exists() else []

    def _keep(self, found: Iterable[Writes]) -> None:
        known = set(self.shown())
        if lines := [writes_line(w) for w in dict.fromkeys(found) if w not in known]:
            append_lines(self.file, lines)

    def _marks(self) -> list[Path]:
        return sorted(self.folder.glob("[0-9a-f]*"))

    def _end(self, file: Path, at_ms: int) -> None:
        with self._guard, suppress(FileNotFoundError):
            if later := [ms for ms in run_starts(file) if ms > at_ms]:
                write_private(file, "".join(f"{ms}\n" for ms in later))
            else:
                file.unlink()


def mark_name(session: str) -> str:
    return hashlib.sha256(session.encode("utf-8", "replace")).hexdigest()[:16]


def run_starts(file: Path) -> list[int]:
    try:
        return [int(text) for text in file.read_text(encoding="ascii").split()]
    except (FileNotFoundError, ValueError):
        return []


def writes_line(writes: Writes) -> str:
    return json.dumps(asdict(writes), ensure_ascii=False)


def parsed_writes(text: str) -> Iterator[Writes]:
    for each in text.split("\n"):
        # A line torn by a crash; the drop is still in the spool.
        with suppress(ValueError, TypeError, KeyError):
            value = json.loads(each)
            named = value["named"]
            yield Writes(int(value["begin_ms"]), int(value["end_ms"]), named and tuple(map(str, named)))
