"""Samples of one stage with a known truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FIFTEEN = tuple(int(size) for size in np.geomspace(16, 1_600_000, 15))  # five decades
POWERS = tuple(2**k for k in range(6, 21))
SWITCH_BYTES = 8192
SWITCH_END = 16_383  # of the left range, by POWERS: costs fall, and nothing is measured up to there


@dataclass(frozen=True, slots=True)
class Draw:
    """How samples are drawn: multiplicative noise, and outliers of twice to eight times."""

    sizes: tuple[int, ...] = FIFTEEN
    repetitions: int = 20
    noise: float = 0.02
    outliers: float = 0.25

    def samples(
        self, truth: Callable[[Floats], Floats], seed: int
    ) -> tuple[list[int], list[float]]:
        """Sizes in bytes and times in µs, in the order of repetitions."""
        random = np.random.default_rng(seed)
        x = np.tile(np.array(self.sizes, dtype=np.float64), self.repetitions)
        y = truth(x) * (1.0 + self.noise * random.standard_normal(len(x)))
        hit = random.random(len(x)) < self.outliers
        y = np.where(hit, y * random.uniform(2.0, 8.0, len(x)), y)
        return x.astype(np.int64).tolist(), np.maximum(y, 0.0).tolist()


def line(overhead_us: float, ns_per_byte: float) -> Callable[[Floats], Floats]:
    """One line."""
    return lambda x: overhead_us + ns_per_byte * x / 1000.0


def switch(x: Floats) -> Floats:
    """A protocol switch that jumps behind SWITCH_BYTES: 10 + 0.02 x, then 60 + 0.0113 x."""
    out: Floats = np.where(x <= SWITCH_BYTES, 10.0 + 0.02 * x, 60.0 + 0.0113 * x)
    return out
