"""Compile a plan table of a profile or a pipeline; a profile's table is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.operations.operation import OperationDefaults, OperationKind, Outcome, Report, digest_of
from app.operations.work import TableWork
from app.questions import tables
from app.questions.optimize import fit_of, stored_fit, stored_revision
from app.questions.tables import CompiledTable, TableQuestion, TableScope
from app.schemas.base import parse_json
from app.schemas.jobs import TableJobIn, table_request
from app.schemas.tables import render_table
from domain.profile import ProfileRevision

if TYPE_CHECKING:
    from app.settings import Settings
    from domain.profile import ProfileReference
    from models.records import TableRecord
    from models.session import UnitOfWork

TIME_LIMIT_S = 120.0


@dataclass(frozen=True, slots=True)
class CompileTable(OperationDefaults[CompiledTable]):
    """One compilation; `activate` is as for `choose_table`."""

    question: TableQuestion
    activate: bool | None = None

    @property
    def kind(self) -> OperationKind:
        return OperationKind.TABLE

    @property
    def noun(self) -> str:
        return "compilation"

    @property
    def time_s(self) -> float:
        """The compiler's own limit is less."""
        return TIME_LIMIT_S

    @property
    def request(self) -> bytes:
        """A TableJobIn as JSON."""
        return table_request(self.question, activate=self.activate)

    @property
    def digest(self) -> str:
        return digest_of(
            self.kind, self.question.digest(), self.question.scope.time_limit_s, self.activate
        )

    @property
    def work(self) -> TableWork:
        return TableWork(self.question)

    @property
    def stores(self) -> bool:
        """The table, and whether lookups answer from it."""
        return True

    def stored(self, unit: UnitOfWork) -> Outcome | None:
        """Return a stored table of this question, and make it active where that is wanted."""
        found = tables.find_table(unit, self.question)
        if found is None:
            return None
        if tables.needs_choosing(unit, found, activate=self.activate):
            tables.choose_table(unit, found, activate=self.activate)
        return _outcome(found)

    def run(self, report: Report) -> CompiledTable:
        """Compile. Raises Infeasible, LimitReached and SolverFailed."""
        return self.work.run(report)

    def keep(self, unit: UnitOfWork, result: CompiledTable) -> Outcome:
        """Store the table. Raises Conflict where its revision was deleted meanwhile."""
        return _outcome(tables.keep_table(unit, result, render_table, activate=self.activate))


def table_operation(
    reference: ProfileReference,
    scope: TableScope,
    unit: UnitOfWork,
    settings: Settings,
    *,
    activate: bool | None,
) -> CompileTable:
    """Ask about the revision that this is now. Raises NotFound and StrategyDeclined."""
    revision = stored_revision(unit)(reference)
    profile = ProfileRevision(revision.profile, revision.number)
    cap = settings.max_fragments
    fit = fit_of(revision, stored_fit(unit))
    question = tables.table_question(revision.model, profile, scope, fragment_cap=cap, fit=fit)
    return CompileTable(question, activate)


def requested_table(request: bytes, unit: UnitOfWork, settings: Settings) -> CompileTable:
    """Read a job's request again. Raises NotFound where the profile is gone."""
    asked = parse_json(TableJobIn, request)
    scope = asked.to_domain()
    return table_operation(asked.reference, scope, unit, settings, activate=asked.activate)


def _outcome(record: TableRecord) -> Outcome:
    return Outcome(record.document, table_digest=record.digest)
