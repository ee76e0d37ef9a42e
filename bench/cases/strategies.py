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
        is_detail=True,
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


def _cells(solution: Solution) -> int:
    """k*n of an answer."""
    model = solution.problem.model
    assert isinstance(model, Pipeline)
    return solution.schedule.fragments * len(model)


def _row(name: str, side: Timed[Solution], reference_ms: float) -> tuple[Cell, ...]:
    solution = side.result
    return (
        name,
        side.timing.median_ms / reference_ms,
        _cells(solution),
        side.timing.median_ms,
        side.timing.spread,
        solution.relative_gap,
        str(solution.status),
    )


# ---- auto ---------------------------------------------------------------------------------------


def _auto_at_4_kib(effort: Effort) -> tuple[Table, tuple[Check, ...]]:
    """Sizes around 4096, each once: no two questions are the same."""
    number = effort.pick(200, quick=40)
    sizes = range(4096 - number // 2, 4096 + number - number // 2)
    runs = [_once(partial(solvers.solve, Problem(myrinet(), size))) for size in sizes]
    worst_gap = max(run.result.relative_gap for run in runs)
    table = Table(
        f"auto on Table 1, {number} sizes around 4096 bytes, each once",
        (*_SPREAD_COLUMNS, "worst relative gap"),
        ((*_spread_row("auto", runs), worst_gap),),
        is_detail=True,
    )
    wall, processor = _joined(runs)
    what = "auto on Table 1 around 4 KiB"
    return table, (
        Check(f"{what}, median", wall.median_ms, AUTO_TARGET_MS, "ms"),
        Check(f"{what}, slowest of {number}", processor.max_ms, AUTO_TARGET_MS, "processor ms"),
    )


def _what_counts_as_quick(effort: Effort) -> tuple[Table, tuple[Check, ...]]:
    """Random questions that the service would solve without a child process."""
    wanted = effort.pick(400, quick=40)
    rng = np.random.default_rng(7)
    runs: list[Timed[Solution]] = []
    while len(runs) < wanted:
        problem = _random_problem(rng)
        if solvers.is_quick(problem, Strategy.AUTO):
            runs.append(_once(partial(_solve_and_compare, problem)))
    largest = max(_cells(run.result) for run in runs)
    table = Table(
        f"{wanted} random questions that count as quick (auto and the baselines)",
        (*_SPREAD_COLUMNS, "max k*n"),
        ((*_spread_row("auto", runs), largest),),
        is_detail=True,
    )
    slowest = _joined(runs)[1].max_ms
    return table, (Check("quick solves, slowest", slowest, QUICK_TARGET_MS, "processor ms"),)


_SPREAD_COLUMNS = (
    "strategy",
    "median ms",
    "99 % ms",
    "max ms",
    "median processor ms",
    "99 % processor ms",
    "max processor ms",
)


def _once(call: Callable[[], Solution]) -> Timed[Solution]:
    return interleaved({"auto": call}, rounds=1, warm_ups=0)["auto"]


def _joined(runs: list[Timed[Solution]]) -> tuple[Timing, Timing]:
    """All wall times, and all processor times."""
    return (
        Timing(tuple(run.timing.median_ms for run in runs)),
        Timing(tuple(run.processor.median_ms for run in runs)),
    )


def _spread_row(label: str, runs: list[Timed[Solution]]) -> tuple[Cell, ...]:
    figures = [
        (timing.median_ms, timing.quantile_ms(0.99), timing.max_ms) for timing in _joined(runs)
    ]
    return (label, *figures[0], *figures[1])


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
        "in the answer; what takes over a second runs once. Processor times do not count what "
        "other programs took of the machine meanwhile: the slowest of many is taken by them."
    ),
    run=_run,
    workloads={
        "4 KiB": partial(_auto_workload, 4 * KIB),
        "64 KiB": partial(_auto_workload, 64 * KIB),
        "1 MiB": partial(_auto_workload, MIB),
    },
)
