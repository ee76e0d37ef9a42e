"""Random plan tables, and checks of what they promise against code that did not make them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from contract.limits import DEFAULT_TABLE_GAP
from domain.errors import StrategyDeclined
from domain.pipeline import Pipeline, pipeline_of_lines
from domain.plan_table import PlanTable
from domain.problem import FragmentLimits, Problem
from domain.schedule import latency_us
from solvers.contract import Deadline
from solvers.exact.lp import lines as exact_lp
from solvers.heuristics.repeat import best_repeat
from solvers.line_problem import LineProblem
from solvers.tables.compile import compile_table
from tests.solvers import reference_lp

MEBIBYTE = 1 << 20
OPTIMUM_ERROR = 1e-7  # relative, of the independent solves
EVALUATOR_ERROR = 1e-11  # of sums in floating point
_SMALL_CELLS = 40  # fragments times stages that the general program is asked for
_CLOSE = 1e-8  # of the two bounds of a solve by the reduced dual


@dataclass(frozen=True)
class TableCase:
    """What a table is compiled for."""

    pipeline: Pipeline
    limits: FragmentLimits
    min_message_bytes: int
    max_message_bytes: int
    relative_gap: float = DEFAULT_TABLE_GAP
    fragment_cap: int = 100_000

    def table(self, *, time_limit_s: float = 300.0) -> PlanTable:
        """The table, compiled. Raises what the compiler raises."""
        return compile_table(
            self.pipeline,
            self.limits,
            min_message_bytes=self.min_message_bytes,
            max_message_bytes=self.max_message_bytes,
            relative_gap=self.relative_gap,
            fragment_cap=self.fragment_cap,
            time_limit_s=time_limit_s,
        )


def random_pipeline(rng: np.random.Generator, *, delayed: bool = True) -> Pipeline:
    """1 to 8 stages over some decades; zeros, ties and delays among them."""
    n, spread = int(rng.integers(1, 9)), float(rng.choice([0.5, 1.0, 2.0, 3.0]))
    overhead, cost = (
        10.0 ** rng.uniform(-spread, spread, n),
        10.0 ** rng.uniform(-spread, spread, n),
    )
    if rng.random() < 0.3:
        overhead[rng.random(n) < 0.5] = 0.0
    if rng.random() < 0.2:
        cost[rng.random(n) < 0.3] = 0.0
    if rng.random() < 0.2:
        overhead, cost = np.round(overhead), np.round(cost)
    rows = [(f"s{j}", float(overhead[j]), float(cost[j])) for j in range(n)]
    delay_us = float(10.0 ** rng.uniform(-1, 4)) if delayed and rng.random() < 0.3 else 0.0
    return replace(pipeline_of_lines(rows), delay_us=delay_us)


def random_limits(rng: np.random.Generator, max_message_bytes: int) -> FragmentLimits:
    """None for a third; least, greatest size, alignment and cap on the count otherwise."""
    if rng.random() < 1 / 3:
        return FragmentLimits()
    unit = int(rng.choice([1, 1, 1, 3, 4, 8, 64, 512]))
    minimum = int(rng.choice([1, 1, 1, 7, 64, 1000]))
    count = int(10.0 ** rng.uniform(0, 2)) if rng.random() < 0.4 else None
    maximum = None
    if rng.random() < 0.4:
        maximum = max(4 * minimum, 4 * unit, int(max_message_bytes * 10.0 ** rng.uniform(-2, 0)))
        count = None if count is None else max(count, 2 * (-(-max_message_bytes // maximum)))
    return FragmentLimits(minimum, maximum, unit, count)


def narrow_limits(rng: np.random.Generator) -> FragmentLimits:
    """Where counts come and go with every few bytes of the message."""
    minimum, unit = (
        int(rng.choice([1, 1, 2, 5, 16, 100])),
        int(rng.choice([1, 1, 2, 3, 7, 16, 100])),
    )
    maximum = int(max(minimum, unit) * rng.uniform(1.0, 3.5)) + int(rng.integers(0, 20))
    return FragmentLimits(minimum, maximum, unit, None)


def random_table_cases(
    count: int, *, seed: int | list[int], max_bytes: float = 1e5
) -> Iterator[TableCase]:
    """Ranges of up to five decades, with and without limits, a few of them narrow."""
    for i in range(count):
        rng = np.random.default_rng([i, *(seed if isinstance(seed, list) else [seed])])
        ends = sorted(int(10.0 ** rng.uniform(0, np.log10(max_bytes))) for _ in range(2))
        pipeline, limits = random_pipeline(rng), random_limits(rng, ends[1])
        if rng.random() < 0.3:
            limits, ends[1] = narrow_limits(rng), min(ends[1], ends[0] + 300)
        gap = float(rng.choice([1e-3, 1e-3, 1e-2, 1e-4]))
        yield TableCase(pipeline, limits, ends[0], ends[1], gap)


def random_sizes(table: PlanTable, count: int, *, seed: int) -> list[int]:
    """Message sizes of the range: even in their logarithms, and next to the table's entries."""
    rng = np.random.default_rng(seed)
    low, high = table.min_message_bytes, table.max_message_bytes
    spread = np.exp(rng.uniform(np.log(low), np.log(high + 1), count)).astype(int)
    entries = np.array([size for sizes in entry_sizes(table) for size in sizes])
    near = rng.choice(entries, count) + rng.integers(-1, 2, count)
    return [
        int(size) for size in np.clip(np.where(rng.random(count) < 0.7, spread, near), low, high)
    ]


