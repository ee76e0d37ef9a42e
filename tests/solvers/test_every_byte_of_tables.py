"""Every byte of random tables is within what they state, by a program of its own."""

from __future__ import annotations

import numpy as np
import pytest

from domain.errors import Infeasible
from domain.pipeline import Pipeline
from domain.plan_table import PlanTable
from domain.problem import FragmentLimits
from exports.table.slt import encode
from solvers import compile_table
from tests.solvers.ranged_pipelines import random_stage
from tests.solvers.table_cases import random_pipeline
from tests.solvers.table_program import messages_within_gaps
from tests.support.counts import count


def random_table(seed: int) -> PlanTable | None:
    """A table of lines, of messages of up to 2 600 bytes, or of ranges, of up to 35; None where the
    limits admit no cut of some message.
    """
    rng = np.random.default_rng([17, seed])
    has_lines = rng.random() < 0.6
    low = int(10.0 ** rng.uniform(0.0, 3.2)) if has_lines else int(rng.integers(1, 12))
    high = low + int(10.0 ** rng.uniform(1.0, 3.0) if has_lines else rng.integers(8, 24))
    if has_lines:
        pipeline = random_pipeline(rng)
    else:
        scale, stages = float(rng.choice([1e-3, 1.0, 1e3])), int(rng.integers(1, 5))
        pipeline = Pipeline(tuple(random_stage(rng, high, scale) for _ in range(stages)))
    counts = int(rng.integers(1, 9 if has_lines else 5))
    smallest = int(rng.choice([1, 1, 1, max(1, low // 5)]))
    largest = (
        None if rng.random() < 0.6 else max(smallest, -(-high // counts) + int(rng.integers(9)))
    )
    unit = int(rng.choice([1, 1, 1, 2, 3, 8])) if has_lines else int(rng.choice([1, 1, 2]))
    limits = FragmentLimits(smallest, largest, unit, counts)
    try:
        return compile_table(
            pipeline,
            limits,
            min_message_bytes=low,
            max_message_bytes=high,
            relative_gap=float(rng.choice([1e-2, 1e-3, 1e-4, 1e-5])),
        )
    except Infeasible:
        return None


@pytest.mark.parametrize("part", range(20))
def test_every_byte_of_random_tables_is_within_its_gap(part: int) -> None:
    """2 000 of them in a campaign; cuts against linear programs or every cut, sizes against every
    size.
    """
    checked, seed = 0, 1_000_000 * part
    while checked < count(100, share=100):
        table = random_table(seed)
        seed += 1
        if table is not None:
            length = table.max_message_bytes - table.min_message_bytes + 1
            assert messages_within_gaps(encode(table, profile="", revision=0)) == length
            checked += 1
