"""Centres of one message's times by fragment size: blocks drift, and some runs are far off.

Logarithms of times are a size's effect, a block's, and noise; the effects of blocks are a random
walk whose steps have the noise's own spread. A run that is further off than 1.5 spreads counts less
(Huber). Where every size stands in one heap, a slope over the rows takes the place of the blocks:
repeats within a heap determine it.

Source    docs/decisions/0029-own-transfers-decide.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MIN_NOISE = 0.003
_SUPPOSED_NOISE, _SUPPOSED_RUNS = 0.03, 3.0  # before it is seen: 3 %, which counts as three runs
_SEEN_FREEDOM = 8.0  # degrees of freedom from which on nothing is supposed
_HUBER = 1.5
_ROUNDS = 8
_WIDER = 1.5  # covariances: so that 90 % intervals hold in 90 % of simulated movers
_MEDIAN_TO_SPREAD = 1.4826
_MAX_BLOCKS = 128  # more are pooled, neighbours with neighbours


@dataclass(frozen=True, slots=True)
class TimedRun:
    """One run: the block it belongs to, its fragment size, and its time in µs."""

    block: int
    fragment_bytes: int
    latency_us: float


@dataclass(frozen=True, slots=True, eq=False)
class Centres:
    """Sizes ascending, (m,) centres of log(T/µs), their (m, m) covariance, and counts of runs.

    `noise` is the spread of the logarithm of one run.
    """

    sizes: tuple[int, ...]
    log_us: Floats
    covariance: Floats
    runs: tuple[int, ...]
    noise: float

    @property
    def errors(self) -> Floats:
        """The standard errors of the centres, (m,)."""
        found: Floats = np.sqrt(np.diag(self.covariance))
        return found

    def place(self, size: int) -> int:
        """Return the index of a size that was run."""
        return self.sizes.index(size)

    def runs_of(self, size: int) -> int:
        """Return how often a size was run; 0 where it was not."""
        return self.runs[self.sizes.index(size)] if size in self.sizes else 0

    def lead(self, size: int, other: int) -> tuple[float, float]:
        """Return by how much the log time of a size is below another's, and its standard error."""
        here, there = self.place(size), self.place(other)
        covariance = self.covariance
        variance = covariance[here, here] + covariance[there, there] - 2 * covariance[here, there]
        return float(self.log_us[there] - self.log_us[here]), sqrt(max(0.0, float(variance)))


def centres_of(runs: Sequence[TimedRun], *, has_slope: bool = False) -> Centres:
    """Return the centres of the sizes of these runs, at least one, in the order of their time.

    Blocks count up. `has_slope`: all runs share one slope over their order, and blocks are ignored;
    where no size was run twice it cannot be known, and is left out. O(n + (m + blocks)³).
    """
    sizes = sorted({run.fragment_bytes for run in runs})
    place = {size: at for at, size in enumerate(sizes)}
    at_size = np.array([place[run.fragment_bytes] for run in runs], dtype=np.int64)
    # Relative to the first, the logarithms do not depend on the unit of time.
    unit_us = runs[0].latency_us
    log_time = np.log(np.array([run.latency_us for run in runs]) / unit_us)
    has_slope = has_slope and len(runs) > len(sizes)
    design = _Design(
        at_size, len(sizes), _pooled_blocks(runs, is_one=has_slope), has_slope=has_slope
    )
    weights, noise = np.ones(len(runs)), _SUPPOSED_NOISE
    for _ in range(_ROUNDS):
        effects = design.solve(weights, log_time)
        off = np.abs(log_time - design.predict(effects))
        noise = _noise(off, design.freedom, len(sizes))
        weights = np.minimum(1.0, _HUBER * noise / np.maximum(off, 1e-12))
    covariance = design.covariance(weights)[: len(sizes), : len(sizes)] * (noise**2 * _WIDER)
    log_us = effects[: len(sizes)] + log(unit_us)
    counts = tuple(np.bincount(at_size, minlength=len(sizes)).tolist())
    return Centres(tuple(sizes), log_us, covariance, counts, noise)


