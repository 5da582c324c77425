"""bench/replay.py: recorded replies are found in changed requests, and two checkouts are compared byte by byte."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from questions.recorded import Replies, Row
from recorded_talk import SAID, observed, raw_rows, write_talk

ROOT = Path(__file__).parents[1]


@pytest.fixture
def replies() -> Replies:
    return Replies([Row.of(raw) for raw in raw_rows()])


def test_a_recorded_reply_is_matched_by_the_time_of_a_message_if_its_text_and_id_changed(
    replies: Replies,
) -> None:
    request = observed("", SAID[:3]).replace(SAID[1][2], "[pasted text, 54 characters]")
    request = request.replace("\nm1 ", "\nu11 ").replace("\nm2 ", "\na12 ")
    edits = replies.answer(request)["edits"]
    assert [edit["sources"] for edit in edits] == [["u11"], ["a12"], ["m3"]]


def replay(folder: Path, *args: str) -> tuple[str, dict[str, Any]]:
    recorded, data = write_talk(folder)
    words = [
        sys.executable,
        str(ROOT / "bench" / "replay.py"),
        "--recorded",
        str(recorded),
        "--data",
        str(data),
    ]
    done = subprocess.run([*words, "--json", *args], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("observer", ["recorded", "offline"])
def test_two_runs_of_the_same_code_are_identical(observer: str, tmp_path: Path) -> None:
    _, report = replay(tmp_path, "--against", str(ROOT), "--observe", observer)
    assert report["differences"]["identical"]
    assert report["differences"]["files"] > 5 and report["differences"]["slices"] == 4
    assert report["this"]["talk"]["misses"] == 0 and report["this"]["talk"]["left"] == []


def test_replay_prints_the_difference_in_a_changed_note(tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(
        ROOT / "omg", other / "omg"
    )  # with what is compiled, which holds for files with the same time
    edits = other / "omg" / "plan" / "edits.py"
    text = edits.read_text(encoding="utf-8")
    changed = text.replace(
        'return f"- {old.updated or old.created or day}: {old.description}{when}"', 'return "- changed"'
    )
    assert changed != text
    edits.write_text(changed, encoding="utf-8")
    shown, report = replay(tmp_path, "--against", str(other))
    assert "--- against/talk/nodes/identity/home.md" in shown
    assert "-- changed\n+- 2026-03-04: The user lives in Oslo since 2024-03." in shown
    assert report["differences"]["files_different"] >= 1 and not report["differences"]["identical"]
