"""What a forgetting takes of a message that says more than what is meant: the meant sentences, and no others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness import ALICE, Talk

# what she said, the sentence that is forgotten, what stays
MESSAGES = [
    ("Please remember: my VAT id is ATU 4471. I never work on Sundays.", "My VAT id is ATU 4471.", "I never work on Sundays."),
    ("I never work on Sundays. My VAT id is ATU 4471.", "My VAT id is ATU 4471.", "I never work on Sundays."),
    ("My cat is Minka. My ring size is 54. I live in Rome.", "My ring size is 54.", "My cat is Minka.|I live in Rome."),
    ("- My cat is Minka\n- My ring size is 54\n- I live in Rome", "My ring size is 54.", "My cat is Minka.|I live in Rome."),
    ("Meine Katze heißt Minka. Ich trage Ringgröße 54.", "Ich trage Ringgröße 54.", "Meine Katze heißt Minka."),
    ("私の猫の名前はミンカです。私はローマに住んでいます。", "私はローマに住んでいます。", "私の猫の名前はミンカです。"),
]  # fmt: skip


def told(folder: Path, said: str, sentences: list[str]) -> tuple[Talk, dict[str, str]]:
    """A talk in which one message was noted as several notes; the path of each."""
    t = Talk(folder)
    id = t.agent.heard(ALICE, said, observe=False)
    t.agent.home.take_in()
    graph = t.agent.home.find(ALICE)
    graph.archive([p.name for p in graph.pending()])
    paths = {}
    for text in sentences:
        message = {"id": id, "text": said, "timestamp": 1_795_000_000_001}
        made = t.agent.use("omg_remember", ALICE, more={"userMessage": message}, text=text, type="fact")
        paths[text] = made["details"]["path"]
        assert t.note(paths[text]).origin == "user", text
    return t, paths


@pytest.mark.parametrize(("said", "meant", "stays"), MESSAGES)
def test_forgetting_takes_only_the_meant_sentences_of_a_message(
    tmp_path: Path, said: str, meant: str, stays: str
) -> None:
    others = stays.split("|")
    t, paths = told(tmp_path / "home", said, [meant, *others])
    graph = t.agent.home.find(ALICE)
    first = t.call("omg_forget", "forget that", id=paths[meant])
    for text in others:
        assert text.rstrip(".") in first["text"]
    done = t.call("omg_forget", first["details"]["code"], code=first["details"]["code"])
    assert done["text"].startswith("Forgotten")
    assert sorted(t.theirs()) == sorted(others)
    (message,) = list(graph.index.messages([f"m{t.agent.n}"]))
    assert all(text.rstrip(".") in message.text for text in others)
    word = meant.rstrip(".")
    kept = [
        f for f in t.agent.home.folder.rglob("*") if f.is_file() and word in f.read_text(errors="replace")
    ]
    assert kept == [] and word not in json.dumps(message.text)
    t.agent.home.work(force=True)
    assert sorted(t.theirs()) == sorted(others)


def test_another_note_that_says_the_same_as_a_forgotten_note_is_forgotten_too(tmp_path: Path) -> None:
    said = "My ring size is 54. My cat is Minka."
    t, paths = told(tmp_path / "home", said, ["My ring size is 54."])
    message = {"id": f"m{t.agent.n}", "text": said, "timestamp": 1_795_000_000_001}
    t.agent.use(
        "omg_remember", ALICE, more={"userMessage": message}, text="My cat is Minka and my ring size is 54."
    )
    first = t.call("omg_forget", "forget that", id=paths["My ring size is 54."])
    t.call("omg_forget", first["details"]["code"], code=first["details"]["code"])
    assert t.agent.notes(ALICE) == []


def test_a_message_that_no_other_note_cites_is_forgotten_whole(tmp_path: Path) -> None:
    t, paths = told(tmp_path / "home", "My ring size is 54. Sizes are odd.", ["My ring size is 54."])
    first = t.call("omg_forget", "forget that", id=paths["My ring size is 54."])
    t.call("omg_forget", first["details"]["code"], code=first["details"]["code"])
    assert t.agent.notes(ALICE) == [] and not t.agent.home.find(ALICE).index.messages([f"m{t.agent.n}"])


def test_a_note_whose_file_was_deleted_by_hand_is_forgotten_by_its_path(tmp_path: Path) -> None:
    t, paths = told(tmp_path / "home", "My ring size is 54.", ["My ring size is 54."])
    graph = t.agent.home.find(ALICE)
    path = paths["My ring size is 54."]
    graph.vault.file(path).unlink()
    graph.index.sync(graph.vault)
    first = t.call("omg_forget", "forget that", id=path)
    done = t.call("omg_forget", first["details"]["code"], code=first["details"]["code"])
    assert done["text"].startswith("Forgotten")
    name = path.rpartition("/")[2]
    left = [
        f for f in t.agent.home.folder.rglob("*") if f.is_file() and name in f.read_text(errors="replace")
    ]
    assert left == []
