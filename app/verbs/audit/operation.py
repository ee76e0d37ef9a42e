"""Audit: prepared from a request and the store, run anywhere, nothing kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from analysis.audit import Audit, AuditQuestion, audit, ended, messages_of, solve_part
from analysis.best_known import SolvedPart
from app.operations.call import Call
from app.operations.operation import (
    OperationDefaults,
    OperationKind,
    Outcome,
    PartDefaults,
    Report,
    digest_of,
)
from app.questions.question import prepare
from app.questions.settings import audit_question
from app.questions.source import Source, Stored
from app.schemas.base import dump_json, parse_json
from app.schemas.source import as_job, options_of, source_of
from app.verbs.audit.answer import audited, audited_items
from app.verbs.audit.request import (
    audit_question_of,
    audit_scope,
    audited_cap,
    cap_question,
    is_of_items,
)
from contract.audit import AuditIn, AuditOut, ItemsAuditOut
from domain.aggregate import Aggregate
from domain.pipeline import Pipeline
from domain.profile import ProfileRevision

if TYPE_CHECKING:
    from analysis.item_audit import ItemAudit, ItemAuditQuestion
    from app.questions.items import ItemsAcross
    from app.settings import Settings
    from domain.errors import SluiceError
    from models.session import UnitOfWork

TIME_LIMIT_S = 120.0
_MESSAGES_A_PART = 16


@dataclass(frozen=True, slots=True)
class AuditSetting(OperationDefaults[Audit]):
    """One audit. `request_for` gives its request with the profile pinned to a revision."""

    question: AuditQuestion
    request_for: Callable[[ProfileRevision | None], bytes]
    known: SolvedPart | None = None

    kind: ClassVar = OperationKind.AUDIT
    noun: ClassVar = "audit"

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
    def work(self) -> Call[Audit]:
        return Call(partial(audit, known=self.known), self.question, ("steps", "best"))

    def run(self, report: Report) -> Audit:
        """Audit. Raises SluiceError."""
        return self.work.run(report)

    def cut_off(self, best: Audit, why: SluiceError) -> Audit:
        """Return the audit by what was solved so far, with the note why it is that."""
        return ended(best, why)

    def document(self, result: Audit) -> AuditOut:
        """Return the audit as it is sent."""
        return audited(result)

    def keep(self, unit: UnitOfWork, result: Audit) -> Outcome:
        """Store nothing."""
        return Outcome(dump_json(self.document(result)))

    def split(self) -> Sequence[AuditPart]:
        """Return parts that take about as long as each other; none where all stages are lines,
        whose messages are solved within milliseconds.
        """
        model, sizes = self.question.model, messages_of(self.question)
        are_lines = isinstance(model, Pipeline) and all(stage.is_line for stage in model.stages)
        if are_lines or isinstance(model, Aggregate):
            return ()
        number = -(-len(sizes) // _MESSAGES_A_PART)
        return [AuditPart(self.question, sizes[at::number]) for at in range(number)]

    def join(self, results: Sequence[SolvedPart]) -> AuditSetting:
        """Return the audit of what is known by now."""
        return replace(self, known=SolvedPart.of(results))


@dataclass(frozen=True, slots=True)
class AuditPart(PartDefaults[SolvedPart]):
    """Some messages of an audit as an operation of its own."""

    question: AuditQuestion
    sizes: tuple[int, ...]

    kind: ClassVar = OperationKind.AUDIT
    noun: ClassVar = "audit"

    @property
    def time_s(self) -> float:
        """Its own limit is less."""
        return TIME_LIMIT_S

    @property
    def digest(self) -> str:
        return digest_of(self.kind, self.question.digest(), self.sizes)

    @property
    def work(self) -> Call[SolvedPart]:
        return Call(partial(solve_part, sizes=self.sizes), self.question, ("steps",))

    def run(self, report: Report) -> SolvedPart:
        """Solve them."""
        return self.work.run(report)


@dataclass(frozen=True, slots=True)
class AuditCap(OperationDefaults["ItemAudit"]):
    """One audit of a cap in use over sequences of items; `across` are these in the stages."""

    question: ItemAuditQuestion
    across: tuple[ItemsAcross, ...]
    request_for: Callable[[ProfileRevision | None], bytes]

    kind: ClassVar = OperationKind.AUDIT
    noun: ClassVar = "audit"

    @property
    def time_s(self) -> float:
        """The audit's own limit is less."""
        return TIME_LIMIT_S

    @property
    def request(self) -> bytes:
        """An AuditIn as JSON."""
        return self.request_for(self.across[0].found.profile)

    @property
    def digest(self) -> str:
        asked, digests = self.question, [one.digest for one in self.across]
        how = (asked.weights, asked.cap_bytes, asked.fill, asked.objective)
        limit = (asked.max_regret, asked.reference, asked.time_limit_s)
        return digest_of(self.kind, "items", digests, how, limit)

    @property
    def work(self) -> Call[ItemAudit]:
        from analysis.item_audit import audit_cap

        return Call(audit_cap, self.question)

    def run_here(self) -> ItemAudit | None:
        """Do it where that is quick."""
        from analysis.item_audit import audit_cap
        from app.questions.items import are_quick

        return audit_cap(self.question) if are_quick(self.question.problems) else None

    def run(self, report: Report) -> ItemAudit:
        """Audit. Raises Infeasible."""
        return self.work.run(report)

    def document(self, result: ItemAudit) -> ItemsAuditOut:
        """Return the audit as it is sent."""
        return audited_items(result, self.across)

    def keep(self, unit: UnitOfWork, result: ItemAudit) -> Outcome:
        """Store nothing."""
        return Outcome(dump_json(self.document(result)))


def operation(
    asked: AuditIn, stored: Stored, settings: Settings, costs: Source | None = None
) -> AuditSetting | AuditCap:
    """Find or fit the model; `costs` stand in place of those that the request names.

    Raises NotFound, InvalidInput, and what a fit does; for items ItemsDeclined, too.
    """
    if is_of_items(asked):
        return _of_items(asked, stored, settings, costs)
    scope, cap = audit_scope(asked), settings.max_fragments
    question = audit_question_of(asked)
    if costs is not None:
        question = replace(question, source=costs)
    prepared = prepare(question, stored, fragment_cap=cap, machines=True)
    return AuditSetting(audit_question(prepared, scope, fragment_cap=cap), partial(as_job, asked))


def _of_items(asked: AuditIn, stored: Stored, settings: Settings, costs: Source | None) -> AuditCap:
    from app.questions.items import sequences_across

    cap = audited_cap(asked)
    across = sequences_across(
        costs or source_of(asked),
        options_of(asked),
        stored,
        dict(zip(cap.places, cap.sequences, strict=True)),
        settings.max_fragments,
    )
    question = cap_question(asked, cap, [one.problem for one in across])
    return AuditCap(question, across, partial(as_job, asked))


def requested(request: bytes, stored: Stored, settings: Settings) -> AuditSetting | AuditCap:
    """Read a job's request again. Raises NotFound where the profile is gone."""
    return operation(parse_json(AuditIn, request), stored, settings)
