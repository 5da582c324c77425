"""The page of `omg ui`, over real HTTP: who may ask, what is shown, what the buttons do to the vault."""

from __future__ import annotations

import http.client
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from served_page import Page, served

from omg.curate import new_note, propose_note, write_edits
from omg.graph.graph import Graph
from omg.graph.state import GIVEN, given_lately, note_given
from omg.identity import Identity
from omg.llm.replies import ModelReply
from omg.memory import Memory
from omg.plan.edits import Edit
from omg.tools.removing import Codes
from omg.tools.today import decide_text
from omg.tools.tools import slash_command
from omg.ui.notes import name_of
from omg.ui.pages import VIEWS, framed_page

SAID = (
    "I live in Leipzig.",
    "My sister Jule is allergic to peanuts.",
    "I have to book the ferry on March 20.",
)


@pytest.fixture
def page(omg: Memory) -> Iterator[Page]:
    omg.capture([{"role": "user", "content": text} for text in SAID])
    omg.observe()
    with served(omg) as page:
        yield page.enter()


@pytest.fixture
def graph(omg: Memory) -> Graph:
    return omg.find()


def path_of(graph: Graph, words: str) -> str:
    (path,) = (
        e.path for e in graph.index.entries(status=None) if words in e.description and "nodes/" in e.path
    )
    return path


def described(graph: Graph, path: str) -> str:
    return graph.vault.read(path).description


# --- who may ask


def test_the_link_opens_the_page_once_in_one_browser(omg: Memory) -> None:
    with served(omg) as page:
        assert "Run `omg ui` again" in page.get() and page.status == 403  # no cookie
        page.enter()
        assert "What is remembered" in page.get()
        page.request("GET", page.link.removeprefix(page.origin))
        assert page.status == 403
        page.cookie = "omg=guessed"
        assert page.get() and page.status == 403
        assert page.get("static/page.css") and page.status == 404


def test_a_wrong_key_opens_nothing_and_the_link_still_works(omg: Memory) -> None:
    with served(omg) as page:
        page.request("GET", f"{page.session.base}/enter?key=guessed")
        assert page.status == 403
        page.enter()


def test_the_cookie_goes_to_this_page_alone(omg: Memory) -> None:
    """Browsers send cookies to every port of a host; another user may listen on one."""
    with served(omg) as page:
        answer = page.request("GET", page.link.removeprefix(page.origin))
        cookie = answer.headers["set-cookie"]
        assert f"Path={page.session.base}/" in cookie and len(page.session.base) > 20
        assert "HttpOnly" in cookie and "SameSite=strict" in cookie


def test_a_site_whose_name_resolves_to_loopback_is_refused(page: Page) -> None:
    page.request("GET", f"{page.session.base}/", host=f"evil.example:{page.port}")
    assert page.status == 403 and "Leipzig" not in page.text


@pytest.mark.parametrize(
    ("token", "headers"),
    [
        ("", {}),
        ("guessed", {}),
        ("right", {"origin": "http://evil.example"}),
        ("right", {"origin": "null"}),
        ("right", {"sec-fetch-site": "cross-site"}),
        ("right", {"sec-fetch-site": "same-site"}),
    ],
)
def test_a_change_needs_the_pages_token_and_the_pages_origin(
    page: Page, graph: Graph, token: str, headers: dict[str, str]
) -> None:
    path = path_of(graph, "Leipzig")
    page.post("pin", headers, path=path, token=page.session.token if token == "right" else token)
    assert page.status == 403
    assert not graph.vault.read(path).pinned


def test_no_note_can_run_load_or_frame_anything(page: Page, graph: Graph, omg: Memory) -> None:
    evil = "<script>alert(1)</script> <img src=x onerror=alert(1)> [a](javascript:alert(1)) ![b](http://evil.example/b)"
    path = new_note(graph, "fact", "Evil <b>title</b>", f"Evil words.\n\n{evil}", omg.clock()).path
    answer = page.request("GET", f"{page.session.base}/note?path={path}")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert page.text.count("<script") == 1 and "<img" not in page.text and "<b>title" not in page.text
    assert 'href="javascript' not in page.text and 'src="http' not in page.text


