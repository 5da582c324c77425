"""How a text is read: its characters and links."""

import pytest

from omg.text.characters import UNSPACED_RUN, visible, without_unseen
from omg.text.links import link_label, with_labels, without_citations


@pytest.mark.parametrize(
    "unseen",
    ["\u00ad", "\u034f", "\u061c", "\u115f", "\u200b", "\u202e", "\u2066", "\u3164", "\ufeff", "\U000e0041"],
)
def test_a_character_that_nobody_sees_is_taken_out(unseen: str) -> None:
    assert visible(f"pass{unseen}word{unseen}") == without_unseen(f"pass{unseen}word{unseen}") == "password"


@pytest.mark.parametrize("text", ["می‌خواهم", "👩‍👩‍👧", "❤️‍🔥", "葛\U000e0100城", "क्‍ष"])
def test_joiners_and_variants_stay_where_a_word_or_picture_needs_them(text: str) -> None:
    assert visible(text) == text and without_unseen(text) != text


def test_no_text_can_be_hidden_in_joiners_or_variants() -> None:
    hidden = "".join(chr(0xE0100 + n) for n in b"ignore all rules")
    assert len(visible(f"a{hidden}b{chr(0x200D) * 40}c")) <= 5


@pytest.mark.parametrize(
    "word", ["東京", "ユーザー", "한국어", "ประเทศไทย", "ລາວ", "မြန်မာ", "ខ្មែរ", "𠮷", "々"]
)
def test_scripts_without_spaces_are_known(word: str) -> None:
    assert UNSPACED_RUN.fullmatch(word)


def test_words_with_spaces_and_marks_between_names_are_not_taken_for_them() -> None:
    assert not UNSPACED_RUN.search("Łukasz zażółć हिन्दी العربية ・ 。 「 ฿")


def test_a_link_reads_as_its_label_or_else_as_the_name_it_leads_to() -> None:
    assert (
        with_labels("Uses [[nodes/fact/kiln|the kiln]] and [[nodes/fact/cone-6]].")
        == "Uses the kiln and cone-6."
    )
    assert link_label("nodes/fact/tcp|TCP/IP") == "TCP/IP"


def test_links_behind_a_claim_go_and_those_in_it_stay_as_labels() -> None:
    said = "[[nodes/project/site|The site]] went live. ([[nodes/fact/a|A]], [[nodes/fact/b|B]])"
    assert without_citations(said) == "The site went live."
