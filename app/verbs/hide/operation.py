"""Hide: prepared from a request and the store, run anywhere, its answer kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from analysis.hidden_ratios import ModelHidden, ModelQuestion, hide_model
from analysis.hiding import Hidden, HideQuestion, hide
from analysis.premise import unknown_overlap
from app.execution.engine import Pool
from app.operations.call import Call
from app.operations.operation import OperationDefaults, OperationKind, Outcome, Report, digest_of
from app.operations.solves import GRACE_S
from app.questions.question import PreparedQuestion, prepare
from app.questions.source import Source, Stored
from app.schemas.base import dump_json, parse_json
from app.schemas.source import as_job, options_of, source_of
from app.schemas.stages import limits_of
from app.verbs.hide import answer
from app.verbs.hide.request import (
    AskedHiddenItems,
    hidden_items,
    hidden_items_question,
    model_question,
    pipeline_question,
    source_question,
)
from contract.hide import HideIn, HideOut, ItemsHideOut
from domain.profile import ProfileRevision
from domain.solution import Notice, Status
from domain.verification import said_of
from models.identifiers import known_identifier, new_id
from models.records import HiddenAnswerRecord

if TYPE_CHECKING:
    from analysis.hidden_items import HiddenItems, HiddenItemsQuestion
    from app.questions.items import ItemsAcross
    from app.settings import Settings
    from domain.errors import SluiceError
    from models.session import Store, UnitOfWork

_QUICK_STAGES = 3  # with the calculation: labels of more may take long
HIDE_ITEMS_GRACE_S = GRACE_S + 2.0  # and a walk over all caps


@dataclass(frozen=True, slots=True)
class Hide(OperationDefaults[Hidden | ModelHidden]):
    """One question; `prepared` is None where the paper's terms stand in place of a pipeline.

    `request_for` gives its request with the profile pinned to a revision.
    """

    question: HideQuestion | ModelQuestion
    prepared: PreparedQuestion | None
    request_for: Callable[[ProfileRevision | None], bytes]

    kind: ClassVar = OperationKind.HIDE
    noun: ClassVar = "search for the hidden fragments"
    pool: ClassVar = Pool.SOLVE  # clients wait for it briefly
    stores: ClassVar = True  # the answer

    @property
    def time_s(self) -> float:
        """The limit asked for, and a grace."""
        limit_s = self.question.time_limit_s if isinstance(self.question, HideQuestion) else 1.0
        return limit_s + GRACE_S

    @property
    def request(self) -> bytes:
        """A HideIn as JSON."""
        return self.request_for(None if self.prepared is None else self.prepared.profile)

    @property
    def digest(self) -> str:
        return digest_of(self.kind, self.question, self._source_digest)

    @property
    def answer_digest(self) -> str:
        """Equal exactly for questions that one stored answer serves, whatever their time limits."""
        asked = self.question
        if isinstance(asked, HideQuestion):
            asked = replace(asked, time_limit_s=0.0)
        return digest_of(self.kind, asked, self._source_digest)

    @property
    def _source_digest(self) -> str | None:
        return None if self.prepared is None else self.prepared.digest

    @property
    def work(self) -> Call[Hidden | ModelHidden]:
        if isinstance(self.question, HideQuestion):
            return Call(hide, self.question, ("best",))
        return Call(hide_model, self.question)

    def run(self, report: Report) -> Hidden | ModelHidden:
        """Search. Raises SluiceError."""
        return self.work.run(report)

    def run_here(self) -> ModelHidden | None:
        """Compute what needs no search."""
        return hide_model(self.question) if isinstance(self.question, ModelQuestion) else None

    def unreported(self) -> Hidden | ModelHidden:
        """Return what is found without time for any search: the closed forms and their bounds."""
        if isinstance(self.question, ModelQuestion):
            return hide_model(self.question)
        return hide(replace(self.question, time_limit_s=0.0))

    def cut_off(self, best: Hidden | ModelHidden, why: SluiceError) -> Hidden | ModelHidden:
        """Return the best so far; its status says that time ended the search."""
        return best

    def stored(self, unit: UnitOfWork) -> Outcome | None:
        """Return a stored answer to the identical question that time did not end."""
        record = unit.hidden_answers.find(self.answer_digest)
        return None if record is None else Outcome(record.body, hidden_id=record.id)

    def document(self, result: Hidden | ModelHidden) -> HideOut:
        """Return the answer as it is sent."""
        if isinstance(result, ModelHidden):
            return answer.of_model(result)
        assert self.prepared is not None, "a pipeline has been prepared"
        fit, said = self.prepared.fit, said_of(self.prepared.verification)
        of_fit: tuple[Notice, ...] = ()
        if fit is not None:
            of_fit = (*unknown_overlap(fit.overlap, len(fit.stages)), *fit.notices)
        return answer.of_pipeline(result, self.prepared.profile, of_fit, said)

    def keep(self, unit: UnitOfWork, result: Hidden | ModelHidden) -> Outcome:
        """Store the answer."""
        id, created_at = new_id(), datetime.now(UTC)
        record = HiddenAnswerRecord(
            id=id,
            created_at=created_at,
            question_digest=self.answer_digest,
            cut_off=isinstance(result, Hidden) and result.status is Status.TIME_LIMIT,
            body=dump_json(answer.stored(self.document(result), id=id, created_at=created_at)),
        )
        unit.hidden_answers.add(record)
        return Outcome(record.body, hidden_id=id)


@dataclass(frozen=True, slots=True)
class HideItems(OperationDefaults["HiddenItems"]):
    """One question about items beside a calculation; `across` are they in their stages."""

    question: HiddenItemsQuestion
    asked: AskedHiddenItems
    across: ItemsAcross
    request_for: Callable[[ProfileRevision | None], bytes]

    kind: ClassVar = OperationKind.HIDE
    noun: ClassVar = "search for the hidden fragments"
    pool: ClassVar = Pool.SOLVE
    stores: ClassVar = True  # the answer

    @property
    def time_s(self) -> float:
        """The limit asked for, the walk over all caps, and a grace."""
        return self.question.time_limit_s + HIDE_ITEMS_GRACE_S

    @property
    def request(self) -> bytes:
        """A HideIn as JSON."""
        return self.request_for(self.across.found.profile)

    @property
    def digest(self) -> str:
        return digest_of(self.kind, self.answer_digest, self.question.time_limit_s)

    @property
    def answer_digest(self) -> str:
        """Equal exactly for questions that one stored answer serves, whatever their time limits."""
        asked = self.question
        beside = (asked.work, asked.fragment_overhead_us, asked.is_loading)
        caps = (asked.fill, asked.cap_bytes, asked.relative_gap)
        return digest_of(
            self.kind, "items", self.across.digest, self.asked.given.digest, beside, caps
        )

    @property
    def work(self) -> Call[HiddenItems]:
        from analysis.hidden_items import hide_items

        return Call(hide_items, self.question)

    def run_here(self) -> HiddenItems | None:
        """Do it where that is quick."""
        from analysis.hidden_items import hide_items
        from app.questions.items import are_quick

        problem = self.question.with_calculation()
        is_quick = len(problem.pipeline) <= _QUICK_STAGES and are_quick((problem,))
        return hide_items(self.question) if is_quick else None

    def run(self, report: Report) -> HiddenItems:
        """Search. Raises Infeasible."""
        return self.work.run(report)

    def stored(self, unit: UnitOfWork) -> Outcome | None:
        """Return a stored answer to the identical question that time did not end."""
        record = unit.hidden_answers.find(self.answer_digest)
        return None if record is None else Outcome(record.body, hidden_id=record.id)

    def document(self, result: HiddenItems) -> ItemsHideOut:
        """Return the answer as it is sent; it is stored nowhere."""
        return self._answer(result, new_id(), datetime.now(UTC))

    def keep(self, unit: UnitOfWork, result: HiddenItems) -> Outcome:
        """Store the answer."""
        id, created_at = new_id(), datetime.now(UTC)
        record = HiddenAnswerRecord(
            id=id,
            created_at=created_at,
            question_digest=self.answer_digest,
            cut_off=result.run.solution.cut_off,
            body=dump_json(self._answer(result, id, created_at)),
        )
        unit.hidden_answers.add(record)
        return Outcome(record.body, hidden_id=id)

    def _answer(self, result: HiddenItems, id: str, created_at: datetime) -> ItemsHideOut:
        return answer.of_items(result, self.asked.given, self.across, id=id, created_at=created_at)


def operation(
    asked: HideIn, stored: Stored, settings: Settings, costs: Source | None = None
) -> Hide | HideItems:
    """Find or fit the pipeline; `costs` stand in place of those that the request names.

    Raises NotFound, InvalidInput, and what a fit does; for items ItemsDeclined, too.
    """
    model = model_question(asked)
    if model is not None:
        return Hide(model, None, partial(as_job, asked))
    if asked.items is not None:
        return _of_items(asked, stored, settings, costs)
    question = source_question(asked)
    if costs is not None:
        question = replace(question, source=costs)
    prepared = prepare(question, stored, fragment_cap=settings.max_fragments)
    hidden = pipeline_question(asked, prepared.problem, prepared.uncertain)
    return Hide(hidden, prepared, partial(as_job, asked))


def _of_items(asked: HideIn, stored: Stored, settings: Settings, costs: Source | None) -> HideItems:
    from app.questions.items import items_across

    items = hidden_items(asked)
    source, limits = costs or source_of(asked), limits_of(asked.constraints, items=True)
    across = items_across(
        source,
        options_of(asked),
        stored,
        items.sequence,
        limits,
        settings.max_fragments,
        max_fragment_items=asked.constraints.max_fragment_items,
    )
    question = hidden_items_question(asked, items, across.problem)
    return HideItems(question, items, across, partial(as_job, asked))


def requested(request: bytes, stored: Stored, settings: Settings) -> Hide | HideItems:
    """Read a job's request again. Raises NotFound where the profile is gone."""
    return operation(parse_json(HideIn, request), stored, settings)


def stored_answer(store: Store, identifier: str) -> bytes:
    """Return a stored answer, byte for byte as it was first sent. Raises NotFound."""
    known_identifier(identifier, "stored answer")
    with store.reading() as unit:
        return unit.hidden_answers.get(identifier).body
