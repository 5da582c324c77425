#!/usr/bin/env python3
"""
Makes `tests/former/<commit>.tar.xz`: a home and a workspace as an earlier release left them, for tests/test_upgrade.py.

    git worktree add --detach /tmp/former 56b488b
    python tests/former/make.py /tmp/former tests/former/56b488b.tar.xz

Run once for each release that is to be upgraded from, with that release's own code and commands, as a user would:
`omg init`, imports, a daemon that is up, edits by hand, a night, an undo. What only a crash leaves (a receipt that
is open) is made with that release's code as well. Folders are named below the root @ROOT@.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from openai_server import OpenAIServer, Request

ROOT = "@ROOT@"
PEER = "agent:main:telegram:direct:77"
GROUP = "agent:main:telegram:group:-5"
OPEN = """
import sys, omg.receipt as receipt
from pathlib import Path
from omg import config
from omg.home import Home
home = Home(config.load())
graph = home.find("agent:main:telegram:direct:77")
write = receipt.write_private
def cut(file, text):
    write(file, text)
    raise SystemExit
receipt.write_private = cut
home._work_on(graph, True, lambda tokens: None)
"""


def main(source: Path, target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder, OpenAIServer() as server:
        root = Path(folder)
        server.always(observed)
        make(root, source, server.base)
        pack(root, target)


def make(root: Path, source: Path, base: str) -> None:
    home, vault = root / "omg", root / "workspace" / "memory" / "omg"
    env = {**os.environ, "PYTHONPATH": str(source), "OMG_HOME": str(home), "HOME": str(root / "user")}

    def omg(*words: str, also: dict[str, str] | None = None) -> str:
        command = [sys.executable, "-P", "-m", "omg.cli", *words]
        done = subprocess.run(command, env={**env, **(also or {})}, capture_output=True, text=True)
        print("$ omg", *words, "\n" + done.stdout + done.stderr, file=sys.stderr)
        return done.stdout

    omg("init", str(vault))
    talks = conversations(root)
    # A model observes and reflects first; then the default, which without a gateway is the rules.
    asked = home / "omg.toml"
    default = asked.read_text()
    model = f'[observation]\nmodel = "openai/scripted"\n[llm]\napi_base = "{base}"\napi_key = "k"\ncontext_window = 128000\n'
    asked.write_text(model + default)
    omg("import", str(talks[0]))
    omg("import", str(talks[1]), str(talks[2]))
    omg("reflect")
    asked.write_text(default)
    omg("import", str(talks[3]))

    # A daemon is up, commands beside it, and the gateway drops turns.
    omg("up")
    drop(home, PEER, "p1", "Remember that I am allergic to walnuts.", 10)
    drop(home, GROUP, "g1", "We decided to meet at the north gate because the south gate floods.", 11)
    omg("observe")
    omg("new", "preference", "Tea over coffee", "--text", "I prefer green tea over coffee in the morning.")
    cycle = json.loads(omg("new", "fact", "The wrong fact", "--text", "This was a mistake.", "--json"))[
        "cycle"
    ]
    omg("undo", cycle)
    omg("pin", "nodes/preference/tea-over-coffee")
    person(vault)
    omg("observe")
    for words in ("What do I drink?", "Where does Maya live?", "What did we decide about Postgres?"):
        ask(env, "agent:main:main", words)
    ask(env, PEER, "May I eat this walnut cake?")
    time.sleep(8)  # two ticks: the edits are read, what was of use is noted
    omg("status")
    omg("reflect")
    omg("down")

    # Left as a machine that was switched off leaves it.
    drop(home, PEER, "p2", "I will visit the aquarium on 2026-12-05.", 20)
    omg("import", "--no-observe", str(talks[4]))  # turns that are pending
    subprocess.run([sys.executable, "-P", "-c", OPEN], env=env)  # an open receipt
    (vault / "inbox" / "later.md").write_text("PERSON: I like to swim on Fridays.\n")
    drop(home, "agent:main:main", "m9", "My bicycle is the blue one.", 30)  # a drop in the spool
    for file in home.glob("omg.sock"):
        file.unlink()
    (root / "talks").rename(root / "workspace" / "talks")


def person(vault: Path) -> None:
    """Edits by hand: words added, a note removed, a loose note, words beside a generated block."""
    notes = sorted(vault.glob("nodes/*/*.md"))
    mine = next(n for n in notes if "maya" in n.name)
    mine.write_text(mine.read_text() + "\nPERSON: she moved to the Alfama quarter.\n")
    next(n for n in notes if "projector" in n.name).unlink()  # a tombstone
    (vault / "inbox" / "errands.md").write_text("PERSON: I like the market on Saturdays.\n")
    moc = vault / "mocs" / "moc-facts.md"
    moc.write_text(moc.read_text() + "\nPERSON: words beside the block.\n")
    own = vault / "nodes" / "fact" / "my-own-note.md"
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text(
        "---\ntype: fact\ndescription: PERSON wrote this one whole.\ncolour: green\n---\n\nWhole.\n"
    )


def conversations(root: Path) -> list[Path]:
    (root / "talks").mkdir()
    said = [
        ["My sister Maya lives in Lisbon.", "We decided to use Postgres for the invoice project."],
        ["I prefer short checklists for deploys.", "The projector in room 4 is broken."],
        ["I will renew my passport on 2026-12-20.", "Actually I now prefer long checklists for deploys."],
        ["I submitted the thesis on May 28.", "We decided to keep the old logo because it is known."],
        ["I bought a red kayak in October.", "I prefer window seats on trains."],
    ]
    files = []
    for n, texts in enumerate(said):
        lines = []
        for m, text in enumerate(texts):
            at = stamp(n, m)
            lines.append({"role": "user", "content": text, "timestamp": at})
            lines.append({"role": "assistant", "content": "Noted.", "timestamp": at + 5_000})
        file = root / "talks" / f"talk-{n}.jsonl"
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        files.append(file)
    return files


def stamp(day: int, minute: int) -> int:
    return 1_780_300_000_000 + day * 86_400_000 + minute * 60_000  # from 2026-06-01 on


def drop(home: Path, session: str, id: str, text: str, day: int) -> None:
    at = stamp(day, 0)
    entry = {"entryId": id, "message": {"role": "user", "content": text, "timestamp": at}}
    channel, sender = ("telegram", session.rpartition(":")[2]) if "telegram" in session else ("webchat", "")
    body = {"v": 1, "reason": "turn", "agentId": "main", "sessionKey": session, "entries": [entry]}
    body |= {"channel": channel, "senderId": sender}
    tmp = home / "spool" / f".{at:015d}-{id}"
    tmp.write_text(json.dumps(body))
    tmp.rename(home / "spool" / f"{at:015d}-{id}.json")


def ask(env: dict[str, str], session: str, prompt: str) -> None:
    """A prompt of the gateway's, to the daemon that is up."""
    code = (
        "import sys; from pathlib import Path; from omg.client import ask_daemon; import os, json;"
        "print(ask_daemon(Path(os.environ['OMG_HOME']), '/inject', json.loads(sys.argv[1]), timeout_s=10))"
    )
    body = {"sessionKey": session, "prompt": prompt, "trigger": "user", "agentId": "main"}
    if "telegram" in session:
        body |= {"channelId": "telegram", "senderId": session.rpartition(":")[2]}
    subprocess.run([sys.executable, "-P", "-c", code, json.dumps(body)], env=env)


