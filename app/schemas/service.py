"""What contract/service.py declares, made of the service's settings."""

from __future__ import annotations

from typing import get_args

from app.settings import Settings
from contract import limits
from contract.rules import Strategy
from contract.service import LimitsOut


def limits_out(settings: Settings, *, max_page_size: int) -> LimitsOut:
    """Return the limits of a service with these settings."""
    return LimitsOut(
        max_stages=limits.MAX_STAGES,
        max_ranges_per_stage=limits.MAX_RANGES,
        max_name_length=limits.MAX_NAME_LENGTH,
        max_overhead_us=limits.MAX_OVERHEAD_US,
        max_ns_per_byte=limits.MAX_NS_PER_BYTE,
        min_message_bytes=1,
        max_message_bytes=limits.MAX_MESSAGE_BYTES,
        max_fragments=settings.max_fragments,
        max_body_bytes=settings.max_body_bytes,
        max_trace_bytes=settings.max_trace_bytes,
        max_measurements=limits.MAX_MEASUREMENTS,
        max_simulation_intervals=limits.MAX_SIMULATED,
        max_comparison_rows=limits.MAX_COMPARED,
        default_relative_gap=limits.DEFAULT_RELATIVE_GAP,
        default_time_limit_s=limits.DEFAULT_TIME_LIMIT_S,
        max_time_limit_s=limits.MAX_TIME_LIMIT_S,
        max_page_size=max_page_size,
        strategies=get_args(Strategy),
        workers=settings.worker_count,
        worker_memory_bytes=settings.worker_memory,
    )
