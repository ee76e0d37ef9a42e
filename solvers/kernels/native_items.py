"""Cuts of items in C: the same values as in Python, sooner.

Source    kernels/native/items.c, item_labels.c, item_draws.c; kernels/items.py has the same in
          Python.
Notation  m items, n stages.
Cost      some microseconds for what crosses into C.
Exact     as the code in Python: the same bits, the same cuts.
Traps     numbers travel as addresses: what they belong to must outlive the call, and a search by
          labels reads them until it is freed.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.kernels.item_draws import ItemDraws
from solvers.kernels.items import (
    CapStep,
    CapWalk,
    Ends,
    ItemArrays,
    LabelBounds,
    LabelsFound,
    ListedLayouts,
)
from solvers.kernels.native_recurrence import DrawnCosts, address_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_Address = ctypes.c_void_p
_Long = ctypes.c_int64
_Double = ctypes.c_double
_NOT_ADMITTED = -2  # as in items.h


class _Items(ctypes.Structure):
    _fields_ = [
        ("items", _Long),
        ("stages", _Long),
        ("ready_us", _Address),
        ("bytes", _Address),
        ("spent_us", _Address),
        ("overhead_us", _Address),
        ("ranges", _Address),
        ("first_range", _Address),
        ("end_bytes", _Address),
        ("range_overhead", _Address),
        ("range_cost", _Address),
        ("earliest", _Address),
        ("max_fragments", _Long),
        ("windows", _Long),
        ("window_first", _Address),
        ("window_last", _Address),
        ("window_places", _Address),
        ("window_bytes", _Address),
        ("window_return", _Address),
        ("room", _Address),
    ]
    keep: tuple[NDArray[Any], ...]


class _Pair(ctypes.Structure):
    _fields_ = [
        ("items", _Long),
        ("overhead_us", _Double * 3),
        ("spent_us", _Address * 3),
        ("most", _Long),
    ]


class _Caps(ctypes.Structure):
    _fields_ = [
        ("is_before", _Long),
        ("first_bytes", _Long),
        ("next_cap", _Long),
        ("last_cap", _Long),
        ("layouts", _Long),
        ("latency_us", _Double),
        ("fragments", _Long),
        ("from_bytes", _Long),
        ("to_bytes", _Long),
    ]


class _Layouts(ctypes.Structure):
    _fields_ = [
        ("room", _Long),
        ("count", _Long),
        ("from_bytes", _Address),
        ("fragments", _Address),
        ("latency_us", _Address),
    ]


class _Drawn(ctypes.Structure):
    _fields_ = [
        ("costs", ctypes.POINTER(DrawnCosts)),
        ("items", _Long),
        ("ready_us", _Address),
        ("ready_factor", _Address),
        ("bytes", _Address),
        ("own_us", _Address),
        ("is_serial", _Long),
    ]
    keep: tuple[Any, ...]


class _LabelProblem(ctypes.Structure):
    _fields_ = [
        ("of", ctypes.POINTER(_Items)),
        ("head_us", _Address),
        ("rest_us", _Address),
        ("ready_rest_us", _Address),
        ("left_us", _Address),
        ("is_rising", _Long),
        ("is_counted", _Long),
        ("width", _Long),
        ("target_us", _Double),
        ("floor_us", _Address),
        ("window_rest_us", _Address),
    ]
    keep: tuple[Any, ...]


class NativeItems:
    """Calls into one loaded library."""

    def __init__(self, library: ctypes.CDLL) -> None:
        items = ctypes.POINTER(_Items)
        self._latency = _typed(
            library.sluice_items_latency, _Double, items, _Long, _Address, _Double
        )
        self._one_stage = _typed(library.sluice_items_one_stage, _Long, items, _Address)
        self._few = _typed(library.sluice_items_few, _Long, items, _Long, _Address)
        self._two_stages = _typed(library.sluice_items_two_stages, _Long, items, _Long, _Address)
        self._pair = _typed(
            library.sluice_items_pair, ctypes.c_int, ctypes.POINTER(_Pair), _Address
        )
        self._caps = _typed(
            library.sluice_items_caps,
            ctypes.c_int,
            items,
            ctypes.POINTER(_Caps),
            _Long,
            ctypes.POINTER(_Layouts),
        )
        self._laid_out = _typed(
            library.sluice_items_laid_out, ctypes.c_int, items, *(_Long,) * 3, *(_Address,) * 2
        )
        self._in_draws = _typed(
            library.sluice_items_in_draws,
            ctypes.c_int,
            ctypes.POINTER(_Drawn),
            _Long,
            *(_Address,) * 3,
        )
        self.labels_new = _typed(
            library.sluice_item_labels_new, _Address, ctypes.POINTER(_LabelProblem)
        )
        self.labels_advance = _typed(
            library.sluice_item_labels_advance, ctypes.c_int, _Address, _Long
        )
        self.labels_best = _typed(
            library.sluice_item_labels_best,
            _Double,
            _Address,
            _Address,
            ctypes.POINTER(_Long),
            ctypes.POINTER(_Double),
            ctypes.POINTER(_Long),
        )
        self.labels_free = _typed(library.sluice_item_labels_free, None, _Address)

    def latency_us(self, arrays: ItemArrays, ends: Sequence[int], most_us: float = inf) -> float:
        """Return the latency of this cut, or more than `most_us` once it is certain to be; infinite
        where a fragment does not fit a window.
        """
        cut = np.array(ends, dtype=np.int64)
        latency: float = self._latency(_items(arrays), len(cut), address_of(cut), most_us)
        return latency

    def one_stage(self, arrays: ItemArrays) -> Ends:
        """Return the best cut of one stage that takes no less for an item more, of any number of
        fragments. Raises MemoryError.
        """
        ends = np.empty(arrays.items, dtype=np.int64)
        return _found(ends, self._one_stage(_items(arrays), address_of(ends)))

    def few(self, arrays: ItemArrays, most: int) -> Ends:
        """Return the same of at most so many fragments; none where that admits none. Raises
        MemoryError.
        """
        ends = np.empty(arrays.items, dtype=np.int64)
        return _found(ends, self._few(_items(arrays), most, address_of(ends)))

    def two_stages(self, arrays: ItemArrays, most: int) -> Ends:
        """Return the best cut of two stages of a line each, without ready times, of at most so many
        fragments; none where that admits none. Raises MemoryError.
        """
        ends = np.empty(arrays.items, dtype=np.int64)
        return _found(ends, self._two_stages(_items(arrays), most, address_of(ends)))

    def pair_rest_us(
        self, overhead_us: tuple[float, float, float], spent_us: Floats, most: int
    ) -> Floats:
        """Return (m+1) what items u+1 .. m take at least in the first of three parts, which with
        the last handles one fragment at a time, where the one between handles any number, over 1 to
        `most` fragments. spent_us (3, m+1). Raises MemoryError.
        """
        spent = np.ascontiguousarray(spent_us, dtype=np.float64)
        rest: Floats = np.empty(spent.shape[1])
        addresses = (_Address * 3)(*(address_of(row) for row in spent))
        pair = _Pair(spent.shape[1] - 1, (_Double * 3)(*overhead_us), addresses, most)
        if self._pair(ctypes.byref(pair), address_of(rest)) < 0:
            raise MemoryError
        return rest

    def cap_steps(self, arrays: ItemArrays, walk: CapWalk) -> Iterator[CapStep]:
        """Yield each layout that is left of a walk. Raises MemoryError."""
        of, state = _items(arrays), _caps_of(walk)
        while cap := state.next_cap:
            state.latency_us, state.fragments, state.to_bytes = inf, 0, 0
            if self._caps(of, ctypes.byref(state), 1, None) < 0:
                raise MemoryError
            last = state.to_bytes if state.fragments else max(0, state.next_cap - 1)
            yield CapStep(state.fragments, state.latency_us, cap, last)

    def walk_caps(self, arrays: ItemArrays, walk: CapWalk, work: int) -> CapWalk:
        """Go on with a walk until about so many fragments were made. Raises MemoryError."""
        return self._walked(arrays, walk, work, None)

    def list_caps(
        self, arrays: ItemArrays, walk: CapWalk, work: int, room: int
    ) -> tuple[CapWalk, ListedLayouts]:
        """Go on with a walk until about so many fragments were made, or so many layouts listed.
        Raises MemoryError.
        """
        caps, fragments = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
        latencies = np.empty(room)
        addresses = address_of(caps), address_of(fragments), address_of(latencies)
        listed = _Layouts(room, 0, *addresses)
        walk = self._walked(arrays, walk, work, listed)
        count = listed.count
        return walk, ListedLayouts(caps[:count], fragments[:count], latencies[:count])

    def laid_out(self, arrays: ItemArrays, walk: CapWalk, caps: Ints, fragments: Ints) -> Ints:
        """Return the ends of the layouts of these caps by the walk's rule, one behind the other;
        `fragments` are how many each has. Raises MemoryError.
        """
        asked = np.ascontiguousarray(caps, dtype=np.int64)
        ends = np.empty(int(fragments.sum()), dtype=np.int64)
        rule = int(walk.is_before), walk.first_bytes
        made = self._laid_out(
            _items(arrays), *rule, len(asked), address_of(asked), address_of(ends)
        )
        if made < 0:
            raise MemoryError
        return ends

    def in_draws_us(self, of: ItemDraws, fragments: Ints, ends: Ints) -> Floats:
        """Return the latencies in µs, (cuts, draws), delay included, of cuts of so many fragments,
        whose ends are one behind the other. Raises MemoryError.
        """
        costs = DrawnCosts.of(of.overhead_us, of.ns_per_byte, of.range_ends_bytes, of.delay_us)
        columns: tuple[NDArray[Any], ...] = (
            *(of.ready_us, of.ready_factors, of.ends_bytes, of.own_us),
        )
        kept = tuple(map(np.ascontiguousarray, columns))
        drawn = _Drawn(
            ctypes.pointer(costs), len(of.ready_us) - 1, *map(address_of, kept), int(of.is_serial)
        )
        drawn.keep = (costs, *kept)
        counts = np.ascontiguousarray(fragments, dtype=np.int64)
        cuts = np.ascontiguousarray(ends, dtype=np.int64)
        found: Floats = np.empty((len(counts), of.draws))
        addresses = address_of(counts), address_of(cuts), address_of(found)
        if self._in_draws(ctypes.byref(drawn), len(counts), *addresses) < 0:
            raise MemoryError
        return found

    def _walked(
        self, arrays: ItemArrays, walk: CapWalk, work: int, listed: _Layouts | None
    ) -> CapWalk:
        state = _caps_of(walk)
        state.layouts, state.latency_us, state.fragments = (
            walk.layouts,
            walk.latency_us,
            walk.fragments,
        )
        state.from_bytes, state.to_bytes = walk.from_bytes, walk.to_bytes
        if self._caps(_items(arrays), ctypes.byref(state), work, listed) < 0:
            raise MemoryError
        return replace(
            walk,
            next_cap=state.next_cap,
            layouts=state.layouts,
            latency_us=state.latency_us,
            fragments=state.fragments,
            from_bytes=state.from_bytes,
            to_bytes=state.to_bytes,
        )

    def labels(
        self, arrays: ItemArrays, bounds: LabelBounds, *, width: int, target_us: float
    ) -> NativeLabels:
        """Begin a search for cuts below the target, with at most `width` labels an item. Raises
        MemoryError.
        """
        of = _items(arrays)
        parts = (
            *(bounds.head_us, bounds.rest_us, bounds.ready_rest_us, bounds.left_us),
            *(bounds.floor_us, bounds.window_rest_us),
        )
        kept = tuple(np.ascontiguousarray(part, dtype=np.float64) for part in parts)
        addresses = list(map(address_of, kept))
        problem = _LabelProblem(
            ctypes.pointer(of),
            *addresses[:4],
            int(bounds.is_rising),
            int(arrays.max_fragments < arrays.items),
            width,
            target_us,
            *addresses[4:],
        )
        problem.keep = (of, *kept)
        handle = self.labels_new(ctypes.byref(problem))
        if not handle:
            raise MemoryError
        return NativeLabels(self, handle, problem, arrays.items)


class NativeLabels:
    """A search by labels; its memory is the library's, and is given back with this object."""

    def __init__(
        self, kernels: NativeItems, handle: int, problem: _LabelProblem, items: int
    ) -> None:
        self._kernels, self._handle, self._problem, self._items = kernels, handle, problem, items
        self._free = weakref.finalize(self, kernels.labels_free, handle)

    def advance(self, work: int) -> bool:
        """Go on for about this much work; return whether it has ended. Raises MemoryError."""
        status: int = self._kernels.labels_advance(self._handle, work)
        if status < 0:
            raise MemoryError
        return status > 0

    def best(self) -> LabelsFound:
        """Return the best cut that was met, and what is proven by now."""
        ends = np.empty(self._items, dtype=np.int64)
        count, bound, work = _Long(0), _Double(0.0), _Long(0)
        out = ctypes.byref(count), ctypes.byref(bound), ctypes.byref(work)
        latency: float = self._kernels.labels_best(self._handle, address_of(ends), *out)
        return LabelsFound(latency, _found(ends, count.value), bound.value, work.value)


