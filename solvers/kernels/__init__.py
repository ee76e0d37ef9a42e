"""Hot loops, each in C and in NumPy, held by tests to the evaluator of `domain.schedule`.

`active` chooses once, at import, between the two.
"""

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
    range_arrays,
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
    "range_arrays",
    "stage_times_us",
]
