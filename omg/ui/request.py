"""A request to the page as a value, without HTTP: whose memory to show, the parameters, and the addresses of links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from urllib.parse import urlencode

from ..graph.graph import Graph
from ..memory import Memory

LONGEST = 2_000  # characters of a parameter that are read


@dataclass(frozen=True, slots=True)
class Asked:
    """
    One request to the page.

    - *base*: the first part of each address, before the name of a view
    - *token*: a secret that every change must carry; "" makes the page read-only
    """

    memory: Memory
    graph: Graph
    params: Mapping[str, str]
    base: str = ""
    token: str = ""
    framed: bool = (
        False  # shown in the gateway's page: script and style are inline, and nothing may be changed
    )
    who: str = ""  # folder of the chosen graph; "" for the owner's graph

    def get(self, name: str) -> str:
        """Return the parameter *name* as one line; "" if missing."""
        return " ".join(self.params.get(name, "")[:LONGEST].split())

    def number(self, name: str) -> int:
        """Return the parameter *name* as a whole number; 0 if missing or not a number."""
        text = self.get(name)
        return int(text[:6]) if text.isascii() and text.isdigit() else 0

    def link(self, view: str, **params: object) -> str:
        """Return the address of *view* for the same person. Leave out empty parameters."""
        told = {key: str(value) for key, value in params.items() if value not in (None, "", 0)}
        query = urlencode(told | ({"who": self.who} if self.who else {}))
        return f"{self.base}/{view}{'?' if query else ''}{query}"

    @property
    def today(self) -> date:
        return self.memory.clock().astimezone(self.graph.zone).date()

    def day_of(self, ms: int) -> date:
        return datetime.fromtimestamp(ms / 1000, self.graph.zone).date()

    def time_of(self, ms: int) -> str:
        return f"{datetime.fromtimestamp(ms / 1000, self.graph.zone):%Y-%m-%d %H:%M}"
