"""Hide: a message behind a calculation, and the fragments for it. Nothing is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.hidden_ratios import ModelHidden, ModelQuestion
from analysis.hiding import Hidden, HideQuestion
from app.execution.engine import Pool
from app.operations.operation import OperationDefaults, OperationKind, Outcome, Report, digest_of
from app.operations.solves import GRACE_S
from app.operations.work import HideWork
from app.questions.optimize import (
    FindFit,
    FindRevision,
    PreparedQuestion,
    prepare,
    stored_fit,
    stored_revision,
)
from app.schemas.base import dump_json
from app.schemas.hide import HideIn, HideOut

if TYPE_CHECKING:
    from app.settings import Settings
    from models.session import UnitOfWork


@dataclass(frozen=True, slots=True)
class Hide(OperationDefaults[Hidden | ModelHidden]):
    """One question; `prepared` is None where the paper's terms stand in place of a pipeline."""

    question: HideQuestion | ModelQuestion
    prepared: PreparedQuestion | None

    @property
    def kind(self) -> OperationKind:
        return OperationKind.HIDE

    @property
    def noun(self) -> str:
        return "search for the hidden fragments"

    @property
    def pool(self) -> Pool:
        """Clients wait for it briefly."""
        return Pool.SOLVE

    @property
    def time_s(self) -> float:
        """The limit asked for, and a grace."""
        limit_s = self.question.time_limit_s if isinstance(self.question, HideQuestion) else 1.0
        return limit_s + GRACE_S

    @property
    def request(self) -> bytes:
        """None: there are no jobs of it."""
        return b""

    @property
    def digest(self) -> str:
        profile = None if self.prepared is None else self.prepared.profile
        return digest_of(self.kind, self.question, profile)

    @property
    def work(self) -> HideWork:
        return HideWork(self.question)

    def run_here(self) -> Hidden | ModelHidden | None:
        """Compute what needs no search."""
        return self.work.run_quickly()

    def run(self, report: Report) -> Hidden | ModelHidden:
        """Search. Raises SluiceError."""
        return self.work.run(report)

    def document(self, result: Hidden | ModelHidden) -> HideOut:
        """Return the answer as it is sent."""
        if isinstance(result, ModelHidden):
            return HideOut.of_model(result)
        assert self.prepared is not None, "a pipeline has been prepared"
        fit = self.prepared.fit
        return HideOut.of(result, self.prepared.profile, () if fit is None else fit.notices)

    def keep(self, unit: UnitOfWork, result: Hidden | ModelHidden) -> Outcome:
        """Store nothing."""
        return Outcome(dump_json(self.document(result)))


def hide_operation(asked: HideIn, unit: UnitOfWork, settings: Settings) -> Hide:
    """Find or fit the pipeline. Raises NotFound, InvalidInput, and what a fit does."""
    return prepared_hide(
        asked, stored_revision(unit), stored_fit(unit), fragment_cap=settings.max_fragments
    )


def prepared_hide(
    asked: HideIn, find: FindRevision, find_fit: FindFit | None, *, fragment_cap: int
) -> Hide:
    """Return the operation by these ways to find what is stored. Raises as `hide_operation`."""
    model = asked.to_model()
    if model is not None:
        return Hide(model, None)
    prepared = prepare(asked.to_question(), find, fragment_cap=fragment_cap, find_fit=find_fit)
    return Hide(asked.to_domain(prepared.problem), prepared)
