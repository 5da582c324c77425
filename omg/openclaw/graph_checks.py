"""The doctor's checks of OMG's folder, and of each graph: notes, links, maps and unfinished work."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from ..check import ENOUGH, examined, is_able
from ..client import ask_daemon
from ..config import code_digest
from ..dates.days import iso_time, time_text
from ..embed import MULTILINGUAL, better_model, load_embedder
from ..errors import BadNode, ConfigError, ModelError, OverBudget, Stale, how_many, pip_install
from ..forget.places import every_message, joined_folders
from ..forget.removal import Removal, change_messages
from ..graph.graph import GRAPH_MARK, Graph
from ..graph.state import damaged_files
from ..inbox import other_files, why_no_note
from ..journal import commit_receipt, new_receipt, readable
from ..memory import Memory
from ..message.drop import redacted_arguments
from ..node.markdown import UNLINKABLE, load_properties, slugify, split_head
from ..node.note import LOOPS, PRIORITIES, STATUSES, TYPES, Node, amend_text, parse_node
from ..plan.corrections import proposed_notes
from ..plan.pages import MapPages
from ..secrets import redact
from ..text.words import is_english
from ..worker.events import edits_lately
from ..worker.status import index_remade, observer_text


@dataclass(frozen=True, slots=True)
class Finding:
    level: Literal["ok", "note", "warn", "fail"]
    what: str
    where: str = ""
    mend: str = ""
    fix: Callable[[], object] | None = field(default=None, repr=False)

    def line(self) -> str:
        mark = {"ok": "✓", "note": "·", "warn": "!", "fail": "✗"}[self.level]
        place = f" [{self.where}]" if self.where else ""
        return f"{mark} {self.what}{place}" + (f"\n    → {self.mend}" if self.mend else "")

    def value(self) -> dict[str, Any]:
        said = {name: getattr(self, name) for name in ("level", "what", "where", "mend")}
        return {**said, "fixable": self.fix is not None}


PENDING_AGE_S = 86_400
NIGHT_S = 2 * 86_400

UNDERSTOOD = {
    **{
        key: " or ".join(names)
        for key, names in (("type", TYPES), ("priority", PRIORITIES), ("status", STATUSES), ("loop", LOOPS))
    },
    **dict.fromkeys(("created", "updated"), "a day, such as 2026-02-19"),
    "event": "a day, such as 2026-02-19, or several: 2026-02-19..2026-02-21",
    **dict.fromkeys(("pinned", "standing"), "true or false"),
}

LINES_READ, FEW_LINES = (
    200,
    10,
)  # notes whose language is checked; with fewer than FEW_LINES nothing is reported
OTHER_SHARE = 0.3  # share of notes not in English from which an English embedder is not enough
MANY_LINKS = 200  # links to one note; with more, a graph view shows little else


def check_graph(memory: Memory, graph: Graph) -> Iterator[Finding]:
    key = graph.identity.key
    yield from check_lifecycle(memory, graph)
    memory.refresh(graph)
    for path, why in sorted(graph.index.bad().items()):
        mend = "correct the file or its permissions; until then OMG leaves the note alone"
        yield Finding("warn", f"cannot be read: {why}", path, mend)
    for file in other_files(graph):
        if why := why_no_note(file):
            yield Finding("warn", "is not read", f"inbox/{file.name}", why)
    if proposed := sum(1 for _ in proposed_notes(graph)):
        what = f"{how_many(proposed, 'note')} about you came from the assistant and not from you; confirm or reject each"
        yield Finding("note", what, key, "`omg confirm` lists them; `omg confirm NOTE` makes one yours")
    if offer := memory.registry.new_account(graph.identity):
        yield Finding("note", offer, key)
    for path in graph.vault.conflicts():
        mend = "copy what you want to keep into the note itself, then delete the copy"
        yield Finding("warn", "a copy made by a sync service; it is not indexed", path, mend)
    if remade := index_remade(graph, memory.clock()):
        yield Finding("note", f"the index was {remade}", key)
    yield from check_secrets(graph)
    yield from check_names(graph)
    ids = Counter(e.id for e in graph.index.entries(status=None))
    for id, n in ids.items():
        if n > 1:
            where = ", ".join(e.path for e in graph.index.entries(status=None) if e.id == id)
            mend = "let one note keep the `id` and give each other note a new one, or delete the copies"
            yield Finding("warn", f"{n} notes have the id {id}", where, mend)
    yield from check_heads(graph)
    yield from check_shape(graph)
    yield from check_maps(memory, graph)
    yield from check_language(graph)


def check_heads(graph: Graph) -> Iterator[Finding]:
    """Properties that a person wrote and OMG does not understand: they stay, and have no effect."""
    for path in graph.vault.paths():
        with suppress(BadNode, UnicodeDecodeError):
            data = graph.vault.bytes(path)
            if data is None or not graph.vault.theirs(data):
                continue
            node = parse_node(data.decode("utf-8"), path)
            yield from check_other_forms(node)
            for key, value in node.extra.items():
                if key in UNDERSTOOD:
                    what = f"`{key}: {value}` is not understood, and has no effect"
                    yield Finding("note", what, path, f"write {UNDERSTOOD[key]}")


def check_other_forms(node: Node) -> Iterator[Finding]:
    """Find links and sources of *node* that OMG could use better if written in OMG's own form."""
    if nameless := sum(not source.id for source in node.sources):
        what = f"{nameless} of the note's sources have no message `id`; OMG shows the day of such a source, but cannot show the words"
        yield Finding(
            "warn",
            what,
            node.path,
            "add the `id` of the message to each of these sources, if you know the `id`",
        )
    for target in dict.fromkeys((*node.links, *node.wikilinks)):
        if target.casefold().startswith("omg/moc-"):
            ours = "mocs/" + target[4:]
            what = f"OMG reads [[{target}]] as [[{ours}]], but Obsidian does not"
            yield Finding("warn", what, node.path, f"write [[{ours}]]")