def test_a_page_shows_only_the_notes_of_one_identity(page: Page, omg: Memory) -> None:
    omg.capture([{"role": "user", "content": "I live in Porto."}], session="alice")
    omg.observe()
    alice = omg.registry.identity_of("alice")
    assert isinstance(alice, Identity)
    assert "in Porto" not in page.get() + page.get(q="where I live")
    hers = page.get(who=alice.folder)
    assert ">you</option>" in hers and ">alice</option>" in hers and 'title="agent:main:alice"' in hers
    assert "Porto" in hers and "Leipzig" not in hers
    assert "peanuts" not in page.get("note", path=path_of(omg.find(), "peanuts"), who=alice.folder)
    assert page.status == 404


def test_the_command_ui_prints_a_link_that_works_until_the_command_is_stopped(omg: Memory) -> None:
    command = [sys.executable, "-m", "omg.cli", "ui", "prefer-short-answers", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        link = urlsplit(process.stdout.readline().strip())
        with closing(http.client.HTTPConnection(str(link.hostname), link.port, timeout=30)) as asked:
            asked.request("GET", f"{link.path}?{link.query}")
            assert asked.getresponse().headers["location"].endswith("/graph?path=prefer-short-answers")
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    assert not (omg.folder / "page.html").exists()


def test_the_openclaw_tab_shows_only_the_memory_of_the_owner_and_has_no_forms(
    page: Page, omg: Memory
) -> None:
    omg.capture([{"role": "user", "content": "I live in Porto."}], session="alice")
    omg.observe()
    alice = omg.registry.identity_of("alice")
    assert isinstance(alice, Identity)
    for view, (name, _) in VIEWS.items():
        answer = framed_page(omg, {"view": view, "params": {"who": alice.folder}, "base": "/tab"})
        assert answer["status"] == (200 if name else 404)
        html = answer["html"]
        assert "Porto" not in html and html.count("<script") == 1 and 'method="post"' not in html
        assert "script-src 'sha256-" in answer["policy"] and "unsafe" not in answer["policy"]
    assert "Leipzig" in framed_page(omg, {"params": {"q": "Leipzig"}, "base": "/tab"})["html"]


# --- what is shown


def test_notes_and_what_was_said_are_found_by_their_words(page: Page) -> None:
    found = page.get(q="peanuts")
    assert "allergic to peanuts" in found and "What was said" in found
    assert found.index("peanuts.") < found.index("What was said")


def test_the_list_can_be_filtered_by_type_or_by_day_or_by_speaker(
    page: Page, graph: Graph, omg: Memory
) -> None:
    propose_note(graph, "Nora likes tea.", "Tea", None, omg.clock())
    assert "Nora likes tea" in page.get(by="assistant") and "Leipzig" not in page.get(by="assistant")
    assert "Leipzig" in page.get(type="identity") and "ferry" not in page.get(type="identity")
    assert "Leipzig" in page.get(day="2026-03-01") and "Leipzig" not in page.get(day="2026-02-28")
    assert "No note fits" in page.get(session="agent:main:nobody")


def test_a_note_shows_the_words_it_came_from_and_what_it_said_before(page: Page, graph: Graph) -> None:
    path = path_of(graph, "Leipzig")
    page.post("correct", path=path, new="The user lives in Hamburg.")
    shown = page.get("note", path=path_of(graph, "Hamburg"))
    assert "I live in Leipzig." in shown and "2026-03-01: I live in Leipzig." in shown


def test_the_page_of_an_unknown_note_says_that_the_note_is_unknown(page: Page) -> None:
    assert "no note" in page.get("note", path="nodes/fact/none") and page.status == 404


# --- what the buttons do


def test_correcting_a_note_replaces_the_sentence_and_undo_restores_it(page: Page, graph: Graph) -> None:
    path = path_of(graph, "Leipzig")
    shown = page.post("correct", path=path, new="The user lives in Hamburg.", back="note")
    assert (
        described(graph, path_of(graph, "Hamburg")) == "The user lives in Hamburg." and "Corrected" in shown
    )
    page.undo(shown)
    assert described(graph, path) == "I live in Leipzig."


def test_a_rejected_note_stays_gone_and_undo_restores_it(page: Page, graph: Graph, omg: Memory) -> None:
    path = path_of(graph, "peanuts")
    shown = page.post("reject", path=path)
    assert graph.vault.bytes(path) is None
    assert "peanuts" not in omg.inject("What is Jule allergic to?", dry_run=True).prompt
    assert path.rpartition("/")[2] not in graph.vault.text("mocs/moc-identity")
    page.undo(shown)
    assert "peanuts" in described(graph, path)
    assert path.rpartition("/")[2] in graph.vault.text("mocs/moc-identity")


def test_confirming_a_proposal_makes_the_note_the_persons_own(page: Page, graph: Graph, omg: Memory) -> None:
    path = propose_note(graph, "Nora likes tea.", "Tea", None, omg.clock())
    page.post("confirm", path=path, back="note")
    assert graph.vault.read(path_of(graph, "likes tea")).origin == "human"


def test_a_note_can_be_pinned_and_unpinned_on_its_page(page: Page, graph: Graph) -> None:
    path = path_of(graph, "Leipzig")
    assert "every prompt" in page.post("pin", path=path, back="note") and graph.vault.read(path).pinned
    page.post("pin", path=path, off="1")
    assert not graph.vault.read(path).pinned


def against(graph: Graph, omg: Memory) -> tuple[str, str]:
    """Two notes that contradict each other."""
    from omg.curate import done_with, planning_under_lock

    paths = [
        write_edits(graph, [Edit("create", title, text, type="fact", origin="user")], omg.clock(), "wrote")
        for title, text in (
            ("Gate A", "The ferry leaves at gate A."),
            ("Pier B", "The ferry leaves at pier B."),
        )
    ]
    with planning_under_lock(graph, omg.clock()) as plan:
        plan.contradict(*paths)
        done_with(plan, paths[0], omg.clock(), "against")
    return paths[0], paths[1]


def test_of_two_contradicting_notes_the_chosen_one_replaces_the_other(
    page: Page, graph: Graph, omg: Memory
) -> None:
    one, other = against(graph, omg)
    page.post("keep", path=one, other=other)
    assert graph.vault.read(other).superseded_by == one
    assert graph.vault.read(one).contradicts == ()


def test_both_of_two_contradicting_notes_may_be_kept(page: Page, graph: Graph, omg: Memory) -> None:
    one, other = against(graph, omg)
    page.post("keep", path=one, other=other, both="1")
    for path in (one, other):
        assert graph.vault.read(path).contradicts == () and graph.vault.read(path).status == "active"


def test_before_forgetting_the_page_shows_what_will_be_removed(page: Page, graph: Graph) -> None:
    path = path_of(graph, "peanuts")
    preview = page.get("forget", path=path)
    assert "My sister Jule is allergic to peanuts." in preview
    assert "peanuts" in described(graph, path)
    shown = page.post("forget", path=path, choice="forget")
    assert "Forgotten for good: 1 file and 1 message" in shown and 'name="cycle"' not in shown
    assert graph.vault.bytes(path) is None and "peanuts" not in page.get(q="peanuts").replace(
        'value="peanuts"', ""
    ).replace("“peanuts”", "")


def test_after_forgetting_the_page_reports_what_was_searched_and_what_lies_outside(
    page: Page, graph: Graph
) -> None:
    (graph.vault.root / "shopping.txt").write_text("no peanuts for Jule", encoding="utf-8")
    shown = page.post("forget", words="peanuts", choice="words")
    assert "1 notes" in shown and "3 archived messages" in shown
    outside = shown.partition("What lies outside")[2]
    assert f"{graph.vault.root}/shopping.txt" in outside


def test_the_page_can_redact_only_the_given_words(page: Page, graph: Graph) -> None:
    preview = page.get("forget", words="Leipzig")
    assert "Only the words “Leipzig”" in preview and "Everything that holds" in preview
    page.post("forget", words="Leipzig", choice="redact")
    assert "Leipzig" not in page.get("") and described(graph, path_of(graph, "I live in"))


def test_an_action_that_cannot_be_done_says_why(page: Page) -> None:
    assert "is a page that OMG writes" in page.post("pin", path="index")
    assert page.status == 422


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("agent:main:main", "your chat"),
        ("agent:main:main:thread:demo", "your chat, thread demo"),
        ("agent:main:main:project:1a2b3c4d-harbour", "project harbour"),
        ("agent:main:person:clara", "clara"),
        ("agent:main:telegram:direct:111", "111 on telegram"),
        ("agent:main:telegram:group:-1004815", "group -1004815 on telegram"),
    ],
)
def test_a_conversation_is_called_as_a_person_calls_it(key: str, name: str) -> None:
    assert name_of(key) == name


