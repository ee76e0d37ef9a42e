"""Solve time of every strategy against k*n, and of `auto` on what the service is asked most."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial

import numpy as np

import solvers
from bench.spec import BenchSpec, CaseResult, Cell, Check, Effort, Table
from bench.timing import Timed, Timing, interleaved
from bench.workloads import KIB, MIB, myrinet, random_pipeline
from domain.errors import Infeasible, StrategyDeclined
from domain.pipeline import Pipeline, pipeline_of_lines
from domain.problem import Problem
from domain.solution import Solution, Strategy

AUTO_TARGET_MS = 20.0
QUICK_TARGET_MS = 50.0
_STATIC_BYTES = 4 * KIB
_SLOW_MS = 1000.0  # what takes longer runs once


@dataclass(frozen=True, slots=True)
class _Instance:
    """A named pipeline and a message size."""

    name: str
    pipeline: Pipeline
    message_bytes: int
    allow_refragmentation: bool = False

    @property
    def problem(self) -> Problem:
        """The question."""
        return Problem(
            self.pipeline,
            self.message_bytes,
            allow_refragmentation=self.allow_refragmentation,
        )


def _instances(effort: Effort) -> Iterator[_Instance]:
    sizes = effort.pick((4 * KIB, 64 * KIB, MIB, 16 * MIB), quick=(4 * KIB, 64 * KIB))
    for size in sizes:
        yield _Instance("Table 1", myrinet(), size)
    for size in sizes:
        yield _Instance("two stages", _two_stages(), size)
        yield _Instance("fast slow fast", _fast_slow_fast(), size)
    for stages in effort.pick((8, 16, 32), quick=(8,)):
        for size in effort.pick((64 * KIB, MIB), quick=(64 * KIB,)):
            yield _Instance(f"random, {stages} stages", random_pipeline(stages, seed=1), size)
    for size in effort.pick((64 * KIB, MIB), quick=(64 * KIB,)):
        yield _Instance("Table 1, refragmenting", myrinet(), size, allow_refragmentation=True)


def _two_stages() -> Pipeline:
    return pipeline_of_lines([("copy", 7.2, 7.0), ("wire", 7.5, 24.0)])


def _fast_slow_fast() -> Pipeline:
    return pipeline_of_lines([("copy in", 7.2, 7.0), ("wire", 7.5, 24.0), ("copy out", 7.4, 8.0)])


# ---- every strategy -----------------------------------------------------------------------------


def _run(effort: Effort) -> CaseResult:
    solvers.warm_up()
    tables = [_strategy_table(instance, effort) for instance in _instances(effort)]
    auto_table, auto_checks = _auto_at_4_kib(effort)
    quick_table, quick_checks = _what_counts_as_quick(effort)
    return CaseResult((auto_table, quick_table, *tables), auto_checks + quick_checks)


def _strategy_table(instance: _Instance, effort: Effort) -> Table:
    problem = instance.problem
    timed = _timed(problem, effort)
    reference = timed[Strategy.FIXED].timing.median_ms
    rows = tuple(_row(name, side, reference) for name, side in timed.items())
    return Table(
        f"{instance.name}, {instance.message_bytes:,} bytes",
        ("strategy", "time / fixed", "k*n", "median ms", "min-max ms", "relative gap", "status"),
        rows,
    )


def _timed(problem: Problem, effort: Effort) -> dict[str, Timed[Solution]]:
    """Every strategy that runs on the problem; the first call of a swift one is its warm-up."""
    first: dict[str, Timed[Solution]] = {}
    for strategy in Strategy:
        with suppress(StrategyDeclined, Infeasible):
            first |= interleaved({str(strategy): _solving(problem, strategy)}, rounds=1, warm_ups=0)
    swift = {
        name: _solving(problem, Strategy(name))
        for name, side in first.items()
        if side.timing.median_ms < _SLOW_MS
    }
    return first | interleaved(swift, rounds=effort.pick(5, quick=3), warm_ups=0)


def _solving(problem: Problem, strategy: Strategy) -> Callable[[], Solution]:
    size = _STATIC_BYTES if strategy is Strategy.STATIC else None
    return partial(solvers.solve, problem, strategy, static_bytes=size)


def _row(name: str, side: Timed[Solution], reference_ms: float) -> tuple[Cell, ...]:
    solution = side.result
    return (
        name,
        side.timing.median_ms / reference_ms,
        solution.schedule.fragments * len(solution.problem.pipeline),
        side.timing.median_ms,
        side.timing.spread,
        solution.relative_gap,
        str(solution.status),
    )


# ---- auto ---------------------------------------------------------------------------------------


def _auto_at_4_kib(effort: Effort) -> tuple[Table, tuple[Check, ...]]:
    """Sizes around 4096, each once: no two questions are the same."""
    count = effort.pick(200, quick=40)
    samples = []
    gaps = []
    for size in range(4096 - count // 2, 4096 + count - count // 2):
        call = {"auto": partial(solvers.solve, Problem(myrinet(), size))}
        side = interleaved(call, rounds=1, warm_ups=0)["auto"]
        samples.append(side.timing.median_ms)
        gaps.append(side.result.relative_gap)
    timing = Timing(tuple(samples))
    table = Table(
        f"auto on Table 1, {count} sizes around 4096 bytes",
        ("strategy", "median ms", "99 % ms", "greatest ms", "least ms", "worst relative gap"),
        (_spread_row("auto", timing, max(gaps)),),
    )
    what = "auto on Table 1 around 4 KiB"
    return table, (
        Check(f"{what}, median", timing.median_ms, AUTO_TARGET_MS, "ms"),
        Check(f"{what}, slowest of {count}", timing.greatest_ms, AUTO_TARGET_MS, "ms"),
    )


def _spread_row(label: str, timing: Timing, *others: Cell) -> tuple[Cell, ...]:
    return (
        label,
        timing.median_ms,
        timing.quantile_ms(0.99),
        timing.greatest_ms,
        timing.least_ms,
        *others,
    )


def _what_counts_as_quick(effort: Effort) -> tuple[Table, tuple[Check, ...]]:
    """Random questions that the service would solve without a child process."""
    wanted = effort.pick(400, quick=40)
    rng = np.random.default_rng(7)
    samples: list[float] = []
    largest = 0
    while len(samples) < wanted:
        problem = _random_problem(rng)
        if not solvers.is_quick(problem, Strategy.AUTO):
            continue
        call = {"auto": partial(_solve_and_compare, problem)}
        side = interleaved(call, rounds=1, warm_ups=0)["auto"]
        samples.append(side.timing.median_ms)
        largest = max(largest, side.result.schedule.fragments * len(problem.pipeline))
    timing = Timing(tuple(samples))
    table = Table(
        f"{wanted} random questions that count as quick (auto and the baselines)",
        ("strategy", "median ms", "99 % ms", "greatest ms", "least ms", "greatest k*n"),
        (_spread_row("auto", timing, largest),),
    )
    slowest = Check("quick solves, slowest", timing.greatest_ms, QUICK_TARGET_MS, "ms")
    return table, (slowest,)


def _random_problem(rng: np.random.Generator) -> Problem:
    stages = int(rng.integers(1, 17))
    seed = int(rng.integers(0, 2**31))
    spread = float(rng.choice([1.05, 2.0, 10.0, 1000.0]))
    size = int(np.exp(rng.uniform(np.log(64), np.log(MIB))))
    return Problem(random_pipeline(stages, seed=seed, spread=spread), size)


def _solve_and_compare(problem: Problem) -> Solution:
    solution = solvers.solve(problem)
    solvers.baselines(problem)
    return solution


def _auto_workload(size: int) -> AbstractContextManager[Callable[[], object]]:
    solvers.warm_up()
    problem = Problem(myrinet(), size)
    return nullcontext(partial(_solve_and_compare, problem))


SPEC = BenchSpec(
    name="strategies",
    title="Solve time of every strategy",
    about=(
        "`solvers.solve` inside one process, certificate included. k is the number of fragments "
        "in the answer; what takes over a second runs once."
    ),
    run=_run,
    workloads={
        "4 KiB": partial(_auto_workload, 4 * KIB),
        "64 KiB": partial(_auto_workload, 64 * KIB),
        "1 MiB": partial(_auto_workload, MIB),
    },
)
