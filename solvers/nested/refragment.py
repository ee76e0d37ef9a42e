"""Each stage's own cut: a descent from cuts of all stages, whether one divides another or not.

Source    our own; the objective is theory sec. 5's true pipelined latency.
Notation  ends (k,) of one stage's fragments, bytes from the message's start; one array a stage.
Cost      at most DESCENT_CUTS evaluated cuts, or RESTARTED_CUTS with restarts.
Exact     one stage's best cut while the others stay, among the places that are looked at; else no.
Traps     not for stages that hand bytes on as they move.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from domain.pipeline import Pipeline, Stage
from domain.problem import Problem
from solvers.contract import Deadline
from solvers.kernels import nested_latency_us, stage_times_us
from solvers.nested.polish import FIRST_SHARE, LAST_SHARE, MAX_BLOCKS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DESCENT_CUTS = 250  # nested cuts that one descent prices
RESTARTED_CUTS = 3000  # and with all its restarts
_PLACES = 64  # where cuts may end: so many are told apart in one choice of a stage's cut
_STAGES = 12  # more leave no cuts for each run of stages
_TARGETS = 24  # latencies that are tried in one choice of a stage's cut
_LESS = 1e-9  # a smaller gain, relative, is rounding

Ends = tuple[Ints, ...]


def refragmented(
    problem: Problem,
    levels: Sequence[Sequence[int]],
    deadline: Deadline,
    *,
    restarts: bool = False,
) -> tuple[tuple[int, ...], ...] | None:
    """Return better cuts than these, one a stage, None where none is found or they are too many.

    Any cuts, whether those of one stage divide those of another or not. Turns of: each stage's best
    cut while the others stay, which is exact among the places that are looked at; one end put in,
    taken out or turned over in a run of stages; one end moved in a run of stages, by steps that
    halve. With `restarts`, a message of few units is begun anew from the best with one stage's cut
    replaced, until that gains nothing. At most DESCENT_CUTS latencies, or RESTARTED_CUTS then. Not
    for stages that hand bytes on as they move.
    """
    stages = problem.pipeline.stages
    hands_on = any(stage.handoff_bytes is not None for stage in stages[:-1])
    blocks = max(map(len, levels))
    if hands_on or blocks > MAX_BLOCKS or not 2 <= len(stages) <= _STAGES:
        return None
    start = tuple(np.cumsum(np.array(cut, dtype=np.int64)) for cut in levels)
    restarts = restarts and problem.message_bytes <= _PLACES * problem.limits.alignment_bytes
    descent = _Descent(problem, start, deadline, RESTARTED_CUTS if restarts else DESCENT_CUTS)
    before_us = descent.latency_us
    descent.settle()
    if restarts:
        descent.restart()
    if descent.latency_us >= before_us * (1.0 - _LESS):
        return None
    return tuple(tuple(_sizes(ends).tolist()) for ends in descent.ends)


class _Descent:
    """The best cuts so far, by where the fragments of each stage end."""

    def __init__(self, problem: Problem, ends: Ends, deadline: Deadline, cuts: int) -> None:
        self._problem, self._deadline, self._left = problem, deadline, cuts
        self.ends = ends
        self.latency_us = self._priced(ends)

    def settle(self) -> None:
        """Until no turn gains anything, or the cuts or the time are used up."""
        while not self._is_over and (self._respond() or self._toggle() or self._move()):
            pass

    def restart(self) -> None:
        """Settle from the best with one stage's cut replaced, until that gains nothing."""
        tried = 0
        while tried < len(starts := list(self._starts())) and not self._is_over:
            best, best_us = self.ends, self.latency_us
            self.ends = starts[tried]
            self.latency_us = self._priced(self.ends)
            self.settle()
            tried += 1
            if self.latency_us >= best_us * (1.0 - _LESS):
                self.ends, self.latency_us = best, best_us
            else:
                tried = 0

    def _starts(self) -> Iterator[Ends]:
        """One stage's cut replaced by the message whole, in halves, and at every place."""
        places = self._places()[1:]
        for cut in (places[-1:], places[len(places) // 2 - 1 :: len(places)], places):
            new = np.union1d(cut, places[-1:])
            if self._problem.admits(tuple(_sizes(new).tolist())):
                for stage in range(len(self.ends)):
                    yield (*self.ends[:stage], new, *self.ends[stage + 1 :])

    @property
    def _is_over(self) -> bool:
        return self._left <= 0 or self._deadline.passed

    def _priced(self, ends: Ends) -> float:
        self._left -= 1
        return nested_latency_us(self._problem.pipeline, list(map(_sizes, ends)))

    def _offer(self, ends: Ends, changed: Sequence[Ints]) -> bool:
        """Keep these where they are admitted and better; `changed` are those that are new."""
        if self._is_over or not all(self._problem.admits(tuple(_sizes(one))) for one in changed):
            return False
        latency_us = self._priced(ends)
        if latency_us >= self.latency_us * (1.0 - _LESS):
            return False
        self.ends, self.latency_us = ends, latency_us
        return True

    def _places(self) -> Ints:
        """Where a cut may end: every unit of a small message, else where one ends now, and between
        these, the widest gaps first.
        """
        total, unit = self._problem.message_bytes, self._problem.limits.alignment_bytes
        if -(-total // unit) <= _PLACES:
            return np.append(np.arange(0, total, unit), total)
        places = np.unique(np.concatenate([[0], *self.ends]))
        gaps = np.diff(places)
        widest = np.argsort(-gaps, kind="stable")[: max(0, _PLACES - len(places))]
        middles = (places[widest] + gaps[widest] // 2) // unit * unit
        return np.unique(np.concatenate([places, middles]))

    def _respond(self) -> bool:
        """Give each stage in turn the best cut that goes with the others'."""
        gained = False
        for stage in range(len(self.ends)):
            if self._is_over:
                break
            cut = self._best_cut(stage)
            if cut is not None:
                ends = (*self.ends[:stage], cut, *self.ends[stage + 1 :])
                gained |= self._offer(ends, [cut])
        return gained

    def _best_cut(self, stage: int) -> Ints | None:
        """The cut of a stage that makes the latency least, None where it is no better.

        A fragment (s, e] starts when what comes before has handed on byte e, and behind its end the
        message takes at least what the first fragment of the next stage that ends beyond s still
        has before it. For a latency that is asked for, the earliest exit at each place follows from
        those before it: the others only lose by a later one.
        """
        places = self._places()
        ready_us, behind_us = self._around(stage, places)
        sizes = places[:, None] - places[None, :]
        admitted = self._admitted(sizes)
        one = Pipeline((self._problem.pipeline.stages[stage],))
        cost_us = np.where(
            admitted,
            stage_times_us(one, np.maximum(sizes, 1).ravel())[:, 0].reshape(sizes.shape),
            np.inf,
        )
        now_us = self.latency_us - self._problem.pipeline.delay_us
        high_us, low_us = now_us * (1.0 - _LESS), 0.0
        best = _within(high_us, ready_us, behind_us, cost_us)
        for _ in range(_TARGETS if best is not None else 0):
            target_us = 0.5 * (low_us + high_us)
            found = _within(target_us, ready_us, behind_us, cost_us)
            if found is None:
                low_us = target_us
            else:
                best, high_us = found, target_us
        return None if best is None else places[best]

    def _admitted(self, sizes: Ints) -> NDArray[np.bool_]:
        problem = self._problem
        total, minimum = problem.message_bytes, problem.limits.min_fragment_bytes
        fits = (sizes >= 1) & (sizes <= problem.largest_fragment_bytes)
        found: NDArray[np.bool_] = fits & ((sizes >= minimum) | (sizes == total))
        return found

    def _around(self, stage: int, places: Ints) -> tuple[Floats, Floats]:
        """When byte `place` has left the stage before, and what lies behind the exit of a fragment
        that starts there; µs, (places,).
        """
        stages = self._problem.pipeline.stages
        exits, ends = np.zeros(1), places[-1:]
        for j in range(stage):
            entry = exits[np.searchsorted(ends, self.ends[j])]
            exits, ends = _left_us(entry, _times(stages[j], self.ends[j])), self.ends[j]
        tails, behind = np.zeros(1), places[-1:]
        for j in reversed(range(stage + 1, len(stages))):
            starts = np.append(0, self.ends[j][:-1])
            entry = tails[np.searchsorted(behind, starts, side="right")]
            tails = _left_us(entry[::-1], _times(stages[j], self.ends[j])[::-1])[::-1]
            behind = self.ends[j]
        last = np.searchsorted(behind, places[:-1], side="right")
        return exits[np.searchsorted(ends, places)], np.append(tails[last], 0.0)

    def _toggle(self) -> bool:
        """Put an end in, take it out, or turn it over, in a run of stages."""
        places = self._places()[1:-1]
        for first, last in _runs_of(len(self.ends)):
            for place in places:
                for change in (np.union1d, np.setdiff1d, np.setxor1d):
                    if self._is_over:
                        return False
                    if self._changes(first, last, partial(change, ar2=[place])):
                        return True
        return False

    def _move(self) -> bool:
        """Move an end in a run of stages in which it is one, by steps that halve."""
        total, unit = self._problem.message_bytes, self._problem.limits.alignment_bytes
        step = max(unit, total // FIRST_SHARE // unit * unit)
        while step >= max(unit, total // LAST_SHARE):
            for first, last in _runs_of(len(self.ends)):
                shared = self.ends[first][:-1]
                for ends in self.ends[first + 1 : last]:
                    shared = np.intersect1d(shared, ends)
                for place in shared:
                    for to in (place - step, place + step):
                        if self._is_over:
                            return False
                        if 0 < to < total and self._changes(
                            first, last, partial(_moved, place=place, to=to)
                        ):
                            return True
            step = step // 2 // unit * unit
        return False

    def _changes(self, first: int, last: int, change: Callable[[Ints], Ints]) -> bool:
        """Change the cuts of stages first to last - 1, and keep that where it is better."""
        ends = _with(self.ends, first, last, change)
        changed = [
            new
            for new, old in zip(ends[first:last], self.ends[first:last], strict=True)
            if len(new) != len(old) or (new != old).any()
        ]
        return bool(changed) and self._offer(ends, changed)


def _within(
    latency_us: float, ready_us: Floats, behind_us: Floats, cost_us: Floats
) -> NDArray[np.intp] | None:
    """The places where a cut of at most this latency ends, None where there is none."""
    count = len(ready_us)
    exits, before = np.full(count, np.inf), np.zeros(count, dtype=np.intp)
    exits[0] = 0.0
    for e in range(1, count):
        left = np.maximum(exits[:e], ready_us[e]) + cost_us[e, :e]
        left[left + behind_us[:e] > latency_us] = np.inf
        before[e] = left.argmin()
        exits[e] = left[before[e]]
    if not np.isfinite(exits[-1]):
        return None
    found = [count - 1]
    while before[found[-1]]:
        found.append(int(before[found[-1]]))
    return np.array(found[::-1])


def _runs_of(stages: int) -> Iterator[tuple[int, int]]:
    """First and one behind the last of every run of stages, single ones first."""
    for length in range(1, stages + 1):
        for first in range(stages - length + 1):
            yield first, first + length


def _with(ends: Ends, first: int, last: int, change: Callable[[Ints], Ints]) -> Ends:
    """The same with some stages' cuts changed; stages that shared a cut still do."""
    known: dict[int, Ints] = {}
    for one in ends[first:last]:
        if id(one) not in known:
            known[id(one)] = change(one)
    return (*ends[:first], *(known[id(one)] for one in ends[first:last]), *ends[last:])


def _moved(ends: Ints, place: int, to: int) -> Ints:
    return np.union1d(np.setdiff1d(ends, [place]), [to])


def _sizes(ends: Ints) -> Ints:
    sizes: Ints = np.diff(ends, prepend=0)
    return sizes


def _times(stage: Stage, ends: Ints) -> Floats:
    times: Floats = stage_times_us(Pipeline((stage,)), _sizes(ends).astype(float))[:, 0]
    return times


def _left_us(entry: Floats, t: Floats) -> Floats:
    """When blocks leave a stage that takes t for each, and has them at `entry`; (blocks,)."""
    done = np.cumsum(t)
    left: Floats = np.maximum.accumulate(entry - (done - t)) + done
    return left
