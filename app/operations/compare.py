"""Compare strategies over messages, audit a setting. Nothing is stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from analysis.audit import Audit, AuditQuestion, ended, messages_of
from analysis.best_known import SolvedPart
from analysis.comparison import Cell
from app.execution.engine import Pool
from app.operations.operation import OperationDefaults, OperationKind, Outcome, Report, T, digest_of
from app.operations.solves import GRACE_S, Cells, CellWork, CompareWork, Solve, cut_off
from app.operations.work import AuditPartWork, AuditWork
from app.questions.compare import Comparison, ComparisonTable, Resolved, resolve
from app.questions.optimize import prepare
from app.questions.settings import audit_question
from app.questions.source import Stored
from app.schemas.audit import audit_question_of, audit_scope, render_audit
from app.schemas.base import dump_json, parse_json
from app.schemas.compare import compare_out, compare_question
from app.schemas.source import as_job
from contract.audit import AuditIn
from contract.compare import CompareIn
from domain.errors import SluiceError
from domain.pipeline import Pipeline
from domain.profile import ProfileRevision

if TYPE_CHECKING:
    from app.settings import Settings
    from models.session import UnitOfWork


COMPARE_GRACE_S = 3.0  # as GRACE_S: on a slow machine the last of many cells ends late


@dataclass(frozen=True, slots=True)
class Compare(OperationDefaults[Cells]):
    """One comparison. `request_for` gives its request with the profile pinned to a revision."""

    resolved: Resolved
    fragment_cap: int
    request_for: Callable[[ProfileRevision | None], bytes]
    joined: Cells | None = None

    @property
    def kind(self) -> OperationKind:
        return OperationKind.COMPARE

    @property
    def noun(self) -> str:
        return "comparison"

    @property
    def pool(self) -> Pool:
        return Pool.SOLVE

    @property
    def time_s(self) -> float:
        """The limit asked for, and a grace."""
        return self.resolved.comparison.time_limit_s + COMPARE_GRACE_S

    @property
    def request(self) -> bytes:
        """A CompareIn as JSON."""
        return self.request_for(self.resolved.profile)

    @property
    def digest(self) -> str:
        resolved = self.resolved
        asked = replace(resolved.comparison, source=resolved.model)
        return digest_of(self.kind, asked, resolved.profile, self.fragment_cap, *resolved.said)

    @property
    def work(self) -> CompareWork:
        return CompareWork(self.resolved, self.fragment_cap)

    def run_here(self) -> Cells | None:
        """Solve where there are few cells and each is quick, or all are known."""
        return self.joined or self.work.run_quickly()

    def run(self, report: Report) -> Cells:
        """Solve every cell; its steps are cells."""
        return self.work.run(report)

    def cut_off(self, best: Cells, why: SluiceError) -> Cells:
        """Return the cells so far; the others say why they were not tried."""
        return tuple(_ended(cell, why) for cell in best)

    def table(self, cells: Cells) -> ComparisonTable:
        """Return the table of all cells."""
        resolved = self.resolved
        return ComparisonTable(
            resolved.model,
            resolved.profile,
            cells,
            resolved.said,
            resolved.overlap,
            resolved.comparison.limits,
        )

    def keep(self, unit: UnitOfWork, result: Cells) -> Outcome:
        """Store nothing."""
        return Outcome(dump_json(compare_out(self.table(result))))

    def split(self) -> Sequence[CompareCell]:
        """Return a part for each cell, each with an equal share of the time."""
        cells = [*self.work.solves()]
        share_s = self.resolved.comparison.time_limit_s / len(cells)
        return [CompareCell(replace(cell, time_limit_s=share_s)) for cell in cells]

    def join(self, results: Sequence[Cell]) -> Compare:
        """Return it with the cells in their order."""
        return replace(self, joined=tuple(results))


class _Part(OperationDefaults[T]):
    """A part of a job, which is not asked for by itself, and of which nothing is stored."""

    __slots__ = ()

    @property
    def request(self) -> bytes:
        """None."""
        return b""

    def keep(self, unit: UnitOfWork, result: T) -> Outcome:
        """Store nothing."""
        return Outcome(b"")


@dataclass(frozen=True, slots=True)
class CompareCell(_Part[Cell]):
    """One cell of a comparison as an operation of its own."""

    solve: Solve

    @property
    def kind(self) -> OperationKind:
        return OperationKind.COMPARE

    @property
    def noun(self) -> str:
        return "comparison"

    @property
    def pool(self) -> Pool:
        return Pool.SOLVE

    @property
    def time_s(self) -> float:
        """Its share of the limit, and a grace."""
        return self.solve.time_limit_s + GRACE_S

    @property
    def digest(self) -> str:
        return digest_of(self.kind, self.solve)

    @property
    def work(self) -> CellWork:
        return CellWork(self.solve)

    def run(self, report: Report) -> Cell:
        """Solve, or say why that is declined."""
        return self.work.run(report)

    def cut_off(self, best: Cell, why: SluiceError) -> Cell:
        """Return why the cell is empty."""
        return _declined(self.solve, why.detail)


def _ended(cell: Cell, why: SluiceError) -> Cell:
    """The cell as it is where its solve had ended, or its best so far, or why it was not tried."""
    if cell.solution is not None:
        is_open = cell.solution.cut_off
        return replace(cell, solution=cut_off(cell.solution, why)) if is_open else cell
    return cell if cell.declined else replace(cell, declined=f"not tried: {why.detail}")


def compare_operation(
    comparison: Comparison,
    request_for: Callable[[ProfileRevision | None], bytes],
    stored: Stored,
    settings: Settings,
) -> Compare:
    """Find or fit the model. Raises NotFound, and what a fit does."""
    resolved = resolve(comparison, stored)
    return Compare(resolved, settings.max_fragments, request_for)


def requested_compare(request: bytes, stored: Stored, settings: Settings) -> Compare:
    """Read a job's request again. Raises NotFound where the profile is gone."""
    asked = parse_json(CompareIn, request)
    return compare_operation(compare_question(asked), partial(as_job, asked), stored, settings)


