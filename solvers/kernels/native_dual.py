"""Bounds from the reduced dual, the solve of one small count, and searches over regions, in C.

Source    kernels/native/dual.c, project.c and count.c; exact/dual.py and exact/structured.py;
          kernels/native/tree.c and anneal.c; docs/theory.md sec. 7.
Notation  as in exact/dual.py: n stages, k fragments; p: (k-1, n); g, G: (n,) µs and µs/byte, for
          each of R regions (R, n); B: message; m, M: least and greatest size.
Cost      some microseconds for what crosses into C.
Exact     as exact/dual.py: lower bounds for any repaired p, floating-point error deducted.
Traps     ctypes lets other threads run meanwhile; the arrays are this call's own.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.kernels.native_recurrence import address_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_STAGES = 64
_NO_MEMORY = -1  # as in count.h
_Address = ctypes.c_void_p
_Long = ctypes.c_int64
_Double = ctypes.c_double


class NativeLines(ctypes.Structure):
    """Stages of one line each as the kernels read them; `keep` holds what the addresses are of."""

    _fields_ = [
        ("n", _Long),
        ("overhead_us", _Address),
        ("us_per_byte", _Address),
        ("message_bytes", _Double),
        ("min_bytes", _Double),
        ("max_bytes", _Double),
    ]
    keep: tuple[Floats, Floats]


def native_lines(g: Floats, G: Floats, *, B: float, m: float, M: float) -> NativeLines:
    """Return the problem of these lines for the calls below."""
    keep = np.ascontiguousarray(g), np.ascontiguousarray(G)
    native = NativeLines(len(g), address_of(keep[0]), address_of(keep[1]), B, m, M)
    native.keep = keep
    return native


class _Bounds(ctypes.Structure):
    _fields_ = [("lower_us", _Double), ("upper_us", _Double)]


class _Change(ctypes.Structure):
    _fields_ = [("stage", _Long), ("factor", _Double)]


class NativeDual:
    """Calls into one loaded library."""

    def __init__(self, library: ctypes.CDLL) -> None:
        lines = ctypes.POINTER(NativeLines)
        self._repair = _typed(library.sluice_dual_repair, None, _Long, _Long, _Address)
        self._restore = _typed(
            library.sluice_dual_restore, None, lines, _Long, _Long, _Double, _Address
        )
        self._value = _typed(library.sluice_dual_value, _Double, lines, _Long, _Address)
        self._above = _typed(library.sluice_dual_above, _Double, lines, _Long, _Address)
        self._below = _typed(library.sluice_dual_below, _Double, lines, _Long, _Address)
        self._project = _typed(library.sluice_dual_project, None, lines, _Long, _Double, _Address)
        self._solve = _typed(
            library.sluice_count_solve,
            ctypes.c_int,
            lines,
            *(_Long, ctypes.c_int),
            *(_Double, _Double, _Double),
            *(_Address, _Address, _Address),
        )
        self._changed = _typed(
            library.sluice_count_changed,
            ctypes.c_int,
            lines,
            *(_Long, _Long),
            _Address,
            _Double,
            _Address,
        )
        self._gradient = _typed(
            library.sluice_dual_gradient, ctypes.c_int, lines, _Long, *[_Address] * 5
        )

    def repaired(self, p: Floats) -> Floats:
        """Return the same as dual.repaired."""
        out = np.array(p, dtype=np.float64, order="C")
        self._repair(out.shape[0], out.shape[1], address_of(out))
        return out

    def restored(self, lines: NativeLines, k: int, p: Floats, cut: float) -> Floats:
        """Return the same as dual.restored, but for its last digits."""
        out = np.array(p, dtype=np.float64, order="C")
        self._restore(lines, k, out.shape[0], cut, address_of(out))
        return out

    def projected(self, lines: NativeLines, p: Floats, cut: float) -> Floats:
        """Return the same as dual.projected, but for its last digits."""
        out = np.array(p, dtype=np.float64, order="C")
        self._project(lines, len(out) + 1, cut, address_of(out))
        return out

    def value_us(self, lines: NativeLines, p: Floats) -> float:
        """Return the same as dual.value_us. Raises MemoryError."""
        return self._bound(self._value, lines, p)

    def bound_above(self, lines: NativeLines, p: Floats) -> float:
        """Return the same as dual.bound_above. Raises MemoryError."""
        return self._bound(self._above, lines, p)

    def bound_below(self, lines: NativeLines, p: Floats) -> float:
        """Return the same as dual.bound_below. Raises MemoryError."""
        return self._bound(self._below, lines, p)

    def gradient(self, lines: NativeLines, p: Floats, x: Floats) -> tuple[Floats, Floats, float]:
        """Return dT*/dg and dT*/dG, (n,) each, and dT*/dB at an optimal p and x.

        Raises MemoryError.
        """
        rows, sizes = np.ascontiguousarray(p), np.ascontiguousarray(x)
        found: Floats = np.empty(2 * lines.n + 1)
        at = address_of(found)
        places = at, at + 8 * lines.n, at + 16 * lines.n
        if self._gradient(lines, len(sizes), address_of(rows), address_of(sizes), *places):
            raise MemoryError
        return found[: lines.n], found[lines.n : -1], float(found[-1])

    def _bound(self, function: Any, lines: NativeLines, p: Floats) -> float:
        rows = np.ascontiguousarray(p, dtype=np.float64)
        value: float = function(lines, len(rows) + 1, address_of(rows))
        if isnan(value):
            raise MemoryError
        return value

    def solve(
        self,
        lines: NativeLines,
        k: int,
        *,
        whole: bool,
        close: float,
        aim: float,
        time_limit_s: float,
    ) -> tuple[float, float, Floats, Floats] | None:
        """Return (lower, upper, x, p) for k >= 2 fragments, close or not; None without memory.

        With `whole` no fragments are of one size for the method's ease.
        """
        n = lines.n
        found: Floats = np.empty(2 + k + (k - 1) * n)  # one array: each costs some microseconds
        at = address_of(found)
        places = at + 16, at + 16 + 8 * k, at
        if self._solve(lines, k, whole, close, aim, time_limit_s, *places) == _NO_MEMORY:
            return None
        x, p = found[2 : k + 2], found[k + 2 :].reshape(k - 1, n)
        return float(found[0]), float(found[1]), x, p

    def changed(
        self, lines: NativeLines, k: int, changes: Sequence[tuple[int, float]], *, close: float
    ) -> list[tuple[float, float]] | None:
        """Return (lower, upper), close or not, of k >= 2 fragments with the costs of one stage
        times a factor, for each of these changes; None without memory.
        """
        asked = (_Change * len(changes))(*(_Change(*one) for one in changes))
        found = (_Bounds * len(changes))()
        status = self._changed(lines, k, len(changes), asked, close, found)
        return None if status else [(one.lower_us, one.upper_us) for one in found]


class _Sized(ctypes.Structure):
    _fields_ = [
        ("stages", _Long),
        ("fewest", _Long),
        ("fragments", _Long),
        ("regions", _Long),
        ("low", _Address),
        ("high", _Address),
        ("overhead_us", _Address),
        ("us_per_byte", _Address),
        ("message_bytes", _Double),
        ("unit_bytes", _Double),
        ("span_bytes", _Double),
        ("slope_us", _Double),
    ]


class _Annealed(ctypes.Structure):
    _fields_ = [
        ("stages", _Long),
        ("regions", _Long),
        ("low", _Address),
        ("high", _Address),
        ("overhead_us", _Address),
        ("us_per_byte", _Address),
        ("min_count", _Long),
        ("max_count", _Long),
        ("unit_bytes", _Double),
        ("first", _Double),
        ("cells", _Long),
        ("seed", ctypes.c_uint64),
    ]


MAX_TREE_REGIONS = 63  # as in tree.h
_MAX_SIZES = 4096  # of a cut that nodes of many counts offer
_WHOLE = 1e-9  # relative


class NativeRegions:
    """The library's searches over the regions of one message, sizes in bytes, times in µs.

    low, high (R,): least and greatest size of each region, ascending; g, G (R, n): the lines there.
    """

    def __init__(
        self,
        kernels: NativeSearches,
        arrays: tuple[Floats, Floats, Floats, Floats],
        *,
        B: float,
        unit: float,
    ) -> None:
        self._kernels, self._B, self._unit = kernels, B, unit
        self._keep = tuple(np.ascontiguousarray(array, dtype=np.float64) for array in arrays)
        self._R, self._n = self._keep[2].shape

    def entries(self, k: int) -> int:
        """Return how many numbers the program of up to k fragments has."""
        entries: int = self._kernels.entries(self._n, k, self._R + 1)
        return entries

    def tree(
        self, counts: tuple[int, int], known_us: float, *, span: tuple[float, float] = (0.0, 0.0)
    ) -> NativeTree | None:
        """Return the tree of all cuts into so many fragments, at least 2; None where it cannot be
        begun.

        With a span (bytes, µs/byte) it has the cuts of messages up to so many bytes less, too, each
        latency and target with so much more for each byte that its message lacks.
        """
        (fewest, k), addresses = counts, (array.ctypes.data for array in self._keep)
        sized = _Sized(self._n, fewest, k, self._R, *addresses, self._B, self._unit, *span)
        handle = self._kernels.new(ctypes.byref(sized), known_us)
        return NativeTree(self._kernels, handle, k) if handle else None

    def groups(self, counts: tuple[int, int], known_us: float) -> NativeGroups | None:
        """Return the search over all cuts into so many fragments, at least 2, of which most are in
        groups; None where it cannot be begun.
        """
        (fewest, k), addresses = counts, (array.ctypes.data for array in self._keep)
        sized = _Sized(self._n, fewest, k, self._R, *addresses, self._B, self._unit, 0.0, 0.0)
        handle = self._kernels.groups_new(ctypes.byref(sized), known_us)
        return NativeGroups(self._kernels, handle, counts) if handle else None

    def annealed(
        self, start: Ints, *, counts: tuple[int, int], first: float, cells: int, seed: int
    ) -> Ints:
        """Return the best cut met by random moves from this one, whose sizes are in regions.

        `first` is how much worse, relative, a cut may be that is gone on from at the beginning.
        Raises MemoryError.
        """
        addresses = (array.ctypes.data for array in self._keep)
        problem = _Annealed(self._n, self._R, *addresses, *counts, self._unit, first, cells, seed)
        sizes, count = np.zeros(counts[1]), _Long(len(start))
        sizes[: len(start)] = start
        if self._kernels.anneal(ctypes.byref(problem), address_of(sizes), ctypes.byref(count)) < 0:
            raise MemoryError
        return sizes[: count.value].astype(np.int64)


class NativeTree:
    """The tree of some counts; its memory is the library's, and is given back with this object."""

    def __init__(self, kernels: NativeSearches, handle: int, k: int) -> None:
        self._kernels, self._handle, self._k = kernels, handle, k
        self._free = weakref.finalize(self, kernels.free, handle)

    def advance(self, target_us: float, work: float) -> float:
        """Divide nodes until all are at least the target, or the work is used; return its rest."""
        left: float = self._kernels.advance(self._handle, target_us, work)
        return left

    @property
    def bound_us(self) -> float:
        """The least bound of all cuts not known to reach the target, infinite without any."""
        bound: float = self._kernels.bound(self._handle)
        return bound

    @property
    def best(self) -> tuple[float, Floats]:
        """The best cut that was met: its latency (infinite where none was) and sizes."""
        sizes: Floats = np.zeros(self._k)
        latency: float = self._kernels.best(self._handle, address_of(sizes))
        return latency, sizes[sizes > 0.0]

    @property
    def real(self) -> tuple[float, Floats]:
        """The least bound that nothing divides (infinite without one), and real sizes there.

        Sizes that a sum of weights misses by its rounding are whole. No sizes without any.
        """
        sizes: Floats = np.zeros(self._k)
        bound: float = self._kernels.real(self._handle, address_of(sizes))
        sizes = sizes[sizes > 0.0] if sizes[0] > 0.0 else sizes[:0]
        whole = np.rint(sizes)
        return bound, np.where(np.abs(sizes - whole) <= _WHOLE * whole, whole, sizes)


