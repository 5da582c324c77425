"""Which notes belong together, and which say the same."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omg.reflect.topics import (
    TopicItem,
    split_topics,
    statement_likeness,
)

lists = st.lists(
    st.builds(
        TopicItem,
        st.from_regex(r"nodes/fact/[a-z]{1,8}", fullmatch=True),
        st.text(max_size=20),
        st.lists(st.sampled_from("red green blue apple river stone lamp 7 日本語".split()), max_size=6).map(
            " ".join
        ),
        st.frozensets(st.sampled_from(["#home", "#work", "@m1", "@m2", ">nodes/project/x"]), max_size=2),
    ),
    max_size=60,
    unique_by=lambda i: i.path,
)


@settings(deadline=None, max_examples=60)
@given(lists, st.randoms())
def test_a_split_into_topics_does_not_depend_on_order_and_places_each_note_once(
    given_items: list[TopicItem], random: object
) -> None:
    found = split_topics(given_items, taken={"home", "red"})
    shuffled = list(given_items)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert split_topics(shuffled, taken={"home", "red"}) == found
    paths = [p for t in found for p in t.paths]
    assert len(paths) == len(set(paths)) and set(paths) <= {i.path for i in given_items}
    names = [t.name for t in found]
    assert len(names) == len(set(names)) and not {"home", "red"} & set(names)
    assert all(re.fullmatch(r"[\w-]+", name) for name in names)
    assert not found or any(len(t.paths) < len(given_items) for t in found)


def test_notes_with_nothing_in_common_stay_on_their_map() -> None:
    alone = [
        TopicItem(f"nodes/fact/{n}", "", f"{chr(97 + n % 26) * 5}{chr(97 + n // 26) * 5}") for n in range(60)
    ]
    assert split_topics(alone) == []


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("The key hangs behind the door.", "Behind the door hangs the key!", True),
        ("The rent is 40 euros.", "The rent is 50 euros.", False),
        ("Ines eats meat.", "Ines does not eat meat.", False),
        ("Ines isn't at home.", "Ines is at home.", False),
        ("", "", False),
        ("猫が好きです", "猫が好きです。", True),
        ("Gardens need the sun.", "A garden needs the sun.", True),
    ],
)
def test_likeness_depends_on_words_numbers_and_negation(a: str, b: str, same: bool) -> None:
    assert (statement_likeness(a, b) >= 0.75) is same
    assert statement_likeness(a, b) == statement_likeness(b, a)
