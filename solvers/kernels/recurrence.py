"""The recurrence of the evaluator, vectorised over fragments and over many cuts at once.

Source    Wang98 eq. (1)-(3); theory sec. 1.
Notation  n stages, k fragments, m cuts; g, G: (n,) µs and µs/byte (converted once, on entry);
          x: (..., k) bytes; t: (..., k, n) µs; tau: (..., k, n) exit times, µs.
Cost      O(n) NumPy passes over (m, k) arrays; latencies in C where the kernels were built.
Exact     equal to `domain.schedule.latency_us` to 1e-12 relative, by property test.
Traps     a stage with ranges has no g and G: its times come from its ranges, ends inclusive.

Derivation: tau_i = max(tau_{i-1}, in_i) + t_i unrolls to tau_i = C_i + max_{l<=i}(in_l - C_{l-1})
with C the running sum of t, so each stage is one cumulative sum and one running maximum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from domain.pipeline import Pipeline, Stage
from domain.schedule import latency_us
from solvers.kernels import active
from solvers.kernels.native_recurrence import Evaluator

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PipelineArrays:
    """A pipeline of lines as arrays: g (n,) in µs, G (n,) in µs/byte."""

    g: Floats
    G: Floats

    @classmethod
    def of(cls, pipeline: Pipeline) -> PipelineArrays:
        """Return the arrays of a pipeline whose stages are all lines."""
        lines = [stage.ranges[0] for stage in pipeline.stages]
        return cls(
            np.array([line.overhead_us for line in lines]),
            np.array([line.ns_per_byte for line in lines]) / 1000.0,
        )


def range_arrays(stage: Stage) -> tuple[Floats, Floats, Floats]:
    """Return a stage's R ranges: ends (R - 1,) in bytes, each within the range before it,
    overheads (R,) in µs, costs (R,) in ns/byte.
    """
    return (
        np.array([part.up_to_bytes for part in stage.ranges[:-1]], dtype=float),
        np.array([part.overhead_us for part in stage.ranges]),
        np.array([part.ns_per_byte for part in stage.ranges]),
    )


def stage_times_us(pipeline: Pipeline, x: Floats) -> Floats:
    """Return times t of shape x.shape + (n,) for sizes x in bytes."""
    return np.stack([_times_of(stage, x) for stage in pipeline.stages], axis=-1)


def exit_times_us(t: Floats) -> Floats:
    """Return exit times tau (..., k, n) from stage times t (..., k, n)."""
    tau = np.empty_like(t)
    entry = np.zeros(t.shape[:-1])
    for j in range(t.shape[-1]):
        entry = tau[..., j] = _through_one_stage(entry, t[..., j])
    return tau


def latencies_us(pipeline: Pipeline, x: Floats) -> Floats:
    """Return latencies (m,) in µs of m cuts of k fragments each, x (m, k), the delay included."""
    if active.NATIVE is not None:
        return active.NATIVE.recurrence.latencies_us(pipeline, x)
    entry = np.zeros(x.shape)
    for stage in pipeline.stages:
        entry = _through_one_stage(entry, _times_of(stage, x))
    last: Floats = entry[..., -1]
    return last + pipeline.delay_us


def cut_latency_us(pipeline: Pipeline, x: Floats) -> float:
    """Return the latency in µs of one cut x (k,), the delay included: as `latencies_us` has it."""
    if active.NATIVE is not None:
        return active.NATIVE.recurrence.latency_us(pipeline, x)
    return float(latencies_us(pipeline, x[None, :])[0])


def line_latency_us(g: Floats, G: Floats, x: Floats) -> float:
    """Return the latency in µs of one cut x (k,) through lines g, G (n,) in µs and µs/byte."""
    if active.NATIVE is not None:
        return active.NATIVE.recurrence.latency_of_lines_us(g, G, x)
    entry = np.zeros(len(x))
    for overhead, cost in zip(g, G, strict=True):
        entry = _through_one_stage(entry, overhead + cost * x)
    return float(entry[-1])


def evaluator_of(pipeline: Pipeline) -> Evaluator:
    """Return a function from fragment sizes to their latency in µs, the delay included.

    For many cuts one at a time: the values of `domain.schedule.latency_us`, to the last bit.
    """
    if active.NATIVE is None:
        return partial(latency_us, pipeline)
    return active.NATIVE.recurrence.evaluator(pipeline)


def nested_latency_us(pipeline: Pipeline, cuts: Sequence[Ints]) -> float:
    """Return the latency in µs of one cut per stage, the delay included.

    cuts[j]: (k_j,) sizes of stage j's blocks, bytes (theory sec. 5). A block needs the block before
    that holds its last byte, not one of equal index: a binary search where the cut changes, which
    stages that share one array are spared. Equal to `domain.nested.nested_latency_us` to 1e-12
    relative, by property test.
    """
    tau = np.zeros(len(cuts[0]))
    cut_before = cuts[0]
    for stage, cut in zip(pipeline.stages, cuts, strict=True):
        if cut is not cut_before:
            tau = tau[np.searchsorted(np.cumsum(cut_before), np.cumsum(cut), side="left")]
            cut_before = cut
        tau = _through_one_stage(tau, _times_of(stage, cut.astype(float)))
    return float(tau[-1]) + pipeline.delay_us


def _through_one_stage(entry: Floats, t: Floats) -> Floats:
    done = np.cumsum(t, axis=-1)
    out: Floats = np.maximum.accumulate(entry - (done - t), axis=-1) + done
    return out


def _times_of(stage: Stage, x: Floats) -> Floats:
    if stage.is_line:
        line = stage.ranges[0]
        return line.overhead_us + line.ns_per_byte * x / 1000.0
    ends, overhead, cost = range_arrays(stage)
    index = np.searchsorted(ends, x, side="left")
    times: Floats = overhead[index] + cost[index] * x / 1000.0
    return times
