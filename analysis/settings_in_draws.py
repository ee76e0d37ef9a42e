"""What settings for many messages cost over draws of the costs, and which of them to use.

Source    docs/theory.md, "Uncertain costs". Every setting is priced on the same draws.

from analysis.settings_in_draws import SettingsQuestion, settings_in_draws
errors = KnownErrors(uncertain_pipeline)
found = settings_in_draws(SettingsQuestion(errors, workload, (("setting", cut_of),)))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import accumulate
from math import inf
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from analysis.both_ways import SentBothWays
from analysis.decision import gains_over, quantiles, share_of, thresholds_of
from analysis.draw_costs import cut_us, quantile, regrets_over
from analysis.draws import Draws, draw
from analysis.file_votes import as_measured
from analysis.measured import Measured, measured_of
from analysis.premise import doubt_of
from analysis.repeated_sizes import price_sizes
from domain.errors import Infeasible, StrategyDeclined
from domain.fragment_setting import FragmentSetting
from domain.problem import DEFAULT_FRAGMENT_CAP, FragmentLimits, MessageProblem, problem_of
from domain.regret import Objective
from domain.uncertain_answer import (
    DecisionCode,
    Reason,
    RegretFigures,
    SettingInDraws,
    SettingsInDraws,
)
from domain.uncertainty import KnownErrors, NamedCut, UncertainMachine, seed_of, source_of
from domain.workload import Workload

Floats = NDArray[np.float64]
CutOf: TypeAlias = Callable[[int], NamedCut]

MAX_MESSAGES = 24  # of a workload that are priced: some 6 ms each
GOOD_WITHIN = 0.02


@dataclass(frozen=True, slots=True)
class SettingsQuestion:
    """Costs that are not known exactly, messages, and settings by name, the one in question first.

    A setting gives each message's cut. `limits` are those of the best sizes that it is compared
    with. `max_regret` is a limit on the regret of `objective`, as a share; by the objective `time`
    regrets and gains are of the total time of the messages, else in the mean over them.
    """

    errors: KnownErrors
    workload: Workload
    settings: tuple[tuple[str, CutOf], ...]
    limits: FragmentLimits = field(default_factory=FragmentLimits)
    fragment_cap: int = DEFAULT_FRAGMENT_CAP
    max_regret: float | None = None
    objective: Objective = Objective.MEAN


def repeated_by(setting: FragmentSetting) -> CutOf:
    """Return the cuts of a setting that repeats a size."""
    return lambda message_bytes: NamedCut("size", setting.size_at(message_bytes))


def settings_in_draws(question: SettingsQuestion) -> SettingsInDraws:
    """Price the settings in every draw, and decide.

    Of more than 24 message sizes 24 are priced, at even steps of the workload's shares, or of the
    time that these take with the first setting where time counts. Decided is
    as of one message: `set_it`, the other setting that is expected to gain most, where it gains
    more than the margin in 90 % of the draws; else `keep_yours`, where the regret of the first is
    at most 2 % in 95 %; else `no_gain_provable`. `measure_first` in the place of `set_it` where
    what was measured refuses it, as it would for one message, or the model has a premise: that
    stages overlap is none where it is faster both ways for every message. Raises InvalidInput.
    """
    errors = question.errors
    seed = seed_of(errors.model) if errors.seed is None else errors.seed
    draws = draw(errors.model, errors.draws, seed)
    messages = _messages(question, draws)
    names = [name for name, _ in question.settings]
    regrets = np.zeros((len(names), draws.count))
    gains, worst = np.zeros_like(regrets), np.zeros_like(regrets)
    total_us, total_best_us = np.zeros_like(regrets), np.zeros(draws.count)
    known = list[Floats]()
    for message_bytes, share in messages:
        latency_us, best_us = _priced(question, draws, message_bytes)
        known.append(latency_us)
        of_message = regrets_over(latency_us, best_us)
        regrets += share * of_message
        np.maximum(worst, of_message, out=worst)
        gains += share * gains_over(latency_us, latency_us[0])
        total_us += share * latency_us
        total_best_us += share * best_us
    if question.objective is Objective.TIME:
        regrets = regrets_over(total_us, total_best_us)
        gains = gains_over(total_us, total_us[0])
    thresholds = thresholds_of(errors.misfit)
    other = int(gains.mean(axis=1)[1:].argmax()) + 1 if len(names) > 1 else 0
    probability = float((gains[other] > thresholds.margin).mean())
    code: DecisionCode | None = DecisionCode.NO_GAIN_PROVABLE
    if not other:
        code = None
    elif probability >= thresholds.probability:
        code = DecisionCode.SET_IT
    elif quantile(regrets[0], 0.95) <= thresholds.regret_p95:
        code = DecisionCode.KEEP_YOURS
    found = SettingsInDraws(
        source=source_of(errors.model),
        draws=errors.draws,
        seed=seed,
        messages=len(messages),
        settings=tuple(
            _in_draws(question, *one) for one in zip(names, regrets, worst, strict=True)
        ),
        code=code,
        advised=names[other if code is DecisionCode.SET_IT else 0],
        gain=quantiles(gains[other]),
        probability=probability,
        thresholds=thresholds,
        is_of_time=question.objective is Objective.TIME,
    )
    found = _held_to_file(question, messages, found)
    if found.reason is not Reason.IF_OVERLAPPING:
        return found
    latencies_us = [one[[other, 0]] for one in known]
    return _held_both_ways(question, draws, messages, latencies_us, found)


def _held_both_ways(
    question: SettingsQuestion,
    draws: Draws,
    messages: Sequence[tuple[int, float]],
    latencies_us: Sequence[Floats],
    found: SettingsInDraws,
) -> SettingsInDraws:
    """Return what is set where it is faster for every message, whether stages overlap or work one
    after another, and for all of them by more than the margin both ways; what it gains is the less
    of both. `latencies_us` are those of the advised
    setting and of the first where stages overlap, (2, draws) each.
    """
    cuts, errors = dict(question.settings), question.errors
    first, advised = cuts[question.settings[0][0]], cuts[found.advised]
    sent = [
        SentBothWays.of(draws, size, (advised(size), chain_us[0]), (first(size), chain_us[1]))
        for (size, _), chain_us in zip(messages, latencies_us, strict=True)
    ]
    if not all(one.is_faster(errors.times, found.thresholds) for one in sent):
        return found
    shares = [share for _, share in messages]
    serial_us = np.stack([[one.serial_us, one.other_serial_us] for one in sent])
    if found.is_of_time:
        total_us = np.tensordot(shares, serial_us, axes=1)
        gains = gains_over(total_us[0], total_us[1])
    else:
        gains = np.tensordot(shares, gains_over(serial_us[:, 0], serial_us[:, 1]), axes=1)
    probability = share_of(gains > found.thresholds.margin)
    if probability < found.thresholds.probability:  # of messages, most of which are cut alike
        return found
    one_at_a_time = errors.overlap.several_at_once is False
    return replace(
        found,
        code=DecisionCode.SET_IT if one_at_a_time else found.code,
        reason=Reason.EITHER_WAY if one_at_a_time else Reason.ONE_AT_A_TIME,
        gain=min(found.gain, quantiles(gains), key=lambda one: one.p50),
        probability=min(found.probability, probability),
    )


def _held_to_file(
    question: SettingsQuestion, messages: Sequence[tuple[int, float]], found: SettingsInDraws
) -> SettingsInDraws:
    """Return what the measured sizes and the model's premise leave of what the draws would set."""
    if found.code is not DecisionCode.SET_IT:
        return found
    cuts, errors = dict(question.settings), question.errors
    first, advised = cuts[question.settings[0][0]], cuts[found.advised]
    sent = [
        _Sent(measured_of(_problem(question, size), errors), first(size), advised(size), share)
        for size, share in messages
    ]
    factor, size = max(one.outside for one in sent)
    reason: Reason | None = None
    if sent[0].measured.falls_with_size:
        reason = Reason.FALLS_WITH_SIZE
    elif factor > 1.0:
        reason = Reason.NOT_MEASURED
    elif any(one.measured.burst_end(one.advised) is not None for one in sent):
        reason = Reason.ONLY_IN_BURSTS
    elif _gain_by_file(sent, is_of_time=found.is_of_time) <= 0.0:
        reason = Reason.FILE_NOT_FASTER
    elif errors.model.model.premise:
        reason = Reason.PREMISE
    elif not isinstance(errors.model, UncertainMachine):  # which says itself what overlaps
        reason = doubt_of(errors.overlap, len(errors.model.stages))
    if reason is None:
        return found
    unmeasured = size if reason is Reason.NOT_MEASURED else None
    return replace(
        found, code=DecisionCode.MEASURE_FIRST, reason=reason, unmeasured_bytes=unmeasured
    )


