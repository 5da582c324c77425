"""A Postgres on a unix socket: initdb in a folder, as an unprivileged user."""

import os
import pwd
import shutil
import subprocess
from pathlib import Path

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin")) or [
    Path(p).parent for p in [shutil.which("initdb")] if p
]


class Postgres:
    """A server on a unix socket. `restart` kills its backends as a machine's restart would."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder, self.programs = folder, programs
        self.user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
        self.run("initdb", "-D", str(folder / "data"), "-A", "trust", "-U", "omg", "--no-sync")
        self.start()

    def run(self, program: str, *arguments: str) -> None:
        command = [str(self.programs / program), *arguments]
        as_user = {"user": self.user} if os.geteuid() == 0 else {}
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, **as_user)
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self) -> None:
        options = f"-c listen_addresses='' -c unix_socket_directories='{self.folder}' -c max_connections=200"
        data, logged = str(self.folder / "data"), str(self.folder / "log")
        self.run("pg_ctl", "-D", data, "-w", "-l", logged, "-o", options, "start")

    def stop(self, how: str = "fast") -> None:
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-w", "-m", how, "stop")

    def restart(self) -> None:
        self.stop("immediate")
        self.start()

    def url(self, database: str) -> str:
        return f"postgresql://omg@/{database}?host={self.folder}"
