"""
`omg hook HOST EVENT`: what a client runs at its events. Standard library alone; always exit code 0.

A start or a prompt asks the daemon for memory and prints it as one JSON object; any other event leaves a mark in
the spool: which transcript has gained something, and how long it is now. It starts no process and writes no log:
its environment holds the client's keys. After DEADLINE_S it ends, whatever became of the question.
"""

from __future__ import annotations

import time

BEGAN = time.monotonic()
DEADLINE_S = 0.15  # since the interpreter has started
LONGEST_INPUT = 32_000_000

import json  # noqa: E402  # the clock starts before what takes time to import
import os  # noqa: E402
import select  # noqa: E402
import socket  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402

from .declared import ASKING, HOSTS, Host  # noqa: E402

MARKS = "hosts"  # below the spool


def main() -> None:
    """The arguments: host, event, and the home where it is not the environment's."""
    try:
        answer = run_hook(sys.argv[2:])
        if answer:
            sys.stdout.write(answer)
            sys.stdout.flush()
    except BaseException:  # the client must not notice, whatever it is
        os._exit(0)


def run_hook(args: list[str]) -> str:
    """What is printed: a JSON object, or nothing."""
    host, event = HOSTS[args[0]], args[1]
    ours = host.events[event]
    payload = read_payload()
    fields = {name: payload.get(field) for name, field in host.fields.items()}
    given = {name: value for name, value in fields.items() if isinstance(value, str)}
    home = home_of(args)
    if not given.get("session") or not home.is_dir():
        return ""
    if ours not in ASKING:
        leave_mark(home, host, ours, given)
        return ""
    text = ask(home, {"host": host.name, "event": ours, "size": transcript_size(given), **given})
    if not text:
        return ""
    return json.dumps({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})


def home_of(args: list[str]) -> Path:
    if len(args) > 2:
        return Path(args[2])
    from ..config import default_home

    return default_home()


def left_s() -> float:
    return max(0.0, DEADLINE_S - (time.monotonic() - BEGAN))


def read_payload() -> dict[str, object]:
    """The JSON object on stdin. Some clients never close it, so it ends where it parses."""
    data, fd = b"", sys.stdin.fileno()
    while len(data) < LONGEST_INPUT and select.select([fd], [], [], left_s())[0]:
        more = os.read(fd, 1 << 20)
        data += more
        if not more or data.rstrip().endswith(b"}"):
            try:
                value = json.loads(data)
                return value if isinstance(value, dict) else {}
            except ValueError:
                if not more:
                    break
    return {}


def transcript_size(given: dict[str, str]) -> int | None:
    """Before the client goes on writing: the daemon may come to look when there is more."""
    try:
        return Path(given["transcript"]).stat().st_size
    except (OSError, KeyError):
        return None


def ask(home: Path, body: dict[str, object]) -> str:
    """The daemon's text for this session; "" where it refuses. Raises OSError where it is not there, or not in time."""
    data = json.dumps(body).encode()
    head = f"POST /host HTTP/1.1\r\nconnection: close\r\ncontent-length: {len(data)}\r\n\r\n"
    said = b""
    # By hand: http.client takes longer to import than the daemon to answer.
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(left_s() or 0.001)
        connection.connect(str(home / "omg.sock"))
        connection.sendall(head.encode() + data)
        while more := connection.recv(1 << 16):
            said += more
            connection.settimeout(left_s() or 0.001)
    head, _, answer = said.decode().partition("\r\n\r\n")
    return str(json.loads(answer).get("text") or "") if head.split(" ")[1] == "200" else ""


def leave_mark(home: Path, host: Host, event: str, given: dict[str, str]) -> None:
    """One file, in place by its rename; names sort as the marks were made."""
    folder = home / "spool" / MARKS
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    at_ms = time.time_ns() // 1_000_000
    size = transcript_size(given)
    mark: dict[str, object] = {"host": host.name, "event": event, "at_ms": at_ms, "size": size}
    mark |= {name: given[name] for name in ("session", "transcript", "cwd") if name in given}
    name = f"{at_ms:015d}-{os.getpid()}.json"
    fd = os.open(folder / f".{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        json.dump(mark, file)
    (folder / f".{name}").rename(folder / name)