def observed(request: Request) -> dict[str, Any]:
    """The model: a note for each message of the person; nothing to tidy."""
    if "# Messages" not in request.user:
        return {}
    edits = []
    for line in request.user.split("\n"):
        handle, _, rest = line.partition(" ")
        if handle[:1] == "m" and handle[1:].isdigit() and " user" in rest:
            text = rest.partition(": ")[2]
            kind = "preference" if "prefer" in text else "decision" if "decided" in text else "fact"
            title = " ".join(text.rstrip(".").split()[1:6])
            edit = {"op": "create", "type": kind, "title": title, "description": text, "priority": "medium"}
            loop = {"loop": "open", "event": "2026-12-20"} if "will" in text else {}
            edits.append({**edit, **loop, "body": f"{text} Said so.", "sources": [handle]})
    return {"edits": edits, "now": {"task": "Help with what was said.", "state": "", "next": ""}}


def pack(root: Path, target: Path) -> None:
    """With the folder's own name out of every file that has it."""
    for file in root.rglob("*"):
        if file.is_file() and str(root).encode() in (data := file.read_bytes()) and file.suffix != ".db":
            file.write_bytes(data.replace(str(root).encode(), ROOT.encode()))
    with tarfile.open(target, "w:xz") as tar:
        for name in ("omg", "workspace"):
            tar.add(root / name, name, filter=kept)


def kept(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    name = Path(info.name).name
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return None if name in ("omg.log", "lock", "omg.sock") else info


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute(), Path(sys.argv[2]).absolute())
