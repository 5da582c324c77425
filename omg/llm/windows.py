"""How many tokens a model takes in and gives, from the configuration or from the table that LiteLLM carries."""

from __future__ import annotations

import functools
import importlib.util
import json
from pathlib import Path

from ..config.sections import Config
from ..text.tokens import count_tokens
from .question import ModelQuestion

SHORT_REPLY = 4_000  # tokens that every model allows


def model_window(model: str, config: Config) -> int:
    """
    Tokens *model* can take in.

    From the configuration, else from the table that LiteLLM carries (read as a file: no import). Unknown:
    8,192 for a server of one's own, a common default there, and 32,000 for any other, less than most have.
    """
    known = config.llm.context_window or window_in_table(model)[0]
    return known or (8_192 if config.llm.api_base else 32_000)


def reply_room(model: str, question: ModelQuestion, config: Config) -> int:
    """Tokens that a reply of *model* may have: as many as it gives, and as its window leaves beside *question*."""
    wanted = config.llm.max_output_tokens
    left = model_window(model, config) - count_tokens(question.system + question.user)
    # A window that is not known is guessed low: below what every model allows, only the table and the user go.
    return min(wanted, window_in_table(model)[1] or wanted, max(left, SHORT_REPLY))


@functools.lru_cache(maxsize=64)
def window_in_table(model: str) -> tuple[int | None, int | None]:
    """Tokens that *model* takes in, and that it gives; None where the table does not know."""
    spec = importlib.util.find_spec("litellm")
    if spec is None or not spec.submodule_search_locations:
        return None, None
    file = Path(spec.submodule_search_locations[0]) / "model_prices_and_context_window_backup.json"
    try:
        table = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return None, None
    name = model
    while name:  # `openrouter/anthropic/x` is there as itself, or as `anthropic/x`, or as `x`
        if entry := table.get(name):
            takes, gives = (
                entry.get("max_input_tokens") or entry.get("max_tokens"),
                entry.get("max_output_tokens"),
            )
            return int(takes) if takes else None, int(gives) if gives else None
        name = name.partition("/")[2]
    return None, None
