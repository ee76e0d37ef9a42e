"""Items hidden behind the calculation that makes them, or that takes them: run times and cuts.

Source    docs/theory.md, "Items": ready times are a stage in front; and "Communication behind a
          calculation". Loading is the mirror: the calculation is the last stage.
Notation  m items; h: what each fragment costs the processor that calculates, µs; c: the whole
          calculation; T: the run time.
Cost      one stage: O(m) where h = 0 and items are made, else O(m K) of at most K fragments; more
          stages by labels (`solvers.items.solve`).
Exact     T is the evaluator's on whole bytes. The bound is of the problem with the calculation.
Traps     without h the calculation is ready times, and the answer is that of these; with it the
          stage that calculates waits for no fragment, and others wait for it. Without hiding the
          best cut is another one: all items are there before the first is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from analysis.hiding import CALCULATION, LatencyOptimal, ratio
from analysis.items import ItemPath, ItemsQuestion, ItemsSolved, item_path, solve_items_question
from contract.limits import MAX_CALCULATION_US, MAX_STAGES
from domain.errors import InconsistentInput
from domain.hiding import Regime, check_number
from domain.items import FillRule, ItemProblem, ItemSequence, ItemSolution
from domain.pipeline import Pipeline, Stage, unique_names
from domain.solution import Notice

_SHARE_ALONE = 0.3  # of the time, for the cut without hiding
_SAME = 1e-12  # run times that differ by less, relative, are equal


@dataclass(frozen=True, slots=True)
class ItemWork:
    """The calculation by items, in µs: what each takes, and when each is done where nothing else is
    to be done; (m,) both.
    """

    work_us: tuple[float, ...]
    done_us: tuple[float, ...]

    @classmethod
    def of_ready(cls, sequence: ItemSequence) -> ItemWork:
        """Return the calculation that makes items ready when they are."""
        done = sequence.all_ready_us
        return cls(tuple(behind - before for before, behind in pairwise(done)), done[1:])

    @classmethod
    def of_work(cls, work_us: Sequence[float]) -> ItemWork:
        """Return the calculation of these times, one an item."""
        return cls(tuple(work_us), tuple(accumulate(work_us)))

    @classmethod
    def by_bytes(cls, sequence: ItemSequence, calculation_us: float) -> ItemWork:
        """Return a calculation of which each item takes a share, by its bytes."""
        total, ends = sequence.total_bytes, sequence.ends_bytes
        done = tuple(calculation_us * end / total for end in ends)
        return cls(tuple(behind - before for before, behind in pairwise(done)), done[1:])

    @property
    def whole_us(self) -> float:
        """All of it, in µs."""
        return self.done_us[-1]


@dataclass(frozen=True, slots=True)
class HiddenItemsQuestion:
    """Items, the stages that they cross, and the calculation beside. Picklable.

    `problem` is without the calculation; its items have ready times only where they are loaded.
    `cap_bytes` is the cap in use, filled by `fill`. Raises InconsistentInput.
    """

    problem: ItemProblem
    work: ItemWork
    fragment_overhead_us: float
    is_loading: bool
    fill: FillRule
    cap_bytes: int | None
    relative_gap: float
    time_limit_s: float

    def __post_init__(self) -> None:
        check_number("fragment_overhead_us", self.fragment_overhead_us, MAX_CALCULATION_US)
        if self.has_stage and len(self.problem.pipeline) == MAX_STAGES:
            raise InconsistentInput(
                f"the calculation is a stage of its own, and {MAX_STAGES} are allowed",
                field="loading" if self.is_loading else "fragment_overhead_us",
            )

    @property
    def has_stage(self) -> bool:
        """Whether the calculation is a stage, and not ready times alone."""
        return self.is_loading or self.fragment_overhead_us > 0.0

    @property
    def calculation_stage(self) -> int | None:
        """The place of the stage that calculates, None where ready times are all of it."""
        if not self.has_stage:
            return None
        return len(self.problem.pipeline) if self.is_loading else 0

    def with_calculation(self) -> ItemProblem:
        """Return the problem whose latency is the run time."""
        if not self.has_stage:
            made = replace(self.problem.sequence, ready_us=self.work.done_us)
            return replace(self.problem, sequence=made)
        return self._with_stage(self.work.work_us)

    def alone(self) -> ItemProblem:
        """Return the problem of the communication alone, all items calculated before: of items that
        are made each fragment costs its overhead then, too.
        """
        if self.is_loading or not self.has_stage:
            return self.problem
        return self._with_stage(None)

    def _with_stage(self, work_us: tuple[float, ...] | None) -> ItemProblem:
        problem = self.problem
        names = [stage.name for stage in problem.pipeline.stages]
        name = unique_names([*names, CALCULATION])[-1]
        own = Stage.of_line(name, overhead_us=self.fragment_overhead_us, ns_per_byte=0.0)
        stages = problem.pipeline.stages
        ordered = (*stages, own) if self.is_loading else (own, *stages)
        sequence = problem.sequence
        if work_us is not None:
            sequence = replace(sequence, stage_us=(*sequence.stage_us, (name, work_us)))
        pipeline = Pipeline(ordered, problem.pipeline.delay_us)
        return replace(problem, pipeline=pipeline, sequence=sequence)


@dataclass(frozen=True, slots=True)
class HiddenItems:
    """What was found. Times in µs; `run` is of the problem with the calculation, `alone` of the
    communication by itself, and `latency_us` what the best cut takes there.
    """

    question: HiddenItemsQuestion
    run: ItemsSolved
    alone: ItemSolution
    latency_us: float
    latency_optimal: LatencyOptimal
    path: ItemPath
    warnings: tuple[Notice, ...]

    @property
    def with_us(self) -> float:
        """The run time with the best cut."""
        return self.run.solution.latency_us

    @property
    def without_us(self) -> float:
        """The run time of one after the other, each by its best cut: loaded items are calculated
        with all at once.
        """
        once_us = self.question.fragment_overhead_us if self.question.is_loading else 0.0
        return self.question.work.whole_us + once_us + self.alone.latency_us

    @property
    def host_us(self) -> float:
        """What the processor that calculates has to do."""
        count = len(self.run.solution.cut)
        return self.question.work.whole_us + count * self.question.fragment_overhead_us

    @property
    def exposed_us(self) -> float:
        """What the run time is longer than the calculation."""
        return self.with_us - self.question.work.whole_us

    @property
    def hidden_share(self) -> float | None:
        """The share of the communication that takes no time of its own; None without one."""
        sent_us = self.without_us - self.question.work.whole_us
        return 1.0 - self.exposed_us / sent_us if sent_us > 0.0 else None

    @property
    def gain(self) -> float:
        """Run time without over that with hiding; 1 where nothing takes any time."""
        return ratio(self.without_us, self.with_us)

    @property
    def gain_at_most(self) -> float | None:
        """The same over the bound; None where that is 0."""
        bound_us = self.run.solution.lower_bound_us
        if bound_us <= 0.0:
            return None if self.without_us > 0.0 else 1.0
        return self.without_us / bound_us

    @property
    def regime(self) -> Regime:
        """What decides the run time."""
        if self.with_us > self.without_us * (1.0 + _SAME):
            return Regime.LOSS
        is_hidden = self.exposed_us <= _SAME * self.with_us
        return Regime.FULLY_HIDDEN if is_hidden else Regime.COMMUNICATION_BOUND


def hide_items(question: HiddenItemsQuestion) -> HiddenItems:
    """Return run times with and without hiding, and the best cut. Raises Infeasible."""
    from solvers.contract import SolveOptions
    from solvers.items.solve import solve_items

    of_alone = SolveOptions(
        relative_gap=question.relative_gap, time_limit_s=_SHARE_ALONE * question.time_limit_s
    )
    alone_problem, problem = question.alone(), question.with_calculation()
    alone = solve_items(alone_problem, of_alone)
    asked = ItemsQuestion(
        problem,
        question.fill,
        question.relative_gap,
        (1.0 - _SHARE_ALONE) * question.time_limit_s,
        question.cap_bytes,
    )
    run = solve_items_question(asked)
    cut, with_us = run.solution.cut, run.solution.latency_us
    moved_us = problem.latency_us(alone.cut)
    return HiddenItems(
        question,
        run,
        alone,
        alone_problem.latency_us(cut),
        LatencyOptimal(
            len(alone.cut), alone.latency_us, moved_us, max(0.0, ratio(moved_us, with_us) - 1.0)
        ),
        item_path(problem, cut, calculation=question.calculation_stage),
        problem.notices,
    )
