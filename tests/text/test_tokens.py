import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omg.text.tokens import TABLE, _encoded, clip_text, count_tokens, estimate_tokens, split_text

PROSE = (Path(__file__).parents[2] / "omg" / "config.py").read_text(encoding="utf-8")
texts = st.text() | st.lists(
    st.sampled_from(["word ", "\n\n", "😀", "記憶", "x" * 50, "\ud800", "0123456789"])
).map("".join)


def test_tokens_are_counted_as_o200k_counts_them():
    assert [count_tokens(t) for t in ("", "hello world", "Donaudampfschifffahrt", "😀")] == [0, 2, 8, 1]


@given(texts, st.integers(0, 30))
def test_a_clipped_text_has_at_most_the_allowed_number_of_tokens(text, budget):
    short = clip_text(text, budget)
    assert count_tokens(short) <= budget
    assert short == text or short == "" or (short.endswith("…") and text.startswith(short[:-1]))


@given(texts, st.integers(4, 30))
def test_pieces_join_to_the_text_and_cost_no_more_than_allowed(text, budget):
    pieces = split_text(text, budget)
    assert "".join(pieces) == text
    assert all(pieces)
    assert all(count_tokens(piece) <= budget for piece in pieces)


def test_a_text_is_cut_between_words_where_it_has_words():
    assert all(piece[-1] in " \n" for piece in split_text(PROSE, 100)[:-1])


def test_the_estimate_of_prose_and_code_is_on_the_high_side():
    assert count_tokens(PROSE) <= estimate_tokens(PROSE) <= 1.5 * count_tokens(PROSE)


@pytest.mark.parametrize("text", ["a" * 500_000, " " * 500_000, PROSE * 40, "記" * 100_000, "\n" * 300_000])
def test_a_megabyte_is_counted_in_less_than_a_second(text):
    count_tokens("loaded")
    start = time.perf_counter()
    count_tokens(text)
    assert time.perf_counter() - start < len(text.encode()) / 1e6 + 0.2


def test_many_threads_load_one_table_and_leave_the_environment_as_it_was():
    _encoded.cache_clear()
    before = dict(os.environ)
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(count_tokens, ["one two three" + " " * i for i in range(8)])) <= {3, 4}
    assert dict(os.environ) == before


def test_without_the_table_tokens_are_estimated_and_the_network_is_not_used(tmp_path):
    (tmp_path / TABLE).write_text("not the table")
    code = (
        "import sys, importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'litellm' else real(name, *a)\n"
        "from omg.text import tokens\n"
        "print(tokens.count_tokens('hello big world'), 'tiktoken' in sys.modules, 'litellm' in sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "TIKTOKEN_CACHE_DIR": str(tmp_path)},
        cwd=Path(__file__).parents[2],
    )
    assert run.stdout.split() == ["3", "False", "False"]
    assert (tmp_path / TABLE).read_text() == "not the table"
