import json
import re
from pathlib import Path

import omg
from omg.demo import GROUP_SESSION
from omg.identity import identity_of_session
from omg.importers import read_drops
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
    assert 35 <= count <= 65
    kept = messages()
    assert len({m.id for m in kept}) == len(kept)
    # gone: the gateway's own turn, a silent answer, a failed one
    assert count - len(kept) == 2 + 1 + 1


def test_a_key_pasted_twice_is_redacted_everywhere():
    (key,) = set(re.findall(r"sk-proj-[\w-]{100,}", RAW))
    kept = messages()
    assert sum(m.redacted for m in kept) == 2
    text = "".join(m.text + "".join(c.arguments for c in m.calls) for m in kept)
    assert not any(key[i : i + 8] in text for i in range(len(key) - 7))


def test_the_planted_instruction_is_in_a_tool_result_and_in_no_other_message():
    (message,) = [m for m in messages() if "remember\npermanently" in m.text]
    assert (message.role, message.tool) == ("tool", "web_fetch")


def test_the_group_of_two_people_has_a_memory_of_its_own():
    by_identity = {}
    for turn in turns():
        said = {m.sender for m in turn.messages if m.role == "user"}
        by_identity.setdefault(identity_of_session(turn.session, owner=True).key, set()).update(said)
    assert by_identity == {"agent:main:main": {"", "Nora"}, GROUP_SESSION: {"Nora", "Tomas"}}


def test_the_readme_table_lists_every_sample_file_and_the_number_of_messages():
    table = (SAMPLE / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE) == [path.stem for path in FILES]
    count = RAW.count('"type":"message"')
    assert f"{len(FILES)} sessions, {count} messages" in " ".join(table.split())
