"""`omg schedule`: the night and the daemon at login by the operating system, with programs that stand in for its own."""

from __future__ import annotations

import os
import plistlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from shell import omg_here

from omg.hosts.timers import launchd_timer, name_of, systemd_timer

CRONTAB = """#!/bin/sh
case "$1" in
-l) cat {file} 2>/dev/null ;;
-r) rm {file} ;;
-) cat > {file} ;;
esac
"""
SYSTEMCTL = """#!/bin/sh
echo "$*" >> {file}
"""


def program(folder: Path, name: str, text: str, file: Path) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text.format(file=file))
    (folder / name).chmod(0o755)


@pytest.fixture
def cron(home, tmp_path, monkeypatch) -> Path:
    """The file of a crontab on a machine without systemd; a line of its owner's is in it."""
    file = tmp_path / "crontab.txt"
    file.write_text("0 1 * * * backup\n")
    program(tmp_path / "bin", "crontab", CRONTAB, file)
    for name in ("cat", "rm"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(sys, "platform", "linux")
    return file


@pytest.fixture
def systemd(home, tmp_path, monkeypatch) -> Path:
    """The calls of a systemctl that always agrees."""
    calls = tmp_path / "calls"
    program(tmp_path / "bin", "systemctl", SYSTEMCTL, calls)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    return calls


def test_the_crontab_gets_two_lines_only_once_and_removal_deletes_only_these_two(cron, home):
    assert omg_here("schedule", "install").returncode == 0
    installed = cron.read_text()
    assert omg_here("schedule", "install").stdout.startswith("·")
    assert cron.read_text() == installed
    kept, night, daemon = installed.splitlines()
    assert kept == "0 1 * * * backup"
    assert night.startswith("20 4 * * * ") and f"OMG_HOME={home}" in night and " reflect " in night
    assert daemon.startswith("@reboot ")
    assert omg_here("schedule", "show").stdout.splitlines() == [night, daemon]
    assert omg_here("schedule", "remove").returncode == 0
    assert cron.read_text() == "0 1 * * * backup\n"


def test_removal_deletes_a_crontab_that_held_nothing_else(cron):
    cron.unlink()
    omg_here("schedule", "install")
    omg_here("schedule", "remove")
    assert not cron.exists()


def test_a_dry_run_writes_nothing(cron):
    assert omg_here("schedule", "install", "--dry-run").stdout.startswith("would:")
    assert cron.read_text() == "0 1 * * * backup\n"


def test_systemd_gets_enabled_units_and_removal_deletes_every_file(systemd, home):
    assert omg_here("schedule", "install").returncode == 0
    units = [Path(line) for line in omg_here("schedule", "show").stdout.splitlines()]
    assert [unit.suffix for unit in units] == [".service", ".timer", ".service"]
    assert f'"OMG_HOME={home}"' in units[0].read_text()
    called = systemd.read_text()
    assert f"enable --now {name_of(home)}-night.timer" in called
    assert f"enable --now {name_of(home)}-daemon.service" in called
    assert omg_here("schedule", "remove").returncode == 0
    assert not any(unit.exists() for unit in units)
    assert f"disable --now {name_of(home)}-night.timer" in systemd.read_text()


def test_a_machine_without_any_timer_says_what_to_do(home, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    done = omg_here("schedule", "install")
    assert done.returncode == 1 and "omg reflect --all-vaults" in done.stderr


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")
def test_systemd_itself_accepts_the_units(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    files = systemd_timer(tmp_path / "a home with 100% $pace").files
    for file, text in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "--user", "verify", *map(str, files)],
        capture_output=True,
        text=True,
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr


def test_the_launchd_agents_are_property_lists_with_the_omg_commands(tmp_path):
    entries = [plistlib.loads(text.encode()) for text in launchd_timer(tmp_path).files.values()]
    assert [entry["ProgramArguments"][-1] for entry in entries] == ["--all-vaults", "serve"]
    assert entries[0]["StartCalendarInterval"] == {"Hour": 4, "Minute": 20}
