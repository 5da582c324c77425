import os
from datetime import UTC, date, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omg.index import search as scores
from omg.index.index import Index
from omg.message.turn import Message, message_to_json
from omg.node.note import Node, Source, render_node
from omg.text.characters import fold_text
from omg.vault.vault import Vault

NOW = datetime(2026, 3, 11, 12, tzinfo=UTC)  # a Wednesday


def ms(day):
    return int(datetime(day.year, day.month, day.day, 12, tzinfo=UTC).timestamp() * 1000)


@pytest.fixture
def remember(tmp_path):
    """Write notes, index them, and return a function that searches and gives paths (or hits)."""
    (tmp_path / "vault").mkdir()
    vault, index = Vault(tmp_path / "vault"), Index(tmp_path / "index.db")

    def write(notes=None, **more):
        for path, fields in {**(notes or {}), **more}.items():
            fields = {"text": fields} if isinstance(fields, str) else dict(fields)
            text = fields.pop("text")
            node = Node(
                path=path, id=f"omg/{path}", description=text, body=text, **{"type": "fact", **fields}
            )
            file = vault.root / f"{path}.md"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(render_node(node), encoding="utf-8")
            os.utime(file, ns=(1, 1))
        index.sync(vault)
        return find

    def find(query, hits=False, **options):
        found = index.search(query, now=NOW, **options)
        return found if hits else [hit.entry.path for hit in found]

    yield write
    index.close()


# --- what may be asked


@pytest.mark.parametrize(
    "query",
    ["When's Ines' birthday?", "Ines’s birthday", "birthday NEAR(x", '"birthday', "birthday*", "-birthday", "(birthday", "title:birthday",
     "{body}: birthday", "birthday AND OR NOT", "^birthday", "birthday + ines", "birthday\x00", "birthday\ud800", "a" * 50_000 + " birthday"],
)  # fmt: skip
def test_no_character_of_a_question_is_read_as_syntax(remember, query):
    find = remember(ines="Ines has her birthday on 4 May.", other="The boiler is broken.")
    assert find(query)[:1] == ([] if len(query) > 2000 else ["ines"])


@given(st.text(max_size=200))
@settings(max_examples=150, deadline=None)
def test_any_text_can_be_searched_without_an_error(shared, text):
    for hit in shared(text):
        assert 0 <= hit.score <= 1


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    home = tmp_path_factory.mktemp("shared")
    (home / "vault").mkdir()
    for n, text in enumerate(
        ["The cat", "猫が好き", "C++ and node.js", "كتاب", "to be or not to be", "3.14"]
    ):
        (home / "vault" / f"n{n}.md").write_text(text, encoding="utf-8")
    index = Index(home / "index.db")
    index.sync(Vault(home / "vault"))
    yield lambda text: index.search(text, now=NOW)
    index.close()


def test_a_question_without_words_finds_nothing(remember):
    find = remember(a="alpha")
    assert find("") == find("   ") == find("?! …") == find("👍") == []


