"""Whether what is said with a probability holds that often: pipelines whose truth is known.

Every case has a number, which is its seed. Stages are what a fit with Gaussian errors says of lines
drawn at random; messages are of any size, or near the size from which cutting pays.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import sqrt

import numpy as np
import pytest

from analysis.uncertainty import UncertaintyQuestion, assess
from domain.pipeline import Pipeline, pipeline_of_lines
from domain.uncertain_answer import DecisionCode, Uncertainty
from domain.uncertainty import NamedCut, UncertainPipeline
from tests.support.counts import count
from tests.support.uncertain import measured_stage

Floats = np.ndarray


@dataclass(frozen=True)
class Case:
    """A pipeline, a message, perhaps the user's setting, and what is said of them."""

    truth: Pipeline
    message_bytes: int
    current: int | None
    found: Uncertainty

    def true_us(self, size: int | None) -> float:
        """What this repeated size truly costs."""
        assert size is not None
        full, rest = divmod(self.message_bytes, min(size, self.message_bytes))
        cut = (min(size, self.message_bytes),) * full + ((rest,) if rest else ())
        return self.truth.latency_us(cut)

    @property
    def covers(self) -> bool:
        """Whether the interval of the latency holds the true one."""
        said = self.found.latency_us
        return said.p05 <= self.true_us(self.found.subject.size_bytes) <= said.p95

    @property
    def loses(self) -> bool:
        """Whether what is advised is truly slower than one piece or than the user's setting."""
        others = [self.message_bytes, *([self.current] if self.current else [])]
        fastest_us = min(map(self.true_us, others))
        return self.true_us(self.found.decision.advised.size_bytes) > fastest_us * (1.0 + 1e-9)


def case(number: int, deviation: float, *, near: bool = False, flat: bool = False) -> Case:
    """Case `number`: stages whose sizes are off by this share; `near` the size from which cutting
    pays; `flat`: no cost depends on the size, and all that a fit finds is noise.
    """
    rng = np.random.default_rng(number)
    stages = int(rng.integers(2, 6))
    overhead_us = np.exp(rng.normal(np.log(6.0), 0.8, stages))
    ns_per_byte = np.exp(rng.normal(np.log(12.0), 0.7, stages))
    size = int(np.exp(rng.uniform(np.log(512), np.log(65536))))
    if near:
        break_even = _break_even(overhead_us, ns_per_byte)
        size = max(2, int(break_even * np.exp(rng.normal(0.0, 2.0 * deviation))))
    if flat:
        ns_per_byte[:] = 0.0
    lines = list(zip(overhead_us.tolist(), ns_per_byte.tolist(), strict=True))
    known = UncertainPipeline(tuple(measured_stage(rng, *line, deviation) for line in lines))
    current = int(np.exp(rng.uniform(np.log(64), np.log(2 * size + 64))))
    setting = current if rng.random() < 0.5 and not flat else None
    question = UncertaintyQuestion(
        known, size, current=NamedCut("current", setting) if setting else None
    )
    truth = pipeline_of_lines([("stage", *line) for line in lines])
    return Case(truth, size, setting, assess(question))


def _break_even(overhead_us: Floats, ns_per_byte: Floats) -> float:
    """The message, in bytes, from which two halves are faster than one piece."""
    low, high = 2.0, 1e9
    for _ in range(60):
        middle = sqrt(low * high)
        saved_us = ns_per_byte * middle / 2e3
        low, high = (
            (low, middle) if saved_us.sum() > (overhead_us + saved_us).max() else (middle, high)
        )
    return high


@cache
def cases(deviation: float, *, near: bool = False, flat: bool = False) -> tuple[Case, ...]:
    """All cases of a kind; shared by the tests."""
    return tuple(case(number, deviation, near=near, flat=flat) for number in range(count(700)))


def within(hits: int, trials: int, low: float, high: float) -> bool:
    """Whether a share may be from low to high: three standard errors of the trials are allowed."""
    share = hits / trials
    slack = [3.0 * sqrt(limit * (1.0 - limit) / trials) for limit in (low, high)]
    return low - slack[0] <= share <= high + slack[1]


@pytest.mark.parametrize("near", [False, True])
@pytest.mark.parametrize("deviation", [0.03, 0.08, 0.3])
def test_the_interval_of_the_latency_covers_the_truth(deviation: float, *, near: bool) -> None:
    """Said 90 %, and in 82 to 96 % of the cases."""
    found = cases(deviation, near=near)
    assert within(sum(one.covers for one in found), len(found), 0.82, 0.96)


@pytest.mark.parametrize("near", [False, True])
@pytest.mark.parametrize("deviation", [0.03, 0.08, 0.3])
def test_what_is_set_loses_in_few_cases(deviation: float, *, near: bool) -> None:
    """To one piece or the user's setting: 3 % at most of what is said to be set."""
    found = cases(deviation, near=near)
    said = [one for one in found if one.found.decision.code is DecisionCode.SET_IT]
    assert len(said) > len(found) // 8
    assert within(sum(one.loses for one in said), len(said), 0.0, 0.03)


@pytest.mark.parametrize("deviation", [0.3, 1.0, 3.0])
def test_noise_alone_sets_nothing(deviation: float) -> None:
    """Times that do not depend on the size: in 95 % at least no gain, or a measurement first."""
    found = cases(deviation, flat=True)
    held = (DecisionCode.NO_GAIN_PROVABLE, DecisionCode.MEASURE_FIRST)
    assert within(sum(one.found.decision.code in held for one in found), len(found), 0.95, 1.0)


def test_seven_to_nine_of_ten_is_said_truly() -> None:
    """That a cut is faster than one piece, said with .7 to .9: true in 75 to 97 %."""
    said = [
        one
        for deviation in (0.03, 0.08)
        for one in cases(deviation, near=True)
        if 0.7 <= (one.found.decision.cut_probability_faster or 0.0) < 0.9
    ]
    true = 0
    for one in said:
        cut = one.found.decision.cut
        assert cut is not None
        true += one.true_us(cut.size_bytes) < one.true_us(one.message_bytes) * (1.0 - 1e-9)
    assert said
    assert within(true, len(said), 0.75, 0.97)


def test_the_cases_are_what_they_are() -> None:
    """A number is a seed: the same case however many are run."""
    assert case(3, 0.08).found == case(3, 0.08).found