def _declined(solve: Solve, why: str) -> Cell:
    return Cell(solve.problem.message_bytes, solve.strategy, None, why)


TIME_LIMIT_S = 120.0
_MESSAGES_A_PART = 16


@dataclass(frozen=True, slots=True)
class AuditSetting(OperationDefaults[Audit]):
    """One audit. `request_for` gives its request with the profile pinned to a revision."""

    question: AuditQuestion
    request_for: Callable[[ProfileRevision | None], bytes]
    known: SolvedPart | None = None

    @property
    def kind(self) -> OperationKind:
        return OperationKind.AUDIT

    @property
    def noun(self) -> str:
        return "audit"

    @property
    def time_s(self) -> float:
        """The audit's own limit is less."""
        return TIME_LIMIT_S

    @property
    def request(self) -> bytes:
        """An AuditIn as JSON."""
        return self.request_for(self.question.profile)

    @property
    def digest(self) -> str:
        return digest_of(self.kind, self.question.digest())

    @property
    def work(self) -> AuditWork:
        return AuditWork(self.question, self.known)

    def run(self, report: Report) -> Audit:
        """Audit. Raises SluiceError."""
        return self.work.run(report)

    def cut_off(self, best: Audit, why: SluiceError) -> Audit:
        """Return the audit by what was solved so far, with the note why it is that."""
        return ended(best, why)

    def keep(self, unit: UnitOfWork, result: Audit) -> Outcome:
        """Store nothing."""
        return Outcome(render_audit(result))

    def split(self) -> Sequence[AuditPart]:
        """Return parts that take about as long as each other; none where all stages are lines,
        whose messages are solved within milliseconds.
        """
        model, sizes = self.question.model, messages_of(self.question)
        if not isinstance(model, Pipeline) or all(stage.is_line for stage in model.stages):
            return ()
        number = -(-len(sizes) // _MESSAGES_A_PART)
        return [AuditPart(self.question, sizes[at::number]) for at in range(number)]

    def join(self, results: Sequence[SolvedPart]) -> AuditSetting:
        """Return the audit of what is known by now."""
        return replace(self, known=SolvedPart.of(results))


@dataclass(frozen=True, slots=True)
class AuditPart(_Part[SolvedPart]):
    """Some messages of an audit as an operation of its own."""

    question: AuditQuestion
    sizes: tuple[int, ...]

    @property
    def kind(self) -> OperationKind:
        return OperationKind.AUDIT

    @property
    def noun(self) -> str:
        return "audit"

    @property
    def time_s(self) -> float:
        """Its own limit is less."""
        return TIME_LIMIT_S

    @property
    def digest(self) -> str:
        return digest_of(self.kind, self.question.digest(), self.sizes)

    @property
    def work(self) -> AuditPartWork:
        return AuditPartWork(self.question, self.sizes)

    def run(self, report: Report) -> SolvedPart:
        """Solve them."""
        return self.work.run(report)


def audit_operation(asked: AuditIn, stored: Stored, settings: Settings) -> AuditSetting:
    """Find or fit the model. Raises NotFound, InvalidInput, and what a fit does."""
    scope, cap = audit_scope(asked), settings.max_fragments
    prepared = prepare(audit_question_of(asked), stored, fragment_cap=cap)
    question = audit_question(prepared, scope, fragment_cap=cap)
    return AuditSetting(question, partial(as_job, asked))


def requested_audit(request: bytes, stored: Stored, settings: Settings) -> AuditSetting:
    """Read a job's request again. Raises NotFound where the profile is gone."""
    return audit_operation(parse_json(AuditIn, request), stored, settings)