def test_a_question_of_stop_words_alone_still_looks_for_them(remember):
    find = remember(band="We saw The Who in London.", other="The boiler is broken.")
    assert find("the who")[0] == "band"
    assert find("who?") == ["band"]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Will moved to Porto.", "Where does Will live?"),
        ("May is the sister of Tom.", "Who is May?"),
        ("The error code is E1147.", "what was that error, E1147?"),
        ("He rents flat 12b.", "Which flat, 12b?"),
        ("Uses C++ at work.", "Do they write C++?"),
        ("The site runs on node.js 22.", "which node.js?"),
        ("Upgraded to v2.3.1 on Monday.", "when did we go to v2.3.1"),
        ("The to-do list is on the fridge.", "to-do?"),
        ("Pi is 3.14159.", "3.14159"),
        ("Her email is ines@example.org.", "ines@example.org"),
        ("The snake_case_name is kept.", "snake_case_name"),
        ("She likes crème brûlée.", "creme brulee"),
        ("Ordered ｆｕｌｌ width.", "full"),
    ],
)
def test_names_numbers_and_rare_words_are_searched(remember, text, query):
    others = {
        f"other{n}": f"Something else about the {w}, which was moved on Monday."
        for n, w in enumerate("flat site list".split())
    }
    assert remember(this=text, **others)(query)[0] == "this"


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("我昨天在北京吃了烤鸭。", "北京的烤鸭好吃吗？"),
        ("我喜欢用Python写程序。", "你喜欢Python吗"),
        ("東京タワーに行きました。", "東京タワーはいつ？"),
        ("저는 한국어를 공부합니다.", "한국어 공부"),
        ("ฉันชอบกินส้มตำ", "ส้มตำ"),
        ("يسكن محمد في القاهرة منذ عام.", "أين يسكن محمد؟ في قاهرة"),
        ("كِتَابٌ جديد", "الكتاب"),
        ("هوسکن در تهران", "تهران"),
        ("Она живёт в Москве с кошкой.", "москва кошка"),
        ("היא גרה בתל אביב", "תל אביב"),
        ("वह हिन्दी सीख रही है", "हिन्दी"),
        ("Ζει στην Αθήνα.", "Αθήνας"),
        ("Er wohnt in der Königstraße.", "königstraße"),
        ("Er wohnt in der Königstraße.", "konigstrasse"),
        ("Łukasz Żółć hat angerufen.", "Lukasz Zolc"),
        ("Zadzwonił Lukasz.", "Łukasz"),
        ("Søren bor i Ærøskøbing.", "soren aeroskobing"),
        ("Hún heitir Þóra Guðmundsdóttir.", "Thora Gudmundsdottir"),
    ],
)
def test_words_in_other_scripts_are_found(remember, text, query):
    others = {
        f"other{n}": t
        for n, t in enumerate(
            ("今天天气很好。", "جو لطيف", "Погода хорошая.", "The weather is fine.", "วันนี้อากาศดี")
        )
    }
    assert remember(this=text, **others)(query)[:1] == ["this"]


def test_stop_words_do_not_outweigh_words_that_carry_meaning(remember):
    find = remember(
        chatter="What did you do when you were there and how was it for you?", this="Melanie paints."
    )
    assert find("What is it that Melanie does when she paints?")[0] == "this"


@given(st.text(max_size=80))
def test_folding_characters_twice_changes_nothing_more(text):
    assert fold_text(fold_text(text)).split() == fold_text(text).split()


# --- which comes first


def test_a_replaced_note_ranks_after_its_successor(remember):
    find = remember(
        old={
            "text": "Ines drinks her coffee black, always black coffee.",
            "status": "superseded",
            "superseded_by": "mid",
        },
        mid={"text": "Ines takes oat milk.", "status": "superseded", "superseded_by": "new"},
        new={"text": "Ines has stopped, she drinks tea.", "supersedes": ("mid",)},
        other="Tom likes coffee.",
    )
    assert find("How does Ines take her black coffee?")[:1] == ["new"]
    found = find("black coffee")
    assert found.index("new") < found.index("old")
    assert "replaces" in find("black coffee", hits=True)[0].why


def test_a_circle_of_successors_does_not_hang_a_search(remember):
    find = remember(
        {
            n: {"text": "alpha", "status": "superseded", "superseded_by": other}
            for n, other in (("a", "b"), ("b", "a"))
        }
    )
    assert sorted(find("alpha")) == ["a", "b"]


def test_a_dormant_note_is_found_after_an_active_one(remember):
    find = remember(a={"text": "alpha beta", "status": "dormant"}, b="alpha beta")
    assert find("alpha") == ["b", "a"]


def test_search_never_returns_maps_or_logs_or_the_index_page_or_the_now_page(remember):
    types = {f"mocs/{t}": {"text": "alpha", "type": t} for t in ("index", "now", "moc", "log")}
    find = remember(
        {
            **types,
            "reflections/log/2026-03": "alpha",
            "note": {"text": "alpha", "type": "note"},
            "week": {"text": "alpha", "type": "reflection"},
        }
    )
    assert sorted(find("alpha")) == ["note", "week"]


def test_priority_and_freshness_and_use_decide_only_between_equal_matches(remember):
    day = date(2026, 3, 1)
    find = remember(
        low={"text": "alpha beta", "priority": "low", "created": day},
        high={"text": "alpha beta", "priority": "high", "created": day},
        better={"text": "alpha gamma", "priority": "low", "created": date(2020, 1, 1)},
        fresh={"text": "delta", "created": date(2026, 3, 10)},
        stale={"text": "delta", "created": date(2025, 3, 10)},
        used={"text": "epsilon", "created": day},
        unused={"text": "epsilon", "created": day},
    )
    assert find("alpha")[:2] != ["low", "high"] and find("beta") == ["high", "low"]
    assert find("gamma alpha")[0] == "better"
    assert find("delta") == ["fresh", "stale"]
    assert find("epsilon", uses={"omg/used": (9, 0)}) == ["used", "unused"]
    assert find("epsilon", uses={"omg/unused": (9, 0)}) == ["unused", "used"]


