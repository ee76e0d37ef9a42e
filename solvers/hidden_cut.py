"""The best fragments of a message that is sent while its host calculates, with a proof.

Source    docs/theory.md sec. 19.
Notation  x: a cut, k its fragments; T(x): its latency; w(x): the work of the stages on the host's
          own processor; A: what that processor has to calculate meanwhile. The run time is
          max(A + w(x), T(x)), all in µs. L(k): proven bound on T over the cuts of k fragments.
Cost      a few solves of one count each, as the search for the latency: where A + w rises and T
          falls with k, the least bound lies where the two cross, and halves what is left.
Exact     in real sizes, where every stage is a line: w depends on k alone. The bound is
          min over k of max(A + w(k), L(k)), for every admitted k, and w is bounded by the convex
          minorants where stages have ranges; then, and in whole bytes, the gap is stated.
Traps     the cut of least latency is not the best one: each fragment costs its host overhead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from contract.limits import MAX_CALCULATION_US
from domain.errors import InvalidInput
from domain.hiding import check_number
from domain.problem import FragmentLimits, Problem
from domain.solution import Solution, Status, relative_excess
from solvers.assemble import check_limits, status_of
from solvers.bounds import closed_form_us
from solvers.contract import Deadline
from solvers.exact.count_search import CountSearch
from solvers.exact.relaxation import is_convex_in_count, relaxation_of
from solvers.kernels import Evaluator, evaluator_of
from solvers.rounding import round_cut

Floats = NDArray[np.float64]
S = TypeVar("S", int, float)

_WORTHWHILE = 1e-6  # relative gain below which no further count is tried in whole bytes
_FINISHING_CELLS = 100_000  # k*n that are tried once real or whole sizes are within the gap
_TRAIN_COUNTS = 32  # solved for a train: closed forms exclude fewer counts there
_FIRST_COUNT, _GROWTH = 256, 4  # the first solve's largest count; a later one's over those before


@dataclass(frozen=True, slots=True)
class HostWork:
    """What the host's processors do beside the message's latency. Raises InvalidInput.

    `calculation_us` is A. `processors` has, for each processor that counts, the indices of the
    stages that run on it; the greatest work of them decides. `messages` are sent with the same cut
    each: one after the other, or where `are_train` is set right behind each other.
    """

    calculation_us: float
    processors: tuple[tuple[int, ...], ...] = ()
    messages: int = 1
    are_train: bool = False

    def __post_init__(self) -> None:
        check_number("calculation_us", self.calculation_us, 1e3 * MAX_CALCULATION_US)
        if self.messages < 1:
            raise InvalidInput("expected messages >= 1", field="messages")

    def work_us(self, problem: Problem, sizes: Sequence[float]) -> float:
        """Return w(x) of all messages: the stage times of the busiest processor, µs."""
        stages, alike = problem.pipeline.stages, Counter(sizes)  # most cuts have few sizes
        sums = (
            sum(count * stages[j].time_us(size) for j in on for size, count in alike.items())
            for on in self.processors
        )
        return self.messages * max(sums, default=0.0)

    def sent_us(self, evaluate: Callable[[Sequence[S]], float], sizes: Sequence[S]) -> float:
        """Return T of all messages by this evaluator, µs.

        A fragment's time in a stage does not depend on whose message it is of, so that a train is a
        cut of all its bytes.
        """
        if self.are_train:
            return evaluate(tuple(sizes) * self.messages)
        return self.messages * evaluate(sizes)

    def run_us(self, problem: Problem, sizes: Sequence[float]) -> float:
        """Return max(A + w(x), T(x)) of this cut by the evaluator, µs."""
        sent = self.sent_us(problem.pipeline.latency_us, sizes)
        return max(self.calculation_us + self.work_us(problem, sizes), sent)

    def min_work_us(self, problem: Problem, counts: NDArray[np.int64]) -> Floats:
        """Return a proven lower bound on w over all cuts of each of these counts, µs (Jensen)."""
        low = np.zeros(len(counts))
        minimum, maximum = problem.smallest_fragment_bytes, problem.largest_fragment_bytes
        for on in self.processors:
            sums = np.zeros(len(counts))
            for j in on:
                points = problem.pipeline.stages[j].minorant_points(minimum, maximum)
                at, cost = np.array(points, dtype=float).T
                sums += counts * np.interp(problem.message_bytes / counts, at, cost)
            low = np.maximum(low, sums)
        return self.messages * low

    def min_sent_us(self, problem: Problem, counts: NDArray[np.int64]) -> Floats:
        """Return a proven lower bound on T of a train over all cuts of each of these counts, µs.

        A train of q messages is a cut of q B bytes into q k fragments.
        """
        limits = FragmentLimits(problem.smallest_fragment_bytes, problem.largest_fragment_bytes)
        train = Problem(problem.pipeline, self.messages * problem.message_bytes, limits)
        return closed_form_us(train, self.messages * counts)


@dataclass(frozen=True, slots=True)
class HiddenPoint:
    """One number of fragments: the cut found for it, its latency T and the host's A + w, µs.

    `bound_us` is below max(A + w, T) of every cut of that count.
    """

    fragments: int
    fragment_bytes: tuple[int, ...]
    latency_us: float
    host_us: float
    bound_us: float

    @property
    def run_us(self) -> float:
        """What takes longer."""
        return max(self.latency_us, self.host_us)


@dataclass(frozen=True, slots=True)
class HiddenCut:
    """The best cut found, the proven bound over all cuts, and every count that was tried.

    `latency_us` is of all messages. `run_us` is the evaluator's on whole bytes; `unrounded_us` that
    of the best real sizes, None where these are not better.
    """

    fragment_bytes: tuple[int, ...]
    latency_us: float
    host_us: float
    run_us: float
    lower_bound_us: float
    unrounded_us: float | None
    status: Status
    points: tuple[HiddenPoint, ...]
    cut_off: bool = False

    @property
    def relative_gap(self) -> float:
        """(run time - bound) / bound."""
        return relative_excess(self.run_us, self.lower_bound_us, self.lower_bound_us)


@dataclass(frozen=True, slots=True)
class _Timed:
    """A whole-byte cut with its latency T of all messages and the host's A + w, µs."""

    fragment_bytes: tuple[int, ...]
    latency_us: float
    host_us: float

    @property
    def run_us(self) -> float:
        """What takes longer."""
        return max(self.latency_us, self.host_us)


