"""The vectorised evaluators equal the evaluator."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.pipeline import FitRange, Pipeline, Stage
from domain.schedule import latency_us, simulate
from solvers.kernels import cut_latency_us, exit_times_us, latencies_us, stage_times_us
from solvers.kernels.native import Choice
from tests.support.kernels import computed_by

costs = st.one_of(st.just(0.0), st.floats(0.0, 100.0), st.floats(0.0, 1e9))


@st.composite
def stages(draw: st.DrawFn) -> Stage:
    """A line, or two ranges with a jump between them."""
    last = FitRange(draw(costs), draw(costs))
    if draw(st.booleans()):
        return Stage("s", (last,))
    return Stage("s", (FitRange(draw(costs), draw(costs), draw(st.integers(1, 3000))), last))


pipelines = st.builds(
    Pipeline, st.lists(stages(), min_size=1, max_size=8).map(tuple), st.floats(0.0, 1e6)
)
cuts = st.lists(st.integers(1, 5000), min_size=1, max_size=30)


@given(pipelines, st.lists(cuts, min_size=1, max_size=4))
def test_latencies_equal_the_evaluator(
    kernels: Choice, pipeline: Pipeline, several: list[list[int]]
) -> None:
    """1e-12 relative, lines and ranges alike, one cut or many at once."""
    count = min(map(len, several))
    rows = np.array([cut[:count] for cut in several], dtype=float)
    with computed_by(kernels):
        fast = latencies_us(pipeline, rows)
        each = [cut_latency_us(pipeline, row) for row in rows]
    assert each == fast.tolist()
    for row, value in zip(rows, fast, strict=True):
        assert value == pytest.approx(latency_us(pipeline, row.tolist()), rel=1e-12)


@given(pipelines, cuts)
def test_exit_times_equal_the_evaluator(pipeline: Pipeline, cut: list[int]) -> None:
    """The whole matrix, not only its last entry."""
    fast = exit_times_us(stage_times_us(pipeline, np.array(cut, dtype=float)))
    slow = np.array(simulate(pipeline, cut).exit_us)
    np.testing.assert_allclose(fast, slow, rtol=1e-11, atol=1e-12 * slow.max())