def _pooled_blocks(runs: Sequence[TimedRun], *, is_one: bool) -> NDArray[np.int64]:
    """Each run's block, numbered from 0 without gaps; of many, neighbours are one."""
    if is_one:
        return np.zeros(len(runs), dtype=np.int64)
    found = np.unique([run.block for run in runs], return_inverse=True)[1].astype(np.int64)
    count = int(found.max()) + 1
    return found if count <= _MAX_BLOCKS else found * _MAX_BLOCKS // count


def _noise(off: Floats, freedom: float, sizes: int) -> float:
    """The spread of a run by the median of what is off, with what is supposed before it is seen.

    As many residuals are 0, or nearly, as there are sizes: they are left out.
    """
    seen = np.sort(off)[sizes:]
    spread = _MEDIAN_TO_SPREAD * float(np.median(seen)) if len(seen) else 0.0
    supposed = _SUPPOSED_RUNS * max(0.0, 1.0 - freedom / _SEEN_FREEDOM)
    total = max(supposed + freedom, 1e-9)
    return max(MIN_NOISE, sqrt((supposed * _SUPPOSED_NOISE**2 + freedom * spread**2) / total))


class _Design:
    """Normal equations of sizes, blocks but for the first, and a slope, without a dense matrix."""

    def __init__(
        self,
        at_size: NDArray[np.int64],
        sizes: int,
        at_block: NDArray[np.int64],
        *,
        has_slope: bool,
    ) -> None:
        self._at_size, self._at_block, self._sizes = at_size, at_block, sizes
        self._blocks = int(at_block.max()) + 1
        runs = len(at_size)
        self._order = np.linspace(-1.0, 1.0, runs) if has_slope else None
        self._unknowns = sizes + self._blocks - 1 + has_slope
        free = runs - sizes
        self.freedom = max(0.0, free - min(self._blocks - 1, free / 2) - has_slope)

    def solve(self, weights: Floats, values: Floats) -> Floats:
        """The weighted least-squares effects."""
        right = self._gather(weights * values)
        return np.asarray(np.linalg.solve(self._matrix(weights), right), dtype=np.float64)

    def covariance(self, weights: Floats) -> Floats:
        """The inverse of the normal matrix."""
        return np.asarray(np.linalg.inv(self._matrix(weights)), dtype=np.float64)

    def predict(self, effects: Floats) -> Floats:
        """What the effects make of each run."""
        sizes, blocks = self._sizes, self._blocks
        walked = np.concatenate(([0.0], effects[sizes : sizes + blocks - 1]))
        found: Floats = effects[self._at_size] + walked[self._at_block]
        return found if self._order is None else found + effects[-1] * self._order

    def _gather(self, values: Floats) -> Floats:
        """The sums of values by unknown."""
        by_size = np.bincount(self._at_size, values, self._sizes)
        by_block = np.bincount(self._at_block, values, self._blocks)[1:]
        last = [] if self._order is None else [float(values @ self._order)]
        return np.concatenate((by_size, by_block, last))

    def _matrix(self, weights: Floats) -> Floats:
        sizes, blocks = self._sizes, self._blocks
        found = np.zeros((self._unknowns, self._unknowns))
        walk = slice(sizes, sizes + blocks - 1)
        pairs = self._at_size * blocks + self._at_block
        both = np.bincount(pairs, weights, sizes * blocks).reshape(sizes, blocks)
        found[:sizes, :sizes] = np.diag(both.sum(axis=1))
        found[:sizes, walk], found[walk, :sizes] = both[:, 1:], both[:, 1:].T
        steps = np.full(blocks - 1, 2.0)  # of each block to the one before it, and the next
        steps[-1:] = 1.0
        along = np.diag(both.sum(axis=0)[1:] + steps)
        nearby = np.arange(blocks - 2)
        along[nearby, nearby + 1] = along[nearby + 1, nearby] = -1.0
        found[walk, walk] = along
        if self._order is not None:
            row = self._gather(weights * self._order)
            found[-1], found[:, -1] = row, row
            found[-1, -1] = float(weights @ self._order**2)
        return found