def check_names(graph: Graph) -> Iterator[Finding]:
    """Find files that are no notes, names that cannot be linked to, and links that lead nowhere."""
    files: set[str] = set()
    for path, why in graph.vault.others():
        # Obsidian also finds a file by its name alone.
        files |= {path.casefold(), path.rpartition("/")[2].casefold()}
        if why:
            mend = "replace a symbolic link by its target; rename any other file"
            yield Finding("warn", f"{why}; OMG leaves the file alone", path, mend)
    for path in (p for p in graph.vault.paths() if UNLINKABLE.search(p)):
        what = "no [[link]] can lead to this note: its name has one of [ ] | # ^"
        mend = f"omg rename {shlex.quote(path)} {slugify(path.rpartition('/')[2])}"
        yield Finding("warn", what, path, mend)
    for path in (p for p in graph.vault.paths() if graph.vault.read_only(p)):
        yield Finding(
            "note", "is read-only, so OMG does not write to it", path, "chmod u+w, to let OMG write"
        )
    dangling = [(path, target) for path, target in graph.index.dangling() if target.casefold() not in files]
    for path, target in dangling[:50]:
        if several := graph.index.ambiguous(target):
            what = f"[[{target}]] may be any of {', '.join(several)}"
            yield Finding("warn", what, path, "write the path in the link")
        else:
            mend = "write the note (`omg new`), or correct the link"
            yield Finding("note", f"[[{target}]] leads nowhere yet", path, mend)


def check_lifecycle(memory: Memory, graph: Graph) -> Iterator[Finding]:
    key, state, now = graph.identity.key, graph.state(), memory.clock().timestamp()
    pending = graph.pending()
    if state.failures:
        times = f"s, {state.failures}," if state.failures > 1 else ""
        what = f"the last observation{times} failed: {state.error}"
        yield Finding("fail", what, key, "mend the model's settings, then `omg observe`")
    for waiting in pending:
        graph.readable(waiting)
    old = sum(now - p.at_ms / 1000 > PENDING_AGE_S for p in pending)
    if old:
        yield Finding("warn", f"{how_many(old, 'turn')} waited for more than a day", key, "omg observe")
    for file in sorted((graph.folder / "receipts").glob("*.json")):
        readable(graph, file)
    for file, line in damaged_files(graph.folder):
        yield Finding("warn", line, str(file), "when you no longer need the file, delete it and its .txt")
    begun = (graph.folder / GRAPH_MARK).stat().st_mtime
    if state.observed_ms and now - max(state.reflected_ms / 1000, begun) > NIGHT_S:
        what = f"the nightly reflection last ran: {time_text(iso_time(state.reflected_ms), graph.zone) or 'never'}"
        yield Finding("note", what, key, "run `omg reflect` now; `omg install` adds the nightly job")