# --- what prompts were given, what was done, what is unsure


def test_for_each_prompt_the_page_shows_the_notes_given_and_the_reason(page: Page, omg: Memory) -> None:
    omg.inject("What is my sister Jule allergic to?")
    shown = page.get("given")
    assert "allergic to peanuts" in shown and "“jule”" not in shown and "stands in every prompt" in shown
    assert "tokens as in every prompt" in shown


def test_a_prompt_that_is_typed_in_leaves_no_trace(page: Page, graph: Graph) -> None:
    shown = page.get("given", q="What is Jule allergic to?")
    assert "would be given" in shown and "allergic to peanuts" in shown and "“jule”" in shown
    assert not (graph.folder / GIVEN).exists()


def test_forgetting_a_note_removes_it_from_the_record_of_prompts(
    page: Page, omg: Memory, graph: Graph
) -> None:
    omg.inject("What is my sister Jule allergic to?")
    path = path_of(graph, "peanuts")
    assert path in (graph.folder / GIVEN).read_text("utf-8")
    omg.forget(path)
    assert path not in (graph.folder / GIVEN).read_text("utf-8")
    omg.inject("Where do I live?")
    omg.redact("Leipzig")
    assert (graph.folder / GIVEN).read_text("utf-8") == "" or "eipzig" not in page.get("given")


