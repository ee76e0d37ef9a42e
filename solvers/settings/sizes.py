"""The sizes that a rule admits, and the search among them for the one of least regret.

Source    docs/theory.md, "The regret of a setting".
Notation  s: sizes; B: (m,) messages; w: their shares; k: number of fragments; u: the unit.
Cost      the budget below, in pairs of a size and a message, whatever the range.
Exact     over every admitted size where they are no more than EVERY, or powers of two. Else the
          best of these: a geometric grid, the sizes ceil(B/k) at which a message is cut into one
          fragment fewer, ends of ranges, the best repeated sizes, and all or evenly spread sizes
          around the best of those, closer each round. Brute force in tests/solvers/test_regret.py.
Traps     The objective falls at every ceil(B/k): a grid alone misses the sizes that divide. Rounded
          up to the unit, because a size short by one byte costs one more fragment.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from domain.errors import InvalidInput
from domain.regret import SizeRule
from solvers.backends import backend_of
from solvers.settings.costs import WorkloadCosts

Ints = NDArray[np.int64]

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

    def into_at_most(self, count: int, message_bytes: int) -> Sizes:
        """Return those that cut a message into no more fragments, or the greatest one."""
        minimum = -(-message_bytes // count)
        minimum = (
            1 << (minimum - 1).bit_length() if self.is_power_of_two else -(-minimum // self.unit)
        )
        minimum *= 1 if self.is_power_of_two else self.unit
        return replace(self, minimum=min(max(self.minimum, minimum), self.maximum))

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
    backend = backend_of(costs.model)
    if backend.most_fragments is not None:
        sizes = sizes.into_at_most(backend.most_fragments, int(costs.B[-1]))
    every = sizes.every()
    if every is not None:
        return _best_of(every, costs.values(every))
    priced = backend.costs(costs.model)
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
