"""The recurrence in C: the same values as in NumPy and as the evaluator's, sooner.

Source    kernels/native/recurrence.c, draws.c and sizes.c; Wang98 eq. (1)-(3); theory sec. 1.
Notation  n stages, k fragments, m cuts; g, G: (n,) µs and µs/byte; x: (m, k) or (k,) bytes.
Cost      one pass over the m k n cells; about a microsecond for what crosses into C.
Exact     the operations of `domain.schedule.latency_us` in its order: the same bits.
Traps     numbers travel as addresses: what they belong to must outlive the call.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Sequence
from math import inf
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from domain.pipeline import Pipeline

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Evaluator: TypeAlias = Callable[[Sequence[int]], float]

NS_PER_US = 1000.0


class NativePipeline(ctypes.Structure):
    """A pipeline in the layout that kernels/native/recurrence.h declares.

    Counts of ranges by stage, and the ranges one behind the other; numbers go as addresses, and
    `keep` holds what these belong to. `end_bytes`, `overhead_us` and `cost` have one double for
    each range; a cost is divided by `divisor`, which is 1000 for ns a byte.
    """

    _fields_ = [
        ("stages", ctypes.c_int64),
        ("ranges", ctypes.c_void_p),
        ("end_bytes", ctypes.c_void_p),
        ("overhead_us", ctypes.c_void_p),
        ("cost", ctypes.c_void_p),
        ("divisor", ctypes.c_double),
    ]
    keep: tuple[array[int], array[float], array[float], array[float]]


def native_pipeline(pipeline: Pipeline) -> NativePipeline:
    """Return the stages as C takes them, made once for each pipeline."""
    return pipeline.derived(_of_pipeline)


def _of_pipeline(pipeline: Pipeline) -> NativePipeline:
    parts = [part for stage in pipeline.stages for part in stage.ranges]
    return _native(
        [len(stage.ranges) for stage in pipeline.stages],
        [part.up_to_bytes or inf for part in parts],
        [part.overhead_us for part in parts],
        [part.ns_per_byte for part in parts],
        NS_PER_US,
    )


def _native(
    ranges: list[int],
    ends: list[float],
    overheads: list[float],
    costs: list[float],
    divisor: float,
) -> NativePipeline:
    keep = array("q", ranges), array("d", ends), array("d", overheads), array("d", costs)
    native = NativePipeline(len(ranges), *(numbers.buffer_info()[0] for numbers in keep), divisor)
    native.keep = keep
    return native


def address_of(values: Floats | Ints) -> int:
    """Return where the numbers of a contiguous array start, in a third of `ctypes.data`'s time."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(values))  # type: ignore[arg-type]
    except (TypeError, ValueError):  # it may not be written to, or has no elements
        return values.ctypes.data


class DrawnCosts(ctypes.Structure):
    """Costs of stages in many draws, in the layout that kernels/native/draws.h declares."""

    _fields_ = [
        ("stages", ctypes.c_int64),
        ("ranges", ctypes.c_int64),
        ("draws", ctypes.c_int64),
        ("row", ctypes.c_int64),
        ("overhead_us", ctypes.c_void_p),
        ("ns_per_byte", ctypes.c_void_p),
        ("ends_bytes", ctypes.c_void_p),
        ("delay_us", ctypes.c_double),
    ]
    keep: tuple[Floats, ...]

    @classmethod
    def of(
        cls, overhead_us: Floats, ns_per_byte: Floats, ends_bytes: Floats, delay_us: float
    ) -> DrawnCosts:
        """Take overheads in µs and costs in ns/byte, (stages, ranges, draws), and the inclusive
        last bytes of ranges, (stages, ranges - 1, draws), infinite where there is no further one.
        """
        keep: tuple[Floats, ...] = (overhead_us, ns_per_byte, ends_bytes)
        rows = {_row(one) for one in keep if one.size}
        if len(rows) > 1 or 0 in rows:
            keep = tuple(map(np.ascontiguousarray, keep))
            rows = {overhead_us.shape[-1]}
        found = cls(*overhead_us.shape, *rows, *map(_address, keep), delay_us)
        found.keep = keep
        return found


