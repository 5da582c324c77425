"""The graph page, in a real browser, opened from a file and with nothing to talk to."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest
from browser import CHROMIUM, Browser

from omg.graph.graph import Graph
from omg.identity import identity_of_session
from omg.index.index import Index
from omg.node.note import GENERATED, TYPES, Node
from omg.page import COLOURS, LIBRARY, OTHER, graph_page, page_html, page_types
from omg.vault.vault import Vault

browsing = pytest.mark.skipif(
    CHROMIUM is None, reason="THE GRAPH PAGE IS NOT TESTED: no Chromium; apt-get install chromium"
)
DRAWN = "document.documentElement.dataset.drawn"
DAY = dt.date(2026, 1, 1)


def node(path: str, title: str, type: str = "fact", body: str = "", day: int = 0, **more: object) -> Node:
    when = DAY + dt.timedelta(days=day)
    text = f"# {title}\n\n{body}"
    fixed = {"id": f"omg/{path}", "description": f"{title}, in one line.", "created": when, "updated": when}
    return Node(path=path, type=type, body=text, **{**fixed, **more})  # type: ignore[arg-type]


TEA = node(
    "nodes/preference/tea",
    "Green tea",
    "preference",
    "For the morning; bought in [[nodes/episode/lisbon|Lisbon]].\n\n## History\n\n- 2025-12-01: coffee",
    tags=("kitchen",),
    priority="high",
)
LISBON = node(
    "nodes/episode/lisbon", "A week in Lisbon", "episode", "Walked a lot.", 30, event="2026-03-05..2026-03-12"
)
OLD = node("nodes/fact/old-flat", "The old flat", day=60, status="superseded")
MAP = Node(
    path="mocs/moc-facts",
    id="omg/moc/facts",
    description="Facts.",
    type="moc",
    body="# Facts\n\n%% yours %%\n\n<!-- omg:begin -->\nNothing yet.\n<!-- omg:end -->",
)
NOTES = (TEA, LISBON, OLD, MAP)
LINKS = ((TEA.path, LISBON.path), (OLD.path, MAP.path), (TEA.path, TEA.path), (TEA.path, "nodes/gone"))


def page(
    notes: tuple[Node, ...] = NOTES, links: object = LINKS, title: str = "Memory", **more: object
) -> str:
    return page_html(notes, links, title, bodies={n.path: n.body for n in notes}, **more)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture
def browser(chromium: Browser) -> Browser:
    chromium.requests.clear()
    chromium.errors.clear()
    return chromium


def shown(browser: Browser, tmp_path: Path, text: str, fragment: str = "") -> Path:
    file = tmp_path / "graph.html"
    file.write_text(text, encoding="utf-8")
    browser.open(file, fragment)
    browser.until(f"location.href.startsWith({file.as_uri()!r}) && {DRAWN}")
    return file


LOOK = """((r, g, b) => {
  const canvas = document.querySelector("canvas");
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let [n, x, y] = [0, 0, 0];
  for (let i = 0; i < data.length; i += 4)
    if (data[i] === r && data[i + 1] === g && data[i + 2] === b && data[i + 3] === 255) {
      n++;
      x += (i / 4) % canvas.width;
      y += Math.floor(i / 4 / canvas.width);
    }
  return [n, x / n, y / n];
})"""


def look(browser: Browser, colour: str) -> tuple[int, float, float]:
    """How many pixels of the drawing have *colour* ("#rrggbb"), and their middle."""
    n, x, y = browser.js(f"{LOOK}{tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))}")
    return n, x, y


def search(browser: Browser, words: str) -> int:
    browser.js("document.getElementById('query').value = ''; document.getElementById('query').focus()")
    browser.type(words)
    return int(browser.js("document.documentElement.dataset.found"))


def panel(browser: Browser) -> str:
    return str(browser.js("document.getElementById('note').innerText"))


@browsing
def test_every_note_is_drawn_in_the_colour_of_its_type(browser: Browser, tmp_path: Path) -> None:
    shown(browser, tmp_path, page())
    for type in ("preference", "episode", "fact", "moc"):
        browser.until(lambda type=type: look(browser, COLOURS[type])[0] > 10)
    blank = (tmp_path / "blank.html").resolve()
    blank.write_text("<!doctype html><title>blank</title>", encoding="utf-8")
    picture = browser.picture()
    browser.open(blank)
    browser.until("document.title === 'blank'")
    assert len(picture) > 2 * len(browser.picture())
    assert browser.errors == []


@browsing
def test_a_note_cannot_run_or_fetch_anything(browser: Browser, tmp_path: Path) -> None:
    evil = (
        "</script><script>window.owned = 1</script><img src=x onerror='window.owned = 2'>"
        "<!-- <script> --><!--data--><svg onload='window.owned = 3'>\u2028"
        " [[javascript:window.owned=4|x]] `<b>` &lt;"
    )
    bad = Node(
        path="nodes/fact/<img src=x onerror=window.owned=5>",
        id=evil,
        description=evil,
        type="fact",
        event="2026-01-02",
        tags=(evil,),
        body=f"# {evil}\n\n{evil}\n\n- {evil}\n\n```\n{evil}\n```\n",
    )
    notes = (bad, TEA)
    file = shown(browser, tmp_path, page(notes, ((bad.path, TEA.path),), title=evil, root=tmp_path))
    assert search(browser, "</script>") == 1
    browser.press("Enter", 13)
    browser.until("!document.getElementById('note').hidden")
    assert "<img src=x onerror='window.owned = 2'>" in panel(browser)
    assert browser.js("document.querySelector('h1').textContent").startswith("</script><script>")
    assert browser.js("document.querySelectorAll('img, svg, iframe').length") == 0
    assert browser.js("window.owned === undefined")
    assert browser.requests == [file.as_uri()]
    assert browser.errors == []


@browsing
def test_search_finds_notes_by_title_text_and_tag(browser: Browser, tmp_path: Path) -> None:
    shown(browser, tmp_path, page())
    assert search(browser, "LISBON") == 2  # its own note, and the one that links to it in prose
    assert search(browser, "lisbon walked") == 1
    assert search(browser, "kitchen") == 1
    assert search(browser, "zebra") == 0
    assert "No note has all of these words" in browser.js("document.getElementById('results').innerText")
    assert search(browser, "old flat") == 1
    browser.press("Enter", 13)
    browser.until("!document.getElementById('note').hidden")
    assert "superseded" in panel(browser)


@browsing
def test_a_click_walks_from_note_to_note_and_back(browser: Browser, tmp_path: Path) -> None:
    shown(browser, tmp_path, page(root=tmp_path), "#nodes%2Fpreference%2Ftea")
    browser.until("document.querySelector('#note h2')?.textContent === 'Green tea'")
    text = panel(browser)
    for part in (
        "Green tea, in one line.",
        "high priority",
        "#kitchen",
        "bought in Lisbon",
        "History",
        "coffee",
    ):
        assert part in text
    browser.js("document.querySelector('#note .go').click()")
    browser.until("document.querySelector('#note h2').textContent === 'A week in Lisbon'")
    assert "on 2026-03-05 to 2026-03-12" in panel(browser)
    assert "Linked from\nGreen tea" in panel(browser).replace("\n\n", "\n")
    browser.js("history.back()")
    browser.until("document.querySelector('#note h2').textContent === 'Green tea'")
    link = browser.js("document.querySelector('#note a.open').href")
    assert unquote(link) == f"obsidian://open?path={tmp_path}/nodes/preference/tea.md"
    browser.js("location.hash = '#mocs%2Fmoc-facts'")
    browser.until("document.querySelector('#note h2').textContent === 'Facts'")
    assert "Nothing yet." in panel(browser)
    assert "omg:begin" not in panel(browser) and "%%" not in panel(browser)  # marks for editors
    browser.press("Escape", 27)
    browser.until("document.getElementById('note').hidden")


@browsing
def test_a_click_on_a_dot_opens_its_note(browser: Browser, tmp_path: Path) -> None:
    shown(browser, tmp_path, page((TEA,), ()))
    time.sleep(1)  # the dot comes to rest, and what lies below the pointer is looked up only now and then
    _, x, y = look(browser, COLOURS["preference"])
    browser.click(x, y)
    browser.until("document.querySelector('#note h2')?.textContent === 'Green tea'")


@browsing
def test_types_and_days_can_be_left_out(browser: Browser, tmp_path: Path) -> None:
    shown(browser, tmp_path, page())
    count = "document.documentElement.dataset.shown"
    assert browser.js(count) == "4"
    browser.js(
        "[...document.querySelectorAll('#types button')].find(b => b.innerText.includes('episode')).click()"
    )
    assert browser.js(count) == "3"
    browser.js(
        "[...document.querySelectorAll('#types button')].find(b => b.innerText.includes('episode')).click()"
    )
    move = "const to = document.getElementById('to'); to.value = %d; to.dispatchEvent(new Event('input'));"
    browser.js(f"(() => {{ {move % 10} }})()")
    assert browser.js(count) == "2"  # the tea of January, and the map, which has no day
    assert browser.js("document.getElementById('to-day').textContent") == "11 Jan 2026"
    browser.js("document.getElementById('all-time').click()")
    assert browser.js(count) == "4"


@browsing
def test_an_empty_graph_says_so(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "graph.html"
    file.write_text(page((), ()), encoding="utf-8")
    browser.open(file)
    browser.until("document.body.innerText.includes('No notes yet.')")
    assert browser.errors == []


def test_the_page_of_a_graph_has_its_notes_their_text_and_their_links(tmp_path: Path) -> None:
    owner = identity_of_session("agent:main:main")
    assert owner
    (tmp_path / "vault/nodes/fact").mkdir(parents=True)
    (tmp_path / "vault/nodes/fact/tea.md").write_text("# Tea\n\nSee [[nodes/fact/cup|the cup]].\n", "utf-8")
    (tmp_path / "vault/nodes/fact/cup.md").write_text("Blue.\n", "utf-8")
    (tmp_path / "vault/nodes/fact/bad.md").write_text("---\nnever: ended\n", "utf-8")
    vault = Vault(tmp_path / "vault", tmp_path / "written.jsonl")
    index = Index(tmp_path / "index.db")
    index.sync(vault)
    try:
        text = graph_page(Graph(owner, tmp_path, vault, index))
    finally:
        index.close()
    data = json.loads(text.split('id="data">')[1].split("</script>")[0])
    assert [note["path"] for note in data["notes"]] == ["nodes/fact/cup", "nodes/fact/tea"]
    assert [note["body"] for note in data["notes"]] == ["Blue.", "See [[nodes/fact/cup|the cup]]."]
    assert data["links"] == [[1, 0]]
    assert data["root"] == (tmp_path / "vault").as_posix()


def test_every_type_we_write_has_a_colour_and_a_persons_own_has_one_too() -> None:
    assert set(COLOURS) == {*TYPES, *GENERATED} - {"log"}
    kinds = page_types([node("a", "A", "recipe"), node("b", "B", "moc"), node("c", "C", "identity")])
    assert [kind["name"] for kind in kinds] == ["identity", "moc", "recipe"]
    assert kinds[-1]["colour"] == OTHER


def test_the_library_travels_with_its_version_and_licences() -> None:
    assert LIBRARY.read_text("utf-8").startswith("// Version 1.52.0 force-graph")
    licence = LIBRARY.with_name("force-graph.LICENSE.txt").read_text("utf-8")
    assert "force-graph 1.52.0" in licence
    assert "d3-force-3d" in licence
