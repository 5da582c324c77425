import contextlib
import itertools
import logging
import os
import shutil
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from omg.embed import Model
from omg.index.archived import read_rows
from omg.index.index import BACKGROUND, Index, prompts_first
from omg.index.search import FOR_PROMPT, How, Rarity
from omg.index.statements import heads_of, put_searched, unsearched
from omg.index.store import Store, terms_of
from omg.inject.prompt import in_order
from omg.message.envelope import MEMORY_WRITTEN
from omg.message.turn import Message, message_to_json
from omg.node.note import Node, Source, render_node
from omg.vault.vault import Vault

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
CAT = "nodes/fact/cat"
CLOCK = itertools.count()


@pytest.fixture
def vault(tmp_path):
    (tmp_path / "vault").mkdir()
    return Vault(tmp_path / "vault", tmp_path / "written.jsonl")


@pytest.fixture
def index(tmp_path):
    index = Index(tmp_path / "index.db", patience_s=1)
    yield index
    index.close()


def save(vault, path, text="", **fields):
    """Write a note as a person or the Observer would; *text* alone makes a file without a head."""
    file = vault.root / f"{path}.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    if fields:
        fields = {
            "id": f"omg/{path.removeprefix('nodes/')}",
            "description": text.strip(),
            "type": "fact",
            **fields,
        }
        text = render_node(Node(path=path, body=text, **fields))
    file.write_text(text, encoding="utf-8")
    age(file)


def age(file):
    """Set the file's time back: the index reads a file twice that was saved just now."""
    os.utime(file, ns=(1, time.time_ns() - 3_600_000_000_000 + next(CLOCK) * 1_000_000))


def rename(vault, old, new):
    target = vault.root / f"{new}.md"
    target.parent.mkdir(parents=True, exist_ok=True)
    (vault.root / f"{old}.md").rename(target)


def found(index, query, **options):
    return [hit.entry.path for hit in index.search(query, now=NOW, **options)]


def archive(folder, *messages, session="s", name="2026-03.jsonl"):
    folder.mkdir(exist_ok=True)
    with (folder / name).open("a", encoding="utf-8") as f:
        f.writelines(message_to_json(m, session) + "\n" for m in messages)
    return folder


def said(n, text, role="user", **fields):
    return Message(f"m{n}", role, text, 1_772_000_000_000 + n * 60_000, **fields)


class Letters:
    """An embedder whose vectors a test can read: how often a text has each of the letters a to h."""

    dim = 8

    def __init__(self, id="letters", sign=1.0):
        self.id, self.sign, self.asked = id, sign, []

    def __call__(self, texts):
        self.asked += texts
        counts = [[text.lower().count(letter) for letter in "abcdefgh"] for text in texts]
        vectors = self.sign * np.array(counts, np.float32)
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def everything(index):
    """Return every answer of an index, except mtimes."""
    entries = [replace(e, mtime=0) for e in index.entries(status=None)]
    paths = [e.path for e in entries]
    return (
        entries,
        [(links_of(index, p), index.backlinks(p), index.sources(p)) for p in paths],
        index.dangling(),
        index.bad(),
        index.moc_counts(),
        [
            [(h.entry.path, h.score) for h in index.search(q, now=NOW)]
            for q in ("alpha", "beta gamma", "delta")
        ],
    )


# --- following the files


def links_of(index: Index, path: str) -> list[str]:
    entry = index.entry(path)
    return list(entry.links) if entry else []


def test_a_file_saved_with_the_same_bytes_has_not_changed(vault, index):
    save(vault, CAT, "The cat is called Cleo.")
    index.sync(vault)
    save(vault, CAT, "The cat is called Cleo.")
    assert index.sync(vault).changed == ()


def test_a_save_within_the_same_tick_and_of_the_same_size_is_seen(vault, index):
    index.sync(vault)  # to make the index file takes longer than a tick
    file = vault.root / "a.md"
    file.write_text("alpha")
    stamp = file.stat().st_mtime_ns
    index.sync(vault)
    file.write_text("gamma")
    os.utime(file, ns=(stamp, stamp))
    assert index.sync(vault).changed == ("a",)
    assert found(index, "gamma") == ["a"]


