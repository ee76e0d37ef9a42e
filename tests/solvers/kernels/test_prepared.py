"""The prepared judge: the evaluator's own bits, with and without the native kernels."""

from __future__ import annotations

import random

import pytest

from domain.pipeline import FitRange, Pipeline, Stage
from domain.schedule import latency_us
from solvers.kernels import evaluator_of
from solvers.kernels.native import Choice
from tests.support.compiler import require_native_kernels
from tests.support.counts import count
from tests.support.kernels import computed_by


def a_random_pipeline(rng: random.Random) -> Pipeline:
    """Lines and ranges, a delay, up to 64 stages."""
    stages = [
        Stage(
            f"stage {j}",
            (
                *(FitRange(rng.random() * 50, rng.random() * 9, 1000 << at) for at in range(j % 3)),
                FitRange(rng.random() * 99, rng.random() * 30),
            ),
        )
        for j in range(rng.choice((1, 2, 3, 4, 5, 9, 64)))
    ]
    return Pipeline(tuple(stages), delay_us=rng.choice((0.0, 0.1 + 0.2)))


@pytest.mark.parametrize("kernels", ["native", "numpy"])
def test_it_is_the_evaluator(kernels: Choice) -> None:
    """To the last bit, cut after cut, of one fragment and of thousands."""
    require_native_kernels()
    rng = random.Random(11)
    for _ in range(count(300)):
        pipeline = a_random_pipeline(rng)
        with computed_by(kernels):
            evaluator = evaluator_of(pipeline)
        for _ in range(3):
            fragments = rng.choice((1, 2, 59, 257, 3000 // len(pipeline)))
            sizes = [rng.randint(1, 10_000) for _ in range(fragments)]
            assert evaluator(sizes) == latency_us(pipeline, sizes)


def test_without_kernels_it_is_the_evaluator_itself() -> None:
    """The same values, later."""
    pipeline = a_random_pipeline(random.Random(1))
    with computed_by("numpy"):
        assert evaluator_of(pipeline)([5, 7]) == latency_us(pipeline, [5, 7])
