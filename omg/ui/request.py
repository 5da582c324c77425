"""A request to the page as a value, without HTTP: whose memory it shows, its parameters, and the addresses of links."""

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
    """One request. *base* begins each address. Every change must carry *token*; "" makes the page read-only."""

    memory: Memory
    graph: Graph
    params: Mapping[str, str]
    base: str = ""
    token: str = ""
    framed: bool = False  # in another page's frame: one answer has all, and nothing may be changed
    who: str = ""  # the folder of the graph, if another than the owner's was chosen

    def get(self, name: str) -> str:
        """The parameter *name* in one line; "" if it was not given."""
        return " ".join(self.params.get(name, "")[:LONGEST].split())

    def number(self, name: str) -> int:
        """The parameter *name* as a number of 0 or more; 0 if it is none."""
        text = self.get(name)
        return int(text[:6]) if text.isascii() and text.isdigit() else 0

    def link(self, view: str, **params: object) -> str:
        """The address of *view* for the same person. Empty parameters are left out."""
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
