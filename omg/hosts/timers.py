"""
Lets the operating system start the nightly run, and the daemon at login, if no gateway starts them.

OMG uses systemd's user timers, launchd's agents, or the person's crontab, the first that the machine has. Each home has
its own entries, named after the home's folder. By these names OMG finds its entries again.
"""

from __future__ import annotations

import hashlib
import os
import plistlib
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..config import NIGHT
from ..errors import OmgError
from ..graph.state import write_private
from .install import Step, our_command


@dataclass(frozen=True, slots=True)
class Timer:
    """
    The files and commands of one kind of timer for one home. *files*: path → text. *on*: commands to run after the
    files are written; *off*: commands to run before they are removed.
    """

    kind: str
    files: Mapping[Path, str]
    on: Sequence[Sequence[str]]
    off: Sequence[Sequence[str]]


def jobs(home: Path) -> dict[str, list[str]]:
    """
    The two jobs of *home*, as commands: the nightly run, and the daemon, which ends at once if another daemon runs.
    """
    omg = ["/usr/bin/env", f"OMG_HOME={home}", *our_command()]
    return {"night": [*omg, "reflect", "--all-vaults"], "daemon": [*omg, "serve"]}


def name_of(home: Path) -> str:
    return f"omg-{hashlib.blake2b(str(home).encode(), digest_size=4).hexdigest()}"


def systemd_timer(home: Path) -> Timer:
    name, folder = name_of(home), config_home() / "systemd" / "user"
    night, daemon = (" ".join(map(systemd_word, argv)) for argv in jobs(home).values())
    hour, minute = NIGHT
    return Timer(
        "systemd",
        {
            folder / f"{name}-night.service": f"[Unit]\nDescription=OMG: the night's reflection of {home}\n\n"
            f"[Service]\nType=oneshot\nExecStart={night}\n",
            folder / f"{name}-night.timer": f"[Unit]\nDescription=OMG: each night\n\n[Timer]\n"
            f"OnCalendar=*-*-* {hour:02}:{minute:02}\nPersistent=true\n\n[Install]\nWantedBy=timers.target\n",
            folder / f"{name}-daemon.service": f"[Unit]\nDescription=OMG: the daemon of {home}\n\n"
            f"[Service]\nExecStart={daemon}\nRestart=on-failure\n\n"
            "[Install]\nWantedBy=default.target\n",
        },
        on=[
            ["systemctl", "--user", "daemon-reload"],
            ["systemctl", "--user", "enable", "--now", f"{name}-night.timer"],
            ["systemctl", "--user", "enable", "--now", f"{name}-daemon.service"],
        ],
        off=[
            ["systemctl", "--user", "disable", "--now", f"{name}-night.timer"],
            ["systemctl", "--user", "disable", "--now", f"{name}-daemon.service"],
        ],
    )


def systemd_word(word: str) -> str:
    """*word* quoted for ExecStart, where `%` and `$` have a meaning."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'


def launchd_timer(home: Path) -> Timer:
    folder, domain, hour = Path.home() / "Library" / "LaunchAgents", f"gui/{os.getuid()}", NIGHT[0]
    when: dict[str, dict[str, object]] = {
        "night": {"StartCalendarInterval": {"Hour": hour, "Minute": NIGHT[1]}},
        "daemon": {"RunAtLoad": True},
    }
    labels = {job: f"{name_of(home)}.{job}" for job in when}
    made = {
        folder / f"{labels[job]}.plist": {"Label": labels[job], "ProgramArguments": argv, **when[job]}
        for job, argv in jobs(home).items()
    }
    return Timer(
        "launchd",
        {file: plistlib.dumps(entry).decode() for file, entry in made.items()},
        on=[["launchctl", "bootstrap", domain, str(file)] for file in made],
        off=[["launchctl", "bootout", f"{domain}/{label}"] for label in labels.values()],
    )


def crontab_lines(home: Path) -> list[str]:
    """The lines of *home* for a crontab. Each line ends with the home's name, by which OMG finds the line again."""
    night, daemon = (shlex.join(argv).replace("%", "\\%") for argv in jobs(home).values())
    hour, minute = NIGHT
    return [f"{minute} {hour} * * * {night} # {name_of(home)}", f"@reboot {daemon} # {name_of(home)}"]


