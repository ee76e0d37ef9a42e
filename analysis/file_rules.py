"""What a file's own sizes leave of a decision that draws of its lines have made, and what they say.

Source    docs/theory.md, "Uncertain costs", the file's own times. In this order: what the draws set
          is refused where a stage's times are no fragments', where its size was not measured, where
          it is cheap only in bursts, or where the file gains nothing by it; a small gain that the
          file does not bear out is none. Where nothing is set then, or the lines bear on what is
          gained and the file's best size gains more, that size is set, if it gains enough; and else
          what is never slower than the user's setting, and faster in some draws.
"""

from __future__ import annotations

from dataclasses import replace

from analysis.decision import Choices, PricedCut, gain_of, gains_over, quantiles, share_of
from analysis.draw_costs import mean_of
from analysis.file_votes import as_measured
from analysis.measure_next import REPETITIONS
from analysis.measured import Measured
from analysis.repeated_sizes import admits
from domain.default_sizes import ONE_PIECE
from domain.uncertain_answer import (
    SAID_FROM,
    Decision,
    DecisionCode,
    FileVote,
    Measurement,
    MeasurementKind,
    Quantiles,
    Reason,
    Thresholds,
)
from domain.uncertainty import NamedCut

PROPOSED = "proposed"  # the name of a size that the file proposes
_SAME = 1e-9  # latencies that differ by less, relative to them, are equal


def held_to_file(
    decision: Decision,
    choices: Choices,
    advised: PricedCut,
    measured: Measured,
    thresholds: Thresholds,
) -> Decision:
    """Return the decision that the measured sizes leave of one by draws of the lines, by which this
    cut is the advised one.

    Costs that were typed have no sizes: of these what is never slower than the user's setting alone
    is decided anew.
    """
    refused = None
    if decision.code is DecisionCode.SET_IT:
        refused = refused_by_file(decision, choices, advised, measured)
        if refused is None:
            better = _better_by_file(decision, choices, measured, thresholds)
            return better or _borne_out(decision, choices, measured, thresholds)
    if measured.falls_with_size:
        return refused or decision
    proposed = _proposed(decision, choices, measured, thresholds)
    if proposed is not None:
        return replace(proposed, measure=refused.measure if refused else None)
    return refused or _never_slower(decision, choices, measured, thresholds) or decision


def file_vote(measured: Measured, advised: NamedCut, against: NamedCut) -> FileVote | None:
    """Return what the file says of a cut and of what it is compared with; None without its times.

    The lines that it is held against are the estimates, which are of medians.
    """
    if measured.times is None:
        return None
    costs = as_measured(measured.times)
    advised_us = measured.by_file_us(costs.at_most, advised)[:, 0].tolist()
    against_us = advised_us
    off = against_off = measured.off_lines(advised)
    if against != advised:
        against_us = measured.by_file_us(costs.at_least, against)[:, 0].tolist()
        against_off = measured.off_lines(against)
    return FileVote(
        (advised_us[0], advised_us[1]), (against_us[0], against_us[1]), off, against_off
    )


def refused_by_file(
    decision: Decision, choices: Choices, advised: PricedCut, measured: Measured
) -> Decision | None:
    """Return what is to be measured before this cut is set; None where it may be."""
    baseline = choices.baseline
    if measured.falls_with_size:
        both = _both_ways(advised.cut, baseline.cut)
        return _measured_first(decision, Reason.FALLS_WITH_SIZE, both, advised, baseline)
    if not measured.knows(advised.cut):
        return _unmeasured(decision, baseline, advised, measured)
    end = measured.burst_end(advised.cut)
    if end is not None:
        both = _both_ways(advised.cut, _behind(measured, end))
        return _measured_first(decision, Reason.ONLY_IN_BURSTS, both, advised, baseline)
    if _gains_by_file(measured, advised.cut, baseline.cut) <= 0.0:
        both = _both_ways(advised.cut, baseline.cut)
        return _measured_first(decision, Reason.FILE_NOT_FASTER, both, advised, baseline)
    return None


