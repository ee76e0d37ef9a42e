"""Cost against k*n: certified solves of 10^4 to 10^6 cells, each in a process of its own."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial

import numpy as np

from bench.engines.ours import KERNELS
from bench.hardness import CLASSES, STAGES, class_of, pipeline_of
from bench.machine import CHECKOUT
from bench.spec import BenchSpec, CaseResult, Cell, Check, Effort, Table
from bench.workloads import lines_of
from solvers.contract import Deadline
from solvers.line_problem import LineProblem
from solvers.structured import solve_count

COUNTS = (1_250, 3_953, 12_500, 39_528, 125_000)  # half a decade apart
SEED = 2
MEAN_BYTES = 8_192
GAP_TARGET = 1e-7
TIME_TARGET_S = 10.0
EASY_TIME_TARGET_S = 1.0
MEMORY_TARGET_MIB = 2_048.0
SLOPE_TARGET = 1.1
_LIMIT_S = 60.0
_LEAST_MS = 5.0  # times below this are mostly start and calls; slopes leave them out


@dataclass(frozen=True, slots=True)
class _Solve:
    """What one process found: seconds in the solver, the two bounds apart, memory at most."""

    seconds: float
    relative_gap: float
    mib: float


def _lines(letter: str, k: int) -> LineProblem:
    return lines_of(pipeline_of(class_of(letter).rows(SEED)), k * MEAN_BYTES)


def solve_here(letter: str, k: int) -> _Solve:
    """One solve after a small one has loaded what is loaded once."""
    solve_count(_lines(letter, 50), 50, Deadline.after(_LIMIT_S))
    lines = _lines(letter, k)
    started_s = time.perf_counter()
    found = solve_count(lines, k, Deadline.after(_LIMIT_S))
    seconds = time.perf_counter() - started_s
    apart = (found.upper_us - found.lower_us) / found.upper_us
    return _Solve(seconds, apart, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0)


def _solve_apart(letter: str, k: int, kernels: str) -> _Solve | None:
    """The same on one core of a process of its own; None where it did not end in time."""
    code = (
        "import dataclasses, json; from bench.cases.scaling import solve_here; "
        f"print(json.dumps(dataclasses.asdict(solve_here({letter!r}, {k}))))"
    )
    environment = {**os.environ, KERNELS: kernels, "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=CHECKOUT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=3.0 * _LIMIT_S,
            check=True,
            preexec_fn=_one_core,
        )
    except subprocess.TimeoutExpired:
        return None
    return _Solve(**json.loads(done.stdout))


def _one_core() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def _run(effort: Effort) -> CaseResult:
    rounds = effort.pick(3, quick=1)
    counts = effort.pick(COUNTS, quick=COUNTS[:2])
    rows: list[tuple[Cell, ...]] = []
    checks: list[Check] = []
    for hardness in CLASSES:
        times = []
        for k in counts:
            found = _median([_solve_apart(hardness.letter, k, "auto") for _ in range(rounds)])
            numpy = _solve_apart(hardness.letter, k, "numpy") if k <= COUNTS[2] else None
            times.append(found.seconds if found else float("inf"))
            rows.append(_row(hardness.letter, hardness.name, k, found, numpy))
            if k == COUNTS[-1]:
                checks += _largest(hardness.letter, hardness.name, found)
        slope = _slope(counts, times)
        if slope is not None:
            what = f"exponent of time in k n, class {hardness.letter}"
            checks.append(Check(what, slope, SLOPE_TARGET, "exponent"))
    columns = ("class, k x 8", "seconds", "relative gap", "MiB", "NumPy seconds", "NumPy gap")
    return CaseResult((Table("One solve for k fragments", columns, tuple(rows)),), tuple(checks))


def _median(found: list[_Solve | None]) -> _Solve | None:
    ended = sorted((one for one in found if one is not None), key=lambda one: one.seconds)
    return ended[len(ended) // 2] if len(ended) == len(found) else None


def _row(
    letter: str, name: str, k: int, found: _Solve | None, numpy: _Solve | None
) -> tuple[Cell, ...]:
    return (
        f"{letter} {name}, {k}",
        found.seconds if found else None,
        found.relative_gap if found else None,
        found.mib if found else None,
        numpy.seconds if numpy else None,
        numpy.relative_gap if numpy else None,
    )


def _largest(letter: str, name: str, found: _Solve | None) -> list[Check]:
    """The targets of a million cells."""
    never = float("inf")
    seconds, apart, mib = (
        (found.seconds, found.relative_gap, found.mib) if found else (never, 1.0, never)
    )
    limit = EASY_TIME_TARGET_S if letter == "a" else TIME_TARGET_S
    what = f"125 000 x {STAGES}, class {letter} ({name})"
    return [
        Check(f"{what}, seconds", seconds, limit, "s"),
        Check(f"{what}, relative gap", apart, GAP_TARGET, "relative"),
        Check(f"{what}, memory", mib, MEMORY_TARGET_MIB, "MiB"),
    ]


def _slope(counts: tuple[int, ...], times: list[float]) -> float | None:
    """Exponent of the time by least squares over what takes long enough to be read."""
    kept = [(k, t) for k, t in zip(counts, times, strict=True) if 1e3 * t >= _LEAST_MS]
    if len(kept) < 2 or not np.isfinite([t for _, t in kept]).all():
        return None
    logs = np.log(np.array(kept))
    return float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])


def _workload(letter: str) -> AbstractContextManager[Callable[[], object]]:
    return nullcontext(partial(solve_here, letter, COUNTS[2]))


SPEC = BenchSpec(
    name="scaling",
    title="Cost against fragments x stages",
    about=(
        "One certified solve for k fragments, 8 KiB each in the mean, of one pipeline of each "
        "class, on one core of a process of its own. The exponent is fitted over the solves that "
        "take 5 ms or more."
    ),
    run=_run,
    workloads={hardness.letter: partial(_workload, hardness.letter) for hardness in CLASSES},
)
