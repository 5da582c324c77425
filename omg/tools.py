"""
What the agent's tools, the /omg command and `omg status` answer.

    tool       omg_search, omg_open, omg_remember, omg_forget
    command    /omg status | search … | forget …
    corpus     memory_search's extra corpus, by session
    status     the same for people and scripts

Every answer is of the one graph that the asking session may see; a name from another graph is as unknown
as one that never was. Not here: finding, writing, forgetting; this only carries between them and a caller.
"""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from . import curate, dates, identity
from .edit import Edit
from .errors import BadInput, NotFound, OmgError, in_words
from .graph import Graph
from .home import Home
from .index import Hit
from .index.terms import terms
from .node import GENERATED, TYPES, Source
from .turn import milliseconds
from .turn.redact import redact

ASK = "Ask the user. If they agree in their next message, call omg_forget with this code alone: "
CODE_LIVES_S = 900  # a forget code; long enough to read what would go, short enough to be forgotten


@dataclass(frozen=True, slots=True)
class Issued:
    """What a forget code stands for, and where it was given: in whose graph, which run, after which message."""

    key: str
    run: str
    message: str  # entry id of the user's newest message then
    at: float  # monotonic seconds
    paths: tuple[str, ...]


@dataclass(slots=True)
class Codes:
    """One-use codes that make a forget real, each for one identity and a later turn of its user."""

    issued: dict[str, Issued] = field(default_factory=dict)

    def issue(self, key: str, run: str, message: str, paths: Sequence[str]) -> str:
        now = time.monotonic()
        self.issued = {c: i for c, i in self.issued.items() if now - i.at < CODE_LIVES_S}
        code = secrets.token_hex(3)
        self.issued[code] = Issued(key, run, message, now, tuple(paths))
        return code

    def redeem(self, code: str, key: str, run: str, message: str) -> tuple[str, ...]:
        """
        The paths *code* stands for. *run* and *message*: of the user's turn that it is used in, "" where it is none.

        Raises BadInput; a code tried too early stays good for the user's next turn.
        """
        known = self.issued.get(code)
        if known is None or known.key != key or time.monotonic() - known.at >= CODE_LIVES_S:
            raise BadInput("that code is unknown or has expired; ask again without a code for a new one")
        if not run or not message or run == known.run or message == known.message:
            raise BadInput(
                "the user has to answer first: show them what would go, and use the code in their next turn"
            )
        del self.issued[code]
        return known.paths


def of(home: Home, context: Mapping[str, Any], *, write: bool = False, create: bool = False) -> Graph | None:
    """The graph the asking session may see; None if it has none. A reader waits for nobody who is at the vault."""
    who = home.identity_of(
        str(context.get("sessionKey") or ""),
        channel=str(context.get("channel") or ""),
        sender=str(context.get("senderId") or ""),
        owner=identity.says_owner(context.get("senderIsOwner")),
    )
    if who is None or not (create or (home.folder / "graphs" / who.folder).is_dir()):
        return None
    return home.graph(who) if write or create else home.opened(who)


def tool(home: Home, body: Mapping[str, Any], codes: Codes) -> dict[str, Any]:
    """`{name, params, context}` → `{text, details}`. What goes wrong is told to the model in words, as `text`."""
    name, params, context = str(body.get("name")), mapping(body, "params"), mapping(body, "context")
    graph = of(home, context, write=name == "omg_forget", create=name == "omg_remember")
    if graph is None:
        return {"text": "Nothing is remembered for this conversation.", "details": {}}
    try:
        if name == "omg_search":
            return search(home, graph, params)
        if name == "omg_open":
            return open_note(graph, params)
        if name == "omg_remember":
            return remember(home, graph, params, context)
        if name == "omg_forget":
            return forget(home, graph, params, context, codes)
    except OmgError as e:
        return {"text": str(e), "details": {"error": type(e).__name__}}
    raise BadInput(f"no tool {name!r}")


