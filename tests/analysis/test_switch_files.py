"""Files with a switch in their last one or two sizes: what is advised is faster by the file itself.

A line that is fitted to the sizes before the switch knows nothing of it. Every case has a number,
which is its seed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from analysis.file_votes import as_measured
from analysis.measured import Measured
from analysis.size_curve import choose_size
from analysis.uncertainty import UncertaintyQuestion, assess
from domain.default_sizes import CURRENT
from domain.measured_times import measured_times
from domain.problem import problem_of
from domain.uncertain_answer import DecisionCode
from domain.uncertain_fit import uncertain_model
from domain.uncertainty import NamedCut
from tests.support.counts import count
from tests.support.measured import Time, fitted, trace

SIZES = tuple(2**power for power in range(10, 21))


def switching(rng: np.random.Generator) -> tuple[str, int, int]:
    """A trace of two or three stages, a message, and the size that it is repeated in today."""
    stages, above = int(rng.integers(2, 4)), SIZES[-int(rng.integers(1, 3)) - 1]
    slow = int(rng.integers(0, stages))
    times: list[Time] = []
    for j in range(stages):
        overhead = float(np.exp(rng.uniform(np.log(5.0), np.log(60.0))))
        per_byte = float(np.exp(rng.uniform(np.log(3e-4), np.log(3e-3))))
        factor = float(rng.uniform(1.2, 3.0)) if j == slow else 1.0
        times.append(_time(overhead, per_byte, above, factor, is_step=bool(rng.random() < 0.5)))
    total = 2 ** int(rng.integers(19, 24))
    current = min(total, 2 ** int(rng.integers(10, 21)))
    return trace(SIZES, 8, times, seed=int(rng.integers(2**31))), total, current


def _time(
    overhead: float, per_byte: float, above: int, factor: float, *, is_step: bool
) -> Callable[[int], float]:
    def time(size: int) -> float:
        line = overhead + per_byte * size
        if size <= above:
            return line
        return line * factor if is_step else line + per_byte * (factor - 1.0) * (size - above)

    return time


@pytest.mark.parametrize("number", range(count(200)))
def test_what_is_advised_is_not_slower_by_the_file_s_own_times(number: int) -> None:
    """Than the setting of today: what is set, and what is to be set while something is measured."""
    text, total, current = switching(np.random.default_rng([37, number]))
    fit = fitted(text)
    model, times = uncertain_model(fit), measured_times(fit)
    assert model is not None
    question = UncertaintyQuestion(
        model,
        total,
        current=NamedCut(CURRENT, current),
        measured_bytes=fit.measured_bytes,
        times=times,
    )
    found = assess(question)
    problem = problem_of(model.model, total, question.limits)
    choice = choose_size(problem, found, current_bytes=current)
    assert choice is not None
    measured = Measured(problem, model, times, None, None)
    assert times is not None
    own_us, today_us = (
        measured.by_file_us(as_measured(times).at_most, NamedCut("cut", size))[:, 0]
        for size in (choice.chosen.size_bytes, current)
    )
    assert (own_us <= today_us * (1.0 + 1e-9)).all()
    if found.decision.code is DecisionCode.SET_IT:
        assert (own_us < today_us).all()
