"""A clock that steps: readings are as wide as its step, 0 among them, and errors stay sane."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analysis.draws import draw
from domain.fit import FitOptions, TraceFit
from domain.uncertain_fit import uncertain_model
from fitting import fit, read
from fitting.samples import clock_step, sort_samples
from fitting.stage import fit_stage
from tests.support.stage_samples import Floats

SIX = np.array([2.0**k for k in range(10, 21, 2)])
SHORT, LONG = (0.3, 0.15), (15.0, 0.06)  # µs and ns per byte of two stages


def readings(seed: int, step_us: float, x: Floats, stage: tuple[float, float]) -> Floats:
    """Times (N,) of these sizes with 2 % of noise, as a clock with this step shows them."""
    random = np.random.default_rng(seed)
    y = (stage[0] + stage[1] * x / 1000.0) * random.normal(1.0, 0.02, len(x))
    out: Floats = np.round(y / step_us) * step_us
    return out


def traced(x: Floats, *columns: Floats) -> TraceFit:
    head = ",".join(["message_bytes", "repetition", *(f"s{j}_us" for j in range(len(columns)))])
    rows = (
        ",".join([f"{size:.0f}", str(row), *(f"{time:.3f}" for time in times)])
        for row, (size, *times) in enumerate(zip(x, *columns, strict=True))
    )
    return fit([read("\n".join([head, *rows]).encode())])


def message_us(found: TraceFit, message_bytes: int, pieces: int) -> Floats:
    """Draws of the time of a message in so many equal fragments."""
    model = uncertain_model(found)
    assert model is not None
    drawn, size = draw(model, 200, 3), message_bytes / pieces
    times = np.empty((drawn.stages, drawn.count))
    for j in range(drawn.stages):
        range_of = (size > drawn.ends_bytes[j]).sum(axis=0)
        here = (j, range_of, np.arange(drawn.count))
        times[j] = drawn.overhead_us[here] + drawn.ns_per_byte[here] * size / 1000.0
    out: Floats = times.sum(axis=0) + (pieces - 1) * times.max(axis=0)
    return out


@pytest.mark.parametrize("step_us", [1.0, 2.0, 4.0, 10.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_message_costs_no_more_than_ten_times_what_was_measured(
    step_us: float, seed: int
) -> None:
    """Half of the sizes of a stage read 0; its interval reached up to 10^12 µs."""
    x = np.tile(SIX, 20)
    columns = [readings(seed + 7 * j, step_us, x, one) for j, one in enumerate((SHORT, LONG))]
    found = traced(x, *columns)
    assert sum(size.median_us == 0.0 for size in found.stages[0].sizes) >= 1
    for size in SIX:
        whole = sum(max(float(column[x == size].mean()), step_us / 2.0) for column in columns)
        for pieces in (1, 16):
            drawn = message_us(found, int(size * pieces), pieces)
            assert np.quantile(drawn, 0.95) <= 3.0 * pieces * whole
    for stage in found.stages:
        for line in stage.lines:
            most = max(float(column.max()) for column in columns)
            assert line.overhead_std_error_us <= 0.1 * most
            assert line.ns_per_byte_std_error * line.to_bytes / 1000.0 <= most


def test_readings_below_the_step_say_nothing_of_a_deviation_between_sizes() -> None:
    """A line within all readings, each as wide as the step, explains them."""
    x = np.tile(SIX, 20)
    stage, _ = fit_stage(
        "copy", x.astype(int).tolist(), readings(1, 4.0, x, SHORT).tolist(), FitOptions()
    )
    assert stage.size_deviation is not None
    assert stage.size_deviation <= 0.1


@pytest.mark.parametrize("repetitions", [1, 2])
def test_few_times_show_a_step_where_some_are_0(repetitions: int) -> None:
    """No clock without one reads 0."""
    x = np.tile(SIX, repetitions)
    sizes, times = x.astype(int).tolist(), readings(1, 2.0, x, SHORT)
    assert clock_step(sort_samples(sizes, times.tolist())) == 2.0
    assert clock_step(sort_samples(sizes, (times + 2.0).tolist())) == 0.0
    assert clock_step(sort_samples(sizes, (times * np.linspace(1.0, 1.01, len(x))).tolist())) == 0.0


@given(
    st.sampled_from([0.1, 0.5, 1.0, 2.0, 4.0, 10.0]),
    st.floats(0.1, 60.0),
    st.floats(0.02, 4.0),
    st.integers(5, 12),
    st.sampled_from([3, 10, 20]),
    st.integers(0, 2**32),
)
@example(10.0, 0.3, 0.02, 5, 20, 1)  # all of them 0
def test_any_step(
    step_us: float, overhead_us: float, ns_per_byte: float, m: int, repetitions: int, seed: int
) -> None:
    """The interval of a fitted time is no wider than thirty times the greatest time or step."""
    x = np.tile(2.0 ** np.arange(8, 8 + m), repetitions)
    times = readings(seed, step_us, x, (overhead_us, ns_per_byte))
    stage, _ = fit_stage("copy", x.astype(int).tolist(), times.tolist(), FitOptions())
    limit = 30.0 * max(float(times.max()), step_us)
    for line in stage.lines:
        assert line.overhead_std_error_us <= limit
        assert line.ns_per_byte_std_error * line.to_bytes / 1000.0 <= limit


@pytest.mark.parametrize("seed", range(3))
def test_a_stage_that_reads_0_and_two_steps_has_errors(seed: int) -> None:
    """0.6 µs and 0.097 ns a byte read as 0, 4 and 8 µs: its costs are off by a step at most."""
    x = np.repeat([512.0 * 2**k for k in range(8)], 6)
    short = (0.6, 0.097)
    found = traced(x, readings(seed, 4.0, x, LONG), readings(seed, 4.0, x, short))
    assert uncertain_model(found) is not None
    (line,) = found.stages[1].lines
    assert line.overhead_us + line.ns_per_byte * 65.536 == pytest.approx(7.0, abs=4.0)
