"""Thresholds: prepared from a request and the store, run anywhere, nothing kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from analysis.thresholds import ThresholdQuestion, Thresholds, price_thresholds
from app.execution.engine import Pool
from app.operations.call import Call
from app.operations.operation import OperationDefaults, OperationKind, Outcome, Report, digest_of
from app.operations.solves import GRACE_S
from app.questions.simulate import pipeline_of
from app.questions.source import Source, Stored
from app.schemas.base import dump_json, parse_json
from app.schemas.source import as_job, options_of, source_of
from app.verbs.thresholds import answer
from app.verbs.thresholds.request import grid_question
from contract.thresholds import ThresholdsIn
from domain.profile import ProfileRevision

if TYPE_CHECKING:
    from app.settings import Settings
    from domain.errors import SluiceError
    from models.session import UnitOfWork


@dataclass(frozen=True, slots=True)
class PriceThresholds(OperationDefaults[Thresholds]):
    """One grid of thresholds or pulse sizes."""

    question: ThresholdQuestion
    request_for: Callable[[ProfileRevision | None], bytes]

    kind: ClassVar = OperationKind.THRESHOLDS
    noun: ClassVar = "table of thresholds"
    pool: ClassVar = Pool.SOLVE  # clients wait for it briefly

    @property
    def time_s(self) -> float:
        """The limit asked for, and a grace."""
        return self.question.time_limit_s + GRACE_S

    @property
    def request(self) -> bytes:
        """A ThresholdsIn as JSON."""
        return self.request_for(self.question.profile)

    @property
    def digest(self) -> str:
        return digest_of(self.kind, self.question)

    @property
    def work(self) -> Call[Thresholds]:
        return Call(price_thresholds, self.question, ("steps", "best"))

    def run(self, report: Report) -> Thresholds:
        """Price every choice; its steps are evaluations."""
        return self.work.run(report)

    def unreported(self) -> Thresholds:
        """Return what is known without any price."""
        return price_thresholds(replace(self.question, time_limit_s=0.0))

    def cut_off(self, best: Thresholds, why: SluiceError) -> Thresholds:
        """Return what was priced so far, which says that time ended."""
        return replace(best, question=self.question)

    def keep(self, unit: UnitOfWork, result: Thresholds) -> Outcome:
        """Store nothing."""
        return Outcome(dump_json(answer.priced(result)))


def operation(
    asked: ThresholdsIn, stored: Stored, settings: Settings, costs: Source | None = None
) -> PriceThresholds:
    """Find or fit the pipeline; `costs` stand in place of those that the request names.

    Raises NotFound, InvalidInput, what a fit does, and StrategyDeclined for an aggregate.
    """
    pipeline, found = pipeline_of(costs or source_of(asked), options_of(asked), stored)
    question = grid_question(
        asked,
        pipeline,
        found.profile,
        max_pulses=settings.max_fragments,
        said=found.said,
        overlap=found.overlap,
    )
    return PriceThresholds(question, partial(as_job, asked))


def requested(request: bytes, stored: Stored, settings: Settings) -> PriceThresholds:
    """Read a job's request again. Raises NotFound where the profile is gone."""
    return operation(parse_json(ThresholdsIn, request), stored, settings)
