"""Export a profile as a library's configuration; the last of those that took long are kept."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.operations.operation import OperationDefaults, OperationKind, Outcome, Report, digest_of
from app.operations.work import ExportWork
from app.questions import settings as export_questions
from app.questions.settings import Exported, ExportQuestion, ExportScope
from app.questions.source import Stored
from app.schemas.base import parse_json
from app.schemas.export import render_exported
from app.schemas.jobs import export_request, export_scope, revision_asked
from contract.jobs import ExportJobIn
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
    """The last exports that took long, by owner and question. For one thread."""

    def __init__(self) -> None:
        self._exports: OrderedDict[tuple[str, str], Exported] = OrderedDict()

    def find(self, owner: str, operation: ExportSetting) -> Exported | None:
        """Return the owner's export of the same question, if it is among them."""
        key = owner, operation.digest
        return self._exports.get(key) if operation.question.takes_long else None

    def add(self, owner: str, operation: ExportSetting, made: Exported) -> None:
        """Keep it as the youngest, and let the oldest go.

        A long one is not kept, and none that more time would improve.
        """
        is_partial = made.chosen is not None and made.chosen.is_partial
        is_kept = len(made.content) <= MAX_RECENT_BYTES and not is_partial
        if operation.question.takes_long and is_kept:
            self._exports[owner, operation.digest] = made
            self._exports.move_to_end((owner, operation.digest))
        while len(self._exports) > MAX_RECENT:
            self._exports.popitem(last=False)


def export_operation(
    reference: ProfileReference,
    scope: ExportScope,
    stored: Stored,
    settings: Settings,
    *,
    table: str | None,
) -> ExportSetting:
    """Export by the table of this digest, or by the revision's active one.

    Raises NotFound, Conflict and StrategyDeclined.
    """
    revision = stored.revision(reference)
    profile = ProfileRevision(revision.profile, revision.number)
    with stored.unit("profile") as unit:
        found = export_questions.stored_table(unit, profile, table)
    return ExportSetting(
        export_questions.export_question(
            revision.model,
            profile,
            scope,
            found,
            fragment_cap=settings.max_fragments,
            fit=stored.fit_of(revision),
            verification=stored.against(revision),
        )
    )


def requested_export(request: bytes, stored: Stored, settings: Settings) -> ExportSetting:
    """Read a job's request again, by the table that it had. Raises NotFound where that is gone."""
    asked = parse_json(ExportJobIn, request)
    revision = stored.revision(revision_asked(asked))
    profile = ProfileRevision(revision.profile, revision.number)
    with stored.unit("profile") as unit:
        table = export_questions.stored_table(unit, profile, asked.table) if asked.table else None
    return ExportSetting(
        export_questions.export_question(
            revision.model,
            profile,
            export_scope(asked),
            table,
            fragment_cap=settings.max_fragments,
            fit=stored.fit_of(revision),
            verification=stored.against(revision),
        )
    )
