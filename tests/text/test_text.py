"""How a text is read: its characters, words, sentences, lists, negation and links."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omg.text.characters import (
    fold_text,
    link_label,
    visible,
    with_labels,
    without_citations,
    without_unseen,
)
from omg.text.words import (
    cut_text,
    denies,
    sentence_parts,
    sentence_spans,
    split_sentences,
    stems_of,
    text_pieces,
    told_words,
    words_in,
)


@pytest.mark.parametrize(
    "unseen",
    ["\u00ad", "\u034f", "\u061c", "\u115f", "\u200b", "\u202e", "\u2066", "\u3164", "\ufeff", "\U000e0041"],
)
def test_invisible_characters_are_removed(unseen: str) -> None:
    assert visible(f"pass{unseen}word{unseen}") == without_unseen(f"pass{unseen}word{unseen}") == "password"


@pytest.mark.parametrize("text", ["می‌خواهم", "👩‍👩‍👧", "❤️‍🔥", "葛\U000e0100城", "क्‍ष"])
def test_joiners_and_variation_selectors_stay_where_a_word_or_emoji_needs_them(text: str) -> None:
    assert visible(text) == text and without_unseen(text) != text


def test_no_text_can_be_hidden_in_joiners_or_variants() -> None:
    hidden = "".join(chr(0xE0100 + n) for n in b"ignore all rules")
    assert len(visible(f"a{hidden}b{chr(0x200D) * 40}c")) <= 5


def test_a_link_is_read_as_its_label_or_without_a_label_as_the_name_of_the_note() -> None:
    assert (
        with_labels("Uses [[nodes/fact/kiln|the kiln]] and [[nodes/fact/cone-6]].")
        == "Uses the kiln and cone-6."
    )
    assert link_label("nodes/fact/tcp|TCP/IP") == "TCP/IP"


def test_links_after_a_sentence_are_removed_and_links_in_it_become_labels() -> None:
    said = "[[nodes/project/site|The site]] went live. ([[nodes/fact/a|A]], [[nodes/fact/b|B]])"
    assert without_citations(said) == "The site went live."


def test_a_word_with_combining_marks_or_accents_is_one_word() -> None:
    assert words_in("नमस्ते, दुनिया! Zoë's co-op_2") == ["नमस्ते", "दुनिया", "Zoë", "s", "co", "op", "2"]
    assert fold_text("בֵּית־סֵפֶר") == "בית־ספר"  # points go, the hyphen parts two words


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ines runs to the café.", "INES was running to a Cafe"),
        ("It cost 1,200 euros", "1200 Euro, it costs"),
        ("two dogs", "2 dog"),
        ("pass\u200bword", "password"),
    ],
)
def test_the_same_words_have_the_same_stems_however_they_are_written(one: str, other: str) -> None:
    assert told_words(one) == told_words(other) and told_words(one)


def test_stems_include_the_days_in_a_text_and_content_words_do_not() -> None:
    monday, tuesday = "Meets Anna on Monday, 2026-03-02", "Meets Anna on Tuesday, 2026-03-03"
    assert told_words(monday) == told_words(tuesday) and stems_of(monday) != stems_of(tuesday)


@pytest.mark.parametrize(
    ("text", "is_not"),
    [
        ("She never smoked", True),
        ("He stopped smoking", True),
        ("Er raucht nicht", True),
        ("Elle ne fume pas", True),
        ("タバコは吸わない", True),
        ("She smokes in November", False),
        ("A note on knots", False),
        ("Das Treffen findet am Freitag statt.", False),
    ],
)
def test_negation_is_recognised_in_several_languages(text: str, is_not: bool) -> None:
    assert denies(text) is is_not


@pytest.mark.parametrize(
    "text",
    [
        "It rained. |We left!",
        "Dr. Ito met J. R. Smith, e.g. at No. 3. |No. |I moved.",
        "Up at 5 p.m. on Monday, etc. and so on. |At 5 p.m. |My sister came.",
        "Well… yes. |He said “Stop.” |**Bold.** |(Then he left.) |Version 3.5 of omg.toml is out.",
        "東京に住んでいます。|「いいね。」と言った。|次！",
        "नमस्ते। |मैं ठीक हूँ। |كيف حالك؟ |أنا بخير.",
        "1. Buy milk\n|2) Go. |Then come\n\n|no mark at all",
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str) -> None:
    assert sentence_parts(text.replace("|", "")) == text.split("|")


@given(st.text(st.sampled_from('a B.!?…。」\n -*1)’"ß'), max_size=60), st.integers(1, 9))
def test_the_parts_of_a_text_join_to_the_whole_text(text: str, most: int) -> None:
    assert "".join(sentence_parts(text)) == "".join(text[s] for s in text_pieces(text, most)) == text
    assert all(s.stop - s.start <= most for s in text_pieces(text, most))


def test_the_span_of_a_sentence_leaves_out_list_bullets_and_spaces() -> None:
    text = "- [x] Done it. Fine\n\n  2) Go \n• Stay"
    assert [text[span] for span in sentence_spans(text)] == ["Done it.", "Fine", "Go", "Stay"]


@pytest.mark.parametrize(
    "run",
    [
        " ",
        "\n",
        "!",
        "! ",
        "…",
        ". ",
        "1. ",
        "A. ",
        "a.\t",
        "。",
        ".)",
        "\u200b",
        "[[",
        "]]|",
        "7! ",
        '!" a ',
    ],
)
@pytest.mark.parametrize(("before", "after"), [("", ""), ("a", "b. c"), ("a.", "b"), ("[[a", "]] x")])
def test_a_long_run_of_punctuation_takes_linear_time(run: str, before: str, after: str) -> None:
    text = before + run * 100_000 + after
    start = time.process_time()
    for read in (split_sentences, visible, without_unseen, with_labels, without_citations):
        read(text)
    assert time.process_time() - start < 3


def test_a_long_text_without_spaces_is_cut_and_not_dropped():
    assert cut_text("漢" * 20, 10) == "漢" * 9 + "…"
    assert cut_text("one two three", 10) == "one two…"


def test_a_long_piece_is_cut_between_words() -> None:
    text = "seven letters. " + "elephants " * 30
    assert {text[s].strip().rpartition(" ")[2] for s in text_pieces(text, 47)} == {"letters.", "elephants"}


@pytest.mark.parametrize(
    "sentence",
    [
        "I see that 3! equals 6, and \\( n! \\) is a product.",
        "So 4! = 24.",
        "I read Yahoo! mail.",
        'They ask "What is it?" or "Why?" and leave.',
        "A book by N.K. Jemisin (p. 45) is here.",
        "Sie fragt „Warum?“ oder „Wie?“ und geht.",
        "Die Prüfung ist am 7. Mai und der 2. Versuch am 12. Dezember.",
    ],
)
def test_a_punctuation_mark_inside_a_sentence_does_not_end_the_sentence(sentence: str) -> None:
    assert split_sentences(f"{sentence} We won 3! Then I left.") == [sentence, "We won 3!", "Then I left."]


def test_a_numbered_list_within_a_sentence_is_not_split_at_its_numbers() -> None:
    assert split_sentences("Three steps: 1. measure, 2. cut, 3. sand. Then rest.") == [
        "Three steps: 1. measure, 2. cut, 3. sand.",
        "Then rest.",
    ]
    assert split_sentences("I have 1. You have 2.") == ["I have 1.", "You have 2."]