class SizeLimits(ctypes.Structure):
    """A message, the limits of its fragments, and between which sizes cuts are looked at, in the
    layout of kernels/native/sizes.h.
    """

    _fields_ = [
        ("message_bytes", ctypes.c_int64),
        ("min_bytes", ctypes.c_int64),
        ("max_bytes", ctypes.c_int64),
        ("unit_bytes", ctypes.c_int64),
        ("max_count", ctypes.c_int64),
        ("low_bytes", ctypes.c_int64),
        ("high_bytes", ctypes.c_int64),
    ]


class SizeGrid(ctypes.Structure):
    """Which sizes are tried, in the layout of kernels/native/sizes.h."""

    _fields_ = [
        ("smallest_bytes", ctypes.c_int64),
        ("powers", ctypes.c_int64),
        ("divided", ctypes.c_int64),
        ("before", ctypes.c_int64),
    ]


class SizeSearch(ctypes.Structure):
    """Which sizes are priced in all draws, in the layout of kernels/native/sizes.h."""

    _fields_ = [
        ("screened", ctypes.c_int64),
        ("regret", ctypes.c_double),
        ("rounded", ctypes.c_int64),
        ("beside", ctypes.c_int64),
    ]


class GoodSearch(ctypes.Structure):
    """How intervals of good sizes are found, in the layout of kernels/native/sizes.h."""

    _fields_ = [
        ("jumps_from", ctypes.c_int64),
        ("jumps_to", ctypes.c_int64),
        ("fragments_to", ctypes.c_int64),
        ("precision", ctypes.c_double),
        ("share", ctypes.c_double),
    ]


