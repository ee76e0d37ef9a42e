"""Bounds, roundings, equal and repeated sizes in C, for stages of one line each.

Source    kernels/native/bounds.c, rounding.c, steady.c, equal.c, repeat.c; modules that call them.
Notation  k fragments; sizes in whole bytes.
Cost      some microseconds for what crosses into C.
Exact     as the modules that call these: the same mathematics, the same cuts but for ties.
Traps     numbers travel as addresses: whatever they belong to must outlive the call.
"""

from __future__ import annotations

import ctypes
from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray

from domain.problem import Problem
from solvers.kernels.native_recurrence import address_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_FOUND = 0  # as in equal.h
_Address = ctypes.c_void_p
_Long = ctypes.c_int64


class Whole(ctypes.Structure):
    """A problem as the kernels read it; `keep` holds the arrays whose addresses are in it."""

    _fields_ = [
        ("n", _Long),
        ("overhead_us", _Address),
        ("ns_per_byte", _Address),
        ("message_bytes", _Long),
        ("min_bytes", _Long),
        ("max_bytes", _Long),
        ("unit_bytes", _Long),
        ("min_aligned", _Long),
        ("max_aligned", _Long),
        ("k_min", _Long),
        ("k_max", _Long),
        ("delay_us", ctypes.c_double),
    ]
    keep: tuple[array[float], array[float]]


class _Rounding(ctypes.Structure):
    _fields_ = [
        ("count", _Long),
        ("x", _Address),
        ("offsets", _Address),
        ("roundings", _Long),
        ("others", _Long),
        ("passes", _Long),
        ("widths", _Address),
        ("levels", _Long),
        ("exchanges", _Long),
        ("enough_us", ctypes.c_double),
    ]


class _EqualSearch(ctypes.Structure):
    _fields_ = [("near", _Long), ("neighbours", _Long), ("cells", _Long)]


class _Repeated(ctypes.Structure):
    _fields_ = [("latency_us", ctypes.c_double), ("full", _Long), ("size_bytes", _Long)]


def whole_of(problem: Problem) -> Whole | None:
    """Return the problem as the kernels read it, or None where a stage is not one line."""
    return problem.derived(_whole)


def _whole(problem: Problem) -> Whole | None:
    if not problem.pipeline.all_lines:
        return None
    lines = [stage.ranges[0] for stage in problem.pipeline.stages]
    overheads = array("d", [line.overhead_us for line in lines])
    costs = array("d", [line.ns_per_byte for line in lines])
    minimum, maximum = problem.aligned_sizes()
    counts = problem.count_range()
    whole = Whole(
        len(lines),
        overheads.buffer_info()[0],
        costs.buffer_info()[0],
        problem.message_bytes,
        problem.smallest_fragment_bytes,
        problem.largest_fragment_bytes,
        problem.limits.alignment_bytes,
        minimum,
        maximum,
        counts.minimum,
        counts.maximum,
        problem.pipeline.delay_us,
    )
    whole.keep = (overheads, costs)
    return whole