def test_the_record_of_prompts_holds_no_words_of_a_conversation(
    page: Page, omg: Memory, graph: Graph
) -> None:
    omg.inject("Is my sister Jule, the trapezoid, allergic to something?")
    kept = (graph.folder / GIVEN).read_text("utf-8")
    assert not any(word in kept.casefold() for word in ("trapezoid", "peanut", "allergic"))


def test_the_record_of_prompts_is_bounded(omg: Memory) -> None:
    for n in range(3000):
        note_given(omg.folder, {"at": n, "notes": ["x" * 300]})
    assert (omg.folder / GIVEN).stat().st_size < 700_000
    assert next(given_lately(omg.folder))["at"] == 2999


def test_the_view_of_days_shows_what_was_learnt_and_can_undo_it(page: Page, graph: Graph) -> None:
    shown = page.get("days")
    assert "Learnt from what was said" in shown and "3 learnt" in shown and "2026-03-01" in shown
    page.undo(shown)
    assert [e for e in graph.index.entries() if e.path.startswith("nodes/")] == []
    assert "undone" in page.get("days")


def test_a_day_begins_with_what_was_learnt_and_ends_with_what_was_taken_back(
    page: Page, graph: Graph
) -> None:
    page.undo(page.post("pin", path=path_of(graph, "peanuts"), back="note"))
    shown = page.get("days")
    order = [shown.index(f"<h3>{kind}") for kind in ("Learnt from what was said", "By hand", "A change was")]
    assert order == sorted(order)


