"""The commands of a person's own hand, as a shell sees them: what they print, and that an error is one line."""

import json
import os
import re
from datetime import UTC, datetime

import pytest
from shell import omg_here as run_here

from omg.curate import propose_note
from omg.memory import Memory

WORD = "periwinkle"  # a number may stand in a receipt's id by chance
SAID = f"I decided to rent the studio at number 4, at the {WORD} gate."


@pytest.fixture
def omg(tmp_path, monkeypatch):
    """`omg(…)` → (exit code, stdout, stderr), in a home with two notes and a message."""
    monkeypatch.setenv("COLUMNS", "120")

    def run(*args, typed=""):
        done = run_here(*args, typed=typed, cwd=tmp_path)
        return done.returncode, done.stdout, done.stderr

    line = {"role": "user", "content": SAID, "timestamp": "2026-03-03T19:40:00Z"}
    (tmp_path / "chat.jsonl").write_text(json.dumps(line) + "\n")
    assert run("import", "chat.jsonl")[0] == 0
    for title, text in (("Router", "The router is in the attic."), ("Modem", "The modem is up there.")):
        assert run("new", "fact", title, "--text", text)[0] == 0
    return run


def value(done):
    code, out, err = done
    assert (code, err) == (0, ""), err
    return json.loads(out)


def test_every_command_for_notes_prints_json_for_scripts(omg):
    path = "nodes/fact/router"
    for command in (["status"], ["identity", "list"], ["observe"], ["inject", "-p", "tea"], ["doctor"]):
        code, out, _ = omg(*command, "--json")
        assert json.loads(out) and code in (0, 1)
    assert value(omg("pin", "router", "--json"))["path"] == path
    assert value(omg("pin", "router", "--json"))["cycle"] is None
    assert value(omg("link", "router", "modem", "--json"))["path"] == path
    assert value(omg("show", "router", "--json"))["node"]["pinned"]
    assert value(omg("rename", "router", "gadget", "--json"))["path"] == "nodes/fact/gadget"
    assert value(omg("history", "gadget", "--json"))[-1]["summary"] == [f"wrote {path}"]
    assert "nodes/fact/gadget" in value(omg("undo", "--json"))["restored"]
    assert value(omg("merge", "router", "modem", "--json"))["path"] == path
    assert value(omg("undo", "--json"))["refused"] == []
    assert value(omg("supersede", "router", "modem", "--json"))["path"] == path
    assert value(omg("search", "attic", "--json"))[0]["path"]
    dry = value(omg("forget", "--matching", WORD, "--json"))
    assert (dry["done"], len(dry["paths"]), len(dry["messages"])) == (False, 1, 1)
    assert value(omg("forget", "--matching", WORD, "--json", "--yes"))["done"]
    made = value(omg("rebuild", "--yes", "--json"))
    assert (made["before"], made["after"]) == (1, 1)  # one of the two is superseded
    assert value(omg("new", "fact", "Cellar", "-t", "-", "--json"))["path"] == "nodes/fact/cellar"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("new", "facts", "x"), "did you mean fact"),
        (("new", "fact", " "), "needs a title"),
        (("new", "fact", "Router", "-t", "The router is in the attic. And so on."), "same sentence"),
        (("show", "rooter"), "did you mean nodes/fact/router?"),
        (("show", ""), "no note"),
        (("link", "router", "router"), "to itself"),
        (("merge", "router", "router"), "into itself"),
        (("supersede", "modem", "modem"), "itself"),
        (("rename", "router", "modem"), "exists already"),
        (("rename", "router", "../../x"), "not the path of a note"),
        (("undo", "nope"), "omg history"),
        (("history", "nope"), "no note"),
        (("forget",), "forget what?"),
        (("forget", "nope"), "no note"),
        (("forget", "--session", "nope"), "OMG remembers nothing that fits"),
        (("forget", "--before", "soon"), "is no date"),
        (("forget", "--matching", " "), "nearly everything"),
        (("forget", "router", "-i", "nobody"), "no graph of 'nobody'"),
        (("export", "/proc/no.jsonl"), "cannot be written"),
        (("export", "/proc"), "is there already; name a new folder"),
        (("rename", "router", " "), "the new name is empty"),
        (("import",), "nothing to import: give files, or --openclaw"),
        (("import", "/no/such/file.jsonl"), "No such file or directory; what can be imported: "),
        (("import", "--openclaw", "--since", "someday"), "is no date"),
        (("import", "--openclaw", "chat.jsonl"), "either files or --openclaw"),
        (("import", "chat.jsonl", "--agent", "main"), "--agent works only with --openclaw"),
        (("init", "--identity", "agent:main:cron:x:run:y"), "belongs to nobody"),
        (("inject", "-p", "x", "--session", ""), "belongs to nobody"),
        (("reflect", "--all-vaults", "--identity", "agent:main:main"), "give only one of these options"),
        (("identity", "move", "agent:nobody:main", "agent:main:main"), "`omg identity list` lists the keys"),
        (("identity", "join", "ada", "telegram"), "give a name and accounts"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, tuple) else "",
)
def test_an_error_is_one_line_and_says_what_to_do(omg, args, says):
    code, out, err = omg(*args)
    assert (code, out) == (1, "")
    assert err.startswith("omg: ")
    assert err.count("\n") == 1, err
    assert says in err


