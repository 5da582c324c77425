"""
The doctor at a home: the daemon's files, what is left in the spool, and the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from ...client import SOCKET, ask_daemon
from ...config.file import code_digest
from ...embed import load_embedder, why_static
from ...errors import ConfigError, ModelError
from ...memory import Memory
from ...plural import how_many
from ...provenance.cases import ENOUGH, examine, examined, note_result
from ...worker.events import edits_lately
from ...worker.status import observer_text
from .finding import Finding

SPOOL_AGE_S = 300  # a drop lives for moments
DRIVE_BYTES = 2_000_000_000


def check_home(memory: Memory) -> Iterator[Finding]:
    up = ask_daemon(memory.folder, "/health", {}, timeout_s=5)
    if up and up.get("code") != code_digest():
        what = f"the daemon (pid {up['pid']}) was started by another version than this command's"
        mend = "run `omg install`, which starts it anew; without OpenClaw `omg down`, then `omg up`"
        yield Finding("warn", what, str(memory.folder), mend)
    elif up:
        yield Finding("ok", f"the daemon is up (pid {up['pid']})")
    else:
        yield Finding("note", "no daemon is running", mend="it starts with the gateway; or `omg up`")
        if (sock := memory.folder / SOCKET).exists():
            what, mend = "a socket was left by a crash", "the next start removes it"
            yield Finding("warn", what, str(sock), mend, lambda: sock.unlink(missing_ok=True))
    for off in memory.config.all_switched_off():
        yield Finding(
            "note", f"OMG is switched off: {off}", str(memory.folder / "omg.toml"), "take the line out"
        )
    yield from check_spool(memory)
    if memory.folder.stat().st_mode & 0o077:
        yield Finding(
            "fail",
            "others on this machine can read the home",
            str(memory.folder),
            f"chmod 700 {memory.folder}",
            lambda: memory.folder.chmod(0o700),
        )
    yield from check_model(memory, up)
    yield from check_refused(memory)
    yield check_embedder(memory.config.embedding.model)
    size = sum(f.stat().st_size for f in memory.folder.rglob("*") if f.is_file())
    level: Literal["ok", "warn"] = "warn" if size > DRIVE_BYTES else "ok"
    spent = memory.worker.ledger.today(memory.clock())
    yield Finding(
        level,
        f"the home takes {size / 1e6:,.1f} MB; today {how_many(spent.calls, 'model call')}, {spent.tokens:,} tokens, ${spent.usd:.2f}",
        str(memory.folder),
    )


def check_spool(memory: Memory) -> Iterator[Finding]:
    """What lies in the spool for too long, or cannot be read."""
    spool, since = memory.intake.spool, memory.clock().timestamp() - SPOOL_AGE_S
    if old := [d for d in memory.intake.drops() if d.stat().st_mtime < since]:
        yield Finding(
            "warn",
            f"{how_many(len(old), 'drop')} in the spool for too long; nobody has taken them in",
            str(spool),
            "omg observe",
            memory.take_in,
        )
    if torn := [f for f in spool.glob(".*") if f.stat().st_mtime < since]:
        yield Finding(
            "note",
            f"{how_many(len(torn), 'drop')} whose writer died; the transcript has what was said",
            str(spool),
            "omg doctor --fix removes them; `omg import --openclaw` reads what is missing",
            lambda: removed(torn),
        )
    if bad := list((spool / "bad").glob("*.json")):
        yield Finding(
            "warn",
            f"{how_many(len(bad), 'drop')} could not be read; the reason lies beside each",
            str(spool / "bad"),
            "report them, then delete the folder",
        )


def removed(files: list[Path]) -> None:
    for file in files:
        file.unlink(missing_ok=True)


def check_able(memory: Memory) -> Iterator[Finding]:
    """Whether the check of what the user said can be put to the model: asked once, in four short questions."""
    observer = memory.worker.observer("")
    if observer.ask is None or memory.worker.away(""):
        return
    right = examined(memory.folder, observer.model)
    if right is None:
        try:
            right = examine(observer.ask)
        except ModelError as e:
            yield Finding(
                "note", f"it could not be asked whether it tells the user's words from others': {e}"
            )
            return
        note_result(memory.folder, observer.model, right)
    if right >= ENOUGH:
        yield Finding("ok", f"{observer.model} tells the user's words from others': {right} of 20")
    else:
        what = f"{observer.model} tells the user's words from others' in {right} of 20 fixed cases only"
        yield Finding(
            "warn",
            what,
            mend="what would be the user's wish, decision or trait quotes a whole sentence of theirs; a stronger [observation] model notes more",
        )


def check_refused(memory: Memory) -> Iterator[Finding]:
    """Whether the guard takes much from what the Observer writes."""
    edits, refused = edits_lately(memory.folder)
    if refused > 0.05 * edits and edits >= 20:
        yield Finding(
            "warn",
            f"of the last {edits} edits {refused} were refused, or noted as the assistant's",
            mend="`omg events` says why (edit_refused); a stronger [observation] model helps",
        )


def check_embedder(name: str) -> Finding:
    """What finds notes by their meaning. It is not loaded: that may take seconds."""
    try:
        embedder = load_embedder(name)
    except ConfigError as e:
        return Finding("fail", "notes are not found by meaning", mend=str(e))
    if embedder is None:
        return Finding("note", "notes are found by their words alone, as [embedding] model says")
    what = f"notes are found by words and by meaning ({embedder.id})"
    if embedder.id.startswith("static/") and name == "auto":
        return Finding("note", what, mend=why_static())
    return Finding("ok", what)


def check_model(memory: Memory, up: dict[str, Any] | None) -> Iterator[Finding]:
    """Which model observes, as the daemon has it where one is up, and whether it can be asked."""
    ours = memory.worker.models()
    models = list((up or {}).get("observer") or ours)
    if models != ours:
        yield Finding(
            "warn",
            f"the daemon observes with {', else '.join(models)}; omg.toml and this environment say {', else '.join(ours)}",
            str(memory.folder / "omg.toml"),
            "`omg down`: the gateway starts the daemon again with the new model; without a gateway `omg up` does",
        )
    if models[0] == "offline":
        yield Finding(
            "note",
            "the Observer is the offline rules: near-verbatim notes, no model",
            mend="set [observation] model in omg.toml for a better one",
        )
        if (reflecting := memory.worker.reflecting()) != models:
            what = f"{', else '.join(reflecting)} reflects only; what is said is noted by rules"
            yield Finding("note", what, mend="set [observation] model as well, if it is to observe, too")
    else:
        said = observer_text({"observer": ", else ".join(models), "offline": False, "daemon": up})
        what, _, trouble = said.partition("\n")
        level: Literal["ok", "note", "fail"] = "ok"
        if trouble:
            level = "fail" if (up or {}).get("trouble") else "note"
        yield Finding(level, f"the Observer is {what}", mend=trouble.strip().removeprefix("not now: "))
        yield from check_able(memory)
    from ...errors import OverBudget

    try:
        memory.worker.ledger.check(memory.clock())
    except OverBudget as e:
        yield Finding("warn", str(e))
