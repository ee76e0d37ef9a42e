"""Fast evaluators. They must equal `domain.schedule.latency_us`, and a property test says so."""

from __future__ import annotations

from solvers.kernels.native_recurrence import Judge
from solvers.kernels.recurrence import (
    PipelineArrays,
    cut_latency_us,
    exit_times_us,
    judge_of,
    latencies_us,
    line_latency_us,
    nested_latency_us,
    stage_times_us,
)

__all__ = [
    "Judge",
    "PipelineArrays",
    "cut_latency_us",
    "exit_times_us",
    "judge_of",
    "latencies_us",
    "line_latency_us",
    "nested_latency_us",
    "stage_times_us",
]