@dataclass(frozen=True, slots=True)
class _Sent:
    """A message as it is sent now and as advised, how often, and what was measured for it."""

    measured: Measured
    first: NamedCut
    advised: NamedCut
    share: float

    @property
    def outside(self) -> tuple[float, int]:
        """The factor by which the advised cut is outside the sizes measured, and that size."""
        if self.measured.knows(self.advised):
            return 1.0, 0
        sizes = self.measured.sizes_of(self.advised)
        return max((self.measured.outside(one), one) for one in sizes)


def _gain_by_file(sent: Sequence[_Sent], *, is_of_time: bool) -> float:
    """The least that is gained by the figures that are asked, in total time or in the mean over the
    messages; 1 where the file does not say what the first setting takes.
    """
    before, after, gains = np.zeros(2), np.zeros(2), np.zeros(2)
    for one in sent:
        if one.measured.times is None or not one.measured.knows(one.first):
            return 1.0
        costs = as_measured(one.measured.times)
        first_us = one.measured.by_file_us(costs.at_least, one.first)[:, 0]
        advised_us = one.measured.by_file_us(costs.at_most, one.advised)[:, 0]
        before += one.share * first_us
        after += one.share * advised_us
        gains += one.share * gains_over(advised_us, first_us)
    found = gains_over(after, before) if is_of_time else gains
    return float(sent[0].measured.asked(found).min())


