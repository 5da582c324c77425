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
from ..index.terms import STOP
from .passages import Said

# Of what a prompt asks for. Of questions about somebody's own talks 98 in 100 find a note this sure; of general
# requests, and questions about other people's talks, 7 in 100. One in the first person is about them more often.
SURE, SURE_OF_OWN = 0.34, 0.2
# Of a message's score: it shares words with what it has nothing to do with more often than a note does; and of the share
# of the prompt's words that it has: where an archive is small, all words are common.
SAID_SHARE, WRITTEN_ALONE = 0.7, 0.5
NAMES_SHARE = 0.5  # where no name in it is known here

OF_ONES_OWN = re.compile(
    r"\b(?:i|me|my|mine|myself|we|us|our|ours|ich|mir|mich|mein\w*|wir|uns\w*|je|j'|moi|mon|ma|mes|nous|notre|nos"
    r"|yo|mi|mis|nosotros|nuestr\w+|remember|remind|told|said|mentioned|again|last time)\b",
    re.I,
)
NAME_WITHIN = re.compile(r"(?<=[^.?!:\s] )[^\W\d_][\w’'-]*")
GERMAN = re.compile(r"\b(?:der|die|das|und|ist|mein\w*|dein\w*|eine?|nicht|wie|wer|wann|hat|habe|haben)\b")

# Words of a message that asks nothing of memory. A message with no others, and no date, is given none.
SMALL_TALK = frozenset(
    """
    ack alright amazing awesome bye cheers continue cool correct done exactly excellent fine good great haha hello hey
    hi hm hmm lol love maybe morning evening night nice nope okay ok oh perfect proceed right sorry sounds start stop
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
    """Whether it has a word that could be about something: "ok thanks" and "sounds like a plan" have none."""
    if PHRASE.fullmatch(query.text[:200]):
        return False
    words = {t.shown.lower() for t in query.terms} - STOP - SMALL_TALK
    return any(any(map(str.isalnum, word)) for word in words)


def is_sure(
    query: ParsedQuery, hits: Sequence[Hit], said: Sequence[Said], known: Callable[[str], bool]
) -> bool:
    """Whether *hits* and *said* (best first) answer *query*; *known* says of a word whether anything here has it."""
    return sureness(query, hits, said, known) >= (SURE_OF_OWN if is_of_own(query) else SURE)


def sureness(
    query: ParsedQuery, hits: Sequence[Hit], said: Sequence[Said], known: Callable[[str], bool]
) -> float:
    """How sure the best of them is, of 1. Of somebody's own days all is sure, and where only days are asked for."""
    if query.days and (not query.terms or is_of_own(query)):
        return 1.0
    sure = max((hit.score for hit in hits), default=0.0)
    for s in said:
        sure = max(sure, SAID_SHARE * min(1.0, s.share), WRITTEN_ALONE * s.words)
    names = list(names_in(query.text))
    return sure * NAMES_SHARE if names and not any(map(known, names)) else sure


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
