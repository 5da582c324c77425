"""
What documents say about the code is what the code does. `UPDATE_DOCS=1 pytest tests/test_docs.py` rewrites
the generated parts, between their markers; words about a field are kept from what is there.
"""

from __future__ import annotations

import ast
import datetime as dt
import itertools
import json
import os
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from pydantic import BaseModel

from omg.cli.app import app
from omg.config import Config
from omg.node.note import LOOPS, ORIGINS, PRIORITIES, STATUSES, TYPES, Node, Source, parse_node, render_node
from tests.cli.test_app import ALL
from tests.test_layers import PACKAGE, ROWS

DOCS = Path(__file__).parents[1] / "docs"
CONFIGURATION = DOCS / "configuration.md"
FORMAT = Path(__file__).parents[1] / "skills/observational-memory-graph/references/format.md"
CHOICES = {"type": TYPES, "priority": PRIORITIES, "status": STATUSES, "loop": LOOPS, "origin": ORIGINS}

# A note in which every field holds something.
FULL = Node(
    path="nodes/decision/report-in-typst",
    id="omg/decision/report-in-typst",
    description="The harbour study's report is written in Typst since 2026-03-02.",
    type="decision",
    priority="high",
    pinned=True,
    standing=True,
    proposes="preference",
    loop="open",
    created=dt.date(2026, 3, 2),
    updated=dt.date(2026, 3, 4),
    event="2026-03-20",
    scope="dm",
    identity="agent:main:main",
    origin="user",
    reflected_in=("reflections/2026-W10",),
    sources=(Source("agent:main:main", "7c1e09", 1772442000000),),
    supersedes=("nodes/decision/report-in-latex",),
    superseded_by="nodes/decision/report-in-word",
    contradicts=("nodes/fact/report-in-markdown",),
    links=("mocs/moc-decisions", "mocs/moc-open-loops"),
    tags=("writing",),
    aliases=("nodes/decision/typst",),
    body="# Report in Typst\n\n"
    "Replaces [[nodes/decision/report-in-latex|LaTeX]], whose builds took minutes.\n\n"
    "## History\n\n- 2026-03-04: the report is due on 2026-03-20; was 2026-03-16.",
)


def fields(text: str) -> str:
    """The table of fields as the code has them; each one's meaning is taken from *text*."""
    meanings = dict(re.findall(r"^\| `(\w+)` \|.*\| ([^|]+) \|$", text, re.M))
    rows = [f"| `{name}` | {holds} | {meanings.get(name, '')} |" for name, holds in written()]
    return "\n".join(["| field | holds | meaning |", "|---|---|---|", *rows])


def written() -> Iterator[tuple[str, str]]:
    """Every field in its order, and its choices, or else the value that FULL has, as written."""
    properties = render_node(FULL).split("---\n")[1]
    for name, value in re.findall(r"^(\w+):(.*(?:\n +.*)?)", properties, re.M):
        choices = CHOICES.get(name, (value.strip(),))
        yield name, " ".join(f"`{choice}`" for choice in choices)


def generated(text: str) -> str:
    parts = {"fields": fields(text), "example": f"```markdown\n{render_node(FULL)}```"}
    for name, part in parts.items():
        begin, end = f"<!-- {name}:begin -->\n", f"\n<!-- {name}:end -->"
        start, stop = text.index(begin) + len(begin), text.index(end)
        text = text[:start] + part + text[max(start, stop) :]
    return text


def test_the_format_page_lists_the_fields_of_a_node() -> None:
    written_or_checked(FORMAT, generated(FORMAT.read_text("utf-8")))


def options() -> str:
    """A table for each section of omg.toml, from the fields and their defaults."""
    parts, told = [], comments_of_keys()
    for name, field in Config.model_fields.items():
        if name == "home":
            continue
        if not (isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)):
            parts.append(f"## `[{name}]`\n\n{told['Config', name]}.")
            continue
        rows = [
            f"| `{key}` | {default(option.get_default(call_default_factory=True))} | {told[field.annotation.__name__, key]} |"
            for key, option in field.annotation.model_fields.items()
        ]
        parts.append("\n".join([f"## `[{name}]`\n", "| key | default | meaning |", "|---|---|---|", *rows]))
    return "\n\n".join(parts)


def comments_of_keys() -> dict[tuple[str, str], str]:
    """Class and key → the lines above it in config.py that begin with `#:`, as one."""
    lines = (PACKAGE / "config.py").read_text("utf-8").splitlines()
    found = {}
    for of in ast.parse("\n".join(lines)).body:
        for key in of.body if isinstance(of, ast.ClassDef) else ():
            if isinstance(key, ast.AnnAssign):
                above = itertools.takewhile(
                    lambda line: line.startswith("    #: "), reversed(lines[: key.lineno - 1])
                )
                found[of.name, key.target.id] = " ".join(line[7:] for line in reversed([*above]))  # type: ignore[union-attr]
    return found


def default(value: object) -> str:
    """As one writes it in TOML; nothing where there is none."""
    return "" if value is None else f"`{json.dumps(value)}`"


