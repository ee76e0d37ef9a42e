"""Pulses that stages choose while the message arrives: one static size a stage, or one threshold.

Source    Yocum97 sec. 4: static pulses and eager DMA; theory sec. 20 for what eager promises. The
          search for sizes and thresholds is our own.
Notation  m: a stage's threshold or pulse size; x_0(k): the first fragment of Wang's ramp of k
          fragments through the fastest stream before a stage and the stage itself.
Cost      some 60 to 100 deliveries a stage and round, each O(pulses), until ROUNDS or the deadline.
Exact     no: coordinate descent. Latencies are not monotone in thresholds, so each is evaluated.
Traps     thresholds near 1 may make a pulse of every byte: deliveries of many more pulses than the
          best one's are given up. Eager pulses are what has arrived, which no alignment admits; a
          tail may be below the least fragment, and is then not admitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from math import ceil

from domain.delivery import Delivery, DeliveryRule, deliver
from domain.errors import Infeasible, StrategyDeclined
from domain.nested import NestedSchedule, nested_latency_us
from domain.pipeline import Pipeline
from domain.problem import Problem
from domain.solution import Notice, Strategy
from solvers.contract import Candidate, Deadline, SolveOptions, StrategySpec

ROUNDS = 6
_MORE, _FEW = 4, 64  # times the pulses of the best delivery so far, and so many, are tried at most
_WORK = 40_000  # pulses that are delivered in all, so that the search does not hang on the clock
_PER_OCTAVE = 4
_RAMPS = 24  # numbers of fragments whose first one is tried as a threshold
_FLAT = 1e-12

Rules = tuple[Delivery, ...]


def run(
    problem: Problem, options: SolveOptions, deadline: Deadline, *, rule: DeliveryRule
) -> Candidate:
    """Choose a size or a threshold for each stage. Raises StrategyDeclined for a single stage, for
    eager pulses under an alignment, and where the limits admit none of the pulses tried.
    """
    name = Strategy.EAGER if rule is DeliveryRule.EAGER else Strategy.PULSES
    if len(problem.pipeline) < 2:
        raise StrategyDeclined(f"{name} needs at least two stages", field="strategy")
    if rule is DeliveryRule.EAGER and problem.limits.alignment_bytes > 1:
        raise StrategyDeclined(
            "eager pulses are what has arrived, which no alignment admits", field="strategy"
        )
    search = _Search(problem, rule, deadline)
    search.run()
    if search.best is None:
        raise StrategyDeclined("the limits admit none of the pulses tried", field="strategy")
    _, rules, cuts = search.best
    return Candidate(
        fragment_bytes=min(cuts, key=len),
        levels=cuts,
        notices=tuple(_said(problem.pipeline, rules)),
        cut_off=deadline.passed,
        delivery=rules,
    )


class _Search:
    """The best rules so far: first the same for all stages, then stage by stage."""

    def __init__(self, problem: Problem, rule: DeliveryRule, deadline: Deadline) -> None:
        self._problem, self._rule, self._deadline = problem, rule, deadline
        self.best: tuple[float, Rules, tuple[tuple[int, ...], ...]] | None = None
        self._tried = set[tuple[int, ...]]()
        self._sizes: tuple[int, ...] = ()
        self._work = 0

    def run(self) -> None:
        """Until a round changes nothing, ROUNDS are done, or time is up."""
        stages, grid = len(self._problem.pipeline), list(self._grid())
        limit = self._problem.limits.max_fragment_bytes
        first = 1 if _moves_whole(self._problem.pipeline, limit) else 0  # its size changes nothing
        for size in sorted(grid, reverse=True):  # few pulses first
            self._try((size,) * stages)
        for _ in range(ROUNDS):
            before = self._sizes
            for at in range(first, stages if self._sizes else 0):
                for size in sorted({*grid, *self._ramps(at), *_beside(self._sizes[at])}):
                    self._try((*self._sizes[:at], size, *self._sizes[at + 1 :]))
            if self._sizes == before or self._is_over:
                return

    @property
    def _is_over(self) -> bool:
        return self._deadline.passed or (self._work > _WORK and self.best is not None)

    def _grid(self) -> Iterator[int]:
        """Four sizes an octave, in units of the alignment, from the least fragment on."""
        problem = self._problem
        unit, total = problem.limits.alignment_bytes, problem.message_bytes
        octaves = _PER_OCTAVE * (total // unit).bit_length()
        sizes = {ceil(2.0 ** (step / _PER_OCTAVE)) * unit for step in range(octaves)}
        largest = problem.largest_fragment_bytes
        yield from sorted({*(size for size in sizes if self._admits(size)), largest})

    def _admits(self, size: int) -> bool:
        limits = self._problem.limits
        return limits.min_fragment_bytes <= size <= self._problem.largest_fragment_bytes

    def _ramps(self, at: int) -> Iterator[int]:
        """First fragments of Wang's ramps through the slowest stream before this stage and it."""
        total = self._problem.message_bytes
        lines = [stage.range_at(total) for stage in self._problem.pipeline.stages]
        stream = max((line.ns_per_byte for line in lines[:at]), default=0.0)
        if stream <= 0.0:
            return
        growth = lines[at].ns_per_byte / stream
        added = 1000.0 * lines[at].overhead_us / stream
        factor, shift, factors, shifts = 1.0, 0.0, 0.0, 0.0
        for _ in range(_RAMPS):
            factors, shifts = factors + factor, shifts + shift
            first = (total - shifts) / factors
            if not first >= 1.0:  # growth beyond all numbers makes it none
                return
            for size in range(ceil(first), ceil(first) + 4):
                if self._admits(size) and size % self._problem.limits.alignment_bytes == 0:
                    yield size
            factor, shift = growth * factor, growth * shift + added

    def _try(self, sizes: tuple[int, ...]) -> None:
        """Deliver by these sizes, and keep what is better, or as good with fewer pulses."""
        if sizes in self._tried or self._is_over or not all(map(self._admits, sizes)):
            return
        self._tried.add(sizes)
        problem, rules = self._problem, self._rules(sizes)
        cap = problem.count_range().maximum
        try:
            schedule = deliver(
                problem.pipeline,
                problem.message_bytes,
                rules,
                max_pulses=min(cap, self._enough()),
            )
        except Infeasible:
            self._work += min(cap, self._enough())
            return
        cuts = schedule.stage_bytes
        self._work += sum(map(len, cuts))
        if not all(map(problem.admits, cuts)):
            return
        latency_us = nested_latency_us(problem.pipeline, NestedSchedule(cuts))
        if self.best is None or self._is_better(latency_us, cuts):
            self.best, self._sizes = (latency_us, rules, cuts), sizes

    def _enough(self) -> int:
        """How many pulses of a stage are tried: larger sizes come first, and more may follow."""
        if self.best is None:
            return self._problem.fragment_cap
        return max(_FEW, _MORE * max(map(len, self.best[2])))

    def _is_better(self, latency_us: float, cuts: tuple[tuple[int, ...], ...]) -> bool:
        assert self.best is not None
        best_us, _, before = self.best
        if abs(latency_us - best_us) <= _FLAT * best_us:
            return sum(map(len, cuts)) < sum(map(len, before))
        return latency_us < best_us

    def _rules(self, sizes: tuple[int, ...]) -> Rules:
        problem = self._problem
        largest = problem.limits.max_fragment_bytes
        return rules_of(problem.pipeline, problem.message_bytes, self._rule, sizes, largest)


