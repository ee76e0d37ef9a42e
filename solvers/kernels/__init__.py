"""Fast evaluators. They must equal `domain.schedule.latency_us`, and a property test says so."""

from __future__ import annotations

from solvers.kernels.recurrence import (
    PipelineArrays,
    exit_times_us,
    latencies_us,
    stage_times_us,
)

__all__ = ["PipelineArrays", "exit_times_us", "latencies_us", "stage_times_us"]