@dataclass(slots=True)
class _Search:
    """The state of one search: bounds by count, and the whole-byte cut of each count tried."""

    problem: Problem
    host: HostWork
    counts: CountSearch
    evaluate: Evaluator
    floor: Floats  # of all counts: A + least w(k), and of T what closed forms prove
    floor_us: float  # proven of T over all cuts from elsewhere
    found: dict[int, _Timed] = field(default_factory=dict)  # by count
    unrounded_us: float = np.inf

    def bounds(self) -> Floats:
        """Proven bounds on the run time of every admitted count."""
        sent = np.maximum(self.counts.lower + self.problem.pipeline.delay_us, self.floor_us)
        in_turn = 1 if self.host.are_train else self.host.messages
        low: Floats = np.maximum(self.floor, in_turn * sent)
        return low

    def take(self, cut: tuple[int, ...]) -> None:
        """Keep a whole-byte cut where it is the best of its count."""
        check_limits(self.problem, (cut,))
        host_us = self.host.calculation_us + self.host.work_us(self.problem, cut)
        timed = _Timed(cut, self.host.sent_us(self.evaluate, cut), host_us)
        known = self.found.get(len(cut))
        if known is None or timed.run_us < known.run_us:
            self.found[len(cut)] = timed

    def best(self) -> _Timed:
        """The best whole-byte cut; the fewest fragments of equals."""
        return min(self.found.values(), key=lambda found: (found.run_us, len(found.fragment_bytes)))

    def solve(self, k: int, deadline: Deadline) -> None:
        """Solve one count, which raises the bounds of others, and round its sizes."""
        result = self.counts.solved.get(k) or self.counts.solve(k, deadline)
        sizes = result.x.tolist()
        if is_convex_in_count(self.counts.lines) and not self.host.are_train:
            self.unrounded_us = min(self.unrounded_us, self.host.run_us(self.problem, sizes))
        candidates = [result.x]
        if self.host.are_train:  # where many messages follow, none of them is first or last
            candidates.append(np.full(k, self.problem.message_bytes / k))
        for sizes in candidates:
            cut = round_cut(self.problem, sizes)
            if cut is not None:
                self.take(cut)


