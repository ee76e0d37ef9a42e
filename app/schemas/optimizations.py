"""The listing of stored answers."""

from __future__ import annotations

from typing import Any

from app.schemas.base import Output, timestamp
from app.schemas.fits import ProfileRevisionOut
from domain.solution import Status, Strategy
from models.records import AnswerSummary


class SummaryOut(Output):
    """What a page shows of a stored answer; GET /optimizations/{id} gives all of it."""

    id: str
    created_at: str
    strategy: Strategy
    message_bytes: int
    fragments: int
    latency_us: float
    lower_bound_us: float
    relative_gap: float
    status: Status
    profile: ProfileRevisionOut | None


class OptimizationsOut(Output):
    """A page of stored answers, newest first; `next_cursor` is null at the end."""

    items: list[SummaryOut]
    next_cursor: str | None


def optimizations_document(
    summaries: tuple[AnswerSummary, ...], next_cursor: str | None
) -> dict[str, Any]:
    """OptimizationsOut."""
    return {
        "items": [_summary_document(summary) for summary in summaries],
        "next_cursor": next_cursor,
    }


def _summary_document(summary: AnswerSummary) -> dict[str, Any]:
    return {
        "id": summary.id,
        "created_at": timestamp(summary.created_at),
        "strategy": summary.strategy,
        "message_bytes": summary.message_bytes,
        "fragments": summary.fragments,
        "latency_us": summary.latency_us,
        "lower_bound_us": summary.lower_bound_us,
        "relative_gap": summary.relative_gap,
        "status": summary.status,
        "profile": (
            {"name": summary.profile_name, "revision": summary.profile_revision}
            if summary.profile_name is not None
            else None
        ),
    }