def test_a_note_renamed_during_a_scan_counts_as_moved(vault, index, monkeypatch):
    save(vault, "nodes/fact/old", "Alpha.", id="omg/fact/alpha")
    index.sync(vault)
    look = type(vault).scan

    def renamed_meanwhile(self):
        monkeypatch.undo()
        listed = list(self._notes())
        (vault.root / "nodes/fact/old.md").rename(vault.root / "nodes/fact/new.md")
        yield from ((path, *times) for path, *times in look(self) if path in dict(listed))

    monkeypatch.setattr(type(vault), "scan", renamed_meanwhile)
    synced = index.sync(vault)
    assert synced.moved == (("nodes/fact/old", "nodes/fact/new"),)
    assert synced.removed == ()


def test_the_index_knows_which_of_two_contradicting_notes_of_a_day_was_said_last(vault, index):
    day = {"created": NOW.date(), "type": "fact", "origin": "user"}
    noon = round(NOW.timestamp() * 1000)
    for name, said_ms, other in (("late", noon + 60_000, ("nodes/fact/early",)), ("early", noon, ())):
        sources = (Source("s", name, said_ms),)
        save(vault, f"nodes/fact/{name}", f"It is {name}.", sources=sources, contradicts=other, **day)
    index.sync(vault)
    early, late = index.entries(type="fact")
    assert early.contradicts == (late.path,) and late.contradicts == (early.path,)
    assert late.said_last and not early.said_last
    assert in_order([late, early]) == [early, late]


def test_a_copied_note_does_not_count_as_moved(vault, index):
    save(vault, CAT, "The cat is called Cleo.", id="omg/fact/cat")
    index.sync(vault)
    shutil.copy(vault.root / f"{CAT}.md", vault.root / "copy.md")
    assert index.sync(vault).moved == ()
    assert len(index.entries()) == 2


def test_a_file_that_is_not_a_note_is_reported_and_affects_no_other_file(vault, index):
    save(vault, "good", "alpha")
    save(vault, "broken", "---\nid: [unclosed\n---\nbeta\n")
    (vault.root / "latin.md").write_bytes("---\nid: x\n---\nchâteau".encode("latin-1"))
    age(vault.root / "latin.md")
    synced = index.sync(vault)
    assert synced.changed == ("good",) and synced.bad.keys() == {"broken", "latin"} == index.bad().keys()
    assert "UTF-8" in index.bad()["latin"] and found(index, "alpha") == ["good"]
    assert index.sync(vault).bad == {}  # nothing new
    save(vault, "broken", "---\nid: x\n---\nbeta\n")
    (vault.root / "latin.md").unlink()
    assert index.sync(vault).changed == ("broken",)
    assert index.bad() == {} and found(index, "beta") == ["broken"]


def test_a_note_that_becomes_unreadable_is_not_taken_for_deleted(vault, index):
    save(vault, CAT, "The cat is called Cleo.", sources=(Source("s", "m1", 1),))
    index.sync(vault)
    save(vault, CAT, "---\nid: [unclosed\n---\n")
    synced = index.sync(vault)
    assert synced.removed == () and synced.bad.keys() == {CAT}


PATHS = ("a", "b", "x/a", "x/c", "mocs/moc-facts")
BODIES = (
    "alpha [[a]] [[b|beta]]",
    "# Delta\n\nbeta gamma [[x/a]] [[c]]",
    "---\nid: same\naliases: [a]\nlinks: ['[[mocs/moc-facts]]']\n---\n\ngamma [[mocs/moc-facts]]",
    "---\ntype: moc\n---\n\n[[a]] [[b]] [[x/c]]",
    "---\nid: [broken\n---\nalpha",
    "---\ntype: fact\nstatus: superseded\nsuperseded_by: '[[b]]'\nsources: [{sessionKey: s, id: m1, timestamp: 1}]\n---\nalpha delta",
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("save", "delete", "move")), st.sampled_from(PATHS), st.integers(0, len(BODIES) - 1)
    ),
    max_size=12,
)


