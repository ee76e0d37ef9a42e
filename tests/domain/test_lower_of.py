"""The less of two stages: domain.aggregate.lower_of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.aggregate import lower_of
from domain.pipeline import FitRange, Stage

costs = st.tuples(st.floats(0.0, 100.0), st.floats(0.0, 50.0))
ends = st.lists(st.integers(1, 100_000), max_size=3, unique=True).map(sorted)


def _stage(name: str, ends: list[int], lines: list[tuple[float, float]]) -> Stage:
    parts = zip([*ends, None], lines, strict=False)
    return Stage(name, tuple(FitRange(a, b, end) for end, (a, b) in parts))


stages = st.builds(_stage, st.just("s"), ends, st.lists(costs, min_size=4, max_size=4))


@given(stages, stages, st.lists(st.integers(1, 10**7), min_size=1, max_size=20))
def test_it_takes_the_less_at_every_size(one: Stage, other: Stage, sizes: list[int]) -> None:
    """At ends of ranges and behind them too."""
    found = lower_of(one, other)
    edges = [part.up_to_bytes for part in found.ranges if part.up_to_bytes is not None]
    for size in [*sizes, *edges, *(edge + 1 for edge in edges)]:
        less = min(one.time_us(size), other.time_us(size))
        assert found.time_us(size) == pytest.approx(less, rel=1e-9, abs=1e-9)


def test_a_stage_below_the_limit_is_itself() -> None:
    one = _stage("s", [4096], [(1.0, 2.0), (3.0, 2.0)])
    assert lower_of(one, _stage("t", [], [(50.0, 20.0)])) == one
