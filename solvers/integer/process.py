"""Starts the process of the integer program, ends it at its limits, and keeps what it reported."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from solvers.integer.scaled import ScaledProblem
from solvers.integer.terms import OUT_OF_TIME, CountToTry, Report

COMMAND: tuple[str, ...] = (sys.executable, "-m", "solvers.integer.child")
_CHECKOUT = Path(__file__).resolve().parents[2]
_GRACE_S = 0.5  # beyond its time limit: the program ends by itself where it can
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_OUT_OF_MEMORY = "out_of_memory"


class Ending(StrEnum):
    """How the process ended."""

    FINISHED = "finished"
    TIME_LIMIT = "time_limit"
    MEMORY_LIMIT = "memory_limit"
    DIED = "died"


@dataclass(frozen=True, slots=True)
class Request:
    """What the program is given. `memory_bytes` is beyond what its libraries take."""

    problem: ScaledProblem
    counts: Sequence[CountToTry]
    known_steps: int
    tolerance: float
    time_limit_s: float
    memory_bytes: int

    def document(self) -> bytes:
        """As JSON."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        fields["counts"] = [asdict(one) for one in self.counts]
        return json.dumps({**fields, "problem": asdict(self.problem)}).encode()


@dataclass(frozen=True, slots=True)
class Outcome:
    """Every report in order, and how the process ended."""

    reports: tuple[Report, ...]
    ending: Ending


def run_apart(request: Request, *, command: Sequence[str] = COMMAND) -> Outcome:
    """Run the program in a process group of its own; nothing of it is left when this returns."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=_CHECKOUT,
        env=_environment(),
        start_new_session=True,
    )
    is_late = False
    try:
        output, _ = process.communicate(request.document(), request.time_limit_s + _GRACE_S)
    except subprocess.TimeoutExpired:
        is_late = True
        _kill_group(process)
        output, _ = process.communicate()
    finally:
        _kill_group(process)
        process.wait()
    return _outcome(output, process.returncode, is_late=is_late)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Also when the process itself has ended: it may have left others of its group behind."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _outcome(output: bytes, code: int, *, is_late: bool) -> Outcome:
    rows = [row for row in map(_row, output.splitlines()) if row is not None]
    reports = tuple(_report(row) for row in rows if _OUT_OF_MEMORY not in row)
    if is_late or code == OUT_OF_TIME:
        return Outcome(reports, Ending.TIME_LIMIT)
    if len(reports) < len(rows):
        return Outcome(reports, Ending.MEMORY_LIMIT)
    return Outcome(reports, Ending.FINISHED if code == 0 else Ending.DIED)


def _row(line: bytes) -> Mapping[str, object] | None:
    """A line as an object; None for one that the process did not live to finish."""
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def _report(row: Mapping[str, object]) -> Report:
    count, bound, sizes = row["count"], row["bound_steps"], row["sizes"]
    assert isinstance(count, int)
    assert isinstance(bound, int)
    assert sizes is None or isinstance(sizes, list)
    found = None if sizes is None else tuple(map(int, sizes))
    return Report(count, bound, found, is_final=row["is_final"] is True)


def _environment() -> dict[str, str]:
    """Ours without the settings, which may hold the database's password."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("SLUICE_")}
    return {**kept, **dict.fromkeys(_ONE_THREAD, "1")}
