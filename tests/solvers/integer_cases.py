"""Small problems for the integer optimum: seeded, of the sizes at which it answers at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from domain.pipeline import Pipeline, pipeline_of_lines
from domain.problem import FragmentLimits, Problem

MAX_FRAGMENTS = 8


def small_problems(count: int, *, seed: int) -> Iterator[Problem]:
    """100 to 5000 bytes, two to five stages of lines, best counts around 2 to 8; some aligned.

    Messages and least sizes are multiples of the alignment, as the rounding lemma wants them.
    """
    rng = np.random.default_rng(seed)
    for _ in range(count):
        stages = int(rng.integers(2, 6))
        size = int(10 ** rng.uniform(2.0, 3.7))
        unit = int(rng.choice([1, 1, 1, 4, 8])) if size >= 400 else 1
        size -= size % unit
        limits = FragmentLimits(unit, None, unit, MAX_FRAGMENTS)
        yield Problem(_pipeline(rng, stages, size), size, limits)


def _pipeline(rng: np.random.Generator, stages: int, message_bytes: int) -> Pipeline:
    """Overheads such that equal fragments would be best at some count from 2 to 8; a few are 0."""
    spread = rng.choice([0.3, 0.7])
    cost = 10.0 ** rng.uniform(-spread, spread, stages)
    overhead = 10.0 ** rng.uniform(-spread, spread, stages)
    slowest = int(np.argmax(cost))
    others = (cost.sum() - cost[slowest]) / 1000.0
    overhead *= message_bytes * others / rng.uniform(2.0, 8.0) ** 2 / overhead[slowest]
    if rng.random() < 0.3:
        overhead[rng.random(stages) < 0.5] = 0.0
    if rng.random() < 0.2:
        overhead, cost = np.round(overhead, 1), np.round(cost) + 1.0
    return pipeline_of_lines([("s", float(overhead[j]), float(cost[j])) for j in range(stages)])