def _caps_of(walk: CapWalk) -> _Caps:
    """Where a walk over caps begins."""
    return _Caps(int(walk.is_before), walk.first_bytes, walk.next_cap, walk.last_cap)


def _items(arrays: ItemArrays) -> _Items:
    keep = (
        np.ascontiguousarray(arrays.ready_us, dtype=np.float64),
        np.ascontiguousarray(arrays.ends_bytes, dtype=np.int64),
        np.ascontiguousarray(arrays.spent_us, dtype=np.float64),
        np.ascontiguousarray(arrays.overhead_us, dtype=np.float64),
        np.ascontiguousarray(arrays.ranges, dtype=np.int64),
        np.ascontiguousarray(arrays.first_range, dtype=np.int64),
        np.ascontiguousarray(arrays.range_ends_bytes, dtype=np.float64),
        np.ascontiguousarray(arrays.range_overhead_us, dtype=np.float64),
        np.ascontiguousarray(arrays.range_ns_per_byte, dtype=np.float64),
        np.ascontiguousarray(arrays.earliest, dtype=np.int64),
    )
    windows = (
        np.ascontiguousarray(arrays.window_first, dtype=np.int64),
        np.ascontiguousarray(arrays.window_last, dtype=np.int64),
        np.ascontiguousarray(arrays.window_places, dtype=np.int64),
        np.ascontiguousarray(arrays.window_bytes, dtype=np.int64),
        np.ascontiguousarray(arrays.window_return_us, dtype=np.float64),
        np.empty(len(arrays.window_first) * arrays.items),
    )
    native = _Items(
        arrays.items,
        arrays.stages,
        *(column.ctypes.data for column in keep),
        arrays.max_fragments,
        len(arrays.window_first),
        *(column.ctypes.data for column in windows),
    )
    native.keep = (*keep, *windows)
    return native


def _found(ends: Ints, count: int) -> Ends:
    if count == _NOT_ADMITTED:
        return ()
    if count < 0:
        raise MemoryError
    return tuple(ends[:count].tolist())


def _typed(function: Any, restype: Any, *argtypes: Any) -> Any:
    function.restype, function.argtypes = restype, list(argtypes)
    return function
