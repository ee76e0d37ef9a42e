"""What contract/thresholds.py declares, as the domain has it: a grid of sizes to price."""

from __future__ import annotations

from analysis.thresholds import ThresholdQuestion
from app.schemas.base import read_request
from contract.thresholds import ThresholdsIn
from domain.delivery import DeliveryRule
from domain.pipeline import Pipeline
from domain.profile import ProfileRevision
from domain.solution import Notice
from domain.structure import KnownOverlap
from domain.units import format_bytes


def grid_question(
    asked: ThresholdsIn,
    pipeline: Pipeline,
    profile: ProfileRevision | None,
    *,
    max_pulses: int,
    said: tuple[Notice, ...] = (),
    overlap: KnownOverlap | None = None,
) -> ThresholdQuestion:
    """Return the question; `said` is what is known of the costs, `overlap` of the stages'.
    Raises what ThresholdQuestion does.
    """
    return ThresholdQuestion(
        pipeline=pipeline,
        message_bytes=tuple(asked.message_bytes),
        rule=DeliveryRule(asked.rule),
        stages=None if asked.stages is None else tuple(asked.stages),
        sizes=None if asked.sizes is None else tuple(asked.sizes),
        max_pulses=max_pulses,
        time_limit_s=asked.time_limit_s,
        profile=profile,
        said=said,
        overlap=overlap or KnownOverlap(),
    )


def title(request: bytes) -> str:
    """Return what a job is called on its page."""
    asked = read_request(ThresholdsIn, request)
    sizes = asked.message_bytes
    of = f"{len(sizes)} messages" if len(sizes) > 1 else format_bytes(sizes[0])
    return f"{'Thresholds' if asked.rule == 'eager' else 'Pulse sizes'} of {of}"
