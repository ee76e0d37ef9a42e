"""Simulated movers of ten kinds: the exact time of a cut, and what a run of it shows.

They are what rules for a user's own transfers are tried on: stages with a cost a fragment and a
byte, and what breaks their curve in practice. Each mover is drawn anew from its seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, exp, sin

import numpy as np
from numpy.typing import NDArray

from analysis.size_race import DEFAULT_RUNS, RacePlan, SizeRace
from domain.own_transfers import SizeDecision, SizeVerdict

MESSAGE_BYTES = 64 << 20
OCTAVES = 12  # current sizes go from the message over 2^12 to the message
_PER_OCTAVE = 16

KINDS = (
    "stages",
    "flat",
    "two valleys",
    "round trips",
    "cache",
    "lanes",
    "noisy",
    "drift",
    "outliers",
    "falling",
)

Floats = NDArray[np.float64]


def pipelined_us(overhead_us: Floats, us_per_byte: Floats, message_bytes: int, size: int) -> float:
    """The time of a message cut by one size through linear stages, each a fragment at a time.

    Of equal fragments the q-th leaves a stage after all earlier stages' times for one, and q - 1
    times the slowest of them; the last fragment, which has the rest, follows.
    """
    count = ceil(message_bytes / size)
    rest = message_bytes - (count - 1) * size
    last = overhead_us + us_per_byte * rest
    if count == 1:
        return float(last.sum())
    full = overhead_us + us_per_byte * size
    free = np.cumsum(full) + (count - 2) * np.maximum.accumulate(full)
    end_us = 0.0
    for free_us, time_us in zip(free.tolist(), last.tolist(), strict=True):
        end_us = max(end_us, free_us) + time_us
    return end_us


@dataclass(slots=True)
class SimulatedMover:
    """One mover: `true_us` of a size is exact, `run_us` has its noise and goes on with its drift.

    `noise` is the spread of the logarithm of a run.
    """

    kind: str
    true_us: Callable[[int], float]
    noise: float
    random: np.random.Generator
    outliers: float = 0.0
    swing: float = 0.0
    _runs: int = 0
    _walk: float = 0.0

    def run_us(self, size: int) -> float:
        """The time of one run."""
        self._runs += 1
        shift = self.noise * self.random.standard_normal()
        if self.swing:
            self._walk += 0.01 * self.random.standard_normal()
            shift += self._walk + self.swing * sin(self._runs / 12.0 + 100.0 * self.swing)
        if self.random.random() < self.outliers:
            shift += float(self.random.exponential(0.5)) + 0.2
        return self.true_us(size) * exp(shift)

    def best_us(self, current: int) -> float:
        """The least time of sixteen sizes an octave, the round ones, and the current one."""
        smallest = MESSAGE_BYTES >> OCTAVES
        fine = {int(smallest * 2 ** (at / _PER_OCTAVE)) for at in range(OCTAVES * _PER_OCTAVE + 1)}
        return min(map(self.true_us, fine | {*ROUND_SIZES, current}))

    def best_round_us(self, current: int) -> float:
        """The least time of the round sizes and the current one."""
        return min(map(self.true_us, {*ROUND_SIZES, current}))


ROUND_SIZES = tuple(
    size
    for octave in range(OCTAVES + 1)
    for size in {MESSAGE_BYTES >> octave, 3 * (MESSAGE_BYTES >> octave) // 4}
    if size >= MESSAGE_BYTES >> OCTAVES
)


def mover(kind: str, seed: int, noise: float = 0.03) -> SimulatedMover:
    """Draw a mover of a kind: two to five stages, overheads of 2 µs to 2 ms, 0.2 to 10 GB/s."""
    random = np.random.default_rng((KINDS.index(kind), seed))
    stages = int(random.integers(2, 6))
    overhead = 10.0 ** random.uniform(0.3, 3.3, stages)
    per_byte = 10.0 ** random.uniform(-4.0, -2.3, stages)
    if kind == "noisy":
        noise = float(random.choice([0.01, 0.05, 0.1, 0.2]))
    return SimulatedMover(
        kind,
        _true(kind, overhead, per_byte, random),
        noise,
        random,
        outliers=0.05 if kind == "outliers" else 0.0,
        swing=float(random.uniform(0.05, 0.25)) if kind == "drift" else 0.0,
    )


def _true(
    kind: str, overhead: Floats, per_byte: Floats, random: np.random.Generator
) -> Callable[[int], float]:
    message = MESSAGE_BYTES
    threshold = 2.0 ** random.uniform(15.0, 23.0)
    amount = float(random.uniform(0.3, 1.5))
    lanes = int(random.choice([2, 4, 8]))
    round_trip_us = 10.0 ** random.uniform(2.3, 3.7)

    def plain(size: int) -> float:
        return pipelined_us(overhead, per_byte, message, size)

    if kind == "flat":  # the stages are a twentieth of it
        constant_us = 20.0 * plain(message >> 8)
        return lambda size: constant_us + plain(size)
    if kind == "two valleys":  # another protocol from a size on: dearer to begin, cheaper a byte
        cheaper = per_byte * np.where(per_byte == per_byte.max(), 0.85, 1.0)
        slow_start = overhead * 6.0
        return lambda size: (
            plain(size) if size <= threshold else pipelined_us(slow_start, cheaper, message, size)
        )
    if kind == "round trips":  # a window of so many fragments
        return lambda size: max(plain(size), ceil(message / size) * round_trip_us / lanes)
    if kind == "cache":  # bytes cost more from a size on
        return lambda size: pipelined_us(
            overhead, per_byte * (1.0 + amount / (1.0 + (threshold / size) ** 4)), message, size
        )
    if kind == "lanes":  # fragments go several at once
        slowest_us, per_lane = float(overhead.max()) + round_trip_us, float(per_byte.max())
        return lambda size: (
            ceil(ceil(message / size) / lanes) * (slowest_us + per_lane * size) + round_trip_us
        )
    if kind == "falling":  # a serial mover: fewer fragments are always faster
        return lambda size: (
            ceil(message / size) * float(overhead.sum()) + message * float(per_byte.sum())
        )
    return plain


@dataclass(frozen=True, slots=True)
class RaceOutcome:
    """What a procedure did on one mover; times are true ones, in µs.

    `claims_near` says that the procedure calls its size one within 2 % of the best round size.
    """

    kind: str
    is_set: bool
    runs: int
    current_us: float
    chosen_us: float
    best_us: float
    best_round_us: float
    claims_near: bool = False

    @property
    def regret(self) -> float:
        """What the chosen size costs over the best."""
        return self.chosen_us / self.best_us - 1.0

    @property
    def is_slower(self) -> bool:
        """Whether what was set is more than 1 % slower than the current size."""
        return self.is_set and self.chosen_us > 1.01 * self.current_us

    @property
    def has_large_gain(self) -> bool:
        """Whether the current size takes more than 10 % longer than the best."""
        return self.current_us > 1.1 * self.best_us

    @property
    def is_near(self) -> bool:
        """Whether the chosen size is within 2 % of the best round size."""
        return self.chosen_us <= 1.02 * self.best_round_us


def current_of(seed: int) -> int:
    """Draw the size in use: the message over a power of two up to 2^12."""
    return MESSAGE_BYTES >> int(np.random.default_rng((7, seed)).integers(0, OCTAVES + 1))


def outcome(
    simulated: SimulatedMover, current: int, chosen: int, runs: int, *, claims_near: bool = False
) -> RaceOutcome:
    """Return the outcome of a procedure that ended with a size after so many runs."""
    return RaceOutcome(
        simulated.kind,
        chosen != current,
        runs,
        simulated.true_us(current),
        simulated.true_us(chosen),
        simulated.best_us(current),
        simulated.best_round_us(current),
        claims_near,
    )


def race_on(
    run_us: Callable[[int], float], current: int, *, seed: int, max_runs: int = DEFAULT_RUNS
) -> tuple[SizeDecision, SizeRace]:
    """Run a race to its end over the times that `run_us` gives."""
    race = SizeRace(RacePlan(MESSAGE_BYTES, current, max_runs=max_runs, seed=seed))
    while (size := race.next()) is not None:
        race.tell(size, run_us(size))
    return race.decision(), race


def race_outcome(kind: str, seed: int, *, max_runs: int = DEFAULT_RUNS) -> RaceOutcome:
    """Return what the race does on one mover, from a current size anywhere."""
    simulated, current = mover(kind, seed), current_of(seed)
    decision, race = race_on(simulated.run_us, current, seed=seed, max_runs=max_runs)
    is_decided = decision.verdict in (SizeVerdict.SET, SizeVerdict.KEEP)
    return outcome(
        simulated,
        current,
        decision.size_bytes or current,
        len(race.rows()),
        claims_near=is_decided and decision.is_near_best,
    )
