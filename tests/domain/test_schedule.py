"""The evaluator: recurrence, timeline, critical path."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import InvalidInput
from domain.pipeline import Pipeline, pipeline_of_lines
from domain.schedule import Schedule, busiest_stage, latency_us, simulate

KIB = 1000.0 / 1024.0
MYRINET = pipeline_of_lines(
    [
        ("sender copy", 7.2, 7.2 * KIB),
        ("sender host DMA", 5.2, 24.9 * KIB),
        ("network DMAs and receiver host DMA", 7.5, 24.9 * KIB),
        ("receiver copy", 7.4, 7.9 * KIB),
    ]
)

costs = st.floats(0.0, 50.0)
pipelines = st.lists(st.tuples(st.just("s"), costs, costs), min_size=1, max_size=6).map(
    pipeline_of_lines
)
cuts = st.lists(st.integers(1, 5000), min_size=1, max_size=12).map(tuple)


def longest_path_us(pipeline: Pipeline, cut: tuple[int, ...]) -> float:
    """T as the longest monotone lattice path, by recursion from the end: another algorithm."""
    times = [[stage.time_us(size) for stage in pipeline.stages] for size in cut]
    best: dict[tuple[int, int], float] = {}
    for i in reversed(range(len(cut))):
        for j in reversed(range(len(pipeline))):
            after = max(best.get((i + 1, j), 0.0), best.get((i, j + 1), 0.0))
            best[i, j] = times[i][j] + after
    return best[0, 0]


def test_one_fragment_of_4_kib_on_myrinet() -> None:
    """Wang98 Table 1: 286.9 µs."""
    assert latency_us(MYRINET, [4096]) == pytest.approx(286.9, abs=0.05)


def test_equal_fragments_on_myrinet() -> None:
    """Wang98: five real fragments 188.9 µs, four 189.4 µs."""
    assert latency_us(MYRINET, [4096 / 5] * 5) == pytest.approx(188.9, abs=0.05)
    assert latency_us(MYRINET, [1024] * 4) == pytest.approx(189.4, abs=0.05)


@given(pipelines, cuts)
def test_latency_is_the_longest_lattice_path(pipeline: Pipeline, cut: tuple[int, ...]) -> None:
    """The recurrence forwards equals the longest path backwards."""
    assert latency_us(pipeline, cut) == pytest.approx(longest_path_us(pipeline, cut), rel=1e-12)


@given(pipelines, cuts)
def test_reversal_keeps_the_latency(pipeline: Pipeline, cut: tuple[int, ...]) -> None:
    """Wang98 sec. 4.1.1: the reversed cut on the reversed pipeline takes as long."""
    assert latency_us(pipeline.reversed(), cut[::-1]) == pytest.approx(
        latency_us(pipeline, cut), rel=1e-12
    )


@given(pipelines, cuts)
def test_the_timeline_keeps_its_rules(pipeline: Pipeline, cut: tuple[int, ...]) -> None:
    """Nothing starts before it may, and the end is the latency, exactly."""
    timeline = simulate(pipeline, cut)
    assert timeline.latency_us == latency_us(pipeline, cut)
    for i, row in enumerate(timeline.start_us):
        for j, start in enumerate(row):
            assert start >= (timeline.exit_us[i - 1][j] if i else 0.0)
            assert start >= (timeline.exit_us[i][j - 1] if j else 0.0)


@given(pipelines, cuts)
def test_the_critical_path_adds_up_to_the_latency(pipeline: Pipeline, cut: tuple[int, ...]) -> None:
    """It is a monotone lattice path from first to last, and its times sum to T."""
    path = simulate(pipeline, cut).critical_path()
    assert path[0] == (0, 0)
    assert path[-1] == (len(cut) - 1, len(pipeline) - 1)
    total = sum(pipeline.stages[j].time_us(cut[i]) for i, j in path)
    assert total == pytest.approx(latency_us(pipeline, cut), rel=1e-9)
    steps = {(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(path)}
    assert steps <= {(0, 1), (1, 0)}


def test_a_constant_delay_is_added_once() -> None:
    """delay_us occupies no stage."""
    delayed = Pipeline(MYRINET.stages, 5.0)
    assert latency_us(delayed, [2048, 2048]) == latency_us(MYRINET, [2048, 2048]) + 5.0


def test_the_busiest_stage_is_the_one_occupied_longest() -> None:
    """Myrinet's network DMA beats the host DMA by its overhead."""
    assert busiest_stage(MYRINET, [1024] * 4) == 2


@pytest.mark.parametrize("cut", [(), (0,), (-1, 2), (1.5,), (True,), (2**48, 1)])
def test_sizes_that_are_none_are_refused(cut: tuple[int, ...]) -> None:
    """One or more whole sizes of at least a byte."""
    with pytest.raises(InvalidInput, match="fragment"):
        Schedule(cut)
