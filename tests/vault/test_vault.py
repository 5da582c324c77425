import json
import os
import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omg.errors import BadNode, NotFound, OutsideVault, Stale
from omg.vault import files
from omg.vault.vault import Vault

CAT = "nodes/fact/cat"
OLD, NEW, THEIRS = b"The cat is called Cleo.\n", b"The cat is called Cloe.\n", b"The cat is called Chloe!\n"


@pytest.fixture
def vault(tmp_path):
    return Vault(tmp_path / "vault", tmp_path / "written.jsonl")


def names(vault):
    """Every file below the vault, dotfiles too."""
    return sorted(str(f.relative_to(vault.root)) for f in vault.root.rglob("*") if f.is_file())


def dotfiles(vault):
    return [name for name in names(vault) if "/." in f"/{name}"]


def fail(*args, **kwargs):
    raise OSError("disk full")


# --- reading and writing


def test_reading_an_unreadable_note_raises_an_error_with_the_cause(vault):
    vault.write("a", b"\xff\xfe", None)
    vault.write("b", b"---\nx: [\n---\n", None)
    vault.file("folder").mkdir()
    os.mkfifo(vault.file("pipe"))
    for path, why in [
        ("a", "not UTF-8"),
        ("b", "not YAML"),
        ("folder", "cannot be read"),
        ("pipe", "cannot be read"),
    ]:
        with pytest.raises(BadNode, match=f"{path}.md: .*{why}"):
            vault.read(path)


@pytest.mark.parametrize("was", [None, OLD])
def test_a_persons_edit_is_never_overwritten(vault, was):
    if was:
        vault.write(CAT, was, None)
    vault.file(CAT).parent.mkdir(parents=True, exist_ok=True)
    vault.file(CAT).write_bytes(THEIRS)
    with pytest.raises(Stale, match=CAT):
        vault.write(CAT, NEW, was)
    with pytest.raises(Stale):
        vault.remove(CAT, OLD)
    assert vault.bytes(CAT) == THEIRS
    assert dotfiles(vault) == []


def test_writing_to_a_note_that_a_person_deleted_is_refused(vault):
    vault.write(CAT, OLD, None)
    vault.file(CAT).unlink()
    with pytest.raises(Stale):
        vault.write(CAT, NEW, OLD)
    with pytest.raises(Stale):
        vault.remove(CAT, OLD)
    assert vault.bytes(CAT) is None


@pytest.mark.parametrize(
    "call, was",
    [("os.replace", OLD), ("os.fsync", None), ("os.fsync", OLD), ("os.link", None), ("os.link", OLD)],
)
def test_a_failed_write_leaves_no_trace(vault, monkeypatch, call, was):
    if was:
        vault.write(CAT, was, None)
    before = names(vault) if was else []
    with monkeypatch.context() as patch:
        patch.setattr(call, fail)
        with pytest.raises(OSError, match="disk full"):
            vault.write(CAT, NEW, was)
    assert vault.bytes(CAT) == was
    assert (names(vault) if was else list(vault.root.parent.glob("vault/**"))) == before
    assert vault.ours(OLD) is bool(was) and not vault.ours(NEW)


def test_writing_an_unchanged_note_touches_no_file(vault):
    vault.write(CAT, OLD, None)
    before = vault.file(CAT).stat()
    vault.write(CAT, OLD, OLD)
    assert vault.file(CAT).stat().st_mtime_ns == before.st_mtime_ns
    assert vault.file(CAT).stat().st_ino == before.st_ino


def test_a_note_is_written_on_a_file_system_without_hard_links(vault, monkeypatch):
    def unsupported(*args, **kwargs):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", unsupported)
    vault.write(CAT, OLD, None)
    vault.write(CAT, NEW, OLD)
    with pytest.raises(Stale):
        vault.write(CAT, THEIRS, None)
    assert names(vault) == [f"{CAT}.md"]
    assert vault.bytes(CAT) == NEW