@given(steps=STEPS, cuts=st.sets(st.integers(0, 11)), partial=st.booleans())
@example(steps=[("save", "a", 0), ("save", "b", 3), ("save", "b", 0)], cuts={1}, partial=False)
@example(steps=[("save", "b", 1), ("save", "x/a", 0), ("save", "a", 1)], cuts={1}, partial=True)
@settings(max_examples=40, deadline=None)
def test_an_index_updated_step_by_step_equals_a_fresh_one(tmp_path_factory, steps, cuts, partial):
    home = tmp_path_factory.mktemp("law")
    (home / "vault").mkdir()
    vault, index = Vault(home / "vault"), Index(home / "a.db")
    index.sync(vault)
    touched = []
    for n, (what, path, body) in enumerate(steps):
        file = vault.root / f"{path}.md"
        other = PATHS[body % len(PATHS)]
        if what == "save":
            save(vault, path, BODIES[body])
        elif what == "delete":
            file.unlink(missing_ok=True)
        elif file.exists():
            rename(vault, path, other)
        touched += [path, other]
        if n in cuts:
            index.sync(vault, touched if partial else None)
            touched = []
    index.sync(vault, touched if partial else None)
    anew = Index(home / "b.db")
    anew.sync(vault)
    assert everything(index) == everything(anew)
    index.close()
    anew.close()
    shutil.rmtree(home)


# --- links


def test_a_link_resolves_by_path_or_id_or_alias_or_end_of_path_in_upper_or_lower_case(vault, index):
    save(
        vault,
        "nodes/preference/answer-style",
        "Short.",
        id="omg/preference/answer-style",
        aliases=("inbox/Old Name",),
    )
    index.sync(vault)
    for link in (
        *(
            "nodes/preference/answer-style",
            "omg/preference/answer-style",
            "inbox/old name",
            "preference/answer-style",
        ),
        *(
            "Answer-Style",
            "NODES/Preference/ANSWER-style.md",
            "/nodes/preference/answer-style",
            "../preference/answer-style",
        ),
    ):
        assert index.resolve(link) == "nodes/preference/answer-style", link
    for link in ("style", "nswer-style", "answer-style/x", "", "other/answer-style"):
        assert index.resolve(link) is None, link


def test_an_ambiguous_name_resolves_to_no_note_and_the_candidates_are_listed(vault, index):
    save(vault, "x/plan", "alpha")
    save(vault, "y/plan", "beta")
    save(vault, "z", "See [[plan]], [[x/plan]] and [[missing]].")
    index.sync(vault)
    assert index.resolve("plan") is None
    assert index.ambiguous("plan") == ["x/plan", "y/plan"] and index.ambiguous("x/plan") == []
    assert index.dangling() == [("z", "missing"), ("z", "plan")]
    assert links_of(index, "z") == ["x/plan"]


def test_a_link_prefers_a_path_to_an_id_and_an_id_to_an_alias(vault, index):
    save(vault, "a", "x", id="other/a")
    save(vault, "b", "x", id="a/b")
    save(vault, "c", "x", id="c/c", aliases=("a", "a/b", "only"))
    index.sync(vault)
    assert [index.resolve(n) for n in ("a", "a/b", "only")] == ["a", "b", "c"]


def test_links_in_the_head_come_first_and_links_in_code_do_not_count(vault, index):
    save(vault, "a", "See [[b]], `[[code]]` and [[c]].", links=("mocs/moc-facts", "c"))
    for path in ("b", "c", "mocs/moc-facts"):
        save(vault, path, "x")
    index.sync(vault)
    assert links_of(index, "a") == ["mocs/moc-facts", "c", "b"]


# --- the archive


def test_only_new_lines_of_the_archive_are_read(index, tmp_path):
    folder = archive(tmp_path / "archive", said(1, "hello"), said(2, "again"))
    assert index.archive(folder) == 2
    assert index.archive(folder) == 0
    archive(folder, said(3, "later"), said(2, "again"))
    assert index.archive(folder) == 1
    assert index.seen(["m1", "m3", "m9", said(2, "again").key]) == {"m1", "m3", said(2, "again").key}
    assert [m.text for m in index.messages(["m3", "m1"])] == ["hello", "later"]


