"""The latencies of many cuts of one machine.

Source    docs/theory.md, "Machines"; the evaluator is domain/machine.py.
Notation  x: sizes in bytes; k: equal fragments of x; q full fragments of s, then the remainder r.
Cost      a cut O(lags k (nodes + windows)); equal fragments without processors by the formula. In C
          some nanoseconds for each of these, in Python about a microsecond.
Exact     the evaluator's bits; the formula in C to rounding. tests/solvers/machine/test_costs.py.
Traps     lags that deadlock at one size do not at another where windows are in bytes: they are
          chosen for each cut. A size that does not fit a window takes infinitely long here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray

from domain.errors import Infeasible, WouldDeadlock
from domain.machine import Lags, Machine
from solvers.kernels import active

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Costs:
    """Latencies of one machine in µs, without the pipeline's constant delay, vectorised."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def equal_us(self, x: Floats, k: Ints) -> Floats:
        """Return what k equal fragments of (real) sizes x take, arrays of one shape."""
        if active.NATIVE is not None:
            return active.NATIVE.machine.equal_us(self._machine, x, k)
        pairs = zip(np.ravel(x).tolist(), np.ravel(k).tolist(), strict=True)
        return np.array([self._equal_us(*pair) for pair in pairs]).reshape(np.shape(x))

    def _equal_us(self, size: float, count: int) -> float:
        try:
            return self._machine.equal_us(size, count)
        except Infeasible:
            return inf

    def repeated_us(self, q: Ints, s: Ints, r: Ints) -> Floats:
        """Return what q fragments of s bytes and then a remainder of r take, arrays of one
        shape.
        """
        if active.NATIVE is not None:
            return active.NATIVE.machine.repeated_us(self._machine, q, s, r)
        rows = zip(np.ravel(q).tolist(), np.ravel(s).tolist(), np.ravel(r).tolist(), strict=True)
        found = [
            self.cut_us((size,) * count + ((rest,) if rest else ())) for count, size, rest in rows
        ]
        return np.array(found).reshape(np.shape(s))

    def cut_us(self, cut: Sequence[float]) -> float:
        """Return what this cut takes."""
        if active.NATIVE is not None:
            return active.NATIVE.machine.cut_us(self._machine, cut)
        try:
            return self._machine.node_times(cut).latency_us
        except Infeasible:
            return inf

    def by_lags(self, cut: Sequence[float]) -> Iterator[tuple[Lags, float]]:
        """Yield each choice of lags that does not deadlock, and what this cut takes at it. Raises
        Infeasible.
        """
        machine = self._machine
        for lags, _ in machine.lag_choices(machine.places(max(cut))):
            if active.NATIVE is not None:
                yield lags, active.NATIVE.machine.cut_at_us(machine, cut, lags)
            else:
                yield lags, machine.node_times(cut, lags).latency_us

    def best_lags(self, cut: Sequence[float]) -> Lags:
        """Return the lags at which this cut takes least, of equals the least. Raises Infeasible."""
        if not self._machine.network.processors:
            return ()
        return min(self.by_lags(cut), key=lambda one: one[1])[0]

    def node_times_us(self, cut: Sequence[float], lags: Lags) -> tuple[Floats, Floats]:
        """Return when each fragment is in each node at these lags: starts and ends in µs,
        (fragments, nodes). Raises Infeasible, and WouldDeadlock for lags that do.
        """
        self._machine.check_live(max(cut), lags)
        if active.NATIVE is not None:
            return active.NATIVE.machine.node_times_us(self._machine, cut, lags)
        times = self._machine.node_times(cut, lags)
        return np.array(times.start_us), np.array(times.end_us)

    def repeated_slopes(self, q: Ints, s: Ints, total: int, lags: Ints) -> tuple[Floats, Floats]:
        """Return what q fragments of s bytes and then the rest of the message take at these lags,
        µs, and a derivative of that by s for this q, µs per byte, arrays of one dimension; lags
        (cuts, processors).

        The derivative is of one longest path, so that the line through this point lies below the
        latency at all sizes at which costs are on the same ranges, windows hold as many fragments,
        and there is a rest, or none. Infinite, and 0, where the lags deadlock or s does not fit.
        """
        if active.NATIVE is not None:
            return active.NATIVE.machine.repeated_slopes(self._machine, q, s, total, lags)
        rows = zip(q.tolist(), s.tolist(), lags.tolist(), strict=True)
        found = [self._slope(full, size, total, tuple(order)) for full, size, order in rows]
        latency_us, slope = np.array(found).reshape(-1, 2).T.copy()
        return latency_us, slope

    def repeated_paths(self, q: Ints, s: Ints, total: int, lags: Ints) -> tuple[Floats, Floats]:
        """Return the same of a path that is no longer than the latency, and sooner found: in C of
        those that turn in one window, or two, in Python the longest of all.
        """
        if active.NATIVE is not None:
            return active.NATIVE.machine.repeated_paths(self._machine, q, s, total, lags)
        return self.repeated_slopes(q, s, total, lags)

    def _slope(self, q: int, s: int, total: int, lags: Lags) -> tuple[float, float]:
        machine, rest = self._machine, total - q * s
        cut = (s,) * q + ((rest,) if rest > 0 else ())
        try:
            times = machine.node_times(cut, lags)
        except (Infeasible, WouldDeadlock):
            return inf, 0.0
        slope = 0.0
        for step in machine.critical_path(times, s):
            stage = machine.network.stage_of[step.node]
            per_byte = machine.pipeline.stages[stage].range_at(cut[step.fragment]).ns_per_byte
            shared = machine.rules[stage].shared_ns_per_byte
            cost = shared if machine.network.is_shared[step.node] else per_byte - shared
            slope += cost / 1000.0 * (1 if step.fragment < q else -q)
        return times.latency_us, slope
