"""Secrets that were made up before the rules were written, and lines that must stay as they are."""

import json
from datetime import UTC, datetime

import pytest
from corpora.messages import clean_lines, locomo, survivors, tellings

from omg.config.sections import Config
from omg.memory import Memory
from omg.message.redaction import redact, redact_arguments
from omg.message.stored import turn_from_json
from omg.message.turn import Call, Message, Turn
from omg.openclaw.doctor.run import examine_home, mend_findings

KEY = "sk-proj-" + "Ab3dEf9hIj2kLm5nOp8qRs1tUv4wXy7z"


def test_of_200_secrets_at_most_three_are_kept():
    left = [told.kind for told in tellings() if survivors(told)]
    assert len(left) <= 3, left


def test_of_3000_lines_of_code_and_numbers_at_most_two_lose_anything():
    hit = [line for line in clean_lines() if redact(line)[1]]
    assert len(hit) <= 2, hit


def test_no_line_of_ten_conversations_loses_anything():
    said = locomo()
    if not said:
        pytest.skip("the data set is not beside the repository")
    assert [line for line in said if redact(line)[1]] == []


@pytest.mark.parametrize(
    "arguments, secret",
    [
        ({"command": 'curl -H "Authorization: Bearer 8f14e45fceea167a5a36dedd"'}, "8f14e45fceea167a5a36dedd"),
        ({"file": "a.json", "content": '{"password": "Falke-tWo\\"WY65"}'}, "tWo"),
        ({"password": "Falke.tWoWY65"}, "Falke.tWoWY65"),
        ({"fields": [{"label": "Passwort", "text": "Falke.tWoWY65"}]}, "Falke.tWoWY65"),
        ({"a": [{"b": {"c": f"use {KEY}\nplease"}}]}, KEY),
    ],
)
def test_a_secret_in_a_calls_arguments_goes_and_the_arguments_stay_json(arguments, secret):
    clean, found = redact_arguments(json.dumps(arguments))
    assert found and secret not in clean
    assert json.loads(clean).keys() == arguments.keys()


def test_arguments_without_a_secret_stay_byte_for_byte():
    arguments = '{ "path": "/srv/app", "n": [1, 2.50, null], "text": "Zoë said \\"hi\\"" }'
    assert redact_arguments(arguments) == (arguments, 0)


def test_the_doctor_takes_out_what_an_older_version_kept(tmp_path):
    home = Memory(Config(home=tmp_path / "home"), clock=lambda: datetime(2026, 3, 4, tzinfo=UTC), embed=None)
    graph = home.graph(home.registry.identity_of("agent:main:main"))
    call = Call("c1", "exec", json.dumps({"command": f"export X={KEY}"}))
    said = Message("m1", "user", f"my key is {KEY}, and I like tea", 1_770_000_000_000)
    answer = Message("m2", "assistant", "noted", 1_770_000_001_000, calls=(call,))
    old = Turn("agent:main:main", "s", "main", "turn", "", "", "", (said, answer))
    graph.put("001770000000000-a", old)
    graph.archive([graph.pending()[0].name])
    graph.put("001770000002000-b", Turn("agent:main:main", "s", "main", "turn", "", "", "", (said,)))
    note = graph.vault.root / "nodes" / "fact" / "tea.md"
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(f"---\ntype: fact\n---\n# Tea\n\nMy own words:  two blanks, and {KEY}.\n", "utf-8")
    home.refresh(graph)

    found = [f for f in examine_home(home, None) if "older version" in f.what]
    assert [f.what[:9] for f in found] == ["4 secrets"] and KEY not in repr(found)
    assert mend_findings(found)[0].startswith("mended")

    assert note.read_text("utf-8") == (
        "---\ntype: fact\n---\n# Tea\n\nMy own words:  two blanks, and [redacted: OpenAI key].\n"
    )
    assert not graph.vault.ours(note.read_bytes())
    for file in (f for f in graph.folder.rglob("*") if f.is_file()):
        assert KEY.encode() not in file.read_bytes(), file
    assert turn_from_json(graph.pending()[0].file.read_text("utf-8")).messages[0].text.endswith("I like tea")
    assert not [f for f in examine_home(home, None) if "older version" in f.what]
