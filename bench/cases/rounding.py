"""How far `auto`'s whole bytes are from the best whole bytes, on problems small enough to know."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial

import numpy as np

import solvers
from bench.reference.integer_optimum import IntegerOptimum, IntegerStatus, integer_optimum
from bench.spec import BenchSpec, CaseResult, Cell, Check, Effort, Table
from domain.pipeline import pipeline_of_lines
from domain.problem import FragmentLimits, Problem
from domain.solution import relative_excess

_UNITS = ((100, 300), (300, 1000), (1000, 5000))  # message sizes in units of the alignment
_ALIGNMENTS = (1, 8)
_MAX_FRAGMENTS = 8
_TIME_LIMIT_S = 60.0
_SAME = 2e-9  # both are proven to 1e-9


@dataclass(frozen=True, slots=True)
class _Measured:
    """One problem: auto's latency, its bound in real sizes, and the integer optimum."""

    problem: Problem
    auto_us: float
    bound_us: float
    best: IntegerOptimum
    taken_s: float

    @property
    def excess(self) -> float:
        """How far auto is above the best whole-byte cut, relative; 0 where it is that good."""
        excess = relative_excess(self.auto_us, self.best.latency_us, self.best.latency_us)
        return excess if excess > _SAME else 0.0

    @property
    def of_a_unit(self) -> float:
        """The same in units of what one unit of the alignment costs in all stages together."""
        pipeline, unit = self.problem.pipeline, self.problem.limits.alignment_bytes
        cost = sum(stage.ranges[0].ns_per_byte for stage in pipeline.stages) * unit / 1000.0
        return max(0.0, self.auto_us - self.best.latency_us) / cost if self.excess else 0.0


def _problem(units: tuple[int, int], alignment_bytes: int, rng: np.random.Generator) -> Problem:
    """Two to five stages; overheads such that 2 to 8 equal fragments would be best."""
    stages = int(rng.integers(2, 6))
    size = int(np.exp(rng.uniform(np.log(units[0]), np.log(units[1])))) * alignment_bytes
    spread = rng.choice([0.3, 0.7])
    cost, overhead = 10.0 ** rng.uniform(-spread, spread, (2, stages))
    slowest = int(np.argmax(cost))
    others_us = size * (cost.sum() - cost[slowest]) / 1000.0
    overhead *= others_us / rng.uniform(2.0, _MAX_FRAGMENTS) ** 2 / overhead[slowest]
    if rng.random() < 0.3:
        overhead[rng.random(stages) < 0.5] = 0.0
    rows = [("stage", float(overhead[j]), float(cost[j])) for j in range(stages)]
    limits = FragmentLimits(alignment_bytes=alignment_bytes, max_fragments=_MAX_FRAGMENTS)
    return Problem(pipeline_of_lines(rows), size, limits)


def _measure(problem: Problem) -> _Measured:
    auto = solvers.solve(problem, relative_gap=0.0)
    start_s = time.perf_counter()
    best = integer_optimum(problem, time_limit_s=_TIME_LIMIT_S)
    taken_s = time.perf_counter() - start_s
    return _Measured(problem, auto.latency_us, auto.lower_bound_us, best, taken_s)


def _row(label: str, found: list[_Measured]) -> tuple[Cell, ...]:
    excess = [one.excess for one in found]
    above = [
        relative_excess(one.best.latency_us, one.bound_us, one.best.latency_us) for one in found
    ]
    return (
        label,
        sum(value == 0.0 for value in excess) / len(excess),
        float(np.median(excess)),
        float(np.quantile(excess, 0.9)),
        max(excess),
        max(one.of_a_unit for one in found),
        float(np.median(above)),
        float(np.median([one.taken_s for one in found])),
        max(one.taken_s for one in found),
    )


_COLUMNS = (
    "message in units",
    "auto is optimal",
    "excess, median",
    "excess, 90 %",
    "excess, worst",
    "worst in units",
    "optimum above real bound, median",
    "median s",
    "max s",
)


def _run(effort: Effort) -> CaseResult:
    number = effort.pick(100, quick=5)
    rng = np.random.default_rng(71)
    rows, every = [], []
    for alignment in _ALIGNMENTS:
        for units in _UNITS:
            found = [_measure(_problem(units, alignment, rng)) for _ in range(number)]
            rows.append(_row(f"{units[0]} to {units[1]}, alignment {alignment}", found))
            every += found
    unproven = sum(one.best.status is not IntegerStatus.PROVEN for one in every)
    title = f"auto against the proven integer optimum, {number} problems a row"
    return CaseResult(
        (Table(title, _COLUMNS, tuple(rows)),),
        (Check("integer optima that were not proven", unproven, 0, "problems"),),
    )


def _workload(units: tuple[int, int]) -> AbstractContextManager[Callable[[], object]]:
    solvers.warm_up()
    return nullcontext(partial(_measure, _problem(units, 1, np.random.default_rng(72))))


SPEC = BenchSpec(
    name="rounding",
    title="How good whole bytes are",
    about=(
        "`auto` against the proven optimum in whole bytes and alignment (CP-SAT in a process of "
        "its own), on random pipelines of 2 to 5 stages with 2 to 8 fragments. Excess is relative "
        "to the optimum; a unit is what one unit of the alignment costs in all stages together. "
        "Seconds are those of the integer optimum, the start of its process included."
    ),
    run=_run,
    workloads={"1000 to 5000 bytes": partial(_workload, _UNITS[2])},
)
