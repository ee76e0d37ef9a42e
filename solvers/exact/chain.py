"""What the interior-point methods are asked and return; and the one that runs in C.

Notation  k fragments, n stages; step t leads from fragment t to fragment t+1 (t = 0..k-2); p_t: a
          distribution over the stages; y_t: bytes above the least size; B' = B - km; M' = M - m.

The problem is the reduced dual (results sec. 1). Without order rows it is the dual of the no-wait
chain (theory sec. 6); `boundaries` names the stages d behind which fragments may wait, that is,
where the order rows sum_{c<=d} (p_t - p_{t+1}) >= 0 stand. One step may be repeated: the fragments
between its repetitions have one size and one p, so that k is smaller than the cut's count.

Both bounds of an iterate: the latency of its sizes, the value of its repaired dual.

Notation  as above.
Source    results sec. 1; the recurrence of Wang98 eq. (1)-(3).
Cost      O(k n).
Exact     the upper bound is a latency, the lower one a feasible dual's value; rounding errors are
          accounted for where answers are made of them (dual.value_us), not here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from solvers.exact.dual import capped_value_us, repaired, restored, value_us
from solvers.line_problem import LineProblem

Floats = NDArray[np.float64]

_SHORT_ENDS = (64, 512, 4_096)
LONG = 2_000  # fragments of a chain: beyond, tails take most of the iterations
_AT_REST = 0.01  # of the distance asked for: complementarity at which the rest is of p's order
_SETTLED = 1e-13  # of the weight that the ends of a cut may leave in its middle,
_LOST = 1e-11  # or of the latency that long ones may lose by it
_WORTH_SHORTENING = 0.6  # of the fragments: a chain longer than this is not worth the attempt
_WORTH_GUESSING = 0.7  # of the ends that are long enough for every stage: a guess of more is none
_MARGIN = 8  # fragments of each end beyond those of a guess: iterates are not settled yet
_OTHER_END = 48  # fragments of the end across from a long one at least: its sizes need a start


@dataclass(frozen=True, slots=True)
class Chain:
    """g + mG (n,) µs, G (n,) µs/byte, B' > 0 and M' in bytes, k >= 2 fragments, n >= 2 stages.

    Step `repeat_step` is taken `repeats` times; the cut has k + repeats - 1 fragments. Fragments
    1 .. k-2 may wait behind `boundaries`, or where `waits` (k-2, n-1) says so.
    """

    overhead: Floats
    G: Floats
    free_bytes: float
    spread_bytes: float
    k: int
    boundaries: tuple[int, ...] = ()
    repeat_step: int = 0
    repeats: int = 1
    waits: NDArray[np.bool_] | None = None

    @property
    def fragments(self) -> int:
        """The number of fragments of the cut."""
        return self.k + self.repeats - 1

    def all_steps(self, p: Floats) -> Floats:
        """Return the rows of every step of the cut, of those of the chain's (k-1, n)."""
        if self.repeats == 1:
            return p
        times = np.ones(len(p), dtype=np.int64)
        times[self.repeat_step] = self.repeats
        return np.repeat(p, times, axis=0)

    @property
    def is_capped(self) -> bool:
        """Whether the greatest size can bind."""
        return self.spread_bytes < self.free_bytes

    @property
    def may_wait(self) -> NDArray[np.bool_]:
        """Which fragments, 1 .. k-2, may wait behind which boundary, (k-2, n-1)."""
        if self.waits is not None:
            return self.waits
        behind = np.isin(np.arange(len(self.G) - 1), self.boundaries)
        return np.broadcast_to(behind, (max(self.k - 2, 0), len(behind)))


@dataclass(frozen=True, slots=True)
class ChainOptions:
    """When to stop: at two bounds this close (relative), or after these iterations or seconds.

    With `check_order_at` also once the complementarity is below it and p out of order by more than
    ten times its root, a thousand times of long chains: then boundaries are missing, and going on
    is of no use. In long chains it takes that much to tell which.
    """

    close: float
    time_limit_s: float
    max_iterations: int = 80
    check_order_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Iterate:
    """The last iterate: y (k,) bytes, the repeated y, p (k-1, n), and how it stands.

    `violation` (n-1,) is how far p is out of stochastic order at each boundary; `apart` the
    relative distance of the two bounds, as the method computed it (1 where it did not).
    """

    y: Floats
    repeated_y: float
    p: Floats
    violation: Floats
    complementarity: float
    apart: float
    iterations: int

    def all_y(self, chain: Chain) -> Floats:
        """Return y of every fragment of the cut."""
        if chain.repeats == 1:
            return self.y
        split = chain.repeat_step + 1
        middle = np.full(chain.repeats - 1, self.repeated_y)
        return np.concatenate([self.y[:split], middle, self.y[split:]])


