"""Seeded random pipelines of two to eight stages: zeros, ties and several scales among them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from domain.pipeline import Pipeline, pipeline_of_lines


@dataclass(frozen=True)
class Case:
    """A pipeline and a message size for it."""

    pipeline: Pipeline
    message_bytes: int


def random_cases(count: int, *, seed: int, stages: int | None = None) -> Iterator[Case]:
    """`count` cases; a third with zero overheads, a fifth with zero costs, a fifth with ties."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        n = stages or int(rng.integers(2, 9))
        spread = rng.choice([0.5, 1.0, 2.0])
        overhead = 10.0 ** rng.uniform(-spread, spread, n)
        cost = 10.0 ** rng.uniform(-spread, spread, n)
        if rng.random() < 1 / 3:
            overhead[rng.random(n) < 0.5] = 0.0
        if rng.random() < 0.2:
            cost[rng.random(n) < 0.3] = 0.0
        if rng.random() < 0.2:
            overhead, cost = np.round(overhead), np.round(cost)
        rows = [(f"s{j}", float(overhead[j]), float(cost[j])) for j in range(n)]
        yield Case(pipeline_of_lines(rows), int(10 ** rng.uniform(2, 5)))


def slow_middle_cases(count: int, *, seed: int) -> Iterator[Case]:
    """Three stages, the middle one slowest at every size."""
    for case in random_cases(count, seed=seed, stages=3):
        lines = [stage.ranges[0] for stage in case.pipeline.stages]
        overhead = sorted(line.overhead_us for line in lines)
        cost = sorted(line.ns_per_byte for line in lines)
        if cost[2] == 0.0:
            continue
        rows = [
            ("first", overhead[0], cost[1]),
            ("middle", overhead[2], cost[2]),
            ("last", overhead[1], cost[0]),
        ]
        yield Case(pipeline_of_lines(rows), case.message_bytes)