class NativeRecurrence:
    """Calls into one loaded library."""

    def __init__(self, library: ctypes.CDLL) -> None:
        number, address = ctypes.c_int64, ctypes.c_void_p
        self._latencies = library.sluice_latencies
        self._latencies.restype = ctypes.c_int
        self._latencies.argtypes = [
            ctypes.POINTER(NativePipeline),
            number,
            number,
            address,
            address,
        ]
        self._changed = library.sluice_changed_latencies
        self._changed.restype = ctypes.c_int
        self._changed.argtypes = [
            ctypes.POINTER(NativePipeline),
            *(number, address, address),
            *(number, address, address),
        ]
        self._in_draws = library.sluice_repeated_in_draws
        self._in_draws.restype = ctypes.c_int
        self._in_draws.argtypes = [ctypes.POINTER(DrawnCosts), number, number, address, address]
        self._cut_in_draws = library.sluice_cut_in_draws
        self._cut_in_draws.restype = ctypes.c_int
        self._cut_in_draws.argtypes = [ctypes.POINTER(DrawnCosts), number, address, address]
        sizes = (number, address)
        self._near_sizes = library.sluice_near_sizes
        self._near_sizes.restype = number
        asked = [ctypes.POINTER(kind) for kind in (DrawnCosts, SizeLimits, SizeSearch)]
        self._near_sizes.argtypes = [*asked, ctypes.POINTER(SizeGrid), *(sizes * 3), address]
        self._price_sizes = library.sluice_price_sizes
        self._price_sizes.restype = number
        self._price_sizes.argtypes = [*asked, *sizes, number, address, address]
        self._summarise = library.sluice_summarise
        self._summarise.restype = ctypes.c_int
        self._summarise.argtypes = [number, number, *(address,) * 4]
        self._round_sizes = library.sluice_round_sizes
        self._round_sizes.restype = None
        self._round_sizes.argtypes = [number, *sizes, address, number, address, address]
        self._good_sizes = library.sluice_good_sizes
        self._good_sizes.restype = number
        self._good_sizes.argtypes = [
            ctypes.POINTER(DrawnCosts),
            ctypes.POINTER(SizeLimits),
            ctypes.POINTER(GoodSearch),
            *sizes,
            address,
            *(sizes * 2),
            address,
        ]
        self._at_once = ctypes.PyDLL(library._name).sluice_latencies
        self._at_once.restype = ctypes.c_int
        self._at_once.argtypes = [address, number, number, address, address]

    def latencies_us(self, pipeline: Pipeline, x: Floats) -> Floats:
        """Return the latencies of m cuts x (..., k), of shape x.shape[:-1], delay included."""
        latencies: Floats = self._call(native_pipeline(pipeline), x) + pipeline.delay_us
        return latencies

    def latency_us(self, pipeline: Pipeline, x: Floats) -> float:
        """Return the latency of one cut x (k,), the delay included."""
        return self._one(native_pipeline(pipeline), x) + pipeline.delay_us

    def latency_of_lines_us(self, g: Floats, G: Floats, x: Floats) -> float:
        """Return the latency of real sizes x (k,) through lines g, G (n,), without a delay."""
        n = len(g)
        return self._one(_native([1] * n, [inf] * n, g.tolist(), G.tolist(), 1.0), x)

    def changed_us(
        self, pipeline: Pipeline, changes: Sequence[tuple[int, float]], cut: Sequence[int]
    ) -> list[float]:
        """Return latencies of one cut, the delay included, where both costs of a stage are times a
        factor at every size, for each of these changes.
        """
        stages, factors = zip(*changes, strict=True)
        numbers = array("q", stages), array("d", factors), array("d", cut)
        out = array("d", factors)  # for as many numbers
        which, by, sizes, found = (one.buffer_info()[0] for one in (*numbers, out))
        asked = native_pipeline(pipeline), len(out), which, by, len(cut), sizes, found
        _check(self._changed(*asked))
        return [latency_us + pipeline.delay_us for latency_us in out]

    def evaluator(self, pipeline: Pipeline) -> NativeEvaluator:
        """Return the evaluator of this pipeline, for many cuts one at a time."""
        return NativeEvaluator(self._at_once, pipeline)

    def repeated_in_draws_us(self, costs: DrawnCosts, message_bytes: int, sizes: Ints) -> Floats:
        """Return latencies, delay included, of a message in repeated sizes, (sizes, draws).

        A size is 1 byte to the whole message.
        """
        asked = np.ascontiguousarray(sizes, dtype=np.int64)
        out: Floats = np.empty((len(asked), costs.draws))
        _check_memory(
            self._in_draws(costs, message_bytes, len(asked), address_of(asked), address_of(out))
        )
        return out

    def cut_in_draws_us(self, costs: DrawnCosts, cut: Ints) -> Floats:
        """Return latencies, delay included, of one cut that all stages share, (draws,)."""
        asked = np.ascontiguousarray(cut, dtype=np.int64)
        out: Floats = np.empty(costs.draws)
        _check_memory(self._cut_in_draws(costs, len(asked), address_of(asked), address_of(out)))
        return out

    def near_sizes(
        self,
        costs: DrawnCosts,
        limits: SizeLimits,
        how: SizeSearch,
        grid: SizeGrid,
        octaves: Floats,
        ends: Ints,
        given: Ints,
    ) -> Ints:
        """Return the sizes worth pricing in all draws, ascending and once each, admitted: of those
        of the grid, the message over each of the octaves, ends of ranges and the size behind them
        the ones near the best, and those given, which ascend; where a cut of all these is between
        the limits' sizes no other cut than such.
        """
        room = len(octaves) + 2 * (grid.powers + len(ends)) + grid.divided + grid.before
        sizes: Ints = np.empty(room + 1 + len(given), dtype=np.int64)
        found: int = self._near_sizes(
            costs,
            limits,
            how,
            grid,
            *(len(octaves), address_of(octaves)),
            *(len(ends), address_of(ends)),
            *(len(given), address_of(given)),
            address_of(sizes),
        )
        _check_memory(found < 0)
        return sizes[:found]

    def round_sizes(
        self, message_bytes: int, sizes: Ints, mean_regret: Floats, rules: Sequence[tuple[int, int]]
    ) -> list[int]:
        """Return for each rule, a unit and the greatest odd part, the place of the size of least
        mean regret that keeps it, the roundest of those as fast, one piece aside; -1 without any.
        """
        limits = array("q", [number for one in rules for number in one])  # as in sizes.h
        places = array("q", range(len(rules)))  # for as many numbers
        addresses = limits.buffer_info()[0], places.buffer_info()[0]
        given = len(sizes), address_of(sizes), address_of(mean_regret)
        self._round_sizes(message_bytes, *given, len(rules), *addresses)
        return places.tolist()

    def price_sizes(
        self,
        costs: DrawnCosts,
        limits: SizeLimits,
        how: SizeSearch,
        near: Ints,
        units: Sequence[int],
    ) -> tuple[Ints, Floats]:
        """Return these sizes and further ones, ascending, and their latencies, (sizes, draws):
        multiples of the units around the best ones, and sizes beside the very best.
        """
        count, step = len(near), np.array(units, dtype=np.int64)
        room = count + 2 * how.rounded * len(units) + 2 * (how.beside + 2)
        sizes: Ints = np.empty(room, dtype=np.int64)
        sizes[:count] = near
        latency_us: Floats = np.empty((room, costs.draws))
        given = len(step), address_of(step), count, address_of(sizes), address_of(latency_us)
        found = self._price_sizes(costs, limits, how, *given)
        _check_memory(found < 0)
        return sizes[:found], latency_us[:found]

    def summary(self, latency_us: Floats) -> tuple[Floats, Floats, Floats]:
        """Return of latencies (sizes, draws) the least of each draw, and the mean and the mean
        regret over the least of each size.
        """
        count, draws = latency_us.shape
        rows = np.ascontiguousarray(latency_us)
        best, means = np.empty(draws), np.empty((2, count))
        at = address_of(means)
        places = address_of(rows), address_of(best), at, at + 8 * count
        _check_memory(self._summarise(count, draws, *places))
        return best, means[0], means[1]

    def good_sizes(
        self,
        costs: DrawnCosts,
        limits: SizeLimits,
        how: GoodSearch,
        sizes: Ints,
        latency_us: Floats,
        limits_us: Floats,
        ends: Ints,
    ) -> list[list[int]]:
        """Return [level, low, high] of intervals of good sizes, by level, ascending: within a
        level's limit, limits_us (levels, draws), in enough of the draws.

        Sizes ascend, as do the ends of ranges, once each; their latencies are (sizes, draws).
        """
        count, levels = len(sizes), len(limits_us)
        most = count + how.jumps_to + 2 * (how.fragments_to + 1) * len(ends)
        out: Ints = np.empty((levels * (most // 2 + 1), 3), dtype=np.int64)
        prices = np.ascontiguousarray(latency_us)
        found = self._good_sizes(
            costs,
            limits,
            how,
            *(count, address_of(sizes), address_of(prices)),
            *(levels, address_of(limits_us)),
            *(len(ends), address_of(ends)),
            address_of(out),
        )
        _check_memory(found < 0)
        intervals: list[list[int]] = out[:found].tolist()
        return intervals

    def _one(self, stages: NativePipeline, x: Floats) -> float:
        sizes = np.ascontiguousarray(x, dtype=np.float64)
        out = ctypes.c_double()
        _check(self._latencies(stages, 1, len(sizes), address_of(sizes), ctypes.byref(out)))
        return out.value

    def _call(self, stages: NativePipeline, x: Floats) -> Floats:
        sizes = np.ascontiguousarray(x, dtype=np.float64)
        out: Floats = np.empty(sizes.shape[:-1])
        addresses = address_of(sizes), address_of(out)
        _check(self._latencies(stages, out.size, sizes.shape[-1], *addresses))
        return out


class NativeEvaluator:
    """The latency of one cut after another, the delay included; any number of threads may call it.

    A call costs about 1 µs and 20 ns a fragment, and keeps the interpreter's lock, so give it cuts
    of thousands of fragments at most.
    """

    def __init__(self, latencies: Any, pipeline: Pipeline) -> None:
        self._pipeline = native_pipeline(pipeline)
        self._at = ctypes.addressof(self._pipeline)
        self._delay_us = pipeline.delay_us
        self._latencies = latencies
        # For other C code: the addresses of the function and of what it takes first, and the delay.
        function = ctypes.cast(latencies, ctypes.c_void_p).value
        self.native = function, self._at, self._delay_us

    def __call__(self, fragment_bytes: Sequence[int]) -> float:
        # One array for what goes in and, behind it, what comes out.
        numbers = array("d", fragment_bytes)
        count = len(numbers)
        numbers.append(0.0)
        at = numbers.buffer_info()[0]
        _check(self._latencies(self._at, 1, count, at, at + 8 * count))
        return numbers[count] + self._delay_us


def _row(costs: Floats) -> int:
    """How many numbers each row of draws is behind the one before; 0 where they are uneven."""
    stage, row, number = costs.strides
    is_even = number == costs.itemsize and stage == costs.shape[1] * row
    return row // costs.itemsize if is_even else 0


def _address(costs: Floats) -> int:
    return costs.ctypes.data


def _check_memory(status: int) -> None:
    if status:
        raise MemoryError("no memory for the draws of one size")


def _check(status: int) -> None:
    if status:
        raise ValueError("the native recurrence takes 1 to 64 stages, and memory for them")