def _unmeasured(
    decision: Decision, baseline: PricedCut, advised: PricedCut, measured: Measured
) -> Decision:
    size = max(measured.sizes_of(advised.cut), key=measured.outside)
    one = _at_stage(measured, size)
    return _measured_first(decision, Reason.NOT_MEASURED, one, advised, baseline)


def _measured_first(
    decision: Decision,
    reason: Reason,
    measurement: Measurement,
    advised: PricedCut,
    baseline: PricedCut,
) -> Decision:
    """The lines are right or they are not: until that is measured one is as likely as the other."""
    gained_us = mean_of(baseline.latency_us - advised.latency_us)
    measure = replace(measurement, saves_us=max(0.0, gained_us) / 2.0)
    return replace(decision, code=DecisionCode.MEASURE_FIRST, reason=reason, measure=measure)


def _at_stage(measured: Measured, size: int) -> Measurement:
    """The first stage that was not measured at sizes as this one."""
    stages = measured.times.stages if measured.times else ()
    names = [
        stage.name
        for stage in stages
        if not stage.sizes[0].message_bytes <= size <= stage.sizes[-1].message_bytes
    ]
    name = next(iter([*names, *(stage.name for stage in measured.model.stages)]))
    return Measurement(MeasurementKind.STAGE, REPETITIONS, 0.0, name, size)


def _both_ways(one: NamedCut, other: NamedCut) -> Measurement:
    return Measurement(MeasurementKind.WHOLE_MESSAGES, REPETITIONS, 0.0, cuts=(one, other))


def _behind(measured: Measured, end: int) -> NamedCut:
    """The least measured size behind an end of a range that the limits admit, else one piece."""
    total = measured.problem.message_bytes
    sizes = measured.times.common_bytes if measured.times else ()
    for size in sizes:
        if end < size < total and admits(measured.problem, size):
            return NamedCut(PROPOSED, size)
    return NamedCut(ONE_PIECE, total)


def _gains_by_file(measured: Measured, cut: NamedCut, other: NamedCut) -> float:
    """The least of what a cut gains by the figures that are asked; 1 without times, and over sizes
    that were not measured: of these the file says nothing.
    """
    if measured.times is None or not measured.knows(other):
        return 1.0
    costs = as_measured(measured.times)
    latency_us = measured.by_file_us(costs.at_most, cut)
    gains = gains_over(latency_us, measured.by_file_us(costs.at_least, other))
    return float(measured.asked(gains).min())


def _proposed(
    decision: Decision, choices: Choices, measured: Measured, thresholds: Thresholds
) -> Decision | None:
    """What is to be set by the file's own times: the measured size that gains most, where that is
    more than 2 %, and than the known misfit, by what is asked, also in 90 % of redrawn files, and
    it gains in 95 %: it is the best of many. Of a setting that was not measured the file says
    nothing.
    """
    sizes = _measured_sizes(choices, measured)
    if measured.times is None or not sizes or not measured.knows(choices.baseline.cut):
        return None
    needed = max(thresholds.file_gain, thresholds.margin)
    costs = as_measured(measured.times)
    other = choices.baseline.cut
    latency_us = measured.sizes_by_file_us(costs.at_most, sizes)[..., 0]
    gains = gains_over(latency_us, measured.by_file_us(costs.at_least, other)[:, 0])
    best = int(gains.sum(axis=1).argmax())
    if measured.asked(gains[best]).min() <= needed:
        return None
    total = measured.problem.message_bytes
    cut = NamedCut(ONE_PIECE if sizes[best] >= total else PROPOSED, sizes[best])
    both = measured.gains_redrawn(cut, other)
    asked = measured.asked(both)
    probability = min(share_of(one > needed) for one in asked)
    if probability < thresholds.probability:
        return None
    if min(share_of(one > 0.0) for one in asked) < thresholds.file_probability:
        return None
    return replace(
        decision,
        code=DecisionCode.SET_IT,
        reason=Reason.FILE_FASTER,
        advised=cut,
        against=other.name,
        probability=probability,
        gain=quantiles(both[int(measured.are_means)]),
        thresholds=replace(thresholds, margin=needed),
    )