def _messages(question: SettingsQuestion, draws: Draws) -> list[tuple[int, float]]:
    """Message sizes, and how often each is sent.

    Of many, those at even steps of what counts: each stands for as much of it as any other.
    """
    sizes = question.workload.sizes
    counted = [(one.message_bytes, one.share) for one in sizes if one.share > 0.0]
    if len(counted) <= MAX_MESSAGES:
        return counted
    each = np.ones(len(counted))
    if question.objective is Objective.TIME:
        (_, cut_of), estimate = question.settings[0], draws.part(0, 1)
        taken_us = [cut_us(estimate, size, cut_of(size))[0] for size, _ in counted]
        each = np.array(taken_us) if any(taken_us) else each
    ends = list(accumulate(share * of for (_, share), of in zip(counted, each, strict=True)))
    steps = (np.arange(MAX_MESSAGES) + 0.5) / MAX_MESSAGES * ends[-1]
    places = np.searchsorted(ends, steps)
    return [(counted[at][0], float(ends[-1] / MAX_MESSAGES / each[at])) for at in places]


def _priced(question: SettingsQuestion, draws: Draws, message_bytes: int) -> tuple[Floats, Floats]:
    """The settings' latencies in µs, (settings, draws), and the best's, (draws,).

    The best is that of the repeated sizes that the limits admit, and of the settings themselves.
    """
    cuts: Sequence[NamedCut] = [cut_of(message_bytes) for _, cut_of in question.settings]
    problem = _problem(question, message_bytes)
    measured_us = dict(question.errors.whole_us).get(message_bytes, inf)
    latency_us = np.stack([cut_us(draws, message_bytes, cut) for cut in cuts])
    for at, cut in enumerate(cuts):  # one piece takes no more than it was measured to take
        if cut.is_whole(message_bytes):
            np.minimum(latency_us[at], measured_us, out=latency_us[at])
    best_us = latency_us.min(axis=0)
    with suppress(StrategyDeclined, Infeasible):
        priced = price_sizes(problem, draws).capped(message_bytes, measured_us)
        best_us = np.minimum(best_us, priced.best_us)
    return latency_us, best_us


def _problem(question: SettingsQuestion, message_bytes: int) -> MessageProblem:
    model, cap = question.errors.model.model, question.fragment_cap
    return problem_of(model, message_bytes, question.limits, fragment_cap=cap)


def _in_draws(
    question: SettingsQuestion, name: str, regrets: Floats, worst: Floats
) -> SettingInDraws:
    figures = RegretFigures(float(regrets.mean()), quantile(regrets, 0.95), float(regrets.max()))
    limited = worst if question.objective is Objective.WORST else regrets
    allowed = question.max_regret
    kept = None if allowed is None else float((limited <= allowed).mean())
    return SettingInDraws(name, figures, float((regrets <= GOOD_WITHIN).mean()), kept)
