"""README's three commands for each host, from nothing to a prompt with memory."""

from __future__ import annotations

import re
from pathlib import Path

QUESTION, ANSWER = "What is the studio's wifi called?", "Marlin"


def three_commands(host: str) -> list[str]:
    """The commands of README's block for *host*; the first installs the package."""
    readme = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(rf"```bash\n# {host}\b.*\n((?:.+\n)+?)```", readme)
    lines = [line.strip() for line in block.splitlines()]
    assert len(lines) == 3 and lines[0].startswith("pip install ."), lines
    return lines
