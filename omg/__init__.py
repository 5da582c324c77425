"""
OMG: a memory for agents, as notes that a person can open, read and correct. `from omg import Memory` uses it.

A turn that was said becomes notes, and notes become what a prompt is given:

    spool/  ─ worker/intake ─  pending/  ─ observe ─  vault/*.md  ─ index ─  inject  →  the next prompt

The rooms, in reading order. A room knows those above it and none below; tests/test_layers.py holds that.

    Ground, known to all
      errors      what can go wrong, as a tree
      config      omg.toml, and what OpenClaw's configuration says of its agents
      identity    whose memory a session writes and reads
      tokens      how much a text costs
      dates       days in what people write: "next Friday", "vor zwei Wochen"
      client      one question to a running daemon
    Values, without I/O
      node        a note: its properties and text, parsed and rendered; the table of maps
      message     a turn: parsed from a drop, cleaned of secrets and of our own words
    Files, and the outside
      vault       the only writer of .md; a person's words are never overwritten
      llm         one question to a model, in a child process, with a ledger of what it cost
      embed       vectors for texts
    One identity
      index       what is in a vault, found by words, meaning, date and link; derived, may be deleted
      graph       its folder: what is pending, the archive, state, locks, tombstones
      journal     what is to be written, first as a receipt: crash-safe, and undone by it
      inbox       notes that a person or an agent left to be taken in
      plan        proposed edits, as drafts, as the changes of one receipt
      offline     an Observer of rules, for where there is no model
    What is done with it
      inject      what a prompt is given
      forget      no byte of it stays
      observe     pending turns become notes
      reflect     by night: maps, repetitions, contradictions, weeks and months
      rebuild     the notes made again from the archive
    Every identity of a home
      worker      registry (whose graphs), intake (what comes in), worker (what is observed when), nights, status
      curate      a person's own hand: write, link, merge, rename, undo, export, join accounts
      importers   old conversations, as drops
      tools       what the agent's tools and /omg answer
      memory      all of this in one place, for a program
    At the door
      openclaw    install, doctor, the gateway's command line
      page        the graph as one page for a browser
      demo        the sample conversation, offline
      daemon      the process beside the gateway: socket, worker, watches
      cli         the command `omg`

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
