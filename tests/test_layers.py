"""Imports go down the layers, never up or sideways; and the command line starts without what is heavy."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# A room is a module or a package of omg/. Inside a package nothing is prescribed, except that its modules
# import no room that lies above.
LAYERS = [
    {"dates", "errors", "identity", "tokens", "uses"},
    {"client", "config", "damaged", "embed", "node", "openclaw", "turn"},  # values
    {"llm", "vault"},  # files | the outside world
    {"index"},  # derived
    {"graph", "offline"},
    {"events", "furnish", "graphpage", "inbox", "maps", "pace", "receipt", "runs"},
    {"edit", "inject", "traces"},
    {"forget", "reply"},
    {"observe", "reflect"},  # the verbs; inject is the third
    {"rebuild"},
    {"home"},
    {"curate", "importer", "install", "nightly", "skill", "work"},
    {"demo", "people", "tools"},
    {"doctor"},
    {"daemon"},
    {"cli"},
]
HEIGHT = {name: height for height, layer in enumerate(LAYERS) for name in layer}
PACKAGE = Path(__file__).parent.parent / "omg"
MODULES = sorted(p for p in PACKAGE.rglob("*.py") if not p.relative_to(PACKAGE).parts[0].startswith("_"))
HEAVY = {"litellm", "torch", "sentence_transformers", "networkx", "wordllama"}


def room(module: Path) -> str:
    return module.relative_to(PACKAGE).with_suffix("").parts[0]


def imported(module: Path) -> Iterator[str]:
    """Rooms that *module* imports, anywhere in it."""
    depth = len(module.relative_to(PACKAGE).parts)  # dots that lead from here to omg
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == depth:
            yield from [node.module.partition(".")[0]] if node.module else [a.name for a in node.names]


@pytest.mark.parametrize("module", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_down(module):
    here = room(module)
    assert here in HEIGHT, "give the new room its place in LAYERS"
    assert {name for name in imported(module) if HEIGHT[name] >= HEIGHT[here]} == set()


def test_the_layers_name_no_room_that_is_gone():
    assert {room(m) for m in MODULES} == HEIGHT.keys()


def test_the_command_line_loads_nothing_heavy():
    code = f"import omg.cli, sys; print({HEAVY!r} & sys.modules.keys())"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "set()\n"
