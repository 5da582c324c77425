"""
A home, opened: what `from omg import Memory` gives, and what the command line, the daemon and the doctor open.

It is three parts put together, and no fourth: `registry` (whose graphs there are), `intake` (what comes in) and
`worker` (what is observed, and by which model). One rule: it decides nothing that a part does not.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Literal

from .config.file import load_config
from .config.sections import Config
from .embed import Embedder, load_embedder
from .llm.question import Ask
from .worker.intake import Intake
from .worker.registry import Registry
from .worker.worker import Worker


class Memory:
    """
    *home* is the state folder, or its configuration; None: the one that the environment names. It is made if it is
    not there. *embed*: what makes vectors, None for none. *gateway* asks the agent's own model through the plugin;
    None: nobody does at the moment. *clock* gives the time of day; what is written is dated by the messages.

    Raises ConfigError, naming key, value and remedy.
    """

    def __init__(
        self,
        home: Path | Config | None = None,
        *,
        embed: Embedder | Literal["configured"] | None = "configured",
        gateway: Ask | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        config = home if isinstance(home, Config) else load_config(home)
        made = load_embedder(config.embedding.model) if embed == "configured" else embed
        self.registry = Registry(config, embed=made, clock=clock)
        self.intake = Intake(self.registry)
        self.worker = Worker(self.intake, gateway=gateway)
        # What nearly every caller needs; all else by its part.
        self.config, self.folder, self.clock = config, config.home, clock
        self.find, self.graph, self.refresh = self.registry.find, self.registry.graph, self.registry.refresh
        self.take_in, self.work = self.intake.take_in, self.worker.work

    def close(self) -> None:
        """Stop asking models and let go of the graphs; what was asked about stays pending."""
        self.worker.close()
        self.registry.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
