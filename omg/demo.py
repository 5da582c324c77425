"""
`omg demo`: takes the sample conversation through the whole path, in a folder of its own, without a key or a network.

The replies of the model were recorded before (bench/record_demo.py) and are shipped unedited. Every other step really
runs during the demo. With *offline*, rules make the notes, without a model. The demo neither reads nor changes the
user's files.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from pathlib import Path

from rich.console import Console
from rich.text import Text

from .config import Config, load_config, set_value, set_vault
from .curate import new_note, take_back
from .errors import ModelUnavailable, how_many
from .graph.graph import Graph
from .importers import import_drops, read_drops
from .llm.replies import Ask, ModelQuestion, ModelReply
from .memory import Memory
from .node.note import Node
from .text.words import cut_text, written_words
from .worker.nights import NightDone

SAMPLE_FOLDER = Path(__file__).parent / "sample"
REPLIES = SAMPLE_FOLDER / "replies.json"
# A strong model's answers to the first of PROMPTS, unedited: with nothing beside it, and with what OMG gave it.
ANSWERS = SAMPLE_FOLDER / "answers.json"
DEMO_SESSION = "agent:main:main"
GROUP_SESSION = "agent:main:telegram:group:-1004815"
NIGHT = datetime(2026, 3, 23, 2, tzinfo=UTC)  # after the last of the sample's weeks
MORNING = NIGHT + timedelta(hours=6)  # when the first of PROMPTS is asked; the others follow, one a minute
BY_HAND = ("fact", "Prints from 21 March", "Prints cost 50 euros each from 2026-03-21, no longer 45 euros.")
SECRET = "Lindqvist"
LIE, PAGE = "pre-approved", "papierhaus-elbe.example"
PROMPTS = (
    ("When are the Tidepool sketches due, and what is left to draw?", DEMO_SESSION),
    ("How much is one of my prints?", DEMO_SESSION),
    ("Which paper did I choose for the final art, and what does a sheet cost?", DEMO_SESSION),
    ("When is the dinner, and who eats no meat?", GROUP_SESSION),
)
LINES = {"standing": 1, "prompt": 2, "night": 6, "history": 2}  # most lines shown of each part
START = (
    "For your own assistant: omg install (OpenClaw), or omg install claude-code, codex, opencode or gemini."
)
LABEL = 12  # width in columns of a line's first part
PIPED_COLUMNS = 200


# --- the recorded model


@dataclass(frozen=True, slots=True)
class Recorded:
    """
    A question to the model, recorded with the model's reply.

    *prompt*: hash of the instructions that the model got with the question.
    """

    purpose: str
    prompt: str
    question: str
    reply: str


@dataclass
class Replay:
    """
    Answers questions in place of a model, with recorded replies.

    A question gets the reply to the recorded question that shares most words with it. So a slightly changed question
    still gets a reply. `changed` lists the questions that differ from the recorded ones in their words, or in
    their instructions.
    """

    rows: list[Recorded]
    changed: list[ModelQuestion] = field(default_factory=list)
    played: set[Recorded] = field(default_factory=set)

    @cached_property
    def _words(self) -> dict[Recorded, frozenset[str]]:
        return {row: written_words(row.question) for row in self.rows}

    def __call__(self, question: ModelQuestion) -> ModelReply:
        row = self.nearest(question)
        self.played.add(row)
        if (row.question, row.prompt) != (question.user, prompt_digest(question)):
            self.changed.append(question)
        return ModelReply(row.reply, "a careful model, recorded", 0, 0)

    def nearest(self, question: ModelQuestion) -> Recorded:
        asked = written_words(question.user)
        rows = [row for row in self.rows if row.purpose == question.purpose]
        if not rows:
            raise ModelUnavailable(f"the demo has no reply to a question of this kind: {question.purpose}")
        return max(rows, key=lambda r: len(asked & self._words[r]) / len(asked | self._words[r]))


def prompt_digest(question: ModelQuestion) -> str:
    return hashlib.sha256(question.system.encode()).hexdigest()[:16]


def recorded_replies() -> list[Recorded]:
    return [Recorded(**row) for row in json.loads(REPLIES.read_text(encoding="utf-8"))]


# --- the story


@dataclass(frozen=True, slots=True)
class Given:
    """
    The memory given with a prompt. *standing*: the lines that every prompt gets. *bearing*: the lines most relevant to
    this prompt. *tokens*: how many tokens all given memory has, also what is in neither list.
    """

    standing: list[str]
    bearing: list[str]
    tokens: int


@dataclass
class Story:
    """
    The demo's memory and its clock.

    *now*: a list with one item, the time that the memory takes for the present. *night*: the result of the nightly run.
    """

    memory: Memory
    now: list[datetime]
    night: NightDone = field(default_factory=NightDone)

    @property
    def graph(self) -> Graph:
        return self.memory.find(DEMO_SESSION)

    def sessions(self) -> Iterator[tuple[date, str, int, int]]:
        """
        Import and observe each conversation of the sample, in order.

        Yields for each conversation its day, its name, how many messages it has, and how many notes were written or
        changed.
        """
        for file in sorted(SAMPLE_FOLDER.glob("*.jsonl")):
            day, name = date.fromisoformat(file.stem[:10]), file.stem[11:].replace("-", " ")
            self.now[0] = datetime.combine(day, datetime.min.time(), UTC) + timedelta(hours=21)
            taken = import_drops(self.memory.intake, read_drops([file], None))
            observed = self.memory.work(force=True)
            yield day, name, taken["messages"], sum(o.notes for o in observed)

    def write_by_hand(self) -> None:
        self.memory.refresh(self.graph)
        new_note(self.graph, *BY_HAND, self.now[0])

    def sleep(self) -> None:
        self.now[0] = NIGHT
        (self.night,) = self.memory.reflect(DEMO_SESSION)

    def undo_twice(self) -> tuple[int, int]:
        """Undo the night's cycle, then undo the undo; return how many files each changed."""
        cycle, changed = str(self.night["cycle"]), []
        for _ in range(2):
            self.now[0] += timedelta(minutes=1)
            outcome, _ = take_back(self.graph, cycle, self.now[0])
            changed.append(len(outcome.written))
            cycle = max(
                self.graph.folder.glob("receipts/*-undo-*.json"), key=lambda f: f.stat().st_mtime_ns
            ).stem
        return changed[0], changed[1]

    def forget(self) -> tuple[int, int, int]:
        """
        Forget all notes and messages that hold the name SECRET.

        Returns how many notes were removed, how many messages were removed, and how many files still hold the name.
        """
        self.memory.refresh(self.graph)
        gone = self.memory.forget(matching=SECRET)
        folders = {self.memory.folder, self.graph.vault.root}
        files = [f for folder in folders for f in folder.rglob("*") if f.is_file()]
        left = [f for f in files if SECRET.encode() in f.read_bytes()]
        return len(gone.paths), len(gone.messages), len(left)

    def given(self) -> Iterator[tuple[str, str, Given]]:
        """Each prompt, who asks it, and the memory it is given."""
        for minute, (prompt, session) in enumerate(PROMPTS):
            self.now[0] = MORNING + timedelta(minutes=minute)
            piece = self.memory.inject(prompt, session=f"{session}:thread:demo")
            standing = items_of(piece.system)
            # `prompt` does not repeat a line of `system`, so both are searched; the other lines of `prompt` follow.
            hits = self.memory.search(prompt, session=session)
            found = [hit.entry.short for hit in hits if hit.entry.type != "reflection"]
            given = [line for line in items_of(piece.prompt) if " — " in line or ": " in line]
            lines = [*standing, *given]
            named = [line for short in found for line in lines if line.startswith(f"{short} ")]
            bearing = [*dict.fromkeys([*named, *given])]
            yield (
                prompt,
                "group chat" if session == GROUP_SESSION else "Nora",
                Given(standing, bearing, piece.tokens),
            )

    def notes(self) -> list[Node]:
        paths = sorted(e.path for e in self.graph.index.entries(status=None))
        return [self.graph.vault.read(p) for p in paths if p.startswith("nodes/")]


