"""What was measured of a message's stages, and what its cuts take by that.

Source    docs/theory.md, "Uncertain costs", the file's own times. Cuts are priced by
          `analysis.file_votes`; in redrawn files a size that was not measured deviates from its
          neighbours as measured sizes do from their line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import hypot, log, sqrt

import numpy as np
from numpy.typing import NDArray

from analysis.decision import gains_over
from analysis.draw_costs import cut_us
from analysis.draws import Draws, at_estimates, normals, takes_means, uniforms
from analysis.file_votes import (
    REDRAWS,
    FileCosts,
    as_measured,
    cut_by_file_us,
    redrawn,
    sizes_by_file_us,
)
from analysis.held_up import held_up
from domain.fit import cut_sizes
from domain.measured_times import MeasuredSize, MeasuredStage, MeasuredTimes
from domain.pipeline import Stage
from domain.problem import MessageProblem
from domain.uncertainty import KnownErrors, NamedCut, UncertainModel, UncertainStage

Floats = NDArray[np.float64]

_BURST = 4.0  # times as much a byte is what follows a range that is cheap only in bursts
_GROWTH = 4.0  # times the least size takes the largest one, of fragments
_FALL, _RISE = 0.05, 0.3  # relative to the least size's time
_FALLING = 3  # sizes from the least one on
_FALL_ERRORS = 2.5  # standard errors, for a fall
_SEED = 0
_UNMEASURED = 2**33  # the stream of what the first stage's sizes that were not measured deviate by


@dataclass(frozen=True, eq=False)  # no slots: redrawn times are kept beside the fields
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

    def outside(self, size: int) -> float:
        """Return by which factor a size in bytes is outside those measured; 1 or less within."""
        low, high = self.measured_bytes or (size, size)
        return max(size / high, low / size)

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
        """Whether a stage's times fall from its least size on, and no stage's rise or grow much, as
        those of whole messages do that are cut into ever larger fragments.
        """
        stages = self.times.stages if self.times else ()
        if any(map(_grows, stages)) or any(map(_rises, stages)):
            return False
        return any(map(_falls, stages))

    def asked(self, by_both: Floats) -> Floats:
        """Return those of figures by medians and by means, (2, ...), that must bear a gain out: of
        means alone where they are off the medians by more than 5 %, as a message takes their sum.
        """
        return by_both[1:] if takes_means(self.model) else by_both

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
        return self.by_file_us(self._deviating(self._again.at_most, cut, 0), cut)

    def gains_redrawn(self, cut: NamedCut, other: NamedCut) -> Floats:
        """Return 1 - T/T_other by medians and by means of redrawn files, (2, files).

        Expects `times`.
        """
        advised = self._deviating(self._again.at_most, cut, 0)
        against = self._deviating(self._again.at_least, other, 1)
        return gains_over(self.by_file_us(advised, cut), self.by_file_us(against, other))

    @cached_property
    def _again(self) -> FileCosts:
        assert self.times is not None
        return redrawn(self.times)

    def _deviating(self, costs: Draws, cut: NamedCut, which: int) -> Draws:
        """Redrawn costs with what sizes of a cut that were not measured deviate by in each stage;
        `which` is 0 of the advised cut and 1 of what it is compared with.
        """
        sizes = self.sizes_of(cut)
        parts = [self._deviation(j, sizes) for j in range(costs.stages)]
        if not any(parts):
            return costs
        streams = (_UNMEASURED + 2 * j + which for j in range(costs.stages))
        scores = np.array([normals(uniforms(_SEED, one, REDRAWS, 2))[0] for one in streams])
        factors = np.tile(np.exp(np.array(parts)[:, None] * scores), 2)[:, None, :]
        return replace(
            costs,
            overhead_us=costs.overhead_us * factors,
            ns_per_byte=costs.ns_per_byte * factors,
        )

    def _deviation(self, stage: int, sizes: set[int]) -> float:
        """By how much, relative to them, a stage's times at sizes deviate that were not measured:
        as the stage's measured sizes do from its line, and less the nearer they are to one.
        """
        model, times = self.model.stages[stage], self.times
        if times is None or not isinstance(model, UncertainStage):
            return 0.0
        known = [one.message_bytes for one in times.stages[stage].sizes]
        return model.size_deviation * max(_apart(known, size) for size in sizes)

    def off_lines(self, cut: NamedCut) -> float:
        """Return by which share the message in this cut is above the lines' estimates by the file's
        medians; 0 where the lines take no time, without `times`, and of sizes not measured.

        Of fragments below the measured sizes all counts that is between at least and at most.
        """
        if self.times is None or not self.knows(cut):
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


def measured_of(problem: MessageProblem, errors: KnownErrors) -> Measured:
    """Return what was measured of a message's stages where the errors of their costs are known."""
    known = [
        one.measured_bytes
        for one in errors.model.stages
        if isinstance(one, UncertainStage) and one.measured_bytes
    ]
    between = (
        (max(sizes[0] for sizes in known), min(sizes[-1] for sizes in known)) if known else None
    )
    whole_us = dict(errors.whole_us).get(problem.message_bytes)
    return Measured(problem, errors.model, errors.times, between, whole_us)


def _apart(known: Sequence[int], size: int) -> float:
    """By how much a size deviates, relative to what those known, which ascend, deviate by: as a
    Brownian bridge in the logarithm between the two beside it, and by as much outside all.
    """
    if not known[0] <= size <= known[-1]:
        return 1.0
    right = int(np.searchsorted(known, size))
    if known[right] == size:
        return 0.0
    left = known[right - 1]
    share = log(size / left) / log(known[right] / left)
    return sqrt(2.0 * share * (1.0 - share))


def _falls(stage: MeasuredStage) -> bool:
    """Whether a stage's times fall from its least size to its fastest one, noise aside."""
    best = min(range(len(stage.sizes)), key=lambda at: stage.sizes[at].median_us)
    falling = stage.sizes[: best + 1]
    if len(falling) < _FALLING:
        return False
    if any(_above(later, former) for former, later in pairwise(falling)):
        return False
    fall_us = falling[0].median_us - falling[-1].median_us
    return _above(falling[0], falling[-1]) and fall_us > _FALL * falling[0].median_us


def _rises(stage: MeasuredStage) -> bool:
    """Whether a stage's times rise from its least size on, over three sizes or more."""
    first, *others = stage.sizes
    rising = [first]
    for size in others:
        if size.median_us <= rising[-1].median_us:
            break
        rising.append(size)
    last = rising[-1]
    rise_us = last.median_us - first.median_us
    return len(rising) >= _FALLING and _above(last, first) and rise_us > _RISE * first.median_us


def _above(one: MeasuredSize, other: MeasuredSize) -> bool:
    """Whether a size takes longer than another one, by more than their errors."""
    error_us = hypot(one.median_error_us, other.median_error_us)
    return one.median_us - other.median_us > _FALL_ERRORS * error_us


def _grows(stage: MeasuredStage) -> bool:
    """Whether the largest size takes more than four times the least one: a whole message through n
    stages alike takes at most n times as long in one piece as in the best fragments, and these no
    longer than the least ones.
    """
    return stage.sizes[-1].median_us > _GROWTH * stage.sizes[0].median_us


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
