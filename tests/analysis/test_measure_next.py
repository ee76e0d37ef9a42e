"""What measurements are worth: against cases where it is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from analysis.decision import PricedCut
from analysis.draws import Draws, normals, uniforms
from analysis.measure_next import measurements, perfect_information_us
from domain.pipeline import FitRange
from domain.uncertain_answer import Measurement, MeasurementKind
from domain.uncertainty import NamedCut, UncertainLine, UncertainStage

DRAWS = 2000
tables = arrays(np.float64, (4, 30), elements=st.floats(1.0, 1e4))


@given(tables)
def test_perfect_information_saves_what_is_left_to_the_best(latency_us: np.ndarray) -> None:
    """Never below 0, and 0 where one choice is best in every draw."""
    chosen, evpi_us = perfect_information_us(latency_us)
    assert latency_us[chosen].mean() == latency_us.mean(axis=1).min()
    expected = latency_us[chosen].mean() - latency_us.min(axis=0).mean()
    assert evpi_us == pytest.approx(max(0.0, expected), abs=1e-9)
    best_first = np.concatenate([latency_us.min(axis=0)[None] - 0.5, latency_us])
    assert perfect_information_us(best_first) == (0, pytest.approx(0.0, abs=1e-9))


def a_stage(name: str, deviation: float = 0.0) -> UncertainStage:
    """A stage that is measured at three sizes; its costs are in the draws alone."""
    line = UncertainLine(FitRange(1.0, 1.0), 1.0, 1.0, (0.0, 0.0, 0.0))
    return UncertainStage(name, (line,), 5, deviation, 0.0, (64, 256, 1024, 4096))


def saved(*, deviation: float) -> tuple[float, dict[tuple[str | None, int | None], Measurement]]:
    """EVPI, and every measurement, where a choice is better or worse by the first stage's overhead.

    The overhead is 100 µs with a deviation of 10; one choice costs 100 µs, the other what it is.
    """
    overhead_us = 100.0 + 10.0 * normals(uniforms(1, 0, DRAWS, 2))[:1]
    other_us = 50.0 + 5.0 * normals(uniforms(1, 1, DRAWS, 2))[:1]
    costs = np.stack([overhead_us, other_us])
    draws = Draws("stages", ("one", "two"), costs, np.zeros_like(costs), np.empty((2, 0, DRAWS)), 0)
    latency_us = np.stack([overhead_us[0], np.full(DRAWS, 100.1)])
    cuts = [
        PricedCut(NamedCut("cut", size), row) for size, row in zip((1, 2), latency_us, strict=True)
    ]
    found = measurements(
        (a_stage("one", deviation), a_stage("two", deviation)),
        draws,
        latency_us,
        [(cuts[0], cuts[1])],
        largest_bytes=5000,
        seed=3,
    )
    assert [one.saves_us for one in found] == sorted((one.saves_us for one in found), reverse=True)
    return perfect_information_us(latency_us)[1], {
        (one.stage, one.fragment_bytes): one for one in found
    }


def test_a_measurement_without_noise_saves_all_that_there_is() -> None:
    """Where it decides the choice; the mean of a half-normal, sd/sqrt(2 pi), is 4 µs."""
    evpi_us, found = saved(deviation=0.0)
    assert evpi_us == pytest.approx(10.0 / np.sqrt(2.0 * np.pi), rel=0.1)
    assert found["one", 128].saves_us == pytest.approx(evpi_us, rel=0.05)
    assert found[None, None].saves_us == pytest.approx(evpi_us, rel=0.05)


def test_a_stage_that_decides_nothing_saves_nothing() -> None:
    """But for what a regression on chance finds."""
    evpi_us, found = saved(deviation=0.0)
    assert found["two", 128].saves_us < 0.15 * evpi_us


def test_noise_takes_its_share() -> None:
    """A normal cost seen through noise of the same deviation: the root of half of it is left."""
    evpi_us, found = saved(deviation=0.1)
    assert found["one", 128].saves_us == pytest.approx(evpi_us * np.sqrt(0.5), rel=0.1)


def test_stages_are_measured_at_new_sizes_only() -> None:
    """Half-way in log between those that were measured."""
    _, found = saved(deviation=0.0)
    stages = {(stage, size) for stage, size in found if stage is not None}
    assert stages == {(name, size) for name in ("one", "two") for size in (128, 512, 2048)}
    whole = found[None, None]
    assert whole.kind is MeasurementKind.WHOLE_MESSAGES
    assert whole.cuts is not None
    assert [one.size_bytes for one in whole.cuts] == [1, 2]