def test_a_search_for_a_day_ranks_notes_of_that_day_higher(remember):
    def on(day, text="Worked on the garden.", **fields):
        return {"text": text, "sources": (Source("s", str(day), ms(day)),), **fields}

    find = remember(
        march=on(date(2026, 3, 10)),
        lastweek=on(date(2026, 3, 4)),
        may=on(date(2025, 5, 20)),
        planned=on(date(2026, 2, 1), "Will visit the garden show.", event="2026-03-05..2026-03-06"),
        elsewhere=on(date(2026, 3, 3), "Bought a boiler."),
    )
    assert find("what about the garden last week?")[0] in ("lastweek", "planned")
    assert set(find("what about the garden last week?")[:2]) == {"lastweek", "planned"}
    assert find("the garden in May 2025")[0] == "may"
    assert set(find("What happened last week?")[:3]) == {"lastweek", "planned", "elsewhere"}
    assert "last week" in find("What happened last week?", hits=True)[0].why


# --- links


def test_a_note_that_shares_no_word_is_found_by_its_link(remember):
    find = remember(
        sister="Tom's sister is [[bea|Bea]].", bea="Bea works at the zoo.", stranger="Otto works at the bank."
    )
    assert find("Who is the sister of Tom?", how=scores.How(walk=False)) == ["sister"]
    found = find("Who is the sister of Tom?", hits=True)
    assert [h.entry.path for h in found] == ["sister", "bea"]
    assert "linked with “Sister”" in found[1].why


def test_a_search_follows_links_both_ways_but_not_through_maps(remember):
    many = {f"n{n}": {"text": f"Note number {n}.", "links": ("mocs/all",)} for n in range(60)}
    listed = "".join(f"- [[n{n}]]\n" for n in range(60))
    find = remember(
        {
            "mocs/all": {"text": listed + "- [[start]]", "type": "moc"},
            "start": {"text": "alpha [[forward]]", "links": ("mocs/all",)},
            "forward": "one",
            "backward": "two [[start]]",
            **many,
        }
    )
    assert set(find("alpha")) == {"start", "backward", "forward"}


def test_a_link_does_not_displace_the_first_answers(remember):
    notes = {f"good{n}": f"alpha beta {'gamma ' * n}" for n in range(5)}
    find = remember(**notes, linked="something [[good0]] [[good1]] [[good2]] [[good3]] [[good4]] alpha")
    direct = find("alpha beta", how=scores.How(walk=False))[:5]
    assert find("alpha beta")[:5] == direct


def test_the_reason_for_a_result_names_the_words_and_their_field(remember, tmp_path):
    (tmp_path / "archive").mkdir()
    talk = Message("m1", "user", "We were on the ferry to Procida.", ms(date(2026, 3, 4)))
    (tmp_path / "archive/a.jsonl").write_text(message_to_json(talk, "s") + "\n", encoding="utf-8")
    find = remember(
        trip={"text": "They took a trip by boat.", "sources": (Source("s", "m1", talk.timestamp),)},
        other="Nothing.",
    )
    index = Index(tmp_path / "why.db")
    index.archive(tmp_path / "archive")
    index.sync(Vault(tmp_path / "vault"))
    (hit,) = index.search("the ferry trip", now=NOW)
    assert hit.why == "says “Trip”; comes from a conversation that mentions “ferry”"
    assert find("trips by boat", hits=True)[0].why == "says “Trip”, “boat”"
    index.close()


def test_a_common_word_neither_slows_a_search_nor_hides_a_rare_one(remember, monkeypatch):
    monkeypatch.setattr(scores, "POSTINGS", 50)
    find = remember(**{f"n{n}": "alpha beta gamma" for n in range(100)}, this="alpha zebra")
    assert find("alpha zebra beta gamma")[0] == "this"
    assert len(find("alpha beta", k=200)) > 50  # where all words are common, the rarest of them still counts
