"""Seeded random problems over wide scales: eight decades each of overheads and of costs."""

from __future__ import annotations

import numpy as np

from domain.errors import Infeasible
from domain.pipeline import Pipeline, pipeline_of_lines
from domain.problem import FragmentLimits, Problem

_MIN_US, _MAX_US = 1e-3, 1e5
_MIN_NS, _MAX_NS = 1e-4, 1e4
_MAX_MESSAGE_BYTES = 1 << 24
_ZERO = 0.1  # how often an overhead, or a cost, is 0
_LIMITED = 0.3  # how often there are limits


def wide_problem(seed: int, *, max_fragments: int | None = None) -> Problem:
    """One to twelve stages, 1 B to 16 MiB, log-uniform, zeros among them; some with limits."""
    rng = np.random.default_rng([4, seed])
    pipeline = _pipeline(rng)
    size = int(np.exp(rng.uniform(0.0, np.log(_MAX_MESSAGE_BYTES))))
    problem = Problem(pipeline, size, FragmentLimits(max_fragments=max_fragments))
    if rng.random() >= _LIMITED:
        return problem
    limited = Problem(pipeline, size, _limits(rng, size, max_fragments))
    try:
        limited.count_range()
    except Infeasible:
        return problem
    return limited


def _pipeline(rng: np.random.Generator) -> Pipeline:
    n = int(rng.integers(1, 13))
    overhead = np.exp(rng.uniform(np.log(_MIN_US), np.log(_MAX_US), n))
    cost = np.exp(rng.uniform(np.log(_MIN_NS), np.log(_MAX_NS), n))
    overhead[rng.random(n) < _ZERO] = 0.0
    cost[rng.random(n) < _ZERO] = 0.0
    return pipeline_of_lines([(f"s{j}", float(overhead[j]), float(cost[j])) for j in range(n)])


def _limits(rng: np.random.Generator, size: int, max_fragments: int | None) -> FragmentLimits:
    return FragmentLimits(
        min_fragment_bytes=int(rng.choice([1, 1, 7, 512])),
        max_fragment_bytes=max(1, int(size * rng.uniform(0.02, 0.7)))
        if rng.random() < 0.6
        else None,
        alignment_bytes=int(rng.choice([1, 1, 4, 64])),
        max_fragments=max_fragments,
    )
