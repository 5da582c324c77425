import json
import re
from pathlib import Path

import omg
from omg.importers.drops import read_drops
from omg.message.drop import read_drop

SAMPLE = Path(omg.__file__).parent / "sample"
FILES = sorted(SAMPLE.glob("*.jsonl"))
RAW = "".join(path.read_text(encoding="utf-8") for path in FILES)


def turns():
    drops = read_drops(FILES)
    found = [read_drop(json.dumps(drop).encode()) for drop in drops]
    assert drops.reading.skipped == []
    return found


def messages():
    return [m for turn in turns() for m in turn.messages]


def test_every_message_is_read_and_has_an_id_of_its_own():
    stored = [json.loads(line) for line in RAW.splitlines()]
    count = sum(event["type"] == "message" for event in stored)
    assert 80 <= count <= 120
    kept = messages()
    assert len({m.id for m in kept}) == len(kept)
    # gone: two turns of the gateway's, one silent answer, one failed one
    assert count - len(kept) == 2 + 2 + 1 + 1


def test_the_key_is_pasted_twice_and_survives_nowhere():
    (key,) = set(re.findall(r"sk-proj-[\w-]{100,}", RAW))
    kept = messages()
    assert sum(m.redacted for m in kept) == 2
    text = "".join(m.text + "".join(c.arguments for c in m.calls) for m in kept)
    assert not any(key[i : i + 8] in text for i in range(len(key) - 7))


def test_what_the_gateway_said_is_gone_and_what_nora_said_is_there():
    text = "\n".join(m.text for m in messages())
    for planted in ("HEARTBEAT", "NO_REPLY", "heartbeat poll", "exec completion"):
        assert planted in RAW
        assert planted not in text
    assert "thanks, nothing else for now" in text


def test_the_planted_instruction_is_a_tools_word_and_nobody_elses():
    (message,) = [m for m in messages() if "remember\npermanently" in m.text]
    assert (message.role, message.tool) == ("tool", "web_fetch")


def test_bulky_output_is_cut_and_stays_with_its_call():
    kept = messages()
    bulky = [m for m in kept if re.search(r"\[… [\d,]+ characters cut\]", m.text)]
    assert [m.tool for m in bulky] == ["exec", "exec"]
    assert {m.call_id for m in kept if m.role == "tool"} == {c.id for m in kept for c in m.calls}


def test_the_table_says_what_is_in_each_file():
    table = (SAMPLE / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE) == [path.stem for path in FILES]
    count = RAW.count('"type":"message"')
    assert f"{len(FILES)} sessions, {count} messages" in " ".join(table.split())