def test_an_unfinished_line_is_read_later_and_a_damaged_line_affects_no_other(index, tmp_path):
    folder = archive(tmp_path / "archive", said(1, "hello"))
    file = folder / "2026-03.jsonl"
    line = message_to_json(said(2, "a line separator \u2028 inside"), "s")
    file.write_text(file.read_text() + "{torn\n" + line[:20], encoding="utf-8")
    assert index.archive(folder) == 1
    file.write_text(file.read_text() + line[20:] + "\n", encoding="utf-8")
    assert index.archive(folder) == 1
    assert index.messages(["m2"])[0].text == "a line separator \u2028 inside"


def test_a_rewritten_archive_is_read_again_and_its_removed_messages_leave_the_index(vault, index, tmp_path):
    folder = archive(tmp_path / "archive", *(said(n, f"secret{n} word") for n in range(5)))
    index.archive(folder)
    file = folder / "2026-03.jsonl"
    file.write_text(
        "".join(line for line in file.read_text().splitlines(keepends=True) if "secret2" not in line)
    )
    archive(folder, said(9, "a line that makes it longer than it ever was, so that size alone says nothing"))
    index.archive(folder)
    assert index.seen(["m1", "m2", "m9"]) == {"m1", "m9"}
    assert index.search_raw("secret2", now=NOW) == []
    file.unlink()
    index.archive(folder)
    assert index.seen(["m1", "m9"]) == set()


def test_a_sentence_deep_in_a_reply_is_found_and_leaves_with_its_message(index, tmp_path):
    lines = "\n".join(
        f"- Tip {n}: something about the garden in its month number {n}, and more of it" for n in range(300)
    )
    reply = (
        f"# Tools\n{lines}\n## Sharpening\nUse the zanzibar stone for every blade that you have in the shed."
    )
    folder = archive(tmp_path / "archive", said(1, reply, role="assistant"))
    index.archive(folder)
    (found,) = index.find_said("zanzibar stone", now=NOW)
    spans = index.ask(read_rows, [found.row])[found.row][2]
    span = spans[found.place]
    assert reply[span.start : span.end].startswith("Use the zanzibar stone")
    assert [reply[h.start : h.end] for h in heads_of(spans, found.place)] == ["## Sharpening", "# Tools"]
    (folder / "2026-03.jsonl").unlink()
    index.archive(folder)
    assert index.find_said("zanzibar stone", now=NOW) == []
    for table in ("spoken", "statement_vector"):
        assert index.ask(lambda db, table=table: db.execute(f"select count(*) from {table}").fetchone()) == (
            0,
        )


def test_if_all_words_are_common_the_rarest_is_searched(index, tmp_path):
    texts = [f"The kiln {'burns' if n % 2 else 'cools'} again." for n in range(20)]
    index.archive(archive(tmp_path / "archive", *(said(n, text) for n, text in enumerate(texts))))
    rarity = Rarity("statement_fts", "statements", postings=4)
    for _ in range(2):
        terms, _ = index.ask(rarity.choose, terms_of("kiln burns"))
        assert [term.shown for term in terms] == ["burns"]
    assert index.ask(rarity.choose, terms_of("burns zebra"))[0] == terms


@pytest.mark.parametrize("silent", ["", MEMORY_WRITTEN])
def test_an_empty_message_is_not_found_by_the_words_of_the_messages_around_it(index, tmp_path, silent):
    talk = [said(0, "Remember the aurora."), said(1, silent, role="assistant"), said(2, silent, role="tool")]
    index.archive(archive(tmp_path / "archive", *talk))
    assert [m.id for m, *_ in index.search_raw("aurora", now=NOW)] == ["m0"]


def test_a_search_ranks_matching_messages_before_their_neighbours(vault, index, tmp_path):
    talk = [said(1, "Ramiro, Ramiro, Ramiro!"), said(2, "We ate there.")]
    index.archive(archive(tmp_path / "archive", *talk))
    near = {"sources": (Source("s", "m2", talk[1].timestamp),)}
    save(vault, "nodes/fact/dinner", "They had dinner.", **near)
    save(
        vault,
        "nodes/fact/waiter",
        "The waiter is Ramiro. " + "He told many stories of the sea. " * 40,
        description="A waiter.",
    )
    index.sync(vault)
    paths = ["nodes/fact/waiter", "nodes/fact/dinner"]
    assert [h.entry.path for h in index.search("Ramiro", now=NOW)] == paths
    assert [h.entry.path for h in index.search("Ramiro", now=NOW, how=FOR_PROMPT)] == paths[::-1]


