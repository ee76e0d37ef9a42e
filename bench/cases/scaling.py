"""Time, certified gap and memory of one exact solve against k n, up to 10^6 cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial

import numpy as np

from bench.engines import highs, linear_solver, model_builder, pulp_cbc
from bench.engines.ours import certified, has_native
from bench.engines.primal import TIME_LIMIT_S, Engine
from bench.hardness import CLASSES, STAGES
from bench.pipelines import BenchPipeline, growing, named
from bench.spec import BenchSpec, CaseResult, Cell, Check, Effort, Table
from bench.worker import CAP_S, NATIVE, NUMPY, WorkerRun, solve_in_process

_COUNTS = (50, 125, 500, 1_250, 4_000, 12_500, 40_000, 125_000)
_QUICK_COUNTS = (1_250, 40_000)
_QUICK = ("a6", "d6")
_OTHER_COUNTS = (50, 125, 500, 1_250, 2_500)
_OTHERS = (
    pulp_cbc.CBC,
    linear_solver.CLP,
    model_builder.DUAL_SIMPLEX,
    highs.SIMPLEX,
    highs.INTERIOR_POINT,
)
_OTHERS_ON = "b2"
_MAX_COUNT = _COUNTS[-1]
_POWER = 1.1
_POWER_FROM = 10_000  # cells
_GAP, _TIME_S, _TIME_A_S, _MEMORY_MIB = 1e-7, 10.0, 1.0, 2048.0
_COLUMNS = ("side", "problem", "k", "k n", "ms", "ended", "certified gap", "peak MiB")


@dataclass(frozen=True, slots=True)
class _Point:
    """One side on one problem at one k."""

    side: str
    one: BenchPipeline
    k: int
    found: WorkerRun

    @property
    def cells(self) -> int:
        """k n."""
        return self.k * STAGES

    @property
    def row(self) -> tuple[Cell, ...]:
        """For the table."""
        found = self.found
        cells = (self.k, self.cells, found.ms, found.status, found.certified_gap, found.peak_mib)
        return (self.side, self.one.name, *cells)


def _run(effort: Effort) -> CaseResult:
    counts = effort.pick(_COUNTS, quick=_QUICK_COUNTS)
    chosen = [one for one in growing() if effort.pick(True, quick=one.name in _QUICK)]
    points = _series(NATIVE, chosen, counts) if has_native() else []
    first = {one.letter: one for one in reversed(chosen)}
    numpy_counts = effort.pick(counts, quick=_QUICK_COUNTS[:1])
    points += _series(NUMPY, list(reversed(first.values())), numpy_counts)
    others = _others(effort.pick(_OTHERS, quick=()))
    rows = tuple(point.row for point in [*points, *others])
    table = Table("One solve in a new process on one core", _COLUMNS, rows, is_detail=True)
    growth = Table(
        "Time as a power of k n",
        (
            "side and problem",
            "power",
            "from cells",
            "to cells",
            "ms there",
            "gap there",
            "peak MiB",
        ),
        tuple(_growth_rows(points)),
        is_detail=True,
    )
    return CaseResult((growth, table), tuple(_checks(points)))


def _series(side: str, chosen: list[BenchPipeline], counts: tuple[int, ...]) -> list[_Point]:
    """Every k, also beyond one that was not solved within the cap: a larger one may be easier."""
    return [
        _Point(side, one, k, solve_in_process(side, one.name, k)) for one in chosen for k in counts
    ]


def _others(sides: tuple[Engine, ...]) -> list[_Point]:
    """The libraries on one problem, each until it takes too long or fails."""
    one, points = named(_OTHERS_ON), []
    for other in sides:
        for k in _OTHER_COUNTS:
            found = solve_in_process(other.name, one.name, k, cap_s=TIME_LIMIT_S)
            points.append(_Point(other.name, one, k, found))
            if found.ms is None or found.ms > TIME_LIMIT_S * 1e3 / 4.0:
                break
    return points


def _growth_rows(points: list[_Point]) -> Iterable[tuple[Cell, ...]]:
    for side, name in dict.fromkeys((point.side, point.one.name) for point in points):
        own = _of(points, side, name)
        if len(own) > 1:
            last = own[-1].found
            largest = (own[-1].cells, last.ms, last.certified_gap, last.peak_mib)
            yield f"{side}, {name}", _power(own), own[0].cells, *largest


def _of(points: list[_Point], side: str, name: str) -> list[_Point]:
    """Those of a series that the power is taken of."""
    return [
        point
        for point in points
        if (point.side, point.one.name) == (side, name)
        and point.found.ms is not None
        and point.cells >= _POWER_FROM
    ]


def _power(points: list[_Point]) -> float:
    """The slope of log time against log cells, by least squares."""
    cells = np.log([point.cells for point in points])
    times = np.log([point.found.ms or np.nan for point in points])
    return float(np.polyfit(cells, times, 1)[0])


def _checks(points: list[_Point]) -> Iterable[Check]:
    """Of the native side: the worst of the two pipelines of each class."""
    for hardness in CLASSES:
        own = [p for p in points if p.side == NATIVE and p.one.letter == hardness.letter]
        largest = [point.found for point in own if point.k == _MAX_COUNT]
        if not largest:
            continue
        where = f"{_MAX_COUNT:,} x {STAGES}, class {hardness.letter}"
        names = dict.fromkeys(point.one.name for point in own)
        power = max(_power(_of(own, NATIVE, name)) for name in names)
        limit_s = _TIME_A_S if hardness.letter == "a" else _TIME_S
        yield Check(f"power of k n, class {hardness.letter}", power, _POWER, "exponent")
        yield Check(f"certified gap, {where}", _worst(largest, "certified_gap"), _GAP, "relative")
        yield Check(f"time, {where}", _worst(largest, "ms") / 1e3, limit_s, "s")
        yield Check(f"peak memory, {where}", _worst(largest, "peak_mib"), _MEMORY_MIB, "MiB")


def _worst(found: list[WorkerRun], what: str) -> float:
    """The greatest; where a process had to be ended, what says that no limit was kept."""
    values = [getattr(one, what) for one in found]
    return max(CAP_S * 1e3 if value is None else abs(value) for value in values)


def _workload(name: str) -> AbstractContextManager[Callable[[], object]]:
    lines = named(name).lines_for(_MAX_COUNT)
    return nullcontext(partial(certified, lines, _MAX_COUNT, time_limit_s=CAP_S))


SPEC = BenchSpec(
    name="scaling",
    title="Time against k n",
    about=(
        "Two pipelines of each class (see `structured`) with growing k and fragments of the same "
        "mean size, and some libraries on one of them. Every solve runs in a new process on one "
        "core; the time is the median of what fits into half a second after a tiny solve, and the "
        "memory is that of the whole process, the interpreter and its libraries included. Ours are "
        f"told to stop after {CAP_S:.0f} s, the libraries after {TIME_LIMIT_S:.0f} s; these are "
        "not asked for larger k once they took a quarter of that."
    ),
    run=_run,
    workloads={one.name: partial(_workload, one.name) for one in growing()},
)
