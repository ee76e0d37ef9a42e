"""What a message takes by the setting in use, and by default settings, to compare an answer with.

Source    theory sec. 2: one fragment; a constant size; the best repeated size, which is what a
          library with one size setting can reach. The constant sizes are those of
          domain.default_sizes, each with its source.
Cost      O(k n) each for the evaluator.

Whether a solve is small enough to be tried in the caller's own process.

The rule counts work and never asks the clock, so that the same question always goes the same way.
It is about the common case: how many counts could still win in whole bytes shows only on the way,
so who needs certainty also sets a time limit and looks at `Solution.cut_off`. `make bench` prints
the times of every strategy against k*n.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from domain.default_sizes import CURRENT, ONE_PIECE, DefaultSize, default_sizes
from domain.errors import Infeasible, StrategyDeclined
from domain.problem import MessageProblem, Problem
from domain.solution import Strategy
from solvers.contract import Deadline, SolveOptions
from solvers.heuristics import constant, fixed, repeat
from solvers.kernels import Evaluator, active, evaluator_of
from solvers.line_problem import LineProblem

EQUAL_FRAGMENTS = "equal fragments"
_DEADLINE_S = 60.0  # a guard; each baseline takes milliseconds


@dataclass(frozen=True, slots=True)
class Baseline:
    """One setting by name; where the limits forbid its cut, `declined` says why.

    `static_bytes` is repeated, None for a number of equal fragments, one and more. Of a system's
    default `default_bytes` is the size before it was rounded up to the alignment, `parameter` what
    it is set by, and `source` where it is written. `measured_us` is what the message in one piece
    was measured to take, where it was and this sends it so: `latency_us` is no more than that.
    """

    strategy: Strategy
    static_bytes: int | None
    latency_us: float | None
    fragments: int | None
    declined: str | None = None
    name: str | None = None
    default_bytes: int | None = None
    parameter: str | None = None
    source: str | None = None
    measured_us: float | None = None


@dataclass(frozen=True, slots=True)
class BestRepeat:
    """The best single size for a library that repeats one: size, fragments, latency."""

    size_bytes: int
    fragments: int
    latency_us: float


@dataclass(frozen=True, slots=True)
class BaselineSet:
    """All baselines of a problem; `best_repeat` is None where no repeated size is admitted."""

    entries: tuple[Baseline, ...]
    best_repeat: BestRepeat | None

    def measured(self, whole_us: float | None) -> BaselineSet:
        """Return the same where the message in one piece was measured to take that, if it was."""
        if whole_us is None:
            return self
        best = self.best_repeat
        if best is not None and best.fragments == 1:
            best = replace(best, latency_us=min(best.latency_us, whole_us))
        entries = (
            one
            if one.latency_us is None or one.fragments != 1
            else replace(one, latency_us=min(one.latency_us, whole_us), measured_us=whole_us)
            for one in self.entries
        )
        return BaselineSet(tuple(entries), best)


# The cut of a strategy, or of a repeated size; raises StrategyDeclined and Infeasible.
CutBy = Callable[[Strategy, int | None], Sequence[int]]


def baselines_of(problem: Problem, current_bytes: int | None = None) -> BaselineSet:
    """Evaluate every baseline with the evaluator. `current_bytes` is the size that is repeated
    today. Raises Infeasible where nothing is admitted.
    """
    problem.count_range()
    evaluator = problem.pipeline.derived(evaluator_of)

    def cut_by(strategy: Strategy, static_bytes: int | None) -> Sequence[int]:
        if static_bytes is not None:
            return constant.repeated_cut(problem, static_bytes)
        deadline = Deadline.after(_DEADLINE_S)
        return _SPECS[strategy].run(problem, SolveOptions(), deadline).fragment_bytes

    entries = tuple(priced_settings(problem, current_bytes, cut_by, evaluator))
    try:
        size, cut = repeat.best_repeat(problem)
    except (StrategyDeclined, Infeasible):
        return BaselineSet(entries, None)
    return BaselineSet(entries, BestRepeat(size, len(cut), evaluator(cut)))


_SPECS = {spec.name: spec for spec in (constant.SINGLE, fixed.SPEC)}


def baselines_by(
    problem: MessageProblem, current_bytes: int | None, cut_by: CutBy, evaluator: Evaluator
) -> BaselineSet:
    """Return every baseline, and the best repeated size, where strategies make all cuts."""
    entries = tuple(priced_settings(problem, current_bytes, cut_by, evaluator))
    try:
        cut = cut_by(Strategy.REPEAT, None)
    except (StrategyDeclined, Infeasible):
        return BaselineSet(entries, None)
    return BaselineSet(entries, BestRepeat(cut[0], len(cut), evaluator(cut)))


def priced_settings(
    problem: MessageProblem, current_bytes: int | None, cut_by: CutBy, evaluator: Evaluator
) -> Iterator[Baseline]:
    """Yield the setting in use, one piece, the defaults that fit and equal fragments, priced.

    A setting in use that sends the message whole stands for one piece too.
    """

    def priced(
        name: str, strategy: Strategy, size: int | None = None, default: DefaultSize | None = None
    ) -> Baseline:
        how = (default.default_bytes, default.parameter, default.source) if default else ()
        try:
            cut = cut_by(strategy, size)
        except (StrategyDeclined, Infeasible) as refusal:
            return Baseline(strategy, size, None, None, refusal.detail, name, *how)
        return Baseline(strategy, size, evaluator(cut), len(cut), None, name, *how)

    is_whole = current_bytes is not None and current_bytes >= problem.message_bytes
    if current_bytes is not None and not is_whole:
        yield priced(CURRENT, Strategy.STATIC, current_bytes)
    yield priced(CURRENT if is_whole else ONE_PIECE, Strategy.SINGLE)
    for one in default_sizes(problem, current_bytes=current_bytes):
        found = priced(one.name, Strategy.STATIC, one.fragment_bytes, one)
        if found.declined is None:
            yield found
    yield priced(EQUAL_FRAGMENTS, Strategy.FIXED)


QUICK_RANGED_CELLS = 10  # k*n near the optimum where schedules are improved on stages with ranges
QUICK_EVALUATED_CELLS = 20_000  # k*n that may have to be evaluated for the default settings
_FLAT_CELLS = 32_000  # k*k*n where all counts up to k may have to be rounded and compared
_SMALLEST_DEFAULT_BYTES = 4096


@dataclass(frozen=True, slots=True)
class _Quick:
    """What is quick: k*n near the optimum, whatever else; k*n where few counts can win; and n
    times the admitted counts, which a bound over all k passes through."""

    cells: int
    cells_where_few_win: int
    count_cells: int


_NUMPY = _Quick(cells=100, cells_where_few_win=100, count_cells=450_000)
_NATIVE = _Quick(cells=160, cells_where_few_win=640, count_cells=2_000_000)


def is_quick(problem: Problem, strategy: Strategy) -> bool:
    """Return whether a solve is small; see the module. More is in C than in NumPy.

    `strategy` matters only where refragmentation multiplies the work.
    """
    stages, counts = len(problem.pipeline), problem.count_range()
    is_native = problem.pipeline.all_lines and active.NATIVE is not None
    quick = _NATIVE if is_native else _NUMPY
    refragments = problem.allow_refragmentation or strategy in (
        Strategy.HIERARCHICAL,
        Strategy.HIERARCHICAL_RAMP,
        Strategy.EAGER,
        Strategy.PULSES,
    )
    if refragments or (counts.maximum - counts.minimum) * stages > quick.count_cells:
        return False
    typical_count = min(problem.message_bytes // _SMALLEST_DEFAULT_BYTES + 1, counts.maximum)
    if typical_count * stages > QUICK_EVALUATED_CELLS:
        return False
    ranged = LineProblem.of(problem) is None
    best = fixed.best_count(problem)
    if best * stages <= (QUICK_RANGED_CELLS if ranged else quick.cells):
        return True
    within = not ranged and best * stages <= quick.cells_where_few_win
    return within and (_each_pays(problem, best) or best * best * stages <= _FLAT_CELLS)


def _each_pays(problem: Problem, count: int) -> bool:
    """Whether one fragment more costs the slowest stage what rounding to whole bytes may cost.

    If not, a long row of counts is as good as the best one.
    """
    size = problem.message_bytes / count
    lines = [stage.ranges[0] for stage in problem.pipeline.stages]
    times = [line.line.time_us(size) for line in lines]
    unit_us = problem.limits.alignment_bytes * sum(line.ns_per_byte for line in lines) / 1000.0
    return lines[times.index(max(times))].overhead_us >= unit_us
