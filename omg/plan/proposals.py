"""
A proposal: a note of the assistant's that becomes the user's once their own words bear it out, or they confirm it.

Its property `proposes` says what it becomes: a note of a type, or a correction of another note, whose sentence it quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from ..errors import BadInput, BadNode, NotFound
from ..graph.graph import Graph
from ..index.entries import Entry
from ..node.fields import TYPES, Source
from ..node.markdown import bare_target, wikilink
from ..node.note import Node
from ..text.sentences import split_sentences
from .bodies import as_read
from .corrections import Correction, draft_correction
from .drafts import Plan
from .edits import Edit, short_title

# "Remember that …", "please note: …", "and don't forget, …". What is about another's words goes on otherwise.
ASKS_TO_REMEMBER = re.compile(
    r"^(?:(?:and|also|so|ok|okay|please|can you|could you),? )*"
    r"(?:remember|memori[sz]e|note|keep in mind|don['’]t forget|write down|save)"
    r"(?: (?:this|down|please))*(?: that|[:,])? "
)
TAKES_PLACE = re.compile(r"^It is to replace: “(.+)”$", re.M)


def holds_plainly(text: str, words: str) -> bool:
    """
    Whether a person who said *words* said *text*: it is a whole sentence of theirs, to the letter, and no question. An
    opening that asks to remember it, in English, does not count: "Please remember that I play the cello."
    """
    wanted = as_read(text).rstrip(".!")
    said = (as_read(s).rstrip(".!") for s in split_sentences(words) if not s.endswith(("?", "？", "؟")))
    return any(wanted in (s, ASKS_TO_REMEMBER.sub("", s)) for s in said)


def proposed_notes(graph: Graph) -> Iterator[Entry]:
    """What waits to be confirmed."""
    for entry in graph.index.entries():
        ours = entry.origin == "assistant" and entry.path.startswith("nodes/")
        with suppress(BadNode, NotFound):  # a person has changed or removed it since the index was made
            if ours and graph.vault.read(entry.path).proposes:
                yield entry


def correction_proposed(node: Node, made: Correction, sources: tuple[Source, ...]) -> Edit:
    """The proposal that *node* says *made* from now on."""
    return Edit(
        "create",
        title=short_title(made.says),
        description=made.says,
        body=f"It is to replace: “{made.was}”",
        event=made.event,
        sources=sources,
        origin="assistant",
        links=(node.path,),
        proposes=wikilink(node.path),
    )


def corrected_by(node: Node) -> tuple[str, Correction] | None:
    """The path of the note that the proposal *node* corrects, and the correction; None where it proposes something else."""
    found = TAKES_PLACE.search(node.body)
    if node.proposes in TYPES or found is None:
        return None
    return bare_target(node.proposes), Correction(found[1], node.description, node.event)


def take_up(plan: Plan, path: str, sources: Sequence[Source] = ()) -> str:
    """
    Draft what the proposal at *path* proposes, as the user's; returns the path of the note that says it now. Raises
    BadInput where it proposes nothing, NotFound where the note that it corrects is gone.
    """
    node = plan.draft(path).node
    if not node.proposes:
        raise BadInput(f"{path} proposes nothing; there is nothing to confirm")
    cited = tuple(dict.fromkeys((*node.sources, *sources)))
    if (found := corrected_by(node)) is not None:
        target, made = found
        old = plan.draft(target).node
        made = replace(made, event=made.event if made.event != old.event else None, event_was=old.event)
        done = draft_correction(plan, target, made, cited).path
        plan.mark_superseded(path, done)
        return done
    kind = node.proposes if node.proposes in TYPES else node.type
    path = plan.amend(path, origin="user", proposes="")
    if kind == node.type:
        return path
    changed = Edit(
        "update", title=node.title, description="", type=kind, sources=cited, origin="user", target=path
    )
    return plan.update(replace(changed, sets=frozenset(["type"]))) or path
