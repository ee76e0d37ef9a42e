"""The judge of one pipeline, made ready once: for whoever asks it about many cuts, one at a time.

Source    kernels/native/recurrence.c; domain.schedule.latency_us.
Cost      about 1 µs and 20 ns a fragment in C; without a build that of the judge itself.
Exact     the judge's own value, to the last bit, either way.
Traps     the call keeps the interpreter's lock, so give it cuts of thousands of fragments at most.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import TypeAlias

from domain.pipeline import Pipeline
from domain.schedule import latency_us
from solvers.kernels.native import Choice, library
from solvers.kernels.native_pipeline import NS_PER_US, NativePipeline

Judge: TypeAlias = Callable[[Sequence[int]], float]


def judge_of(pipeline: Pipeline, *, kernels: Choice = "auto") -> Judge:
    """A function from fragment sizes to their latency in µs, the delay included.

    Any number of threads may call it. Raises InvalidInput for "native" without a build.
    """
    found = library(kernels)
    if found is None:
        return partial(latency_us, pipeline)
    return _NativeJudge(ctypes.PyDLL(found._name), pipeline)


class _NativeJudge:
    """Numbers travel as addresses: what they belong to is kept here."""

    def __init__(self, loaded: ctypes.PyDLL, pipeline: Pipeline) -> None:
        parts = [part for stage in pipeline.stages for part in stage.ranges]
        counts = array("q", [len(stage.ranges) for stage in pipeline.stages])
        ends = array("d", [part.up_to_bytes or inf for part in parts])
        overheads = array("d", [part.overhead_us for part in parts])
        costs = array("d", [part.ns_per_byte for part in parts])
        self._kept = counts, ends, overheads, costs
        at = [numbers.buffer_info()[0] for numbers in self._kept]
        self._pipeline = NativePipeline(len(counts), *at, NS_PER_US)
        self._at = ctypes.addressof(self._pipeline)
        self._delay_us = pipeline.delay_us
        self._latencies = loaded.sluice_latencies
        number, address = ctypes.c_int64, ctypes.c_void_p
        self._latencies.argtypes = [address, number, number, address, address]
        self._latencies.restype = ctypes.c_int
        # For other C code: the addresses of the function and of what it takes first, and the delay.
        function = ctypes.cast(self._latencies, ctypes.c_void_p).value
        self.native = function, self._at, self._delay_us

    def __call__(self, fragment_bytes: Sequence[int]) -> float:
        """The latency of this cut."""
        # One array for what goes in and, behind it, what comes out.
        numbers = array("d", fragment_bytes)
        count = len(numbers)
        numbers.append(0.0)
        at = numbers.buffer_info()[0]
        if self._latencies(self._at, 1, count, at, at + 8 * count):
            raise ValueError("the native recurrence takes 1 to 64 stages")
        return numbers[count] + self._delay_us
