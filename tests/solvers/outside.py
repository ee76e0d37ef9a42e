"""Pipelines and what measurements from outside would tell of them, to the last bit."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from domain.aggregate import Aggregate
from domain.pipeline import FitRange, Pipeline, Stage


def seen_from_outside(pipeline: Pipeline, message_bytes: int) -> Aggregate:
    """The exact total and bottleneck of a pipeline at every whole size up to the message's."""
    ends = {part.up_to_bytes or 0 for stage in pipeline.stages for part in stage.ranges}
    return Aggregate(
        Stage("total", _total(pipeline, sorted(ends - {0}))),
        Stage("bottleneck", _envelope(pipeline, message_bytes)),
        pipeline.delay_us,
    )


def _total(pipeline: Pipeline, ends: list[int]) -> tuple[FitRange, ...]:
    parts = []
    for end in [*ends, None]:
        at = end if end is not None else (ends[-1] if ends else 0) + 1
        ranges = [stage.range_at(at) for stage in pipeline.stages]
        overhead_us = sum(part.overhead_us for part in ranges)
        parts.append(FitRange(overhead_us, sum(part.ns_per_byte for part in ranges), end))
    return tuple(parts)


def _envelope(pipeline: Pipeline, message_bytes: int) -> tuple[FitRange, ...]:
    """A range for every run of whole sizes with the same slowest line."""
    slowest = [
        pipeline.stages[pipeline.bottleneck_at(x)].range_at(x).line
        for x in range(1, message_bytes + 1)
    ]
    ends = [x for x, (one, other) in enumerate(pairwise(slowest), 1) if one != other]
    return tuple(
        FitRange(slowest[end - 1].overhead_us, slowest[end - 1].ns_per_byte, up_to)
        for end, up_to in [*((end, end) for end in ends), (message_bytes, None)]
    )


def line_pipelines(count: int, *, seed: int) -> Iterator[tuple[Pipeline, int]]:
    """`count` pipelines of one to four lines, with zeros and ties, and small messages."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        stages = tuple(_line(rng, f"s{j}") for j in range(rng.integers(1, 5)))
        yield Pipeline(stages, float(rng.choice([0.0, 3.25]))), int(rng.integers(1, 11))


def _line(rng: np.random.Generator, name: str) -> Stage:
    overhead_us = float(rng.choice([0.0, 2.0, rng.uniform(0.0, 5.0)]))
    ns_per_byte = float(rng.choice([0.0, 700.0, rng.uniform(0.0, 3000.0)]))
    return Stage.of_line(name, overhead_us=overhead_us, ns_per_byte=ns_per_byte)


def switching_pipelines(count: int, *, seed: int, may_fall: bool) -> Iterator[tuple[Pipeline, int]]:
    """`count` pipelines with one to three ranges, one stage slowest at all sizes.

    At a switch all stages go the same way: up, or where they may fall down to half or less.
    """
    rng = np.random.default_rng(seed)
    for _ in range(count):
        ends = sorted({int(end) for end in rng.integers(1, 9, rng.integers(0, 3))})
        factors = [1.0]
        for _ in ends:
            ups = [1.0, 1.3, 2.0]
            factors.append(factors[-1] * float(rng.choice([*ups, 0.5, 0.2] if may_fall else ups)))
        lines = [_line(rng, f"s{j}").ranges[0].line for j in range(rng.integers(1, 5))]
        slowest = int(rng.integers(0, len(lines)))
        top = [
            max(line.overhead_us for line in lines) + rng.uniform(0.0, 1.0),
            max(line.ns_per_byte for line in lines) + rng.uniform(0.0, 300.0),
        ]
        costs = [(line.overhead_us, line.ns_per_byte) for line in lines]
        costs[slowest] = (float(top[0]), float(top[1]))
        stages = tuple(
            Stage(
                f"s{j}",
                tuple(
                    FitRange(factor * g, factor * cost, end)
                    for factor, end in zip(factors, [*ends, None], strict=True)
                ),
            )
            for j, (g, cost) in enumerate(costs)
        )
        yield Pipeline(stages), int(rng.integers(1, 11))


def noisy_aggregates(count: int, *, seed: int) -> Iterator[Aggregate]:
    """Aggregates that no pipeline needs to have: S below b, falls, jumps, differing ranges."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield Aggregate(_any(rng, "total", 4.0), _any(rng, "bottleneck", 1.0), rng.choice([0, 2.5]))


def _any(rng: np.random.Generator, name: str, scale: float) -> Stage:
    ends = sorted({int(end) for end in rng.integers(1, 60, rng.integers(0, 4))})
    return Stage(
        name,
        tuple(
            FitRange(
                float(rng.choice([0.0, 1.0, rng.uniform(0.0, 5.0)])) * scale,
                float(rng.choice([0.0, 100.0, rng.uniform(0.0, 500.0)])) * scale,
                end,
            )
            for end in [*ends, None]
        ),
    )


def all_cuts(total: int) -> Iterator[tuple[int, ...]]:
    """Every cut of a small message."""
    if total == 0:
        yield ()
    for first in range(1, total + 1):
        for rest in all_cuts(total - first):
            yield (first, *rest)
