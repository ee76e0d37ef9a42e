"""The real service in a process of its own, on a database of the caller's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from bench.client import Connection, get
from bench.machine import CHECKOUT

_READY_S = 60.0
_STOP_S = 30.0
_MAX_DATABASE_FILES = 43  # 33 connections at once (models/engines.py), logs of those kept, an index


@dataclass(frozen=True, slots=True)
class RunningService:
    """Where it listens, and how much processor time it has used."""

    port: int
    process: psutil.Process

    def cpu_s(self) -> float:
        """Processor time so far of the service and of its workers that live, in seconds."""
        members = [self.process, *self.process.children(recursive=True)]
        return sum(times.user + times.system for times in (one.cpu_times() for one in members))

    def open_files(self) -> int:
        """Open files of the service itself but those that a SQLite database may have.

        Connections to it are kept, 9 at most, and SQLite keeps the descriptors of those that were
        closed for the next ones, as closing one would end the locks of all others.
        """
        folder, names = Path(f"/proc/{self.process.pid}/fd"), list[str]()
        for file in folder.iterdir():
            with suppress(FileNotFoundError):
                names.append(os.readlink(file))
        return len(names) - min(sum(".db" in name for name in names), _MAX_DATABASE_FILES)


@contextmanager
def serving(
    database_url: str, settings: Mapping[str, str] | None = None, *, answers: str = "/readyz"
) -> Iterator[RunningService]:
    """`sluice serve` on a free port, until the block ends.

    It begins once `answers` is answered with 200: `/healthz` for who needs no worker.
    """
    environment = {
        **os.environ,
        "SLUICE_DATABASE_URL": database_url,
        "SLUICE_PORT": "0",
        "SLUICE_DRAIN_S": "0",
        **(settings or {}),
    }
    # Into a file: the log of accesses would fill a pipe that nobody empties, and stop the service.
    with tempfile.NamedTemporaryFile(prefix="sluice-bench-", suffix=".log") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "app.cli", "serve", "--json"],
            cwd=CHECKOUT,
            env=environment,
            stdout=output,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield RunningService(
                _ready_port(Path(output.name), answers), psutil.Process(process.pid)
            )
        finally:
            _end(psutil.Process(process.pid))
            process.wait()


def _ready_port(output: Path, answers: str) -> int:
    """The port that the service says first, once it is ready to answer there."""
    deadline_s = time.monotonic() + _READY_S
    while time.monotonic() < deadline_s:
        with suppress(ValueError, KeyError, IndexError):
            address = str(json.loads(output.read_text().splitlines()[0])["address"])
            port = urlsplit(address).port
            if port is not None and _is_ready(port, answers):
                return port
        time.sleep(0.05)
    raise RuntimeError("the service did not start")


def _is_ready(port: int, answers: str) -> bool:
    connection = Connection(port)
    try:
        status, _ = connection.ask(get(answers))
    finally:
        connection.close()
    return status == 200


def _end(process: psutil.Process) -> None:
    """Ask it to stop; what has not stopped in time is killed with its workers."""
    members = process.children(recursive=True)
    process.terminate()
    _, alive = psutil.wait_procs([process], timeout=_STOP_S)
    for one in [*alive, *members] if alive else []:
        with suppress(psutil.NoSuchProcess):
            one.kill()