class NativeGroups:
    """Nodes of many counts; their memory is the library's, and is given back with this object."""

    def __init__(self, kernels: NativeSearches, handle: int, counts: tuple[int, int]) -> None:
        self._kernels, self._handle, self._counts = kernels, handle, counts[1] - counts[0] + 1
        self._free = weakref.finalize(self, kernels.groups_free, handle)

    def advance(self, target_us: float, known_us: Floats, work: float) -> float:
        """Divide nodes until all are at least the target, or the work is used; return its rest.

        known_us (counts,): what is known of each count besides; those at the target are left out.
        """
        known = np.ascontiguousarray(known_us, dtype=np.float64)
        left: float = self._kernels.groups_advance(self._handle, target_us, address_of(known), work)
        return left

    @property
    def bounds_us(self) -> tuple[Floats, Floats]:
        """The least bound of each count's cuts that are not known to reach the target: of nodes
        that can be divided, and of those that nothing divides; infinite without any.
        """
        still_open: Floats = np.zeros(self._counts)
        closed: Floats = np.zeros(self._counts)
        addresses = address_of(still_open), address_of(closed)
        self._kernels.groups_bounds(self._handle, *addresses)
        return still_open, closed

    def best(self) -> tuple[float, Floats]:
        """Return the best cut met since the last call: its latency and sizes, none without one."""
        sizes, count = np.zeros(_MAX_SIZES), _Long(0)
        latency: float = self._kernels.groups_best(
            self._handle, address_of(sizes), _MAX_SIZES, ctypes.byref(count)
        )
        return latency, sizes[: count.value]


