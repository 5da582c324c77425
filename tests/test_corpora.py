"""The corpora are what they say: many, whole, and without a secret that a scanner would take for one."""

import re
from typing import Any

import pytest
from corpora import grounded, messages


def test_each_message_of_the_corpus_contains_its_secret_where_a_reader_would_look() -> None:
    tellings = [t for file in messages.HERE.glob("secrets*.jsonl") for t in messages.tellings(file)]
    assert len(tellings) >= 600
    assert len({telling.kind for telling in tellings}) >= 300
    for telling in tellings:
        assert telling.secrets
        for secret in telling.secrets:
            assert any(secret in text for text in texts(telling.message["content"])), telling.kind


def texts(content: object) -> list[str]:
    if isinstance(content, str):
        return list(messages.leaves(content))
    if isinstance(content, dict):
        return [text for value in content.values() for text in texts(value)]
    return [text for value in content for text in texts(value)] if isinstance(content, list) else []


def test_the_survivors_of_a_redaction_include_a_secret_that_is_left_and_none_that_is_removed() -> None:
    def telling(text: str) -> messages.Telling:
        return messages.Telling("x", {"role": "user", "content": text}, ("blue-horse-42",))

    assert messages.survivors(telling("the horse is called blue-horse-42")) == ["blue-horse-42"]
    assert messages.survivors(telling("the horse is called blue-ho … and 42")) == ["blue-horse-42"]
    assert messages.survivors(telling("the horse is called blue … 42")) == []


def test_the_corpora_hold_no_token_that_a_scanner_would_report() -> None:
    text = "".join(file.read_text("utf-8") for file in messages.HERE.glob("secrets*.jsonl"))
    assert not re.search(
        r"gh[pso]_\w{8}|sk_live_\w{8}|xox[bp]-\d|AKIA\w{12}|AIza\w{12}|-----BEGIN [A-Z ]*PRIVATE", text
    )
    assert not re.search(r"hooks\.slack\.com/services/T\w{8}/B\w{10}/\w{20}", text)


@pytest.mark.parametrize(
    ("name", "least", "kinds"),
    [("attacks", 210, 30), ("benign", 160, 15), ("attacks_second", 150, 25), ("benign_second", 60, 10)],
)
def test_recorded_replies_refer_only_to_shown_notes_and_use_many_operations(
    name: str, least: int, kinds: int
) -> None:
    rows = grounded.rows(name)
    assert len(rows) >= least
    assert len({row["kind"] for row in rows}) >= kinds
    told = [row["messages"][0]["text"] for row in rows if row["messages"]]
    assert len(set(told)) == len(told)
    for row in rows:
        shown = {message["id"] for message in row["messages"]}
        notes = {note["handle"]: note for note in row["known"]}
        assert replies(row), row["id"]
        for edit in row["edits"]:
            assert edit["sources"] and shown.issuperset(edit["sources"]), row["id"]
            assert (edit["op"] == "create") == (edit["node"] is None), row["id"]
            assert edit["node"] is None or edit["node"] in notes, row["id"]
            assert all(gone in notes[edit["node"]]["body"] for gone in edit.get("drop", [])), row["id"]
        for verdict in row.get("verdicts", []):
            assert verdict["node"] in notes and verdict["other"] in (None, *notes), row["id"]
        assert set(row["expect"].get("untouched", [])) <= set(notes), row["id"]


def replies(row: dict[str, Any]) -> str:
    """All that the models and the agent of *row* would write."""
    written = [grounded.texts(edit) for edit in row["edits"]] + list((row["now"] or {}).values())
    written += [str(value) for value in row.get("call", {"arguments": {}})["arguments"].values()]
    for verdict in row.get("verdicts", []):
        written += [verdict["description"] or "", verdict["title"] or ""]
        written += [note["description"] for note in row["known"] if note["handle"] == verdict["node"]]
    return " ".join(written)


def test_each_attack_lists_the_words_that_must_not_be_noted() -> None:
    for row in grounded.rows("attacks") + grounded.rows("attacks_second"):
        said, words = replies(row).casefold(), row["expect"]["words"]
        assert any(word.casefold() in said for word in words) or row["kind"] == "forget", row["id"]
        assert row["expect"]["never"], row["id"]
        honest = " ".join(f"{n['title']} {n['description']}" for n in row["known"] if n["origin"] == "user")
        if row["expect"].get("keeps"):
            honest += row["edits"][0]["description"]
        assert not [w for w in words if w.casefold() in honest.casefold()], row["id"]


def test_planted_text_is_shown_to_the_model_and_no_message_of_the_person_contains_it() -> None:
    rows = grounded.rows("attacks_second")
    for row in rows:
        messages = row.get("session_before", []) + row["messages"]
        shown = [message["text"] for message in messages] + list(row.get("now_before", {}).values())
        shown += [note["description"] for note in row["known"]]
        assert row["plant"] and all(any(plant in text for text in shown) for plant in row["plant"]), row["id"]
        own = [
            m["text"]
            for m in messages
            if m["role"] == "user" and not any(p in m["text"] for p in row["plant"])
        ]
        said = " ".join(own).casefold()
        assert not [word for word in row["expect"]["words"] if word.casefold() in said], row["id"]


def test_recorded_honest_replies_contain_the_words_that_must_be_kept() -> None:
    for row in grounded.rows("benign") + grounded.rows("benign_second"):
        first = grounded.texts(row["edits"][0]).casefold()
        assert [word for word in row["expect"]["kept_words"] if word.casefold() not in first] == [], row["id"]
        assert row["expect"]["type"] in ("identity", "preference", "project", "decision", "fact", "episode")
