"""How many tokens a model takes in and gives, and what they cost, from the configuration or LiteLLM's own table."""

from __future__ import annotations

import functools
import importlib.util
import json
from pathlib import Path
from typing import NamedTuple

from ..config.sections import Config

SHORT_REPLY = 4_000  # tokens that every model allows


def model_window(model: str, config: Config) -> int:
    """
    Tokens *model* can take in.

    From the configuration, else from the table that LiteLLM carries (read as a file: no import). Unknown:
    8,192 for a server of one's own, a common default there, and 32,000 for any other, less than most have.
    """
    known = config.llm.context_window or limits_in_table(model).takes
    return known or (8_192 if config.llm.api_base else 32_000)


def reply_room(model: str, asked: int, config: Config) -> int:
    """Tokens that a reply of *model* may have: as many as it gives, and as its window leaves beside those *asked*."""
    wanted = config.llm.max_output_tokens
    left = model_window(model, config) - asked
    # A window that is not known is guessed low: below what every model allows, only the table and the user go.
    return min(wanted, limits_in_table(model).gives or wanted, max(left, SHORT_REPLY))


class Limits(NamedTuple):
    """Tokens that a model takes in, and that it gives, and the price of each in usd; None where the table does not know."""

    takes: int | None = None
    gives: int | None = None
    usd_in: float | None = None
    usd_out: float | None = None


@functools.lru_cache(maxsize=64)
def limits_in_table(model: str) -> Limits:
    spec = importlib.util.find_spec("litellm")
    if spec is None or not spec.submodule_search_locations:
        return Limits()
    file = Path(spec.submodule_search_locations[0]) / "model_prices_and_context_window_backup.json"
    try:
        table = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return Limits()
    name = model
    while name:  # `openrouter/anthropic/x` is there as itself, or as `anthropic/x`, or as `x`
        if entry := table.get(name):
            takes = entry.get("max_input_tokens") or entry.get("max_tokens")
            gives = entry.get("max_output_tokens")
            prices = (entry.get(f"{way}_cost_per_token") for way in ("input", "output"))
            return Limits(int(takes) if takes else None, int(gives) if gives else None, *prices)
        name = name.partition("/")[2]
    return Limits()