# ---- the independent optimum --------------------------------------------------------------------


def optimum_us(problem: Problem, near: int) -> float:
    """min over the admitted k of T*(k) in real sizes (µs, no delay), from k near the best.

    T*(k) is convex (tests/solvers/test_structured.py), so a k that neither neighbour improves on
    is the best.
    """
    counts, known = problem.count_range(), dict[int, float]()

    def at(k: int) -> float:
        if k not in known:
            known[k] = count_optimum_us(problem, k)
        return known[k]

    k = min(max(near, counts.minimum), counts.maximum)
    for step in (1, -1):
        stride = 1
        while stride:
            other = k + step * stride
            if counts.minimum <= other <= counts.maximum and at(other) < at(k):
                k, stride = other, 2 * stride
            else:
                stride //= 2
    return at(k)


def count_optimum_us(problem: Problem, k: int) -> float:
    """T*(k) in real sizes (µs, no delay), by a general linear program; at most a trace above it."""
    lines = LineProblem.of(problem)
    assert lines is not None
    if k * lines.n <= _SMALL_CELLS:
        return reference_lp.optimum_us(
            problem.pipeline, lines.B, k, minimum=lines.m, maximum=lines.M
        )
    found = exact_lp.solve_count(lines, k, Deadline.after(60.0), close=_CLOSE)
    assert found.upper_us - found.lower_us <= OPTIMUM_ERROR * found.upper_us
    return found.upper_us


# ---- checks -------------------------------------------------------------------------------------


def check_cut(table: PlanTable, message_bytes: int) -> None:
    """The cut that a reader computes is admitted and as near to the optimum as is stated."""
    problem = Problem(table.pipeline, message_bytes, table.limits, table.fragment_cap)
    cut = table.cut_at(message_bytes)
    assert problem.admits(cut), (message_bytes, cut[:9])
    latency, delay_us = latency_us(table.pipeline, cut), table.pipeline.delay_us
    best = optimum_us(problem, len(cut)) + delay_us
    gap = table.relative_gap_at(message_bytes)
    assert latency <= (1.0 + gap) * best * (1.0 + OPTIMUM_ERROR), (
        f"{message_bytes} bytes, {len(cut)} fragments: {latency} us, best {best} us, stated {gap}"
    )
    assert latency >= best * (1.0 - OPTIMUM_ERROR), (message_bytes, latency, best)


def check_repeat(table: PlanTable, message_bytes: int) -> None:
    """The repeated size is admitted and as near to the best one as is stated; 0 if there is none.

    In real sizes every size from the best one on is admitted; whole ones are at most as good.
    """
    problem = Problem(table.pipeline, message_bytes, table.limits, table.fragment_cap)
    size, gap = table.repeated_size_at(message_bytes), table.repeat_gap_at(message_bytes)
    try:
        best = latency_us(table.pipeline, best_repeat(problem)[1])
    except StrategyDeclined:
        assert size == 0, (message_bytes, size)
        return
    assert size, (message_bytes, best)
    cut = repeated(message_bytes, size)
    assert problem.admits(cut), (message_bytes, size)
    latency = latency_us(table.pipeline, cut)
    assert latency <= (1.0 + gap) * best * (1.0 + EVALUATOR_ERROR), (
        f"{message_bytes} bytes repeating {size}: {latency} us, best {best} us, stated {gap}"
    )


def check_entries(table: PlanTable) -> None:
    """Entries ascend and tell the evaluator's latency of their own cut."""
    for sizes in entry_sizes(table):
        assert all(low < high for low, high in pairwise(sizes))
    for entry in table.cuts:
        assert entry.latency_us == latency_us(table.pipeline, entry.fragment_bytes)
    for one in table.repeats:
        if one.size_bytes:
            cut = repeated(one.message_bytes, one.size_bytes)
            assert one.latency_us == latency_us(table.pipeline, cut)


def entry_sizes(table: PlanTable) -> tuple[list[int], list[int]]:
    """The message sizes of the table's cuts, and of its repeated sizes."""
    return [cut.message_bytes for cut in table.cuts], [one.message_bytes for one in table.repeats]


def repeated(message_bytes: int, size: int) -> tuple[int, ...]:
    """floor(B/s) fragments of s, then the remainder."""
    full, rest = divmod(message_bytes, size)
    return (size,) * full + ((rest,) if rest else ())