def test_a_message_half_a_day_later_belongs_to_another_conversation(vault, index, tmp_path):
    near, late = said(1, "We ate at Ramiro."), said(2, "The boiler is broken.")
    late = replace(late, timestamp=near.timestamp + 12 * 3_600_000)
    save(vault, "a", "A dinner.", type="fact", sources=(Source("s", "m1", near.timestamp),))
    index.archive(archive(tmp_path / "archive", near, late))
    index.sync(vault)
    assert found(index, "Ramiro") == ["a"] and found(index, "boiler") == []


# --- vectors


def test_a_search_uses_the_embedding_model_only_after_it_is_loaded(vault, tmp_path):
    save(vault, "a", "alpha")
    model = Letters()
    index = Index(tmp_path / "v.db", model)
    index.sync(vault)
    found(index, "alpha")
    assert model.asked == []
    while index.embed():
        pass
    found(index, "alpha", how=How(vectors=False))
    assert "alpha" not in model.asked
    found(index, "alpha")
    assert "alpha" in model.asked


def test_only_a_note_whose_text_changed_is_embedded_again(vault, tmp_path):
    save(vault, "a", "alpha", type="fact", created=date(2026, 1, 1))
    save(vault, "b", "beta")
    model = Letters()
    index = Index(tmp_path / "v.db", model)
    index.sync(vault)
    assert index.embed() == 2
    save(vault, "a", "alpha", type="fact", created=date(2026, 2, 2))
    index.sync(vault)
    assert index.embed() == 0
    save(vault, "a", "alpha gamma", type="fact", created=date(2026, 2, 2))
    index.sync(vault)
    assert index.embed() == 1 and index.embed() == 0


def test_an_embedder_never_compares_with_the_vectors_of_another_embedder(vault, tmp_path):
    for name in ("aaab", "cccd"):
        save(vault, name, name)
    first, second = Letters("first"), Letters("second", sign=-1.0)  # as far from the first's as can be
    index = Index(tmp_path / "v.db", first)
    index.sync(vault)
    while index.embed():
        pass
    assert found(index, "abba") == ["aaab"]
    index.close()
    index = Index(tmp_path / "v.db", second)
    index.sync(vault)
    assert found(index, "abba") == found(index, "dcdc") == []
    index.embed(1)
    # the other is not compared
    assert sorted(found(index, "abba") + found(index, "dcdc")) in (["aaab"], ["cccd"])
    while index.embed():
        pass
    assert (found(index, "abba"), found(index, "dcdc")) == (["aaab"], ["cccd"])
    index.close()


def test_vectors_of_statements_are_made_once_by_the_current_embedder(vault, tmp_path):
    """
    A process whose first vectors were notes' once kept another embedder's vectors, or made all vectors again.
    """
    made: list[str] = []

    def opened(n: int) -> Index:
        def embed(texts):
            made.extend(texts)
            return np.full((len(texts), 64), 1 / n, np.float32)

        embed.id = f"embedder {n}"
        return Index(tmp_path / "v.db", embed)

    save(vault, "pond", "The garden has a pond", type="fact")
    folder = archive(tmp_path / "archive", said(1, "The kiln is behind the shed."))
    for n, count in ((1, 1), (1, 0), (2, 1)):
        index = opened(n)
        index.sync(vault)
        index.archive(folder)
        made.clear()
        while index.embed():
            pass
        assert made.count("The kiln is behind the shed.") == count
        (data,) = index.ask(lambda db: db.execute("select data from statement_vector").fetchone())
        assert np.frombuffer(data, np.int8)[0] == round(127 / n)
        index.close()