def test_no_two_file_names_differ_only_in_case_or_composition(vault):
    vault.write("nodes/Café", OLD, None)
    for path in ("nodes/café", "nodes/CAFÉ", "nodes/Cafe\u0301"):
        with pytest.raises(Stale, match="Café"):
            vault.write(path, NEW, None)
    assert list(vault.paths()) == ["nodes/Café"]


# --- names


OUTSIDE = [
    *("", "/", "/etc/passwd", "..", "../x", "a/../../x", "a/..", ".", "./a", "a//b", "a/", "/a"),
    *("a\0b", "..\\x", "C:\\x", ".obsidian/x", ".hidden", "nodes/.x", "\udcff"),
]


@pytest.mark.parametrize("path", OUTSIDE)
def test_no_path_leads_outside_the_vault(vault, path):
    for use in (
        vault.file,
        vault.bytes,
        vault.read,
        lambda p: vault.write(p, NEW, None),
        lambda p: vault.remove(p, OLD),
    ):
        with pytest.raises(OutsideVault):
            use(path)
    assert not vault.root.exists()


def test_no_symbolic_link_is_followed(vault, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_bytes(OLD)
    vault.write(CAT, OLD, None)
    (vault.root / "door").symlink_to(outside)
    (vault.root / "secret.md").symlink_to(outside / "secret.md")
    (vault.root / "dangling.md").symlink_to(outside / "new.md")
    (vault.root / "loop").symlink_to(vault.root)
    for path in ("door/secret", "secret", "dangling", "loop/" + CAT):
        with pytest.raises(OutsideVault, match="symbolic link"):
            vault.bytes(path)
        with pytest.raises(OutsideVault, match="symbolic link"):
            vault.write(path, NEW, None)
    assert list(vault.paths()) == [CAT]
    assert sorted(f.name for f in outside.iterdir()) == ["secret.md"]


def test_the_root_itself_may_be_a_symbolic_link(vault, tmp_path):
    vault.write(CAT, OLD, None)
    (tmp_path / "link").symlink_to(vault.root)
    assert Vault(tmp_path / "link").bytes(CAT) == OLD


# --- listing


def test_only_notes_are_listed(vault):
    for path in ("index", CAT, "inbox/buy milk", "a.b/c", "été"):
        vault.write(path, OLD, None)
    for name in (
        ".x.md",
        "x.txt",
        "x.MD",
        ".md",
        "nodes/.omg-12345678.tmp",
        ".obsidian/a.md",
        ".trash/b.md",
        "a\\b.md",
    ):
        file = vault.root / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(NEW)
    (vault.root / os.fsdecode(b"\xff.md")).touch()  # a name that is no UTF-8
    (vault.root / "folder.md").mkdir()
    assert sorted(vault.paths()) == sorted(["index", CAT, "inbox/buy milk", "a.b/c", "été"])
    for path, mtime_ns, size in vault.scan():
        found = vault.file(path).stat()
        assert (mtime_ns, size) == (found.st_mtime_ns, found.st_size)


CONFLICTS = [
    "cat (conflict 2026-03-01)",
    "cat (conflict)",
    "cat (Conflicted copy iPhone 202603011200)",
    "cat (Alice's conflicted copy 2026-03-01)",
    "cat.sync-conflict-20260301-120000-ABCDEFG",
]


def test_conflict_copies_of_sync_services_are_listed_apart_from_notes(vault):
    kept = ["cat", "cat 2", "wars (conflict resolution)", "conflict", "sync-conflict"]
    for name in CONFLICTS + kept:
        vault.write(f"nodes/{name}", OLD, None)
    assert vault.conflicts() == sorted(f"nodes/{name}" for name in CONFLICTS)
    assert sorted(vault.paths()) == sorted(f"nodes/{name}" for name in kept)


def test_a_missing_vault_is_not_taken_for_an_empty_one(vault):
    assert list(vault.paths()) == []  # not begun
    vault.write(CAT, OLD, None)
    vault.root.rename(vault.root.with_name("unmounted"))
    for look in (vault.paths, vault.scan, vault.settle, vault.conflicts, lambda: vault.bytes(CAT)):
        with pytest.raises(NotFound, match="the vault is gone"):
            list(look() or ())
    with pytest.raises(NotFound):
        vault.write(CAT, OLD, None)
    assert not vault.root.exists()


# --- late saves


class Editor:
    """A program that has opened a file, in a process of its own, and saves when it is told to."""

    CODE = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
print("open", flush=True)
for line in sys.stdin:
    os.ftruncate(fd, 0)
    os.pwrite(fd, bytes.fromhex(line), 0)
    os.fsync(fd)
    print("saved", flush=True)
"""

    def __init__(self, file):
        self.process = subprocess.Popen(
            [sys.executable, "-c", self.CODE, str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout.readline() == "open\n"

    def save(self, data):
        print(data.hex(), file=self.process.stdin, flush=True)
        assert self.process.stdout.readline() == "saved\n"

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        assert self.process.wait(10) == 0


@pytest.fixture
def editor(vault):
    vault.write(CAT, OLD, None)
    editor = Editor(vault.file(CAT))
    yield editor
    editor.close()


def test_what_an_editor_saves_into_a_replaced_file_is_kept_as_the_note(vault, editor):
    vault.write(CAT, NEW, OLD)
    editor.save(THEIRS)
    assert vault.bytes(CAT) == NEW
    assert vault.settle(older_than_s=60) == []  # may still be saving
    assert vault.settle(older_than_s=0) == [CAT]
    assert vault.bytes(CAT) == THEIRS and not vault.ours(THEIRS)
    editor.save(THEIRS * 2)  # the same open file is the note again
    assert vault.bytes(CAT) == THEIRS * 2
    assert vault.settle(older_than_s=0) == []
    assert names(vault) == [f"{CAT}.md"]


PHONE = b"From the phone.\n"


@pytest.mark.parametrize("late", [THEIRS, b"\xff\x00"], ids=["text", "no text"])
@pytest.mark.parametrize(
    "meanwhile, stays",
    [
        (lambda vault: vault.file(CAT).write_bytes(PHONE), PHONE),
        (lambda vault: vault.file(CAT).write_bytes(PHONE) and vault.write(CAT, PHONE * 2, PHONE), PHONE * 2),
        (lambda vault: vault.file(CAT).unlink(), None),
    ],
    ids=["saved elsewhere", "saved elsewhere and written by us", "deleted"],
)
def test_a_late_save_into_a_changed_note_lands_in_the_inbox(vault, editor, late, meanwhile, stays):
    vault.write(CAT, NEW, OLD)
    editor.save(late)
    meanwhile(vault)
    (inbox,) = vault.settle(older_than_s=0)
    assert inbox.startswith("inbox/")
    assert (vault.bytes(CAT), vault.bytes(inbox)) == (stays, late)
    assert dotfiles(vault) == []


def test_a_late_save_into_a_removed_note_brings_it_back(vault, editor):
    vault.remove(CAT, OLD)
    editor.save(THEIRS)
    assert vault.settle(older_than_s=0) == [CAT]
    assert names(vault) == [f"{CAT}.md"]
    assert vault.bytes(CAT) == THEIRS


def test_a_save_that_was_cut_off_does_not_empty_the_note(vault, editor):
    vault.write(CAT, NEW, OLD)
    editor.save(b"")
    assert vault.settle(older_than_s=0) == []
    assert vault.bytes(CAT) == NEW


def test_a_late_save_into_a_note_with_a_very_long_name_lands_in_the_inbox(vault):
    path = "nodes/" + "n" * 240
    vault.write(path, OLD, None)
    editor = Editor(vault.file(path))
    vault.write(path, NEW, OLD)
    editor.save(THEIRS)
    editor.close()
    assert vault.settle(older_than_s=0) == ["inbox/saved-meanwhile"]
    assert vault.bytes("inbox/saved-meanwhile") == THEIRS


def test_replaced_versions_of_a_note_are_deleted_if_no_editor_saved_into_them(vault):
    for old, new in pairwise([None, OLD, NEW, OLD, NEW]):
        vault.write(CAT, new, old)
    (vault.root / ".omg-00000000.tmp").write_bytes(b"left by a crash")
    assert vault.settle() == []
    assert len(dotfiles(vault)) == 4
    assert vault.settle(older_than_s=0) == []
    assert names(vault) == [f"{CAT}.md"]


def test_a_strange_file_named_like_a_replaced_version_does_not_stop_the_rescue_of_late_saves(vault, editor):
    vault.write(CAT, NEW, OLD)
    editor.save(THEIRS)
    strange = vault.root / f".omg-00000000-{'0' * 16}-{'0' * 16}~x"
    strange.symlink_to("/etc/passwd")
    assert vault.settle(older_than_s=0) == [CAT]
    assert strange.is_symlink()


# --- whose bytes


def test_a_note_that_a_person_only_moved_still_counts_as_written_by_omg(vault):
    vault.write(CAT, OLD, None)
    assert vault.ours(OLD) and not vault.ours(THEIRS)
    vault.file(CAT).rename(vault.file("moved"))
    assert vault.ours(vault.bytes("moved"))


@pytest.mark.parametrize("torn", [b'{"path": "nodes/fa', b'{"path": 1}\n', b"\xff\n", b"[]\n", b"7\n"])
def test_a_torn_line_of_the_write_record_does_not_spoil_the_other_lines(vault, tmp_path, torn):
    vault.write(CAT, OLD, None)
    with (tmp_path / "written.jsonl").open("ab") as f:
        f.write(torn)
    again = Vault(vault.root, tmp_path / "written.jsonl")
    assert again.ours(OLD)
    again.write("other", NEW, None)
    third = Vault(vault.root, tmp_path / "written.jsonl")
    assert third.ours(OLD) and third.ours(NEW)
    third.compact()  # as a forgetting does: a torn line may name a note
    for line in (tmp_path / "written.jsonl").read_text().splitlines():
        assert json.loads(line).keys() == {"path", "hash"}


def test_after_a_write_on_a_full_disk_the_write_record_is_still_readable(vault, monkeypatch):
    vault.write(CAT, OLD, None)
    assert vault.ours(OLD)

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "append_lines", full)
    for forget in (vault.mark_not_ours, lambda path: vault.remember(path, NEW)):
        with pytest.raises(OSError, match="No space"):
            forget(CAT)
        assert not vault.ours(OLD)


def test_the_list_of_what_we_wrote_does_not_grow_for_ever(vault, tmp_path):
    for n in range(3_000):
        vault.remember(CAT, b"%d" % n)
    lines = (tmp_path / "written.jsonl").read_text().splitlines()
    assert len(lines) < 1_500
    assert Vault(vault.root, tmp_path / "written.jsonl").ours(b"2999")


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([None, b"1", b"2", b"3"]))))
def test_only_the_latest_recorded_text_of_each_path_counts_as_written_by_omg(tmp_path_factory, steps):
    folder = tmp_path_factory.mktemp("v")
    vault = Vault(folder / "vault", folder / "written.jsonl")
    vault.root.mkdir()
    last = {}
    for path, data in steps:
        if data is not None:
            vault.remember(path, data)
            last[path] = data
        elif path in last:
            vault.write(path, last[path], None)
            vault.remove(path, last.pop(path))
    for seen in (vault, Vault(folder / "vault", folder / "written.jsonl")):
        assert {d for d in (b"1", b"2", b"3") if seen.ours(d)} == set(last.values())


# --- inbox


def test_an_inbox_note_overwrites_nothing_and_is_written_once(vault):
    assert vault.put_inbox("For: the cat!", "one") == "inbox/for-the-cat"
    assert vault.put_inbox("For: the cat!", "two") == "inbox/for-the-cat-2"
    assert vault.put_inbox("For: the cat!", "one") == "inbox/for-the-cat"
    assert vault.put_inbox("../../x", "three") == "inbox/x"
    assert vault.text("inbox/for-the-cat") == "one"
    assert not vault.ours(b"one")  # it is for a person to read and change
    vault.file("inbox/odd").mkdir()
    assert vault.put_inbox("odd", "four") == "inbox/odd-2"
    assert len(list(vault.paths())) == 4
