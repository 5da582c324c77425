"""What note an assertion makes: whether it makes one at all, its type, loop, title and priority."""

from __future__ import annotations

import re
from datetime import date, timedelta

from ..dates.days import event_span
from .assertions import DAY_WORDS, Assertion
from .cues import begins
from .titles import title_of_topic

IT_OR_THEM = re.compile(r"\b(?P<verb>[a-z]+) (?P<it>it|them)\b(?!'| (?:is|was|will)\b)", re.I)
FIRST_PART = re.compile(r"[,:;]| because ")
UNCLEAR = ("plan", "must", "wish", "past", "remind", "choice")  # with an object that is only "it", no note
LONGEST_OFFLINE_TITLE = 40  # characters, of one that is the statement itself


def stands_alone(found: Assertion, said: str) -> bool:
    """Whether it is a note, and what it is about is named: "I'll order them" is about nothing one could look up."""
    unclear = found.cue in UNCLEAR and IT_OR_THEM.search(FIRST_PART.split(said, maxsplit=1)[0])
    return bool(found.type) and not unclear


def is_detail(found: Assertion, said: str) -> bool:
    """Whether it goes on about what was said before: "The meeting is at 11"."""
    return found.cue == "stated" and found.slot.lower().startswith("the ") and not DAY_WORDS.search(said)


def type_and_loop(found: Assertion, event: str | None, said: date, people: bool) -> tuple[str, str | None]:
    """Type and loop, once it is known whether the day is past or to come."""
    days = event_span(event)
    if days and days[1] < said:
        return found.type, None
    if days and days[0] > said and found.type in ("episode", "fact") and found.cue != "stated":
        return "episode", "open"
    if found.cue in ("due", "date") and not days:
        return ("fact" if found.cue == "due" else found.type), None
    if found.cue in ("must", "plan") and not days and people:
        return "fact", None  # what people say they will do, some day
    return found.type, found.loop


def title_for(found: Assertion, person: str) -> str:
    """A title; among people, one that says whose home or name it is."""
    if found.language != "en":
        words = " ".join(found.topic.rstrip("。.！!").split()[:6])
        return (
            words
            if len(words) <= LONGEST_OFFLINE_TITLE
            else words[: LONGEST_OFFLINE_TITLE + 1].rpartition(" ")[0] or words[:LONGEST_OFFLINE_TITLE]
        )
    if found.cue in ("name", "home", "job", "status"):
        name = "Personal status" if found.cue == "status" else found.cue.title()
    elif found.slot and found.cue != "stated":
        name = title_of_topic(found.slot.removeprefix("my "))
    else:
        return title_of_topic(found.topic, found.cue)
    return (
        f"{person}'s {name[:1].lower()}{name[1:]}" if person and found.type == "identity" and name else name
    )


def priority_of(type: str, cue: str, due: bool, said: str) -> str:
    if type in ("decision", "identity") or due or cue in ("standing", "style"):
        return "high"
    if begins("remember", said):
        return "high"
    return "low" if cue == "aside" else "medium"


def nearest_weekday(day: date, around: date) -> date:
    """The day of *day*'s weekday that is nearest to *around*."""
    return around + timedelta(days=(day.weekday() - around.weekday() + 3) % 7 - 3)