def check_shape(graph: Graph) -> Iterator[Finding]:
    entries = [e for e in graph.index.entries() if e.type in TYPES]
    orphans = [e.path for e in entries if not e.links and not graph.index.backlinks(e.path)]
    for path in [path for path in orphans if not UNLINKABLE.search(path)][:20]:
        what = "no note links to this note, and it links to none"
        yield Finding("note", what, path, "omg reflect puts the note on a map")
    pairs = {tuple(sorted((e.path, other))): None for e in entries for other in e.contradicts}
    for one, other in list(pairs)[:20]:
        what = f"contradicts {other}, and nobody said which of the two is right"
        mend = "say in a conversation which one is right, or run `omg supersede OLD SUCCESSOR`"
        yield Finding("note", what, one, mend)
    for entry in entries:
        back = len(graph.index.backlinks(entry.path)) if len(entries) < 20_000 else 0
        if back > MANY_LINKS:
            what = f"a hub: {back} notes link here"
            yield Finding("note", what, entry.path, "split the note, or link to it from fewer notes")


def check_maps(memory: Memory, graph: Graph) -> Iterator[Finding]:
    maps = MapPages(graph)
    maps.add_all()
    changes = maps.changes()
    if changes:

        def regenerate() -> None:
            with graph.lock():
                commit_receipt(graph, new_receipt("edit", memory.clock(), changes, name="maps"))

        what = f"{len(changes)} map{' is' if len(changes) == 1 else 's are'} out of date"
        where = ", ".join(c.path for c in changes)
        yield Finding("warn", what, where, "omg doctor --fix, or omg reflect", regenerate)
    else:
        notes = sum(e.path.startswith("nodes/") for e in graph.index.entries())  # as `omg status` counts them
        yield Finding("ok", f"{how_many(notes, 'note')}, maps up to date", graph.identity.key)


# --- Checks of a home: the daemon's files, what is left in the spool, and the model.


SPOOL_AGE_S = 300  # a drop is normally taken in within seconds
DRIVE_BYTES = 2_000_000_000


def check_home(memory: Memory) -> Iterator[Finding]:
    up = ask_daemon(memory.folder, "/health", {}, timeout_s=5)
    if up and up.get("code") != code_digest():
        what = f"the daemon (pid {up['pid']}) is of another version than this command"
        mend = "run `omg install`, which restarts the daemon; without OpenClaw `omg down`, then `omg up`"
        yield Finding("warn", what, str(memory.folder), mend)
    elif up:
        yield Finding("ok", f"the daemon is up (pid {up['pid']})")
    else:
        yield Finding("note", "no daemon is running", mend="start the gateway, or run `omg up`")
    for off in memory.config.all_switched_off():
        where = str(memory.folder / "omg.toml")
        yield Finding("note", f"OMG is switched off: {off}", where, "take the line out")
    yield from check_spool(memory)
    yield from check_model(memory, up)
    yield from check_costs(memory)
    yield from check_refused(memory)
    yield check_embedder(memory.config.embedding.model)
    size = sum(f.stat().st_size for f in memory.folder.rglob("*") if f.is_file())
    spent = memory.worker.ledger.today(memory.clock())
    today = f"{how_many(spent.calls, 'model call')}, {spent.tokens:,} tokens, ${spent.usd:.2f}"
    what = f"the home takes {size / 1e6:,.1f} MB; today {today}"
    yield Finding("warn" if size > DRIVE_BYTES else "ok", what, str(memory.folder))


def check_spool(memory: Memory) -> Iterator[Finding]:
    """Find drops that have been in the spool for too long, or cannot be read."""
    spool, since = memory.intake.spool, memory.clock().timestamp() - SPOOL_AGE_S
    if old := [d for d in memory.intake.drops() if d.stat().st_mtime < since]:
        what = f"{how_many(len(old), 'drop')} in the spool for too long: no daemon has read the new conversations"
        yield Finding("warn", what, str(spool), "omg observe", memory.take_in)
    if bad := list((spool / "bad").glob("*.json")):
        what = f"{how_many(len(bad), 'drop')} could not be read; a file beside each says why"
        yield Finding(
            "warn",
            what,
            str(spool / "bad"),
            "report these reasons to the makers of OMG, then delete this folder",
        )


