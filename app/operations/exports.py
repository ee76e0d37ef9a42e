"""Export a pipeline as a library's configuration. Nothing is stored."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.operations.operation import OperationDefaults, OperationKind, Outcome, Report, digest_of
from app.operations.work import ExportWork
from app.questions import settings as export_questions
from app.questions.optimize import fit_of, stored_fit, stored_revision
from app.questions.settings import Exported, ExportQuestion, ExportScope
from app.schemas.base import parse_json
from app.schemas.exports import render_exported
from app.schemas.jobs import ExportJobIn, export_request
from domain.profile import ProfileRevision

if TYPE_CHECKING:
    from app.settings import Settings
    from domain.errors import SluiceError
    from domain.profile import ProfileReference
    from models.session import UnitOfWork

TIME_LIMIT_S = 120.0
MAX_RECENT = 256
MAX_RECENT_BYTES = 2**18


@dataclass(frozen=True, slots=True)
class ExportSetting(OperationDefaults[Exported]):
    """One export."""

    question: ExportQuestion

    @property
    def kind(self) -> OperationKind:
        return OperationKind.EXPORT

    @property
    def noun(self) -> str:
        return "export"

    @property
    def time_s(self) -> float:
        """The limits of what it solves are less."""
        return TIME_LIMIT_S

    @property
    def request(self) -> bytes:
        """An ExportJobIn as JSON."""
        return export_request(self.question)

    @property
    def digest(self) -> str:
        return digest_of(self.kind, self.question.digest())

    @property
    def work(self) -> ExportWork:
        return ExportWork(self.question)

    def stored(self, unit: UnitOfWork) -> Outcome | None:
        """Return a short export, which is at hand at once. Raises what `export` does."""
        found = self.run_here()
        return None if found is None else self.keep(unit, found)

    def run_here(self) -> Exported | None:
        """Render where no sizes have to be chosen and no long table is written out."""
        return None if self.question.takes_long else export_questions.export(self.question)

    def run(self, report: Report) -> Exported:
        """Choose and render. Raises what `export` does."""
        return self.work.run(report)

    def cut_off(self, best: Exported, why: SluiceError) -> Exported:
        """Return the export by what was solved so far; its text says that it is that."""
        return best

    def keep(self, unit: UnitOfWork, result: Exported) -> Outcome:
        """Store nothing."""
        return Outcome(render_exported(self.question, result))


class RecentExports:
    """The last exports that took long, by the digest of their question. For one thread."""

    def __init__(self) -> None:
        self._exports: OrderedDict[str, Exported] = OrderedDict()

    def find(self, operation: ExportSetting) -> Exported | None:
        """Return the export of the same question, if it is among them."""
        return self._exports.get(operation.digest) if operation.question.takes_long else None

    def add(self, operation: ExportSetting, made: Exported) -> None:
        """Keep it as the youngest, and let the oldest go.

        A long one is not kept, and none that more time would improve.
        """
        is_partial = made.chosen is not None and made.chosen.is_partial
        is_kept = len(made.content) <= MAX_RECENT_BYTES and not is_partial
        if operation.question.takes_long and is_kept:
            self._exports[operation.digest] = made
            self._exports.move_to_end(operation.digest)
        while len(self._exports) > MAX_RECENT:
            self._exports.popitem(last=False)


def export_operation(
    reference: ProfileReference,
    scope: ExportScope,
    unit: UnitOfWork,
    settings: Settings,
    *,
    table: str | None,
) -> ExportSetting:
    """Export by the table of this digest, or by the revision's active one.

    Raises NotFound, Conflict and StrategyDeclined.
    """
    revision = stored_revision(unit)(reference)
    profile = ProfileRevision(revision.profile, revision.number)
    return ExportSetting(
        export_questions.export_question(
            revision.model,
            profile,
            scope,
            export_questions.stored_table(unit, profile, table),
            fragment_cap=settings.max_fragments,
            fit=fit_of(revision, stored_fit(unit)),
        )
    )


def requested_export(request: bytes, unit: UnitOfWork, settings: Settings) -> ExportSetting:
    """Read a job's request again, by the table that it had. Raises NotFound where that is gone."""
    asked = parse_json(ExportJobIn, request)
    revision = stored_revision(unit)(asked.reference)
    profile = ProfileRevision(revision.profile, revision.number)
    table = export_questions.stored_table(unit, profile, asked.table) if asked.table else None
    scope, cap = asked.to_domain(), settings.max_fragments
    fit = fit_of(revision, stored_fit(unit))
    return ExportSetting(
        export_questions.export_question(
            revision.model, profile, scope, table, fragment_cap=cap, fit=fit
        )
    )
