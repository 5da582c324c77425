"""
Counts the tokens of a text, without network and without a model.

Counts tokens of the encoding o200k, whatever model is in use. Uses the table in the litellm wheel (the extra
`models`), or without that table an estimate that is rather too high. A long text is counted in windows, which
never lowers the count. Nothing is downloaded.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

import regex

# tiktoken's cache name (sha1 of the table's URL) and content hash. Both are checked before tiktoken sees the
# file, because tiktoken would delete a file that does not match, and fetch it again.
TABLE = "fb374d419588a4632f3f557e76b4b70aebbca790"
SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
WINDOW = 16_384  # chars encoded at once: 8 MB/s on a run of one letter; without a limit the time is quadratic
COUNTS_REMEMBERED = 2_000  # chars; the counts of 4,096 shorter texts are cached, and of 64 longer ones
_loading = threading.Lock()


def count_tokens(text: str) -> int:
    """Return the number of tokens of *text*."""
    return _short(text) if len(text) <= COUNTS_REMEMBERED else _long(text)


def clip_text(text: str, tokens: int) -> str:
    """Return *text* if it costs at most *tokens*, else its beginning and an ellipsis, in at most *tokens*."""
    if count_tokens(text) <= tokens:
        return text
    for room in range(tokens - 1, 0, -1):  # at most two rounds: the ellipsis rarely joins a longer token
        short = text[: _end(text, 0, room)].rstrip() + "…"
        if count_tokens(short) <= tokens:
            return short
    return ""


def split_text(text: str, tokens: int) -> list[str]:
    """
    Return *text* in pieces of at most *tokens*, split between words if possible. The joined pieces are *text*.
    """
    pieces, start = [], 0
    while start < len(text):
        end = _end(text, start, tokens)
        pieces.append(text[start:end])
        start = end
    return pieces


def _end(text: str, start: int, tokens: int) -> int:
    """
    Return the end of the piece that begins at *start* and costs at most *tokens*. A piece has at least one
    character.
    """
    low, high = start + 1, start + 1
    while high < len(text) and count_tokens(text[start:high]) <= tokens:  # grow, then halve
        low, high = high, min(len(text), start + 2 * (high - start) + 16)
    if high == len(text) and count_tokens(text[start:]) <= tokens:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if count_tokens(text[start:middle]) <= tokens else (low, middle)
    for mark in ("\n\n", "\n", " "):
        cut = text.rfind(mark, start + (low - start) * 2 // 3, low) + len(mark)
        if start + len(mark) <= cut <= low and count_tokens(text[start:cut]) <= tokens:
            return cut
    return low


@lru_cache(maxsize=4096)
def _short(text: str) -> int:
    return _encoded()(text)


@lru_cache(maxsize=64)
def _long(text: str) -> int:
    counted = _encoded()
    # Byte pairs are merged greedily, so a cut may save a token. One more token for each cut keeps the sum on
    # the high side.
    return sum(counted(text[i : i + WINDOW]) for i in range(0, len(text), WINDOW)) + len(text) // WINDOW


@cache
def _encoded() -> Callable[[str], int]:
    """
    Return the function that counts tokens.

    The function is tiktoken's encoder if the encoder's table is installed (0.3 s and 80 MB on first use). Otherwise the
    function is `estimate_tokens`.
    """
    with _loading:
        folder = _folder()
        if folder is None:
            return estimate_tokens
        was = os.environ.get("TIKTOKEN_CACHE_DIR")
        os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
        try:
            import tiktoken

            encoding = tiktoken.get_encoding("o200k_base")
            encoding._mergeable_ranks = {}  # frees 25 MB: the encoder has its own copy
            encode = encoding.encode_ordinary
        finally:
            if was is None:
                del os.environ["TIKTOKEN_CACHE_DIR"]
            else:
                os.environ["TIKTOKEN_CACHE_DIR"] = was
        return lambda text: len(encode(text))


def _folder() -> Path | None:
    """
    Return litellm's folder with the table by which tiktoken counts tokens.

    Returns None if the table is missing or damaged.
    """
    litellm = find_spec("litellm")
    for package in (litellm and litellm.submodule_search_locations) or ():
        folder = Path(package) / "litellm_core_utils" / "tokenizers"
        file = folder / TABLE
        if file.is_file() and hashlib.sha256(file.read_bytes()).hexdigest() == SHA256:
            return folder
    return None


# Pieces as o200k's own pattern cuts them: a word, three digits, one character of a script without spaces, a few signs.
PIECE = regex.compile(
    r"[\p{Latin}\p{M}]+|\d{1,3}|[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Hangul}]|[\p{L}\p{M}]{1,3}"
    r"|[\x21-\x7e]{1,3}|[^\s\p{L}\p{M}\d\x21-\x7e]|\n+"
)
# A token of prose has 6 letters. A run of more than 14 letters is a key, or costs as many tokens as a key.
WORD_CHARS, NO_WORD_CHARS = 6, 14


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of *text* without a table: a quarter too high on prose, a tenth on code (bench/LOG.md)."""
    return sum(map(_estimated, PIECE.findall(text)))


def _estimated(piece: str) -> int:
    if piece[0].isalpha():
        chars = len(piece)
        return 1 + (chars - 1) // WORD_CHARS if chars <= NO_WORD_CHARS else chars * 2 // 3
    return 1 if piece.isascii() else -(-len(piece.encode("utf-8", "replace")) // 2)
