"""The recurrence in C: the same values as in NumPy, sooner.

Source    kernels/native/recurrence.c; Wang98 eq. (1)-(3); theory sec. 1.
Notation  n stages, k fragments, m cuts; g, G: (n,) µs and µs/byte; x: (m, k) or (k,) bytes.
Cost      one pass over the m k n cells; some microseconds for what crosses into C.
Exact     the operations of `domain.schedule.latency_us` in its order: the same bits.
Traps     numbers travel as addresses: whatever they belong to must outlive the call.
"""

from __future__ import annotations

import ctypes
from array import array
from functools import cache
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from domain.pipeline import Pipeline
from solvers.kernels.native import Choice, library
from solvers.kernels.native_pipeline import NS_PER_US, NativePipeline

Floats = NDArray[np.float64]


class _Stages(NamedTuple):
    """How many ranges each stage has, and the ranges one behind the other."""

    ranges: list[int]
    ends: list[float]
    overheads: list[float]
    costs: list[float]
    divisor: float


class NativeRecurrence:
    """Calls into one loaded library."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._latencies = library.sluice_latencies
        self._latencies.restype = ctypes.c_int
        self._latencies.argtypes = [
            ctypes.POINTER(NativePipeline),
            ctypes.c_int64,
            ctypes.c_int64,
            ctypes.c_void_p,
            ctypes.c_void_p,
        ]

    def latencies_us(self, pipeline: Pipeline, x: Floats) -> Floats:
        """Latencies of m cuts x (..., k), of shape x.shape[:-1]; the delay is included."""
        parts = [part for stage in pipeline.stages for part in stage.ranges]
        stages = _Stages(
            [len(stage.ranges) for stage in pipeline.stages],
            [inf if part.up_to_bytes is None else part.up_to_bytes for part in parts],
            [part.overhead_us for part in parts],
            [part.ns_per_byte for part in parts],
            NS_PER_US,
        )
        latencies: Floats = self._call(stages, x) + pipeline.delay_us
        return latencies

    def latency_of_lines_us(self, g: Floats, G: Floats, x: Floats) -> float:
        """Latency of real sizes x (k,) through lines g, G (n,), without a delay."""
        n = len(g)
        stages = _Stages([1] * n, [inf] * n, g.tolist(), G.tolist(), 1.0)
        return float(self._call(stages, x))

    def _call(self, stages: _Stages, x: Floats) -> Floats:
        sizes = np.ascontiguousarray(x, dtype=np.float64)
        out: Floats = np.empty(sizes.shape[:-1])
        counts = array("q", stages.ranges)
        numbers = [array("d", of) for of in (stages.ends, stages.overheads, stages.costs)]
        addresses = [values.buffer_info()[0] for values in numbers]
        told = NativePipeline(len(counts), counts.buffer_info()[0], *addresses, stages.divisor)
        status = self._latencies(
            told, out.size, sizes.shape[-1], sizes.ctypes.data, out.ctypes.data
        )
        if status:
            raise ValueError("the native recurrence takes 1 to 64 stages")
        return out


@cache
def native_recurrence(kernels: Choice = "auto") -> NativeRecurrence | None:
    """The kernels to use, or None for NumPy. Raises InvalidInput for "native" without a build."""
    found = library(kernels)
    return None if found is None else NativeRecurrence(found)
