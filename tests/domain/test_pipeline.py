"""Stages, ranges and minorants."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import InvalidStage
from domain.pipeline import FitRange, Pipeline, Stage, pipeline_of_lines

WIRE = Stage("wire", (FitRange(10.0, 20.0, 8192), FitRange(60.0, 11.3)))


@pytest.mark.parametrize(
    ("overhead_us", "ns_per_byte"),
    [
        (-1.0, 1.0),  # a negative overhead
        (1.0, -1e-9),  # a negative cost
        (math.nan, 1.0),
        (1.0, math.inf),
        (1.1e12, 1.0),  # above the stated limit
        (1.0, 1.1e9),
    ],
)
def test_a_cost_outside_its_range_is_refused(overhead_us: float, ns_per_byte: float) -> None:
    """0 <= cost <= limit, and the error names the field."""
    with pytest.raises(InvalidStage, match=r"overhead_us|ns_per_byte"):
        Stage.of_line("s", overhead_us=overhead_us, ns_per_byte=ns_per_byte)


def test_ranges_are_inclusive_at_their_ends() -> None:
    """up_to_bytes belongs to its own range; the next byte to the next."""
    assert WIRE.time_us(8192) == pytest.approx(10.0 + 20.0 * 8.192)
    assert WIRE.time_us(8193) == pytest.approx(60.0 + 11.3 * 8.193)
    assert WIRE.line_over(1, 8192) == WIRE.ranges[0].line
    assert WIRE.line_over(8193, 10**9) == WIRE.ranges[1].line
    assert WIRE.line_over(8192, 8193) is None


@pytest.mark.parametrize(
    "ranges",
    [
        (),
        (FitRange(1.0, 1.0, 10),),  # the last one must be open
        (FitRange(1.0, 1.0), FitRange(1.0, 1.0)),  # only the last one may be
        (FitRange(1.0, 1.0, 10), FitRange(1.0, 1.0, 10), FitRange(1.0, 1.0)),  # must increase
    ],
)
def test_broken_ranges_are_refused(ranges: tuple[FitRange, ...]) -> None:
    """Ranges ascend and only the last is open."""
    with pytest.raises(InvalidStage):
        Stage("s", ranges)


def test_a_pipeline_has_1_to_64_stages() -> None:
    """The number of stages is limited on both sides."""
    stage = Stage.of_line("s", overhead_us=1.0, ns_per_byte=1.0)
    for stages in ((), (stage,) * 65):
        with pytest.raises(InvalidStage, match="1 to 64"):
            Pipeline(stages)


def test_the_first_of_equal_stages_is_the_bottleneck() -> None:
    """The bottleneck depends on the size; ties go to the lower index."""
    pipeline = pipeline_of_lines([("a", 10.0, 1.0), ("b", 1.0, 10.0), ("c", 10.0, 1.0)])
    assert pipeline.bottleneck_at(10) == 0
    assert pipeline.bottleneck_at(10_000) == 1


costs = st.floats(0.0, 100.0)
ends = st.lists(st.integers(1, 5000), min_size=0, max_size=4, unique=True).map(sorted)


@st.composite
def ranged_stages(draw: st.DrawFn) -> Stage:
    """A stage with up to five ranges, discontinuous as real protocol switches are."""
    parts = [FitRange(draw(costs), draw(costs), end) for end in draw(ends)]
    return Stage("s", (*parts, FitRange(draw(costs), draw(costs))))


@given(ranged_stages(), st.integers(1, 3000), st.integers(0, 6000), st.data())
def test_a_minorant_is_convex_and_below_the_cost(
    stage: Stage, minimum: int, width: int, data: st.DataObject
) -> None:
    """At every admitted size, real or whole, it does not lie above the cost."""
    points = stage.minorant_points(minimum, minimum + width)
    slopes = [(d - b) / (c - a) for (a, b), (c, d) in pairwise(points)]
    assert all(left <= right + 1e-9 for left, right in pairwise(slopes))
    for _ in range(20):
        size = data.draw(st.floats(minimum, minimum + width))
        assert _between(points, size) <= stage.time_us(size) + 1e-7


@given(ranged_stages(), st.integers(1, 3000), st.integers(1, 6000))
def test_a_minorant_touches_the_cost_at_its_ends(stage: Stage, minimum: int, width: int) -> None:
    """It is the greatest convex function below: at both ends it is the cost itself."""
    first, *_, last = stage.minorant_points(minimum, minimum + width)
    assert first[0] == minimum
    assert first[1] == min(stage.time_us(minimum), _limit_from_above(stage, minimum))
    assert last == (minimum + width, stage.time_us(minimum + width))


def _between(points: tuple[tuple[float, float], ...], size: float) -> float:
    for (a, b), (c, d) in pairwise(points):
        if a <= size <= c:
            return b + (d - b) * (size - a) / (c - a)
    return points[0][1]


def _limit_from_above(stage: Stage, size: int) -> float:
    part = stage.range_at(size + 1e-6)
    return part.line.time_us(size)