def test_rebuild_shows_the_new_vault_and_rebuild_with_yes_puts_it_in_place(omg, home):
    code, out, err = omg("rebuild")
    assert (code, err) == (0, "")
    assert "look at it, then `omg rebuild --yes`" in out
    [graph] = (home / "graphs").iterdir()
    assert (graph / "rebuild" / "vault" / "nodes" / "fact" / "router.md").exists()
    (graph / "vault" / "nodes" / "fact" / "router.md").unlink()
    (graph / "vault" / "nodes" / "fact" / "mine.md").write_text("My own words.\n")
    code, out, err = omg("rebuild", "--yes")
    assert (code, err) == (0, "")
    assert re.search(r"`omg undo \S+-rebuild-\w+` brings the old notes back", out)
    assert not (graph / "vault" / "nodes" / "fact" / "router.md").exists()
    assert (graph / "vault" / "nodes" / "fact" / "mine.md").read_text() == "My own words.\n"


def test_every_list_takes_the_same_limit_option_and_refuses_a_negative_number(omg):
    assert len(value(omg("search", "router attic", "-n", "1", "--json"))) == 1
    assert len(value(omg("history", "-n", "1", "--json"))) == 1
    for command in (("search", "router"), ("history",), ("events",)):
        code, out, err = omg(*command, "-n", "-1")
        assert (code, out) == (2, "")
        assert "Invalid value for '-" in err


def test_an_empty_search_says_how_many_turns_are_pending_and_how_to_search_messages(omg, tmp_path):
    line = {"role": "user", "content": "I decided to buy a red kayak.", "timestamp": "2026-03-04T08:00:00Z"}
    (tmp_path / "more.jsonl").write_text(json.dumps(line) + "\n")
    omg("import", "more.jsonl", "--no-observe")
    said = omg("search", "kayak")[1]
    assert "nothing found" in said
    assert "1 turn not observed yet (`omg observe` does it now); `omg search --raw` looks through" in said
    omg("observe")
    assert "--raw" not in omg("search", "kayak")[1]


def test_pinning_an_assistants_note_says_that_the_person_must_confirm_it(omg):
    with Memory() as memory:
        propose_note(memory.find(), "The studio's wifi is slow.", "Wifi", "", datetime.now(UTC))
    assert "  nodes/fact/wifi (said by the assistant)  The studio's" in omg("list")[1]
    assert "proposed  1 by the assistant: see `omg confirm`" in omg("status")[1]
    waits = [f for f in json.loads(omg("doctor", "--json")[1])["findings"] if "omg confirm" in f["mend"]]
    assert len(waits) == 1
    code, out, err = omg("pin", "wifi")
    assert (code, err.count("\n")) == (0, 1)
    assert "nodes/fact/wifi is pinned" in out
    assert "the note comes from the assistant" in err and "`omg confirm nodes/fact/wifi`" in err
    assert omg("confirm", "wifi")[0] == 0
    assert "proposed" not in omg("status")[1]
    assert omg("pin", "router")[2] == ""


def test_the_doctor_finds_nothing_wrong_where_there_is_no_openclaw(omg, tmp_path, monkeypatch):
    command = tmp_path / "bin" / "openclaw"
    command.parent.mkdir()
    command.write_text("#!/bin/sh\nexit 1\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(command.parent), prepend=os.pathsep)
    code, out, _ = omg("doctor")
    assert code == 0
    assert "OpenClaw is not set up" in out and "no other assistant is connected" in out and "✗" not in out
