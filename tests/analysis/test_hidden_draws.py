"""Gains over draws of the costs, against the evaluator draw by draw."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.draws import draw
from analysis.hidden_draws import HiddenCuts, gain_interval
from analysis.hiding import HideQuestion, HostStages, hide
from contract.limits import DEFAULT_DRAWS
from domain.pipeline import pipeline_of_lines
from domain.problem import Problem
from domain.uncertainty import UncertainPipeline, seed_of, stated_model
from solvers.hidden_cut import HostWork

LINES = [("copy", 7.0, 7.0), ("wire", 7.5, 24.3), ("store", 3.0, 11.0)]
PIPELINE = pipeline_of_lines(LINES, delay_us=2.0)


def uncertain(relative: float) -> UncertainPipeline:
    """The pipeline with typed errors."""
    model = stated_model(PIPELINE, relative)
    assert isinstance(model, UncertainPipeline)
    return model


@pytest.mark.parametrize("are_train", [False, True])
def test_the_interval_is_that_of_run_times_in_every_draw(are_train: bool) -> None:
    """Each draw as a pipeline of its own."""
    model, plain, cut = uncertain(0.2), (1024, 1024, 1024, 1024), (2048, 1500, 548)
    alone = HostWork(0.0, ((0,),), 3, are_train)
    host = HostWork(60.0, ((0,), (1, 2)), 3, are_train)
    cuts = HiddenCuts(plain, alone, 80.0, cut, host, 20.0)
    draws = draw(model, DEFAULT_DRAWS, seed_of(model))
    gains = []
    for number in range(DEFAULT_DRAWS):
        costs = zip(
            ("a", "b", "c"),
            draws.overhead_us[:, 0, number].tolist(),
            draws.ns_per_byte[:, 0, number].tolist(),
            strict=True,
        )
        problem = Problem(pipeline_of_lines([*costs], delay_us=PIPELINE.delay_us), 4096)
        without_us = 80.0 + alone.run_us(problem, plain)
        gains.append(without_us / (20.0 + host.run_us(problem, cut)))
    found = gain_interval(model, cuts)
    assert found == pytest.approx(tuple(np.percentile(gains, (2.5, 97.5))), rel=1e-9)


def test_cuts_that_are_very_long_have_no_interval() -> None:
    cut = (1,) * 20_000
    host = HostWork(0.0)
    assert gain_interval(uncertain(0.1), HiddenCuts(cut, host, 1.0, cut, host, 0.0)) is None


@pytest.mark.parametrize(
    ("relative", "overhead_us", "warned"),
    [
        (0.3, 110.0, True),
        (0.3, 5.0, False),
        (1e-3, 150.0, False),
        (0.3, 900.0, False),
    ],
)
def test_a_loss_within_the_errors_is_said(
    relative: float, overhead_us: float, warned: bool
) -> None:
    """Not where it is certain to gain, nor where it is known to lose: that is another warning."""
    question = HideQuestion(
        Problem(PIPELINE, 4096),
        100.0,
        overhead_us=overhead_us,
        hosts=HostStages(sender=(0,)),
        uncertain=uncertain(relative),
    )
    codes = {one.code for one in hide(question).warnings}
    assert ("interval_contains_loss" in codes) == warned
