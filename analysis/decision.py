"""What to do about a message whose costs are not known exactly: fixed rules over paired draws.

Source    docs/theory.md, "Uncertain costs". All latencies are (draws,), in µs, of the same draws;
          a gain is 1 - T/T_other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.draw_costs import mean_of, quantile, quantiles_of, quantiles_of_rows, regrets_over
from domain.uncertain_answer import (
    Decision,
    DecisionCode,
    Measurement,
    Quantiles,
    Reason,
    Thresholds,
)
from domain.uncertainty import NamedCut

Floats = NDArray[np.float64]

_PLAIN = Thresholds()
_SHARES = (0.05, 0.5, 0.95)
_SAME = 1e-9  # latencies that differ by less, relative to them, are equal


@dataclass(frozen=True, slots=True, eq=False)
class PricedCut:
    """A cut and its latencies in µs, (draws,)."""

    cut: NamedCut
    latency_us: Floats


@dataclass(frozen=True, slots=True)
class Choices:
    """What can be advised and what it is compared with.

    `best` is expected to take least of all repeated sizes, one piece among them; `cut` is the best
    into more than one fragment, `whole` one piece, None where the limits admit none; `current` is
    the user's setting; `largest` the largest repeated size that the limits admit.
    """

    best: PricedCut
    cut: PricedCut | None
    whole: PricedCut | None
    current: PricedCut | None
    largest: PricedCut

    @property
    def baseline(self) -> PricedCut:
        """The user's setting; without one, one piece or what comes nearest to it."""
        return self.current or self.whole or self.largest

    @property
    def cuts_today(self) -> bool:
        """Whether the user's setting cuts a message that may be sent in one piece."""
        size = self.current.cut.size_bytes if self.current else None
        return bool(size and self.whole and size < (self.whole.cut.size_bytes or 0))


@dataclass(frozen=True, slots=True)
class Advice:
    """The cut to use, and why no other cut than one piece is, where it is one piece; and in which
    share of the draws the best cut takes less than one piece, where there are both.
    """

    advised: PricedCut
    against_cutting: Reason | None
    cut_probability_faster: float | None = None


def thresholds_of(misfit: float) -> Thresholds:
    """Return the thresholds where the model is known to be wrong by this share of the latency."""
    return Thresholds(margin=max(_PLAIN.margin, misfit))


def advise(choices: Choices, thresholds: Thresholds) -> Advice:
    """Return the best cut where it is certain enough to be faster than one piece, else one piece.

    Certain enough: faster in 90 % of the draws and, where the model is known to be wrong by more
    than 1 %, by more than that in 95 %.
    """
    cut, whole = choices.cut, choices.whole
    if cut is None:
        return Advice(choices.best, Reason.ONE_PIECE_IS_BEST)
    if whole is None:
        return Advice(cut, None)
    probability = probability_faster(cut.latency_us, whole.latency_us)
    if probability < thresholds.probability:
        is_best = choices.best.cut.size_bytes == whole.cut.size_bytes
        reason = Reason.ONE_PIECE_IS_BEST if is_best else Reason.CUT_NOT_FASTER
        return Advice(whole, reason, probability)
    misfit_counts = thresholds.margin > _PLAIN.margin
    if misfit_counts and gain_of(cut.latency_us, whole.latency_us).p05 <= thresholds.margin:
        return Advice(whole, Reason.WITHIN_MISFIT, probability)
    return Advice(cut, None, probability)


