"""What contract/compare.py declares, as the domain has it: strategies on messages."""

from __future__ import annotations

from analysis.compare import CompareQuestion
from app.questions.question import check_static_bytes
from app.questions.source import Resolved
from app.schemas.base import read_request
from app.schemas.stages import limits_of
from contract.compare import CompareIn
from contract.limits import MAX_COMPARED
from domain.errors import InconsistentInput
from domain.solution import Strategy


def check(asked: CompareIn) -> None:
    """Raise InconsistentInput for more cells than one comparison may have, and unless a size to
    repeat is given exactly where it is used.
    """
    if len(asked.message_bytes) * len(asked.strategies) > MAX_COMPARED:
        raise InconsistentInput(
            f"expected message sizes x strategies <= {MAX_COMPARED} in one comparison",
            field="message_bytes",
        )
    strategy = Strategy.STATIC if Strategy.STATIC in asked.strategies else Strategy.AUTO
    check_static_bytes(strategy, asked.static_bytes)


def compare_question(asked: CompareIn, found: Resolved, *, fragment_cap: int) -> CompareQuestion:
    """Return the question about a model that was found. Raises InvalidInput."""
    return CompareQuestion(
        model=found.model,
        message_bytes=tuple(asked.message_bytes),
        strategies=tuple(map(Strategy, asked.strategies)),
        static_bytes=asked.static_bytes,
        limits=limits_of(asked.constraints),
        allow_refragmentation=asked.allow_refragmentation,
        relative_gap=asked.relative_gap,
        time_limit_s=asked.time_limit_s,
        fragment_cap=fragment_cap,
        profile=found.profile,
        said=found.said,
        overlap=found.overlap,
    )


def title(request: bytes) -> str:
    """Return what a job is called on its page."""
    asked = read_request(CompareIn, request)
    return f"Comparing strategies on {len(asked.message_bytes)} messages"
