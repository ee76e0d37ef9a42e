"""analysis/narrowed_fit.py: the range of a fit and of the schedules that it gives."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.narrowed_fit import (
    MAX_ROUNDS,
    MIN_SIZES,
    Range,
    equal_sizes,
    fit_narrowed,
    range_around,
)
from domain.fit import TraceFit
from domain.measurement import TraceKind
from domain.model import CostModel
from domain.pipeline import Pipeline, Stage, pipeline_of_lines
from domain.problem import FragmentLimits, Problem
from tests.support.records import a_fit

MEASURED = (tuple(2**power for power in range(6, 21)),)


class Play:
    """Fits whose schedules use what a script says for the range that they are of."""

    def __init__(self, script: dict[Range, Range], *, otherwise: Range) -> None:
        self.script = script
        self.otherwise = otherwise
        self.asked: list[Range] = []

    def fit(self, over: Range) -> TraceFit:
        self.asked.append(over)
        return a_fit_of_a_pipeline()

    def sizes_used(self, _: CostModel) -> Sequence[int]:
        return self.script.get(self.asked[-1], self.otherwise)


def a_fit_of_a_pipeline() -> TraceFit:
    fit = a_fit()
    assert isinstance(fit.to_model(), Pipeline)
    return fit


def played(script: dict[Range, Range], otherwise: Range) -> tuple[list[Range], str]:
    play = Play(script, otherwise=otherwise)
    found = fit_narrowed(play.fit, play.sizes_used, MEASURED)
    return play.asked, found.notices[0].code


ALL = (64, 2**20)


def test_it_stands() -> None:
    """The first fit is over all sizes, the last over those that its own schedule uses."""
    asked, code = played({}, (1024, 8192))
    assert (asked, code) == ([ALL, (1024, 8192)], "narrowed_fit")


def test_a_range_that_is_right_at_once() -> None:
    assert played({}, ALL) == ([ALL], "narrowed_fit")


def test_it_goes_round() -> None:
    """The last fit is over all ranges of the cycle, and not over those before it."""
    script = {ALL: (128, 1024), (128, 1024): (4096, 8192), (2048, 8192): (128, 1024)}
    asked, code = played(script, (0, 0))
    assert asked[:2] == [ALL, (128, 1024)]
    assert asked[-1] == (128, 8192)
    assert code == "narrowed_fit_alternates"


def test_it_ends() -> None:
    """Also where the range moves on and on."""
    play = Play({}, otherwise=ALL)
    steps = iter(range(7, 20))

    def moving(_: CostModel) -> Sequence[int]:
        return (2 ** next(steps),)

    found = fit_narrowed(play.fit, moving, MEASURED)
    assert len(play.asked) == MAX_ROUNDS
    assert found.notices[0].code == "narrowed_fit_unsettled"
    assert found.kind is TraceKind.DIRECT


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        ((1000, 3000), (512, 4096)),
        ((1024, 4096), (1024, 4096)),
        ((1024, 1024), (512, 2048)),
        ((1, 2), (64, 256)),
        ((2**30,), (2**18, 2**20)),
        ((1, 2**30), (64, 2**20)),
    ],
)
def test_the_measured_sizes_around_what_is_used(used: tuple[int, ...], expected: Range) -> None:
    """Three of them at least, the nearest ones."""
    assert range_around(used, MEASURED) == expected


def test_every_group_of_samples_keeps_enough_sizes() -> None:
    """Latencies and inter-arrival times may have been measured at different sizes."""
    groups = ((64, 128, 256, 512), (100, 10_000, 1_000_000))
    assert range_around((128, 256), groups) == (64, 1_000_000)


@given(
    used=st.lists(st.integers(1, 2**30), min_size=1, max_size=4),
    sizes=st.sets(st.integers(1, 2**30), min_size=1, max_size=8).map(sorted),
)
def test_any_sizes(used: list[int], sizes: list[int]) -> None:
    """The range is of measured sizes, has enough of them, and holds those that are used."""
    minimum, maximum = range_around(used, (sizes,))
    inside = [size for size in sizes if minimum <= size <= maximum]
    assert {minimum, maximum} <= set(sizes)
    assert len(inside) >= min(MIN_SIZES, len(sizes))
    assert minimum <= min(used) or minimum == sizes[0]
    assert maximum >= max(used) or maximum == sizes[-1]


@given(
    lines=st.lists(st.tuples(st.floats(0.0, 100.0), st.floats(0.0, 100.0)), min_size=1, max_size=6),
    message_bytes=st.integers(1, 300),
)
def test_equal_sizes_are_the_best_ones(
    lines: list[tuple[float, float]], message_bytes: int
) -> None:
    """Against every number of fragments."""
    pipeline = pipeline_of_lines([("s", overhead, cost) for overhead, cost in lines])
    problem = Problem(pipeline, message_bytes, FragmentLimits())
    sizes = equal_sizes(problem)

    def equal_us(count: int) -> float:
        times = [stage.time_us(message_bytes / count) for stage in pipeline.stages]
        return sum(times) + (count - 1) * max(times)

    best_us = min(map(equal_us, range(1, message_bytes + 1)))
    alike = [
        count for count in range(1, message_bytes + 1) if _sizes(message_bytes, count) == sizes
    ]
    assert min(map(equal_us, alike)) == pytest.approx(best_us, rel=1e-9)


def _sizes(message_bytes: int, count: int) -> tuple[int, int]:
    return message_bytes // count, -(-message_bytes // count)


def test_a_stage_is_what_was_fitted() -> None:
    """The line that comes out is the one of the last range."""
    stage = a_fit_of_a_pipeline().stages[0]
    assert isinstance(stage.to_stage(), Stage)