ChainMethod: TypeAlias = Callable[[Chain, ChainOptions], Iterate | None]


def bound_distance(chain: Chain, iterate: Iterate, close: float) -> float:
    """Return the relative distance of the two bounds.

    Where the repaired rows leave them apart, those of long chains are restored, and those of which
    the complementarity says that they should be close.
    """
    y, share = iterate.all_y(chain), max(iterate.complementarity, 0.0)
    sizes = np.minimum(y * (chain.free_bytes / y.sum()), chain.spread_bytes)
    lines = LineProblem(
        g=chain.overhead,
        G=chain.G,
        B=chain.free_bytes,
        m=0.0,
        M=chain.spread_bytes,
        k_min=1,
        k_max=len(sizes),
    )
    upper = lines.latency_us(sizes)
    lower = value_us(lines, chain.all_steps(repaired(iterate.p)))
    is_worth = chain.is_capped or chain.k > LONG or share <= _AT_REST * close
    for cut in (share**0.5, 0.0) if is_worth else ():
        if upper - lower > close * upper:
            p = chain.all_steps(restored(lines, iterate.p, chain.fragments, cut))
            lower = max(lower, capped_value_us(lines, p, upper))
    return (upper - lower) / upper


def ends_to_try(lines: LineProblem, k: int) -> list[tuple[int, int] | None]:
    """Return how many fragments of each end to let differ, in order of trial; None: all.

    Behind the bottleneck b the dual leaves e_b by a factor of G_{s..b-1} / G_{s+1..b} a step, for
    a stage s before it (docs/theory.md sec. 14); mirrored for the stages after it. Few of these
    matter: where b is the slowest stage at every size short ends are tried first, else those that
    the stages of greater overheads need.
    """
    b = int(np.argmax(lines.g + lines.G * (lines.B / k)))
    Q = np.concatenate([[0.0], np.cumsum(lines.G)])
    before = (Q[b] - Q[:b]) / np.maximum(Q[b + 1] - Q[1 : b + 1], 1e-300)
    after = (Q[b + 2 :] - Q[b + 1]) / np.maximum(Q[b + 1 : -1] - Q[b], 1e-300)
    lost = 1.0 - lines.G / lines.G[b] if lines.G[b] > 0.0 else np.zeros(lines.n)
    certain = _settling(before, lost[:b]), _settling(after, lost[b + 1 :])
    if lines.g[b] == lines.g.max() and lines.G[b] == lines.G.max():
        guesses = [(length, length) for length in _SHORT_ENDS]
    else:  # a path stays elsewhere for an overhead: stages of lesser ones are left in a step or two
        dearer = lines.g > lines.g[b]
        first = _settling(before[dearer[:b]], lost[:b][dearer[:b]])
        last = _settling(after[dearer[b + 1 :]], lost[b + 1 :][dearer[b + 1 :]])
        shortest = min(max(first, last) // 4, _OTHER_END)
        first, last = max(first, shortest) + _MARGIN, max(last, shortest) + _MARGIN
        # Ends of one length are given up at the first rough iterate that has not settled.
        guess = first, last + (first == last)
        guesses = [guess] if sum(guess) < _WORTH_GUESSING * sum(certain) else []
    worth = [ends for ends in [*guesses, certain] if sum(ends) <= _WORTH_SHORTENING * k]
    return [*sorted(worth, key=sum), None]


def _settling(factors: Floats, lost: Floats) -> int:
    """Steps until the slowest of these geometric sequences has died away; where that is long, until
    what is left costs nothing: of a weight left, the middle loses this share.
    """
    slowest = float(factors.max(initial=0.0))
    if slowest >= 1.0 - 1e-9:
        return 1 << 40
    steps = 8 + int(np.log(_SETTLED) / np.log(max(slowest, 1e-3)))
    if steps <= LONG:
        return steps
    left = np.minimum(_LOST / np.maximum(lost, _LOST), 1.0)
    return 8 + int((np.log(left) / np.log(np.maximum(factors, 1e-3))).max())


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
