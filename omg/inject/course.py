"""
Whether a message asks for the course of something: an order, a count, a summary, how something came about. Or for
several things.

Of a course a timeline is wanted, complete before it is detailed: many lines and short passages, and what notes say of
before. Of several things more notes are, a line each.
One rule: a wrong guess only costs some detail.
"""

from __future__ import annotations

import re

COURSE = re.compile(
    r"""
    \b(?:(?:in\ what|which|what|right|chronological)\ order|order\ (?:in\ which|of)|in\ order\b|sequence|timeline|chronolog\w*
    |since\ when|how\ many|how\ often|how\ much\ in\ (?:all|total)|in\ total|altogether|all\ (?:the|my|of)|each\ of|every\ time
    |summar\w+|overview|recap|history\ of|over\ time|so\ far|throughout|step\ by\ step|walk\ me\ through|list\ (?:of|the|all|my)
    |how\ (?:did|do|does|has|have|is|was|were)\b[^.?!\n]{0,80}\b(?:progress|develop|evolv|chang|go|come|grow|improv|unfold)\w*
    |first\b[^.?!\n]{0,60}\b(?:then|later|last|or)|which\b[^.?!\n]{0,60}\bfirst|before\ or\ after
    |reihenfolge|wie\ viele|wie\ oft|seit\ wann|zusammenfass\w*|fasse?\b|überblick|verlauf|bisher|insgesamt|nacheinander
    |combien|depuis\ quand|résum\w+|dans\ quel\ ordre|jusqu'ici|au\ total
    |cuánt[ao]s|desde\ cuándo|resum\w+|en\ qué\ orden|hasta\ ahora|en\ total)
    """,
    re.I | re.X,
)
# The words of such a question that say nothing of its topic.
ASKING_WORDS = re.compile(
    r"""
    \b(?:(?:mention|name|list|give|use)\b[^.?!\n]{0,20}\b(?:only|exactly|at\ most)\b[^.?!\n]*
    |(?:can|could|would|will)\ you|please|(?:give|tell|show|walk|take)\ me(?:\ through)?|list|order|sequence|timeline|chronolog\w*
    |summar\w+|overview|recap|history\ of|step\ by\ step|over\ time|so\ far|throughout
    |(?:our|these|this|the|all|recent|past)\ (?:conversation|chat|talk|discussion)s?|conversations?|chats?|discussions?
    |(?:brought|bring)\ (?:it\ |them\ )?up|mention\w*|talked\ about|discussed
    |aspects?|things|items?|topics?|points?|different|various|develop\w*|progress\w*|evolv\w*|unfold\w*
    |reihenfolge|zusammenfass\w*|fasse?|überblick|verlauf|gespräche?n?|besprochen|erwähnt|verschiedene\w*)\b
    """,
    re.I | re.X,
)
# "Which instruments does she play?", "What are my sister's hobbies?": a plural, and what is asked of it.
SEVERAL_ASKED = re.compile(
    r"""
    \b(?:what|which)\ (?:
      (?:[\w'’-]+\ ){0,2}?(?:\w+[^\Wsui'’]s|people|children)\ (?:ha[sd]|have|do|does|did|are|were|was|is)
      |(?:are|were)\ (?:the|my|our|his|her|their|[\w-]+['’]s?)\ (?:[\w-]+\ ){0,2}?(?:\w+[^\Wsui'’]s|people|children)
    )\b
    |\bwelche\b[^.?!\n]{0,60}\b(?:hat|habe|hast|haben|sind|waren|mag|mögen|macht|machen)\b
    """,
    re.I | re.X,
)
COURSE_ASKED_CHARS = 2_000


def asks_for_course(text: str) -> bool:
    return bool(COURSE.search(text[:COURSE_ASKED_CHARS]))


def asks_for_several(text: str) -> bool:
    return bool(SEVERAL_ASKED.search(text[:COURSE_ASKED_CHARS]))


def topic_of(text: str) -> str:
    """*text*, which asks for a course, less the words that ask."""
    return " ".join(ASKING_WORDS.sub(" ", text).split())
