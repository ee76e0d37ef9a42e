"""Measured sizes for tests: made up, and fitted from rows as a file would have them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from hypothesis import strategies as st

from analysis.uncertainty import UncertaintyQuestion
from app.questions.fits import fit_measurements
from app.questions.traces import Measurement
from domain.fit import FitOptions, TraceFit
from domain.measured_times import MeasuredSize, MeasuredStage, MeasuredTimes
from domain.measured_times import measured_times as times_of_fit
from domain.pipeline import Pipeline
from domain.uncertain_fit import uncertain_model
from domain.uncertainty import NamedCut
from models.records import FitRequest

Time = Callable[[int], float]


def question_of(fit: TraceFit, message_bytes: int, current: int) -> UncertaintyQuestion:
    """What is asked of a message and the size in use, with all that the fit knows."""
    model = uncertain_model(fit)
    assert model is not None
    return UncertaintyQuestion(
        model,
        message_bytes,
        current=NamedCut("current", current),
        measured_bytes=fit.measured_bytes,
        times=times_of_fit(fit),
        overlap=fit.overlap,
    )


def times_of(
    *stages: Sequence[tuple[int, float]], error: float = 0.0, ratio: float = 1.0, kind: str = ""
) -> MeasuredTimes:
    """Stages of (size, median): means are above these by `ratio`, all known to this share."""
    found = tuple(
        MeasuredStage(
            f"stage {j}",
            tuple(
                MeasuredSize(size, us, error * us, ratio * us, ratio * error * us, is_own=False)
                for size, us in sizes
            ),
            ratio,
            0.0,
        )
        for j, sizes in enumerate(stages)
    )
    return MeasuredTimes(kind or Pipeline.kind, found)


@st.composite
def measured_times(draw: st.DrawFn, *, stages: int, sizes: Sequence[int]) -> MeasuredTimes:
    """Any times at these sizes, with any errors; means of their own in some."""
    found = []
    for j in range(stages):
        ratio = draw(st.floats(0.8, 2.0))
        rows = []
        for size in sizes:
            median = draw(st.floats(0.01, 1e4))
            mean = median * draw(st.just(ratio) | st.floats(0.8, 2.0))
            error = draw(st.sampled_from([0.0, 0.01, 0.5]))
            is_own = mean != median * ratio
            rows.append(MeasuredSize(size, median, error * median, mean, error * mean, is_own))
        found.append(MeasuredStage(f"stage {j}", tuple(rows), ratio, draw(st.floats(0.0, 0.1))))
    return MeasuredTimes(Pipeline.kind, tuple(found))


def trace(sizes: Sequence[int], repetitions: int, times: Sequence[Time], seed: int = 0) -> str:
    """A direct trace of these times, 2 % of noise around them."""
    rng = np.random.default_rng(seed)
    names = ",".join(f"s{j}_us" for j in range(len(times)))
    rows = [f"message_bytes,repetition,{names}"]
    for repetition in range(repetitions):
        for size in sizes:
            noisy = (time(size) * float(np.exp(rng.normal(0.0, 0.02))) for time in times)
            rows.append(f"{size},{repetition}," + ",".join(f"{us:.4f}" for us in noisy))
    return "\n".join(rows) + "\n"


def fitted(text: str) -> TraceFit:
    """The fit of one trace."""
    request = FitRequest(FitOptions(), None)
    return fit_measurements((Measurement(text),), request, sizes_used=lambda _: ()).fit
