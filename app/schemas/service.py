"""What the service says of itself: its limits and its health."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from app.questions import compare, question
from app.schemas.base import Output
from app.schemas.fit_requests import MAX_MEASUREMENTS
from app.settings import Settings
from domain import pipeline
from domain.solution import Strategy


@dataclass(frozen=True)
class LimitsOut(Output):
    """Everything that a request is measured against. Sizes in bytes, times in µs or s."""

    max_stages: int
    max_ranges_per_stage: int
    max_name_length: int
    max_overhead_us: float
    max_ns_per_byte: float
    min_message_bytes: int
    max_message_bytes: int
    max_fragments: int
    max_body_bytes: int
    max_trace_bytes: int
    max_measurements: int
    max_simulation_intervals: int
    max_comparison_rows: int
    default_relative_gap: float
    default_time_limit_s: float
    max_time_limit_s: float
    max_page_size: int
    strategies: tuple[Strategy, ...]
    workers: int
    worker_memory_bytes: int

    @classmethod
    def of(cls, settings: Settings, *, max_page_size: int) -> LimitsOut:
        """Return the limits of a service with these settings."""
        return cls(
            max_stages=pipeline.MAX_STAGES,
            max_ranges_per_stage=pipeline.MAX_RANGES,
            max_name_length=pipeline.MAX_NAME_LENGTH,
            max_overhead_us=pipeline.MAX_OVERHEAD_US,
            max_ns_per_byte=pipeline.MAX_NS_PER_BYTE,
            min_message_bytes=1,
            max_message_bytes=pipeline.MAX_MESSAGE_BYTES,
            max_fragments=settings.max_fragments,
            max_body_bytes=settings.max_body_bytes,
            max_trace_bytes=settings.max_trace_bytes,
            max_measurements=MAX_MEASUREMENTS,
            max_simulation_intervals=compare.MAX_INTERVALS,
            max_comparison_rows=compare.MAX_COMPARED,
            default_relative_gap=question.DEFAULT_RELATIVE_GAP,
            default_time_limit_s=question.DEFAULT_TIME_LIMIT_S,
            max_time_limit_s=question.MAX_TIME_LIMIT_S,
            max_page_size=max_page_size,
            strategies=tuple(Strategy),
            workers=settings.worker_count,
            worker_memory_bytes=settings.worker_memory_bytes,
        )


@dataclass(frozen=True)
class AliveOut(Output):
    """The process answers."""

    status: Literal["alive"]


@dataclass(frozen=True)
class ReadyOut(Output):
    """The database and the workers answer too."""

    status: Literal["ready"]
    database: Literal["sqlite", "postgresql"]
    workers: int
