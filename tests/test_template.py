"""The vault that `omg init` lays down: valid as it stands, and at home in Obsidian."""

from __future__ import annotations

import datetime as dt
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from planted import NOW, graph_of, home_at, note, put

from omg.node.markdown import link_targets
from omg.node.note import STANDARD, TYPES, Node, parse_node, render_node
from omg.plan.pages import index_block, map_block, new_page, now_block
from omg.ui.drawing import COLOURS
from omg.worker.nights import one_night

BEGIN, END = "<!-- omg:begin -->", "<!-- omg:end -->"
TEMPLATE = Path(__file__).parents[1] / "vault_template"
SETTINGS = TEMPLATE / ".obsidian"
PAGES = sorted(f for f in TEMPLATE.rglob("*.md") if f.parent.name != "templates")
GENERATED = [f for f in PAGES if BEGIN in f.read_text("utf-8") and f.stem != "about-this-vault"]
FORMS = sorted((TEMPLATE / "templates").glob("*.md"))
BASES = sorted((TEMPLATE / "views").glob("*.base"))
ROOTS = ("", "omg", "memory/omg")  # the vault's place below the folder that someone opens in Obsidian


def name(file: Path) -> str:
    return file.relative_to(TEMPLATE).as_posix()


def read(file: Path) -> Node:
    return parse_node(file.read_text("utf-8"), name(file).removesuffix(".md"))


def setting(file: str) -> Any:
    return json.loads((SETTINGS / file).read_text("utf-8"))


def filled(form: Path, title: str) -> str:
    """What Obsidian's *Insert template* makes of a form, in a note called *title*, on 2026-02-19."""
    text = form.read_text("utf-8").replace("{{title}}", title)
    return re.sub(r"\{\{date:YYYY-MM-DD\}\}", "2026-02-19", text)


@pytest.mark.parametrize("file", PAGES, ids=name)
def test_omg_would_write_every_page_of_the_template_unchanged(file: Path) -> None:
    node = read(file)
    assert node.type in ("index", "now", "moc", "log")
    assert node.id.startswith("omg/")
    assert node.description
    assert node.extra == {}
    assert render_node(node) == file.read_text("utf-8")


def test_the_template_has_the_pages_of_the_design() -> None:
    maps = (
        *("identity", "preferences", "projects", "decisions", "facts", "episodes"),
        *("open-loops", "reflections"),
    )
    assert {name(f) for f in GENERATED} == {"index.md", "now.md", *(f"mocs/moc-{m}.md" for m in maps)}
    for folder in (*(f"nodes/{type}" for type in TYPES), "reflections", "inbox"):
        assert (TEMPLATE / folder).is_dir()
    ids = [read(f).id for f in PAGES]
    assert len(ids) == len(set(ids))


def test_a_generated_page_is_what_omg_makes_of_an_empty_memory() -> None:
    made = {path: new_page(path, map_block(path, [])) for path in STANDARD}
    made["index"] = new_page("index", index_block({}))
    made["now"] = new_page("now", now_block({}, [], dt.date(2026, 2, 19), dt.UTC))
    assert {name(f).removesuffix(".md"): f.read_text("utf-8") for f in GENERATED} == made


@pytest.mark.parametrize("below", ROOTS)
def test_every_link_leads_to_a_file_wherever_the_vault_is_opened(below: str, tmp_path: Path) -> None:
    shutil.copytree(TEMPLATE, tmp_path / below, dirs_exist_ok=True)
    files = {f.relative_to(tmp_path).as_posix() for f in tmp_path.rglob("*") if f.is_file()}
    for file in [*PAGES, *FORMS]:
        for target in {*link_targets(file.read_text("utf-8")), *read(file).links}:
            # Obsidian's rule for a link with a folder in it: the one file whose path ends like that.
            wanted = target if target.endswith(".base") else f"{target}.md"
            found = [f for f in files if f == wanted or f.endswith(f"/{wanted}")]
            assert len(found) == 1, f"{name(file)}: [[{target}]] leads to {found}"
            assert "/" in target, f"{name(file)}: the bare name [[{target}]] collides in a larger vault"


@pytest.mark.parametrize("form", FORMS, ids=name)
@pytest.mark.parametrize("title", ["Green tea", "Anna's 40th: the plan & more", "日本語", "yes"])
def test_a_note_made_from_a_form_is_valid(form: Path, title: str) -> None:
    node = parse_node(filled(form, title), f"nodes/{form.stem}/{title}")
    assert node.type == ("episode" if form.stem == "open-loop" else form.stem)
    assert node.title == node.description == title
    assert node.created == node.updated == dt.date(2026, 2, 19)
    assert node.origin == "human"
    assert node.extra == {}
    assert all((TEMPLATE / f"{link}.md").exists() for link in node.links)
    assert node.loop == ("open" if form.stem == "open-loop" else None)
    assert parse_node(render_node(node), node.path) == node


