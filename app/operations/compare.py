"""Compare: what each strategy gives on each message size of one model. Nothing is stored."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import solvers
from analysis.comparison import Cell, cells
from analysis.comparison import Solve as SolveProblem
from app.execution.engine import Pool
from app.flows.compare import Comparison, ComparisonTable, Resolved, resolve
from app.flows.solve_message import stored_revision
from app.operations.digests import digest_of
from app.operations.operation import OperationDefaults, OperationKind, Outcome, Report
from app.operations.solves import GRACE_S, Solve, cut_off
from app.schemas.base import dump_json, parse_json
from app.schemas.compare import CompareIn, comparison_document
from domain.errors import Infeasible, MemoryLimitReached, SluiceError
from domain.problem import AnyProblem, problem_of
from domain.profile import ProfileRevision
from domain.solution import Solution, Strategy

if TYPE_CHECKING:
    from app.settings import Settings
    from models.session import UnitOfWork

QUICK_CELLS = 20
_TELL_S = 0.25  # between tables that are told on the way: each holds all cells so far

Cells = tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Compare(OperationDefaults[Cells]):
    """One comparison. `request_for` gives its request with the profile pinned to a revision."""

    resolved: Resolved
    fragment_cap: int
    request_for: Callable[[ProfileRevision | None], bytes]

    @property
    def kind(self) -> OperationKind:
        """Of message sizes times strategies."""
        return OperationKind.COMPARE

    @property
    def noun(self) -> str:
        """In refusals."""
        return "comparison"

    @property
    def pool(self) -> Pool:
        """It solves, cell by cell."""
        return Pool.SOLVE

    @property
    def time_s(self) -> float:
        """The limit asked for, and a grace."""
        return self.resolved.comparison.time_limit_s + GRACE_S

    @property
    def request(self) -> bytes:
        """A CompareIn as JSON."""
        return self.request_for(self.resolved.profile)

    @property
    def digest(self) -> str:
        """Equal exactly for comparisons of one result."""
        resolved = self.resolved
        asked = replace(resolved.comparison, source=resolved.model)
        return digest_of(self.kind, asked, resolved.profile, self.fragment_cap)

    @property
    def work(self) -> CompareWork:
        """The cells to solve."""
        return CompareWork(self.resolved, self.fragment_cap)

    def run_here(self) -> Cells | None:
        """Solve where there are few cells and each is quick."""
        return self.work.run_quickly()

    def run(self, report: Report) -> Cells:
        """Solve every cell; its steps are cells."""
        return self.work.run(report)

    def cut_off(self, best: Cells, why: SluiceError) -> Cells:
        """The cells so far; the others say why they were not tried."""
        declined = f"not tried: {why.detail}"
        left = [*self.work.solves()][len(best) :]
        marked = (
            replace(cell, solution=cut_off(cell.solution, why))
            if cell.solution is not None and cell.solution.cut_off
            else cell
            for cell in best
        )
        return (*marked, *(_declined(one, declined) for one in left))

    def table(self, cells: Cells) -> ComparisonTable:
        """The table of all cells."""
        return ComparisonTable(self.resolved.model, self.resolved.profile, cells)

    def keep(self, unit: UnitOfWork, result: Cells) -> Outcome:
        """Store nothing."""
        return Outcome(dump_json(comparison_document(self.table(result))))

    def split(self) -> Sequence[CompareCell]:
        """Return a part for each cell, each with an equal share of the time."""
        cells = [*self.work.solves()]
        share_s = self.resolved.comparison.time_limit_s / len(cells)
        return [CompareCell(replace(cell, time_limit_s=share_s)) for cell in cells]

    def join(self, results: Sequence[Cell]) -> Cells:
        """Return the cells in their order."""
        return tuple(results)


@dataclass(frozen=True, slots=True)
class CompareWork:
    """The cells of a comparison, by message size, then in the order of the strategies."""

    resolved: Resolved
    fragment_cap: int

    def problems(self) -> Iterator[AnyProblem]:
        """The problem of each message size."""
        asked = self.resolved.comparison
        for size in asked.message_bytes:
            yield problem_of(
                self.resolved.model,
                size,
                asked.limits,
                fragment_cap=self.fragment_cap,
                allow_refragmentation=asked.allow_refragmentation,
            )

    def solves(self) -> Iterator[Solve]:
        """The solve of each cell, with the time of the whole comparison."""
        asked = self.resolved.comparison
        for problem in self.problems():
            for strategy in asked.strategies:
                static_bytes = asked.static_bytes if strategy is Strategy.STATIC else None
                yield Solve(problem, strategy, asked.relative_gap, asked.time_limit_s, static_bytes)

    def run(self, report: Report) -> Cells:
        """Solve one cell after the other."""
        progress = _Progress(report, self.resolved.comparison)
        progress.tell(())
        done: list[Cell] = []

        def solve(problem: AnyProblem, strategy: Strategy, **how: Any) -> Solution:
            def tell(better: Solution) -> None:
                open_cell = _solved(problem, strategy, replace(better, cut_off=True))
                progress.tell_sometimes((*done, open_cell))

            return _in_memory(Solve(problem=problem, strategy=strategy, **how), tell)

        for cell in self._cells(solve):
            done.append(cell)
            progress.count(tuple(done))
        return tuple(done)

    def run_quickly(self) -> Cells | None:
        """The cells where they are few and each is quick, else None."""
        asked = self.resolved.comparison
        if len(asked.message_bytes) * len(asked.strategies) > QUICK_CELLS:
            return None
        if not all(_is_quick(solve.problem, solve.strategy) for solve in self.solves()):
            return None
        try:
            return tuple(self._cells(_solve_quickly))
        except _NotQuick:
            return None

    def _cells(self, solve: SolveProblem) -> Iterator[Cell]:
        asked = self.resolved.comparison
        return cells(
            tuple(self.problems()),
            asked.strategies,
            solve,
            relative_gap=asked.relative_gap,
            time_limit_s=asked.time_limit_s,
            static_bytes=asked.static_bytes,
        )


@dataclass(frozen=True, slots=True)
class CompareCell(OperationDefaults[Cell]):
    """One cell of a comparison as an operation of its own."""

    solve: Solve

    @property
    def kind(self) -> OperationKind:
        """Part of one."""
        return OperationKind.COMPARE

    @property
    def noun(self) -> str:
        """In refusals."""
        return "comparison"

    @property
    def pool(self) -> Pool:
        """It solves."""
        return Pool.SOLVE

    @property
    def time_s(self) -> float:
        """Its share of the limit, and a grace."""
        return self.solve.time_limit_s + GRACE_S

    @property
    def request(self) -> bytes:
        """None: parts are not asked for by themselves."""
        return b""

    @property
    def digest(self) -> str:
        """Equal exactly for cells of one result."""
        return digest_of(self.kind, self.solve)

    @property
    def work(self) -> CompareCell:
        """All of it."""
        return self

    def run(self, report: Report) -> Cell:
        """Solve, or say why that is declined."""
        solve = self.solve
        report.best(_declined(solve, "not solved"))  # so that a cell that is cut off costs no other
        found = cells(
            (solve.problem,),
            (solve.strategy,),
            lambda problem, strategy, **how: _in_memory(Solve(problem, strategy, **how)),
            relative_gap=solve.relative_gap,
            time_limit_s=solve.time_limit_s,
            static_bytes=solve.static_bytes,
        )
        return next(found)

    def cut_off(self, best: Cell, why: SluiceError) -> Cell:
        """Why there is nothing in it."""
        return _declined(self.solve, why.detail)

    def keep(self, unit: UnitOfWork, result: Cell) -> Outcome:
        """Store nothing."""
        return Outcome(b"")


def compare_operation(
    comparison: Comparison,
    request_for: Callable[[ProfileRevision | None], bytes],
    unit: UnitOfWork,
    settings: Settings,
) -> Compare:
    """Find the model. Raises NotFound."""
    resolved = resolve(comparison, stored_revision(unit))
    return Compare(resolved, settings.max_fragments, request_for)


def requested_compare(request: bytes, unit: UnitOfWork, settings: Settings) -> Compare:
    """Read a job's request again. Raises NotFound where the profile is gone."""
    asked = parse_json(CompareIn, request)
    return compare_operation(asked.to_domain(), asked.as_job, unit, settings)


