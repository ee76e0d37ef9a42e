"""Strategies on messages of several sizes: what is asked, and every cell of the table."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict, TypeGuard

import solvers
from analysis.comparison import Cell, cells, each_cell
from analysis.solve import SolveQuestion
from contract.limits import DEFAULT_RELATIVE_GAP, DEFAULT_TIME_LIMIT_S
from domain.errors import Infeasible, MemoryLimitReached
from domain.model import CostModel
from domain.pipeline import Pipeline
from domain.problem import DEFAULT_FRAGMENT_CAP, AnyProblem, FragmentLimits, problem_of
from domain.profile import ProfileRevision
from domain.schedule import serial_us
from domain.solution import Notice, Solution, Strategy
from domain.structure import KnownOverlap

QUICK_CELLS = 20
_REPORT_S = 0.25  # between reports on the way: each holds all cells so far

Cells = tuple[Cell, ...]
Steps = Callable[[int, int], None]  # cells done, of all
OnBest = Callable[[Any], None]


class _How(TypedDict):
    relative_gap: float
    time_limit_s: float
    static_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareQuestion:
    """What to compare on which model. `time_limit_s` is for the entire table.

    `said` is what is known of the model, and `overlap` of its stages.
    """

    model: CostModel
    message_bytes: tuple[int, ...]
    strategies: tuple[Strategy, ...]
    static_bytes: int | None = None
    limits: FragmentLimits = field(default_factory=FragmentLimits)
    allow_refragmentation: bool = False
    relative_gap: float = DEFAULT_RELATIVE_GAP
    time_limit_s: float = DEFAULT_TIME_LIMIT_S
    fragment_cap: int = DEFAULT_FRAGMENT_CAP
    profile: ProfileRevision | None = None
    said: tuple[Notice, ...] = ()
    overlap: KnownOverlap = field(default_factory=KnownOverlap)

    @property
    def number_of_cells(self) -> int:
        """Messages times strategies."""
        return len(self.message_bytes) * len(self.strategies)

    @property
    def how(self) -> _How:
        """What all solves have in common."""
        return {
            "relative_gap": self.relative_gap,
            "time_limit_s": self.time_limit_s,
            "static_bytes": self.static_bytes,
        }

    def problems(self) -> Iterator[AnyProblem]:
        """Yield the problem of each message size."""
        for size in self.message_bytes:
            yield problem_of(
                self.model,
                size,
                self.limits,
                fragment_cap=self.fragment_cap,
                allow_refragmentation=self.allow_refragmentation,
            )

    def solves(self) -> Iterator[SolveQuestion]:
        """Yield the solve of each cell, with the time of the whole comparison."""
        for problem in self.problems():
            for strategy in self.strategies:
                static_bytes = self.static_bytes if strategy is Strategy.STATIC else None
                yield SolveQuestion(
                    problem, strategy, self.relative_gap, self.time_limit_s, static_bytes
                )

    def serial_us(self, cell: Cell) -> float | None:
        """What a cell's cut takes one after another, in µs, where nobody has said which it is; else
        None.
        """
        found, model = cell.solution, self.model
        if found is None or not self._is_unsaid(model):
            return None
        return serial_us(model, found.levels or (found.schedule.fragment_bytes,))

    def whole_us(self, message_bytes: int) -> float | None:
        """Return the same of a message in one piece; None too where the limits do not admit it."""
        most = self.limits.max_fragment_bytes
        if not self._is_unsaid(self.model) or (most is not None and most < message_bytes):
            return None
        return serial_us(self.model, ((message_bytes,),))

    def _is_unsaid(self, model: CostModel) -> TypeGuard[Pipeline]:
        return isinstance(model, Pipeline) and self.overlap.is_unsaid(len(model))


def compare(question: CompareQuestion, steps: Steps, best: OnBest) -> Cells:
    """Return the cells by message size, then in the order of the strategies; steps are cells.

    Of the cells that are reported on the way, those to come have neither a solution nor a reason.
    """
    progress = _Progress(steps, best, question.number_of_cells)
    asked = [(one.problem, one.strategy) for one in question.solves()]
    known = {
        place: Cell(problem.message_bytes, strategy, None, None)
        for place, (problem, strategy) in enumerate(asked)
    }
    progress.report(tuple(known.values()))

    def solve(problem: AnyProblem, strategy: Strategy, **how: Any) -> Solution:
        def on_better(better: Solution) -> None:
            place = asked.index((problem, strategy))
            found = replace(better, cut_off=True)
            open_cell = Cell(problem.message_bytes, strategy, found, None)
            progress.report_sometimes(tuple({**known, place: open_cell}.values()))

        return _in_memory(SolveQuestion(problem=problem, strategy=strategy, **how), on_better)

    found = each_cell(tuple(question.problems()), question.strategies, solve, **question.how)
    for done, (place, cell) in enumerate(found, start=1):
        known[place] = cell
        progress.count(done, tuple(known.values()))
    return tuple(known.values())


def compare_quickly(question: CompareQuestion) -> Cells | None:
    """Return the cells where they are few and each is quick, else None."""
    if question.number_of_cells > QUICK_CELLS:
        return None
    if not all(_is_quick(solve.problem, solve.strategy) for solve in question.solves()):
        return None
    try:
        return cells(
            tuple(question.problems()), question.strategies, _solve_quickly, **question.how
        )
    except _NotQuick:
        return None


def solve_cell(question: SolveQuestion, best: OnBest) -> Cell:
    """Return one cell by itself: its solution, or why that is declined."""
    # A cell whose solve is ended from outside reports it, and costs no other.
    best(Cell(question.problem.message_bytes, question.strategy, None, "not solved"))
    found = cells(
        (question.problem,),
        (question.strategy,),
        lambda problem, strategy, **how: _in_memory(SolveQuestion(problem, strategy, **how)),
        relative_gap=question.relative_gap,
        time_limit_s=question.time_limit_s,
        static_bytes=question.static_bytes,
    )
    return found[0]


class _NotQuick(Exception):
    """A cell that looked small takes long: the comparison has to be made elsewhere."""


def _solve_quickly(problem: AnyProblem, strategy: Strategy, **how: Any) -> Solution:
    solution = SolveQuestion(problem=problem, strategy=strategy, **how).quick_solution()
    if solution is None:
        raise _NotQuick
    return solution


def _is_quick(problem: AnyProblem, strategy: Strategy) -> bool:
    try:
        return solvers.is_quick(problem, strategy)
    except Infeasible:  # which the cell will say
        return True


def _in_memory(
    question: SolveQuestion, on_better: Callable[[Solution], None] | None = None
) -> Solution:
    """Solve. Raises MemoryLimitReached where a worker may not use as much as that takes."""
    try:
        return question.solution(on_better)
    except MemoryError:
        pass  # said outside, where what the solve still holds has been given back
    raise MemoryLimitReached("the solve needed more memory than a worker may use")


class _Progress:
    """What a comparison reports while it runs."""

    def __init__(self, steps: Steps, best: OnBest, total: int) -> None:
        self._steps, self._best, self._total = steps, best, total
        self._next_s = 0.0

    def count(self, done: int, cells: Cells) -> None:
        """Report one more cell."""
        self._steps(done, self._total)
        self.report_sometimes(cells)

    def report_sometimes(self, cells: Cells) -> None:
        """Report the cells so far, the rest without a solution, unless that was done just now."""
        if time.monotonic() >= self._next_s:
            self.report(cells)

    def report(self, cells: Cells) -> None:
        """Report the cells so far."""
        self._best(cells)
        self._next_s = time.monotonic() + _REPORT_S