def mapping(body: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = body.get(key)
    return dict(value) if isinstance(value, Mapping) else {}


def limit(value: object, default: int) -> int:
    return int(max(1, min(value, 20))) if isinstance(value, int | float) and value == value else default


def search(home: Home, graph: Graph, params: Mapping[str, Any]) -> dict[str, Any]:
    query = str(params.get("query") or "").strip()
    if not query:
        raise BadInput("omg_search needs a `query`")
    hits = graph.index.search(query, limit(params.get("limit"), 8), now=home.clock())
    lines = [
        f"[[{h.entry.path}]] — {h.entry.description}" + (f" ({h.entry.event})" if h.entry.event else "")
        for h in hits
    ]
    return {"text": "\n".join(lines) or "Nothing found.", "details": {"hits": [*map(told, hits)]}}


def told(hit: Hit) -> dict[str, Any]:
    entry = hit.entry
    return {
        "path": entry.path,
        "description": entry.description,
        "score": round(hit.score, 3),
        "why": hit.why,
    }


def found(home: Home, body: Mapping[str, Any]) -> dict[str, Any]:
    """What `omg search` prints. *body*: query, k, and identity, None for the owner's."""
    graph = home.find(body.get("identity"))
    return {"hits": [*map(told, graph.index.search(str(body["query"]), int(body["k"]), now=home.clock()))]}


def open_note(graph: Graph, params: Mapping[str, Any]) -> dict[str, Any]:
    path = curate.found(graph, named(params.get("id")))
    node = graph.vault.read(path)
    messages = graph.index.messages([s.id for s in node.sources])[:10]
    said = "\n".join(f"- {dates.day_of(m.timestamp, graph.zone)} {m.role}: {m.text[:400]}" for m in messages)
    made = (
        "OMG makes this page from the notes"
        if node.type in GENERATED
        else "no message is named as its source"
    )
    waiting = "it is not taken in yet" if node.sources else made
    return {
        "text": f"{graph.vault.text(path).strip()}\n\nIt was said:\n{said or f'- ({waiting})'}",
        "details": {"path": path},
    }


def named(value: object) -> str:
    """The note that a model or a person means: they write the name alone, or the whole [[link|label]]."""
    return str(value or "").strip().removeprefix("[[").removesuffix("]]").split("|")[0].strip()


def remember(
    home: Home, graph: Graph, params: Mapping[str, Any], context: Mapping[str, Any]
) -> dict[str, Any]:
    """
    Only what the user asked for in this very turn: their message is the source, as the transcript has it.

    A page or a tool may have talked the model into this. So the user vouches only for what shares words with
    what they said; the rest is the assistant's, and does not become a preference, a decision or who they are.
    """
    message = mapping(context, "userMessage")
    text, title = (redact(" ".join(str(params.get(k) or "").split()))[0] for k in ("text", "title"))
    if not text:
        raise BadInput("omg_remember needs a `text`, one line")
    if not said_by_user(message):
        raise BadInput("omg_remember needs a message of the user in this turn as its source; there is none")
    at = milliseconds(message.get("timestamp")) or home.now_ms()
    said = vouched(text, str(message.get("text") or ""))
    kind = str(params.get("type") or "fact")
    edit = Edit(
        op="create",
        title=title or text[:50],
        description=text,
        type=kind if kind in TYPES and (said or kind in ("fact", "episode")) else "fact",
        sources=(Source(str(context["sessionKey"]), str(message["id"]), at),),
        origin="user" if said else "assistant",
        day=dates.day_of(at, home.zone),
    )
    path = curate.write(graph, [edit], home.clock(), f"remembered {edit.title}")
    return {"text": f"Remembered as [[{path}]].", "details": {"path": path}}


def said_by_user(message: Mapping[str, Any]) -> bool:
    """Whether a person wrote this message of the transcript, and not the gateway in their place."""
    return bool(message.get("id")) and mapping(message, "provenance").get("kind") in (
        None,
        "",
        "external_user",
    )


def vouched(text: str, said: str) -> bool:
    """Whether *text* shares a third of its words with what was *said*: "remember that" alone vouches for nothing."""
    words, heard = ({t.match for t in terms(x)} for x in (text, said))
    return len(words & heard) * 3 >= max(1, len(words))


def forget(
    home: Home, graph: Graph, params: Mapping[str, Any], context: Mapping[str, Any], codes: Codes
) -> dict[str, Any]:
    key, run, message = graph.identity.key, str(context.get("runId") or ""), mapping(context, "userMessage")
    id = str(message.get("id") or "")
    if code := str(params.get("code") or "").strip():
        # A heartbeat, a sub-agent's report: such a turn comes later, too, and nobody has agreed in it.
        theirs = identity.remembered(context) and said_by_user(message)
        paths = codes.redeem(code, key, *((run, id) if theirs else ("", "")))
        curate.forget(home, graph, curate.selection(graph, ids=paths))
        return {
            "text": f"Forgotten: {len(paths)} notes and the messages they came from.",
            "details": {"paths": list(paths)},
        }
    what = named(params.get("query") or params.get("id"))
    if not what:
        raise BadInput("omg_forget needs an `id` or a `query`, or the `code` of an earlier call")
    path = graph.index.resolve(what)
    hits = (
        [path] if path else [h.entry.path for h in graph.index.search(what, 5, now=home.clock(), walk=False)]
    )
    if not hits:
        raise NotFound(f"nothing is remembered about {what!r}")
    going = list(curate.selection(graph, ids=hits).paths)  # other notes may cite the same messages
    lines = [f"- [[{p}]] — {e.description}" for p in going if (e := graph.index.entry(p))]
    code = codes.issue(key, run, id, going)
    text = "This would be forgotten, with the messages it came from:\n" + "\n".join(lines)
    return {
        "text": f"{text}\n{ASK}{code}",
        "details": {"code": code, "paths": going},
    }


def command(home: Home, body: Mapping[str, Any], codes: Codes) -> dict[str, Any]:
    """`/omg status`, `/omg search WORDS`, `/omg forget WORDS`, `/omg forget CODE`."""
    context = mapping(body, "context")
    verb, _, rest = str(body.get("args") or "status").strip().partition(" ")
    graph = of(home, context, write=verb == "forget")
    if graph is None:
        return {"text": "Nothing is remembered for this conversation yet."}
    try:
        if verb == "status":
            return {"text": summary(graph)}
        if verb == "search":
            return {"text": str(search(home, graph, {"query": rest})["text"])}
        if verb == "forget":
            # A command is always the user's own turn, so each one counts as a turn and a message of its own.
            once = secrets.token_hex(4)
            context |= {"trigger": "user", "runId": once, "userMessage": {"id": once}}
            params = {"code": rest.strip()} if rest.strip() in codes.issued else {"query": rest}
            text = str(forget(home, graph, params, context, codes)["text"])
            return {"text": text.replace(ASK, "To do it, send: /omg forget ")}
    except OmgError as e:
        return {"text": str(e)}
    return {"text": "/omg status · /omg search WORDS · /omg forget WORDS"}


def summary(graph: Graph) -> str:
    entries = [e for e in graph.index.entries() if e.path.startswith("nodes/")]
    waiting = graph.pending()
    state = graph.state()
    trouble = f" {state.error}" if state.error and waiting else ""
    return f"{len(entries)} notes are remembered; {len(waiting)} turns wait to be observed.{trouble}"


def corpus(home: Home, body: Mapping[str, Any]) -> dict[str, Any]:
    """What `memory_search` and `memory_get` of this session may see of the graph, in their form."""
    params, graph = mapping(body, "params"), of(home, mapping(body, "context"))
    if body.get("op") == "get":
        path = graph and graph.index.resolve(
            str(params.get("lookup") or params.get("path") or "").removeprefix("omg/")
        )
        entry = graph.index.entry(path) if graph and path else None
        if graph is None or entry is None:
            return {"result": None}
        text = graph.vault.text(entry.path)
        return {
            "result": {
                "corpus": "omg",
                "path": f"omg/{entry.path}",
                "title": entry.title,
                "kind": entry.type,
                "content": text,
                "fromLine": 1,
                "lineCount": text.count("\n") + 1,
            }
        }
    hits = (
        graph.index.search(
            str(params.get("query") or ""), limit(params.get("maxResults"), 6), now=home.clock()
        )
        if graph
        else []
    )
    return {
        "results": [
            {
                "corpus": "omg",
                "path": f"omg/{h.entry.path}",
                "title": h.entry.title,
                "kind": h.entry.type,
                "score": round(min(h.score, 1.0), 3),
                "snippet": h.entry.description,
                "id": h.entry.id,
                "startLine": 1,
                "endLine": 1,
                "citation": f"omg/{h.entry.path}",
            }
            for h in hits
        ]
    }


def status(home: Home) -> dict[str, Any]:
    """What is up, what waits and why, and what it cost today. Shapes: see the keys; tokens and usd are of today."""
    spent = home.ledger.today(home.clock())
    observer = home.models()
    return {
        "home": str(home.folder),
        "observer": ", else ".join(observer),
        "offline": observer[0] == "offline",
        "spool": len(home.drops()),
        "unreadable_drops": len(list((home.folder / "spool" / "bad").glob("*.json"))),
        "today": {
            "calls": spent.calls,
            "tokens": spent.tokens,
            "usd": round(spent.usd, 4),
            "cap_tokens": home.ledger.cap_tokens,
            "cap_usd": home.ledger.cap_usd,
        },
        "graphs": [status_of(home, who) for who in home.identities()],
    }


def status_of(home: Home, who: identity.Identity) -> dict[str, Any]:
    try:
        return graph_status(home, home.graph(who, keep=False))
    except (
        OmgError,
        OSError,
        sqlite3.Error,
    ) as e:  # one vault that is out of reach is not the others' trouble
        return {"identity": who.key, "error": in_words(e)}


def graph_status(home: Home, graph: Graph) -> dict[str, Any]:
    state, pending, options = home.standing(graph), graph.pending(), home.config.observation
    waiting = sum(p.tokens for p in pending)
    return {
        "identity": graph.identity.key,
        "vault": str(graph.vault.root),
        "notes": sum(e.path.startswith("nodes/") for e in graph.index.entries()),
        "windows": {
            "messages": {
                "tokens": max((s.window for s in state.sessions.values()), default=0),
                "threshold": options.message_tokens,
            },
            "pending": {"tokens": waiting, "threshold": round(home.step(state)), "turns": len(pending)},
            "reflection": {
                "tokens": state.changed_tokens,
                "threshold": home.config.reflection.observation_tokens,
            },
        },
        "open_receipts": len(list((graph.folder / "receipts").glob("*.open.json"))),
        "due": home.due(graph),
        "waiting_because": home.waits(graph),
        "failures": state.failures,
        "observed": moment(state.observed_ms),
        "reflected": moment(state.reflected_ms),
        "unreadable": graph.index.bad(),
        "sessions": {
            key: {"task": s.task, "activated": moment(s.activated_ms), "reason": s.reason, "window": s.window}
            for key, s in state.sessions.items()
        },
    }


def observer_text(answer: Mapping[str, Any]) -> str:
    """Which model observes, and what keeps it from it, for a person."""
    daemon, name = answer.get("daemon") or {}, str(answer["observer"])
    if answer["offline"]:
        return f"{name} (rules, no model: near-verbatim notes)"
    if not name.startswith("gateway"):
        return name
    text = name.replace("gateway", "the agent's own model, asked through the gateway", 1)
    if daemon.get("lent"):
        text += f" ({daemon['lent']} answered last)"
    if trouble := daemon.get("trouble"):
        return f"{text}\n          not now: {trouble}"
    if daemon.get("polled_s") is None:
        return f"{text}\n          not now: no gateway lends it; what is said waits until one is up"
    return text


def status_text(answer: Mapping[str, Any]) -> str:
    daemon, today = answer.get("daemon"), answer["today"]
    cap = f" of {today['cap_tokens']:,}" if today["cap_tokens"] else ""
    lines = [
        f"home      {answer['home']}",
        f"daemon    {'up, pid ' + str(daemon['pid']) if daemon else answer.get('away') or 'not running'}",
        f"observer  {observer_text(answer)}",
        f"today     {today['calls']} call{'s' * (today['calls'] != 1)}, {today['tokens']:,}{cap} tokens, ${today['usd']:.4f}",
    ]
    if answer["unreadable_drops"]:
        drops = f"{answer['unreadable_drops']} drop{'s' * (answer['unreadable_drops'] != 1)}"
        lines.append(f"spool     {drops} could not be read; see {answer['home']}/spool/bad")
    for g in answer["graphs"]:
        if "error" in g:
            lines += [f"\n{g['identity']}", f"  out of reach: {g['error']}"]
            continue
        waiting = g["windows"]["pending"]
        turns = f"{waiting['turns']} turn{'s' * (waiting['turns'] != 1)}"
        lines += [
            f"\n{g['identity']}",
            f"  vault     {g['vault']}",
            f"  notes     {g['notes']}",
            f"  waiting   {turns}, {waiting['tokens']:,} of {waiting['threshold']:,} tokens",
        ]
        if g["waiting_because"] and waiting["turns"]:
            lines.append(f"  because   {g['waiting_because']}")
        lines.append(f"  observed  {g['observed'] or 'never'}; reflected {g['reflected'] or 'never'}")
        lines += [f"  unreadable {path}: {why}" for path, why in g["unreadable"].items()]
    return "\n".join(lines)


def moment(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds") if ms else ""
