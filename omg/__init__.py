"""
OMG: a memory for agents, as notes that a person can open, read and correct. `from omg import Memory` uses it.

A turn that was said becomes notes, and notes become what a prompt is given:

    spool/  ─ worker/intake ─  pending/  ─ observe ─  vault/*.md  ─ index ─  inject  →  the next prompt

A **home** (`$OMG_HOME`) holds the **graph** of each **identity** (a person or a group), and a graph its **vault** of
notes. A **drop** is a file that the gateway leaves in `spool/`; a **turn**, what was said in it. A **receipt** is the
journal's record of one **cycle** of changes. A **map** (`mocs/`) lists notes; **Now** says what is going on. A
**slice** is what one prompt is given: `system`, which stands still until the next **activation**, and `prompt`; a
**tombstone** keeps a deleted note from coming back.

The rooms, in reading order: a folder, or a module. A room knows those above it and none below;
tests/test_layers.py holds that. The `__init__.py` of a folder lists its modules.

    Base, known to all
      errors      what can go wrong, as a tree
      config      omg.toml, and what OpenClaw's configuration says of its agents
      identity    whose memory a session writes and reads
      plural      "1 note", "2 notes"
      text/       how a text is read: characters, words, sentences, negation, links as labels, what it costs in tokens
      dates/      days in what people write: "next Friday", "on the 5th"
      client      one question to a running daemon
    Values, without I/O
      node/       a note: its properties (fields) and text, parsed and rendered; the table of maps
      secrets/    passwords, keys and card numbers taken out of a text
      message/    a turn: read from a drop, cleaned of secrets and of our own words; what of it is material
    Files, and the outside
      vault/      the only writer of .md; a person's words are never overwritten
      llm/        one question to a model, in a child process, with a ledger of what it cost
      embed       vectors for texts
    One identity (what is in its vault, its folder, what is written and how)
      index/      what is in a vault, found by words, meaning, date and link; derived, may be deleted
      graph/      its folder: what is pending, the archive, state, locks, tombstones
      journal     what is to be written, first as a receipt: crash-safe, and undone by it
      inbox       notes that a person or an agent left to be taken in
      plan/       proposed edits, as drafts; the text of maps, index and Now
      rules/      an Observer of rules, for where there is no model
      provenance  who said what a note says: the user, the assistant or a tool; the check
    What is done with it
      inject/     what a prompt is given: decided, then rendered
      window/     what leaves a long context, and the notes that take its place (with `omg-context`, on request)
      forget/     no byte of it stays
      observe/    pending turns become notes: the question to the model, its reply
      reflect/    by night: repetitions, contradictions, which map a note is on, weeks and months
      rebuild     the notes made again from the archive
    Every identity of a home
      worker/     registry (whose graphs, what a person moved or deleted), intake (what comes in), schedule (when),
                  worker (who observes), nights, delegate (a command's work, handed to the daemon), status, events
      curate      a person's own hand: write, link, merge, rename, undo, export, join accounts
      importers/  old conversations, as drops
      tools/      what the agent's tools and /omg answer
      memory      all of this in one place, for a program
    For people, for other assistants, and for the gateway
      hosts/      Claude Code, Codex, OpenCode, Gemini CLI: hooks, transcripts, projects
      openclaw/   install, the gateway's command line, doctor/ (of gateway, home and graphs)
      page/       the graph as one page for a browser
      demo        the sample conversation, offline
      daemon/     the process beside the gateway: socket, worker, watches
      fleet/      many machines on Postgres: graphs as rows, jobs, the daemon's routes over HTTP (an extra)
      cli/        the command `omg`

Data: prompts/ (what the models are told), sample/ (the demo's conversation). If you want to …, open …

    add a property to a note             node/fields.py, then node/note.py; if a model sets it, observe/reply.py
    know why a note was not found        index/search.py; inject/decide.py
    know what happens on kill -9         journal.py; who holds the lock: graph/graph.py; damage: graph/state.py
    change the words of a prompt         inject/prompt.py
    change when turns are observed       worker/schedule.py
    change what leaves a long context    window/cut.py
    keep a kind of secret out            secrets/redaction.py, and the rules that it names
    change what the Observer is asked    observe/question.py and prompts/; what is believed: provenance.py
    understand one more form of date     dates/rules.py
    change what merges at night          reflect/permitted.py (by a model), reflect/similar.py (by rule)
    change what is asked at night        reflect/verdicts.py and prompts/
    change what goes dormant             reflect/similar.py
    change the text of a map or of Now   plan/pages.py
    change what omg_remember believes    tools/changing.py
    tell a person's inbox file           inbox.py, message/drop.py
    follow a person's deletion           worker/registry.py, graph/tombstones.py
    follow a forgetting                  forget/erase.py, then forget/places.py
    read another form of old chats       importers/readers.py
    connect another assistant            hosts/declared.py, then hosts/transcripts.py
    let the doctor see more              openclaw/doctor/graph.py, gateway.py

Outside the package: hooks/ (the plugin, in JavaScript), skills/, vault_template/.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .memory import Memory

__all__ = ["Memory"]


def __getattr__(name: str) -> Any:
    """`Memory` when it is asked for: `import omg` loads nothing."""
    if name == "Memory":
        from .memory import Memory

        return Memory
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
