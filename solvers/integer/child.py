"""The process in which the integer program runs, because a failed check in CP-SAT aborts it.

Started as `python -m solvers.integer.child`. It reads one request, a JSON document, from its input
and writes one report a line to its output, each when it is known: what has been written before the
process is killed counts.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
import time
from dataclasses import asdict
from typing import Any

from solvers.integer.scaled import Piece, ScaledProblem
from solvers.integer.search import search
from solvers.integer.terms import OUT_OF_TIME, CountToTry, Report

_PR_SET_PDEATHSIG = 1


def main() -> int:
    """Read, search, report. 0 when it came to its end, OUT_OF_TIME when its time did."""
    started_s = time.monotonic()
    _die_with_parent()
    output = os.dup(1)
    os.dup2(2, 1)  # whatever a library prints is no report
    request: dict[str, Any] = json.load(sys.stdin)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limit = _address_space_bytes() + int(request["memory_bytes"])
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        is_complete = search(
            _problem(request["problem"]),
            [CountToTry(one["count"], _hint(one["hint"])) for one in request["counts"]],
            known_steps=request["known_steps"],
            tolerance=request["tolerance"],
            until_s=started_s + request["time_limit_s"],
            report=lambda report: _write(output, report),
        )
    except MemoryError:
        os.write(output, b'{"out_of_memory": true}\n')
        return 1
    return 0 if is_complete else OUT_OF_TIME


def _write(output: int, report: Report) -> None:
    os.write(output, json.dumps(asdict(report)).encode() + b"\n")


def _problem(row: dict[str, Any]) -> ScaledProblem:
    return ScaledProblem(row["units"], _pieces(row["inner"]), _pieces(row["last"]))


def _pieces(rows: list[dict[str, Any]]) -> tuple[Piece, ...]:
    return tuple(
        Piece(row["least"], row["greatest"], tuple((line[0], line[1]) for line in row["lines"]))
        for row in rows
    )


def _hint(sizes: list[int] | None) -> tuple[int, ...] | None:
    return None if sizes is None else tuple(sizes)


def _die_with_parent() -> None:
    """Have the kernel kill this process when the one that started it ends; Linux alone can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)


def _address_space_bytes() -> int:
    """What the libraries have mapped before the work begins."""
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:
            return int(statm.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 2**31


if __name__ == "__main__":
    sys.exit(main())
