"""Every script of bench/ runs, on a tiny input: a figure that nobody can measure again is worth nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from openai_server import OpenAIServer
from recorded_talk import write_talk

BENCH = Path(__file__).parents[1] / "bench"
LOCOMO = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ann", "dia_id": "D1:1", "text": "I decided to adopt a grey cat called Miso."},
                {"speaker": "Ben", "dia_id": "D1:2", "text": "My brother lives in Oslo and paints boats."},
            ],
        },
        "observation": {
            "session_1_observation": {
                "Ann": [["Ann adopted a grey cat called Miso.", "D1:1"]],
                "Ben": [["Ben's brother lives in Oslo.", "D1:2"]],
            }
        },
        "qa": [
            {"question": "What is the cat of Ann called?", "evidence": ["D1:1"], "category": 4},
            {"question": "Where does the brother of Ben live?", "evidence": ["D1:2"], "category": 1},
        ],
    }
]
FACTS = {"facts": [{"type": "fact", "text": "Ann adopted a grey cat called Miso."}]}
# Arguments of the smallest run, and what it has to print.
TINY: dict[str, tuple[str, str]] = {
    "cost": ("--recorded {recorded} --data {talk} --effort low --json", '"low"'),
    "day": ("--days bursts quiet --notes 0 20 --tokens 900 --json", '"ratios": {"bursts": {"0": '),
    "floor": ("{tmp}/vault {tmp}/floor.db", ""),
    "fuzz": ("--steps 3 --life 3", "0 broken"),
    "hostile": ("--seconds 1 --kb 40 --people 2 --waiting 1 --json", '"hostile"'),
    "imports": ("--chats 4 --megabytes 1 --kills 1 --beside 2 --each 0.5", "beside an import: a prompt p50"),
    "inject": ("--notes 30 --messages 60 --prompts 12 --embedder none --json", "{"),
    "load": ("--sessions 2 --minutes 0.03 --embedder none --connections 20 --json", '"burst"'),
    "languages": ("--notes 30 --embedder static --json", '"static de own"'),
    "locomo": ("--data {data} --json", "{"),
    "many": ("--people 3 --model-s 0.2 --parallel 2 --night --embedder none --json", '"night"'),
    "offline": ("--data {data} --links 3 --json", '"in_prose"'),
    "qa": ("--data {data} --out {tmp}/qa --stage observe --json", "troubles"),
    "record_demo": ("--stale", ""),
    "reflect": ("--notes 30 --pairs 5 --json", "notes"),
    "replay": ("--recorded {recorded} --data {talk} --out {shared}/replayed --json", '"this"'),
    # reads what `replay` made, or makes it
    "fidelity": ("--recorded {recorded} --data {talk} --out {shared}/replayed --json", "body sentences"),
    "silence": ("--data {data} --prompts 4 --embedder none --json", '"sure.py"'),
    "size": ("--json", '"total"'),
    "situations": ("--only s15 s31 --out {tmp}/situations --stage observe --json", '"situations"'),
    "soak": ("--turns 20 --identities 2 --in-turn 3 --json", '"descriptors"'),
    "stale": ("--between 0 --cases 1 --embedder none --json", '"stale"'),
    "stability": ("--turns 4 --embedder none --json", '"hook_ms_p50"'),
    "turn": ("--functions", "changes of file"),
    "turnwise": ("--data {data} --base {base} --sessions session_1", '"made"'),
    "vaults": ("--notes 30 --embedder none --json", "{"),
    "words": ("--data {talk} --context slice raw --texts {tmp}/texts --json", '"share"'),
    "worth": ("--notes 3 --out {tmp}/worth --json", '"drawn": 3'),
    "window": ("--turns 8 --facts 2 --script --json", "seq 1 700"),  # the rest of it boots a gateway
}


def test_every_script_that_needs_neither_postgres_nor_a_browser_is_tested() -> None:
    assert sorted([*TINY, "fleet", "pictures"]) == sorted(file.stem for file in BENCH.glob("*.py"))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shared")


@pytest.mark.parametrize("name", TINY)
def test_a_script_of_bench_runs_on_a_tiny_input(
    name: str, tmp_path: Path, shared: Path, openai_server: OpenAIServer
) -> None:
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "a.md").write_text("---\ntype: fact\n---\n\nA cat.\n")
    data = tmp_path / "locomo.json"
    data.write_text(json.dumps(LOCOMO))
    recorded, talk = write_talk(tmp_path)
    openai_server.always(FACTS)
    words, shown = TINY[name]
    args = words.format(
        tmp=tmp_path,
        shared=shared,
        data=data,
        base=openai_server.base,
        recorded=recorded,
        talk=talk,
    ).split()
    env: dict[str, Any] = {**os.environ, "TMPDIR": str(shared)}
    done = subprocess.run(
        [sys.executable, str(BENCH / f"{name}.py"), *args],
        capture_output=True,
        text=True,
        timeout=600,
        env=env,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.strip().splitlines()[-1]
    assert shown in done.stdout
    if last.startswith("{"):
        assert json.loads(last)