def story_in(folder: Path, ask: Ask | None) -> Story:
    """Begin the demo with a new memory in *folder*. *ask* asks the model that observes; if *ask* is None, rules
    observe."""
    now = [datetime(2026, 3, 1, tzinfo=UTC)]
    config = demo_config(folder, "offline" if ask is None else "gateway")
    return Story(Memory(config, gateway=ask, clock=lambda: now[0]), now)


def demo_config(folder: Path, model: str = "offline") -> Config:
    """
    Make the demo's home, *folder*/home, and return the home's configuration.

    The home names the demo's vault, so an `omg` command with OMG_HOME=*folder*/home uses the demo's memory.
    """
    home = folder / "home"
    set_vault(home, DEMO_SESSION, folder / "vault")
    settings = {
        "time": ("zone", "Europe/Berlin"),
        "observation": ("model", model),
        "embedding": ("model", "static"),
    }
    for table, (key, value) in settings.items():
        set_value(home, table, key, value)
    return load_config(home, {})


# --- what is shown


def run_demo(folder: Path | None, *, offline: bool = False) -> None:
    """Make the demo in *folder*; None: in a new temporary folder, which is kept."""
    folder = (folder or Path(tempfile.mkdtemp(prefix="omg-demo-"))).expanduser().absolute()
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=PIPED_COLUMNS)
    story = story_in(folder, None if offline else Replay(recorded_replies()))
    with story.memory:
        show(story, console, offline=offline)
    # No gateway lends the recorded model to a command. The rules read what waits: the prompts, which the page then names,
    # and what forgetting left of a talk.
    set_value(folder / "home", "observation", "model", "offline")
    with Memory(load_config(folder / "home", {}), clock=lambda: story.now[0]) as memory:
        for minute, (prompt, session) in enumerate(PROMPTS):
            said = {"role": "user", "content": prompt, "timestamp": MORNING + timedelta(minutes=minute)}
            memory.capture([said], session=f"{session}:thread:demo")
        memory.work(force=True)
    console.print()
    where = f"Open the folder {folder / 'vault'} in Obsidian. Or run one of these lines: a page in your browser, and a search."
    console.print(Text(where), soft_wrap=True)
    for words in (("ui",), ("search", "watercolour paper")):
        console.print(Text(f"  {shell_line(folder / 'home', *words)}", style="cyan"), soft_wrap=True)
    console.print(Text(START), soft_wrap=True)