def test_a_statement_without_the_questions_words_is_found_by_meaning(tmp_path, monkeypatch):
    def embed(texts):
        pets = [any(word in text for word in ("pet", "cat")) for text in texts]
        return np.where(np.array(pets)[:, np.newaxis], 1, -1) * np.full((1, 64), 1 / 8, np.float32)

    embed.id = "pets"
    index = Index(tmp_path / "v.db", embed)
    index.archive(archive(tmp_path / "archive", said(1, "The kiln is cold."), said(2, "My cat is grey.")))
    while index.embed():
        pass
    monkeypatch.setattr("omg.index.statements.POOL", 1)
    assert [(f.words, round(f.cosine, 2)) for f in index.find_said("Which pet?", now=NOW)] == [(0, 1)]
    index.close()


def test_a_message_that_changes_while_it_is_searched_for_secrets_is_searched_again(index, tmp_path):
    folder = archive(tmp_path / "archive", said(1, "The kiln is cold."))
    index.archive(folder)
    searched = index.ask(unsearched, 9)
    (folder / "2026-03.jsonl").unlink()
    index.archive(archive(folder, said(1, "The kiln is hot.")))
    assert [row for row, _ in index.ask(unsearched, 9)] == [row for row, _ in searched]
    index._write(put_searched, searched, [False])
    assert index.look_for_secrets() == 1


def test_a_note_that_changes_while_it_is_embedded_does_not_get_the_old_vector(vault, tmp_path):
    save(vault, "a", "alpha")

    class Slow(Letters):
        def __call__(self, texts):
            if any("alpha" in t for t in texts):
                save(vault, "a", "beta")
                index.sync(vault)
            return super().__call__(texts)

    index = Index(tmp_path / "v.db", Slow())
    index.sync(vault)
    index.embed()
    assert index.embed() == 1 and index.embed() == 0


