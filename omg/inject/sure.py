"""
How sure a find must be for a prompt to be given anything: most prompts ask nothing of memory.

    asks_of_memory   whether there is a word in it that could be about something
    is_sure          whether what was found answers it well enough

Pure. One rule: a figure has its measurement, which leaves one conversation out (bench/silence.py, bench/LOG.md).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from ..index.entries import Hit
from ..index.scores import ParsedQuery
from ..text.words import STOP
from .passages import Said

# How sure a find is at the least, where the prompt asks of others or of anything, and where it asks in the first person.
SURE, SURE_OF_OWN = 0.36, 0.19
# Of a message's score: it shares words with what it has nothing to do with more often than a note.
SAID_SHARE = 0.7
WRITTEN_ALONE = 0.5  # of the share of the prompt's words that a message has: where an archive is small, all words are common
NAMES_SHARE = 0.5  # where no name in it is known here
NAME_KNOWN = 0.1  # more, where one is
# By how much a find is surer that is nearer in meaning than TYPICAL: half of what fits is above a cosine of .68, nine
# tenths above .46; of what does not fit, one tenth is above .44. With MiniLM the same but for .03.
MEANING, TYPICAL = 0.4, 0.45

OF_ONES_OWN = re.compile(
    r"\b(?:i|me|my|mine|myself|we|us|our|ours|ich|mir|mich|mein\w*|wir|uns\w*|je|j'|moi|mon|ma|mes|nous|notre|nos"
    r"|did you|you (?:wrote|suggested|recommended|proposed|advised|gave|made|listed|named|worked out|booked)"
    r"|yo|mi|mis|nosotros|nuestr\w+|remember|remind|told|said|mentioned|again|last time)\b",
    re.I,
)
NAME_WITHIN = re.compile(r"(?<=[^.?!:\s] )[^\W\d_][\w’'-]*")
GERMAN = re.compile(r"\b(?:der|die|das|und|ist|mein\w*|dein\w*|eine?|nicht|wie|wer|wann|hat|habe|haben)\b")

# Words of a message that asks nothing of memory. A message with no others, and no date, is given none.
SMALL_TALK = frozenset(
    """
    ack alright amazing awesome bye cheers continue cool correct done exactly excellent fine good great haha hello hey
    hi hm hmm lol love maybe morning evening night nice nope okay ok oh perfect proceed repeat right sorry sounds start stop
    super test thank thanks thx understood welcome well wow yeah yep yup
    """.split()
)
PHRASE = re.compile(
    r"\W*+(?:(?:thanks?|thank\ you|ok(?:ay)?|great|perfect|cool|yes|no|hm+)\b\W*+){0,3}"
    r"(?:sounds\ (?:good|great|fine|like\ a\ plan)|never\ ?mind|(?:one|just\ a)\ (?:moment|sec|second|minute)(?:\ please)?"
    r"|(?:that|this|it)(?:['’]s|\ is|\ was|\ looks|\ sounds)(?:\ (?:very|really|so|super))?"
    r"\ (?:helpful|great|good|perfect|fine|all|right|correct|funny|nice|interesting)|let\ me\ (?:think|see)"
    r"|no\ (?:worries|problem)|got\ it|makes\ sense|good\ luck|see\ you(?:\ later)?|take\ care|go\ (?:on|ahead)"
    r"|how\ are\ you(?:\ today)?)\W*+(?:(?:thanks?|thank\ you|please|then|now)\W*+)?",
    re.I,
)


def asks_of_memory(query: ParsedQuery) -> bool:
    """Whether it asks for days, or has a word that could be about something: "ok thanks" and "how are you today?" have none."""
    if PHRASE.fullmatch(query.text[:200]):
        return False
    words = {t.shown.lower() for t in query.terms} - STOP - SMALL_TALK
    return bool(query.days) or any(any(map(str.isalnum, word)) for word in words)


def is_sure(
    query: ParsedQuery,
    hits: Sequence[Hit],
    said: Sequence[Said],
    known: Callable[[str], bool],
    by_meaning: bool,
) -> bool:
    """
    Whether *hits* and *said* (best first) answer *query*. *known* says of a word whether anything here has it;
    *by_meaning*, whether notes were looked for by their meaning, too.
    """
    return sureness(query, hits, said, known, by_meaning) >= (SURE_OF_OWN if is_of_own(query) else SURE)


def sureness(
    query: ParsedQuery,
    hits: Sequence[Hit],
    said: Sequence[Said],
    known: Callable[[str], bool],
    by_meaning: bool,
) -> float:
    """How sure the best of them is, of about 1. Of somebody's own days all is sure, and where only days are asked for."""
    if query.days and (not query.terms or is_of_own(query)):
        return 1.0
    shares = [max(SAID_SHARE * min(1.0, s.share), WRITTEN_ALONE * s.words) for s in said]
    noted = max([*(hit.score for hit in hits), *shares], default=0.0)
    # To what nobody has noted no note can be near.
    alone = max((share for s, share in zip(said, shares, strict=True) if not s.noted), default=0.0)
    names = list(names_in(query.text))
    if names and not any(map(known, names)):
        noted, alone = noted * NAMES_SHARE, alone * NAMES_SHARE
    elif names:
        noted, alone = noted + NAME_KNOWN, alone + NAME_KNOWN
    if by_meaning:
        noted += MEANING * (max((hit.cosine or 0.0 for hit in hits), default=0.0) - TYPICAL)
    return max(noted, alone)


def is_of_own(query: ParsedQuery) -> bool:
    """Whether it is asked in the first person, or of what was said."""
    return bool(OF_ONES_OWN.search(query.text))


def names_in(text: str) -> Iterator[str]:
    """Capitalised words within a sentence; none where the language writes every noun so."""
    if not GERMAN.search(text):
        for m in NAME_WITHIN.finditer(text):
            word = re.sub(r"['’]s?$", "", m[0])
            if word[:1].isupper() and word.lower() not in STOP:
                yield word