def check_able(memory: Memory) -> Iterator[Finding]:
    """
    Report whether the model can tell the user's words from others' words.

    If the model was never tested, four short questions are put to the model. The result is kept in the home.
    """
    observer = memory.worker.observer("")
    if observer.ask is None or memory.worker.away(memory.worker.models()):
        return
    try:
        is_able(memory.folder, observer.model, observer.ask, memory.clock())
    except ModelError as e:
        yield Finding("note", f"the model could not be tested on whose words are the user's: {e}")
        return
    right = examined(memory.folder, observer.model)
    if right is None:  # another model answered
        return
    if right >= ENOUGH:
        yield Finding(
            "ok", f"{observer.model} recognises which words are the user's: right in {right} of 20 test cases"
        )
    else:
        what = f"{observer.model} often mistakes whose words are the user's: right in only {right} of 20 test cases"
        mend = (
            "set a stronger [observation] model; with this one, OMG notes only the user's own sentences, word for word,"
            " and changes no note"
        )
        yield Finding("warn", what, mend=mend)


# With fewer tokens, the instructions (2,250 tokens, with the check's) are longer than the observed text. A shorter pause
# occurs many times a day.
ASKED_TOKENS, SHORT_REST_S = 3_000, 1_800


def check_costs(memory: Memory) -> Iterator[Finding]:
    """Find settings that ask a model about so little text that the instructions cost more than the text."""
    if memory.worker.observing() == ["offline"]:
        return
    options = memory.config.observation
    turn, rest = options.buffer_tokens == "turn", options.quiet_after
    rests = bool(options.buffer_tokens) and rest is not False and not turn
    costly = {
        "buffer_tokens": options.step_of(options.message_tokens) < ASKED_TOKENS,
        "quiet_tokens": options.quiet_tokens < ASKED_TOKENS and not turn,
        "quiet_after": rests and rest < SHORT_REST_S,
    }
    for name in (name for name, is_costly in costly.items() if is_costly):
        what = "with this setting a model is asked often, each time with over 2,000 tokens of instructions"
        value = "an hour" if name == "quiet_after" else f"{ASKED_TOKENS:,} tokens"
        mend = f"set it to {value} or more: the model is asked less often, which costs less"
        yield Finding("note", what, f"[observation] {name}", mend)


def check_refused(memory: Memory) -> Iterator[Finding]:
    """Warn if many of the Observer's edits were refused or changed."""
    edits, refused = edits_lately(memory.folder)
    if refused > 0.05 * edits and edits >= 20:
        what = f"{refused} of the last {edits} edits were refused or changed"
        mend = "`omg events` says why (edit refused); a stronger [observation] model helps"
        yield Finding("warn", what, mend=mend)


def check_embedder(name: str) -> Finding:
    """Name the embedder that finds notes by meaning. Do not load the embedder, which may take seconds."""
    try:
        embedder = load_embedder(name)
    except ConfigError as e:
        return Finding("fail", "notes are not found by meaning", mend=str(e))
    if embedder is None:
        return Finding("note", "notes are found by their words alone, as [embedding] model says")
    what = f"notes are found by words and by meaning ({embedder.id})"
    if embedder.id.startswith("static/") and name == "auto":
        return Finding("note", what, mend=better_model())
    return Finding("ok", what)


def check_language(graph: Graph) -> Iterator[Finding]:
    """Report if many notes are in a language that the embedder does not know."""
    embedder = graph.index.embedder
    if embedder is None or embedder.id.startswith(f"{MULTILINGUAL}/"):
        return
    lines = [e.description for e in graph.index.entries(first=LINES_READ) if e.type in (*TYPES, "note")]
    other = sum(not is_english(line) for line in lines)
    if len(lines) >= FEW_LINES and other > OTHER_SHARE * len(lines):
        what = f"{other} of {len(lines)} notes are not in English: a search by meaning hardly finds them"
        mend = f"{pip_install(MULTILINGUAL)} for a model that knows 16 languages"
        yield Finding("note", what, graph.identity.key, mend)


