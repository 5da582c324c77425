"""The skill: a graph of notes that an agent can follow, in which every example is what it says it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from omg.cli.app import app
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


def test_examples_name_maps_that_the_vault_has() -> None:
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


def test_the_graph_is_small_enough_to_be_read() -> None:
    assert 6 <= len(list((SKILL / "notes").glob("*.md"))) <= 10
    assert len((SKILL / "SKILL.md").read_text("utf-8")) < 4_000  # about 1,000 tokens
    assert all(len(page.read_text("utf-8")) < 6_000 for page in PAGES)


def test_nothing_hides_the_skill_from_the_agent() -> None:
    meta = yaml.safe_load((SKILL / "SKILL.md").read_text("utf-8").split("---\n")[1])
    assert meta["name"] == SKILL.name
    assert len(meta["description"]) < 500
    # A `requires` that does not hold takes the skill off the list: it must work without the plugin, too.
    assert "requires" not in meta["metadata"]["openclaw"]


# --- without the plugin


def omg_skill_install(*args: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["skill", "install", *args])
    return done.exit_code, done.output + str(done.exception or "")


def test_an_agent_without_hooks_is_given_the_skill_its_graph_and_a_vault(tmp_path: Path) -> None:
    code, told = omg_skill_install(str(tmp_path / "ws"))
    assert code == 0, told
    put = tmp_path / "ws/skills" / SKILL.name
    assert {p.relative_to(put) for p in put.rglob("*.md")} == {p.relative_to(SKILL) for p in PAGES}
    vault = tmp_path / "ws/memory/omg"  # where the skill tells the agent to look
    assert (vault / "index.md").exists()
    assert (vault / "mocs/moc-preferences.md").exists()
    (vault / "nodes/fact/mine.md").write_text("---\ntype: fact\ndescription: The gate squeaks.\n---\n")
    assert omg_skill_install(str(tmp_path / "ws"))[0] == 0
    found = CliRunner().invoke(app, ["search", "gate"])
    assert "The gate squeaks." in found.output


def test_a_page_of_the_skill_that_a_person_changed_stays(tmp_path: Path) -> None:
    omg_skill_install(str(tmp_path / "ws"))
    page = tmp_path / "ws/skills" / SKILL.name / "notes/safety.md"
    page.write_text("mine")
    code, told = omg_skill_install(str(tmp_path / "ws"))
    assert code != 0
    assert "notes/safety.md" in told
    assert page.read_text() == "mine"


def test_notes_that_lie_elsewhere_are_not_left_behind_unsaid(tmp_path: Path) -> None:
    assert CliRunner().invoke(app, ["init", str(tmp_path / "notes")]).exit_code == 0
    code, told = omg_skill_install(str(tmp_path / "ws"))
    assert code != 0
    assert f"omg init {tmp_path / 'ws/memory/omg'}" in told
    assert (tmp_path / "notes/index.md").exists()


def test_without_a_workspace_it_is_openclaws(tmp_path: Path) -> None:
    assert "name the agent's folder" in omg_skill_install()[1]
    (tmp_path / "openclaw.json").write_text("{agents: {defaults: {workspace: '%s'}}}" % (tmp_path / "theirs"))
    assert omg_skill_install()[0] == 0
    assert (tmp_path / "theirs/skills" / SKILL.name / "SKILL.md").exists()