def test_template_forms_are_never_listed_or_counted_or_offered(home: Path) -> None:
    which = home_at(home)
    graph = graph_of(which)
    form = graph.vault.root / "templates" / "fact.md"
    assert form.exists()
    # Filled in, and with links, as a person's own form may be.
    form.write_text("---\ntype: fact\nlinks: ['[[mocs/moc-facts]]']\n---\nThe marmoset is in the form.\n")
    put(graph, note("nodes/fact/pet", "The marmoset is in the kitchen.", dt.date(2026, 1, 5)))
    which.refresh(graph)
    one_night(which.worker, graph, None, dry_run=False, pending=True)
    pages = {path: graph.vault.text(path) for path in graph.vault.paths()}
    assert "[[nodes/fact/pet" in pages["mocs/moc-facts"] and "|Facts]] (1)" in pages["index"]
    assert not [path for path, text in pages.items() if "templates/" in text or "in the form" in text]
    assert graph.index.moc_counts()["mocs/moc-facts"] == 1
    hits = graph.index.search("marmoset in the form fact", 10, now=NOW)
    assert [hit.entry.path for hit in hits] == ["nodes/fact/pet"]
    assert [e for e in graph.index.entries(status=None) if e.path.startswith("templates")] == []
    which.close()


def test_there_is_a_form_for_every_type() -> None:
    assert {f.stem for f in FORMS} == {*TYPES, "open-loop"}
    assert setting("templates.json")["folder"] == "templates"


def statements(filters: Any) -> list[str]:
    if isinstance(filters, str):
        return [filters]
    ((key, parts),) = filters.items()
    assert key in ("and", "or", "not")
    return [statement for part in parts for statement in statements(part)]


@pytest.mark.parametrize("file", BASES, ids=name)
def test_each_view_is_a_valid_obsidian_base_that_works_from_any_vault_root(file: Path) -> None:
    base = yaml.safe_load(file.read_text("utf-8"))
    assert set(base) <= {"filters", "formulas", "properties", "summaries", "views"}
    formulas = {f"formula.{formula}" for formula in base.get("formulas", {})}
    every = statements(base["filters"])
    for view in base["views"]:
        assert set(view) <= {"type", "name", "filters", "groupBy", "order", "sort", "columnSize", "limit"}
        assert view["type"] == "table"
        assert view["name"]
        every += statements(view.get("filters", {"and": []}))
        columns = [*view["order"], *(key["property"] for key in view["sort"]), *view.get("columnSize", {})]
        for column in [*columns, *([view["groupBy"]["property"]] if "groupBy" in view else [])]:
            assert column.startswith(("file.", "note.")) or column in formulas, column
    # A folder is another one as soon as the workspace is opened; a property is not.
    assert not any("inFolder" in statement for statement in every)
    assert '!file.folder.endsWith("templates")' in every
    for expression in [*every, *base.get("formulas", {}).values()]:
        assert isinstance(expression, str)
        assert expression.count("(") == expression.count(")")
        assert expression.count('"') % 2 == 0


def test_a_note_is_opened_with_its_backlinks_beside_it() -> None:
    base = "views/about-the-note-in-front.base"
    shown = [leaf["state"] for leaf in setting("workspace.json")["right"]["children"][0]["children"]]
    assert [s["state"]["file"] for s in shown if s["type"] == "bases"] == [base]
    using = [name(f) for f in BASES if "this" in re.findall(r"\w+", " ".join(every_statement(f)))]
    assert using == [base]  # in a tab of its own, `this` is the table itself


def every_statement(file: Path) -> list[str]:
    base = yaml.safe_load(file.read_text("utf-8"))
    return [s for part in (base, *base["views"]) for s in statements(part.get("filters", {"and": []}))]


def test_the_obsidian_graph_has_the_same_colours_as_our_graph_page() -> None:
    groups = {
        group["query"]: f"#{group['color']['rgb']:06x}" for group in setting("graph.json")["colorGroups"]
    }
    for type in (*TYPES, "reflection"):
        assert groups[f"[type:{type}]"] == COLOURS[type]
    assert all(query.startswith("[") for query in groups)  # by property: a path differs from root to root


def test_obsidian_writes_links_like_omg_and_moves_deleted_notes_out_of_the_vault() -> None:
    app = setting("app.json")
    assert app["newLinkFormat"] == "absolute"  # the path below the vault root
    assert app["useMarkdownLinks"] is False
    assert app["newFileFolderPath"] == "inbox"
    # "local" would keep them in .trash, below memory/, where OpenClaw's memory_search still finds them.
    assert app["trashOption"] == "system"
    plugins = setting("core-plugins.json")
    assert all(plugins[p] for p in ("bases", "backlink", "outline", "templates", "graph", "bookmarks"))


def test_every_file_named_in_the_settings_exists() -> None:
    def files(value: Any) -> list[str]:
        if isinstance(value, list):
            return [found for item in value for found in files(item)]
        if isinstance(value, dict):
            own = [value[key] for key in ("file", "path") if isinstance(value.get(key), str)]
            return own + [found for item in value.values() for found in files(item)]
        return []

    for file in SETTINGS.glob("*.json"):
        for path in files(setting(file.name)):
            assert (TEMPLATE / path).is_file(), f"{file.name}: {path}"
    for ignored in setting("app.json")["userIgnoreFilters"]:
        assert (TEMPLATE / ignored).is_dir()
    for snippet in setting("appearance.json")["enabledCssSnippets"]:
        assert (SETTINGS / "snippets" / f"{snippet}.css").is_file()
