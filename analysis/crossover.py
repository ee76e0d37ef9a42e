"""Crossovers: the sizes at which one of two paths of a message overtakes the other.

Source    own. The two paths are an eager and a rendezvous protocol, one upload and one in parts:
          whatever takes a message, priced as one piece by its own costs.
Notation  a(x), b(x): what a message of x bytes takes on either path, in µs; a run: neighbouring
          sizes with the same faster path.
Exact     both are lines between the ends of their ranges, so that a path that is faster at both
          ends of such a piece is faster throughout, and where they differ the change is found by
          bisection: every latency is the evaluator's, on whole bytes.
          At sizes that both files measured their times decide, where they differ by more than
          their errors: between two of these that agree no line finds a change, and between two that
          differ there is one.
          The interval of a crossover is that of the sizes around it at which fewer than 97.5 % of
          the draws of both fits agree on the faster path.
Traps     the paths are drawn independently of each other: what two files have in common, a clock or
          a machine, is no part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, partial
from itertools import pairwise
from math import hypot, inf

import numpy as np

from analysis.draw_costs import Floats, cut_us, quantiles_of
from analysis.draws import Draws, at_estimates, draw
from contract.limits import MAX_MESSAGE_BYTES
from domain.aggregate import Aggregate
from domain.errors import InconsistentInput
from domain.model import CostModel
from domain.profile import ProfileRevision
from domain.solution import Notice
from domain.uncertainty import KnownErrors, NamedCut, seed_of
from domain.units import format_bytes

_EQUAL = 1e-9  # relative difference of two times that is rounding alone
_AGREE = 0.975  # of the draws: both ends of an interval are then those of one of 95 %
_IN_95_PERCENT = 1.959963984540054  # standard errors on either side
_A_OCTAVE = 8  # sizes at which draws are asked, between powers of two


class Faster(StrEnum):
    """Which path takes less; neither where they differ by rounding alone."""

    PATH_A = "a"
    PATH_B = "b"
    NEITHER = "neither"


class Basis(StrEnum):
    """What a time or a place rests on: times of both files, or costs."""

    MEASURED = "measured"
    MODEL = "model"


class Verdict(StrEnum):
    """one, several or no crossover; or the errors of the costs tell at no size which is faster."""

    ONE = "one"
    SEVERAL = "several"
    NONE = "none"
    NOT_PROVABLE = "not_provable"


@dataclass(frozen=True, slots=True)
class TimedSize:
    """A message that was timed: its size in bytes, the median of its times and their error, µs."""

    message_bytes: int
    measured_us: float
    error_us: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """One way to send a message: its costs, and what is known of them.

    `errors` None: the costs are taken as exact. `timed` are messages that were timed, ascending;
    `measured_bytes` the least and the greatest size that the costs were measured at.
    """

    name: str
    model: CostModel
    errors: KnownErrors | None = None
    timed: tuple[TimedSize, ...] = ()
    measured_bytes: tuple[int, int] | None = None
    profile: ProfileRevision | None = None

    def time_us(self, message_bytes: int) -> float:
        """Return what a message of this size takes, in one piece, µs."""
        return self.model.latency_us((message_bytes,))


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossoverQuestion:
    """Two paths and the messages in question. `current_bytes` is from which size on today's setting
    has messages take path B; `said` is what is known of the costs. Raises InvalidInput.
    """

    a: Path
    b: Path
    min_message_bytes: int
    max_message_bytes: int
    current_bytes: int | None = None
    said: tuple[Notice, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.min_message_bytes <= self.max_message_bytes <= MAX_MESSAGE_BYTES:
            raise InconsistentInput(
                "expected min_message_bytes <= max_message_bytes", field="min_message_bytes"
            )

    @property
    def measured_bytes(self) -> tuple[int, int] | None:
        """The sizes that both paths were measured between; None where one was not measured."""
        both = [one.measured_bytes for one in (self.a, self.b)]
        known = [one for one in both if one is not None]
        if len(known) < len(both):
            return None
        return max(low for low, _ in known), min(high for _, high in known)


@dataclass(frozen=True, slots=True)
class Run:
    """Sizes from the first to the last, in bytes, at which one path is the faster one.

    `is_sure`: at one of them at least both files' times, or the draws, agree on it; None where no
    errors are known and nothing was measured.
    """

    from_bytes: int
    up_to_bytes: int
    faster: Faster
    is_sure: bool | None = None


@dataclass(frozen=True, slots=True)
class Crossover:
    """The first size at which `after` is the faster path, and what both take there, in µs.

    `between_bytes` are the sizes between which it lies with 95 % of certainty, None where nothing
    is known of that, and an end None where no size in question is certain on that side.
    """

    at_bytes: int
    before: Faster
    after: Faster
    a_us: float
    b_us: float
    basis: Basis
    between_bytes: tuple[int | None, int | None] | None = None


@dataclass(frozen=True, slots=True)
class ThresholdPrice:
    """What it costs to have path A below a size and B from there on; None: A alone, 0: B alone.

    `wrong` are the sizes that take the slower path. At `worst_bytes` that costs the most, as a
    share above the faster one: `more_by`, and in 95 % of the draws within `more_by_within`.
    """

    threshold_bytes: int | None
    wrong: tuple[tuple[int, int], ...] = ()
    worst_bytes: int | None = None
    taken_us: float = 0.0
    faster_us: float = 0.0
    more_by: float = 0.0
    basis: Basis = Basis.MODEL
    more_by_within: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Crossovers:
    """What was found: all runs, ascending and without a gap, and all changes between them.

    `advised` is the threshold of least worst loss, None where none is provable. `decided` are the
    sizes at which both files' times decide, and `overruled` those of them at which the costs have
    the other path faster.
    """

    question: CrossoverQuestion
    verdict: Verdict
    runs: tuple[Run, ...]
    crossovers: tuple[Crossover, ...]
    advised: ThresholdPrice | None
    current: ThresholdPrice | None
    decided: tuple[int, ...] = ()
    overruled: tuple[int, ...] = ()
    has_errors: bool = False

    @property
    def is_swapped(self) -> bool:
        """Whether there is one crossover, and the second path is the faster one below it."""
        changes = [crossover.after for crossover in self.crossovers]
        return self.verdict is Verdict.ONE and changes == [Faster.PATH_A]


def find_crossovers(question: CrossoverQuestion) -> Crossovers:
    """Return where the faster path changes; O((ranges + timed sizes) log bytes) evaluations, and
    those of the draws.
    """
    return _Search(question).found()


def timed_by_both(a: Path, b: Path) -> dict[int, tuple[TimedSize, TimedSize]]:
    """Return the messages that both files timed, by size, ascending."""
    of_b = {size.message_bytes: size for size in b.timed}
    return {
        size.message_bytes: (size, of_b[size.message_bytes])
        for size in a.timed
        if size.message_bytes in of_b
    }


def faster_of(a_us: float, b_us: float) -> Faster:
    """Return which of two times is the lesser one."""
    if abs(a_us - b_us) <= _EQUAL * max(a_us, b_us):
        return Faster.NEITHER
    return Faster.PATH_A if a_us < b_us else Faster.PATH_B


def runs_of(faster: Callable[[int], Faster], edges: Sequence[int]) -> tuple[Run, ...]:
    """Return the runs over whole sizes from the first edge to the last.

    Between two neighbouring edges the faster path changes in one direction alone, so that each
    change is found by bisection.
    """
    found: list[Run] = []
    for first, last in pairwise(edges):
        _extend(found, _runs_between(faster, first, last))
    if len(edges) == 1:
        found.append(Run(edges[0], edges[0], faster(edges[0])))
    return tuple(found)


def _runs_between(faster: Callable[[int], Faster], first: int, last: int) -> Iterator[Run]:
    """Runs of sizes of which those of equal answers are neighbours."""
    at, now, end = first, faster(first), faster(last)
    while now is not end:
        low, high = at, last  # `now` holds at low, and not at high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if faster(middle) is now else (low, middle)
        yield Run(at, low, now)
        at, now = high, faster(high)
    yield Run(at, last, now)


def _extend(runs: list[Run], more: Iterable[Run]) -> None:
    """Put runs behind those that there are, as one where both have the same faster path: so have
    the last run and the first of the next ones where both hold the size at which they meet.
    """
    for run in more:
        if runs and runs[-1].faster is run.faster:
            runs[-1] = Run(runs[-1].from_bytes, run.up_to_bytes, run.faster)
        else:
            runs.append(run)


class _Search:
    def __init__(self, question: CrossoverQuestion) -> None:
        self._question = question
        self._a, self._b = question.a, question.b
        self._first, self._last = question.min_message_bytes, question.max_message_bytes
        self._both = timed_by_both(self._a, self._b)
        self._deciding = {
            size: faster
            for size, (a, b) in self._both.items()
            if self._first <= size <= self._last
            and (faster := measured_faster(a, b)) is not Faster.NEITHER
        }
        self._drawn = _DrawnPaths.of(question)

    def found(self) -> Crossovers:
        """Return all runs and changes, and the prices of thresholds."""
        by_costs = runs_of(self._by_costs, self._edges)
        runs, measured_ends = self._overruled(by_costs)
        overruled = tuple(
            size for size, faster in self._deciding.items() if self._by_costs(size) is not faster
        )
        runs = tuple(self._with_sureness(run) for run in runs)
        places = list(self._changes(runs, measured_ends))
        verdict = self._verdict(runs, places)
        prices = [self._price(one, runs) for one in self._thresholds(places)]
        best = min(prices, key=lambda one: one.more_by)
        current = self._question.current_bytes
        return Crossovers(
            self._question,
            verdict,
            runs,
            tuple(places),
            None if verdict is Verdict.NOT_PROVABLE else best,
            None if current is None else self._price(current, runs),
            tuple(self._deciding),
            overruled,
            self._drawn is not None,
        )

    def _by_costs(self, size: int) -> Faster:
        return faster_of(self._a.time_us(size), self._b.time_us(size))

    @cached_property
    def _edges(self) -> list[int]:
        """Sizes between which both paths are lines: the ends of ranges and what is behind them."""
        ends = {end for one in (self._a, self._b) for end in one.model.range_ends}
        edges = self._with_next(ends)
        for one in (self._a, self._b):
            if isinstance(one.model, Aggregate):  # the larger of two costs is its total
                both = one.model.total.time_us, one.model.bottleneck.time_us
                larger = runs_of(partial(_faster_at, both), edges)
                edges = self._with_next({*edges, *(run.up_to_bytes for run in larger)})
        return edges

    def _with_next(self, ends: Iterable[int]) -> list[int]:
        inside = {size for end in ends for size in (end, end + 1) if self._is_inside(size)}
        return sorted({self._first, self._last, *inside})

    def _is_inside(self, size: int) -> bool:
        return self._first < size < self._last

    # --- what was measured ------------------------------------------------------------------------

    def _overruled(self, runs: tuple[Run, ...]) -> tuple[tuple[Run, ...], frozenset[int]]:
        """The runs with what both files' times decide in the place of the costs; and the first
        sizes of runs whose place is a line between measured times.
        """
        if not self._deciding:
            return runs, frozenset()
        sizes = list(self._deciding)
        ends = set[int]()
        found: list[Run] = []
        before, after = (_run_at(runs, size) for size in (sizes[0], sizes[-1]))
        _extend(found, (run for run in runs if run.up_to_bytes < before.from_bytes))
        _extend(found, [Run(before.from_bytes, sizes[0], self._deciding[sizes[0]])])
        for one, other in pairwise(sizes):
            for run, is_line in self._between(runs, one, other):
                if is_line:
                    ends.add(run.from_bytes)
                _extend(found, [run])
        if sizes[-1] < after.up_to_bytes:
            _extend(found, [Run(sizes[-1] + 1, after.up_to_bytes, self._deciding[sizes[-1]])])
        _extend(found, (run for run in runs if run.from_bytes > after.up_to_bytes))
        return tuple(found), frozenset(ends)

    def _between(self, runs: tuple[Run, ...], one: int, other: int) -> Iterator[tuple[Run, bool]]:
        """The runs behind one measured size up to the next one, both of which decide."""
        left, right = self._deciding[one], self._deciding[other]
        if left is right:
            yield Run(one + 1, other, left), False
            return
        inside = [
            Run(max(run.from_bytes, one), min(run.up_to_bytes, other), run.faster)
            for run in runs
            if run.up_to_bytes >= one and run.from_bytes <= other
        ]
        order = [run.faster for run in inside]
        if order in ([left, right], [left, Faster.NEITHER, right]):
            yield from ((run, False) for run in inside)
            return
        at = self._met(one, other)
        if at > one + 1:
            yield Run(one + 1, at - 1, left), False
        yield Run(at, other, right), True

    def _met(self, one: int, other: int) -> int:
        """The first whole size behind that at which lines between the measured times meet."""
        (a, b), (further_a, further_b) = self._both[one], self._both[other]
        before, after = a.measured_us - b.measured_us, further_a.measured_us - further_b.measured_us
        place = one + (other - one) * abs(before) / (abs(before) + abs(after))
        return min(other, max(one + 1, int(place) + 1))

    # --- how sure it is ---------------------------------------------------------------------------

    def _with_sureness(self, run: Run) -> Run:
        if run.faster is Faster.NEITHER:
            return run
        timed = any(
            faster is run.faster and run.from_bytes <= size <= run.up_to_bytes
            for size, faster in self._deciding.items()
        )
        if timed or self._drawn is None:
            return Run(run.from_bytes, run.up_to_bytes, run.faster, timed or None)
        sizes = self._drawn.sizes_in(run.from_bytes, run.up_to_bytes)
        agrees = any(self._drawn.sure(size) is run.faster for size in sizes)
        return Run(run.from_bytes, run.up_to_bytes, run.faster, agrees)

    def _verdict(self, runs: tuple[Run, ...], places: Sequence[Crossover]) -> Verdict:
        is_known = [run.is_sure for run in runs if run.faster is not Faster.NEITHER]
        if is_known and all(is_sure is False for is_sure in is_known):
            return Verdict.NOT_PROVABLE
        if not places:
            return Verdict.NONE
        return Verdict.ONE if len(places) == 1 else Verdict.SEVERAL

    def _changes(self, runs: tuple[Run, ...], ends: frozenset[int]) -> Iterator[Crossover]:
        before: Run | None = None
        for run in runs:
            if run.faster is Faster.NEITHER:
                continue
            if before is not None and before.faster is not run.faster:
                yield self._change(before, run, ends)
            before = run

    def _change(self, before: Run, run: Run, ends: frozenset[int]) -> Crossover:
        at = run.from_bytes
        timed = [size for size in self._deciding if size < at][-1:]
        timed_after = [size for size in self._deciding if size >= at][:1]
        is_measured = at in ends or (bool(timed) and bool(timed_after))
        between = None
        if self._drawn is not None or is_measured:
            low, high = self._sure_around(before, run)
            if timed and timed[0] >= before.from_bytes:
                low = max(low or 0, timed[0] + 1)
            if timed_after and timed_after[0] <= run.up_to_bytes:
                high = min(high or MAX_MESSAGE_BYTES, timed_after[0])
            between = low, high
        basis = Basis.MEASURED if is_measured else Basis.MODEL
        times = (self._a.time_us(at), self._b.time_us(at))
        return Crossover(at, before.faster, run.faster, *times, basis, between)

    def _sure_around(self, before: Run, run: Run) -> tuple[int | None, int | None]:
        """The first size behind the last one at which the draws agree on the path before, and the
        first one at which they agree on the next; None where they agree at none.
        """
        drawn, at = self._drawn, run.from_bytes
        if drawn is None:
            return None, None
        below = [*drawn.sizes_in(before.from_bytes, at - 1), at]
        above = [at - 1, *drawn.sizes_in(at, run.up_to_bytes)]
        low = high = None
        for place in range(len(below) - 2, -1, -1):
            if drawn.sure(below[place]) is before.faster:
                low = drawn.first_not(before.faster, below[place], below[place + 1])
                break
        for place in range(1, len(above)):
            if drawn.sure(above[place]) is run.faster:
                high = drawn.first_as(run.faster, above[place - 1], above[place])
                break
        return low, high

    # --- prices -----------------------------------------------------------------------------------

    def _thresholds(self, places: Sequence[Crossover]) -> list[int | None]:
        """Those of which one has the least worst loss: never, always, and every change to B."""
        return [None, 0, *(place.at_bytes for place in places if place.after is Faster.PATH_B)]

    def _price(self, threshold: int | None, runs: tuple[Run, ...]) -> ThresholdPrice:
        wrong = tuple(self._wrong(threshold, runs))
        worst = ThresholdPrice(threshold, wrong)
        for first, last in wrong:
            uses = Faster.PATH_A if threshold is None or last < threshold else Faster.PATH_B
            for size in self._asked(first, last):
                a_us, b_us, basis = self._times(size)
                taken_us, faster_us = (a_us, b_us) if uses is Faster.PATH_A else (b_us, a_us)
                more_by = taken_us / faster_us - 1.0 if faster_us > 0.0 else inf
                if more_by > worst.more_by:
                    within = self._within(size, uses) if basis is Basis.MODEL else None
                    figures = (size, taken_us, faster_us, more_by, basis, within)
                    worst = ThresholdPrice(threshold, wrong, *figures)
        return worst

    def _wrong(self, threshold: int | None, runs: tuple[Run, ...]) -> Iterator[tuple[int, int]]:
        """The sizes that take the slower path."""
        split = MAX_MESSAGE_BYTES + 1 if threshold is None else threshold
        for run in runs:
            if run.faster is Faster.PATH_B and run.from_bytes < split:
                yield run.from_bytes, min(run.up_to_bytes, split - 1)
            if run.faster is Faster.PATH_A and run.up_to_bytes >= split:
                yield max(run.from_bytes, split), run.up_to_bytes

    def _asked(self, first: int, last: int) -> list[int]:
        """Sizes of which one has the greatest ratio: it rises or falls from edge to edge."""
        inside = [size for size in (*self._edges, *self._both) if first <= size <= last]
        return sorted({first, last, *inside})

    def _times(self, size: int) -> tuple[float, float, Basis]:
        """What both paths take: as measured, where both were, and that decides."""
        if size in self._deciding:
            a, b = self._both[size]
            return a.measured_us, b.measured_us, Basis.MEASURED
        return self._a.time_us(size), self._b.time_us(size), Basis.MODEL

    def _within(self, size: int, uses: Faster) -> tuple[float, float] | None:
        if self._drawn is None:
            return None
        a_us, b_us = self._drawn.both_us(size)
        taken, other = (a_us, b_us) if uses is Faster.PATH_A else (b_us, a_us)
        ratio = np.divide(taken, other, out=np.full_like(taken, inf), where=other > 0.0) - 1.0
        low, high = quantiles_of(ratio, (1.0 - _AGREE, _AGREE))
        return low, high


def _run_at(runs: Sequence[Run], size: int) -> Run:
    return next(run for run in runs if run.from_bytes <= size <= run.up_to_bytes)


def _faster_at(both: tuple[Callable[[int], float], Callable[[int], float]], size: int) -> Faster:
    a_us, b_us = both
    return faster_of(a_us(size), b_us(size))


def measured_faster(a: TimedSize, b: TimedSize) -> Faster:
    """Which of two measured times is the lesser one; neither where their errors leave it open."""
    error_us = _IN_95_PERCENT * hypot(a.error_us, b.error_us)
    if abs(a.measured_us - b.measured_us) <= error_us:
        return Faster.NEITHER
    return faster_of(a.measured_us, b.measured_us)


class _DrawnPaths:
    """Both paths on draws of their costs: which one is surely the faster at a size."""

    def __init__(self, a: Draws, b: Draws, margin: float, span: tuple[int, int]) -> None:
        self._draws, self._margin, self._span = (a, b), margin, span
        self._known: dict[int, Faster] = {}

    @classmethod
    def of(cls, question: CrossoverQuestion) -> _DrawnPaths | None:
        """Return the draws, None where of neither path any errors are known."""
        errors = [one.errors for one in (question.a, question.b)]
        known = [error for error in errors if error is not None]
        if not known:
            return None
        count = max(one.draws for one in known)
        a, b = (_draws_of(one, count) for one in (question.a, question.b))
        # By as much as measured messages differed from a model it may be wrong here too.
        margin = sum(one.misfit for one in known)
        return cls(a, b, margin, (question.min_message_bytes, question.max_message_bytes))

    @cached_property
    def _sizes(self) -> list[int]:
        first, last = self._span
        count = max(2, int(_A_OCTAVE * np.log2(last / first)) + 2)
        found = np.unique(np.geomspace(first, last, count).astype(np.int64).clip(first, last))
        return [int(size) for size in found]

    def sizes_in(self, first: int, last: int) -> list[int]:
        """Return the sizes that are asked, from the first to the last, these two too."""
        return sorted({first, last, *(size for size in self._sizes if first < size < last)})

    def both_us(self, size: int) -> tuple[Floats, Floats]:
        """Return what both take in each draw, µs."""
        cut = NamedCut("whole", size_bytes=size)
        a_us, b_us = (cut_us(draw, size, cut) for draw in self._draws)
        a, b = np.broadcast_arrays(a_us, b_us)
        return a, b

    def sure(self, size: int) -> Faster:
        """Return the path that is faster in 97.5 % of the draws, by more than the models are known
        to be off; else neither.
        """
        found = self._known.get(size)
        if found is None:
            a_us, b_us = self.both_us(size)
            has_a = float(np.mean(a_us * (1.0 + self._margin) < b_us)) >= _AGREE
            has_b = float(np.mean(b_us * (1.0 + self._margin) < a_us)) >= _AGREE
            found = Faster.PATH_A if has_a else Faster.PATH_B if has_b else Faster.NEITHER
            self._known[size] = found
        return found

    def first_not(self, faster: Faster, low: int, high: int) -> int:
        """Return the first size behind `low`, where this path surely is, at which it is not."""
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.sure(middle) is faster else (low, middle)
        return high

    def first_as(self, faster: Faster, low: int, high: int) -> int:
        """Return the first size behind `low` at which this path surely is, as at `high`."""
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.sure(middle) is faster else (middle, high)
        return high


def _draws_of(path: Path, count: int) -> Draws:
    errors = path.errors
    if errors is None:
        return at_estimates(path.model)
    return draw(errors.model, count, seed_of(errors.model) if errors.seed is None else errors.seed)


def notices_of(found: Crossovers) -> tuple[Notice, ...]:
    """Return what a user must see beside the sizes."""
    return tuple(_notices(found))


def _notices(found: Crossovers) -> Iterator[Notice]:
    question = found.question
    yield from question.said
    if found.overruled:
        sizes = ", ".join(map(format_bytes, found.overruled[:4]))
        more = f" and {len(found.overruled) - 4} more" if len(found.overruled) > 4 else ""
        yield Notice(
            "measured_decides",
            f"at {sizes}{more} the costs have the other path faster than the times of both files "
            "do: the times decide there, and between the sizes that were measured",
        )
    elif found.decided:
        yield Notice(
            "measured_decides",
            f"between {format_bytes(found.decided[0])} and {format_bytes(found.decided[-1])} the "
            "times that both files have of the same sizes decide which path is faster; the costs "
            "say where between two of these it changes",
        )
    span = question.measured_bytes
    outside = [
        crossover.at_bytes
        for crossover in found.crossovers
        if span is not None and not span[0] <= crossover.at_bytes <= span[1]
    ]
    if span is not None and outside and found.verdict is not Verdict.NOT_PROVABLE:
        where = f"both paths were measured from {format_bytes(span[0])} to {format_bytes(span[1])}"
        if span[0] > span[1]:
            where = "the paths have no measured sizes in common"
        sizes = ", ".join(map(format_bytes, outside[:4]))
        yield Notice(
            "beyond_measured_sizes",
            f"the paths cross at {sizes}, and {where}: times of other sizes are those of the "
            "lines, continued; measure both paths there",
        )
    if not found.has_errors:
        yield Notice(
            "costs_taken_as_exact",
            "the errors of these costs are not known, and they are taken as exact: there is no "
            "interval; fit both paths' measurements for one",
        )
    if found.is_swapped:
        yield Notice(
            "paths_swapped",
            "the second path is faster for small messages, and the first one for large: a "
            "threshold has the first path below it, so name them the other way round",
        )