def config_home() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")


def timer_of(home: Path) -> Timer | None:
    """
    The timer of this machine for *home*: launchd's or systemd's. None if the machine has only a crontab. Raises
    OmgError if the machine has none of launchd, systemd and crontab.
    """
    if sys.platform == "darwin":
        return launchd_timer(home)
    if shutil.which("systemctl") and ran(["systemctl", "--user", "show-environment"]) is not None:
        return systemd_timer(home)
    if shutil.which("crontab") is None:
        raise OmgError(
            "no systemd user session, launchd or crontab is here; run `omg reflect --all-vaults` each night by a"
            " scheduler of your own, and `omg up` at login"
        )
    return None


def ran(argv: Sequence[str], given: str | None = None) -> str | None:
    """Run *argv*. Returns the output; None if the command failed. *given*: the text for standard input."""
    done = subprocess.run(argv, input=given, capture_output=True, text=True, timeout=30)
    return done.stdout if done.returncode == 0 else None


def must_run(argv: Sequence[str], given: str | None = None) -> None:
    if ran(argv, given) is None:
        raise OmgError(
            f"`{shlex.join(argv)}` failed; run it yourself to see the reason, then repeat your command"
        )


def installed(home: Path) -> list[str]:
    """The timer's entries for *home*: paths of files, or lines of the crontab."""
    timer = timer_of(home)
    if timer:
        return [str(file) for file in timer.files if file.exists()]
    return [line for line in crontab() if line.endswith(f"# {name_of(home)}")]


def crontab() -> list[str]:
    """The lines of the person's crontab; none if there is no crontab."""
    return (ran(["crontab", "-l"]) or "").splitlines()


def install_timers(home: Path) -> Iterator[Step]:
    """Yield the step of installing the timer. Entries that are already right stay."""
    timer = timer_of(home)
    if timer is None:
        lines, new = crontab(), crontab_lines(home)
        others = [line for line in lines if not line.endswith(f"# {name_of(home)}")]
        put = partial(must_run, ["crontab", "-"], "\n".join([*others, *new]) + "\n")
        what = "run the nightly job at 04:20 and start the daemon at boot, by your crontab"
        yield Step(what, changed=lines != [*others, *new], do=put)
        return
    changed = any(not file.exists() or file.read_text() != text for file, text in timer.files.items())
    what = f"run the nightly job at 04:20 and start the daemon at login, by {timer.kind}"
    yield Step(what, changed=changed, do=partial(put_on, timer))


def put_on(timer: Timer) -> None:
    """Write the files of *timer* and switch it on."""
    take_away(timer)
    for file, text in timer.files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        write_private(file, text)
    for argv in timer.on:
        must_run(argv)


def remove_timers(home: Path) -> Iterator[Step]:
    """Yield the step of removing what `install_timers` added, and nothing else."""
    timer, there = timer_of(home), installed(home)
    others = [] if timer else [line for line in crontab() if line not in there]
    if timer:
        remove = partial(take_away, timer)
    elif others:
        remove = partial(must_run, ["crontab", "-"], "\n".join([*others, ""]))
    else:
        remove = partial(must_run, ["crontab", "-r"])
    yield Step("remove the nightly job and the start at login", changed=bool(there), do=remove)


def take_away(timer: Timer) -> None:
    """Switch *timer* off and remove its files. If a part is already off, this is no failure."""
    for argv in timer.off if any(file.exists() for file in timer.files) else ():
        ran(argv)
    for file in timer.files:
        file.unlink(missing_ok=True)
    if timer.kind == "systemd":
        ran(["systemctl", "--user", "daemon-reload"])
