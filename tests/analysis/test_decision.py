"""The fixed rules, on latencies made up for each of them."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.decision import (
    Advice,
    Choices,
    PricedCut,
    advise,
    decide,
    gain_of,
    probability_faster,
    thresholds_of,
)
from analysis.draw_costs import quantile
from domain.uncertain_answer import Decision, DecisionCode, Measurement, MeasurementKind, Reason
from domain.uncertainty import NamedCut

DRAWS = 100
latencies = st.lists(st.floats(0.1, 1e6), min_size=2, max_size=60).map(np.array)


def priced(
    size: int, gain: float = 0.0, *, in_draws: int = DRAWS, else_gain: float = 0.0
) -> PricedCut:
    """A cut that gains this over 100 µs in so many of the draws."""
    gains = np.where(np.arange(DRAWS) < in_draws, gain, else_gain)
    return PricedCut(NamedCut("cut", size), 100.0 * (1.0 - gains))


WHOLE = PricedCut(NamedCut("one piece", 1000), np.full(DRAWS, 100.0))


def decided(
    cut: PricedCut | None,
    *,
    whole: PricedCut | None = WHOLE,
    current: PricedCut | None = None,
    saves_us: float = 0.0,
    misfit: float = 0.0,
    evpi_us: float = 0.0,
) -> Decision:
    """The decision where one piece takes 100 µs, by default, and a measurement saves so much."""
    thresholds = thresholds_of(misfit)
    known = [one for one in (cut, whole) if one is not None]
    best = min(known, key=lambda one: float(one.latency_us.mean()))
    choices = Choices(best, cut, whole, current, known[-1])
    advice = advise(choices, thresholds)
    return decide(
        choices,
        advice,
        best_us=np.minimum.reduce([one.latency_us for one in known]),
        evpi_us=evpi_us,
        measurement=Measurement(MeasurementKind.STAGE, 20, saves_us, "copy", 64),
        thresholds=thresholds,
    )


class TestRules:
    """Each code, and the limits between them."""

    def test_a_gain_in_enough_draws_is_set(self) -> None:
        """More than 1 % in 90 of 100."""
        found = decided(priced(100, 0.05, in_draws=90))
        assert (found.code, found.reason) == (DecisionCode.SET_IT, Reason.FASTER)
        assert (found.advised.size_bytes, found.against) == (100, "one piece")
        assert found.probability == 0.9
        assert found.gain.p50 == pytest.approx(0.05)

    def test_one_draw_less_is_not_enough(self) -> None:
        """The cut is then not certain to be faster: one piece is advised."""
        found = decided(priced(100, 0.05, in_draws=89))
        assert found.code is DecisionCode.NO_GAIN_PROVABLE
        assert found.reason is Reason.CUT_NOT_FASTER
        assert found.advised.name == "one piece"
        assert found.cut is not None
        assert found.cut.size_bytes == 100
        assert found.cut_probability_faster == 0.89

    def test_a_gain_that_may_be_a_great_loss_is_not_set(self) -> None:
        """A loss of 4 % in 7 draws of 100, and one of 6 %."""
        found = decided(priced(500, 0.2, in_draws=93, else_gain=-0.04))
        assert found.code is DecisionCode.SET_IT
        found = decided(priced(500, 0.2, in_draws=93, else_gain=-0.06), saves_us=5.0)
        assert found.code is DecisionCode.MEASURE_FIRST
        assert found.reason is Reason.UNDECIDED

    def test_a_gain_below_the_margin_does_not_matter(self) -> None:
        """Half a per cent for certain."""
        found = decided(priced(100, 0.005))
        assert found.code is DecisionCode.NO_GAIN_PROVABLE
        assert found.reason is Reason.DOES_NOT_MATTER
        assert found.measure is None

    def test_it_is_measured_where_that_pays(self) -> None:
        """A gain that may be below the margin, and a measurement that saves 0.5 %."""
        cut = priced(100, 0.05, in_draws=80, else_gain=0.002)
        found = decided(cut, saves_us=0.6)
        assert (found.code, found.reason) == (DecisionCode.MEASURE_FIRST, Reason.UNDECIDED)
        assert found.measure is not None
        assert decided(cut, saves_us=0.4).code is DecisionCode.NO_GAIN_PROVABLE

    def test_one_piece_is_best(self) -> None:
        """Cutting costs something for certain; and where there is nothing to cut."""
        assert decided(priced(100, -0.2)).reason is Reason.ONE_PIECE_IS_BEST
        assert decided(None).reason is Reason.ONE_PIECE_IS_BEST

    def test_a_known_misfit_raises_the_margin(self) -> None:
        """A gain of 5 % says nothing where the model is wrong by 6."""
        assert decided(priced(100, 0.05), misfit=0.04).code is DecisionCode.SET_IT
        found = decided(priced(100, 0.05), misfit=0.06)
        assert found.code is DecisionCode.NO_GAIN_PROVABLE
        assert found.reason is Reason.WITHIN_MISFIT
        assert found.thresholds.margin == 0.06

    def test_a_good_setting_is_kept(self) -> None:
        """Its 95 % regret is 2 % at most."""
        current = PricedCut(NamedCut("current", 128), np.full(DRAWS, 96.0))
        found = decided(priced(100, 0.05, else_gain=0.0), current=current)
        assert found.code is DecisionCode.SET_IT  # 1.04 % faster, in all draws
        near = PricedCut(NamedCut("current", 128), np.full(DRAWS, 95.5))
        found = decided(priced(100, 0.05), current=near)
        assert (found.code, found.reason) == (DecisionCode.KEEP_YOURS, Reason.NEAR_BEST)
        assert found.against == "current"

    def test_a_cut_that_may_lose_to_one_piece_is_never_set(self) -> None:
        """Though it beats the user's setting; one piece is advised instead."""
        current = PricedCut(NamedCut("current", 8), np.full(DRAWS, 200.0))
        found = decided(priced(100, 0.05, in_draws=80, else_gain=-0.1), current=current)
        assert found.code is DecisionCode.SET_IT
        assert found.advised.name == "one piece"

    @pytest.mark.parametrize(("saves_us", "reason"), [(0.0, "does_not_matter"), (9.0, "undecided")])
    def test_a_cut_in_use_is_not_given_up_for_one_piece_that_may_lose(
        self, saves_us: float, reason: str
    ) -> None:
        """It stays where neither is certain to be faster; one piece in use is told as before."""
        cut = priced(100, 0.2, in_draws=80, else_gain=-0.1)
        for size, in_draws in ((50, 80), (50, 30), (1000, 80)):
            latency = priced(size, 0.15, in_draws=in_draws, else_gain=-0.05).latency_us
            current = PricedCut(NamedCut("current", size), latency)
            found = decided(cut, current=current, saves_us=saves_us)
            if size < 1000:
                assert (found.code, found.reason) == (DecisionCode.KEEP_YOURS, Reason(reason))
                assert found.advised.name == "current"
            else:
                assert found.reason is Reason.CUT_NOT_FASTER
            assert (found.measure is not None) == (saves_us > 0.0)

    def test_nothing_is_measured_first_that_is_never_faster_than_yours(self) -> None:
        """Though knowing more would save something by another size."""
        current = PricedCut(NamedCut("current", 50), np.full(DRAWS, 70.0))
        cut = priced(100, 0.25)
        choices = Choices(cut, cut, WHOLE, current, WHOLE)
        found = decide(
            choices,
            advise(choices, thresholds_of(0.0)),
            best_us=np.full(DRAWS, 60.0),  # of a size that is best in some draws only
            evpi_us=9.0,
            measurement=Measurement(MeasurementKind.STAGE, 20, 9.0, "copy", 64),
            thresholds=thresholds_of(0.0),
        )
        assert (found.code, found.reason) == (DecisionCode.KEEP_YOURS, Reason.UNDECIDED)
        assert found.advised.name == "current"
        assert found.measure is not None

    def test_without_one_piece_the_largest_size_is_compared_with(self) -> None:
        """Limits may forbid it."""
        largest = PricedCut(NamedCut("largest", 500), np.full(DRAWS, 100.0))
        choices = Choices(priced(100, 0.1), priced(100, 0.1), None, None, largest)
        advice = advise(choices, thresholds_of(0.0))
        assert advice == Advice(choices.cut or largest, None)
        assert choices.baseline is largest

    def test_with_set_it_too_something_is_measured_where_that_can_pay(self) -> None:
        """Knowing the costs would save 0.5 % at least."""
        assert decided(priced(100, 0.05), evpi_us=0.6).measure is not None
        assert decided(priced(100, 0.05), evpi_us=0.3).measure is None


