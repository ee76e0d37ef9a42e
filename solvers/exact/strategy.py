"""The exact optimum over every admitted number of fragments, and the best whole-byte cut near it.

Source    results sec. 2 (search over k), sec. 4 (rounding); theory sec. 1.
Notation  k fragments; T*(k): optimum in real sizes; V: least whole-byte latency known.
Cost      a few linear programs for the real optimum, one more for each count that could still win
          in whole bytes.
Exact     in real sizes, with proof. In whole bytes the gap that is left is stated: every count with
          T*(k) < V was rounded and tried, but rounding one optimum is not optimising over integers.
Traps     a count whose bound is within the gap asked for of V is not worth a solve.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from domain.errors import StrategyDeclined
from domain.problem import Problem
from domain.solution import Strategy
from solvers.assemble import rank_of
from solvers.contract import Candidate, Deadline, SolveOptions, StrategySpec
from solvers.exact.count_search import CountSearch
from solvers.exact.relaxation import relaxation_of
from solvers.heuristics.constant import repeated_cut
from solvers.heuristics.fixed import best_count, equal_latency_us
from solvers.kernels import active, cut_latency_us
from solvers.line_problem import LineProblem
from solvers.rounding import (
    EXCHANGE_CELLS,
    round_cut,
    rounding_loss_us,
    smallest_ramp,
    steady_ramps,
)

_MET = 1.0 + 1e-12  # a bound is met where only rounding lies between
_EQUAL = 1.0 + 1e-9  # two latencies may differ by so much in rounding alone
_WORTHWHILE = 1e-6  # relative gain below which no further count is tried in whole bytes
_EXCHANGED_COUNTS = 2  # the most promising: units are exchanged between their fragments
_EXCHANGE_S = 2.0  # without C: exchanges are not begun with less time left
_WORTH_LITTLE = 1e-9  # the same, while it takes next to no time
_LITTLE_CELLS = 20_000  # k*n of the counts tried so
_WORTH_SHARPENING = 0.05  # of the gap: a real bound is not asked to be closer than that
_SHARPENING_SOLVES = 4
_FINISHING_CELLS = 100_000  # k*n that are tried beyond a whole-byte cut within the gap asked for


def start(problem: Problem) -> CountSearch:
    """Return a search on this problem, or on its minorants where stages have ranges."""
    return CountSearch.start(problem, relaxation_of(problem))


def without_overheads(problem: Problem) -> tuple[CountSearch, Candidate] | None:
    """Return a cut that a bound in closed form proves, where no stage has an overhead; or None.

    With one stage at an end slower than all others it is the ramp from the smallest size, where
    both ends are the slowest the least size that the count admits, repeated. What fewer fragments
    do as well is not told by programs over real sizes, which always want one more.
    """
    lines = LineProblem.of(problem)
    if lines is None or lines.n < 2 or lines.g.any() or problem.allow_refragmentation:
        return None
    search = CountSearch.start(problem, lines)
    if lines.ends_are_slowest(lines.k_max):
        search.floor_us = lines.whole_byte_bound_us() + problem.pipeline.delay_us
        cut = _fewest_repeated(problem)
    else:
        cut = smallest_ramp(problem)
    if not cut or _kernel_us(problem, cut) > search.bound_us * _MET:
        return None
    return search, Candidate(cut)


def _fewest_repeated(problem: Problem) -> tuple[int, ...]:
    try:
        return repeated_cut(problem, -(-problem.message_bytes // problem.count_range().maximum))
    except StrategyDeclined:
        return ()


def run(problem: Problem, options: SolveOptions, deadline: Deadline) -> Candidate:
    """Return the whole-byte cut of the exact optimum; see `whole_bytes` for how counts are
    tried.
    """
    search = start(problem)
    search.run(near=best_count(problem), relative_gap=options.relative_gap, deadline=deadline)
    found = list(whole_bytes(search, options, deadline, best_us=lambda: float("inf")))

    def rank(one: Candidate) -> tuple[float, int, int]:
        return rank_of(_kernel_us(problem, one.fragment_bytes), one.fragment_bytes)

    return min(found, key=rank)


def whole_bytes(
    search: CountSearch,
    options: SolveOptions,
    deadline: Deadline,
    *,
    best_us: Callable[[], float],
) -> Iterable[Candidate]:
    """Return whole-byte cuts of every count that could still win, the most promising first.

    `best_us` tells the least whole-byte latency known to the caller, asked anew for each count.
    The first candidate always comes, even when time is up; of the others those that are as good as
    what is known by then. Where the best known is within the gap asked for, only as many are tried
    as take little time.
    """
    problem, minimum, cells = search.problem, float("inf"), 0
    pending = [search.best.k]
    tried: set[int] = set()
    while pending:
        k = pending[0]
        tried.add(k)
        cells += k * len(problem.pipeline)
        result = search.solved.get(k) or search.solve(k, deadline)
        needed_s = 0.0 if active.NATIVE is not None else _EXCHANGE_S
        is_exchanged = len(tried) <= _EXCHANGED_COUNTS and deadline.remaining_s > needed_s
        cut = round_cut(
            problem,
            result.x,
            exchange_cells=EXCHANGE_CELLS * is_exchanged,
            enough_us=search.bound_us * (1.0 + options.relative_gap),
        )
        if len(tried) == 1 and cells > _LITTLE_CELLS:
            ramps = [*steady_ramps(problem, result.x), *([cut] if cut else [])]
            cut = min(ramps, key=lambda one: _kernel_us(problem, one), default=None)
            if cut is not None:
                _sharpen(search, _kernel_us(problem, cut), options.relative_gap, deadline)
        late = deadline.passed
        latency = float("inf") if cut is None else _kernel_us(problem, cut)
        known = min(minimum, best_us())
        minimum = min(minimum, latency)
        gain = (
            _WORTH_LITTLE if cells <= _LITTLE_CELLS and active.NATIVE is not None else _WORTHWHILE
        )
        limit = min(known, latency) / (1.0 + min(options.relative_gap, gain))
        pending = _worth_trying(search, tried, limit)
        settled = search.bound_us * (1.0 + options.relative_gap)
        if search.is_proven(options.relative_gap):  # a further solve can win what rounding may lose
            settled = max(settled, search.unrounded_us + rounding_loss_us(problem))
        is_settled = min(known, latency) <= settled
        if is_settled and pending and cells + pending[0] * len(problem.pipeline) > _FINISHING_CELLS:
            pending = []
        if cut is not None and (latency <= known * _EQUAL or len(tried) == 1):
            yield Candidate(cut, tuple(result.x.tolist()), cut_off=late and bool(pending))
        if late:
            return


def _sharpen(search: CountSearch, latency_us: float, gap: float, deadline: Deadline) -> None:
    """Prove a large whole-byte cut where only the real bound keeps it from being within the gap."""
    if latency_us <= 0.0:
        return
    smaller = (1.0 + gap) * search.unrounded_us / latency_us - 1.0
    if _WORTH_SHARPENING * gap < smaller < gap:
        search.sharpen(smaller, deadline, solves=_SHARPENING_SOLVES)


def _worth_trying(search: CountSearch, tried: set[int], limit_us: float) -> list[int]:
    """Untried counts whose bound lies below the limit, the least bound first."""
    if search.bound_us >= limit_us:
        return []
    below = search.lower < limit_us - search.problem.pipeline.delay_us
    below[[k - search.lines.k_min for k in tried]] = False
    counts = below.nonzero()[0] + search.lines.k_min
    found: list[int] = counts[search.lower_at(counts).argsort(kind="stable")].tolist()
    return found


def _kernel_us(problem: Problem, cut: tuple[int, ...]) -> float:
    return cut_latency_us(problem.pipeline, np.array(cut, dtype=float))


SPEC = StrategySpec(
    name=Strategy.EXACT,
    run=run,
    needs="nothing",
    optimal_when="always, in real sizes; whole bytes are rounded from it and the gap is stated",
)


def limited_by(problem: Problem, candidate: Candidate, search: CountSearch | None) -> str | None:
    """Return the cap on the count where the answer stands at it and one more could still win."""
    counts, fragments = problem.count_range(), len(candidate.fragment_bytes)
    if candidate.levels or fragments < counts.maximum:
        return None
    if search is not None and fragments in search.solved:
        return counts.capped_by if search.more_could_win() else None
    here_us, beyond_us = equal_latency_us(problem, np.array([fragments, fragments + 1]))
    return counts.capped_by if beyond_us < here_us else None