def check_model(memory: Memory, up: dict[str, Any] | None) -> Iterator[Finding]:
    """Name the model that observes, according to a running daemon if there is one, and check that it can be asked."""
    ours = memory.worker.models()
    models = list((up or {}).get("observer") or ours)
    wanted = memory.config.observation.effort
    effort = (up or {}).get("effort", wanted)
    if (models, effort) != (ours, wanted):
        theirs, own = (f"{', else '.join(m)}, effort {e}" for m, e in ((models, effort), (ours, wanted)))
        yield Finding(
            "warn",
            f"the daemon observes with {theirs}; omg.toml and this environment say {own}",
            str(memory.folder / "omg.toml"),
            "`omg down`: the gateway starts the daemon again with the new model; without a gateway `omg up` does",
        )
    if models[0] == "offline":
        what = "the Observer is the offline rules: near-verbatim notes, no model"
        yield Finding("note", what, mend="set [observation] model in omg.toml for better notes")
        if (reflecting := memory.worker.reflecting()) != models:
            what = f"{', else '.join(reflecting)} works only at night; by day, rules make the notes"
            yield Finding("note", what, mend="set [observation] model to observe with a model by day, too")
    else:
        said = observer_text(
            {"observer": ", else ".join(models), "offline": False, "effort": effort, "daemon": up}
        )
        what, _, trouble = said.partition("\n")
        level: Literal["ok", "note", "fail"] = "ok"
        if trouble:
            level = "fail" if (up or {}).get("trouble") else "note"
        yield Finding(level, f"the Observer is {what}", mend=trouble.strip().removeprefix("not now: "))
        yield from check_able(memory)
    try:
        memory.worker.ledger.check(memory.clock())
    except OverBudget as e:
        yield Finding("warn", str(e))


# --- Secrets that an older version kept, and that today's rules redact when a message comes in.
#
# They are redacted in the archive, in pending turns, in accounts that were joined, and in the notes that OMG wrote. The
# secrets are never shown. A file that somebody changes meanwhile waits for the next run.


SECRETS = Removal(said=redacted_arguments, clean=lambda text: redact(text)[0])


def check_secrets(graph: Graph) -> Iterator[Finding]:
    found = sum(redacted_arguments(m).redacted - m.redacted for _, m in every_message(graph))
    found += sum(found for *_, found in notes_with_secrets(graph, ours=True))
    if found:
        yield Finding(
            "warn",
            f"an older version kept {how_many(found, 'secret')} that this version recognises",
            graph.identity.key,
            "omg doctor --fix removes them from the archive, from pending messages and from notes that OMG wrote",
            lambda: take_out(graph),
        )
    if theirs := [path for path, *_ in notes_with_secrets(graph, ours=False)]:
        yield Finding(
            "note",
            f"{how_many(len(theirs), 'note')} in your own words may hold a secret: {', '.join(theirs[:5])}",
            graph.identity.key,
            "if so, remove the secret from the note yourself: OMG never changes your words, and with a prompt about the"
            " same subject the model is shown the note",
        )


def take_out(graph: Graph) -> None:
    """Replace the secrets that today's rules find, and rebuild the index."""
    with graph.lock():
        for folder in (graph.folder, *joined_folders(graph)):
            change_messages(folder, SECRETS)
        for path, data, clean, _ in notes_with_secrets(graph, ours=True):
            with suppress(Stale):
                graph.vault.write(path, clean, data)
        graph.vault.settle(0)
        graph.update(SECRETS.state)
        graph.index.rebuild(graph.vault, graph.folder / "archive")


def notes_with_secrets(graph: Graph, *, ours: bool) -> Iterator[tuple[str, bytes, bytes, int]]:
    """
    Yield each note with secrets in its description or body, as (path, text, clean text, number).

    - clean text: the text without the secrets
    - number: how many secrets were found
    - *ours*: True yields notes whose body OMG wrote; False yields notes whose body a person wrote or edited.
    """
    for path in graph.vault.paths():
        with suppress(OSError, BadNode, UnicodeDecodeError):
            data = graph.vault.bytes(path)
            if data is None or graph.vault.ours(data) is not ours:
                continue
            text = data.decode("utf-8")
            # Not the parsed note's description: the parser describes a note without a description by its text.
            head = load_properties(text[split_head(text)[0]])
            description, found = redact(str(head.get("description") or ""))
            text = amend_text(text, set={"description": description} if found else {})
            body = split_head(text)[1]
            said, more = redact(text[body:])
            if found + more:
                yield path, data, f"{text[:body]}{said}".encode(), found + more
