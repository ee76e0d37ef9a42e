"""Table: compiled for a revision of a profile, which keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from app.operations.operation import OperationDefaults, OperationKind, Outcome, Report, digest_of
from app.operations.table_work import TableWork
from app.questions import tables
from app.questions.source import Stored
from app.questions.tables import CompiledTable, TableQuestion, TableScope
from app.schemas.base import parse_json
from app.schemas.table import said_first
from app.verbs.table.answer import render_table
from app.verbs.table.request import request_of, scope_of
from contract.jobs import TableJobIn
from domain.profile import ProfileReference, ProfileRevision

if TYPE_CHECKING:
    from app.settings import Settings
    from models.records import TableRecord
    from models.session import UnitOfWork

TIME_LIMIT_S = 120.0


@dataclass(frozen=True, slots=True)
class CompileTable(OperationDefaults[CompiledTable]):
    """One compilation; `activate` is as for `choose_table`.

    `files` are none, or the end of a pipe: once there is something in it, time is up.
    """

    question: TableQuestion
    activate: bool | None = None
    files: Sequence[int] = ()

    kind: ClassVar = OperationKind.TABLE
    noun: ClassVar = "compilation"
    stores: ClassVar = True  # the table, and whether lookups answer from it

    @property
    def time_s(self) -> float:
        """The compiler's own limit is less."""
        return TIME_LIMIT_S

    @property
    def request(self) -> bytes:
        """A TableJobIn as JSON."""
        return request_of(self.question, activate=self.activate)

    @property
    def digest(self) -> str:
        return digest_of(
            self.kind, self.question.digest(), self.question.scope.time_limit_s, self.activate
        )

    @property
    def work(self) -> TableWork:
        return TableWork(self.question)

    def stored(self, unit: UnitOfWork) -> Outcome | None:
        """Return a stored table of this question, and make it active where that is wanted."""
        found = tables.find_table(unit, self.question)
        if found is None:
            return None
        if tables.needs_choosing(unit, found, activate=self.activate):
            tables.choose_table(unit, found, activate=self.activate)
        return self._outcome(found)

    def run(self, report: Report) -> CompiledTable:
        """Compile. Raises Infeasible, LimitReached and SolverFailed."""
        return self.work.run(report)

    def keep(self, unit: UnitOfWork, result: CompiledTable) -> Outcome:
        """Store the table. Raises Conflict where its revision was deleted meanwhile."""
        kept = tables.keep_table(unit, result, render_table, activate=self.activate)
        return self._outcome(kept)

    def _outcome(self, record: TableRecord) -> Outcome:
        """The stored document, with what transfers say of the profile now."""
        document = said_first(record.document, self.question)
        return Outcome(document, table_digest=record.digest)


def operation(
    reference: ProfileReference,
    scope: TableScope,
    stored: Stored,
    settings: Settings,
    *,
    activate: bool | None,
) -> CompileTable:
    """Ask about the revision that this is now. Raises NotFound and StrategyDeclined."""
    revision = stored.revision(reference)
    profile = ProfileRevision(revision.profile, revision.number)
    cap = settings.max_fragments
    fit = stored.fit_of(revision)
    question = tables.table_question(
        revision.model,
        profile,
        scope,
        fragment_cap=cap,
        fit=fit,
        verification=stored.against(revision),
    )
    return CompileTable(question, activate)


def requested(request: bytes, stored: Stored, settings: Settings) -> CompileTable:
    """Read a job's request again. Raises NotFound where the profile is gone."""
    asked = parse_json(TableJobIn, request)
    reference, scope = ProfileReference.parse(asked.profile), scope_of(asked)
    return operation(reference, scope, stored, settings, activate=asked.activate)