def rules_of(
    pipeline: Pipeline,
    message_bytes: int,
    rule: DeliveryRule,
    sizes: Sequence[int],
    largest_bytes: int | None = None,
) -> Rules:
    """Return a rule a stage with these pulse sizes (static) or thresholds (eager), bytes.

    The first stage moves all at once where it hands bytes on and no fragment is limited, else in
    static pulses.
    """
    first, *others = sizes
    found = [_static(message_bytes if _moves_whole(pipeline, largest_bytes) else first)]
    for size in others:
        if rule is DeliveryRule.STATIC:
            found.append(_static(size))
        else:
            most = None if largest_bytes is None else max(size, largest_bytes)
            found.append(Delivery(DeliveryRule.EAGER, threshold_bytes=size, max_pulse_bytes=most))
    return tuple(found)


def _moves_whole(pipeline: Pipeline, largest_bytes: int | None) -> bool:
    """Whether the first stage moves all at once: it hands bytes on, and no fragment is limited."""
    return pipeline.stages[0].handoff_bytes is not None and largest_bytes is None


def _static(size: int) -> Delivery:
    return Delivery(DeliveryRule.STATIC, pulse_bytes=size)


def _beside(size: int) -> Iterable[int]:
    return (size + step for step in (-2, -1, 1, 2) if size + step >= 1)


def _said(pipeline: Pipeline, rules: Rules) -> Iterator[Notice]:
    """What to set in each stage."""
    for stage, rule in zip(pipeline.stages, rules, strict=True):
        if rule.rule is DeliveryRule.EAGER:
            words = f"eager: take all that is there, {rule.threshold} bytes at least"
            values = {"threshold_bytes": rule.threshold}
        else:
            words = f"pulses of {rule.pulse_bytes} bytes"
            values = {"pulse_bytes": rule.pulse_bytes or 0}
        yield Notice.of_stage(stage.name, "delivery_rule", words, **values)


def _spec(name: Strategy, rule: DeliveryRule) -> StrategySpec:
    chosen: Callable[[Problem, SolveOptions, Deadline], Candidate] = partial(run, rule=rule)
    return StrategySpec(
        name=name,
        run=chosen,
        needs="at least two stages" + (", no alignment" if rule is DeliveryRule.EAGER else ""),
        optimal_when="never proven of the model: sizes are searched one by one; its gap is stated",
        refragments=True,
    )


EAGER = _spec(Strategy.EAGER, DeliveryRule.EAGER)
PULSES_OF_A_SIZE = _spec(Strategy.PULSES, DeliveryRule.STATIC)
