"""Fast evaluators. They must equal `domain.schedule.latency_us`, and a property test says so."""

from __future__ import annotations

from solvers.kernels.native_recurrence import Evaluator
from solvers.kernels.recurrence import (
    PipelineArrays,
    cut_latency_us,
    evaluator_of,
    exit_times_us,
    latencies_us,
    line_latency_us,
    nested_latency_us,
    stage_times_us,
)

__all__ = [
    "Evaluator",
    "PipelineArrays",
    "cut_latency_us",
    "evaluator_of",
    "exit_times_us",
    "latencies_us",
    "line_latency_us",
    "nested_latency_us",
    "stage_times_us",
]
