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

from math import inf

from domain.errors import SolverFailed
from domain.items import Fill, FillRule, ItemCut, ItemProblem, ItemSolution
from solvers.assemble import status_of
from solvers.contract import Deadline, SolveOptions
from solvers.items.bounds import any_byte, label_bounds, lower_bound_us
from solvers.items.caps import best_cap
from solvers.items.labels import search
from solvers.items.moves import improved
from solvers.items.one_wire import is_one_wire, one_wire_cut, unlimited_cut
from solvers.items.two_stage import is_two_stage, two_stage_cut

_DEFAULT = SolveOptions()
_BEAM = 8
_WIDTHS = (64, 256, 1024, 4096)
_WORK = 100_000_000  # a wider search is begun where `_GROWTH` times the work of the last is less
_GROWTH = 16  # of work, where lists are four times as long
_MAX_CELLS = 2**26  # times in all labels: half a gigabyte
_CAPS_SHARE, _BYTES_SHARE = 0.2, 0.3  # of the time that is left
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


def _narrow(problem: ItemProblem, contest: _Contest, deadline: Deadline) -> None:
    """Close the gap from both sides until it is small enough, or the work is done."""
    bounds = label_bounds(problem, contest.known_us)
    contest.prove(lower_bound_us(problem, bounds) + problem.pipeline.delay_us)
    widest = max(1, _MAX_CELLS // (len(problem.sequence) * len(problem.pipeline)))
    work = 0
    for width in (_BEAM, *_WIDTHS):
        if contest.is_proven or width > widest or _GROWTH * work > _WORK:
            return
        found = search(problem, bounds, width=width, target_us=contest.target_us, deadline=deadline)
        if found.cut is not None:
            contest.offer(found.cut)
        contest.prove(found.bound_us + problem.pipeline.delay_us)
        contest.cut_off = found.cut_off
        if found.cut_off:
            return
        if width == _BEAM and not contest.is_proven:
            by_bytes = any_byte(problem, deadline.share(_BYTES_SHARE))
            contest.prove(by_bytes.bound_us + problem.pipeline.delay_us)
            if by_bytes.cut is not None:
                contest.offer(by_bytes.cut)
            contest.offer(improved(problem, contest.cut, deadline.share(_BYTES_SHARE)))
        work = found.work


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
        return self._latency_us <= self._bound_us * (1.0 + self._options.relative_gap)

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
