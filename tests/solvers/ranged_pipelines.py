"""Seeded random pipelines whose stages have one to three ranges, and cuts to try on them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from domain.pipeline import FitRange, Pipeline, Stage
from domain.problem import FragmentLimits, Problem
from domain.schedule import latency_us

SCALES = (1.0, 1.0, 1e-6, 1e6)  # tiny and huge costs among them


@dataclass(frozen=True, slots=True)
class Rule:
    """How many stages, and how large the message may be, bytes."""

    stages: tuple[int, int] = (1, 5)
    message_bytes: tuple[int, int] = (2, 100_000)


def random_problems(count: int, *, seed: int, rule: Rule) -> Iterator[Problem]:
    """Problems with ranges that jump up and down, bend both ways, and cost nothing at times."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        low, high = rule.message_bytes
        size = int(np.exp(rng.uniform(np.log(low), np.log(high + 1))))
        scale = float(rng.choice(SCALES))
        stages = int(rng.integers(rule.stages[0], rule.stages[1] + 1))
        pipeline = Pipeline(tuple(random_stage(rng, size, scale) for _ in range(stages)))
        yield Problem(pipeline, size, _limits(rng, size))


def random_stage(rng: np.random.Generator, size: int, scale: float) -> Stage:
    """One to three ranges; a third of them continuous, the rest with a jump either way."""
    inner = np.exp(rng.uniform(0.0, np.log(max(2, size)), int(rng.integers(0, 3))))
    parts, before = [], None
    for end in [*sorted({int(place) for place in inner}), None]:
        slope = float(rng.choice([0.0, 1.0, 1.0, 1.0]) * rng.exponential(20.0)) * scale
        overhead = float(rng.choice([0.0, 1.0, 1.0]) * rng.exponential(20.0)) * scale
        if before is not None and rng.random() < 1.0 / 3.0:
            level = before.line.time_us(before.up_to_bytes or 0)
            overhead = max(0.0, level - slope * (before.up_to_bytes or 0) / 1000.0)
        before = FitRange(overhead, slope, end)
        parts.append(before)
    return Stage("s", tuple(parts))


def _limits(rng: np.random.Generator, size: int) -> FragmentLimits:
    return FragmentLimits(
        min_fragment_bytes=int(rng.choice([1, 1, 1, max(1, size // 9)])),
        max_fragment_bytes=None if rng.random() < 0.7 else max(1, size // 3),
        max_fragments=30,
    )


def every_cut(problem: Problem, count: int) -> Iterator[tuple[int, ...]]:
    """All whole-byte cuts into this many fragments that the limits admit."""
    size = problem.message_bytes
    for places in combinations(range(1, size), count - 1):
        cut = tuple(after - before for before, after in pairwise((0, *places, size)))
        if problem.admits(cut):
            yield cut


def best_of_every_cut(problem: Problem) -> dict[int, float]:
    """The least latency of all whole-byte cuts, for each admitted number of fragments."""
    counts = problem.count_range()
    found = {}
    for count in range(counts.minimum, counts.maximum + 1):
        values = [latency_us(problem.pipeline, cut) for cut in every_cut(problem, count)]
        if values:
            found[count] = min(values)
    return found


def random_cut(problem: Problem, rng: np.random.Generator) -> tuple[int, ...] | None:
    """Some cut that the limits admit; often with sizes at the ends of ranges."""
    counts = problem.count_range()
    count = int(rng.integers(counts.minimum, counts.maximum + 1))
    size, minimum = problem.message_bytes, problem.smallest_fragment_bytes
    spare = size - count * minimum
    if spare < 0:
        return None
    places = np.sort(rng.integers(0, spare + 1, count - 1))
    sizes = np.diff(np.concatenate([[0], places, [spare]])) + minimum
    ends = [part.up_to_bytes for stage in problem.pipeline.stages for part in stage.ranges]
    known = [end for end in ends if end is not None]
    for i in range(count - 1):
        if known and rng.random() < 0.5:
            goal = int(rng.choice(known)) + int(rng.integers(0, 2))
            if goal >= minimum and sizes[-1] + sizes[i] - goal >= minimum:
                sizes[i], sizes[-1] = goal, sizes[-1] + sizes[i] - goal
    cut = tuple(int(one) for one in sizes)
    return cut if problem.admits(cut) else None
