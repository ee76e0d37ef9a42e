"""What a file's own sizes leave of a decision that draws of its lines have made, and what they say.

Source    docs/theory.md, "Uncertain costs", the file's own times. In this order: what the draws set
          is refused where a stage's times are no fragments', where its size was not measured, where
          it is cheap only in bursts, or where the file gains nothing by it. Where nothing is set
          then, or the lines bear on what is gained and the file's best size gains more, that size
          is set, if it gains enough; and else what is never slower than the user's setting, and
          faster in some draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import hypot

import numpy as np
from numpy.typing import NDArray

from analysis.decision import Choices, PricedCut, gain_of, gains_over, quantiles, share_of
from analysis.draw_costs import cut_us, mean_of
from analysis.draws import Draws, at_estimates
from analysis.file_votes import as_measured, cut_by_file_us, redrawn, sizes_by_file_us
from analysis.held_up import held_up
from analysis.measure_next import REPETITIONS
from analysis.repeated_sizes import admits
from domain.default_sizes import ONE_PIECE
from domain.fit import cut_sizes
from domain.measured_times import MeasuredStage, MeasuredTimes
from domain.pipeline import Stage
from domain.problem import MessageProblem
from domain.uncertain_answer import (
    SAID_FROM,
    Decision,
    DecisionCode,
    FileVote,
    Measurement,
    MeasurementKind,
    Reason,
    Thresholds,
)
from domain.uncertainty import NamedCut, UncertainModel

Floats = NDArray[np.float64]

PROPOSED = "proposed"  # the name of a size that the file proposes
_BURST = 4.0  # times as much a byte is what follows a range that is cheap only in bursts
_FALL, _FALLING = 0.2, 3  # by more than this share, over so many sizes from the least on
_FALL_ERRORS = 2.5  # standard errors, for a fall
_SAME = 1e-9  # latencies that differ by less, relative to them, are equal


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """What was measured of a message's stages, and of the message itself.

    `measured_bytes` are the least and the greatest size that every stage was measured at, None for
    costs that were typed; `whole_us` is what the message in one piece was measured to take. `times`
    are the sizes' own, None where they are not known; `are_means`: means of them are told.
    """

    problem: MessageProblem
    model: UncertainModel
    times: MeasuredTimes | None
    measured_bytes: tuple[int, int] | None
    whole_us: float | None
    are_means: bool = False

    def knows(self, cut: NamedCut) -> bool:
        """Return whether the cut's sizes, the remainder aside, are among those measured.

        So they are where costs were typed, and of a message that was timed whole.
        """
        if self.measured_bytes is None:
            return True
        total = self.problem.message_bytes
        if self.whole_us is not None and cut.is_whole(total):
            return True
        low, high = self.measured_bytes
        return all(low <= size <= high for size in self.sizes_of(cut))

    def sizes_of(self, cut: NamedCut) -> set[int]:
        """Return a cut's sizes in bytes, the remainder aside."""
        if cut.schedule is None:
            return {min(cut.size_bytes or 1, self.problem.message_bytes)}
        return {size for one in cut.schedule.stage_bytes for size in cut_sizes(one)}

    def burst_end(self, cut: NamedCut) -> int | None:
        """Return the end in bytes of a range that holds a size of the cut and is cheap only in
        bursts; None where none does.

        What follows it costs more than four times as much a byte, and the fragments would pass
        faster than that, though the message is longer.
        """
        costs = self.model.model.costs().values()
        stages = [stage for one in costs for stage in ((one,) if isinstance(one, Stage) else one)]
        sizes = self.sizes_of(cut)
        ends = [
            end
            for stage in stages
            for end in _burst_ends(stage, sizes)
            if end < self.problem.message_bytes
        ]
        return min(ends, default=None)

    @property
    def falls_with_size(self) -> bool:
        """Whether a stage's times fall from its least size on: those of whole messages do, cut into
        ever larger fragments, but a larger fragment takes no less time.
        """
        return self.times is not None and any(map(_falls, self.times.stages))

    def by_file_us(self, costs: Draws, cut: NamedCut) -> Floats:
        """Return what a cut takes by these times, in µs: (2, columns), by means with what fragments
        that vary hold each other up; one piece takes no more than it was measured to take.
        """
        total = self.problem.message_bytes
        found = cut_by_file_us(costs, total, cut)
        if cut.is_whole(total):
            return self.capped(found)
        found[1] *= self.held_up(cut)
        return found

    def held_up(self, cut: NamedCut) -> float:
        """Return by which factor fragments that vary hold each other up; 1 without `times`."""
        return 1.0 if self.times is None else held_up(self.times, self.problem.message_bytes, cut)

    def sizes_by_file_us(self, costs: Draws, sizes: Sequence[int]) -> Floats:
        """Return the same of repeated sizes in bytes, ascending: (sizes, 2, columns)."""
        found = sizes_by_file_us(costs, self.problem.message_bytes, sizes)
        if sizes[-1] >= self.problem.message_bytes:
            found[-1] = self.capped(found[-1])
        return found

    def redrawn_us(self, cut: NamedCut) -> Floats:
        """Return the same by medians and by means of redrawn files: (2, files).

        Expects `times`.
        """
        assert self.times is not None
        return self.by_file_us(redrawn(self.times).at_most, cut)

    def gains_redrawn(self, cut: NamedCut, other: NamedCut) -> Floats:
        """Return 1 - T/T_other by medians and by means of redrawn files, (2, files)."""
        assert self.times is not None
        again = redrawn(self.times)
        return gains_over(
            self.by_file_us(again.at_most, cut), self.by_file_us(again.at_least, other)
        )

    def off_lines(self, cut: NamedCut) -> float:
        """Return by which share the message in this cut is above the lines' estimates by the file's
        medians; 0 where the lines take no time, and without `times`.

        Of fragments below the measured sizes all counts that is between at least and at most.
        """
        if self.times is None:
            return 0.0
        costs, total = as_measured(self.times), self.problem.message_bytes
        lines_us = float(cut_us(self.model.derived(_estimates), total, cut)[0])
        if not lines_us > 0.0:
            return 0.0
        most_us = float(cut_by_file_us(costs.at_most, total, cut)[0, 0])
        if lines_us < most_us and self._reaches_below(cut):
            lower_us = float(cut_by_file_us(costs.at_least, total, cut)[0, 0])
            return max(lines_us, lower_us) / lines_us - 1.0
        return most_us / lines_us - 1.0

    def _reaches_below(self, cut: NamedCut) -> bool:
        """Whether a fragment, the remainder too, is smaller than some stage's least size."""
        if self.times is None:
            return False
        minimum = max(stage.sizes[0].message_bytes for stage in self.times.stages)
        if cut.schedule is not None:
            return any(size < minimum for one in cut.schedule.stage_bytes for size in one)
        total = self.problem.message_bytes
        size = min(cut.size_bytes or 1, total)
        return size < minimum or 0 < total % size < minimum

    def capped(self, whole_us: Floats) -> Floats:
        """Return what one piece takes by medians and by means, (2, columns), where that is more
        than it was measured to take: the median was, and the mean is above it as the stages' are.
        """
        if self.whole_us is None:
            return whole_us
        most_us = np.full_like(whole_us, self.whole_us)
        np.divide(whole_us[1] * self.whole_us, whole_us[0], out=most_us[1], where=whole_us[0] > 0.0)
        return np.minimum(whole_us, most_us)


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
        refused = _refused(decision, choices, advised, measured)
        if refused is None:
            return _better_by_file(decision, choices, measured, thresholds) or decision
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


