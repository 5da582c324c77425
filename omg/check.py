"""
Asks a model whether a person's words support a claim about the person, and tests which models can do this.

The question shows the claims, and the sentences of people's messages that share words with a claim. If a person may
have answered a proposal ("Yes, do that."), the question also shows the assistant's proposal. Results of tools are never
shown.

- A missing or unknown verdict counts as "not supported".
- A long message is first shown in part. If a claim about it is not supported, the model is asked again with the whole
  message.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from functools import cache
from pathlib import Path
from typing import Any, Literal

from .errors import BadReply, ModelError
from .graph.state import read_object, write_private
from .llm.replies import Ask, ModelQuestion, cut_out, instructions, object_schema, prompt_text
from .message.envelope import cut_middle
from .message.turn import Message
from .text.words import split_sentences, stems_of, text_pieces

Verdict = Literal["supported", "not supported", "contradicted"]
VERDICTS = ("supported", "not supported", "contradicted")
SCHEMA = object_schema("verdicts", verdicts={"type": "object", "additionalProperties": {"type": "string"}})
CLAIM_CHARS = 1_500  # a longer claim counts as not supported, because the model would not see all of it
KNOWN_CHARS = 700  # how much of a note's present text the model sees
CLOCK = re.compile(r"\d:\d\d")


@dataclass(frozen=True, slots=True)
class Claim:
    """
    One text that the model compares with what the person said.

    *of*: index of the edit or proposal that has the text; at night, of the verdict; -1 for a hint. *part*: what the
    text is:

        head      the description of a note, with the properties that the edit sets
        quote     a sentence of the person's, to use as description if the model's own description is not supported
        title     a title that says more than the description
        sentence  a sentence of the note's body
        drop      a sentence to remove from the body; at night, the description of a note that another note replaces
        doubt     the title of a note to mark as contradicted; at night, its description
        hint      a hint on how the conversation continues
        proposal  a note that an assistant proposed and the person may have accepted
    """

    of: int
    part: Literal["head", "quote", "title", "sentence", "drop", "doubt", "hint", "proposal"]
    text: str
    says: Mapping[str, Any] = field(
        default_factory=dict
    )  # what else the edit claims: type, event, replaces, …
    note: str = ""  # the title of the claim's note


@dataclass(frozen=True, slots=True)
class Evidence:
    """
    The texts that claims are compared with. *messages*: in order. *cites*: returns the messages that a claim cites.
    *known*: title → text of notes.
    """

    messages: Sequence[Message]
    cites: Callable[[Claim], Collection[Message]]
    zone: tzinfo
    known: Mapping[str, str] = field(default_factory=dict)


def check_claims(
    claims: Sequence[Claim], evidence: Evidence, ask: Ask, able: Callable[[str], bool], agent: str
) -> list[Verdict] | None:
    """
    Return a verdict for each claim; None if the answering model is not *able* to check. Raises ModelError.
    """
    if not claims:
        return []
    said, cut = said_by_people(claims, evidence)
    verdicts = verdicts_on(claims, said, known=evidence.known, ask=ask, agent=agent, able=able)
    if verdicts is None:
        return None
    refused = [n for n, v in enumerate(verdicts) if v == "not supported"]
    again = [n for n in refused if any(m.id in cut for m in evidence.cites(claims[n]))]
    if again:
        left = [claims[n] for n in again]
        said, _ = said_by_people(left, evidence, whole=True)
        more = verdicts_on(left, said, known=evidence.known, ask=ask, agent=agent, able=able)
        for n, verdict in zip(again, more or (), strict=False):
            verdicts[n] = verdict
    return verdicts


def verdicts_on(
    claims: Sequence[Claim],
    said: Sequence[Mapping[str, Any]],
    *,
    known: Mapping[str, str],
    ask: Ask,
    agent: str,
    able: Callable[[str], bool] = lambda model: True,
) -> list[Verdict] | None:
    """
    Ask the model one question, and return a verdict for each claim; None if the model that answered is not *able* to
    check.

    *said*: messages from `said_by_people`. *known*: title → present text of each note to be changed.

    Raises BadReply if the answer holds no verdicts, and another ModelError if no answer comes.
    """
    asked: dict[str, Any] = {"said": said}
    if known:
        asked["known"] = {cut_middle(t, 200): cut_middle(n, KNOWN_CHARS) for t, n in known.items()}
    asked["claims"] = dict(numbered(claims))
    text = json.dumps(
        asked, ensure_ascii=False, separators=(",", ":")
    )  # a tenth fewer tokens than with spaces
    reply = ask(ModelQuestion(instructions("check", ""), text, SCHEMA, "check", agent))
    if not able(reply.model):
        return None
    given = cut_out(reply.text, "verdicts", "verdicts")["verdicts"]
    if not isinstance(given, Mapping):
        raise BadReply(
            "the model's reply to the question which claims are supported has no `verdicts`; nothing was written."
            " If this happens again, choose another model"
        )
    missing, more = asked["claims"].keys() - given.keys(), given.keys() - asked["claims"].keys()
    if (missing and more) or "0" in more:  # misnumbered: no verdict can be trusted
        return ["not supported" for _ in claims]
    return [
        given[str(n)] if given.get(str(n)) in VERDICTS and len(claim.text) <= CLAIM_CHARS else "not supported"
        for n, claim in enumerate(claims, 1)
    ]


def numbered(claims: Sequence[Claim]) -> Iterator[tuple[str, dict[str, Any]]]:
    """
    Yield (number, JSON object) for each claim, for the question in which the model checks claims.

    An object has the claim's text, and what else the edit claims (`says`, such as the type). Three examples:

        {"text": "Ada lives in Bruges.", "type": "fact"}       the description of a note
        {"more": "She rents a flat."}                          a sentence of the same edit
        {"text": "She has a cat.", "note": "Ada's family"}     a sentence of another edit, with the title of its note
    """
    before = None
    for n, claim in enumerate(claims, 1):
        goes_on = claim.part == "sentence" and before == claim.of
        named = {"note": claim.note} if claim.note and before != claim.of and claim.part != "head" else {}
        key = "more" if goes_on else "text"
        yield str(n), {key: cut_middle(claim.text, CLAIM_CHARS), **claim.says, **named}
        before = claim.of


# --- The evidence: the pieces of each message that share rare words, names, numbers or days with a claim, and the piece
# before and after. A short message is shown whole. A cited message that shares no word with its claim is also shown whole,
# because it may be in another language.


# Most characters that are shown: of a cited message, whole; of a cited message without a shared word; of a message in a
# second question; of any other message, whole; of a piece.
WHOLE_CHARS, CITED_CHARS, AGAIN_CHARS, OTHER_CHARS, PIECE_CHARS = 500, 2_000, 8_000, 120, 160
# Pieces for each claim from the messages that it cites, and from other messages; the least that a piece of another message
# must share with the claim.
BEST, BEST_OTHER, LEAST_SHARED = 3, 1, 0.34
# A message longer than ANSWER_CHARS is shown without the proposal that it answers. A message longer than ASSENT_CHARS is
# shown with only the end of the proposal, because the message itself names what it accepts. Proposals were half of the
# text of the questions.
PROPOSAL_CHARS, ANSWER_CHARS, ASSENT_CHARS, END_CHARS = 700, 400, 120, 240
CODE_CHARS = 400  # how much of a pasted piece of code is shown
CLAUSE_END = re.compile(r"(?<=[,;:])\s+|(?<=[，；、])")


def said_by_people(
    claims: Sequence[Claim], evidence: Evidence, *, whole: bool = False
) -> tuple[list[dict[str, Any]], set[str]]:
    """
    Return people's messages as the question shows them, in order.

    - A message has its day, unless the message shown before has the same day. If any claim names a time of day, cited
      messages also have their time of day.
    - A message cited by a claim comes with the proposal of the assistant before it, as `answered_by` cuts it.
    - A message that no claim cites is shown if it is short. Of a longer one, only sentences that share enough words
      with a claim are shown.

    Also returns the ids of the cited messages that are shown in part. *whole*: show cited messages whole, if possible.
    """
    cited = {m.id for claim in claims for m in evidence.cites(claim)}
    chosen = pieces_shown(claims, evidence)
    timed = any(CLOCK.search(claim.text) for claim in claims)
    told: list[dict[str, Any]] = []
    cut: set[str] = set()
    proposal, day = "", ""
    for m in evidence.messages:
        if m.role == "assistant" and m.text:
            proposal = m.text
        if m.role != "user":
            continue
        shown = said_in(m, chosen, cited=m.id in cited, whole=whole)
        at = datetime.fromtimestamp(m.timestamp / 1000, evidence.zone)
        on = f"{at:%A %Y-%m-%d %H:%M}" if timed and m.id in cited else f"{at:%A %Y-%m-%d}"
        head = ({} if on == day else {"on": on}) | ({"by": m.sender} if m.sender else {})
        if m.id in cited:
            told.append({"cited": True, **head, **answered_by(m, proposal), **shown})
            cut |= {m.id} if (shown["words"], shown.get("about", "")) != (m.spoken, passed_on(m)) else set()
        elif shown:
            told.append({**head, **shown})
        day = on if shown else day
        proposal = ""
    return told, cut


def said_in(
    message: Message, chosen: Mapping[tuple[str, str], Collection[int]], *, cited: bool, whole: bool
) -> dict[str, Any]:
    """Return the part of *message* to show; {} if *message* is long, not *cited*, and has no *chosen* piece."""
    words, passed = message.spoken, passed_on(message)
    most = AGAIN_CHARS if whole else CITED_CHARS
    pieces = chosen.get((message.id, "words"))
    shown = shown_of(words, pieces, WHOLE_CHARS if cited else OTHER_CHARS, most, whole=whole and cited)
    if not cited:
        return {"words": shown} if shown and (shown == words or pieces) else {}
    about = shown_of(passed, chosen.get((message.id, "about")), PROPOSAL_CHARS, most, whole=whole)
    code = [message.text[s.start : s.end][:CODE_CHARS] for s in message.material if s.kind == "code"]
    return ({"about": about} if about else {}) | ({"pasted": code} if code else {}) | {"words": shown}


def answered_by(message: Message, proposal: str) -> dict[str, str]:
    """
    Return the part of the assistant's *proposal* that *message* may answer, as {"answers": part}.

    - If *message* is very short ("Yes, do that."), the part is the whole *proposal*. A long *proposal* loses its
      middle.
    - If *message* is longer, the part is the end of *proposal*.
    - If *message* is too long for an answer, or nothing was proposed, {} is returned.
    """
    if not proposal or len(message.spoken) > ANSWER_CHARS:
        return {}
    assent = len(message.spoken) <= ASSENT_CHARS
    return {"answers": cut_middle(proposal, PROPOSAL_CHARS) if assent else proposal[-END_CHARS:]}


def passed_on(message: Message) -> str:
    """Return the text that *message* quotes, forwards or pastes, except code."""
    return "\n".join(message.text[s.start : s.end] for s in message.material if s.kind != "code")


def shown_of(text: str, chosen: Collection[int] | None, short: int, most: int, *, whole: bool) -> str:
    """
    Return the part of *text* that the question to the model shows.

    - A text of at most *short* characters is returned whole.
    - From a longer text, only the *chosen* pieces are returned, by their numbers in `pieces_of`.
    - With *whole*, or without chosen pieces, a longer text is returned whole, too, up to *most* characters. From a text
      longer than *most*, the middle is cut out.
    """
    if whole or len(text) <= short or not chosen:
        return text if len(text) <= short else cut_middle(text, most)
    parts, last = [], -1
    for n, piece in enumerate(pieces_of(text)):
        if n in chosen:
            parts.append(piece if n == last + 1 else f"… {piece}")
            last = n
    return " ".join(parts) + (" …" if last + 1 < len(pieces_of(text)) else "")


def pieces_of(text: str) -> list[str]:
    """Split *text* into sentences, and long sentences between clauses."""
    found: list[str] = []
    for sentence in split_sentences(text):
        run = ""
        for clause in CLAUSE_END.split(sentence) if len(sentence) > PIECE_CHARS else [sentence]:
            run = f"{run} {clause}".strip()
            if len(run) >= PIECE_CHARS / 2:
                found += [run[part] for part in text_pieces(run, 4 * PIECE_CHARS)]
                run = ""
        found += [run] * bool(run)
    return found


def pieces_shown(claims: Sequence[Claim], evidence: Evidence) -> dict[tuple[str, str], set[int]]:
    """Return (message id, kind) → the numbers of the pieces to show. The kind "words" means the person's own words. The
    kind "about" means the text that the person quoted."""
    places: dict[str, set[tuple[str, str, int]]] = defaultdict(set)  # word → pieces with it
    lengths: dict[tuple[str, str], int] = {}
    for m in evidence.messages:
        for kind, text in (("words", m.spoken), ("about", passed_on(m))) if m.role == "user" else ():
            pieces = pieces_of(text)
            lengths[m.id, kind] = len(pieces)
            for n, piece in enumerate(pieces):
                for word in stems_of(piece):
                    places[word].add((m.id, kind, n))
    found: dict[tuple[str, str], set[int]] = defaultdict(set)
    for claim in claims:
        cited = {m.id for m in evidence.cites(claim)}
        shared: Counter[tuple[str, str, int]] = Counter()
        words = stems_of(f"{claim.text} {claim.says.get('replaces', '')}")
        for word in words:
            shared.update(dict.fromkeys(places.get(word, ()), 1 / max(1, len(places.get(word, ())))))
        ranked = sorted(shared, key=lambda place: (-shared[place], place))
        near = [p for p in ranked if p[0] in cited][:BEST]
        others = [p for p in ranked if p[0] not in cited and shared[p] >= LEAST_SHARED][:BEST_OTHER]
        for id, kind, n in [*near, *others]:
            beside = range(max(0, n - 1), min(n + 2, lengths[id, kind])) if (id, kind, n) in near else (n,)
            found[id, kind].update(beside)
    return found


# --- Twenty fixed claims that test whether a model can check. A model is tested once, in four questions, before its first
# batch is noted.
#
# A model with fewer than ENOUGH right verdicts is not asked to check. Notes then quote the person's own sentences.


ENOUGH = 19
FILE = "models.json"  # file in the home: a model and a hash of the test → the number of right verdicts
WAIT_S = 600  # how long a model's first batch waits if the model cannot be tested
GUARD = threading.Lock()  # held only for a moment: no model is called under the lock
UNDER_WAY: dict[tuple[Path, str], Future[bool]] = {}  # by home and model


def examine(ask: Ask) -> tuple[int, str]:
    """
    Test the model behind *ask* with twenty claims whose right verdicts are known (prompts/check-cases.json).

    Returns how many verdicts are right, and the name of the model ("" if several models answered). Raises ModelError.
    """
    right, models = 0, set[str]()

    def heard(model: str) -> bool:
        models.add(model)
        return True

    for case in fixed_cases():
        given = [dict(c) for c in case["claims"].values()]
        expected = [c.pop("expect").split(" or ") for c in given]
        claims = [Claim(n, "head", c.pop("text"), c) for n, c in enumerate(given)]
        known = case.get("known", {})
        verdicts = verdicts_on(claims, case["said"], known=known, ask=ask, agent="", able=heard) or ()
        right += sum(v in wanted for v, wanted in zip(verdicts, expected, strict=True))
    return right, models.pop() if len(models) == 1 else ""


@cache
def fixed_cases() -> list[dict[str, Any]]:
    file = Path(__file__).parent / "prompts" / "check-cases.json"
    return list(json.loads(file.read_text(encoding="utf-8")))


def examined(home: Path, model: str) -> int | None:
    """
    Return how many of the twenty test claims *model* got right; None if *model* never took the present test.
    """
    return known_results(home).get(key_of(model))


def note_result(home: Path, key: str, value: int) -> None:
    with GUARD:
        write_private(home / FILE, json.dumps(known_results(home) | {key: value}, indent=1))


def is_able(home: Path, model: str, ask: Ask, now: datetime) -> bool:
    """
    Return whether *model* gets at least ENOUGH (19) of twenty test claims right.

    The first call asks the model the test claims through *ask*, and stores the result in the home. Calls from other
    threads wait for this test, and share its result. If the model gives no usable answer to the test:

    - up to WAIT_S (ten minutes) after the first try: raises ModelError
    - later: returns False
    """
    if (right := examined(home, model)) is not None:
        return right >= ENOUGH
    with GUARD:
        other, own = UNDER_WAY.get((home, model)), Future[bool]()
        if other is None:
            UNDER_WAY[home, model] = own
    if other is not None:
        return other.result()  # another thread tests the model
    try:
        own.set_result(able_by_examination(home, model, ask, now))
    except BaseException as e:
        own.set_exception(e)
    finally:
        with GUARD:
            del UNDER_WAY[home, model]
    return own.result()


def able_by_examination(home: Path, model: str, ask: Ask, now: datetime) -> bool:
    if (known := examined(home, model)) is not None:  # another caller has just tested the model
        return known >= ENOUGH
    since = known_results(home).get(f"since {key_of(model)}")
    if since is None:
        since = int(now.timestamp())
        note_result(home, f"since {key_of(model)}", since)
    try:
        right, answered = examine(ask)
    except ModelError:
        if now.timestamp() - since < WAIT_S:
            raise
        return False
    note_result(home, key_of(answered or model), right if answered else 0)
    return (examined(home, model) or 0) >= ENOUGH


def known_results(home: Path) -> dict[str, int]:
    return {model: right for model, right in read_object(home / FILE).items() if isinstance(right, int)}


def key_of(model: str) -> str:
    asked = prompt_text("check") + json.dumps(fixed_cases())
    return f"{model} {hashlib.blake2b(asked.encode(), digest_size=4).hexdigest()}"
