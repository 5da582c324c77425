#!/usr/bin/env python3
"""
Counts modules, lines of code and all lines of each room of omg/ and each folder of tests/, and lists functions with
more than 25 branches or six parameters.

    python bench/size.py [--root CHECKOUT] [--json]

A branch is an `if`, a loop, an `except`, a `case`, an `and` or `or`, or a part of a comprehension. The options of a command of
`omg` are no parameters. A line of code is one that holds a token other than a comment or a docstring: blank lines do not count, each line of
a statement that spans several does. `--json` prints one JSON object on the last line.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

EMPTY = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def code_lines(source: str) -> int:
    """Count the lines of *source* without docstrings, comments and blank lines."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in EMPTY:
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        ) and ast.get_docstring(node, clean=False):
            lines -= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(lines)


BRANCHES, PARAMETERS = 25, 6
FORKS = ast.If | ast.For | ast.AsyncFor | ast.While | ast.ExceptHandler | ast.IfExp | ast.match_case
Function = ast.FunctionDef | ast.AsyncFunctionDef


def within(function: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of *function*, without those of functions inside it."""
    for node in ast.iter_child_nodes(function):
        if not isinstance(node, Function):
            yield node
            yield from within(node)


def branches(function: Function) -> int:
    count = 0
    for node in within(function):
        count += isinstance(node, FORKS)
        count += len(node.values) - 1 if isinstance(node, ast.BoolOp) else 0
        count += 1 + len(node.ifs) if isinstance(node, ast.comprehension) else 0
    return count


def parameters(function: Function) -> int:
    if any("command" in ast.unparse(decorator) for decorator in function.decorator_list):
        return 0
    given = function.args
    names = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def large_functions(folder: Path) -> Iterator[str]:
    """Return a line for each function below *folder* with more than BRANCHES branches or PARAMETERS parameters."""
    for file in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, Function):
                forks, given = branches(node), parameters(node)
                if forks > BRANCHES or given > PARAMETERS:
                    where = f"{file.relative_to(folder.parent)}:{node.lineno} {node.name}"
                    yield f"  {where:56}{forks:4} branches{given:4} parameters"


def measured(folder: Path) -> dict[str, dict[str, int]]:
    """
    Return modules, code lines and lines of each room. A room is a module or folder directly below *folder*; a test file
    counts for its folder.
    """
    rooms: dict[str, dict[str, int]] = defaultdict(lambda: {"modules": 0, "code": 0, "lines": 0})
    for file in sorted(folder.rglob("*.py")):
        parts = file.relative_to(folder).parts
        name = (
            f"{parts[0]}/"
            if len(parts) > 1
            else "./"
            if folder.name == "tests"
            else parts[0].removesuffix(".py")
        )
        source = file.read_text(encoding="utf-8")
        rooms[name]["modules"] += 1
        rooms[name]["code"] += code_lines(source)
        rooms[name]["lines"] += len(source.splitlines())
    return dict(rooms)


def total(rooms: dict[str, dict[str, int]]) -> dict[str, int]:
    return {count: sum(room[count] for room in rooms.values()) for count in ("modules", "code", "lines")}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument(
        "--root", type=Path, default=Path(__file__).parents[1], help="the checkout to measure"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    args = parser.parse_args()
    found = {
        name: {"total": total(rooms), "rooms": rooms}
        for name in ("omg", "tests")
        for rooms in [measured(args.root / name)]
    }
    for name, part in found.items():
        print(f"{name + '/':16}{'modules':>8}{'code':>8}{'lines':>8}")
        for room, counts in [*part["rooms"].items(), ("together", part["total"])]:
            print(f"  {room:14}{counts['modules']:8}{counts['code']:8}{counts['lines']:8}")
    print("\n".join(["functions that are too large:", *large_functions(args.root / "omg")]))
    if args.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
