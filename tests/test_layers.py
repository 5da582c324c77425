"""Rooms and modules: who may import whom, how long a module may be, what loads at the start."""

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import regex

# A room is a module or a package of omg/. A row imports from the rows above it; within a row, a step from the steps
# before it. Inside a package nothing is prescribed, except that its modules import no room that comes later. The lists
# of rooms in omg/__init__.py and docs/architecture.md are made from this (tests/test_docs.py).
ROWS = {
    "Base, known to all": ["errors text", "client", "config identity dates"],
    "Values, without I/O": ["node secrets", "message"],
    "Files, and the outside world": ["vault llm embed"],
    "What is in a vault": ["index"],
    "One identity's folder": ["graph"],
    "What is written, and how": ["journal inbox", "plan", "rules", "check", "provenance"],
    "What is done with it": ["inject forget", "observe context", "reflect rebuild"],
    "Every identity of a home": ["worker", "curate importers", "export tools", "memory"],
    "For people, other assistants and the gateway": ["hosts", "openclaw ui demo", "daemon", "fleet", "cli"],
}
HEIGHT = {
    room: (row, step)
    for row, steps in enumerate(ROWS.values())
    for step, rooms in enumerate(steps)
    for room in rooms.split()
}
PACKAGE = Path(__file__).parent.parent / "omg"
MODULES = sorted(p for p in PACKAGE.rglob("*.py") if not p.relative_to(PACKAGE).parts[0].startswith("_"))
HEAVY = {
    *("psycopg", "psycopg_pool", "procrastinate", "starlette", "uvicorn", "prometheus_client"),
    *("jinja2", "markdown_it"),
    "litellm",
    "torch",
    "sentence_transformers",
    "networkx",
    "wordllama",
    "onnxruntime",
    "kingfisher_sdk",
    "stdnum",
    "mnemonic",
}


def room(module: Path) -> str:
    return module.relative_to(PACKAGE).with_suffix("").parts[0]


def imported(module: Path) -> Iterator[str]:
    """Rooms that *module* imports, anywhere in it."""
    depth = len(module.relative_to(PACKAGE).parts)  # dots that lead from here to omg
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == depth:
            yield from [node.module.partition(".")[0]] if node.module else [a.name for a in node.names]


def short(module: Path) -> str:
    return str(module.relative_to(PACKAGE))


@pytest.mark.parametrize("module", MODULES, ids=short)
def test_each_room_imports_only_rooms_below_it(module):
    here = room(module)
    assert here in HEIGHT, "give the new room its place in ROWS"
    assert {name for name in imported(module) if name != here and HEIGHT[name] >= HEIGHT[here]} == set()


def test_every_module_and_package_has_a_place_in_at_most_ten_layers():
    assert {room(m) for m in MODULES} == HEIGHT.keys()
    assert len(ROWS) <= 10


def test_no_function_has_the_name_of_a_module():
    modules = {m.stem for m in MODULES} | {m.parent.name for m in MODULES}
    functions = {
        (short(m), node.name)
        for m in MODULES
        for node in ast.parse(m.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
    }
    assert {(where, name) for where, name in functions if name in modules} == set()


@pytest.mark.parametrize("module", MODULES, ids=short)
def test_a_module_has_at_most_800_lines_and_an_init_file_at_most_40(module):
    lines = module.read_text(encoding="utf-8").count("\n")
    assert lines <= (40 if module.name == "__init__.py" else 800)


@pytest.mark.parametrize("module", MODULES, ids=short)
def test_every_file_that_a_docstring_or_comment_names_exists(module):
    text = module.read_text(encoding="utf-8")
    named = set(re.findall(r"(?<![\w./<*{-])((?:\w+/)*\w+\.(?:py|js))\b", text))
    roots = [module.parent, module.parent / "static", PACKAGE, PACKAGE.parent, PACKAGE.parent / "hooks"]
    assert {name for name in named if not any((root / name).exists() for root in roots)} == set()


TALK = "It rained, then we left. Nobody came"
SPLITS = {
    ("It", "rained", "then", "we", "left", "Nobody", "came"),
    ("It rained, then we left.", "Nobody came"),
    ("It rained, then we left", "Nobody came"),
}


def cutting(module: Path) -> Iterator[re.Pattern[str]]:
    """The regular expressions by which *module* takes texts apart: `NAME.split(…)`, `re.findall("…", …)`, `NAME.finditer(…)`."""
    name = ".".join(("omg", *module.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.Attribute)
            and node.attr in ("split", "findall", "finditer")
            and isinstance(node.value, ast.Name)
        ):
            value = getattr(importlib.import_module(name), node.value.id, None)
            if isinstance(value, re.Pattern | regex.Pattern) and isinstance(value.pattern, str):
                yield value
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
        ):
            called, first = f"{node.func.value.id}.{node.func.attr}", node.args[0] if node.args else None
            if (
                called in ("re.split", "re.findall", "re.finditer")
                and isinstance(first, ast.Constant)
                and isinstance(first.value, str)
            ):
                yield re.compile(first.value)


def test_only_modules_of_omg_text_split_words_and_sentences():
    names = [f"omg.text.{module.stem}" for module in MODULES if room(module) == "text"]
    own = [
        v
        for n in names
        for v in vars(importlib.import_module(n)).values()
        if isinstance(v, re.Pattern | regex.Pattern)
    ]
    found = {
        (short(module), pattern.pattern)
        for module in MODULES
        if room(module) != "text"
        for pattern in cutting(module)
        if pattern not in own
        for parts in (pattern.split(TALK), [m[0] for m in pattern.finditer(TALK)])
        if tuple(part.strip() for part in parts if part and part.strip()) in SPLITS
    }
    assert found == set()


@pytest.mark.parametrize("name", ["omg.memory", "omg.llm.asker", "omg.cli.app"])
def test_programs_and_commands_import_no_heavy_library_at_their_start(name):
    code = f"import {name}, sys; print({HEAVY!r} & sys.modules.keys())"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "set()\n"


def test_no_symbolic_link_is_part_of_the_repository() -> None:
    """One to a cache of this machine was committed twice; checking it out replaced the cache by a link to itself."""
    listed = subprocess.run(
        ["git", "ls-files", "--stage"], cwd=PACKAGE.parent, capture_output=True, text=True, check=False
    )
    assert [line for line in listed.stdout.splitlines() if line.startswith("120000")] == []
