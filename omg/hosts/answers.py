"""
Answers the tools of `omg mcp`, in the daemon.

Each question names *person* and *project*, the identities that the server was started with; a client cannot choose them.
An id is `person:` or `project:` with the path of a note. A note of any other graph does not exist for the client.

`remember` and `correct` write proposals of the assistant (plan/corrections.py), because no message of the person stands
behind a call: they are found and shown with a mark, and stay out of `system` until the person runs `omg confirm`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from ..curate import (
    CurationResult,
    done_with,
    find_note,
    open_note,
    planning_under_lock,
    receipt_of,
    refuse_pages,
    refuse_retired,
    select_to_forget,
    write_edits,
)
from ..errors import BadInput, NotFound, OmgError
from ..graph.graph import Graph
from ..memory import Memory
from ..plan.corrections import Correction, correction_proposed, take_up
from ..plan.drafts import PERSONS
from ..plan.edits import Edit, one_line
from ..plan.pages import filed_day
from ..secrets import redact
from ..tools.changing import choice_text, days_asked, notes_about
from ..tools.reading import hit_limit, hit_line, link_target, mapping_in, named_section, open_tool
from ..tools.tools import status_line
from .sessions import heartbeats

MEMORIES = ("project", "person")  # the nearer one first
TOOLS = ("search", "fetch", "recent", "remember", "correct", "forget", "status", "page")
RECENT_DAYS = 7
PAGES = ("index", "now")


class McpAnswers:
    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """`{person, project, tool, arguments}` → the tool's structured result, or `{error}` with its message."""
        if body.get("tool") not in TOOLS:
            raise BadInput(f"no tool {body.get('tool')!r}")
        try:
            result: dict[str, Any] = getattr(self, f"_{body['tool']}")(body, mapping_in(body, "arguments"))
        except OmgError as e:
            return {"error": str(e)}
        return result

    def _graphs(self, body: Mapping[str, Any], *, write: bool = False) -> Iterator[tuple[str, Graph]]:
        registry = self.memory.registry
        for label in MEMORIES:
            who = registry.identity_of(str(body[label])) if body.get(label) else None
            if who is None or not (write or (registry.folder / "graphs" / who.folder).is_dir()):
                continue
            yield label, registry.graph(who) if write else registry.opened(who)

    def _meant(self, body: Mapping[str, Any], id: object) -> tuple[str, Graph, str]:
        """The memory that *id* belongs to, and the note's name in it."""
        label, _, name = str(id or "").partition(":")
        if label not in MEMORIES:
            label, name = "", str(id or "")
        name = link_target(name)
        for found, graph in self._graphs(body):
            if label in ("", found) and graph.index.resolve(name):
                return found, graph, name
        raise NotFound(f"no note {id!r}; `search` gives the ids")

    def _search(self, body: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        query, limit = str(given.get("query") or ""), hit_limit(given.get("limit"), 8)
        found = [
            (hit.score, item_of(label, hit.entry.path, hit.entry.title, hit_line(hit)))
            for label, graph in self._graphs(body)
            for hit in graph.index.search(query, limit, now=self.memory.clock())
        ]
        found.sort(key=lambda pair: -pair[0])
        return {"results": [item for _, item in found[:limit]]}

    def _fetch(self, body: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        label, graph, name = self._meant(body, given.get("id"))
        note = open_note(graph, named_section(graph, name)[0]).node
        text = str(open_tool(graph, {"id": name})["text"])
        about = {"memory": label, "type": note.type, "origin": note.origin or ""}
        return {**item_of(label, note.path, note.title, text), "metadata": about}

    def _page(self, body: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        """The page of that name from each memory, as its file has it."""
        name = given.get("name")
        if name not in PAGES:
            raise NotFound(f"no page {name!r}; there are: {', '.join(PAGES)}")
        return text_of(f"# {label}\n\n{graph.vault.text(name)}\n" for label, graph in self._graphs(body))

    def _recent(self, body: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        days = given.get("days")
        days = days if isinstance(days, int) and 0 < days < 4000 else RECENT_DAYS
        since = self.memory.clock().date() - timedelta(days=days)
        found = [
            (day, item_of(label, entry.path, entry.title, f"{day}: {entry.description}"))
            for label, graph in self._graphs(body)
            for entry in graph.index.entries()
            if entry.path.startswith("nodes/") and (day := filed_day(entry)) and day >= since
        ]
        found.sort(key=lambda pair: pair[0], reverse=True)
        return {"results": [item for _, item in found[: hit_limit(given.get("limit"), 20)]]}

    def _remember(self, body: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        """Into the project's memory, where there is one."""
        for label, graph in self._graphs(body, write=True):
            text, title, when = (str(given.get(key) or "") for key in ("text", "title", "when"))
            return proposed(label, graph, propose_note(graph, text, title, when, self.memory.clock()))
        raise NotFound("there is no memory here to write to: `--only project`, outside of any project")

    def _correct(self, body: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        label, _, name = self._meant(body, given.get("id"))
        graph = dict(self._graphs(body, write=True))[label]
        path = propose_correction(graph, name, str(given.get("new") or ""), self.memory.clock())
        return proposed(label, graph, path)

    def _forget(self, body: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        """What would be forgotten, and the command by which the person does it. Changes nothing."""
        what, lines, commands = str(given.get("query") or "").strip(), list[str](), list[str]()
        if not what:
            raise BadInput("forget what? give `query`, words or the id of a note")
        for label, graph in self._graphs(body):
            path = graph.index.resolve(what.removeprefix(f"{label}:"))
            paths = [path] if path else notes_about(self.memory.intake, graph, what, said=False)
            if paths:
                lines.append(choice_text(graph, "forget", select_to_forget(graph, ids=paths)))
                commands.append(f"omg forget {' '.join(paths)} --identity {graph.identity.key}")
        if not commands:
            raise NotFound(f"nothing is remembered about {what!r}")
        told = "Nothing was forgotten. Show the person what would go; they forget it in a terminal with: "
        return {"would_forget": "\n".join(lines), "commands": commands, "text": told + "; or ".join(commands)}

    def _status(self, body: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        lines = [f"{label}: {status_line(graph)}" for label, graph in self._graphs(body)]
        lines += [f"{b.host}: nothing kept lately" for b in heartbeats(self.memory.folder) if b.silent]
        return text_of(lines)


def text_of(lines: Iterable[str]) -> dict[str, Any]:
    return {"text": "\n".join(lines) or "Nothing is remembered yet."}


def item_of(label: str, path: str, title: str, text: str) -> dict[str, Any]:
    """A note in the form that clients know from other servers' `search` and `fetch`."""
    return {"id": f"{label}:{path}", "title": title, "text": text, "url": f"omg://note/{label}/{path}"}


def proposed(label: str, graph: Graph, path: str) -> dict[str, Any]:
    command = f"omg confirm {path} --identity {graph.identity.key}"
    text = f"Noted as the assistant's word. It becomes the person's when they run: {command}"
    return {"id": f"{label}:{path}", "text": text, "command": command}


# --- proposals


def propose_note(graph: Graph, text: str, title: str, when: str, now: datetime) -> str:
    """Write *text* as a proposal of the assistant. Returns the note's path."""
    text, title = (redact(one_line(given))[0] for given in (text, title))
    if not text:
        raise BadInput("remember what? give `text`, one line")
    title = title or text[:50]
    edit = Edit("create", title, text, event=days_asked(when), origin="assistant", proposes="fact")
    return write_edits(graph, [edit], now, f"proposed {edit.title}")


def propose_correction(graph: Graph, name: str, new: str, now: datetime) -> str:
    """Write *new* as a proposed text of the note *name*, which stays as it is. Returns the proposal's path."""
    new = redact(one_line(new))[0]
    if not new:
        raise BadInput("correct it to what? give `new`, the whole sentence that is right")
    path = find_note(graph, name)
    refuse_pages(graph, path)
    node = graph.vault.read(path)
    refuse_retired(node)
    edit = correction_proposed(node, Correction(node.description, new), ())
    return write_edits(graph, [edit], now, f"proposed a correction of {path}")


def confirm_note(graph: Graph, name: str, now: datetime) -> CurationResult:
    """Make the note *name* the person's own. A proposed correction is made in the note that it corrects."""
    path = find_note(graph, name)
    refuse_pages(graph, path)
    with planning_under_lock(graph, now) as plan:
        node = plan.draft(path).node
        refuse_retired(node)
        if node.origin in PERSONS:
            raise BadInput(f"{path} is the person's already; nothing was changed")
        if node.proposes:
            path = take_up(plan, path)
        plan.amend(path, origin="human")
        return done_with(graph, path, receipt_of(plan, now, f"confirmed {path}"))
