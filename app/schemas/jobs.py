"""Jobs as contract/jobs.py sends them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from orjson import Fragment

from app.schemas.base import read_output, timestamp
from contract.declare import Output
from contract.jobs import (
    AnyJobOut,
    HideJobOut,
    JobOut,
    JobPointOut,
    JobProgressOut,
    LayerJobOut,
    ThresholdsJobOut,
)
from contract.problem import ProblemOut
from domain.solution import relative_excess
from models.records import JobRecord


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
