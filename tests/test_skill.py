"""The skill: a graph of notes that an agent can follow, in which every example is what it says it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from omg.node.markdown import link_targets, slugify
from omg.node.note import TYPES, Node, head_of, parse_node, render_node

SKILL = Path(__file__).parents[1] / "skills/observational-memory-graph"
PAGES = sorted(SKILL.rglob("*.md"))
TEMPLATE = Path(__file__).parents[1] / "vault_template"
FENCED = re.compile(r"^```markdown\n(.*?)^```$", re.M | re.S)
EXAMPLES = [
    pytest.param(page, example, id=f"{page.stem}-{i}")
    for page in PAGES
    for i, example in enumerate(FENCED.findall(page.read_text("utf-8")))
]


def name(file: Path) -> str:
    return file.relative_to(SKILL).as_posix()


def read(file: Path) -> Node:
    return parse_node(file.read_text("utf-8"), name(file).removesuffix(".md"))


def links(file: Path) -> set[str]:
    return set(link_targets(file.read_text("utf-8")))


@pytest.mark.parametrize(("page", "example"), EXAMPLES)
def test_every_example_is_a_node_in_our_own_format(page: Path, example: str) -> None:
    node = parse_node(example, "nodes/example/example")
    assert node.extra == {}
    assert parse_node(render_node(node), node.path) == node
    if example.startswith("---"):
        written = re.findall(r"^(\w+):", example.split("---\n")[1], re.M)
        assert written == [key for key in head_of(node) if key in written], (
            "the properties are in another order"
        )
        assert node.title == re.search(r"^# (.*)$", example, re.M)[1]  # type: ignore[index]
    if node.type in TYPES:
        assert re.fullmatch(rf"omg/{node.type}/[a-z0-9-]+", node.id)
        assert node.id.endswith("/" + slugify(node.title))
        assert node.created
        assert node.updated
        assert node.links
        assert (node.loop == "open") == ("mocs/moc-open-loops" in node.links)


def test_every_map_linked_in_the_examples_is_in_the_vault_template() -> None:
    for param in EXAMPLES:
        for link in parse_node(param.values[1], "x").links:  # type: ignore[arg-type]
            assert (TEMPLATE / f"{link}.md").exists(), link


def test_every_link_leads_to_a_page_and_every_page_can_be_reached() -> None:
    todo, seen = [SKILL / "SKILL.md"], set()
    while todo:
        page = todo.pop()
        if page in seen:
            continue
        seen.add(page)
        for target in links(page):
            assert (SKILL / f"{target}.md").is_file(), f"{name(page)}: [[{target}]] leads nowhere"
            todo.append(SKILL / f"{target}.md")
    assert seen == set(PAGES)


def test_the_pages_of_the_skill_are_few_and_short_enough_to_read() -> None:
    assert 6 <= len(list((SKILL / "notes").glob("*.md"))) <= 10
    assert len((SKILL / "SKILL.md").read_text("utf-8")) < 4_000  # about 1,000 tokens
    assert all(len(page.read_text("utf-8")) < 6_000 for page in PAGES)


def test_nothing_hides_the_skill_from_the_agent() -> None:
    meta = yaml.safe_load((SKILL / "SKILL.md").read_text("utf-8").split("---\n")[1])
    assert meta["name"] == SKILL.name
    assert len(meta["description"]) < 500
    # A `requires` that does not hold takes the skill off the list: it must work without the plugin, too.
    assert "requires" not in meta["metadata"]["openclaw"]
