"""The part of a trace that measured messages of certain sizes.

Source: Wang98 sec. 5.2: the line that describes a stage is fitted over the fragment sizes in use.
Cost: one pass over each column, in NumPy.
Exact: selects, never computes.
Traps: a trace has up to three groups of samples with sizes of their own; each is cut alone, and one
that would have nothing left makes the whole cut impossible.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING

from domain.measurement import DirectTrace, MessageTrace, Samples, SignatureTrace, Trace
from fitting.columns import Sizes, Times

if TYPE_CHECKING:
    import numpy as np

    Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]


def measured_sizes(trace: Trace) -> tuple[tuple[int, ...], ...]:
    """Return the distinct sizes in bytes, ascending, of each group of samples that gets a line."""
    import numpy as np

    return tuple(
        tuple(np.unique(np.asarray(sizes, dtype=np.int64)).tolist()) for sizes in _columns(trace)
    )


def _columns(trace: Trace) -> tuple[Sequence[int], ...]:
    if isinstance(trace, MessageTrace):
        parts = (trace.latency, trace.interarrival)
        return tuple(part.message_bytes for part in parts if part is not None)
    return (trace.message_bytes,)


def part_within(trace: Trace, min_message_bytes: int, max_message_bytes: int) -> Trace:
    """Return the samples of sizes from the least to the greatest, both included.

    Raises UnreadableTrace where a column would be left without a row.
    """
    if isinstance(trace, DirectTrace):
        return direct_rows(trace, _mask(trace.message_bytes, min_message_bytes, max_message_bytes))
    ends = (min_message_bytes, max_message_bytes)
    if isinstance(trace, MessageTrace):
        return MessageTrace(
            _samples_within(trace.latency, *ends), _samples_within(trace.interarrival, *ends)
        )
    mask = _mask(trace.message_bytes, *ends)
    return SignatureTrace(
        _sizes(trace.message_bytes, mask),
        _sizes(trace.bursts, mask),
        _times(trace.computation_us, mask),
        _times(trace.cost_us, mask),
        round_trip=_samples_within(trace.round_trip, *ends),
        receive=_samples_within(trace.receive, *ends),
        handles_replies=trace.handles_replies,
        timer_subtracted=trace.timer_subtracted,
    )


def direct_rows(trace: DirectTrace, mask: Mask) -> DirectTrace:
    """Return the measured messages that a mask (N,) keeps. Raises UnreadableTrace for none."""
    return DirectTrace(
        trace.stage_names,
        _sizes(trace.message_bytes, mask),
        _sizes(trace.repetitions, mask),
        tuple(_times(column, mask) for column in trace.stage_us),
        None if trace.total_us is None else _times(trace.total_us, mask),
        trace.events,
    )


def _samples_within(
    samples: Samples | None, min_message_bytes: int, max_message_bytes: int
) -> Samples | None:
    if samples is None:
        return None
    return sample_rows(samples, _mask(samples.message_bytes, min_message_bytes, max_message_bytes))


def sample_rows(samples: Samples, mask: Mask) -> Samples | None:
    """Return the samples that a mask (N,) keeps; None where there are none."""
    if not mask.any():
        return None
    return Samples(_sizes(samples.message_bytes, mask), _times(samples.times_us, mask))


def _mask(sizes: Sequence[int], min_message_bytes: int, max_message_bytes: int) -> Mask:
    import numpy as np

    column = np.asarray(sizes, dtype=np.int64)
    return (column >= min_message_bytes) & (column <= max_message_bytes)


def _sizes(column: Sequence[int], mask: Mask) -> array[int]:
    import numpy as np

    return Sizes("q", np.asarray(column, dtype=np.int64)[mask].tobytes())


def _times(column: Sequence[float], mask: Mask) -> array[float]:
    import numpy as np

    return Times("d", np.asarray(column, dtype=np.float64)[mask].tobytes())
