"""The interior-point method that runs in C, asked as the one in NumPy is.

Notation  as in chain.py.
Source    kernels/native/interior_point.c; docs/theory.md sec. 14.
Exact     an iterate, not a proof: what is proven of it is computed in structured.py.
Traps     ctypes lets other threads run meanwhile; the arrays are this call's own.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solvers.exact.chain import Chain, ChainOptions, Iterate

Floats = NDArray[np.float64]

MAX_STAGES = 64
_REFUSED = -1  # what the kernel returns where it got no memory

_Doubles = ctypes.POINTER(ctypes.c_double)
_Longs = ctypes.POINTER(ctypes.c_int64)


class _Span(ctypes.Structure):
    _fields_ = [("boundary", ctypes.c_int64), ("first", ctypes.c_int64), ("last", ctypes.c_int64)]


class _Problem(ctypes.Structure):
    _fields_ = [
        ("k", ctypes.c_int64),
        ("n", ctypes.c_int64),
        ("overhead_us", _Doubles),
        ("us_per_byte", _Doubles),
        ("free_bytes", ctypes.c_double),
        ("spread_bytes", ctypes.c_double),
        ("repeat_step", ctypes.c_int64),
        ("repeats", ctypes.c_int64),
        ("boundaries", _Longs),
        ("q", ctypes.c_int64),
        ("spans", ctypes.POINTER(_Span)),
        ("span_count", ctypes.c_int64),
        ("close", ctypes.c_double),
        ("max_iterations", ctypes.c_int64),
        ("time_limit_s", ctypes.c_double),
        ("check_order_at", ctypes.c_double),
    ]


class _Outcome(ctypes.Structure):
    _fields_ = [
        ("complementarity", ctypes.c_double),
        ("apart", ctypes.c_double),
        ("iterations", ctypes.c_int64),
    ]


class NativeMethod:
    """Calls into one loaded library."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._solve = library.sluice_ip_solve
        self._solve.restype = ctypes.c_int
        self._solve.argtypes = [
            ctypes.POINTER(_Problem),
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.POINTER(_Outcome),
        ]
        self._repair = library.sluice_ip_repair
        self._repair.restype = None
        self._repair.argtypes = [ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]

    def __call__(self, chain: Chain, options: ChainOptions) -> Iterate | None:
        """The last iterate, or None where there was no memory for one."""
        n, k = len(chain.G), chain.k
        overhead, G = _doubles(chain.overhead), _doubles(chain.G)
        boundaries, spans = _spans(chain.may_wait)
        asked = _Problem(
            k,
            n,
            overhead.ctypes.data_as(_Doubles),
            G.ctypes.data_as(_Doubles),
            chain.free_bytes,
            chain.spread_bytes,
            chain.repeat_step,
            chain.repeats,
            boundaries.ctypes.data_as(_Longs),
            len(boundaries),
            spans,
            len(spans),
            options.close,
            options.max_iterations,
            options.time_limit_s,
            options.check_order_at,
        )
        y, p, violation = np.empty(k + 1), np.empty((k - 1, n)), np.zeros(n)
        outcome = _Outcome()
        status = self._solve(
            asked, y.ctypes.data, p.ctypes.data, violation.ctypes.data, ctypes.byref(outcome)
        )
        if status == _REFUSED:
            return None
        return Iterate(
            y=y[:k],
            repeated_y=float(y[k]),
            p=p,
            violation=violation[:-1],
            complementarity=outcome.complementarity,
            apart=outcome.apart,
            iterations=outcome.iterations,
        )

    def repaired(self, p: Floats) -> Floats:
        """Return the same as dual.repaired, row by row in one pass."""
        out = np.array(p, dtype=np.float64, order="C")
        self._repair(out.shape[0], out.shape[1], out.ctypes.data)
        return out


def _spans(may_wait: NDArray[np.bool_]) -> tuple[NDArray[np.int64], Any]:
    """The boundaries that are waited behind, and the runs of fragments that do."""
    boundaries = np.flatnonzero(may_wait.any(axis=0))
    edges = np.diff(may_wait[:, boundaries].T.astype(np.int8), prepend=0, append=0)
    places, first = np.nonzero(edges > 0)
    last = np.nonzero(edges < 0)[1]
    runs = zip(places.tolist(), (first + 1).tolist(), last.tolist(), strict=True)
    return boundaries, (_Span * len(first))(*(_Span(*run) for run in runs))


def _doubles(values: Floats) -> Any:
    return np.ascontiguousarray(values, dtype=np.float64)
