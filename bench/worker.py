"""One solve in a new process on one core, with what it took: `python -m bench.worker SIDE NAME K`.

SIDE is native, numpy or the name of a library's side; NAME is of bench/data/pipelines.json, whose
message grows with K so that the mean size stays. The process prints its figures as a line of JSON.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from bench.engines.ours import CERTIFIED, KERNELS, certified
from bench.engines.primal import EngineRun
from bench.machine import CHECKOUT
from bench.pipelines import named
from solvers.line_problem import LineProblem

NATIVE, NUMPY = "native", "numpy"
CAP_S = 60.0
_STARTING_S = 30.0  # beyond the cap: imports, and building a model
_ENOUGH_S = 0.5  # a solve is repeated until so much time has passed,
_MAX_REPEATS = 9  # or so often
_PAST_CAP = "past the cap"
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class WorkerRun:
    """How a solve ended, its median time in ms, and the most memory that its process held.

    `ms` and `peak_mib` are None where the process had to be ended.
    """

    status: str
    ms: float | None = None
    certified_gap: float | None = None
    objective_us: float | None = None
    peak_mib: float | None = None


def solve_in_process(side: str, name: str, k: int, *, cap_s: float = CAP_S) -> WorkerRun:
    """Solve in a new process that is ended some time after the cap."""
    kernels = {KERNELS: side} if side in (NATIVE, NUMPY) else {}
    command = [sys.executable, "-m", "bench.worker", side, name, str(k), str(cap_s)]
    environment = {**os.environ, **dict.fromkeys(_ONE_THREAD, "1"), **kernels}
    try:
        done = subprocess.run(
            command,
            cwd=CHECKOUT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=cap_s + _STARTING_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return WorkerRun(_PAST_CAP)
    if done.returncode:
        return WorkerRun(f"ended with {done.returncode}")
    return WorkerRun(**json.loads(done.stdout.splitlines()[-1]))


def main(side: str, name: str, k: int, cap_s: float) -> None:
    """Measure and print; the first solve, of a tiny problem, is the warm-up."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    _solve(side, named(name).lines_for(4), 4, cap_s)
    lines = named(name).lines_for(k)
    samples_ms: list[float] = []
    while len(samples_ms) < _MAX_REPEATS and sum(samples_ms) < _ENOUGH_S * 1e3:
        started_s = time.perf_counter()
        run = _solve(side, lines, k, cap_s)
        samples_ms.append((time.perf_counter() - started_s) * 1e3)
    past = run.status == CERTIFIED and samples_ms[-1] > cap_s * 1e3
    reported = {
        "status": _PAST_CAP if past else run.status,
        "ms": statistics.median(samples_ms),
        "certified_gap": run.certified_gap,
        "objective_us": run.objective_us,
        "peak_mib": _peak_mib(),
    }
    print(json.dumps(reported))


def _peak_mib() -> float:
    """Of this program: the resource usage would count what its parent held when it forked."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) / 1024.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def _solve(side: str, lines: LineProblem, k: int, cap_s: float) -> EngineRun:
    if side in (NATIVE, NUMPY):
        return certified(lines, k, time_limit_s=cap_s)
    from bench.engines.others import OTHERS

    return next(other for other in OTHERS if other.name == side).solve(lines, k)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
