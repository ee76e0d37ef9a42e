"""Wall-clock times of several sides, run in turns.

Round after round each side runs once, and each round begins with another side. A slow minute of the
machine therefore hits all sides, and the ratio of two sides is the median of the ratios within
rounds, which such a minute leaves alone.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

R = TypeVar("R")
# Some times what a core keeps for itself; written in 10 ms. A solve of 1 ms takes 2 after it.
_SWEPT_BYTES = 1 << 27


@dataclass(frozen=True, slots=True)
class Timing:
    """Samples in ms, in the order of the rounds."""

    samples_ms: tuple[float, ...]

    @property
    def median_ms(self) -> float:
        """The middle sample."""
        return statistics.median(self.samples_ms)

    @property
    def min_ms(self) -> float:
        """The fastest sample."""
        return min(self.samples_ms)

    @property
    def max_ms(self) -> float:
        """The slowest sample."""
        return max(self.samples_ms)

    def quantile_ms(self, share: float) -> float:
        """The sample below which this share of them lies (nearest rank)."""
        ordered = sorted(self.samples_ms)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    def ratio_to(self, other: Timing) -> float:
        """Median over the rounds of this side's time over the other's."""
        pairs = zip(self.samples_ms, other.samples_ms, strict=True)
        return statistics.median(here / there for here, there in pairs)

    @property
    def spread(self) -> str:
        """Fastest to slowest, for a table."""
        return " - ".join(
            f"{ms:,.0f}" if ms >= 1000 else f"{ms:.3g}" for ms in (self.min_ms, self.max_ms)
        )


@dataclass(frozen=True, slots=True)
class Timed(Generic[R]):
    """A side's wall and processor times (of this process alone), and what it returned last."""

    timing: Timing
    processor: Timing
    result: R


def interleaved(
    sides: Mapping[str, Callable[[], R]], *, rounds: int, warm_ups: int = 1
) -> dict[str, Timed[R]]:
    """Run every side `warm_ups` times without a clock, then once in each round with one.

    Garbage is collected once, before the rounds; what is there by then is frozen for them, as the
    service does it when it starts, so that no collection within a round walks every loaded module.
    A side begins with caches that hold nothing of its last turn: as a question does that comes to
    a service which did something else before.
    """
    names = list(sides)
    results = {name: sides[name]() for _ in range(warm_ups) for name in names}
    wall: dict[str, list[float]] = {name: [] for name in names}
    processor: dict[str, list[float]] = {name: [] for name in names}
    swept = np.zeros(_SWEPT_BYTES, dtype=np.uint8)
    gc.collect()
    gc.freeze()
    try:
        for turn in range(rounds):
            first = turn % len(names)
            for name in names[first:] + names[:first]:
                swept += 1
                used_s, started_s = time.process_time(), time.perf_counter()
                results[name] = sides[name]()
                wall[name].append((time.perf_counter() - started_s) * 1e3)
                processor[name].append((time.process_time() - used_s) * 1e3)
    finally:
        gc.unfreeze()
    return {
        name: Timed(Timing(tuple(wall[name])), Timing(tuple(processor[name])), results[name])
        for name in names
    }