class NativeWhole:
    """Calls into one loaded library. What they are given comes from `whole_of`."""

    def __init__(self, library: ctypes.CDLL) -> None:
        whole = ctypes.POINTER(Whole)
        longs = ctypes.POINTER(_Long)
        self._bounds = _typed(library.sluice_bounds_of, None, whole, _Address, _Long, _Address)
        self._within = _typed(
            library.sluice_bounds_within, None, whole, _Long, ctypes.c_double, longs, longs
        )
        self._round = _typed(
            library.sluice_round, ctypes.c_int, whole, ctypes.POINTER(_Rounding), _Address
        )
        self._count = _typed(library.sluice_equal_count, _Long, whole)
        self._equal = _typed(
            library.sluice_equal_cut,
            ctypes.c_int,
            whole,
            ctypes.POINTER(_EqualSearch),
            _Address,
            longs,
        )
        self._steady = _typed(
            library.sluice_steady, _Long, whole, ctypes.c_int, _Long, _Long, _Address
        )
        self._repeat = _typed(library.sluice_repeat, None, whole, _Long, ctypes.POINTER(_Repeated))
        self._each = _typed(
            library.sluice_repeat_each, None, whole, _Long, _Long, _Long, _Address, _Address
        )
        self._read = _typed(
            library.sluice_repeat_read, None, whole, _Long, _Long, _Long, _Long, _Address
        )

    def bounds_us(self, whole: Whole, counts: Ints) -> Floats:
        """Return the same as bounds.closed_form_us."""
        asked = np.ascontiguousarray(counts, dtype=np.int64)
        bounds: Floats = np.empty(asked.shape)
        self._bounds(whole, address_of(asked), asked.size, address_of(bounds))
        return bounds

    def counts_within(self, whole: Whole, limit_us: float, *, near: int) -> tuple[int, int]:
        """Return the first and last count above k_min whose bound is within the limit; 1, 0 without
        any.
        """
        first, last = _Long(), _Long()
        self._within(whole, near, limit_us, first, last)
        return first.value, last.value

    def rounded(
        self,
        whole: Whole,
        x: Floats,
        offsets: Floats,
        *,
        others: int,
        passes: int,
        widths: Floats,
        exchanges: int,
        enough_us: float,
    ) -> Ints | None:
        """Return the whole-byte cuts found near these sizes, (cuts, k); None where they are not for
        this kernel.

        The last `others` of the offsets are starts of their own, of exchanges, unless the cut takes
        no more than `enough_us` without.
        """
        real = np.ascontiguousarray(x, dtype=np.float64)
        asked = _Rounding(
            len(real),
            address_of(real),
            address_of(offsets),
            len(offsets) - others,
            others,
            passes,
            address_of(widths),
            len(widths),
            exchanges,
            enough_us,
        )
        sizes: Ints = np.empty((1 + others, len(real)), dtype=np.int64)
        found: int = self._round(whole, asked, address_of(sizes))
        return None if found < 0 else sizes[:found]

    def steady(self, whole: Whole, first_bytes: int, *, reverse: bool) -> tuple[int, ...]:
        """Return the sizes of the ramp that begins so, last stage first where it is reversed; empty
        where the message needs more than the greatest count.
        """
        sizes: Ints = np.empty(whole.k_max, dtype=np.int64)
        count = self._steady(whole, reverse, first_bytes, whole.k_max, address_of(sizes))
        return tuple(sizes[:count].tolist())

    def equal_count(self, whole: Whole) -> int:
        """Return the same as fixed.best_count."""
        count: int = self._count(whole)
        return count

    def equal_cut(self, whole: Whole, *, near: int, neighbours: int, cells: int) -> Ints | None:
        """Return the best equal cut of the counts around one, or None where there is none."""
        sizes: Ints = np.empty(near + neighbours, dtype=np.int64)
        count = _Long()
        asked = _EqualSearch(near, neighbours, cells)
        status = self._equal(whole, asked, address_of(sizes), count)
        return sizes[: count.value] if status == _FOUND else None

    def repeated(self, whole: Whole, *, near: int) -> tuple[float, int, int]:
        """Return the latency without delay, full fragments (0: none is admitted) and best repeated
        size.
        """
        best = _Repeated()
        self._repeat(whole, near, best)
        return best.latency_us, best.full, best.size_bytes

    def repeated_each(self, whole: Whole, k: int, first: int, messages: int) -> tuple[Ints, Floats]:
        """Return the same as tables.repeat_messages.best_of_count, of k >= 2."""
        sizes: Ints = np.empty(messages, dtype=np.int64)
        latency: Floats = np.empty(messages)
        self._each(whole, k, first, messages, address_of(sizes), address_of(latency))
        return sizes, latency

    def read_us(self, whole: Whole, first: int, messages: int, sizes: tuple[int, int]) -> Floats:
        """Return the same as tables.repeat_messages.read_us."""
        latency: Floats = np.empty(messages)
        self._read(whole, first, messages, *sizes, address_of(latency))
        return latency


def _typed(function: Any, restype: Any, *argtypes: Any) -> Any:
    function.restype, function.argtypes = restype, list(argtypes)
    return function
