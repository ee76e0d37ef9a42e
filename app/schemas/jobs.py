"""Durable jobs, out."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import orjson

from app.schemas.audit import AuditOut
from app.schemas.base import Output, timestamp
from app.schemas.compare import CompareOut
from app.schemas.exports import ExportedOut
from app.schemas.problems import ProblemOut
from app.schemas.tables import TableOut
from domain.solution import Status, Strategy, relative_excess
from models.records import JobRecord, JobState


class JobKind(StrEnum):
    """What a job does: an optimisation or many; a plan table, a configuration, an audit."""

    OPTIMIZE = "optimize"
    COMPARE = "compare"
    TABLE = "table"
    EXPORT = "export"
    AUDIT = "audit"


class BestSoFarOut(Output):
    """The best schedule that a job has found, with the bound proven so far."""

    strategy: Strategy
    message_bytes: int
    fragment_bytes: list[int]
    fragments: int
    latency_us: float
    unrounded_latency_us: float | None
    lower_bound_us: float
    relative_gap: float
    rounding_gap: float | None
    status: Status
    limited_by: str | None
    levels: list[list[int]] | None
    latency_paper_us: float | None


class JobPointOut(Output):
    """What an optimisation knew from this moment on."""

    elapsed_s: float
    best_latency_us: float
    lower_bound_us: float


class JobProgressOut(Output):
    """How long a job has run, and how good its best answer is; null before there is one.

    `history` is how an optimisation came there: each improvement, thinned out where there are many.
    Steps are counted of a comparison (cells), a compilation (thousandths of it), an audit and an
    export (messages).
    """

    elapsed_s: float
    best_latency_us: float | None
    lower_bound_us: float | None
    relative_gap: float | None
    history: list[JobPointOut]
    steps_done: int | None
    steps_total: int | None


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
    best: BestSoFarOut | None
    answer_id: str | None
    comparison: CompareOut | None
    table: TableOut | None
    audit: AuditOut | None
    export: ExportedOut | None
    error: ProblemOut | None


# What a job's row holds as `best`, by its kind.
_HELD = {
    JobKind.OPTIMIZE: "best",
    JobKind.COMPARE: "comparison",
    JobKind.TABLE: "table",
    JobKind.AUDIT: "audit",
    JobKind.EXPORT: "export",
}


def job_document(job: JobRecord) -> dict[str, Any]:
    """JobOut."""
    results = dict.fromkeys(_HELD.values())
    results[_HELD[JobKind(job.kind)]] = _fragment(job.best)
    return {
        "id": job.id,
        "kind": job.kind,
        "state": job.state,
        "created_at": timestamp(job.created_at),
        "started_at": timestamp(job.started_at) if job.started_at else None,
        "finished_at": timestamp(job.finished_at) if job.finished_at else None,
        "attempts": job.claim,
        "cancel_requested": job.cancel_requested,
        "progress": _progress_document(job),
        "best": results.pop("best"),
        "answer_id": job.answer_id,
        **results,
        "error": _fragment(job.error),
    }


def _progress_document(job: JobRecord) -> dict[str, Any]:
    end = job.finished_at or datetime.now(UTC)
    elapsed_s = (end - job.started_at).total_seconds() if job.started_at else 0.0
    best_us, bound_us = job.best_latency_us, job.lower_bound_us
    gap = None
    if best_us is not None and bound_us is not None:
        gap = relative_excess(best_us, bound_us, bound_us)
    return {
        "elapsed_s": round(max(0.0, elapsed_s), 3),
        "best_latency_us": best_us,
        "lower_bound_us": bound_us,
        "relative_gap": gap,
        "history": _fragment(job.history) or [],
        "steps_done": job.steps_done,
        "steps_total": job.steps_total,
    }


def _fragment(stored: bytes | None) -> Any:
    # Stored documents are already JSON: they go into the answer as they are.
    return None if stored is None else orjson.Fragment(stored)
