"""What repeated sizes cost on messages, and how far that is over the best known: all pairs at once.

Source    Wang98 eq. (1)-(3); docs/theory.md, "The regret of a setting".
Notation  s: (p,) repeated sizes; B: (m,) message sizes, bytes; q = floor(B/s) full fragments, then
          r = B - q s < s; t: stage times, µs; w: (m,) shares of a workload; R: (p, m) regrets.
Cost      O(n) NumPy passes over (p, m), whatever the number of fragments.
Exact     equal to the evaluator but for rounding: q equal fragments have left stage j at
          sum_{i<=j} t_i(s) + (q-1) max_{i<=j} t_i(s), and the remainder queues behind them. Of an
          aggregate it is `solvers.aggregate.costs`. tests/solvers/test_regret.py.
Traps     s >= B is one fragment of B. r = 0 is no fragment, though overheads would make it one. A
          message that can be done in no time has regret 0 or infinity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from domain.errors import InvalidInput
from domain.model import CostModel
from domain.regret import BestKnown, Objective
from domain.workload import Workload
from solvers.backends import backend_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CHUNK_CELLS = 2**17  # pairs of a size and a message that are priced together


def repeated_latencies_us(model: CostModel, s: Ints, B: Ints) -> Floats:
    """Return latencies in µs, delay included, of messages B that repeat s; the two are
    broadcast.
    """
    whole = np.minimum(s, B)
    q = B // whole
    r = B - q * whole
    return backend_of(model).repeated_us(model, q, whole, r) + model.delay_us


@dataclass(frozen=True, slots=True)
class WorkloadCosts:
    """A workload whose best latencies are known: prices sizes by what the objective says."""

    model: CostModel
    objective: Objective
    B: Ints
    w: Floats
    min_us: Floats

    @classmethod
    def of(
        cls,
        model: CostModel,
        best: Sequence[BestKnown],
        workload: Workload,
        *,
        objective: Objective,
    ) -> WorkloadCosts:
        """Return the costs of a workload; sizes without a share do not count.

        Raises InvalidInput where a best is missing.
        """
        known = {one.message_bytes: one.latency_us for one in best}
        counted = [size for size in workload.sizes if size.share > 0.0]
        if any(size.message_bytes not in known for size in counted):
            raise InvalidInput(
                "expected what is best known for each size of the workload", field="workload"
            )
        B = np.array([size.message_bytes for size in counted], dtype=np.int64)
        w = np.array([size.share for size in counted])
        min_us = np.array([known[size.message_bytes] for size in counted])
        return cls(model, objective, B, w, min_us)

    def part(self, low: int, high: int) -> WorkloadCosts:
        """Return the same of messages of low to high bytes alone, inclusive; shares are not
        scaled.
        """
        kept = np.clip(self.B, low, high) == self.B
        parts = (self.B[kept], self.w[kept], self.min_us[kept])
        return WorkloadCosts(self.model, self.objective, *parts)

    def regrets(self, s: Ints) -> Floats:
        """Return R: the regret of each size on each message, (p, m)."""
        latency = repeated_latencies_us(self.model, s[:, None], self.B[None, :])
        return over(latency, self.min_us)

    def values(self, s: Ints) -> Floats:
        """Return what the objective says of each size, (p,): the less the better."""
        sums = self.sums(s)
        if self.objective is Objective.TIME:
            return over(sums, np.array(self.whole))
        valued: Floats = sums / self.whole
        return valued

    def sums(self, s: Ints) -> Floats:
        """Return what the objective is made of, (p,): the time of all messages, their regrets
        times their shares, or the worst regret.

        Those of parts of the workload add up, but for the worst.
        """
        length = max(1, CHUNK_CELLS // len(self.B))
        parts = [self._summed(s[start : start + length]) for start in range(0, len(s), length)]
        return np.concatenate(parts)

    @property
    def whole(self) -> float:
        """What the sums are a share of: the best time of all messages, or their shares."""
        if self.objective is Objective.TIME:
            return float((self.min_us * self.w).sum())
        return 1.0 if self.objective is Objective.WORST else float(self.w.sum())

    def _summed(self, s: Ints) -> Floats:
        if self.objective is Objective.TIME:
            latency = repeated_latencies_us(self.model, s[:, None], self.B[None, :])
            total: Floats = (latency * self.w).sum(axis=-1)
            return total
        R = self.regrets(s)
        summed: Floats = (
            R.max(axis=1) if self.objective is Objective.WORST else (R * self.w).sum(axis=-1)
        )
        return summed


def over(latency_us: Floats, min_us: Floats) -> Floats:
    """Return (T - T*) / T*, as `domain.regret.Regret` has it."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (latency_us - min_us) / min_us
    at_zero = np.where(latency_us <= min_us, 0.0, np.inf)
    regret: Floats = np.where(min_us > 0.0, share, at_zero)
    return regret