def show(story: Story, console: Console, *, offline: bool) -> None:
    how = (
        "Rules choose which of her sentences become notes; no model is asked."
        if offline
        else "A strong model once wrote the notes and the answers; this is a recording of them. It needs no key and no network."
    )
    title = (
        "OMG gives an AI assistant a memory: dated notes that a person can read, correct and delete. Here Nora, an"
        f" illustrator, talks with her assistant for three weeks. {how}"
    )
    console.print(Text(title, style="bold"), soft_wrap=True)
    show_days(story, console)
    show_notes(story, console)
    story.sleep()
    heading(console, f"Every night OMG puts the notes in order; this is the night of {NIGHT:%d %B}")
    for line in map(without_links, story.night["summary"][: LINES["night"]]):
        put(console, "", line)
    heading(console, "What you can take back")
    back, again = story.undo_twice()
    put(
        console,
        "undo",
        f"`omg undo` takes back what the night changed: {how_many(back, 'file')}, with all maps and lists. A second `omg undo` restores the {again}.",
    )
    notes, messages, left = story.forget()
    gone = f"{how_many(notes, 'note')} and {how_many(messages, 'message')} are removed"
    where = (
        f"{how_many(left, 'file')} of this memory"
        if left
        else "no file of this memory, not even what `omg undo` reads,"
    )
    put(
        console,
        "forget",
        f"Nora asks to forget “{SECRET}”, a name told in confidence: {gone}; {where} holds the name now.",
    )
    show_slices(story, console, answered=not offline)


def show_days(story: Story, console: Console) -> None:
    heading(console, "Nora talks with the assistant, and OMG writes notes: one conversation a line")
    for day, name, messages, notes in story.sessions():
        said = f"{name:<14} {how_many(messages, 'message'):<12} {how_many(notes, 'note')} written or changed"
        put(console, f"{day:%a %d %b}", said)
    story.write_by_hand()
    put(console, f"{story.now[0]:%a %d %b}", f"{'by hand':<14} Nora adds a note: {BY_HAND[2]}")


