"""
OMG: a memory for agents, as notes that a person can open, read and correct. Programs use `from omg import Memory`.

A turn becomes notes, and notes become part of a later prompt:

    spool/  ─ worker/intake ─  pending/  ─ observe ─  vault/*.md  ─ index ─  inject  →  the next prompt

A **home** (`$OMG_HOME`) holds one **graph** for each **identity** (a person or a group). The notes of a graph are its
**vault**. A **drop** is a file that the gateway leaves in `spool/`; a **turn** is the conversation in a drop. A
**cycle** is a batch of changes that can be undone together; a **receipt** records a cycle in the journal. A **map**
(`mocs/`) lists notes; the page **Now** lists what is going on. A **tombstone** keeps a deleted note from coming back.

A **slice** is the memory for one prompt, in two parts. The part `prompt` is written for each prompt. The part `system`
stays the same for many prompts, because the model's cache needs this. An **activation** writes `system` again, for
example when a session begins or a person has edited a note (inject/decide.py).

The rooms are folders or modules, in reading order. A room imports only from rooms above it (tests/test_layers.py).
Each line is the first sentence of the room's docstring, then come the names of its modules;
`UPDATE_DOCS=1 pytest tests/test_docs.py` rewrites the list.

    Base, known to all
      errors      The exceptions of OMG, as a tree.
      text/       How a text is read: its characters, words, sentences and negations, and its cost in tokens.
                    characters · tokens · words
      client      Finds the home, and asks its daemon over a socket, or a fleet over HTTP.
      config      Reads and edits omg.toml; `OMG_*` variables take precedence over it.
      identity    Decides whose memory a session writes to and reads from.
      dates/      Finds days in text ("next Friday") and writes days as text ("3 weeks ago").
                    days · rules
    Values, without I/O
      node/       A note as a value: its properties and its text, parsed and rendered.
                    markdown · note
      secrets/    Finds secrets in a text (passwords, keys, card numbers) and redacts them.
                    labels · redaction · tokens
      message/    Messages and turns: what was said, cleaned of secrets and of OMG's own text.
                    consent · drop · envelope · statements · turn · wording
    Files, and the outside world
      vault/      A folder of markdown notes: the only code that writes .md files.
                    files · vault
      llm/        Asks a language model, in a child process, and records what it cost.
                    asker · child · replies
      embed       Turns texts into vectors, with the first of five embedders that is installed.
    What is in a vault
      index/      A SQLite index of one vault and its archive: search by words, meaning, date and link.
                    archived · index · links · rows · search · statements · store
    One identity's folder
      graph/      The folder of one identity: pending turns, archive, state, locks, tombstones.
                    graph · state
    What is written, and how
      journal     The journal of one batch: every file with its text before and after, written before the first note
                  changes.
      inbox       Turns loose notes into messages: files that people leave in inbox/, and the agent's own memory
                  files.
      plan/       Proposed edits as drafts of notes; the text of maps, index and Now.
                    corrections · drafts · edits · mentions · pages
      rules/      The Observer without a model: rules that quote people's wishes, traits, likes, decisions and plans.
                    corrections · kinds · observer · quotes
      check       Asks a model whether a person's words support a claim about the person, and tests which models can
                  do this.
      provenance  Decides whose words a note holds (the user's, the assistant's or a tool's), and checks text that
                  would count as a person's.
    What is done with it
      inject/     Chooses the memory for a prompt: `system`, which rarely changes, and `prompt`, new each time.
                    decide · passages · prompt
      forget/     Forgets notes, messages or words: removes them from every file that OMG keeps.
                    erase · places · removal · selection
      observe/    The Observer turns pending turns into notes.
                    former · question · reply · run · twins
      context     Cuts long conversations, for OpenClaw's slot `contextEngine`: observed turns leave the context, and
                  notes replace them.
      reflect/    The Reflector tidies a graph at night: repetitions, contradictions, maps, weeks and months.
                    checking · maps · periods · run · similar · topics · verdicts
      rebuild     Makes the notes of a graph again from its archive, for example with a better model.
    Every identity of a home
      worker/     Looks after all graphs of one home: records new turns, observes them on time, reflects at night, and
                  shows the status.
                    events · intake · nights · registry · schedule · status · worker
      curate      A person's own edits: write, link, merge, rename, undo, export, join accounts.
      importers/  Imports old conversations: reads their files, cuts them into drops, and takes these in through the
                  spool.
                    chatgpt · claude · drops · exports · gemini · histories · look · memories · openclaw · plain ·
                    recognise · taking · transcripts
      export      Exports everything that is remembered, as a folder or as JSON lines.
      tools/      Answers the agent's tools, the /omg command and memory_search.
                    changing · reading · removing · sentences · settling · today · tools
      memory      `Memory`: an open home, for programs, the command line, the daemon and the doctor.
    For people, other assistants and the gateway
      hosts/      OMG in other assistants: Claude Code, Codex, OpenCode, Gemini CLI.
                    hook · install · mcp · serve · sessions · timers
      openclaw/   OpenClaw: its command line and configuration, installing, the doctor.
                    doctor · graph_checks · install
      ui/         The page (`omg ui`): a person sees what is remembered and why it was given, and corrects it, in a
                  browser.
                    actions · drawing · given · notes · pages · reports · request · serve
      demo        `omg demo`: takes the sample conversation through the whole path, in a folder of its own, without a
                  key or a network.
      daemon      The daemon: its server, routes, threads, lock, signals and log.
      fleet/      Many machines on Postgres (the extra `fleet`, docs/fleet.md).
                    homes · serve · store
      cli/        The command `omg`: parse, call one function, print.
                    app · conversations · fleet · gateway · notes · terminal

Data: prompts/ (what the models are told), sample/ (the demo's conversation and a model's replies to it).
Where to change what:

    the properties of a note             node/note.py; if a model sets it, observe/reply.py
    why search finds a note, or not      index/search.py, inject/decide.py
    what happens on kill -9              journal.py; the lock: graph/graph.py; damaged files: graph/state.py
    the words of a prompt                inject/prompt.py
    when `system` is made anew           inject/decide.py
    which prompts are given nothing      inject/decide.py
    where a sentence or list item ends   text/words.py
    when turns are observed              worker/schedule.py
    what leaves a long context           context.py
    which secrets are redacted           secrets/labels.py (behind a label), secrets/tokens.py (by their form)
    what a call of a model costs         llm/replies.py (ledger, limit, the reply's JSON); the gateway's model: llm/asker.py
    what the Observer is asked           observe/question.py and prompts/; what is believed: provenance.py
    which claims are checked             provenance.py (which), check.py (how)
    the dates that are understood        dates/rules.py (English); those in a German question: dates/days.py
    which words of a message are quoted  inject/passages.py; whose they are: message/statements.py
    what is noted without a model        rules/words.toml (the words), rules/kinds.py, rules/observer.py (what it replaces)
    which messages are kept              message/drop.py; whose sessions: identity.py
    when joining accounts is offered     worker/registry.py
    what /omg and the tools answer       tools/tools.py, then tools/reading.py, changing.py, removing.py
    the weeks and months                 reflect/periods.py
    what merges at night                 reflect/verdicts.py (by a model), reflect/similar.py (by rule; what a merge keeps)
    what a model is asked at night       reflect/verdicts.py and prompts/
    what becomes dormant                 reflect/similar.py
    the text of a map or of Now          plan/pages.py
    what `omg undo` takes back           journal.py
    what omg_remember accepts            tools/sentences.py, then message/statements.py
    how files in inbox/ are read         inbox.py, message/drop.py
    how a deleted or moved file is seen  daemon.py (when files are looked at), worker/registry.py, graph/graph.py
    how notes and words are forgotten    forget/selection.py (what goes), forget/removal.py (how each file changes)
    which old chats can be imported      importers/recognise.py; how a file is read: the other modules of importers/
    what an export holds                 export.py
    the tables of many machines          fleet/schema.sql, fleet/store.py
    retries of a fleet                   fleet/homes.py (another machine was quicker), fleet/serve.py (a job failed)
    limits of the daemon                 daemon.py
    how an assistant is connected        hosts/hook.py (its events), hosts/install.py, then hosts/serve.py (also: what MCP answers)
    what the plugin sends, and when      hooks/index.js; while no daemon listens: hooks/spool.js
    what the page shows                  ui/notes.py (list, note), ui/given.py, ui/reports.py (the rest), ui/templates/
    what the doctor checks               openclaw/doctor.py (gateway, assistants), openclaw/graph_checks.py (the home, each graph)

Outside the package: hooks/ (the plugin, in JavaScript), skills/, vault_template/. The tests of a room are in
tests/<room>/ or tests/test_<room>.py; those of the whole product are beside these, in tests/.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .memory import Memory

__all__ = ["Memory"]


def __getattr__(name: str) -> Any:
    """Import `Memory` at its first use: `import omg` alone loads nothing."""
    if name == "Memory":
        from .memory import Memory

        return Memory
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
