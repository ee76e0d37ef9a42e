"""Shares of the critical path, and cheaper pipelines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.explanation import Cost, cheaper, cheaper_pipelines, path_shares
from domain.errors import InvalidInput
from domain.pipeline import FitRange, Pipeline, Stage, pipeline_of_lines
from domain.schedule import latency_us
from domain.timeline import timeline_of

costs = st.floats(0.0, 1e4, allow_subnormal=False)
lines = st.lists(st.tuples(st.just("stage"), costs, costs), min_size=1, max_size=6)
cuts = st.lists(st.integers(1, 5000), min_size=1, max_size=20).map(tuple)


def a_pipeline() -> Pipeline:
    """A copy, a slow wire, a copy."""
    return pipeline_of_lines([("in", 1.0, 1.0), ("wire", 2.0, 10.0), ("out", 1.0, 1.0)])


@given(lines, cuts)
def test_the_shares_sum_to_the_latency(
    found: list[tuple[str, float, float]], cut: tuple[int, ...]
) -> None:
    """Every moment of the message is spent in some stage of the path."""
    pipeline = pipeline_of_lines(found, delay_us=3.0)
    shares = path_shares(timeline_of(pipeline, cut))
    reported_us = sum(one.overhead_us + one.bytes_us for one in shares)
    assert reported_us + 3.0 == pytest.approx(latency_us(pipeline, cut), rel=1e-12)
    assert [one.stage for one in shares] == list(range(len(pipeline)))
    if reported_us > 0.0:
        assert sum(one.share for one in shares) == pytest.approx(1.0, rel=1e-9)


def test_the_slow_stage_binds() -> None:
    """All fragments of the wire are on the path, and one of each copy."""
    shares = path_shares(timeline_of(a_pipeline(), (100, 100, 100)))
    assert [one.fragments for one in shares] == [1, 3, 1]
    assert [one.is_binding for one in shares] == [False, True, False]
    assert shares[1].overhead_us == 6.0
    assert shares[1].bytes_us == pytest.approx(3.0)


def test_ranges_keep_their_own_overhead() -> None:
    """A fragment's overhead is that of the range that it falls into."""
    stage = Stage("dma", (FitRange(1.0, 2.0, 64), FitRange(5.0, 1.0)))
    shares = path_shares(timeline_of(Pipeline((stage,)), (64, 65)))
    assert shares[0].overhead_us == 6.0
    assert shares[0].bytes_us == pytest.approx((64 * 2.0 + 65 * 1.0) / 1e3)


@given(lines, cuts, st.floats(0.01, 1.0))
def test_a_cheaper_pipeline_is_never_slower(
    found: list[tuple[str, float, float]], cut: tuple[int, ...], by: float
) -> None:
    """For the same cut; and each variant differs in one cost of one stage."""
    pipeline = pipeline_of_lines(found)
    before_us = latency_us(pipeline, cut)
    for stage, _, variant in cheaper_pipelines(pipeline, by=by):
        assert latency_us(variant, cut) <= before_us * (1.0 + 1e-15)
        differs = [
            j
            for j, (one, other) in enumerate(zip(pipeline.stages, variant.stages, strict=True))
            if one != other
        ]
        assert differs == [stage]


def test_a_tenth_less() -> None:
    """Of one cost alone, in every range; the name and the delay stay."""
    variant = cheaper(a_pipeline(), 1, Cost.PER_BYTE)
    assert variant.stages[1] == Stage.of_line("wire", overhead_us=2.0, ns_per_byte=9.0)
    assert cheaper(a_pipeline(), 0, Cost.OVERHEAD, by=1.0).stages[0].ranges[0].overhead_us == 0.0


def test_costs_of_nothing_are_passed_over() -> None:
    """There is nothing to be saved where nothing is spent."""
    pipeline = pipeline_of_lines([("free", 0.0, 0.0), ("wire", 2.0, 0.0)])
    assert [(stage, cost) for stage, cost, _ in cheaper_pipelines(pipeline)] == [(1, Cost.OVERHEAD)]


@pytest.mark.parametrize(
    ("stage", "by", "field"),
    [
        (3, 0.1, "stage"),
        (-1, 0.1, "stage"),
        (0, 0.0, "cheaper_by"),
        (0, 1.5, "cheaper_by"),
        (0, float("nan"), "cheaper_by"),
    ],
)
def test_what_makes_no_sense_is_refused(stage: int, by: float, field: str) -> None:
    """With the name of what is wrong."""
    with pytest.raises(InvalidInput) as refused:
        cheaper(a_pipeline(), stage, Cost.OVERHEAD, by=by)
    assert refused.value.field == field