def hidden_cut(
    problem: Problem,
    host: HostWork,
    known: Solution,
    *,
    relative_gap: float,
    deadline: Deadline,
    shown: Sequence[int] = (),
    on_first: Callable[[HiddenCut], None] = lambda cut: None,
) -> HiddenCut:
    """Return the best fragments found for a message that is hidden behind a calculation.

    `known` is an answer to the same problem: its cut is a candidate, and its bound holds. The
    counts `shown` are solved besides, as far as the time goes. `on_first` is given what is known
    before any count is solved: that cut, and the bounds of the closed forms. Raises InvalidInput
    for stages that there are not, Infeasible where no cut satisfies the limits.
    """
    if any(not 0 <= j < len(problem.pipeline) for on in host.processors for j in on):
        raise InvalidInput("expected indices of stages", field="host_stages")
    counts = CountSearch.start(problem, relaxation_of(problem))
    admitted = counts.lines.k_min + np.arange(len(counts.lower), dtype=np.int64)
    floor = host.calculation_us + host.min_work_us(problem, admitted)
    if host.are_train:
        floor = np.maximum(floor, host.min_sent_us(problem, admitted))
    evaluate = evaluator_of(problem.pipeline)
    search = _Search(problem, host, counts, evaluate, floor, known.lower_bound_us)
    search.take(known.schedule.fragment_bytes)
    if not deadline.passed:
        on_first(_concluded(search, relative_gap, cut_off=True))
    cut_off = _search(search, relative_gap, deadline)
    for k in shown:
        if deadline.passed or not counts.lines.k_min <= k < counts.lines.k_min + len(admitted):
            continue
        search.solve(k, deadline)
    return _concluded(search, relative_gap, cut_off=cut_off)


def _search(search: _Search, relative_gap: float, deadline: Deadline) -> bool:
    """Solve counts that could still win, the least bound first; return whether time ended it."""
    first, cells = search.counts.lines.k_min, 0
    while True:
        bounds, best_us = search.bounds(), search.best().run_us
        reached_us = min(best_us, search.unrounded_us)
        is_settled = reached_us <= float(bounds.min()) * (1.0 + relative_gap)
        below = np.flatnonzero(bounds < best_us / (1.0 + min(relative_gap, _WORTHWHILE)))
        waiting = below[~np.isin(below + first, list(search.counts.solved))]
        if not len(waiting):
            return False
        if deadline.passed:
            return not is_settled
        if search.host.are_train and len(search.counts.solved) >= _TRAIN_COUNTS:
            return False
        largest = max(_FIRST_COUNT, _GROWTH * max(search.counts.solved, default=0))
        near = waiting[waiting + first <= largest]
        pool = near if len(near) else waiting[:1]
        k = int(pool[int(np.argmin(bounds[pool]))]) + first
        cells += k * len(search.problem.pipeline)
        if is_settled and cells > _FINISHING_CELLS:
            return False
        search.solve(k, deadline)


def _concluded(search: _Search, relative_gap: float, *, cut_off: bool) -> HiddenCut:
    bounds, best = search.bounds(), search.best()
    run_us = best.run_us
    bound_us = min(float(bounds.min()), run_us)
    unrounded_us = search.unrounded_us if search.unrounded_us <= run_us else None
    first = search.counts.lines.k_min
    points = tuple(
        HiddenPoint(
            k,
            timed.fragment_bytes,
            timed.latency_us,
            timed.host_us,
            min(float(bounds[k - first]), timed.run_us),
        )
        for k, timed in sorted(search.found.items())
    )
    return HiddenCut(
        fragment_bytes=best.fragment_bytes,
        latency_us=best.latency_us,
        host_us=best.host_us,
        run_us=run_us,
        lower_bound_us=bound_us,
        unrounded_us=unrounded_us,
        status=status_of(
            run_us, unrounded_us, bound_us, relative_gap=relative_gap, cut_off=cut_off
        ),
        points=points,
        cut_off=cut_off,
    )
