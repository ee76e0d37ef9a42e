# app/verbs/curve/request.py
"""What contract/curve.py declares, as the domain has it."""

from __future__ import annotations

from analysis.curve import CurveQuestion
from app.schemas.base import read_request
from contract.curve import CurveIn
from domain.profile import Revision


def question_of(asked: CurveIn, revision: Revision) -> CurveQuestion:
    """Return the question about this revision."""
    return CurveQuestion(revision.model, asked.max_message_bytes)


def title(request: bytes) -> str:
    """Return what a job is called on its page."""
    return f"A curve of {read_request(CurveIn, request).profile}"
