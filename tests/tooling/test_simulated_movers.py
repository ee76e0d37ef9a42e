"""Simulated movers: their exact times are the evaluator's, and each comes from its seed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.simulated_movers import KINDS, MESSAGE_BYTES, ROUND_SIZES, mover, pipelined_us
from domain.pipeline import pipeline_of_lines
from domain.schedule import latency_us
from measuring.verdict import repeated_cut

lines = st.lists(st.tuples(st.floats(0.0, 50.0), st.floats(0.0, 20.0)), min_size=1, max_size=5)


@given(lines, st.integers(1, 4000), st.integers(1, 4000))
def test_times_are_those_of_the_evaluator(
    costs: list[tuple[float, float]], message: int, size: int
) -> None:
    """Of any linear stages and any cut by one size."""
    overhead_us, ns_per_byte = (np.array(column) for column in zip(*costs, strict=True))
    pipeline = pipeline_of_lines([("stage", overhead, cost) for overhead, cost in costs])
    expected = latency_us(pipeline, repeated_cut(message, min(size, message)))
    found = pipelined_us(overhead_us, ns_per_byte / 1000.0, message, min(size, message))
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_a_mover_comes_from_its_seed(kind: str) -> None:
    """Its true times, and its runs in their order."""
    first, second = mover(kind, 5), mover(kind, 5)
    assert [first.true_us(size) for size in ROUND_SIZES] == list(map(second.true_us, ROUND_SIZES))
    assert [first.run_us(1 << 20) for _ in range(5)] == [second.run_us(1 << 20) for _ in range(5)]
    assert first.best_us(MESSAGE_BYTES) <= first.best_round_us(MESSAGE_BYTES)
    assert mover(kind, 6).true_us(1 << 20) != first.true_us(1 << 20)
