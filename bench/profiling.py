"""Where the time of a case's workload goes, by cProfile; only this thread is looked at."""

from __future__ import annotations

import cProfile
import io
import pstats
import time
from collections.abc import Callable

from bench.spec import Workload

_LEAST_S = 2.0  # a workload is repeated for at least this long
_TOP = 30


def profile(workload: Workload) -> str:
    """Top functions by own and by cumulative time, and the time of one run without a profiler."""
    with workload() as work:
        work()
        plain_ms, repeats = _repeat(work)
        profiler = cProfile.Profile()
        profiler.enable()
        for _ in range(repeats):
            work()
        profiler.disable()
    out = io.StringIO()
    stats = pstats.Stats(profiler, stream=out).strip_dirs()
    for order in ("tottime", "cumulative"):
        stats.sort_stats(order).print_stats(_TOP)
    head = f"{repeats} runs, {plain_ms:.3f} ms each without the profiler; sums below are over all\n"
    return head + out.getvalue()


def _repeat(work: Callable[[], object]) -> tuple[float, int]:
    started_s, repeats = time.perf_counter(), 0
    while repeats == 0 or time.perf_counter() - started_s < _LEAST_S:
        work()
        repeats += 1
    return (time.perf_counter() - started_s) / repeats * 1e3, repeats
