"""Durable jobs: the requests that they keep, and what is sent of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, TypeAlias

from orjson import Fragment
from pydantic import Field

from analysis.audit import DEFAULT_TIME_LIMIT_S
from app.questions.settings import ExportQuestion, ExportScope
from app.questions.tables import TableQuestion, TableScope
from app.schemas.audit import AuditOut, WorkloadList, workload_of
from app.schemas.base import (
    Bytes,
    Input,
    Output,
    ProblemOut,
    SchemaOf,
    dump_json,
    read_output,
    timestamp,
)
from app.schemas.compare import AnyCompareOut
from app.schemas.exports import ExportedOut
from app.schemas.hide import StoredHideOut
from app.schemas.layer_costs import LayerCostsOut
from app.schemas.optimize import BestSoFarOut
from app.schemas.simulate import ThresholdsOut
from app.schemas.source import ProfileAt
from app.schemas.stages import ConstraintsIn, ConstraintsOut
from app.schemas.tables import TableIn, TableOut
from domain.profile import ProfileReference, ProfileRevision
from domain.regret import Objective
from domain.solution import relative_excess
from models.records import JobRecord, JobState


class TableJobIn(TableIn):
    """A table for a revision of a profile."""

    profile: ProfileAt

    @property
    def reference(self) -> ProfileReference:
        """The revision."""
        return ProfileReference.parse(self.profile)


class ExportJobIn(Input):
    """An export of a revision of a profile. `table` None: without a compiled table."""

    profile: ProfileAt
    target: str
    options: dict[str, str]
    min_message_bytes: Bytes | None = None
    max_message_bytes: Bytes | None = None
    workload: WorkloadList | None = None
    objective: Objective | None = None
    constraints: ConstraintsIn | None = None
    time_limit_s: float = DEFAULT_TIME_LIMIT_S
    table: Annotated[str | None, Field(pattern="^[0-9a-f]{64}$")] = None

    @property
    def reference(self) -> ProfileReference:
        """The revision."""
        return ProfileReference.parse(self.profile)

    def to_domain(self) -> ExportScope:
        """Return what is asked for. Raises InvalidInput."""
        return ExportScope(
            target=self.target,
            options=tuple(self.options.items()),
            min_message_bytes=self.min_message_bytes,
            max_message_bytes=self.max_message_bytes,
            workload=workload_of(self.workload) if self.workload else None,
            objective=self.objective,
            limits=self.constraints.to_domain() if self.constraints else None,
            time_limit_s=self.time_limit_s,
        )


def table_request(question: TableQuestion, *, activate: bool | None) -> bytes:
    """Return a TableJobIn as JSON; the question has a profile."""
    return dump_json({**_scope(question.scope), **_of(question.profile), "activate": activate})


def export_request(question: ExportQuestion) -> bytes:
    """Return an ExportJobIn as JSON; the question has a profile."""
    scope = question.scope
    return dump_json(
        {
            **_of(question.profile),
            "target": scope.target,
            "options": dict(scope.options),
            "min_message_bytes": scope.min_message_bytes,
            "max_message_bytes": scope.max_message_bytes,
            "workload": [
                {"message_bytes": size.message_bytes, "weight": size.share}
                for size in scope.workload.sizes
            ]
            if scope.workload
            else None,
            "objective": scope.objective,
            "constraints": ConstraintsOut.of(scope.limits) if scope.limits else None,
            "time_limit_s": scope.time_limit_s,
            "table": question.table.digest if question.table else None,
        }
    )


def _of(profile: ProfileRevision | None) -> dict[str, Any]:
    assert profile is not None
    return {"profile": f"{profile.name}@{profile.revision}"}


def _scope(scope: TableScope) -> dict[str, Any]:
    return {
        "min_message_bytes": scope.min_message_bytes,
        "max_message_bytes": scope.max_message_bytes,
        "relative_gap": scope.relative_gap,
        "constraints": ConstraintsOut.of(scope.limits),
        "time_limit_s": scope.time_limit_s,
    }


# --- durable jobs, out ----------------------------------------------------------------------------


class JobKind(StrEnum):
    """What a job does: an optimisation or many; a plan table, a configuration, an audit, the costs
    of a messaging layer, a message hidden behind a calculation, a grid of thresholds.
    """

    OPTIMIZE = "optimize"
    COMPARE = "compare"
    TABLE = "table"
    EXPORT = "export"
    AUDIT = "audit"
    LAYER = "layer"
    HIDE = "hide"
    THRESHOLDS = "thresholds"


@dataclass(frozen=True)
class JobPointOut(Output):
    """What an optimisation knew from this moment on."""

    elapsed_s: float
    best_latency_us: float
    lower_bound_us: float


@dataclass(frozen=True)
class JobProgressOut(Output):
    """How long a job has run, and how good its best answer is; null before there is one.

    `history` is how an optimisation came there: each improvement, thinned out where there are many.
    Steps are counted of a comparison (cells), a compilation (thousandths of it), an audit and an
    export (messages), of a messaging layer (solves), and of thresholds (evaluations).
    """

    elapsed_s: float
    best_latency_us: float | None
    lower_bound_us: float | None
    relative_gap: float | None
    history: Annotated[Fragment, SchemaOf(tuple[JobPointOut, ...])]
    steps_done: int | None
    steps_total: int | None

    @classmethod
    def of(cls, job: JobRecord) -> JobProgressOut:
        """Return how far a job has come by now."""
        best_us, bound_us = job.best_latency_us, job.lower_bound_us
        gap = None
        if best_us is not None and bound_us is not None:
            gap = relative_excess(best_us, bound_us, bound_us)
        return cls(
            elapsed_s=round(elapsed_s(job), 3),
            best_latency_us=best_us,
            lower_bound_us=bound_us,
            relative_gap=gap,
            history=Fragment(job.history or b"[]"),
            steps_done=job.steps_done,
            steps_total=job.steps_total,
        )


def elapsed_s(job: JobRecord) -> float:
    """Return how long a job has run, or ran."""
    if job.started_at is None:
        return 0.0
    return max(0.0, ((job.finished_at or datetime.now(UTC)) - job.started_at).total_seconds())


@dataclass(frozen=True)
class JobOut(Output):
    """A job. `answer_id` names the stored answer once it has one, also after a cancel.

    `best` is the best so far of an optimisation; `comparison`, `table`, `audit` and
    `export` are the results of these, at their end.
    """

    id: str
    kind: JobKind
    state: JobState
    created_at: str
    started_at: str | None
    finished_at: str | None
    attempts: int
    cancel_requested: bool
    progress: JobProgressOut
    best: Annotated[Fragment | None, SchemaOf(BestSoFarOut | None)]
    answer_id: str | None
    comparison: Annotated[Fragment | None, SchemaOf(AnyCompareOut | None)]
    table: Annotated[Fragment | None, SchemaOf(TableOut | None)]
    audit: Annotated[Fragment | None, SchemaOf(AuditOut | None)]
    export: Annotated[Fragment | None, SchemaOf(ExportedOut | None)]
    error: Annotated[Fragment | None, SchemaOf(ProblemOut | None)]

    @classmethod
    def of(cls, job: JobRecord) -> JobOut:
        """Return a job as it is sent; what is stored as JSON goes in as it is."""
        kind, result = JobKind(job.kind), _fragment(job.best)
        found = JobOut(
            id=job.id,
            kind=kind,
            state=job.state,
            created_at=timestamp(job.created_at),
            started_at=timestamp(job.started_at) if job.started_at else None,
            finished_at=timestamp(job.finished_at) if job.finished_at else None,
            attempts=job.claim,
            cancel_requested=job.cancel_requested,
            progress=JobProgressOut.of(job),
            best=result if kind is JobKind.OPTIMIZE else None,
            answer_id=job.answer_id,
            comparison=result if kind is JobKind.COMPARE else None,
            table=result if kind is JobKind.TABLE else None,
            audit=result if kind is JobKind.AUDIT else None,
            export=result if kind is JobKind.EXPORT else None,
            error=_fragment(job.error),
        )
        match kind:
            case JobKind.LAYER:
                return LayerJobOut(**vars(found), layer_costs=result)
            case JobKind.HIDE:
                return HideJobOut(**vars(found), hidden=result)
            case JobKind.THRESHOLDS:
                return ThresholdsJobOut(**vars(found), thresholds=result)
            case _:
                return found


@dataclass(frozen=True)
class LayerJobOut(JobOut):
    """A job about a messaging layer, whose result is `layer_costs`. No other kind has this field:
    the documents of the others stay as they were before there was this one.
    """

    layer_costs: Annotated[Fragment | None, SchemaOf(LayerCostsOut | None)]


@dataclass(frozen=True)
class HideJobOut(JobOut):
    """A job about a message behind a calculation; `hidden` is its answer, which is stored too."""

    hidden: Annotated[Fragment | None, SchemaOf(StoredHideOut | None)]


@dataclass(frozen=True)
class ThresholdsJobOut(JobOut):
    """A job that prices thresholds or pulse sizes; `thresholds` is its result."""

    thresholds: Annotated[Fragment | None, SchemaOf(ThresholdsOut | None)]


AnyJobOut: TypeAlias = JobOut | LayerJobOut | HideJobOut | ThresholdsJobOut


@dataclass(frozen=True)
class JobsOut(Output):
    """Jobs, the newest first."""

    items: tuple[AnyJobOut, ...]


def _fragment(stored: bytes | None) -> Fragment | None:
    return None if stored is None else Fragment(stored)


def problem_of(job: JobRecord) -> ProblemOut | None:
    """Return why a job failed, None where it did not. Raises UnreadableRecord."""
    return None if job.error is None else read_output(ProblemOut, job.error)


def history_of(job: JobRecord) -> tuple[JobPointOut, ...]:
    """Return the improvements of an optimisation. Raises UnreadableRecord."""
    return read_output(_History, b'{"points":%b}' % (job.history or b"[]")).points


@dataclass(frozen=True)
class _History(Output):
    points: tuple[JobPointOut, ...]