def _falls(stage: MeasuredStage) -> bool:
    first = stage.sizes[0]
    falling = [first]
    for size in stage.sizes[1:]:
        if size.median_us >= falling[-1].median_us:
            break
        falling.append(size)
    last = falling[-1]
    fall_us = first.median_us - last.median_us
    needed_us = max(
        _FALL * first.median_us, _FALL_ERRORS * hypot(first.median_error_us, last.median_error_us)
    )
    return len(falling) >= _FALLING and fall_us > needed_us


def _burst_ends(stage: Stage, sizes: set[int]) -> Iterator[int]:
    for part, following in zip(stage.ranges, stage.ranges[1:], strict=False):
        end, later_us = part.up_to_bytes or 0, following.ns_per_byte / 1000.0
        if part.ns_per_byte * _BURST >= following.ns_per_byte:
            continue
        if any(
            stage.range_at(size) is part and stage.time_us(size) < size * later_us for size in sizes
        ):
            yield end


def _estimates(model: UncertainModel) -> Draws:
    return at_estimates(model.model)


def _refused(
    decision: Decision, choices: Choices, advised: PricedCut, measured: Measured
) -> Decision | None:
    """What is to be measured before this cut is set; None where it may be."""
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
    size = max(measured.sizes_of(advised.cut), key=lambda one: _outside(one, measured))
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


def _outside(size: int, measured: Measured) -> float:
    """By which factor a size is outside those that were measured."""
    low, high = measured.measured_bytes or (size, size)
    return max(size / high, low / size)


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
    """The lesser of what a cut gains by medians and by means; 1 where no times are known."""
    if measured.times is None:
        return 1.0
    costs = as_measured(measured.times)
    latency_us = measured.by_file_us(costs.at_most, cut)
    return float(gains_over(latency_us, measured.by_file_us(costs.at_least, other)).min())


def _proposed(
    decision: Decision, choices: Choices, measured: Measured, thresholds: Thresholds
) -> Decision | None:
    """What is to be set by the file's own times: the measured size that gains most, where that is
    more than 2 %, and than the known misfit, by medians and by means, and in 95 % of redrawn files.
    """
    sizes = _measured_sizes(choices, measured)
    if measured.times is None or not sizes:
        return None
    needed = max(thresholds.file_gain, thresholds.margin)
    costs = as_measured(measured.times)
    other = choices.baseline.cut
    latency_us = measured.sizes_by_file_us(costs.at_most, sizes)[..., 0]
    gains = gains_over(latency_us, measured.by_file_us(costs.at_least, other)[:, 0])
    best = int(gains.sum(axis=1).argmax())
    if gains[best].min() <= needed:
        return None
    total = measured.problem.message_bytes
    cut = NamedCut(ONE_PIECE if sizes[best] >= total else PROPOSED, sizes[best])
    both = measured.gains_redrawn(cut, other)
    probability = min(share_of(one > needed) for one in both)
    if probability < thresholds.file_probability:
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