class NativeSearches:
    """The functions of tree.h, groups.h and anneal.h."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.entries = _typed(library.sluice_tree_entries, _Long, _Long, _Long, _Long)
        self.new = _typed(library.sluice_tree_new, _Address, ctypes.POINTER(_Sized), _Double)
        self.free = _typed(library.sluice_tree_free, None, _Address)
        self.advance = _typed(library.sluice_tree_advance, _Double, _Address, _Double, _Double)
        self.bound = _typed(library.sluice_tree_bound_us, _Double, _Address)
        self.best = _typed(library.sluice_tree_best, _Double, _Address, _Address)
        self.real = _typed(library.sluice_tree_real, _Double, _Address, _Address)
        self.groups_new = _typed(
            library.sluice_groups_new, _Address, ctypes.POINTER(_Sized), _Double
        )
        self.groups_free = _typed(library.sluice_groups_free, None, _Address)
        self.groups_advance = _typed(
            library.sluice_groups_advance, _Double, _Address, _Double, _Address, _Double
        )
        self.groups_bounds = _typed(
            library.sluice_groups_bounds, None, _Address, _Address, _Address
        )
        self.groups_best = _typed(
            library.sluice_groups_best,
            _Double,
            _Address,
            _Address,
            _Long,
            ctypes.POINTER(_Long),
        )
        self.anneal = _typed(
            library.sluice_anneal,
            _Double,
            ctypes.POINTER(_Annealed),
            _Address,
            ctypes.POINTER(_Long),
        )


def _typed(function: Any, restype: Any, *argtypes: Any) -> Any:
    function.restype, function.argtypes = restype, list(argtypes)
    return function