def _better_by_file(
    decision: Decision, choices: Choices, measured: Measured, thresholds: Thresholds
) -> Decision | None:
    """What the file proposes in the place of a cut that the lines set, where these are beside it by
    so much that the gain is another one, and by the file the proposed size gains more.
    """
    vote = file_vote(measured, decision.advised, choices.baseline.cut)
    if vote is None or vote.bears_on_gain <= SAID_FROM:
        return None
    proposed = _proposed(decision, choices, measured, thresholds)
    if proposed is None:
        return None
    other = file_vote(measured, proposed.advised, choices.baseline.cut)
    return proposed if other is not None and sum(other.gains) > sum(vote.gains) else None


def _borne_out(
    decision: Decision, choices: Choices, measured: Measured, thresholds: Thresholds
) -> Decision:
    """What is left of a cut that the lines set, whose small gain may be what sizes deviate by.

    Nothing, unless by what is asked 90 % of redrawn files say that it gains, or, where it gains 2 %
    at least, that it loses no more than 5 %; a gain of 10 % is not small.
    """
    gain = decision.gain.p50
    if measured.times is None or gain >= 2.0 * thresholds.max_loss:
        return decision
    needed = 0.0 if gain < thresholds.file_gain else -thresholds.max_loss
    both = measured.gains_redrawn(decision.advised, choices.baseline.cut)
    probability = min(share_of(one > needed) for one in measured.asked(both))
    if probability >= thresholds.probability:
        return decision
    has_current = choices.current is not None
    return replace(
        decision,
        code=DecisionCode.KEEP_YOURS if has_current else DecisionCode.NO_GAIN_PROVABLE,
        reason=Reason.DOES_NOT_MATTER,
        advised=choices.baseline.cut,
        probability=0.0,
        gain=Quantiles(0.0, 0.0, 0.0),
        measure=None,
    )


def _measured_sizes(choices: Choices, measured: Measured) -> list[int]:
    """The sizes that the file may propose, ascending: those that every stage was measured at, and
    the message itself where it was, or was timed whole. None is the setting that it is compared
    with, and none is cheap only in bursts.
    """
    if measured.times is None:
        return []
    total, other = measured.problem.message_bytes, choices.baseline.cut.size_bytes
    sizes = [size for size in measured.times.common_bytes if size <= total]
    if measured.whole_us is not None and sizes[-1:] != [total]:
        sizes.append(total)
    return [
        size
        for size in sizes
        if size != min(other or 0, total)
        and admits(measured.problem, size)
        and measured.burst_end(NamedCut(PROPOSED, size)) is None
    ]


def _never_slower(
    decision: Decision, choices: Choices, measured: Measured, thresholds: Thresholds
) -> Decision | None:
    """What is set in the place of a setting that is kept because nothing is certain: a cut that is
    slower in no draw, and not by the file, and gains more than the margin in some.
    """
    current = choices.current
    undecided = (Reason.UNDECIDED, Reason.DOES_NOT_MATTER)
    is_kept = decision.code is DecisionCode.KEEP_YOURS and decision.reason in undecided
    if current is None or not is_kept or thresholds.margin > Thresholds().margin:
        return None
    for one in (choices.best, choices.cut, choices.whole):
        if one is None or not _dominates(one, current, thresholds):
            continue
        gain = gain_of(one.latency_us, current.latency_us)
        found = replace(decision, advised=one.cut, gain=gain)
        if not measured.knows(one.cut):
            return _unmeasured(found, current, one, measured)
        is_burst = measured.burst_end(one.cut) is not None
        if is_burst or _gains_by_file(measured, one.cut, current.cut) <= 0.0:
            continue
        gains = gains_over(one.latency_us, current.latency_us)
        return replace(
            found,
            code=DecisionCode.SET_IT,
            reason=Reason.NEVER_SLOWER,
            probability=share_of(gains > thresholds.margin),
        )
    return None


def _dominates(one: PricedCut, other: PricedCut, thresholds: Thresholds) -> bool:
    """Whether a cut is slower in no draw, and gains more than the margin in some."""
    gains = gains_over(one.latency_us, other.latency_us)
    return bool(gains.min() >= -_SAME) and quantiles(gains).p95 > thresholds.margin
