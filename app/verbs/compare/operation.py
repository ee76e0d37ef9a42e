"""Compare: prepared from a request and the store, run anywhere, nothing kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from analysis.compare import (
    Cells,
    CompareQuestion,
    compare,
    compare_quickly,
    solve_cell,
)
from analysis.comparison import Cell
from analysis.solve import SolveQuestion
from app.execution.engine import Pool
from app.operations.call import Call
from app.operations.operation import (
    OperationDefaults,
    OperationKind,
    Outcome,
    PartDefaults,
    Report,
    digest_of,
)
from app.operations.solves import GRACE_S, cut_off
from app.questions.source import FitNow, Source, Stored, check_asked_of, resolve
from app.schemas.base import dump_json, parse_json
from app.schemas.source import as_job, options_of, source_of
from app.schemas.stages import limits_of
from app.verbs.compare.answer import compared, compared_between
from app.verbs.compare.request import check, compare_question, compared_items, items_question
from contract.compare import AnyCompareOut, CompareIn, ItemsCompareOut
from domain.profile import ProfileRevision

if TYPE_CHECKING:
    from analysis.compared_items import ComparedItems, ItemsCompareQuestion
    from app.questions.items import ItemsAcross
    from app.settings import Settings
    from domain.errors import SluiceError
    from models.session import UnitOfWork

COMPARE_GRACE_S = 3.0  # as GRACE_S: on a slow machine the last of many cells ends late
COMPARE_ITEMS_GRACE_S = COMPARE_GRACE_S + 4.0  # and two walks over all caps


@dataclass(frozen=True, slots=True)
class Compare(OperationDefaults[Cells]):
    """One comparison. `request_for` gives its request with the profile pinned to a revision."""

    question: CompareQuestion
    request_for: Callable[[ProfileRevision | None], bytes]
    joined: Cells | None = None

    kind: ClassVar = OperationKind.COMPARE
    noun: ClassVar = "comparison"
    pool: ClassVar = Pool.SOLVE  # clients wait for it briefly

    @property
    def time_s(self) -> float:
        """The limit asked for, and a grace."""
        return self.question.time_limit_s + COMPARE_GRACE_S

    @property
    def request(self) -> bytes:
        """A CompareIn as JSON."""
        return self.request_for(self.question.profile)

    @property
    def digest(self) -> str:
        return digest_of(self.kind, self.question)

    @property
    def work(self) -> Call[Cells]:
        return Call(compare, self.question, ("steps", "best"))

    def run_here(self) -> Cells | None:
        """Solve where there are few cells and each is quick, or all are known."""
        return self.joined or compare_quickly(self.question)

    def run(self, report: Report) -> Cells:
        """Solve every cell; its steps are cells."""
        return self.work.run(report)

    def cut_off(self, best: Cells, why: SluiceError) -> Cells:
        """Return the cells so far; the others say why they were not tried."""
        return tuple(_ended(cell, why) for cell in best)

    def document(self, result: Cells) -> AnyCompareOut:
        """Return the answer as it is sent."""
        return compared(self.question, result)

    def keep(self, unit: UnitOfWork, result: Cells) -> Outcome:
        """Store nothing."""
        return Outcome(dump_json(self.document(result)))

    def split(self) -> Sequence[CompareCell]:
        """Return a part for each cell, each with an equal share of the time."""
        cells = [*self.question.solves()]
        share_s = self.question.time_limit_s / len(cells)
        return [CompareCell(replace(cell, time_limit_s=share_s)) for cell in cells]

    def join(self, results: Sequence[Cell]) -> Compare:
        """Return it with the cells in their order."""
        return replace(self, joined=tuple(results))


@dataclass(frozen=True, slots=True)
class CompareCell(PartDefaults[Cell]):
    """One cell of a comparison as an operation of its own."""

    question: SolveQuestion

    kind: ClassVar = OperationKind.COMPARE
    noun: ClassVar = "comparison"
    pool: ClassVar = Pool.SOLVE

    @property
    def time_s(self) -> float:
        """Its share of the limit, and a grace."""
        return self.question.time_limit_s + GRACE_S

    @property
    def digest(self) -> str:
        return digest_of(self.kind, self.question)

    @property
    def work(self) -> Call[Cell]:
        return Call(solve_cell, self.question, ("best",))

    def run(self, report: Report) -> Cell:
        """Solve, or say why that is declined."""
        return self.work.run(report)

    def cut_off(self, best: Cell, why: SluiceError) -> Cell:
        """Return why the cell is empty."""
        return Cell(self.question.problem.message_bytes, self.question.strategy, None, why.detail)


@dataclass(frozen=True, slots=True)
class CompareItems(OperationDefaults["ComparedItems"]):
    """One comparison of ways to cut between items; the stages are `across`."""

    question: ItemsCompareQuestion
    across: ItemsAcross
    request_for: Callable[[ProfileRevision | None], bytes]

    kind: ClassVar = OperationKind.COMPARE
    noun: ClassVar = "comparison"
    pool: ClassVar = Pool.SOLVE

    @property
    def time_s(self) -> float:
        """The limit asked for, the walks over all caps, and a grace."""
        return self.question.time_limit_s + COMPARE_ITEMS_GRACE_S

    @property
    def request(self) -> bytes:
        """A CompareIn as JSON."""
        return self.request_for(self.across.found.profile)

    @property
    def digest(self) -> str:
        asked = self.question
        how = (asked.fill, asked.caps_bytes, asked.relative_gap, asked.time_limit_s)
        return digest_of(self.kind, "items", self.across.digest, how)

    @property
    def work(self) -> Call[ComparedItems]:
        from analysis.compared_items import compare_items

        return Call(compare_items, self.question)

    def run_here(self) -> ComparedItems | None:
        """Do it where that is quick."""
        from analysis.compared_items import compare_items
        from app.questions.items import are_quick

        return compare_items(self.question) if are_quick((self.across.problem,)) else None

    def run(self, report: Report) -> ComparedItems:
        """Price every way. Raises Infeasible."""
        return self.work.run(report)

    def document(self, result: ComparedItems) -> ItemsCompareOut:
        """Return the answer as it is sent."""
        return compared_between(self.question, self.across, result)

    def keep(self, unit: UnitOfWork, result: ComparedItems) -> Outcome:
        """Store nothing."""
        return Outcome(dump_json(self.document(result)))


def _ended(cell: Cell, why: SluiceError) -> Cell:
    """The cell as it is where its solve had ended, or its best so far, or why it was not tried."""
    if cell.solution is not None:
        is_open = cell.solution.cut_off
        return replace(cell, solution=cut_off(cell.solution, why)) if is_open else cell
    return cell if cell.declined else replace(cell, declined=f"not tried: {why.detail}")


def operation(
    asked: CompareIn, stored: Stored, settings: Settings, costs: Source | None = None
) -> Compare | CompareItems:
    """Find or fit the model; `costs` stand in place of those that the request names.

    Raises NotFound, InvalidInput, and what a fit does; for items ItemsDeclined, too.
    """
    if asked.items is not None:
        return _of_items(asked, stored, settings, costs)
    check(asked)
    source = costs or source_of(asked)
    found = resolve(source, stored, FitNow(options_of(asked)), machines=True)
    check_asked_of(found.model, {"allow_refragmentation": asked.allow_refragmentation})
    question = compare_question(asked, found, fragment_cap=settings.max_fragments)
    return Compare(question, partial(as_job, asked))


def _of_items(
    asked: CompareIn, stored: Stored, settings: Settings, costs: Source | None
) -> CompareItems:
    from app.questions.items import items_across

    sequence, fill = compared_items(asked)
    source, limits = costs or source_of(asked), limits_of(asked.constraints, items=True)
    across = items_across(
        source,
        options_of(asked),
        stored,
        sequence,
        limits,
        settings.max_fragments,
        max_fragment_items=asked.constraints.max_fragment_items,
    )
    question = items_question(asked, across.problem, fill)
    return CompareItems(question, across, partial(as_job, asked))


def requested(request: bytes, stored: Stored, settings: Settings) -> Compare | CompareItems:
    """Read a job's request again. Raises NotFound where the profile is gone."""
    return operation(parse_json(CompareIn, request), stored, settings)
