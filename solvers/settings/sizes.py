"""What repeated sizes cost on messages, and how far that is over the best known: all pairs at once.

Source    Wang98 eq. (1)-(3); docs/theory.md, "The regret of a setting".
Notation  s: (p,) repeated sizes; B: (m,) message sizes, bytes; q = floor(B/s) full fragments, then
          r = B - q s < s; t: stage times, µs; w: (m,) shares of a workload; R: (p, m) regrets.
Cost      O(n) NumPy passes over (p, m), whatever the number of fragments.
Exact     equal to the evaluator but for rounding: q equal fragments have left stage j at
          sum_{i<=j} t_i(s) + (q-1) max_{i<=j} t_i(s), and the remainder queues behind them. Of an
          aggregate it is `solvers.aggregate_costs`. tests/solvers/test_regret.py.
Traps     s >= B is one fragment of B. r = 0 is no fragment, though overheads would make it one. A
          message that can be done in no time has regret 0 or infinity.

The sizes that a rule admits, and the search among them for the one of least regret.

Source    docs/theory.md, "The regret of a setting".
Notation  s: sizes; B: (m,) messages; w: their shares; k: number of fragments; u: the unit.
Cost      the budget below, in pairs of a size and a message, whatever the range.
Exact     over every admitted size where they are no more than EVERY, or powers of two. Else the
          best of these: a geometric grid, the sizes ceil(B/k) at which a message is cut into one
          fragment fewer, ends of ranges, the best repeated sizes, and all or evenly spread sizes
          around the best of those, closer each round. Brute force in tests/solvers/test_regret.py.
Traps     The objective falls at every ceil(B/k): a grid alone misses the sizes that divide. Rounded
          up to the unit, because a size short by one byte costs one more fragment.

Merging the steps of a list of size steps: which neighbours one size can serve.

Source    docs/theory.md, "The regret of a setting".
Notation  V: (a, b) the sum that the objective is made of, of size a on octave b.
Cost      O(steps^2) lookups in V.
Exact     greedy, and says no more: each merger costs less than the threshold over its messages.
Traps     with the total time, an octave counts by its time, with the mean by its share; with the
          worst, each octave keeps its own worst regret to the threshold: the greatest of all alone
          would leave the others no care.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

import numpy as np
from numpy.typing import NDArray

from domain.errors import InvalidInput
from domain.model import CostModel
from domain.regret import BestKnown, Objective, SizeRule
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


# --- the sizes that a rule admits ---------------------------------------------------------------

EVERY = 8192  # so many admitted sizes are all priced
GRID_PER_OCTAVE = 96
MAX_COUNT = 96  # breakpoints ceil(B/k) up to this k
BUDGET_CELLS = 24_000_000  # pairs times stages, of the first candidates; a third of it each round
MIN_CANDIDATES = 256
ROUNDS = 4
SPOTS = 8  # candidates whose neighbourhoods a round looks into
SPREAD = 256  # sizes between two neighbours that are priced at once
TIE = 1e-12  # regrets that differ by less are equal


@dataclass(frozen=True, slots=True)
class Sizes:
    """Admitted sizes: powers of two of least to greatest, or multiples of the unit."""

    minimum: int
    maximum: int
    unit: int
    is_power_of_two: bool

    @classmethod
    def of(cls, rule: SizeRule, largest: int) -> Sizes:
        """Return those of the rule, up to the first that sends the largest message whole.

        Raises InvalidInput where the rule admits none.
        """
        unit = rule.multiple_of
        if rule.is_power_of_two:
            minimum = max(1 << max(0, rule.min_bytes - 1).bit_length(), _two_part(unit))
            maximum = 1 << max(0, rule.max_bytes.bit_length() - 1)
            whole = 1 << (largest - 1).bit_length()
            unit = 1
        else:
            minimum = max(1, -(-rule.min_bytes // unit)) * unit
            maximum, whole = rule.max_bytes // unit * unit, -(-largest // unit) * unit
        if rule.max_bytes < 1 or maximum < minimum:
            raise InvalidInput("the rule admits no size", field="sizes")
        return cls(minimum, max(minimum, min(maximum, whole)), unit, rule.is_power_of_two)

    def every(self) -> Ints | None:
        """Return all of them, ascending; None where they are many."""
        if self.is_power_of_two:
            span = range(self.minimum.bit_length() - 1, self.maximum.bit_length())
            return np.array([1 << bit for bit in span], dtype=np.int64)
        if (self.maximum - self.minimum) // self.unit >= EVERY:
            return None
        return np.arange(self.minimum, self.maximum + 1, self.unit, dtype=np.int64)

    def up(self, sizes: Ints) -> Ints:
        """Return each rounded up to an admitted one, ascending, once each."""
        whole = -(-sizes // self.unit) * self.unit
        return np.unique(np.clip(whole, self.minimum, self.maximum))

    def between(self, low: int, high: int, *, maximum: int) -> Ints:
        """Return those of low to high, or `most` that are evenly spread."""
        first, last = max(low, self.minimum) // self.unit, min(high, self.maximum) // self.unit
        count = min(maximum, last - first + 1)
        places = first + (np.arange(count, dtype=np.int64) * (last - first)) // max(1, count - 1)
        return self.up(places * self.unit)


def best_size(costs: WorkloadCosts, sizes: Sizes, *, also: Ints) -> int:
    """Return the admitted size of least objective; of equals the largest. `also` are tried as
    well.
    """
    every = sizes.every()
    if every is not None:
        return _best_of(every, costs.values(every))
    priced = backend_of(costs.model).costs(costs.model)
    budget = max(MIN_CANDIDATES, BUDGET_CELLS // (len(costs.B) * priced))
    found = _candidates(costs, sizes, also=also, maximum=budget)
    values = costs.values(found)
    for _ in range(ROUNDS):
        more = np.setdiff1d(_closer(found, values, sizes, maximum=budget // 3), found)
        if not len(more):
            break
        found = np.concatenate([found, more])
        values = np.concatenate([values, costs.values(more)])
        order = np.argsort(found)
        found, values = found[order], values[order]
    return _best_of(found, values)


def _candidates(costs: WorkloadCosts, sizes: Sizes, *, also: Ints, maximum: int) -> Ints:
    octaves = np.log2(sizes.maximum / sizes.minimum)
    grid = np.geomspace(sizes.minimum, sizes.maximum, max(2, int(octaves * GRID_PER_OCTAVE)))
    k = np.arange(1, max(2, min(MAX_COUNT, maximum // (2 * len(costs.B)))) + 1, dtype=np.int64)
    breaks = -(-costs.B[:, None] // k[None, :]).ravel()
    ends = np.array(costs.model.range_ends, dtype=np.int64)
    whole = np.clip(np.rint(grid), 1, 2**48).astype(np.int64)
    if len(breaks) + len(whole) > maximum:  # a workload of very many messages
        breaks = breaks[:: -(-len(breaks) // maximum)]
        whole = whole[:: -(-len(whole) // maximum)]
    return sizes.up(np.concatenate([whole, breaks, ends, ends + 1, also]))


def _closer(found: Ints, values: object, sizes: Sizes, *, maximum: int) -> Ints:
    """Sizes between the best ones and their neighbours on either side."""
    valued = np.asarray(values)
    spots = np.argsort(valued, kind="stable")[:SPOTS]
    share = max(8, min(SPREAD, maximum // (2 * SPOTS)))
    parts = []
    for spot in spots:
        before, after = max(0, int(spot) - 1), min(len(found) - 1, int(spot) + 1)
        for low, high in ((before, spot), (spot, after)):
            parts.append(sizes.between(int(found[low]), int(found[high]), maximum=share))
    return np.unique(np.concatenate(parts))


def _best_of(sizes: Ints, values: object) -> int:
    valued = np.asarray(values)
    return int(sizes[np.flatnonzero(valued <= valued.min() + TIE)[-1]])


def _two_part(unit: int) -> int:
    """The least power of two that is a multiple of the unit. Raises InvalidInput without one."""
    if unit & (unit - 1):
        raise InvalidInput("no power of two is a multiple of multiple_of", field="sizes")
    return unit


TIE = 1e-12
_FINITE = 1e300  # stands for the regret of what can be done in no time: two of them are equal


@dataclass(frozen=True, slots=True)
class _Step:
    """Octaves first to last, inclusive, served by one of the sizes."""

    first: int
    last: int
    size: int  # its index


def merged(
    octaves: Sequence[WorkloadCosts], sizes: Sequence[int], *, merge_regret: float, max_steps: int
) -> tuple[tuple[int, int], ...]:
    """Return (index of its first octave, size) of each step, ascending."""
    table = _Values.of(octaves, sizes)
    steps = [_Step(i, i, i) for i in range(len(sizes))]
    while len(steps) > 1:
        pairs = [table.merger(low, high) for low, high in pairwise(steps)]
        at = min(range(len(pairs)), key=lambda i: pairs[i][0])
        cost, step = pairs[at]
        if cost > merge_regret and len(steps) <= max_steps:
            break
        steps[at : at + 2] = [step]
    return tuple((step.first, sizes[step.size]) for step in steps)


@dataclass(frozen=True, slots=True)
class _Values:
    """V, what the sums of each octave are a share of, and the sizes."""

    V: Floats
    wholes: Floats
    sizes: tuple[int, ...]
    is_worst: bool

    @classmethod
    def of(cls, octaves: Sequence[WorkloadCosts], sizes: Sequence[int]) -> _Values:
        s = np.array(sizes, dtype=np.int64)
        V = np.minimum(np.stack([octave.sums(s) for octave in octaves], axis=1), _FINITE)
        wholes = np.array([octave.whole for octave in octaves])
        return cls(V, wholes, tuple(sizes), octaves[0].objective is Objective.WORST)

    def merger(self, low: _Step, high: _Step) -> tuple[float, _Step]:
        """What one size for both costs beyond the two, at its cheapest, and the step."""
        found = [_Step(low.first, high.last, size) for size in (low.size, high.size)]
        costs = [self._beyond(step, low, high) for step in found]
        equals = [i for i, cost in enumerate(costs) if cost <= min(costs) + TIE]
        at = max(equals, key=lambda i: self.sizes[found[i].size])
        return costs[at], found[at]

    def _beyond(self, step: _Step, low: _Step, high: _Step) -> float:
        """By how much the regret of the step's messages grows: of all of them, or some octave's."""
        apart = np.concatenate([self._of(low), self._of(high)])
        grown = self._of(step) - apart
        if self.is_worst:
            return float(grown.max())
        whole = float(self.wholes[step.first : step.last + 1].sum())
        beyond = float(grown.sum())
        if whole > 0.0:
            return beyond / whole
        return 0.0 if beyond <= 0.0 else inf  # of what can be done in no time

    def _of(self, step: _Step) -> Floats:
        """V of the step's size on each of its octaves."""
        on: Floats = self.V[step.size, step.first : step.last + 1]
        return on