@pytest.mark.parametrize("others", [5, 60])
def test_a_weak_similarity_scores_the_same_among_few_notes_and_many(vault, tmp_path, others):
    known = {}

    def embed(texts):
        """Of cosine .2 with each other, and of 1 with what is the same up to the x."""
        vectors = np.zeros((len(texts), 80), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            at = known.setdefault(text.lower().partition("x")[0], len(known) + 1)
            row[0], row[at] = 0.2**0.5, 0.8**0.5
        return vectors

    embed.id = "few"
    index = Index(tmp_path / "v.db", embed)
    for n in range(others + 1):
        save(vault, f"w{n}xa", f"w{n}xa", type="fact")
    index.sync(vault)
    while index.embed():
        pass
    hits = index.search("w0xb", now=NOW)
    assert (hits[0].entry.path, hits[0].weak) == ("w0xa", False)
    assert "close in meaning" in hits[0].why
    assert all(hit.weak for hit in hits[1:])
    index.close()


def test_search_falls_back_to_words_if_the_embedder_cannot_be_loaded(vault, tmp_path, caplog):
    def broken():
        raise RuntimeError("no torch today")

    save(vault, "a", "alpha")
    index = Index(tmp_path / "v.db", Model("broken", broken))
    index.sync(vault)
    assert index.embed() == 0 and "no torch today" in caplog.text
    assert found(index, "alpha") == ["a"]


def test_a_question_about_days_finds_notes_of_those_days_and_not_similar_words(vault, tmp_path):
    save(vault, "then", "Bought a boiler.", event="2026-03-09")
    save(vault, "sounds", "What did you do, and what did I not do? Yesterday, a song.")
    index = Index(tmp_path / "v.db", Letters())
    index.sync(vault)
    while index.embed():
        pass
    for question in ("yesterday", "What did I do yesterday?"):
        assert found(index, question) == ["then"]
    assert found(index, "What about the song yesterday?")[0] == "sounds"
    index.close()


# --- what may happen to the file


def lines_of(caplog):
    return [r.getMessage() for r in caplog.records if r.name.startswith("omg.index.index")]


def empty(file):
    file.write_bytes(b"")


def ruin_with_text(file):
    file.write_text("this is no database, and never was one" * 200)


def make_older(file):
    db = sqlite3.connect(file)
    db.execute("pragma user_version=0")
    db.execute("drop table link")
    db.commit()
    db.close()


def ruin_some_words(file):
    data = file.read_bytes()
    assert b"alpha number" in data
    file.write_bytes(data.replace(b"alpha number", b"alph\xff number"))


def ruin_a_table_of_words(file):
    db = sqlite3.connect(file)
    db.execute("drop table note_fts_config")
    db.commit()
    db.close()


RUINS = [ruin_with_text, ruin_some_words, ruin_a_table_of_words, empty, make_older, os.unlink]


@pytest.mark.parametrize("ruin", RUINS)
@pytest.mark.parametrize("open_meanwhile", [True, False])
def test_an_unusable_index_is_rebuilt_and_one_line_is_logged(vault, tmp_path, caplog, ruin, open_meanwhile):
    file = tmp_path / "index.db"
    for n in range(50):
        save(vault, f"n{n}", f"alpha number{n} [[n{n - 1}]]", sources=(Source("s", "m1", 1_772_000_060_000),))
    folder = archive(tmp_path / "archive", said(1, "a word that only the archive has: zanzibar"))
    index = Index(file, patience_s=1)
    index.archive(folder)
    index.sync(vault)
    before = everything(index)
    if not open_meanwhile or ruin is not os.unlink:
        index.close()
        for suffix in ("-wal", "-shm"):
            file.with_name(file.name + suffix).unlink(missing_ok=True)
    ruin(file)
    caplog.clear()
    caplog.set_level(logging.INFO)
    if not open_meanwhile:
        index = Index(file, patience_s=1)
        index.archive(folder)
        index.sync(vault)
    assert len(found(index, "zanzibar", k=100)) == 50
    assert everything(index) == before
    assert [m.id for m, _, _ in index.search_raw("zanzibar", now=NOW)] == ["m1"]
    if ruin is not os.unlink or open_meanwhile:
        assert len(lines_of(caplog)) == 1 and str(file) in lines_of(caplog)[0]
        assert "number" not in lines_of(caplog)[0]
    assert (index.damage() is None) is (ruin is os.unlink or (ruin is make_older and not open_meanwhile))
    index.close()


def test_an_index_that_somebody_keeps_locked_is_replaced(vault, tmp_path, caplog):
    save(vault, "a", "alpha")
    index = Index(tmp_path / "index.db", patience_s=0.2)
    index.sync(vault)
    caplog.set_level(logging.INFO)
    caplog.clear()
    holder = sqlite3.connect(tmp_path / "index.db", isolation_level=None)
    holder.execute("begin exclusive")
    save(vault, "b", "beta")
    assert found(index, "alpha") == ["a"]  # a reader does not mind
    index.sync(vault)
    assert found(index, "beta") == ["b"]
    assert len(lines_of(caplog)) == 1 and "locked" in lines_of(caplog)[0]
    holder.close()
    index.close()


# --- many at once


def test_processes_that_start_together_build_one_index_and_keep_every_row(tmp_path):
    for round in range(10):
        file, gate = tmp_path / f"{round}.db", threading.Barrier(8)

        def begin(n, file=file, gate=gate):
            gate.wait()
            store = Store(file)
            store.look()
            with store.write() as db:
                db.execute("insert into meta values (?, 1)", (f"by {n}",))
            store.close()

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(begin, range(8)))
        with contextlib.closing(sqlite3.connect(file)) as db:
            assert db.execute("select count(*) from meta where key like 'by %'").fetchone() == (8,)


def test_only_background_threads_wait_while_a_prompt_is_answered(index):
    asked = threading.Event()

    def ask():
        index.resolve("cat")
        asked.set()

    with prompts_first.answering():
        threading.Thread(target=ask).start()
        assert asked.wait(5)
        asked.clear()
        threading.Thread(target=ask, name=BACKGROUND).start()
        assert not asked.wait(0.02)
    assert asked.wait(5)


def test_endless_prompts_do_not_stop_background_threads(index):
    asked = threading.Event()

    def ask():
        for _ in range(20):
            index.resolve("cat")
        asked.set()

    with prompts_first.answering():
        threading.Thread(target=ask, name=BACKGROUND).start()
        assert asked.wait(5)
