"""
`omg forget`: lists what each choice would take; with `--yes`, forgets it. Names what OMG cannot reach.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import BadInput, NotFound
from ..plural import how_many
from .base import IdentityOption, JsonFlag, app, opened_memory, print_value, time_argument

if TYPE_CHECKING:
    from ..forget.redacting import Redaction
    from ..forget.selection import Selection
    from ..graph.graph import Graph
    from ..memory import Memory

SHOWN = ("paths", "messages", "again", "linking", "left", "trash", "beyond")


@app.command("forget")
def forget_command(
    ids: Annotated[list[str] | None, typer.Argument(help="Notes.")] = None,
    session: Annotated[str | None, typer.Option(help="Everything said in this session.")] = None,
    before: Annotated[
        str | None, typer.Option(help="Everything said before this day; notes of your own stay.")
    ] = None,
    matching: Annotated[
        str | None, typer.Option(help="Every note and message that holds this text, however it is written.")
    ] = None,
    redact: Annotated[
        bool, typer.Option("--redact", help="With --matching: take out only the text itself; all else stays.")
    ] = False,
    only: Annotated[
        bool, typer.Option("--only", help="With notes: only these; the messages they came from stay.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do it; without it the command only says what each choice takes.")
    ] = False,
    identity: IdentityOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Forget notes and the messages they came from, for good, or only a text, or only a note. Says first what would go."""
    from ..curate.notes import forget_selection

    if not ids and session is None and before is None and not matching:
        raise BadInput("forget what? name notes, or give --session, --before or --matching")
    if redact and (not matching or ids or session is not None or before is not None):
        raise BadInput("--redact takes out a text: give it with --matching, and nothing else beside")
    if only and (not ids or redact or matching or session is not None or before is not None):
        raise BadInput("--only is for notes: name them, and nothing else beside")
    with opened_memory(vectors=False) as memory:
        memory.take_in()
        graph = graph_to_forget(memory, identity, session)
        start = time_argument(before, "--before", memory.registry.zone)
        said = {
            "session": session,
            "before_ms": start and int(start.timestamp() * 1000),
            "matching": matching,
        }
        choices = forget_choices(graph, ids or [], redact=redact, **said)
        chosen = "redact" if redact else "only" if only else "forget"
        what = choices[chosen]
        if not any(choices.values()) or (yes and not what):
            for place in unreached(what):
                print(f"omg: {place}", file=sys.stderr)
            raise NotFound("nothing of that is remembered; nothing was changed")
        shown = {chosen: what} if yes or redact or only else choices
        text = "\n".join(choice_lines(graph, shown, done=yes))
        if yes:
            forget_selection(memory.intake, graph, what)
        taken = {name: {f: getattr(w, f) for f in SHOWN if hasattr(w, f)} for name, w in choices.items()}
        print_value({"done": yes, "choice": chosen, **taken[chosen], "choices": taken}, as_json, text)


def graph_to_forget(memory: Memory, identity: str | None, session: str | None) -> Graph:
    """The graph of *identity*; without one that in which something was said in *session*, else the owner's."""
    from ..forget.places import every_message

    if identity is None and session is not None:
        said_in = [g for g in memory.registry.graphs() if any(s == session for s, _ in every_message(g))]
        if len(said_in) > 1:
            keys = ", ".join(graph.identity.key for graph in said_in)
            raise BadInput(f"several graphs have something of {session!r}; give --identity, one of: {keys}")
        if said_in:
            return said_in[0]
    return memory.find(identity)


def forget_choices(
    graph: Graph, ids: list[str], *, redact: bool, **said: Any
) -> dict[str, Selection | Redaction]:
    """By its name, what each choice takes that there is."""
    from ..curate.notes import find_note, select_to_forget
    from ..forget.redacting import select_words
    from ..forget.selection import select_alone

    choices: dict[str, Selection | Redaction] = {"forget": select_to_forget(graph, ids=ids, **said)}
    matching, others = said["matching"], said["session"] or said["before_ms"]
    if matching and not ids and not others:
        # "forgotten" itself cannot be taken out of a text
        with nullcontext() if redact else suppress(BadInput):
            choices["redact"] = select_words(graph, matching)
    if ids and not matching and not others:
        choices["only"] = select_alone(graph, [find_note(graph, id) for id in ids])
    return choices


def choice_lines(graph: Graph, shown: dict[str, Selection | Redaction], *, done: bool) -> list[str]:
    """What goes, or has gone, for a person to read."""
    lines: list[str] = []
    for name, what in shown.items():
        lines += {"forget": forget_lines, "only": only_lines, "redact": redact_lines}[name](graph, what, done)
    if not done:
        how = {
            "forget": "add --yes to forget it all",
            "redact": "--redact --yes for the text alone",
            "only": "--only --yes for the notes alone",
        }
        lines.append(f"Nothing was changed. It cannot be undone; {', '.join(how[name] for name in shown)}.")
    for what in shown.values():
        lines += [place for place in unreached(what) if place not in lines]
    lines.append("OpenClaw's own transcripts and memory files are not touched.")
    return lines


def listed_notes(graph: Graph, paths: tuple[str, ...]) -> list[str]:
    from ..curate.notes import is_untouched

    return [f"  {p}{'' if is_untouched(graph, p) else '  (with what you wrote in it)'}" for p in paths]


def forget_lines(graph: Graph, what: Any, done: bool) -> list[str]:
    lines = ["forgotten:" if done else "would be forgotten:", *listed_notes(graph, what.paths)]
    lines += [f"  {path}" for path in what.trash]
    lines += message_lines(what)
    if what.again:
        lines.append(f"{how_many(len(what.again), 'other message')} of these notes stay, to be observed anew")
    if what.linking:
        lines.append("without their links to it: " + ", ".join(what.linking))
    return lines


def only_lines(graph: Graph, what: Any, done: bool) -> list[str]:
    head = "forgotten, and the messages stay:" if done else "or only, and the messages stay:"
    return [head, *listed_notes(graph, what.paths)]


def redact_lines(graph: Graph, what: Any, done: bool) -> list[str]:
    from ..forget.words import BLANK

    head = f"replaced by {BLANK} in:" if done else f"or only the text, replaced by {BLANK} in:"
    return [
        head,
        *(f"  {path}" for path in (*what.paths, *what.trash)),
        *message_lines(what),
    ]


def message_lines(what: Selection | Redaction) -> list[str]:
    return [f"  {how_many(len(what.messages), 'message')}"] if what.messages else []


def unreached(what: Selection | Redaction) -> list[str]:
    """What is left to others, with its path."""
    left = [
        f"{path} has it too, in what you wrote there: mend it yourself" for path in getattr(what, "left", ())
    ]
    return [*left, *(f"not reached: {place}" for place in what.beyond)]
