"""domain/course.py: the evaluator's times, kept compactly, and the path that they leave no pause
on.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from domain.errors import InvalidInput
from domain.nested import NestedSchedule, simulate_nested
from domain.pipeline import FitRange, Pipeline, Stage, pipeline_of_lines
from domain.schedule import busiest_stage, simulate
from domain.timeline import Timeline, nested_timeline_of, timeline_of

COST = st.one_of(st.sampled_from([0.0, 1.0, 1e9]), st.floats(0.0, 50.0))
LINE = st.tuples(COST, COST)


def two_ranges(low: tuple[float, float], high: tuple[float, float], end: int) -> Stage:
    """A stage with a jump after `end` bytes."""
    return Stage("s", (FitRange(low[0], low[1], end), FitRange(high[0], high[1])))


STAGE = st.builds(two_ranges, LINE, LINE, st.integers(1, 40))
PIPELINE = st.builds(
    Pipeline, st.lists(STAGE, min_size=1, max_size=6).map(tuple), st.sampled_from([0.0, 2.5])
)
CUT = st.lists(st.integers(1, 60), min_size=1, max_size=20).map(tuple)


@st.composite
def nested(draw: st.DrawFn) -> tuple[Pipeline, NestedSchedule]:
    """A pipeline and a cut of the same message for each of its stages."""
    pipeline, message = draw(PIPELINE), draw(st.integers(1, 60))
    cuts = []
    for _ in range(len(pipeline)):
        inner = draw(st.sets(st.integers(1, max(1, message - 1)), max_size=8))
        ends = sorted({0, message, *(end for end in inner if end < message)})
        cuts.append(tuple(right - left for left, right in pairwise(ends)))
    return pipeline, NestedSchedule(tuple(cuts))


def check_path(timeline: Timeline) -> None:
    """A chain of blocks, each of which begins in the very moment at which the one before ends."""
    path = timeline.critical_path()
    assert (path[0][1], path[-1]) == (0, (len(timeline.stages[-1].exit_us) - 1, path[-1][1]))
    assert path[-1][1] == len(timeline.stages) - 1
    assert timeline.stages[0].start_us[path[0][0]] == 0.0
    for (i, j), (after, stage) in pairwise(path):
        here, there = timeline.stages[j], timeline.stages[stage]
        assert there.start_us[after] == here.exit_us[i]
        if stage == j:
            assert after == i + 1
        else:
            assert (stage, there.awaits[after]) == (j + 1, i)
    times = [timeline.stages[j].exit_us[i] - timeline.stages[j].start_us[i] for i, j in path]
    assert sum(times) + timeline.delay_us == pytest.approx(timeline.latency_us, rel=1e-9)


class TestShared:
    @given(PIPELINE, CUT)
    def test_the_times_are_the_evaluators_to_the_last_bit(
        self, pipeline: Pipeline, cut: tuple[int, ...]
    ) -> None:
        timeline, simulated = timeline_of(pipeline, cut), simulate(pipeline, cut)
        starts = [tuple(stage.start_us) for stage in timeline.stages]
        exits = [tuple(stage.exit_us) for stage in timeline.stages]
        assert starts == list(zip(*simulated.start_us, strict=True))
        assert exits == list(zip(*simulated.exit_us, strict=True))
        assert timeline.latency_us == simulated.latency_us
        assert timeline.message_bytes == sum(cut)
        assert timeline.busiest_stage == busiest_stage(pipeline, cut)
        assert tuple(one.busy_us for one in timeline.stages) == simulated.busy_us()

    @given(PIPELINE, CUT)
    def test_the_critical_path_is_the_evaluators(
        self, pipeline: Pipeline, cut: tuple[int, ...]
    ) -> None:
        timeline = timeline_of(pipeline, cut)
        assert timeline.critical_path() == simulate(pipeline, cut).critical_path()
        check_path(timeline)

    def test_of_two_that_end_at_once_the_one_in_the_same_stage_is_taken(self) -> None:
        pipeline = pipeline_of_lines([("a", 1.0, 0.0), ("b", 1.0, 0.0)])
        timeline = timeline_of(pipeline, (5, 5, 5))
        assert timeline.critical_path() == ((0, 0), (0, 1), (1, 1), (2, 1))

    def test_idle_is_what_lies_between_the_fragments(self) -> None:
        timeline = timeline_of(pipeline_of_lines([("a", 3.0, 0.0), ("b", 1.0, 0.0)]), (1, 1, 1))
        assert [stage.idle_us for stage in timeline.stages] == [0.0, 4.0]

    @pytest.mark.parametrize("cut", [(), (0,), (5, -1)])
    def test_what_is_no_cut_is_refused(self, cut: tuple[int, ...]) -> None:
        with pytest.raises(InvalidInput):
            timeline_of(pipeline_of_lines([("a", 1.0, 1.0)]), cut)


class TestNested:
    @example((pipeline_of_lines([("a", 1, 0), ("b", 1, 0)]), NestedSchedule(((2, 2), (4,)))))
    @given(nested())
    def test_the_times_are_the_evaluators_to_the_last_bit(
        self, given_: tuple[Pipeline, NestedSchedule]
    ) -> None:
        timeline, simulated = nested_timeline_of(*given_), simulate_nested(*given_)
        assert tuple(tuple(stage.start_us) for stage in timeline.stages) == simulated.start_us
        assert tuple(tuple(stage.exit_us) for stage in timeline.stages) == simulated.exit_us
        assert timeline.latency_us == simulated.latency_us
        check_path(timeline)

    def test_as_many_cuts_as_stages(self) -> None:
        with pytest.raises(InvalidInput, match="cuts"):
            nested_timeline_of(pipeline_of_lines([("a", 1.0, 1.0)]), NestedSchedule(((1,), (1,))))
