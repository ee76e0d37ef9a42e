"""Stored answers as contract/answers.py sends them."""

from __future__ import annotations

from app.questions.answers import AnswerPage
from app.schemas.base import timestamp
from contract.answers import OptimizationsOut, SummaryOut
from contract.profile import ProfileRevisionOut
from models.records import AnswerSummary


def summary_out(summary: AnswerSummary) -> SummaryOut:
    """Return what a page shows of a stored answer."""
    name, revision = summary.profile_name, summary.profile_revision
    return SummaryOut(
        id=summary.id,
        created_at=timestamp(summary.created_at),
        strategy=summary.strategy.value,
        message_bytes=summary.message_bytes,
        fragments=summary.fragments,
        latency_us=summary.latency_us,
        lower_bound_us=summary.lower_bound_us,
        relative_gap=summary.relative_gap,
        status=summary.status.value,
        profile=None if name is None or revision is None else ProfileRevisionOut(name, revision),
        name=summary.name,
        note=summary.note,
    )


def answers_out(page: AnswerPage) -> OptimizationsOut:
    """Return a page of stored answers as it is sent."""
    return OptimizationsOut(tuple(map(summary_out, page.summaries)), page.after)
