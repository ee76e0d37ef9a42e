"""The best cut of items through a pipeline, with a proof of how good it is.

Source    docs/theory.md, "Items".
Notation  m items, n stages.
Cost      one stage O(m) a range; several some tenths of a second for 1,000 items, by widths that
          grow while the work of the last one leaves room.
Exact     one stage that takes no less for an item more; two of one line without ready times; and
          where no label was dropped.
Traps     latencies of kernels are without the pipeline's delay; the evaluator's are shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from domain.errors import SolverFailed
from domain.items import Fill, FillRule, ItemCut, ItemProblem, ItemSolution
from solvers.assemble import status_of
from solvers.contract import Deadline, SolveOptions
from solvers.items.arrays import arrays_of
from solvers.items.bounds import (
    AnyByte,
    any_byte,
    any_byte_in_windows,
    label_bounds,
    lower_bound_us,
)
from solvers.items.caps import best_cap
from solvers.items.labels import search
from solvers.items.moves import improved
from solvers.items.one_wire import is_one_wire, one_wire_cut, unlimited_cut
from solvers.items.slots import SlotRange, all_slots
from solvers.items.two_stage import is_two_stage, two_stage_cut
from solvers.kernels.items import LabelBounds

_DEFAULT = SolveOptions()
_BEAM = 8
_SEARCHES = (_BEAM, 64, 256, 1024, 4096)  # widths
_WORK = 100_000_000  # a wider search is begun where `_GROWTH` times the work of the last is less
_GROWTH = 16  # of work, where lists are four times as long
_MAX_CELLS = 2**26  # times in all labels: half a gigabyte
_CAPS_SHARE, _BYTES_SHARE = 0.2, 0.3  # of the time that is left
_BYTES_GAP = 5e-3  # what cuts at any byte in windows mostly leave: they close no smaller one
_BOUND_TOLERANCE = 1e-9  # how far a bound may exceed a latency before it is a defect, relative


def solve_items(problem: ItemProblem, options: SolveOptions = _DEFAULT) -> ItemSolution:
    """Return the best cut that is found within the time limit, and what is proven of it.

    `relative_gap` is the gap at which it counts as optimal. Raises Infeasible where no cut is
    admitted.
    """
    problem.check_feasible()
    contest = _Contest(problem, options)
    deadline = Deadline.after(options.time_limit_s)
    if is_one_wire(problem):
        cut = one_wire_cut(problem)
        if cut is not None:
            return contest.exact(cut)
        contest.prove(problem.latency_us(unlimited_cut(problem)))
    contest.offer(_longest_fragments(problem))
    for rule in Fill:
        choice = best_cap(problem, FillRule(rule), deadline.share(_CAPS_SHARE))
        if choice is not None:
            contest.offer(choice.cut)
    if is_two_stage(problem):
        cut = two_stage_cut(problem, contest.known_us)
        if cut is not None:
            return contest.exact(cut)
    _narrow(problem, contest, deadline)
    return contest.solution()


def _longest_fragments(problem: ItemProblem) -> ItemCut:
    """The fewest fragments that the limits on each admit."""
    cut, last = list[int](), 0
    while last < len(problem.sequence):
        last = problem.longest_from(last)
        cut.append(last)
    return tuple(cut)


@dataclass(slots=True)
class _Part:
    """Cuts of one range of sizes, what follows labels of them, what no one is below (µs, without
    the delay), and how far they were looked through.
    """

    slots: SlotRange
    bounds: LabelBounds
    bound_us: float
    searched: int = 0
    work: int = 0


def _narrow(problem: ItemProblem, contest: _Contest, deadline: Deadline) -> None:
    """Close the gap from both sides until it is small enough, or the work is done: the range of the
    lowest bound is split, or looked through once more.
    """
    delay_us, closed_us, work = problem.pipeline.delay_us, inf, 0
    open_parts, left = [_part(all_slots(problem), contest)], list[_Part]()
    while True:
        lowest_us = min((part.bound_us for part in (*open_parts, *left)), default=inf)
        contest.prove(min(lowest_us, closed_us) + delay_us)
        if contest.is_proven or contest.cut_off or not open_parts:
            return
        part = min(open_parts, key=lambda one: one.bound_us)
        open_parts.remove(part)
        if contest.suffices(part.bound_us + delay_us):
            closed_us = min(closed_us, part.bound_us)
        elif not part.slots.is_single:
            open_parts += [_part(each, contest, part.bound_us) for each in part.slots.parts()]
            contest.cut_off = deadline.passed
        elif _may_go_on(part, work - part.work):
            work -= part.work
            _look_through(part, contest, deadline)
            work += part.work
            open_parts.append(part)
        else:
            left.append(part)


def _part(slots: SlotRange, contest: _Contest, bound_us: float = 0.0) -> _Part:
    bounds = label_bounds(slots.problem, contest.known_us)
    return _Part(slots, bounds, max(bound_us, lower_bound_us(slots.problem, bounds)))


def _may_go_on(part: _Part, work: int) -> bool:
    """Whether a wider search fits the memory, and beside the work on other parts, the time."""
    if part.searched == len(_SEARCHES):
        return False
    arrays = arrays_of(part.slots.problem)
    widest = max(1, _MAX_CELLS // (arrays.items * arrays.label_times))
    return _SEARCHES[part.searched] <= widest and work + _GROWTH * part.work <= _WORK


def _look_through(part: _Part, contest: _Contest, deadline: Deadline) -> None:
    """Search a part by labels with the next width, and at first by cuts at any byte."""
    problem, delay_us = part.slots.problem, part.slots.problem.pipeline.delay_us
    width = _SEARCHES[part.searched]
    target_us = contest.target_us
    found = search(problem, part.bounds, width=width, target_us=target_us, deadline=deadline)
    if found.cut is not None:
        contest.offer(found.cut)
    part.bound_us = max(part.bound_us, found.bound_us)
    part.searched, part.work = part.searched + 1, found.work
    contest.cut_off = found.cut_off
    if found.cut_off or contest.suffices(part.bound_us + delay_us):
        return
    if width == _BEAM:
        _offer_any_byte(part, contest, any_byte(problem, deadline.share(_BYTES_SHARE)))
        contest.offer(improved(part.slots.whole, contest.cut, deadline.share(_BYTES_SHARE)))
    elif width == _SEARCHES[1] and problem.windows and contest.gap(part.bound_us) > _BYTES_GAP:
        share = deadline.share(_BYTES_SHARE)
        _offer_any_byte(part, contest, any_byte_in_windows(problem, share))


def _offer_any_byte(part: _Part, contest: _Contest, found: AnyByte) -> None:
    part.bound_us = max(part.bound_us, found.bound_us)
    if found.cut is not None:
        contest.offer(found.cut)


class _Contest:
    """The best cut so far, and the greatest bound."""

    def __init__(self, problem: ItemProblem, options: SolveOptions) -> None:
        self._problem, self._options = problem, options
        self.cut: ItemCut = ()
        self._latency_us, self._bound_us = inf, 0.0
        self.cut_off = False

    def offer(self, cut: ItemCut) -> None:
        """Let a cut take part; of equals the first stays. Raises SolverFailed."""
        if not self._problem.admits(cut):
            raise SolverFailed("a strategy returned a cut that breaks the limits")
        latency_us = self._problem.latency_us(cut)
        if latency_us < self._latency_us:
            self.cut, self._latency_us = cut, latency_us

    def prove(self, bound_us: float) -> None:
        """Raise the bound over every admitted cut; µs, delay included."""
        self._bound_us = max(self._bound_us, bound_us)

    def exact(self, cut: ItemCut) -> ItemSolution:
        """The answer, of which an exact method found the cut."""
        self.offer(cut)
        self.prove(self._latency_us)
        return self.solution()

    @property
    def known_us(self) -> float:
        """The best latency, without the delay."""
        return self._latency_us - self._problem.pipeline.delay_us

    @property
    def target_us(self) -> float:
        """What a cut has to be below, without the delay, that the gap asked for leaves open."""
        return self.known_us / (1.0 + 0.5 * self._options.relative_gap)

    @property
    def is_proven(self) -> bool:
        """Whether the gap is what was asked for."""
        return self.suffices(self._bound_us)

    def suffices(self, bound_us: float) -> bool:
        """Whether the gap to such a bound, in µs with the delay, is what was asked for."""
        return self._latency_us <= bound_us * (1.0 + self._options.relative_gap)

    def gap(self, bound_us: float) -> float:
        """How far the best latency is above this bound, µs without the delay, as a share of it."""
        return self.known_us / bound_us - 1.0 if bound_us > 0.0 else inf

    def solution(self) -> ItemSolution:
        """The answer. Raises SolverFailed where a bound lies above a real cut."""
        if self._bound_us > self._latency_us * (1.0 + _BOUND_TOLERANCE):
            raise SolverFailed("a lower bound lies above a real cut")
        bound_us = min(self._bound_us, self._latency_us)
        cut_off = self.cut_off and not self.is_proven
        status = status_of(
            self._latency_us,
            None,
            bound_us,
            relative_gap=self._options.relative_gap,
            cut_off=cut_off,
        )
        return ItemSolution(
            problem=self._problem,
            cut=self.cut,
            latency_us=self._latency_us,
            lower_bound_us=bound_us,
            status=status,
            notices=self._problem.notices,
            cut_off=cut_off,
        )