def test_only_unsure_notes_are_asked_about_and_one_tap_settles_each(
    page: Page, graph: Graph, omg: Memory
) -> None:
    assert "Nothing waits for you" in page.get("decide")
    one, other = against(graph, omg)
    propose_note(graph, "The user likes tea.", "Tea", None, omg.clock())
    shown = page.get("decide")
    assert "cannot both be right" in shown and "likes tea" in shown and "Leipzig" not in shown
    page.post("keep", path=one, other=other)
    page.post("reject", path=path_of(graph, "likes tea"))
    assert "Nothing waits for you" in page.get("decide")


def test_the_page_and_the_chat_ask_the_same_questions_in_the_same_words(
    page: Page, graph: Graph, omg: Memory
) -> None:
    one, other = against(graph, omg)
    propose_note(graph, "The user likes tea.", "Tea", None, omg.clock())
    tall = Edit("create", "Height", "The user is two metres tall.", type="fact", origin="tool")
    path = write_edits(graph, [tall], omg.clock(), "wrote")
    shown, told = page.get("decide"), decide_text(graph)
    for words in (
        "These two cannot both be right.",
        "The assistant proposes this; you did not say it in these words.",
        "A tool or a page says this of you.",
        "The user is two metres tall.",
        "The ferry leaves at gate A.",
        "The ferry leaves at pier B.",
    ):
        assert words in shown and words in told
    assert f"/omg keep {one}" in told and f"/omg keep {other}" in told and f"/omg reject {path}" in told


def test_a_question_unanswered_for_a_month_is_listed_last(page: Page, graph: Graph, omg: Memory) -> None:
    propose_note(graph, "The user likes tea.", "Tea", None, omg.clock() - timedelta(days=31))
    shown = page.get("decide")
    assert shown.index("Not answered for 30 days: 1") < shown.index("weighs less") < shown.index("likes tea")


def test_the_health_view_says_what_waits_and_what_models_cost(page: Page, omg: Memory) -> None:
    omg.worker.ledger.spend(ModelReply("", "m", 900, 100, 0.5), "observe", omg.clock())
    omg.capture([{"role": "user", "content": "I moved to Hamburg."}])
    shown = page.get("health")
    assert "1 turn:" in shown and "$0.50" in shown and "<td>1,000</td>" in shown and "<svg" in shown


def test_each_dot_of_the_graph_has_a_name_and_equal_titles_are_told_apart(
    page: Page, graph: Graph, omg: Memory
) -> None:
    for type in ("project", "fact"):
        tidepool = Edit("create", "Tidepool", f"Tidepool is a {type}.", type=type, origin="user")
        write_edits(graph, [tidepool], omg.clock(), "wrote")
    view = page.get("graph")
    picture = view[view.index('<svg class="graph"') :].partition("</svg>")[0]
    assert picture.count("<circle") == picture.count("<text") > 4
    assert "Tidepool (project)" in picture and "Tidepool (fact)" in picture


def test_every_view_exists_and_has_its_heading(page: Page) -> None:
    for view, (name, _) in VIEWS.items():
        if name:
            assert f'aria-current="page">{name}<' in page.get(view) and page.status == 200


def test_the_chat_commands_today_and_decide_and_why_answer_in_at_most_five_lines(
    page: Page, graph: Graph, omg: Memory
) -> None:
    session = graph.identity.key

    def told(verb: str) -> str:
        body = {"args": verb, "context": {"sessionKey": session, "senderIsOwner": True}}
        text = str(slash_command(omg.intake, body, Codes())["text"])
        assert text.count("\n") < 5
        return text

    assert "open, due 2026-03-20" in told("today")
    assert "Nothing to decide" in told("decide") and "No prompt" in told("why")
    propose_note(graph, "The user likes tea.", "Tea", None, omg.clock())
    assert "likes tea" in told("decide")
    omg.inject("What is my sister Jule allergic to?", session=session)
    assert "allergic to peanuts" in told("why")