def show_notes(story: Story, console: Console) -> None:
    """Print three things: how a note of a wish changed, how a note of a plan changed, and whether a note repeats a web
    page's false claim."""
    notes = story.notes()
    heading(console, "A note says what holds now and what held before. A web page cannot speak for Nora")
    for label, types in (("a wish", ("preference",)), ("a plan", ("project", "episode"))):
        changed = [n for n in notes if n.type in types and history_of(n)]
        for note in sorted(changed, key=lambda n: len(history_of(n)))[-1:]:
            put(console, label, note.description, style="bold")
            of_days = {line[:10]: line for line in history_of(note)}  # the last line of each day
            for line in reversed([*of_days.values()][-LINES["history"] :]):
                put(console, "", f"before, on {without_links(line)}", style="dim")
    lies = [n for n in notes if LIE in f"{n.description} {n.body}"]
    put(
        console,
        "a web page",
        f"The assistant read a page that says: Nora's orders are “{LIE}”. {how_many(len(lies), 'note') if lies else 'No note'} of hers says so.",
    )
    for note in [n for n in notes if n.origin == "tool" and PAGE in n.description][:1]:
        put(console, "", f"The page's prices are kept as the page's words: {note.description}", style="dim")


def show_slices(story: Story, console: Console, *, answered: bool) -> None:
    while story.graph.index.embed():
        pass
    for n, (prompt, whose, given) in enumerate(story.given()):
        if not n:
            heading(
                console,
                "What the assistant is given with every prompt of Nora (only the first line is shown)",
            )
            for line in given.standing[: LINES["standing"]]:
                put(console, "", without_name(line))
            heading(
                console,
                "What the assistant is given with each of four prompts (only the two best lines are shown)",
            )
        alone = ", none of them from Nora's private notes" * (whose != "Nora")
        put(console, whose, f"“{prompt}”  is given {given.tokens:,} tokens{alone}, among them:", style="bold")
        for line in given.bearing[: LINES["prompt"]]:
            put(console, "", without_name(line))
        if answered and not n:
            show_answers(console)


def show_answers(console: Console) -> None:
    for how, answer in json.loads(ANSWERS.read_text(encoding="utf-8")).items():
        for n, line in enumerate(filter(None, answer.split("\n"))):
            put(console, "" if n else "with memory" if how == "with" else "no memory", line)


def history_of(note: Node) -> list[str]:
    _, _, history = note.body.partition("## History")
    return [line[2:] for line in history.splitlines() if line.startswith("- ")]


def items_of(text: str) -> list[str]:
    """The list items of a slice, without the headings and remarks around them."""
    return [without_links(line[2:]) for line in text.splitlines() if line.startswith("- ")]


def without_name(line: str) -> str:
    """*line* without the short name by which the agent opens the note."""
    return re.sub(r"^\S+ — ", "", line)


def without_links(line: str) -> str:
    """Return *line* with each link replaced by its title in quotation marks."""
    return re.sub(r"\[\[(?:[^\]|]*\|)?([^\]]*)\]\]", r"“\1”", line)


def heading(console: Console, text: str) -> None:
    console.print()
    console.print(Text(cut_text(text, console.width), style="bold cyan"))


def put(console: Console, label: str, text: str, style: str = "") -> None:
    """Print one line in two columns. A line that is too long is cut, and ends with "…"."""
    said = cut_text(" ".join(text.split()) if not label else text, console.width - LABEL)
    console.print(Text.assemble((f"{label:<{LABEL}}", "green"), (said, style)), soft_wrap=True)


def shell_line(home: Path, *words: str) -> str:
    """Return a shell command that runs `omg` with *words* for *home*. The command works in any current folder."""
    beside = Path(sys.executable).with_name("omg")
    omg = (
        ["omg"]
        if shutil.which("omg")
        else [str(beside)]
        if beside.exists()
        else [sys.executable, "-m", "omg.cli"]
    )
    return f"OMG_HOME={shlex.quote(str(home))} {shlex.join([*omg, *words])}"
