"""The curve over fragment sizes: exact constants, never negative, and when it is not believed."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

from analysis.cut_curve import curve_around_best, fit_constants, terms_of
from analysis.size_centres import Centres, TimedRun, centres_of

MESSAGE = 1 << 20
SIZES = [MESSAGE >> octave for octave in range(8)]


def measured(times: dict[int, float]) -> Centres:
    """Eight runs of each size, all alike."""
    return centres_of([TimedRun(n, size, time) for n in range(8) for size, time in times.items()])


def on_curve(size: int, constants: tuple[float, float, float]) -> float:
    """T = c0 + c1 b/B + c2 ceil(B/b)."""
    start, per_byte, per_fragment = constants
    return start + per_byte * size / MESSAGE + per_fragment * ceil(MESSAGE / size)


def test_the_constants_of_a_curve_are_found_and_it_holds() -> None:
    """Around the best of eight sizes."""
    constants = (900.0, 400.0, 6.0)
    curve = curve_around_best(
        measured({size: on_curve(size, constants) for size in SIZES}), MESSAGE
    )
    assert curve.holds
    assert curve.constants_us == pytest.approx(constants, rel=1e-6)
    assert np.abs(curve.off).max() < 1e-9


@given(
    st.lists(st.floats(0.1, 10.0), min_size=4, max_size=8),
    st.lists(st.floats(0.1, 3.0), min_size=8, max_size=8),
)
def test_constants_are_the_least_squares_above_zero(
    times: list[float], weights: list[float]
) -> None:
    """As SciPy's active sets find them."""
    terms = terms_of(SIZES[: len(times)], MESSAGE)
    weight, wanted = np.array(weights[: len(times)]), np.array(times)
    found = fit_constants(terms, wanted[None, :], weight)[0]
    misfit = nnls(terms * weight[:, None], wanted * weight)[1]
    assert (found >= 0.0).all()
    assert np.linalg.norm((terms @ found - wanted) * weight) == pytest.approx(misfit, rel=1e-5)


def test_a_size_off_the_curve_refutes_it() -> None:
    """One size in the middle takes 10 % longer than its neighbours let expect."""
    times = {size: on_curve(size, (900.0, 100.0, 2.0)) for size in SIZES}
    times[SIZES[2]] *= 1.1
    assert not curve_around_best(measured(times), MESSAGE).holds


def test_four_sizes_refute_nothing() -> None:
    """Three constants and four sizes: it is not believed."""
    times = {size: on_curve(size, (900.0, 100.0, 2.0)) for size in SIZES[:4]}
    assert not curve_around_best(measured(times), MESSAGE).holds


def test_what_lies_behind_a_slower_size_is_another_range() -> None:
    """The fast sizes at the other end are not in the stretch, the best one's neighbours are."""
    times = dict(zip(sorted(SIZES), [11.0, 11.0, 30.0, 30.0, 10.5, 10.0, 10.5, 40.0], strict=True))
    curve = curve_around_best(measured(times), MESSAGE)
    assert curve.sizes == tuple(sorted(SIZES)[4:7])
    everywhere = curve_around_best(measured(times), MESSAGE, is_everywhere=True)
    assert everywhere.sizes == tuple(sorted(SIZES))
