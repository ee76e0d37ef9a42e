"""Export: a profile as a library's configuration; nothing is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from app.operations.export_work import ExportWork
from app.operations.operation import OperationDefaults, OperationKind, Outcome, Report, digest_of
from app.questions import settings as export_questions
from app.questions.settings import Exported, ExportQuestion, ExportScope, profile_question
from app.questions.source import Stored
from app.schemas.base import dump_json, parse_json
from app.verbs.export.answer import exported_out
from app.verbs.export.request import request_of, scope_of
from contract.jobs import ExportJobIn
from domain.profile import ProfileReference

if TYPE_CHECKING:
    from app.settings import Settings
    from domain.errors import SluiceError
    from models.session import UnitOfWork


TIME_LIMIT_S = 120.0
MAX_RECENT_BYTES = 2**18  # of what is remembered for who polls


@dataclass(frozen=True, slots=True)
class ExportSetting(OperationDefaults[Exported]):
    """One export."""

    question: ExportQuestion

    kind: ClassVar = OperationKind.EXPORT
    noun: ClassVar = "export"

    @property
    def time_s(self) -> float:
        """The limits of what it solves are less."""
        return TIME_LIMIT_S

    @property
    def request(self) -> bytes:
        """An ExportJobIn as JSON."""
        return request_of(self.question)

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
        return None if self.takes_long else export_questions.export(self.question)

    def run(self, report: Report) -> Exported:
        """Choose and render. Raises what `export` does."""
        return self.work.run(report)

    def cut_off(self, best: Exported, why: SluiceError) -> Exported:
        """Return the export by what was solved so far; its text says that it is that."""
        return best

    @property
    def takes_long(self) -> bool:
        """Whether sizes have to be chosen, or a long table is written out."""
        return self.question.takes_long

    def is_worth_it(self, result: Exported) -> bool:
        """Whether it is remembered: no long one is, and none that more time would improve."""
        is_partial = result.chosen is not None and result.chosen.is_partial
        return len(result.content) <= MAX_RECENT_BYTES and not is_partial

    def keep(self, unit: UnitOfWork, result: Exported) -> Outcome:
        """Store nothing."""
        return Outcome(dump_json(exported_out(self.question, result)))


def operation(
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
    cap = settings.max_fragments
    return ExportSetting(profile_question(reference, scope, stored, table, fragment_cap=cap))


def requested(request: bytes, stored: Stored, settings: Settings) -> ExportSetting:
    """Read a job's request again, by the table that it had. Raises NotFound where that is gone."""
    asked = parse_json(ExportJobIn, request)
    question = profile_question(
        ProfileReference.parse(asked.profile),
        scope_of(asked),
        stored,
        asked.table,
        takes_active=False,
        fragment_cap=settings.max_fragments,
    )
    return ExportSetting(question)
