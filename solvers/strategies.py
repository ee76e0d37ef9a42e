"""The registry, and the written rules for `auto`, for ties and for what bound an answer gets.

auto    every strategy that can run on the problem proposes a cut; the exact search starts near the
        best of them and its whole-byte cuts compete too. Refragmenting strategies take part only
        where the question allows them.
ties    least latency, then fewer fragments, then the smaller first fragment, then the registry's
        order. Latencies are the evaluator's.
bounds  one cut shared by all stages: the proven optimum over real sizes, as far as the search got.
        A single heuristic gets it too where it is cheap (CERTIFICATE_CELLS), else the closed form;
        over ranges it gets the bound of `auto`.
        Answers that may cut differently from stage to stage get the bound over nested cuts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from domain.errors import Infeasible, InvalidInput, SolverFailed, StrategyDeclined
from domain.nested import NestedSchedule, nested_latency_us
from domain.problem import Problem
from domain.schedule import latency_us
from domain.solution import Notice, Solution, Strategy
from solvers.assemble import Proposal, check_limits, evaluated_us, solution_of
from solvers.bounds import closed_form_us
from solvers.contract import Candidate, Deadline, SolveOptions, StrategySpec
from solvers.exact import strategy as exact
from solvers.exact.convex_problem import ConvexProblem
from solvers.exact.count_search import CountSearch
from solvers.exact.relaxation import relaxation_of
from solvers.heuristics import constant, fixed, ramp, ramp_up_down, repeat
from solvers.kernels import cut_latency_us
from solvers.line_problem import LineProblem
from solvers.nested import hierarchical, hierarchical_ramp, on_line
from solvers.nested.bound import nested_lower_bound_us
from solvers.nested.refragment import refragmented
from solvers.ranges.branch import Branching
from solvers.ranges.cuts import ranged_cuts
from solvers.rounding import steady_start

REGISTRY: tuple[StrategySpec, ...] = (
    constant.SINGLE,
    constant.STATIC,
    repeat.SPEC,
    fixed.SPEC,
    ramp.SPEC,
    ramp_up_down.SPEC,
    exact.SPEC,
    hierarchical.SPEC,
    hierarchical_ramp.SPEC,
    on_line.EAGER,
    on_line.PULSES_OF_A_SIZE,
)
_NARROWER = 0.95  # of the greatest size: what it must fall to for another search
_BOUND_SHARE = 0.2  # of the time for the bound, where ranges leave schedules to be improved
_CUTS_SHARE = 0.3  # of the time left for these schedules; the rest is for branch and bound
CERTIFICATE_CELLS = 20_000  # k*n summed over the solves that certify a single heuristic
_CERTIFICATE_WORK = 500_000  # and of branch and bound over ranges (`Branching.max_work`)
_FEW = 64  # fragments that the evaluator takes as soon as the kernels do
_SMALL_CELLS = 20_000  # k*n of all programs that are solved before a ramp that needs none
_LARGE_CELLS = 100_000  # k*n of a program that a bound in closed form is tried before
_HEURISTICS = (
    Strategy.SINGLE,
    Strategy.REPEAT,
    Strategy.FIXED,
    Strategy.RAMP,
    Strategy.RAMP_UP_DOWN,
)
_EXACT_STARTS = (Strategy.SINGLE, Strategy.REPEAT, Strategy.FIXED)
_ON_LINE = (Strategy.EAGER, Strategy.PULSES)
_REFRAGMENTING = (Strategy.HIERARCHICAL, Strategy.HIERARCHICAL_RAMP, *_ON_LINE)
_NOT_CONVEX = Notice(
    "ranges_not_convex",
    "the cost of a stage jumps at the end of a range, or falls by the byte from one range to the "
    "next; the bound of this model is that of a search over the ranges which ended before it "
    "closed the gap, so part of it may be the bound's: no cut is known to be better than this one",
)


def spec_of(strategy: Strategy) -> StrategySpec:
    """Return the registered strategy of this name. Raises InvalidInput for `auto`, which is a
    rule, and StrategyDeclined for one of machines.
    """
    for spec in REGISTRY:
        if spec.name is strategy:
            return spec
    if strategy is Strategy.RAMP_REPEAT:
        raise StrategyDeclined(
            f"{strategy} is for stages with lanes, delays, processors or windows; of plain stages "
            f"{Strategy.EXACT} finds the best cut",
            field="strategy",
        )
    raise InvalidInput(f"{strategy} is not a registered strategy", field="strategy")


def solve_with(problem: Problem, strategy: Strategy, options: SolveOptions) -> Solution:
    """Solve by one strategy, or by `auto`."""
    problem.count_range()  # raises Infeasible before any work
    deadline = Deadline.after(options.time_limit_s)
    if strategy is Strategy.AUTO:
        return _auto(problem, options, deadline)
    if strategy is Strategy.EXACT:
        return _exact(problem, options, deadline)
    return _heuristic(problem, spec_of(strategy), options, deadline)


# ---- one heuristic ------------------------------------------------------------------------------


def _heuristic(
    problem: Problem, spec: StrategySpec, options: SolveOptions, deadline: Deadline
) -> Solution:
    candidate = spec.run(problem, options, deadline)
    evaluated = _evaluated_us(problem, candidate)
    unrounded_us = _unrounded_us(problem, candidate)
    nested = spec.refragments or problem.allow_refragmentation

    def answer(search: CountSearch | None) -> Solution:
        bound_us = _bound_us(problem, search, deadline, nested=nested, known_us=evaluated)
        return solution_of(
            problem,
            spec.name,
            replace(candidate, cut_off=candidate.cut_off or deadline.passed),
            bound_us=bound_us,
            relative_gap=options.relative_gap,
            evaluated=evaluated,
            unrounded_us=unrounded_us,
            limited_by=exact.limited_by(problem, candidate, search),
        )

    if options.on_incumbent is not None:
        options.on_incumbent(answer(None))
    return answer(None if nested else _certificate(problem, options, deadline))


def _evaluated_us(problem: Problem, candidate: Candidate) -> float:
    """Latency of the candidate on its whole bytes; of cuts that differ, the true pipelined one."""
    if candidate.levels is None:
        return evaluated_us(problem, candidate)
    check_limits(problem, candidate.levels)
    return nested_latency_us(problem.pipeline, NestedSchedule(candidate.levels))


def _priced_us(problem: Problem, candidate: Candidate) -> float:
    """The same, of many fragments by the kernels: most proposals are none that is shown."""
    if candidate.levels is not None or len(candidate.fragment_bytes) <= _FEW:
        return _evaluated_us(problem, candidate)
    check_limits(problem, (candidate.fragment_bytes,))
    return cut_latency_us(problem.pipeline, np.array(candidate.fragment_bytes, dtype=float))


def _no_searches(_problem: Problem) -> dict[float, CountSearch]:
    return {}  # over ranges, by the gap that was asked for


def _certificate(problem: Problem, options: SolveOptions, deadline: Deadline) -> CountSearch:
    """The exact search, within a budget that does not depend on the clock; over ranges that of
    `auto`, once for all strategies of a problem.
    """
    if LineProblem.of(problem) is None:
        known = problem.derived(_no_searches)
        found = known.get(options.relative_gap)
        if found is None:
            quiet = replace(options, on_incumbent=None)
            found = _Contest(problem, quiet, deadline).certificate()
            if not deadline.passed:
                known[options.relative_gap] = found
        return found
    search = exact.start(problem)
    search.run(
        near=fixed.best_count(problem),
        relative_gap=options.relative_gap,
        deadline=deadline,
        max_cells=CERTIFICATE_CELLS,
    )
    return search


def _bound_us(
    problem: Problem,
    search: CountSearch | None,
    deadline: Deadline,
    *,
    nested: bool,
    known_us: float,
) -> float:
    if nested:
        return nested_lower_bound_us(problem, known_us, deadline)
    if search is not None:
        return search.bound_us
    counts = problem.count_range()
    every = np.arange(counts.minimum, counts.maximum + 1, dtype=np.int64)
    return float(closed_form_us(problem, every).min())


def _unrounded_us(problem: Problem, candidate: Candidate) -> float | None:
    """Latency of the real cut behind a candidate, by the evaluator."""
    if candidate.real_sizes is None or candidate.levels is not None:
        return None
    return latency_us(problem.pipeline, candidate.real_sizes)


# ---- the exact strategy, and auto ----------------------------------------------------------------


def _exact(problem: Problem, options: SolveOptions, deadline: Deadline) -> Solution:
    contest = _Contest(problem, options, deadline)
    free = contest.without_overheads()
    if free is not None:
        return free
    lines = LineProblem.of(problem)
    starts: tuple[Strategy, ...] = _EXACT_STARTS  # real schedules, which ranges need
    if lines is not None:  # and equal sizes, where a large count of them is the real optimum
        count = fixed.best_count(problem)
        is_large = count * lines.n > _LARGE_CELLS
        starts = (Strategy.FIXED,) * (is_large and lines.ends_are_slowest(count))
    for name in starts:
        contest.propose(spec_of(name), credited=Strategy.EXACT)
    return contest.finish()


def _auto(problem: Problem, options: SolveOptions, deadline: Deadline) -> Solution:
    contest = _Contest(problem, options, deadline)
    free = contest.without_overheads()
    if free is not None:
        return free
    for name in _HEURISTICS + (_REFRAGMENTING if problem.allow_refragmentation else ()):
        contest.propose(spec_of(name))
    return contest.finish()


class _Contest:
    """Proposals against the exact search; keeps the best and reports each better one."""

    def __init__(self, problem: Problem, options: SolveOptions, deadline: Deadline) -> None:
        self._problem = problem
        self._options = options
        self._deadline = deadline
        self._first_bounds: dict[bool, float] = {}
        self._starts: list[Proposal] = []  # the same for `auto` and `exact`
        self._best: Proposal | None = None
        self._evaluated: tuple[Proposal, float] | None = None
        self._max_work = Branching.max_work
        self._is_cut_short = False  # whether time ended a part of the search
        self._shared: Proposal | None = None  # the best whose cut all stages share

    def propose(self, spec: StrategySpec, *, credited: Strategy | None = None) -> None:
        """Let a strategy take part, where it can run and time is not up."""
        if self._best is not None and self._deadline.passed:
            return
        try:
            candidate = spec.run(self._problem, self._options, self._deadline)
        except (StrategyDeclined, Infeasible):
            return
        # Whether a heuristic is proven is said by the answer's own bound, not by its notice.
        if candidate.notices and spec.name not in _ON_LINE:
            candidate = replace(candidate, notices=())
        proposal = Proposal(credited or spec.name, candidate, _priced_us(self._problem, candidate))
        if spec.name in _EXACT_STARTS:
            self._starts.append(proposal)
        self._offer(proposal, None)

    def without_overheads(self) -> Solution | None:
        """Return the answer where no stage has an overhead and a closed form proves a cut."""
        found = exact.without_overheads(self._problem)
        if found is None:
            return None
        search, candidate = found
        self._enter(candidate, search)
        return self.answer(search)

    def certificate(self) -> CountSearch:
        """Return the search over ranges, with a tenth of its work."""
        self._max_work = _CERTIFICATE_WORK
        for name in _EXACT_STARTS:
            self.propose(spec_of(name))
        relaxed = relaxation_of(self._problem)
        assert isinstance(relaxed, ConvexProblem)
        return self._on_ranges(relaxed)

    def finish(self) -> Solution:
        """Run the exact search, let its whole-byte cuts compete, and answer."""
        relaxed = relaxation_of(self._problem)
        if isinstance(relaxed, ConvexProblem):
            search = self._on_ranges(relaxed)
            self._refragment()
            return self.answer(search)
        search = CountSearch.start(
            self._problem,
            relaxed,
            known_us=_latency_of(self._shared),
            near=self._shared.fragments if self._shared else 1,
        )
        if not self._is_met_in_whole_bytes(search) and not self._is_met_by_a_ramp(search):
            self._search(search, self._shared, self._deadline)
            best_us = self._best_us
            for one in exact.whole_bytes(search, self._options, self._deadline, best_us=best_us):
                self._enter(one, search)
        self._refragment()
        return self.answer(search)

    def _refragment(self) -> None:
        """Give each stage a cut of its own, where the question allows it.

        From the best cut on, and from the best that all stages share, which is where `exact` has
        to begin: the better of two beginnings need not have the better end.
        """
        if self._best is None or not self._problem.allow_refragmentation:
            return
        stages = len(self._problem.pipeline)
        begun = [one.candidate for one in (self._best, self._shared) if one is not None]
        for levels in dict.fromkeys(one.levels or (one.fragment_bytes,) * stages for one in begun):
            better = refragmented(self._problem, levels, self._deadline, restarts=True)
            if better is not None:
                candidate = Candidate(fragment_bytes=min(better, key=len), levels=better)
                latency_us = _evaluated_us(self._problem, candidate)
                self._offer(Proposal(Strategy.HIERARCHICAL_RAMP, candidate, latency_us), None)

    def _is_met_in_whole_bytes(self, search: CountSearch) -> bool:
        """Whether the bound in whole bytes proves what is known, and spares a large program."""
        lines, best = search.lines, self._shared
        if best is None or not isinstance(lines, LineProblem) or lines.n < 2:
            return False
        if best.fragments * lines.n < _LARGE_CELLS:
            return False
        bound_us = lines.whole_byte_bound_us() + self._problem.pipeline.delay_us
        if best.latency_us > bound_us * (1.0 + self._options.relative_gap):
            return False
        search.floor_us = bound_us
        return True

    def _is_met_by_a_ramp(self, search: CountSearch) -> bool:
        """Whether small programs and a ramp that needs none spare the large ones.

        Where they do not, the large ones begin with the count of that ramp.
        """
        gap, count = self._options.relative_gap, self._count_near(self._shared)
        if not isinstance(search.lines, LineProblem) or search.run(
            near=count, relative_gap=gap, deadline=self._deadline, max_cells=_SMALL_CELLS
        ):
            return False
        enough_us = search.bound_us * (1.0 + gap)
        cut = steady_start(self._problem, enough_us=enough_us, deadline=self._deadline)
        if not cut:
            return False
        ramp = self._enter(Candidate(cut), search)
        if ramp.latency_us <= enough_us:
            return True
        if ramp is self._shared and ramp.fragments * search.lines.n <= _LARGE_CELLS:
            search.solve(ramp.fragments, self._deadline)
        return False

    def _on_ranges(self, relaxed: ConvexProblem) -> CountSearch:
        """A search, whole-byte cuts from it, and both again where these narrow the sizes.

        What is tried follows from the starts alone: `auto` must try what `exact` tries, so that it
        is never the worse of the two.
        """
        known, floor_us, delay_us = self._starts, 0.0, self._problem.pipeline.delay_us
        while True:
            best = min(known, key=_rank, default=None)
            best_us = _latency_of(best)
            narrowed = relaxed.narrowed(best_us - delay_us)
            search = CountSearch.start(self._problem, narrowed, known_us=best_us)
            search.floor_us = floor_us
            for_bound = self._deadline.share(_BOUND_SHARE)
            self._search(search, best, for_bound)
            for_cuts = self._deadline.share(_CUTS_SHARE)
            cuts = ranged_cuts(
                search,
                narrowed,
                [proposal.candidate.fragment_bytes for proposal in known],
                relative_gap=self._options.relative_gap,
                deadline=for_cuts,
            )
            known = known + [self._enter(candidate, search) for candidate in cuts]
            self._is_cut_short |= for_bound.passed or for_cuts.passed
            best_us = min((proposal.latency_us for proposal in known), default=best_us)
            search.tighten(best_us, self._deadline)
            relaxed, floor_us = relaxed.narrowed(best_us - delay_us), search.bound_us
            met = best_us <= floor_us * (1.0 + self._options.relative_gap)
            if met or relaxed.M > narrowed.M * _NARROWER or self._deadline.passed:
                break
        if not met and known:
            self._branch(search, relaxed, min(known, key=_rank))
        return search

    def _branch(self, search: CountSearch, relaxed: ConvexProblem, best: Proposal) -> None:
        """Raise the search's bounds by branch and bound on regions, and enter what it finds."""
        branching = Branching(search, relaxed, best.candidate.fragment_bytes)
        branching.max_work = self._max_work
        gap, deadline = self._options.relative_gap, self._deadline
        for candidate in branching.run(relative_gap=gap, deadline=deadline):
            self._enter(candidate, search)

    def _search(self, search: CountSearch, near: Proposal | None, deadline: Deadline) -> None:
        count = self._count_near(near)
        search.run(near=count, relative_gap=self._options.relative_gap, deadline=deadline)
        self._report(search)

    def _count_near(self, near: Proposal | None) -> int:
        return near.fragments if near else fixed.best_count(self._problem)

    def _enter(self, candidate: Candidate, search: CountSearch) -> Proposal:
        latency = _priced_us(self._problem, candidate)
        proposal = Proposal(Strategy.EXACT, candidate, latency)
        self._offer(proposal, search)
        return proposal

    def _best_us(self) -> float:
        return self._best.latency_us if self._best else float("inf")

    def _offer(self, proposal: Proposal, search: CountSearch | None) -> None:
        if proposal.candidate.levels is None and _wins(proposal, self._shared):
            self._shared = proposal
        if _wins(proposal, self._best):
            self._best = proposal
            self._report(search)

    def _report(self, search: CountSearch | None) -> None:
        if self._options.on_incumbent is not None and self._best is not None:
            self._options.on_incumbent(self.answer(search))

    def answer(self, search: CountSearch | None) -> Solution:
        """Return the best so far, with what the search has proven."""
        if self._best is None:
            raise SolverFailed("no strategy found a cut that the limits admit")
        problem, best = self._problem, self._best
        nested = best.candidate.levels is not None or problem.allow_refragmentation
        bound_us = self._bound_us(search, nested=nested)
        is_met = best.latency_us <= bound_us * (1.0 + self._options.relative_gap)
        cut_off = self._deadline.passed or (self._is_cut_short and not is_met)
        candidate = best.candidate
        if candidate.cut_off != cut_off:
            candidate = replace(candidate, cut_off=cut_off)
        return solution_of(
            problem,
            best.strategy,
            candidate,
            bound_us=bound_us,
            relative_gap=self._options.relative_gap,
            evaluated=self._evaluated_us(best),
            unrounded_us=self._unrounded_us(search),
            limited_by=exact.limited_by(problem, best.candidate, search),
            notices=self._notices(search, bound_us) if not nested else (),
        )

    def _evaluated_us(self, best: Proposal) -> float:
        """By the evaluator, once; a strategy's proposal is priced faster until it is an answer."""
        if self._evaluated is None or self._evaluated[0] is not best:
            self._evaluated = best, _evaluated_us(self._problem, best.candidate)
        return self._evaluated[1]

    def _notices(self, search: CountSearch | None, bound_us: float) -> tuple[Notice, ...]:
        """What a gap means that is left on stages with ranges."""
        relaxed = search.lines if search is not None else None
        if self._best is None or not isinstance(relaxed, ConvexProblem) or relaxed.is_tight:
            return ()
        real_us = min(self._best.latency_us, self._unrounded_us(search) or float("inf"))
        left = real_us > bound_us * (1.0 + self._options.relative_gap)
        return (_NOT_CONVEX,) if left else ()

    def _bound_us(self, search: CountSearch | None, *, nested: bool) -> float:
        """The bound of the class; what no search can raise is computed once."""
        if search is not None and not nested:
            return search.bound_us
        if nested not in self._first_bounds:
            known_us = self._best_us()
            self._first_bounds[nested] = _bound_us(
                self._problem, None, self._deadline, nested=nested, known_us=known_us
            )
        return self._first_bounds[nested]

    def _unrounded_us(self, search: CountSearch | None) -> float | None:
        """The real optimum behind a shared cut; a nested cut has none here."""
        if self._best is not None and self._best.candidate.levels is not None:
            return None
        if search is not None and search.solved and isinstance(search.lines, LineProblem):
            return search.unrounded_us
        known = _unrounded_us(self._problem, self._best.candidate) if self._best else None
        if search is None or not search.solved:
            return known
        # On ranges the relaxed sizes count at what they cost, not at what the minorants say.
        relaxed = cut_latency_us(self._problem.pipeline, search.best.x)
        return relaxed if known is None else min(known, relaxed)


def _latency_of(proposal: Proposal | None) -> float:
    return proposal.latency_us if proposal else float("inf")


def _rank(proposal: Proposal) -> tuple[float, int, int]:
    return proposal.rank


def _wins(one: Proposal, other: Proposal | None) -> bool:
    return other is None or one.rank < other.rank


def names() -> Iterator[Strategy]:
    """Yield every strategy name, `auto` first."""
    yield Strategy.AUTO
    yield from (spec.name for spec in REGISTRY)
