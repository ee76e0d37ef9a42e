"""Where the time of a case's workload goes, by cProfile; only this thread is looked at."""

from __future__ import annotations

import cProfile
import pstats
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.machine import CHECKOUT
from bench.spec import Workload

_MIN_S = 2.0  # a workload is repeated for at least this long
_TOP = 32


def profile(workload: Workload) -> str:
    """Where the time goes, and the time of one run without a profiler."""
    with workload() as work:
        work()
        plain_ms, repeats = _repeat(work)
        profiler = cProfile.Profile()
        profiler.enable()
        for _ in range(repeats):
            work()
        profiler.disable()
    head = f"{repeats} runs, {plain_ms:.3f} ms each without the profiler; with it, ms a run:\n"
    stats: Any = pstats.Stats(profiler)
    everywhere = [_Line.of(key, entry, repeats) for key, entry in stats.stats.items()]
    ours = [line for line in everywhere if line.is_ours]
    return "\n".join(
        [
            head,
            _listing("our functions, with what they call", ours, lambda line: line.total_ms),
            _listing("our functions themselves", ours, lambda line: line.own_ms),
            _listing("all functions themselves", everywhere, lambda line: line.own_ms),
        ]
    )


@dataclass(frozen=True, slots=True)
class _Line:
    """One function: where it is, calls and ms a run, with and without what it calls."""

    place: str
    is_ours: bool
    calls: float
    own_ms: float
    total_ms: float

    @classmethod
    def of(
        cls, key: tuple[str, int, str], entry: tuple[int, int, float, float, object], runs: int
    ) -> _Line:
        """From an entry of pstats."""
        path, line, name = key
        is_ours = path.startswith(str(CHECKOUT)) and "site-packages" not in path
        short = str(Path(path).relative_to(CHECKOUT)) if is_ours else Path(path).name
        _, calls, own_s, total_s, _ = entry
        return cls(
            f"{short}:{line} {name}",
            is_ours,
            calls / runs,
            own_s / runs * 1e3,
            total_s / runs * 1e3,
        )


def _listing(title: str, lines: Iterable[_Line], order: Callable[[_Line], float]) -> str:
    rows = [
        f"{line.calls:9.1f} {line.own_ms:9.3f} {line.total_ms:9.3f}  {line.place}"
        for line in sorted(lines, key=order, reverse=True)[:_TOP]
    ]
    return "\n".join([title, f"{'calls':>9} {'own ms':>9} {'total ms':>9}", *rows]) + "\n"


def _repeat(work: Callable[[], object]) -> tuple[float, int]:
    """ms of one run, and the number of runs that took long enough to tell."""
    started_s, repeats = time.perf_counter(), 0
    while repeats == 0 or time.perf_counter() - started_s < _MIN_S:
        work()
        repeats += 1
    return (time.perf_counter() - started_s) / repeats * 1e3, repeats
