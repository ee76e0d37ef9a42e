"""A table of what each strategy gives on each message size of one pipeline or aggregate."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

import solvers
from app.errors import InconsistentInput
from app.flows.questions import DEFAULT_RELATIVE_GAP, DEFAULT_TIME_LIMIT_S, check_static_bytes
from app.flows.solve_message import QUICK_LIMIT_S, FindRevision, ProfileRevision
from domain.errors import Infeasible, LimitReached, StrategyDeclined
from domain.model import CostModel
from domain.problem import AnyProblem, FragmentLimits, problem_of
from domain.profile import ProfileReference
from domain.solution import Solution, Strategy

if TYPE_CHECKING:
    from app.jobs import SolveTask

MAX_CELLS = 1_000  # message sizes x strategies in one comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What to compare. `time_limit_s` is for the entire table. Raises InvalidInput."""

    source: CostModel | ProfileReference
    message_bytes: tuple[int, ...]
    strategies: tuple[Strategy, ...]
    static_bytes: int | None = None
    limits: FragmentLimits = field(default_factory=FragmentLimits)
    allow_refragmentation: bool = False
    relative_gap: float = DEFAULT_RELATIVE_GAP
    time_limit_s: float = DEFAULT_TIME_LIMIT_S

    def __post_init__(self) -> None:
        if len(self.message_bytes) * len(self.strategies) > MAX_CELLS:
            raise InconsistentInput(
                f"expected message sizes x strategies <= {MAX_CELLS} in one comparison",
                field="message_bytes",
            )
        if self.static_bytes is not None or Strategy.STATIC in self.strategies:
            wanted = Strategy.STATIC if Strategy.STATIC in self.strategies else Strategy.AUTO
            check_static_bytes(wanted, self.static_bytes)


@dataclass(frozen=True, slots=True)
class Cell:
    """One strategy on one message size: a solution, or why there is none."""

    message_bytes: int
    strategy: Strategy
    solution: Solution | None
    declined: str | None


@dataclass(frozen=True, slots=True)
class ComparisonTable:
    """The rows by message size, then in the order of the strategies asked for."""

    model: CostModel
    profile: ProfileRevision | None
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Resolved:
    """A comparison whose model is known, and the profile it came from."""

    comparison: Comparison
    model: CostModel
    profile: ProfileRevision | None


SolveTaskHere: TypeAlias = Callable[["SolveTask"], Solution]


def resolve(comparison: Comparison, find_revision: FindRevision) -> Resolved:
    """Find the model. Raises NotFound."""
    if not isinstance(comparison.source, ProfileReference):
        return Resolved(comparison, comparison.source, None)
    revision = find_revision(comparison.source)
    profile = ProfileRevision(revision.profile, revision.number)
    return Resolved(comparison, revision.model, profile)


def compare(
    comparison: Comparison,
    find_revision: FindRevision,
    solve: SolveTaskHere,
    *,
    fragment_cap: int,
    progress: Callable[[int, int], None] | None = None,
) -> ComparisonTable:
    """Resolve and tabulate. Raises NotFound, and what `solve` raises besides refusals."""
    resolved = resolve(comparison, find_revision)
    return tabulate(resolved, solve, fragment_cap=fragment_cap, progress=progress)


def tabulate(
    resolved: Resolved,
    solve: SolveTaskHere,
    *,
    fragment_cap: int,
    progress: Callable[[int, int], None] | None = None,
) -> ComparisonTable:
    """Solve every cell by `solve`. `progress` is told cells done and cells in all."""
    comparison = resolved.comparison
    total = len(comparison.message_bytes) * len(comparison.strategies)
    cells: list[Cell] = []
    for cell in _cells(resolved, solve, fragment_cap):
        cells.append(cell)
        if progress is not None:
            progress(len(cells), total)
    return ComparisonTable(resolved.model, resolved.profile, tuple(cells))


def is_quick(resolved: Resolved, *, fragment_cap: int) -> bool:
    """Whether each cell is certain to end within 50 ms and they are few."""
    comparison = resolved.comparison
    cells = len(comparison.message_bytes) * len(comparison.strategies)
    return cells <= QUICK_CELLS and all(
        _is_quick(problem, strategy)
        for problem in _problems(resolved, fragment_cap)
        for strategy in comparison.strategies
    )


def _is_quick(problem: AnyProblem, strategy: Strategy) -> bool:
    try:
        return solvers.is_quick(problem, strategy)
    except Infeasible:  # which the cell will say
        return True


QUICK_CELLS = 20


def solve_in_process(task: SolveTask) -> Solution:
    """Solve a task in this thread, for whoever has no engine."""
    return solvers.solve(
        task.problem,
        task.strategy,
        relative_gap=task.relative_gap,
        time_limit_s=task.time_limit_s,
        static_bytes=task.static_bytes,
    )


class NotQuick(Exception):
    """A cell that looked small takes long: the table has to be made elsewhere."""


def solve_quickly(task: SolveTask) -> Solution:
    """Solve a task in this thread. Raises NotQuick where that takes longer than QUICK_LIMIT_S."""
    limit_s = min(task.time_limit_s, QUICK_LIMIT_S)
    solution = solve_in_process(replace(task, time_limit_s=limit_s))
    if solution.cut_off and task.time_limit_s > limit_s:
        raise NotQuick
    return solution


def _problems(resolved: Resolved, fragment_cap: int) -> Iterator[AnyProblem]:
    asked = resolved.comparison
    for size in asked.message_bytes:
        yield problem_of(
            resolved.model,
            size,
            asked.limits,
            fragment_cap=fragment_cap,
            allow_refragmentation=asked.allow_refragmentation,
        )


def _cells(resolved: Resolved, solve: SolveTaskHere, fragment_cap: int) -> Iterator[Cell]:
    from app.jobs import SolveTask

    comparison = resolved.comparison
    deadline_s = time.monotonic() + comparison.time_limit_s
    left = len(comparison.message_bytes) * len(comparison.strategies)
    for problem in _problems(resolved, fragment_cap):
        for strategy in comparison.strategies:
            # An equal share of what is left: what one cell does not need is there for the next.
            share_s = (deadline_s - time.monotonic()) / left
            left -= 1
            task = SolveTask(
                problem=problem,
                strategy=strategy,
                relative_gap=comparison.relative_gap,
                time_limit_s=share_s,
                static_bytes=comparison.static_bytes if strategy is Strategy.STATIC else None,
            )
            yield _cell(task, solve)


def _cell(task: SolveTask, solve: SolveTaskHere) -> Cell:
    declined = None
    if task.time_limit_s <= 0.0:
        declined = "not tried: the comparison's time limit had passed"
    else:
        try:
            return Cell(task.problem.message_bytes, task.strategy, solve(task), None)
        except (StrategyDeclined, Infeasible, LimitReached) as refusal:
            declined = refusal.detail
    return Cell(task.problem.message_bytes, task.strategy, None, declined)