def test_the_configuration_page_lists_every_option() -> None:
    text = CONFIGURATION.read_text("utf-8")
    begin, end = "<!-- options:begin -->\n", "<!-- options:end -->"
    start, stop = text.index(begin) + len(begin), text.index(end)
    written_or_checked(CONFIGURATION, text[:start] + "\n" + options() + "\n\n" + text[stop:])


def test_every_field_on_the_format_page_has_a_meaning() -> None:
    for row in re.findall(r"^\| `\w+` \|.*$", FORMAT.read_text("utf-8"), re.M):
        assert len(row.split(" | ")[-1].rstrip(" |")) > 10, row


def test_the_full_example_note_has_every_field() -> None:
    assert parse_node(render_node(FULL), FULL.path) == FULL
    plain = Node(path=FULL.path, id=FULL.id, description="", type="note")
    assert all(getattr(FULL, slot) != getattr(plain, slot) for slot in FULL.__slots__ if slot not in SAME)


# given to both; "active" is what an example should be; no field of ours
SAME = ("path", "id", "status", "extra")


def test_links_between_documents_lead_somewhere() -> None:
    for page in (README, *DOCS.glob("*.md")):
        for target in re.findall(r"(?:\]\(|src=\")(?!https?:)([^)#\"]+)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_readme_has_at_most_900_words_and_small_pictures() -> None:
    assert len(README.read_text("utf-8").split()) <= 900
    for picture in (DOCS / "pictures").iterdir():
        assert picture.stat().st_size <= 150_000, picture


def test_architecture_names_only_existing_files() -> None:
    named = re.findall(r"`((?:\w+/)*\w+\.py)`", ARCHITECTURE.read_text("utf-8"))
    assert len(named) > 10
    for file in named:
        assert (PACKAGE / file).exists() or (PACKAGE.parent / file).exists(), file


def test_the_acceptance_table_names_only_existing_tests() -> None:
    here = Path(__file__).parent
    named = re.findall(
        r"`((?:\w+/)?test_\w+\.py)(?:::(test_\w+)(?:\[\w+\])?)?`", (here / "ACCEPTANCE.md").read_text("utf-8")
    )
    assert len(named) > 50
    for file, test in named:
        assert (here / file).exists(), file
        assert not test or f"def {test}(" in (here / file).read_text("utf-8"), f"{file}::{test}"


def test_a_number_quoted_for_an_option_is_its_default() -> None:
    config = Config(home=Path("/nowhere"))
    quoted = [
        found
        for page in DOCS.glob("*.md")
        for found in re.findall(r"\(`(\w+)\.(\w+)`,\s+([\d,.]+)\)", page.read_text("utf-8"))
    ]
    assert len(quoted) >= 3
    for section, key, number in quoted:
        assert getattr(getattr(config, section), key) == float(number.replace(",", "")), f"{section}.{key}"


README = Path(__file__).parents[1] / "README.md"
ARCHITECTURE = DOCS / "architecture.md"
LISTED = re.compile(r"(?:^    .*\n)+", re.M)  # in a docstring: a block of indented lines


def docstring(module: Path) -> str:
    return ast.get_docstring(ast.parse(module.read_text("utf-8"))) or ""


def listed(name: str, where: Path, indent: int, width: int) -> str:
    """*name* and the first sentence of its docstring, as lines of at most 118 characters."""
    folder = where / name
    paragraph = docstring(init if (init := folder / "__init__.py").is_file() else folder.with_suffix(".py"))
    sentence = re.split(r"(?<=\.) (?=[A-Z`])", " ".join(paragraph.partition("\n\n")[0].split()))[0]
    assert 10 < len(sentence) <= 140, f"{folder.relative_to(PACKAGE)}: its first sentence, for the map"
    begin = " " * indent + (name + "/" if init.is_file() else name).ljust(width)
    return textwrap.fill(
        sentence, 118, initial_indent=begin, subsequent_indent=" " * len(begin), break_on_hyphens=False
    )


def is_module(part: Path) -> bool:
    return part.suffix == ".py" or (part / "__init__.py").exists()


def with_list(text: str, lines: list[str], first: str) -> str:
    """*text* of a module, with *lines* as the indented block that begins with *first* in its docstring."""
    for block in LISTED.finditer(text):
        if block[0].startswith(f"    {first}"):
            return text[: block.start()] + "\n".join(lines) + "\n" + text[block.end() :]
    raise AssertionError(f"no list begins with {first!r}")


def with_contents(package: Path) -> str:
    """The text of a package's `__init__.py`, its modules listed in the order in which they stand there."""
    text = (package / "__init__.py").read_text("utf-8")
    names = {part.stem for part in package.glob("[a-z]*") if is_module(part)}
    block = LISTED.search(docstring(package / "__init__.py") + "\n")
    standing = [] if block is None else re.findall(r"^    (\w+)", block[0], re.M)
    order = [*(name for name in standing if name in names), *sorted(names - set(standing))]
    width = max(len(name) for name in names) + 4
    lines = [listed(name, package, 4, width) for name in order]
    if not standing:
        return text.replace('.\n"""', ".\n\n" + "\n".join(lines) + '\n"""', 1)
    return with_list(text, lines, standing[0])


def with_rooms(text: str) -> str:
    """The text of omg/__init__.py, its rooms listed by row, with the names of their modules."""
    lines = []
    for heading, steps in ROWS.items():
        lines.append(f"    {heading}")
        for room in " ".join(steps).split():
            lines.append(listed(room, PACKAGE, 6, 12))
            if modules := sorted(part.stem for part in (PACKAGE / room).glob("[a-z]*") if is_module(part)):
                begin = " " * 20
                lines.append(
                    textwrap.fill(" · ".join(modules), 118, initial_indent=begin, subsequent_indent=begin)
                )
    return with_list(text, lines, "Base")


def with_table(text: str) -> str:
    """The text of docs/architecture.md, its rooms as a table by row."""
    rows = [
        f"| {heading} | {' → '.join(', '.join(f'`{r}`' for r in step.split()) for step in steps)} |"
        for heading, steps in ROWS.items()
    ]
    begin, end = "<!-- rooms:begin -->\n", "<!-- rooms:end -->"
    start, stop = text.index(begin) + len(begin), text.index(end)
    return text[:start] + "\n".join(["| | |", "|---|---|", *rows]) + "\n" + text[stop:]


def test_the_lists_of_packages_and_modules_repeat_the_first_sentence_of_each_docstring() -> None:
    for package in sorted(file.parent for file in PACKAGE.rglob("__init__.py") if file.parent != PACKAGE):
        written_or_checked(package / "__init__.py", with_contents(package))
    written_or_checked(PACKAGE / "__init__.py", with_rooms((PACKAGE / "__init__.py").read_text("utf-8")))
    written_or_checked(ARCHITECTURE, with_table(ARCHITECTURE.read_text("utf-8")))


def written_or_checked(file: Path, now: str) -> None:
    if os.environ.get("UPDATE_DOCS"):
        file.write_text(now, encoding="utf-8")
    assert file.read_text("utf-8") == now, f"{file} is stale: run UPDATE_DOCS=1 pytest tests/test_docs.py"


def test_every_command_that_a_document_tells_to_type_exists() -> None:
    root: Any = typer.main.get_command(app)
    typed = 0
    for page in (README, *DOCS.glob("*.md")):
        for line in re.findall(r"(?m)^(?:\$ )?omg ([a-z].*)$|`omg ([a-z][^`]*)`", page.read_text("utf-8")):
            command, words = root, "".join(line).partition("#")[0].split()
            while hasattr(command, "commands"):
                assert words and words[0] in command.commands, f"{page.name}: omg {''.join(line)}"
                command, words = command.commands[words[0]], words[1:]
            known = {o for p in command.params for o in (*p.opts, *p.secondary_opts)} | {"--help"}
            for option in (word.split("=")[0].strip(".,") for word in words if word.startswith("--")):
                assert option in known, f"{page.name}: omg {''.join(line)}"
            typed += 1
    assert typed > 100


def test_the_documents_say_when_turns_are_observed_by_default() -> None:
    observation = Config(home=Path("/nowhere")).observation
    assert isinstance(observation.buffer_tokens, float)
    tokens = f"{observation.buffer_tokens * observation.message_tokens:,.0f} tokens"
    for page in (README, DOCS / "how-it-works.md"):
        text = " ".join(page.read_text("utf-8").split())
        assert "an hour" in text and observation.quiet_after == 3_600 and tokens in text, page.name
        assert "After each turn" not in text


def commands() -> str:
    parts = [
        "# Commands\n",
        "What each command does and takes; `omg COMMAND --help` says the same. What goes wrong is said on stderr, in lines that",
        "begin with `omg:`, and the exit code is 1. A wrong option prints the usage, and the exit code is 2. With `--json` a",
        "command prints one JSON value. This page is generated from the code.\n",
    ]
    for name, command in ALL.items():
        arguments = [p for p in command.params if p.param_type_name == "argument"]
        usage = " ".join(["omg", name, *(shown_argument(p) for p in arguments)])
        parts += [
            f"## omg {name}\n",
            f"`{usage}`\n",
            " ".join(command.help.split()).replace("\\[", "[") + "\n",
        ]
        rows = [(name_of(p), told_of(p)) for p in command.params if p.name != "help"]
        if rows:
            parts += ["| | |", "|---|---|", *(f"| {what} | {why} |" for what, why in rows), ""]
    return "\n".join(parts).rstrip() + "\n"


def shown_argument(argument: Any) -> str:
    name = argument.name.strip("_").upper() + ("…" if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def name_of(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{parameter.name.strip('_').upper()}`"
    return ", ".join(f"`{o}`" for o in (*parameter.opts, *parameter.secondary_opts))


def told_of(parameter: Any) -> str:
    default = parameter.default
    plain = isinstance(default, str | int) and not isinstance(default, bool) and default != ""
    return (parameter.help or "").replace("|", "\\|") + (f" Default: `{default}`." if plain else "")


def test_the_page_of_commands_is_generated_from_the_help_of_the_commands() -> None:
    written_or_checked(DOCS / "commands.md", commands())