class TestFigures:
    """Gains and probabilities over draws."""

    @given(latencies, st.floats(0.2, 1.0))
    def test_a_faster_cut_is_faster_in_no_fewer_draws(
        self, latency_us: np.ndarray, factor: float
    ) -> None:
        """The probability grows where every draw gets faster."""
        other_us = latency_us[::-1]
        before = probability_faster(latency_us, other_us)
        assert probability_faster(latency_us * factor, other_us) >= before
        assert gain_of(latency_us * factor, other_us).p05 >= gain_of(latency_us, other_us).p05

    @given(latencies, st.randoms(use_true_random=False))
    def test_the_order_of_draws_changes_nothing(
        self, latency_us: np.ndarray, random: Random
    ) -> None:
        """They are paired, and that is all."""
        order = list(range(len(latency_us)))
        random.shuffle(order)
        other_us = latency_us[::-1]
        assert gain_of(latency_us, other_us) == gain_of(latency_us[order], other_us[order])
        shuffled = probability_faster(latency_us[order], other_us[order])
        assert probability_faster(latency_us, other_us) == shuffled

    @given(latencies, st.sampled_from([0.0, 0.05, 0.5, 0.95, 1.0]))
    def test_quantiles_are_numpy_s(self, values: np.ndarray, share: float) -> None:
        """And those of infinite values are none in between."""
        expected = np.quantile(values, share)
        assert quantile(values, share) == pytest.approx(expected, rel=1e-12)
        assert quantile(np.full(5, np.inf), share) == np.inf
        assert quantile(np.array([-np.inf, 3.0]), 0.5) == -np.inf

    def test_equal_cuts_gain_nothing(self) -> None:
        """Rounding is no gain, and no time is none either."""
        one = np.array([0.0, 3.0, 5.0])
        assert probability_faster(one * (1.0 - 1e-13), one) == 0.0
        assert gain_of(one, one).p95 == 0.0
