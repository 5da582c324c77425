"""A long context when its conversation begins anew, when something is forgotten, and when the gateway itself speaks."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from omg.config import Identities
from tests.context.test_cuts import ASKED, PLUMBER, SESSION, Talk, long_talk, remembered_talk
from tests.context.test_cuts import talk as talk

# --- after a reset


def begin_anew(talk: Talk) -> None:
    """Send what the hook sends for `/new`."""
    talk.at += timedelta(minutes=1)
    talk.take_in(reason="reset")
    talk.before += len(talk.said)
    talk.said = []
    talk.at += timedelta(minutes=1)


def talk_of_letters(talk: Talk, turns: int = 30) -> None:
    for n in range(turns):
        talk.turn(f"I prefer the letter {2 * chr(97 + n)} in lists. " + "And so on and so forth. " * 6)


def test_after_a_forgetting_the_context_has_no_message_from_before_the_latest_reset(talk: Talk) -> None:
    long_talk(talk, 10)
    begin_anew(talk)
    talk_of_letters(talk, 16)
    talk.take_in()
    before = talk.asked()
    assert "letter ee in" in before.text
    assert "number" not in before.text
    assert talk.memory.forget(matching="letter ff in").messages
    after = talk.asked()
    assert (after.reason, after.cut) == ("edit", before.cut)
    assert "letter ee in" in after.text
    assert "number" not in after.text


def test_after_a_forgetting_prompts_quote_only_messages_that_are_not_in_the_context(talk: Talk) -> None:
    talk.turn("Who mends taps?", answer=PLUMBER)
    long_talk(talk)
    talk.turn(
        "And who tunes pianos?", answer="The tuner Ottilie in Parkallee tunes grand pianos for 90 euros."
    )
    talk.take_in()
    assert 0 in talk.asked().cut
    talk.memory.forget(matching="number 3 over all")
    assert PLUMBER in talk.prompted(ASKED)
    assert "Ottilie in Parkallee" not in talk.prompted("Which tuner did you recommend for grand pianos?")


def test_a_word_in_every_note_is_still_found_after_one_note_was_forgotten(talk: Talk) -> None:
    """A former fault: prompts were given nothing, and nothing was observed, until the daemon was restarted."""
    remembered_talk(talk)
    asked = "Which number is it that I prefer over all others, number 7?"
    assert "number-7 — " in talk.prompted(asked)
    talk.memory.forget(matching="number 3 over all")
    assert "number-7 — " in talk.prompted(asked)


# --- turns that the gateway began by itself

POLL = "[OpenClaw heartbeat poll] Look around. " + "Nothing that was asked for is due. " * 6


@pytest.mark.parametrize("by", ["heartbeat", "cron", "subagent_announce", ""])
def test_turns_started_by_the_gateway_are_cut_with_the_turns_around_them(talk: Talk, by: str) -> None:
    """Also without the gateway's mark, which older transcripts lack."""
    for n in range(30):
        talk.turn(f"I prefer the number {n} over all others. " + "And so on and so forth. " * 6)
        talk.turn(f"{POLL} {n}", by=by, answer="The disk is nearly full, shall I look into it?")
    talk.take_in()
    made = talk.asked()
    assert made.cut == tuple(range(len(made.cut)))
    assert made.raw < 500
    assert "disk is nearly full" not in made.text
    graph = talk.memory.find(SESSION)
    assert not any("disk is nearly full" in f.read_text() for f in graph.folder.glob("archive/*"))


def test_the_gateways_own_turn_stays_until_the_persons_turns_around_it_are_observed(talk: Talk) -> None:
    long_talk(talk)
    talk.turn(POLL, by="heartbeat", answer="The disk is nearly full, shall I look into it?")
    talk.take_in()
    polled = len(talk.said) - 2
    remembered_talk(talk, 4, observe=False)
    assert polled not in talk.asked().cut
    talk.memory.work(force=True)
    remembered_talk(talk, 20)
    assert polled in talk.asked().cut


def test_a_jobs_result_stays_until_it_is_observed_if_jobs_are_remembered(tmp_path: Path) -> None:
    talk = Talk(tmp_path / "omg", identity=Identities(members=["cron"]))
    remembered_talk(talk)
    talk.turn("[cron:1 disk] Look at the disk.", by="cron", answer="The disk is nearly full.")
    job = len(talk.said) - 1
    long_talk(talk)
    assert job not in talk.asked().cut
    talk.take_in()
    assert job in talk.asked().cut
    talk.memory.close()


def test_a_forgotten_turn_leaves_the_context_even_if_its_call_ids_changed(talk: Talk) -> None:
    for n in range(4):
        talk.turn(f"List folder {n}", tool="a file of Zanzibar\n" * 3)
    talk.take_in()
    assert talk.memory.forget(matching="Zanzibar").messages
    remembered_talk(talk)
    assert talk.asked().cut[:16] == tuple(range(16))
