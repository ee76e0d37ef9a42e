"""A table and an optimisation of the same question: neither contradicts the other's proof."""

from __future__ import annotations

import numpy as np
import pytest

from domain.errors import Infeasible
from domain.pipeline import Pipeline
from domain.problem import FragmentLimits, Problem
from domain.schedule import latency_us
from solvers import compile_table, solve
from tests.solvers.ranged_pipelines import random_stage
from tests.support.counts import count

_EXACTLY = 1.0 + 1e-9
_PARTS = 10


@pytest.mark.parametrize("part", range(_PARTS))
def test_tables_and_solutions_agree_within_what_they_prove(part: int) -> None:
    """Random profiles with ranges, units and limits; messages between entries, and the one of the
    greatest gap. Neither is below the other's bound, nor above it by more than its own gap.
    """
    compared = 0
    for seed in range(count(12 * _PARTS, share=_PARTS)):
        rng = np.random.default_rng([171, part, seed])
        high = int(np.exp(rng.uniform(np.log(20), np.log(20_000))))
        low = max(1, int(high * rng.uniform(0.5, 0.9)))
        scale = float(rng.choice([1.0, 1.0, 1e-6, 1e6]))
        stages = int(rng.integers(1, 5))
        pipeline = Pipeline(tuple(random_stage(rng, high, scale) for _ in range(stages)))
        unit = int(rng.choice([1, 1, 1, 4, 64]))
        limits = FragmentLimits(alignment_bytes=unit, max_fragments=int(rng.integers(1, 20)))
        try:
            table = compile_table(
                pipeline, limits, min_message_bytes=low, max_message_bytes=high, relative_gap=1e-2
            )
        except Infeasible:
            continue
        worst = max(table.cuts, key=lambda cut: cut.relative_gap).message_bytes
        for size in {worst, *rng.integers(low, high + 1, 2).tolist()}:
            found = solve(Problem(pipeline, size, limits), time_limit_s=20.0)
            of_table, gap = latency_us(pipeline, table.cut_at(size)), table.relative_gap_at(size)
            assert of_table <= (1.0 + gap) * found.latency_us * _EXACTLY
            assert of_table * _EXACTLY >= found.lower_bound_us
            assert found.latency_us <= (1.0 + found.relative_gap) * of_table * _EXACTLY
            compared += 1
    assert compared > 0