def decide(
    choices: Choices,
    advice: Advice,
    *,
    best_us: Floats,
    evpi_us: float,
    measurement: Measurement | None,
    thresholds: Thresholds,
) -> Decision:
    """Return the decision by the fixed rules, in this order.

    `set_it`: the advised cut gains more than the margin over the user's setting, or one piece, in
    90 % of the draws, and loses no more than 5 % in 95 %. `keep_yours`: the user's setting has a
    regret of 2 % at most, over the best of each draw, `best_us`, in 95 %, or is itself a cut where
    none is certain enough to be faster than one piece, or the advised one gains nothing in 95 %.
    `no_gain_provable`: none is, and there is no such setting. `measure_first`: the best measurement
    saves 0.5 % of the latency. Else the choice does not matter: the baseline stays, as the user's
    setting does that is kept. `evpi_us` is what knowing the costs exactly would save.
    """
    advised, baseline = advice.advised, choices.baseline
    gains = gains_over(advised.latency_us, baseline.latency_us)
    probability = share_of(gains > thresholds.margin)
    worth_us = thresholds.worth_measuring * mean_of(advised.latency_us)
    is_worth = measurement is not None and 0.0 < measurement.saves_us >= worth_us
    has_current = choices.current is not None
    if is_certain(gains, thresholds):
        code, reason = DecisionCode.SET_IT, Reason.FASTER
        is_worth = measurement is not None and 0.0 < evpi_us >= worth_us
    elif has_current and is_near(baseline, best_us, thresholds):
        code, reason = DecisionCode.KEEP_YOURS, Reason.NEAR_BEST
    elif advice.against_cutting is not None and not choices.cuts_today:
        code, reason = DecisionCode.NO_GAIN_PROVABLE, advice.against_cutting
    elif advice.against_cutting is not None or (has_current and quantile(gains, 0.95) <= 0.0):
        # One piece is not certain to be faster than today's cut, or what is advised is not faster.
        reason = Reason.UNDECIDED if is_worth else Reason.DOES_NOT_MATTER
        code = DecisionCode.KEEP_YOURS
    elif is_worth:
        code, reason = DecisionCode.MEASURE_FIRST, Reason.UNDECIDED
    elif has_current:
        code, reason = DecisionCode.KEEP_YOURS, Reason.DOES_NOT_MATTER
    else:
        code, reason = DecisionCode.NO_GAIN_PROVABLE, Reason.DOES_NOT_MATTER
    if code is DecisionCode.KEEP_YOURS or reason is Reason.DOES_NOT_MATTER:
        advised = baseline  # what is in use stays
        gains = np.zeros_like(gains)
        probability = 0.0
    cut, whole, gain = choices.cut, choices.whole, quantiles(gains)
    cut_gain = None
    if cut is not None and whole is not None:
        is_known = advised is cut and baseline is whole
        cut_gain = gain if is_known else gain_of(cut.latency_us, whole.latency_us)
    return Decision(
        code=code,
        reason=reason,
        advised=advised.cut,
        against=baseline.cut.name,
        probability=probability,
        gain=gain,
        cut=cut.cut if cut else None,
        cut_probability_faster=advice.cut_probability_faster,
        cut_gain=cut_gain,
        measure=measurement if is_worth else None,
        thresholds=thresholds,
    )


def share_of(flags: NDArray[np.bool_]) -> float:
    """Return the share of the draws in which this is so, (draws,)."""
    return int(np.count_nonzero(flags)) / len(flags)


def probability_faster(latency_us: Floats, other_us: Floats) -> float:
    """Return the share of draws in which the first takes less than the second."""
    return share_of(latency_us < other_us * (1.0 - _SAME))


def gains_over(latency_us: Floats, other_us: Floats) -> Floats:
    """Return 1 - T/T_other, (draws,); 0 where both take no time."""
    if np.minimum.reduce(other_us, axis=None) > 0.0:
        gains: Floats = 1.0 - latency_us / other_us
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            gains = np.where(latency_us == other_us, 0.0, 1.0 - latency_us / other_us)
    return gains


def is_set(cut: PricedCut, baseline: PricedCut, thresholds: Thresholds) -> bool:
    """Return whether what a cut gains over the baseline is certain enough to be set."""
    return is_certain(gains_over(cut.latency_us, baseline.latency_us), thresholds)


def is_certain(gains: Floats, thresholds: Thresholds) -> bool:
    """Return whether gains, (draws,), are more than the margin in 90 % of the draws, and losses no
    more than 5 % in 95 %.
    """
    if share_of(gains > thresholds.margin) < thresholds.probability:
        return False
    return quantile(gains, 0.05) >= -thresholds.max_loss


def gain_of(latency_us: Floats, other_us: Floats) -> Quantiles:
    """Return the quantiles of 1 - T/T_other."""
    return quantiles(gains_over(latency_us, other_us))


def savings_of(latency_us: Floats, others_us: Floats) -> list[tuple[float, Quantiles]]:
    """Return for each other, (others, draws), the share of draws in which the first takes less, and
    the quantiles of 1 - T/T_other.
    """
    faster = (latency_us < others_us * (1.0 - _SAME)).sum(axis=1).tolist()
    saved = quantiles_of_rows(gains_over(latency_us, others_us), _SHARES)
    return [
        (one / len(latency_us), Quantiles(*row)) for one, row in zip(faster, saved, strict=True)
    ]


def quantiles(values: Floats) -> Quantiles:
    """Return the 5 %, 50 % and 95 % quantiles of values over the draws, (draws,)."""
    return Quantiles(*quantiles_of(values, _SHARES))


def is_near(cut: PricedCut, best_us: Floats, thresholds: Thresholds) -> bool:
    """Return whether a cut has a regret of 2 % at most over the best of each draw, in 95 %."""
    return quantile(regrets_over(cut.latency_us, best_us), 0.95) <= thresholds.regret_p95
