"""
Messages with made-up secrets in them, and lines that must stay as they are.

`secrets.jsonl` has a message a line, as a gateway stores it, and what must not be left of it; `secrets_more.jsonl` and
`secrets_third.jsonl` were kept from who wrote the patterns until they were written; `secrets_fifth.jsonl` is the half
of a set that patterns were mended by. Of `ordinary.txt` not a line may lose anything. No secret there is anyone's; a `¦` inside each keeps scanners from taking the
file for a leak. `clean.txt`, `clean_more.txt`, `clean_third.txt` and `clean_fifth.txt` are code, checksums, order numbers, addresses and what people say about passwords without saying one.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omg.message.drop import clean_entries

HERE = Path(__file__).parent
LOCOMO = HERE.parents[2] / "shared" / "data" / "locomo" / "locomo-dev.json"  # not part of this repository


@dataclass(frozen=True, slots=True)
class Telling:
    """A message, and the secrets in it: of a token, the part without which the rest is worth nothing."""

    kind: str
    message: dict[str, Any]
    secrets: tuple[str, ...]


def tellings(path: Path = HERE / "secrets.jsonl") -> list[Telling]:
    rows = [json.loads(line.replace("¦", "")) for line in path.read_text("utf-8").splitlines()]
    return [Telling(row["kind"], row["message"], tuple(row["secrets"])) for row in rows]


def clean_lines(path: Path = HERE / "clean.txt") -> list[str]:
    return path.read_text("utf-8").splitlines()


def locomo() -> list[str]:
    """What is said in the LoCoMo conversations; nothing where the data set is not beside the repository."""
    if not LOCOMO.exists():
        return []
    talks = [sample["conversation"] for sample in json.loads(LOCOMO.read_text("utf-8"))]
    return [
        said["text"] for talk in talks for part in talk.values() if isinstance(part, list) for said in part
    ]


def survivors(telling: Telling) -> list[str]:
    """Those of its secrets of which more than half is left, in one piece, in what is kept of the message."""
    kept = clean_entries([{"entryId": "m1", "createdAt": 1_760_000_000_000, "message": telling.message}])
    assert kept, f"{telling.kind}: nothing of the message is kept at all"
    texts = [
        text
        for message in kept
        for text in (message.text, *(c for call in message.calls for c in leaves(call.arguments)))
    ]
    return [secret for secret in telling.secrets if any(_left(secret, text) for text in texts)]


def leaves(text: str) -> Iterator[str]:
    """A JSON text as it stands, and each word and value in it: a quote in a secret is escaped there."""
    yield text
    try:
        values = [json.loads(text)]
    except ValueError:
        return
    while values:
        value = values.pop()
        if isinstance(value, dict):
            values += [*value, *value.values()]
        elif isinstance(value, list):
            values += value
        elif isinstance(value, str):
            yield value


def _left(secret: str, text: str) -> bool:
    size = len(secret) // 2 + 1 if len(secret) > 6 else len(secret)
    return any(secret[at : at + size] in text for at in range(len(secret) - size + 1))
