"""
Answers the tools of `omg mcp`, in the daemon.

*person* and *project* of a question are the identities that the server was started with: a client cannot name any. An
id is `person:` or `project:` and the path of a note; what the other graphs hold is as unknown as what never was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from ..curate import open_note, select_to_forget
from ..errors import BadInput, NotFound, OmgError
from ..graph.graph import Graph
from ..memory import Memory
from ..plan.pages import filed_day
from ..tools.changing import choice_text, notes_about
from ..tools.reading import hit_limit, hit_line, mapping_in, named_section, open_tool
from ..tools.tools import status_line
from .proposals import propose_correction, propose_note
from .sessions import heartbeats

MEMORIES = ("project", "person")  # the nearer one first
RECENT_DAYS = 7
PAGES = ("index", "now")


class McpAnswers:
    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """`{person, project, tool, arguments}` → the tool's structured result, or `{error}` in words."""
        tool = getattr(self, f"_{body.get('tool')}", None)
        if body.get("tool") not in TOOLS or tool is None:
            raise BadInput(f"no tool {body.get('tool')!r}")
        try:
            result: dict[str, Any] = tool(body, mapping_in(body, "arguments"))
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

    def _written(self, body: Mapping[str, Any]) -> tuple[str, Graph]:
        """The memory that is written to: the project's, where there is one."""
        for found in self._graphs(body, write=True):
            return found
        raise NotFound("there is no memory here to write to: `--only project`, outside of any project")

    def _meant(self, body: Mapping[str, Any], id: str) -> tuple[str, Graph, str]:
        """Which memory *id* is of, and the note's name in it."""
        label, _, name = id.partition(":")
        if label not in MEMORIES:
            label, name = "", id
        name = name.strip().removeprefix("[[").removesuffix("]]").partition("|")[0]
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
        label, graph, name = self._meant(body, str(given.get("id") or ""))
        note = open_note(graph, named_section(graph, name)[0]).node
        text = str(open_tool(graph, {"id": name})["text"])
        about = {"memory": label, "type": note.type, "origin": note.origin or ""}
        return {**item_of(label, note.path, note.title, text), "metadata": about}

    def _page(self, body: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        """A page of each memory, as the files are."""
        name = str(given.get("name"))
        if name not in PAGES:
            raise NotFound(f"no page {name!r}; there are: {', '.join(PAGES)}")
        parts = [f"# {label}\n\n{graph.vault.text(name)}" for label, graph in self._graphs(body)]
        return {"text": "\n\n".join(parts) or "Nothing is remembered yet."}

    def _recent(self, body: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        days = given.get("days")
        since = self.memory.clock().date() - timedelta(
            days=days if isinstance(days, int) and 0 < days < 4000 else RECENT_DAYS
        )
        found = [
            (day, item_of(label, entry.path, entry.title, f"{day}: {entry.description}"))
            for label, graph in self._graphs(body)
            for entry in graph.index.entries()
            if entry.path.startswith("nodes/") and (day := filed_day(entry)) and day >= since
        ]
        found.sort(key=lambda pair: pair[0], reverse=True)
        return {"results": [item for _, item in found[: hit_limit(given.get("limit"), 20)]]}

    def _remember(self, body: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        label, graph = self._written(body)
        text, title, when = (str(given.get(key) or "") for key in ("text", "title", "when"))
        return proposed(label, graph, propose_note(graph, text, title, when, self.memory.clock()))

    def _correct(self, body: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        label, _, name = self._meant(body, str(given.get("id") or ""))
        graph = dict(self._graphs(body, write=True))[label]
        return proposed(
            label, graph, propose_correction(graph, name, str(given.get("new") or ""), self.memory.clock())
        )

    def _forget(self, body: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        """What would go, and the command by which the person does it; nothing is changed."""
        what, lines = str(given.get("query") or "").strip(), []
        if not what:
            raise BadInput("forget what? give `query`, words or the id of a note")
        commands = []
        for label, graph in self._graphs(body):
            path = graph.index.resolve(what.partition(":")[2] if what.startswith(f"{label}:") else what)
            paths = [path] if path else notes_about(self.memory.intake, graph, what, said=False)
            if paths:
                lines.append(choice_text(graph, "forget", select_to_forget(graph, ids=paths)))
                commands.append(f"omg forget {' '.join(paths)} --identity {graph.identity.key}")
        if not commands:
            raise NotFound(f"nothing is remembered about {what!r}")
        return {
            "would_forget": "\n".join(lines),
            "commands": commands,
            "text": "Nothing was forgotten. Show the person what would go; they do it in a terminal: "
            + "; or ".join(commands),
        }

    def _status(self, body: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        lines = [f"{label}: {status_line(graph)}" for label, graph in self._graphs(body)]
        lines += [f"{b.host}: nothing kept lately" for b in heartbeats(self.memory.folder) if b.silent]
        return {"text": "\n".join(lines) or "Nothing is remembered yet."}


TOOLS = ("search", "fetch", "recent", "remember", "correct", "forget", "status", "page")


def item_of(label: str, path: str, title: str, text: str) -> dict[str, Any]:
    """A note in the form that `search` and `fetch` have in clients that know them."""
    return {"id": f"{label}:{path}", "title": title, "text": text, "url": f"omg://note/{label}/{path}"}


def proposed(label: str, graph: Graph, path: str) -> dict[str, Any]:
    command = f"omg confirm {path} --identity {graph.identity.key}"
    return {
        "id": f"{label}:{path}",
        "text": f"Noted as the assistant's word. It becomes the person's when they run: {command}",
        "command": command,
    }