# --- cells ----------------------------------------------------------------------------------------


class _NotQuick(Exception):
    """A cell that looked small takes long: the comparison has to be made elsewhere."""


def _solve_quickly(problem: AnyProblem, strategy: Strategy, **how: Any) -> Solution:
    solution = Solve(problem=problem, strategy=strategy, **how).quick_solution()
    if solution is None:
        raise _NotQuick
    return solution


def _is_quick(problem: AnyProblem, strategy: Strategy) -> bool:
    try:
        return solvers.is_quick(problem, strategy)
    except Infeasible:  # which the cell will say
        return True


def _in_memory(solve: Solve, tell: Callable[[Solution], None] | None = None) -> Solution:
    """Solve. Raises MemoryLimitReached where a worker may not use as much as that takes."""
    try:
        return solve.solution(tell)
    except MemoryError:
        pass  # said outside, where what the solve still holds has been given back
    raise MemoryLimitReached("the solve needed more memory than a worker may use")


def _solved(problem: AnyProblem, strategy: Strategy, solution: Solution) -> Cell:
    return Cell(problem.message_bytes, strategy, solution, None)


def _declined(solve: Solve, why: str) -> Cell:
    return Cell(solve.problem.message_bytes, solve.strategy, None, why)


class _Progress:
    """What is told of a comparison on its way."""

    def __init__(self, report: Report, comparison: Comparison) -> None:
        self._report = report
        self._total = len(comparison.message_bytes) * len(comparison.strategies)
        self._next_s = 0.0

    def count(self, done: Cells) -> None:
        """How many cells there are."""
        self._report.steps(len(done), self._total)
        self.tell_sometimes(done)

    def tell_sometimes(self, cells: Cells) -> None:
        """The cells so far, where that was not told just now."""
        if time.monotonic() >= self._next_s:
            self.tell(cells)

    def tell(self, cells: Cells) -> None:
        """The cells so far."""
        self._report.best(cells)
        self._next_s = time.monotonic() + _TELL_S
