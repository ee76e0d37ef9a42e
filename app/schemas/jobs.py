"""What contract/jobs.py declares, as jobs keep it, and jobs as they are sent."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from orjson import Fragment

from app.questions.settings import ExportQuestion, ExportScope
from app.questions.tables import TableQuestion, TableScope
from app.schemas.base import dump_json, read_output, timestamp
from app.schemas.settings import workload_of
from app.schemas.stages import constraints_out, limits_of
from contract.declare import Output
from contract.jobs import (
    AnyJobOut,
    ExportJobIn,
    HideJobOut,
    JobOut,
    JobPointOut,
    JobProgressOut,
    LayerJobOut,
    TableJobIn,
    ThresholdsJobOut,
)
from contract.problem import ProblemOut
from domain.profile import ProfileReference, ProfileRevision
from domain.regret import Objective
from domain.solution import relative_excess
from models.records import JobRecord


def revision_asked(asked: TableJobIn | ExportJobIn) -> ProfileReference:
    """Return the revision that a job is about."""
    return ProfileReference.parse(asked.profile)


def export_scope(asked: ExportJobIn) -> ExportScope:
    """Return what is asked for. Raises InvalidInput."""
    return ExportScope(
        target=asked.target,
        options=tuple(asked.options.items()),
        min_message_bytes=asked.min_message_bytes,
        max_message_bytes=asked.max_message_bytes,
        workload=workload_of(asked.workload) if asked.workload else None,
        objective=None if asked.objective is None else Objective(asked.objective),
        limits=limits_of(asked.constraints) if asked.constraints else None,
        time_limit_s=asked.time_limit_s,
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
            "constraints": constraints_out(scope.limits) if scope.limits else None,
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
        "constraints": constraints_out(scope.limits),
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


def progress_out(job: JobRecord) -> JobProgressOut:
    """Return how far a job has come by now."""
    best_us, bound_us = job.best_latency_us, job.lower_bound_us
    gap = None
    if best_us is not None and bound_us is not None:
        gap = relative_excess(best_us, bound_us, bound_us)
    return JobProgressOut(
        elapsed_s=round(elapsed_s(job), 3),
        best_latency_us=best_us,
        lower_bound_us=bound_us,
        relative_gap=gap,
        history=_fragment(job.history or b"[]"),
        steps_done=job.steps_done,
        steps_total=job.steps_total,
    )


def elapsed_s(job: JobRecord) -> float:
    """Return how long a job has run, or ran."""
    if job.started_at is None:
        return 0.0
    return max(0.0, ((job.finished_at or datetime.now(UTC)) - job.started_at).total_seconds())


def job_out(job: JobRecord) -> AnyJobOut:
    """Return a job as it is sent; what is stored as JSON goes in as it is."""
    kind, result = JobKind(job.kind), _fragment(job.best)
    found = JobOut(
        id=job.id,
        kind=kind.value,
        state=job.state.value,
        created_at=timestamp(job.created_at),
        started_at=timestamp(job.started_at) if job.started_at else None,
        finished_at=timestamp(job.finished_at) if job.finished_at else None,
        attempts=job.claim,
        cancel_requested=job.cancel_requested,
        progress=progress_out(job),
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


def _fragment(stored: bytes | None) -> Any:
    """Return what stands in the place of an answer that is JSON already."""
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
