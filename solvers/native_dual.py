"""Bounds from the reduced dual, and the solve of one small count, in C.

Source    kernels/native/dual.c and count.c; dual.py and structured.py.
Notation  as in dual.py: n stages, k fragments; p: (k-1, n).
Cost      some microseconds for what crosses into C.
Exact     as dual.py: lower bounds for any repaired p, floating-point error deducted.
Traps     ctypes lets other threads run meanwhile; the arrays are this call's own.
"""

from __future__ import annotations

import ctypes
from functools import cache
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.kernels.native import Choice, library
from solvers.line_problem import LineProblem

Floats = NDArray[np.float64]

MOST_STAGES = 64
_CLOSE = 0  # as in count.h
_Address = ctypes.c_void_p
_Long = ctypes.c_int64
_Double = ctypes.c_double


class _Lines(ctypes.Structure):
    _fields_ = [
        ("n", _Long),
        ("overhead_us", _Address),
        ("us_per_byte", _Address),
        ("message_bytes", _Double),
        ("least_bytes", _Double),
        ("greatest_bytes", _Double),
    ]
    keep: tuple[Floats, Floats]


class _Bounds(ctypes.Structure):
    _fields_ = [("lower_us", _Double), ("upper_us", _Double)]


class NativeDual:
    """Calls into one loaded library."""

    def __init__(self, library: ctypes.CDLL) -> None:
        lines = ctypes.POINTER(_Lines)
        self._repair = _typed(library.sluice_dual_repair, None, _Long, _Long, _Address)
        self._value = _typed(library.sluice_dual_value, _Double, lines, _Long, _Address)
        self._above = _typed(library.sluice_dual_above, _Double, lines, _Long, _Address)
        self._below = _typed(library.sluice_dual_below, _Double, lines, _Long, _Address)
        self._solve = _typed(
            library.sluice_count_solve,
            ctypes.c_int,
            lines,
            _Long,
            _Double,
            _Double,
            _Double,
            _Address,
            _Address,
            ctypes.POINTER(_Bounds),
        )

    def repaired(self, p: Floats) -> Floats:
        """As dual.repaired."""
        out = np.array(p, dtype=np.float64, order="C")
        self._repair(out.shape[0], out.shape[1], out.ctypes.data)
        return out

    def value_us(self, lines: LineProblem, p: Floats) -> float:
        """As dual.value_us. Raises MemoryError."""
        return self._bound(self._value, lines, p)

    def bound_above(self, lines: LineProblem, p: Floats) -> float:
        """As dual.bound_above. Raises MemoryError."""
        return self._bound(self._above, lines, p)

    def bound_below(self, lines: LineProblem, p: Floats) -> float:
        """As dual.bound_below. Raises MemoryError."""
        return self._bound(self._below, lines, p)

    def _bound(self, function: Any, lines: LineProblem, p: Floats) -> float:
        rows = np.ascontiguousarray(p, dtype=np.float64)
        value: float = function(_told(lines), len(rows) + 1, rows.ctypes.data)
        if isnan(value):
            raise MemoryError
        return value

    def solve(
        self, lines: LineProblem, k: int, *, close: float, aim: float, time_limit_s: float
    ) -> tuple[float, float, Floats, Floats] | None:
        """(lower, upper, x, p) for k >= 2 fragments, or None where these are not close."""
        x: Floats = np.empty(k)
        p: Floats = np.empty((k - 1, lines.n))
        bounds = _Bounds()
        status = self._solve(
            _told(lines), k, close, aim, time_limit_s, x.ctypes.data, p.ctypes.data, bounds
        )
        return (bounds.lower_us, bounds.upper_us, x, p) if status == _CLOSE else None


def _told(lines: LineProblem) -> _Lines:
    """The problem as the kernels read it; `keep` holds the arrays whose addresses are in it."""
    g, G = np.ascontiguousarray(lines.g), np.ascontiguousarray(lines.G)
    told = _Lines(len(g), g.ctypes.data, G.ctypes.data, lines.B, lines.m, lines.M)
    told.keep = (g, G)
    return told


def _typed(function: Any, restype: Any, *argtypes: Any) -> Any:
    function.restype, function.argtypes = restype, list(argtypes)
    return function


@cache
def native_dual(kernels: Choice = "auto") -> NativeDual | None:
    """The kernels to use, or None for NumPy. Raises InvalidInput for "native" without a build."""
    found = library(kernels)
    return None if found is None else NativeDual(found)
