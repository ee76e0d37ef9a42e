"""Cuts that differ from stage to stage: the evaluator's rule, reversal, and the papers'
convention.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import InvalidInput
from domain.hierarchy import Grouping, convention_latency_us
from domain.nested import NestedSchedule, nested_latency_us, simulate_nested
from domain.pipeline import FitRange, Pipeline, Stage, pipeline_of_lines
from domain.schedule import latency_us

costs = st.floats(0.0, 1000.0)


@st.composite
def stages(draw: st.DrawFn) -> Stage:
    """Half of them with a second range."""
    last = FitRange(draw(costs), draw(costs))
    if draw(st.booleans()):
        return Stage("s", (last,))
    return Stage("s", (FitRange(draw(costs), draw(costs), draw(st.integers(1, 30))), last))


def pipelines(minimum: int = 1) -> st.SearchStrategy[Pipeline]:
    """Pipelines of up to five stages, with and without delay."""
    return st.builds(
        Pipeline,
        st.lists(stages(), min_size=minimum, max_size=5).map(tuple),
        st.sampled_from([0.0, 7.5]),
    )


def cut_at(size: int, positions: set[int]) -> tuple[int, ...]:
    """The cut of a message at these byte positions."""
    ends = [*sorted(p for p in positions if 0 < p < size), size]
    return tuple(end - start for start, end in zip([0, *ends[:-1]], ends, strict=True))


def cuts(size: int) -> st.SearchStrategy[tuple[int, ...]]:
    """Any cut of a message of this size."""
    return st.sets(st.integers(1, max(1, size - 1)), max_size=12).map(lambda at: cut_at(size, at))


@given(pipelines(), st.integers(1, 60), st.data())
def test_one_cut_in_every_stage_has_the_latency_of_the_shared_cut(
    pipeline: Pipeline, size: int, data: st.DataObject
) -> None:
    """The nested rule is the recurrence where all stages cut alike, to the last bit."""
    cut = data.draw(cuts(size))
    nested = NestedSchedule((cut,) * len(pipeline))
    assert nested_latency_us(pipeline, nested) == latency_us(pipeline, cut)


@given(pipelines(), st.integers(1, 60), st.data())
def test_the_reversed_schedule_takes_the_reversed_pipeline_as_long(
    pipeline: Pipeline, size: int, data: st.DataObject
) -> None:
    """A block must wait for exactly those it overlaps and those before them: a symmetric rule."""
    levels = tuple(data.draw(cuts(size)) for _ in pipeline.stages)
    mirrored = tuple(cut[::-1] for cut in reversed(levels))
    forwards = nested_latency_us(pipeline, NestedSchedule(levels))
    backwards = nested_latency_us(pipeline.reversed(), NestedSchedule(mirrored))
    assert backwards == pytest.approx(forwards, rel=1e-12)


def test_a_block_waits_for_the_block_that_holds_its_last_byte() -> None:
    """Worked by hand: 2+2+2 bytes reassembled to 3+3, at 1 µs a byte and 10 µs a byte + 1 µs."""
    pipeline = pipeline_of_lines([("net", 0.0, 1000.0), ("disk", 1.0, 10_000.0)], delay_us=0.5)
    timeline = simulate_nested(pipeline, NestedSchedule(((2, 2, 2), (3, 3))))
    assert timeline.start_us == ((0.0, 2.0, 4.0), (4.0, 35.0))
    assert timeline.exit_us == ((2.0, 4.0, 6.0), (35.0, 66.0))
    assert timeline.latency_us == 66.5


def test_cuts_of_different_messages_and_a_wrong_number_of_cuts_are_refused() -> None:
    """Both name the field."""
    with pytest.raises(InvalidInput, match="same message") as different:
        NestedSchedule(((2, 2), (5,)))
    assert different.value.field == "levels"
    with pytest.raises(InvalidInput, match="one cut per stage"):
        NestedSchedule(())
    pipeline = pipeline_of_lines([("a", 1.0, 1.0), ("b", 1.0, 1.0)])
    with pytest.raises(InvalidInput, match="expected 2 cuts"):
        simulate_nested(pipeline, NestedSchedule(((4,),)))


# ---- groupings and the convention ----------------------------------------------------------------

AROUND = Grouping(0, 3, 2, Grouping(0, 1), Grouping(3, 3))


def test_the_convention_adds_whole_blocks_of_compound_stages() -> None:
    """Worked by hand: c(4) = 2+3+3 for two pieces; a = 8, 16; d = 28, 48; e = 32, 52."""
    pipeline = pipeline_of_lines(
        [("a", 0.0, 1000.0), ("b", 0.0, 1500.0), ("slow", 0.0, 5000.0), ("c", 0.0, 1000.0)]
    )
    schedule = NestedSchedule(((2, 2, 2, 2), (2, 2, 2, 2), (4, 4), (4, 4)))
    compound_us = 2.0 + 3.0 + 3.0
    expected = compound_us + 20.0 + 20.0 + 4.0
    assert convention_latency_us(pipeline, AROUND, schedule) == expected


@given(pipelines(3), st.data())
def test_the_convention_is_never_below_the_true_latency(
    pipeline: Pipeline, data: st.DataObject
) -> None:
    """It keeps a compound stage busy for longer; and without a split it is the true latency."""
    size = data.draw(st.integers(1, 60))
    slow = data.draw(st.integers(0, len(pipeline) - 1))
    last = len(pipeline) - 1
    before = Grouping(0, slow - 1) if slow else None
    behind = Grouping(slow + 1, last) if slow < last else None
    coarse = data.draw(st.sets(st.integers(1, max(1, size - 1)), max_size=4))
    finer = [coarse | data.draw(st.sets(st.integers(1, max(1, size - 1)))) for _ in range(2)]
    levels = tuple(
        cut_at(size, coarse if j == slow else finer[0] if j < slow else finer[1])
        for j in range(last + 1)
    )
    schedule = NestedSchedule(levels)
    split_us = convention_latency_us(pipeline, Grouping(0, last, slow, before, behind), schedule)
    assert split_us >= nested_latency_us(pipeline, schedule) * (1.0 - 1e-12)
    shared = NestedSchedule((levels[0],) * (last + 1))
    flat_us = convention_latency_us(pipeline, Grouping(0, last), shared)
    assert flat_us == pytest.approx(nested_latency_us(pipeline, shared), rel=1e-12)


@pytest.mark.parametrize(
    ("levels", "rule"),
    [
        (((2, 2), (4,), (4,), (4,)), "one cut for the stages of a flat group"),
        (((3, 1), (3, 1), (2, 2), (4,)), "whole finer blocks"),
        (((4,), (4,), (4,)), "one per stage"),
    ],
)
def test_the_convention_refuses_cuts_that_are_not_nested(
    levels: tuple[tuple[int, ...], ...], rule: str
) -> None:
    """It has no meaning for them."""
    pipeline = pipeline_of_lines([(name, 1.0, 1.0) for name in "abcd"])
    with pytest.raises(InvalidInput, match=rule):
        convention_latency_us(pipeline, AROUND, NestedSchedule(levels))


@pytest.mark.parametrize(
    ("bounds", "parts", "rule"),
    [
        ((3, 2, None), (None, None), "first <= last"),
        ((0, 2, 3), (None, None), "in its group"),
        ((0, 2, None), (Grouping(0, 1), None), "only around a slow stage"),
        ((0, 2, 1), (Grouping(0, 0), None), "cover the stages"),
        ((0, 2, 1), (Grouping(0, 0), Grouping(1, 2)), "cover the stages"),
    ],
)
def test_groupings_that_do_not_fit_together_are_refused(
    bounds: tuple[int, int, int | None],
    parts: tuple[Grouping | None, Grouping | None],
    rule: str,
) -> None:
    """The error names the rule."""
    first, last, slow = bounds
    with pytest.raises(InvalidInput, match=rule):
        Grouping(first, last, slow, *parts)


def test_a_grouping_must_cover_the_pipeline() -> None:
    """A convention for part of a pipeline would be a wrong latency."""
    pipeline = pipeline_of_lines([("a", 1.0, 1.0), ("b", 1.0, 1.0)])
    with pytest.raises(InvalidInput, match="covers the pipeline"):
        convention_latency_us(pipeline, Grouping(0, 0), NestedSchedule(((4,), (4,))))
