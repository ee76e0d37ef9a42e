"""What a verification takes from a gain that the model promises."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.verification import ModelVerdict, Verification, VerifiedSize

TIMES = st.floats(1.0, 1e6)
RATIOS = st.floats(0.5, 3.0)


def verified(*sizes: tuple[float, float, float]) -> Verification:
    """Of sizes by (predicted, low, high), in µs."""
    found = tuple(
        VerifiedSize(at, 1, predicted, (low + high) / 2.0, low, high, 9)
        for at, (predicted, low, high) in enumerate(sizes, start=1)
    )
    return Verification(ModelVerdict.NOT_DECIDED, 9, ("a",), found)


class TestMisfit:
    """A gain in the model, of which transfers left nothing for certain."""

    @given(st.lists(st.tuples(TIMES, RATIOS), min_size=2, max_size=6))
    def test_a_larger_gain_is_one_on_the_machine(self, sizes: list[tuple[float, float]]) -> None:
        """Of any two of the sizes, where the medians are known exactly."""
        times = [(predicted, predicted * ratio) for predicted, ratio in sizes]
        misfit = verified(*((one, took, took) for one, took in times)).misfit
        assert 0.0 <= misfit < 1.0
        for predicted, took in times:
            for other, other_took in times:
                if 1.0 - predicted / other > misfit + 1e-9:
                    assert took < other_took

    @given(st.lists(TIMES, min_size=1, max_size=6), RATIOS)
    def test_a_common_factor_takes_nothing(self, sizes: list[float], ratio: float) -> None:
        """As gains are ratios."""
        misfit = verified(*((one, one * ratio, one * ratio) for one in sizes)).misfit
        assert misfit == pytest.approx(0.0, abs=1e-12)

    def test_intervals_that_meet_contradict_nothing(self) -> None:
        assert verified((10.0, 9.0, 13.0), (20.0, 24.0, 30.0)).misfit == 0.0
        assert verified((10.0, 9.0, 10.0), (20.0, 25.0, 30.0)).misfit == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("took_us", "words"),
    [
        (0.01, "less than 0.01 times"),
        (21.4, "2.14 times"),
        (0.06, "0.01 times"),
        (54321.0, "5,432 times"),
    ],
)
def test_how_many_times_the_model_is_off(took_us: float, words: str) -> None:
    size = VerifiedSize(64, 1, 10.0, took_us, took_us, took_us, 9)
    found = Verification(ModelVerdict.DOES_NOT_HOLD, 64, ("a",), (size,))
    assert f"took {words} what it says" in found.notice().detail
