"""A message hidden behind a calculation: run times with and without, the fragments to use, limits.

Source    Strumpen94 for the model, docs/theory.md sec. 19 for the fragments.
Traps     on a processor that several stages share, these also delay each other: the run time is
          then a lower bound of the machine's, which a warning says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

import solvers
from analysis.hidden_draws import HiddenCuts, gain_interval
from analysis.hidden_ratios import (
    HIDING_LOSES,
    GammaWindow,
    ProcessQuestion,
    gamma_window,
    of_processes,
)
from contract.limits import (
    MAX_CALCULATION_US,
    MAX_HIDDEN_MESSAGES,
    MAX_MESSAGE_BYTES,
    MAX_OVERHEAD,
    MAX_STAGES,
)
from domain.errors import InconsistentInput, InvalidInput
from domain.hiding import BestProcesses, Overlap, ProcessPoint, Regime, check_number
from domain.pipeline import Pipeline, Stage, unique_names
from domain.problem import Problem
from domain.solution import Notice, Solution, Status, Strategy, relative_excess
from domain.uncertainty import UncertainPipeline
from solvers.assemble import status_of
from solvers.contract import Deadline
from solvers.hidden_cut import HiddenCut, HiddenPoint, HostWork, hidden_cut

MAX_TRAIN_FRAGMENTS = 100_000  # of all messages of a train
CALCULATION = "calculation"  # the name of the stage that a streamed calculation becomes
_SHOWN_COUNTS = 24  # counts of fragments that are solved for the table and the picture
_MAX_SHOWN = 512  # a last count beyond which none is solved for them
_WORTH_SAYING = 0.01  # by how much a cut is worse before it is a warning


class Exchange(StrEnum):
    """Whether processes only send or receive at a time, or do both on the same processor."""

    ONE_WAY = "one_way"
    BOTH_WAYS = "both_ways"


class MessagesAre(StrEnum):
    """How several messages are sent: each after the one before it, or right behind it."""

    SERIAL = "serial"
    TRAIN = "train"


@dataclass(frozen=True, slots=True)
class HostStages:
    """Indices of the stages that run on the processor which calculates, at either end."""

    sender: tuple[int, ...] = ()
    receiver: tuple[int, ...] = ()

    def processors(self, exchange: Exchange) -> tuple[tuple[int, ...], ...]:
        """Return the stages of each processor: both ends are one where all do both."""
        if exchange is Exchange.BOTH_WAYS:
            both = (*self.sender, *self.receiver)
            return (both,) if both else ()
        return tuple(side for side in (self.sender, self.receiver) if side)


@dataclass(frozen=True, slots=True)
class HideQuestion:
    """What is hidden behind what: times in µs, `hideable_fraction` a share of the calculation.

    `streamed`: the part of the calculation that hides nothing produces the message, and fragments
    leave while it goes on. `uncertain` is what a fit says of the errors of the costs. Raises
    InvalidInput.
    """

    problem: Problem
    calculation_us: float
    hideable_fraction: float = 1.0
    streamed: bool = False
    overhead_us: float = 0.0
    messages: int = 1
    messages_are: MessagesAre = MessagesAre.SERIAL
    hosts: HostStages = HostStages()
    exchange: Exchange = Exchange.ONE_WAY
    min_gain: float | None = None
    processes: ProcessQuestion | None = None
    relative_gap: float = solvers.DEFAULT_RELATIVE_GAP
    time_limit_s: float = solvers.DEFAULT_TIME_LIMIT_S
    uncertain: UncertainPipeline | None = None

    def __post_init__(self) -> None:
        check_number("calculation_us", self.calculation_us, MAX_CALCULATION_US)
        check_number("hiding_overhead_us", self.overhead_us, MAX_CALCULATION_US)
        check_number("hideable_fraction", self.hideable_fraction, 1.0)
        if not 1 <= self.messages <= MAX_HIDDEN_MESSAGES:
            raise InvalidInput(
                f"expected 1 <= messages <= {MAX_HIDDEN_MESSAGES}, got {self.messages}",
                field="messages",
            )
        if self.are_train:
            self._check_train()
        for side in (self.hosts.sender, self.hosts.receiver):
            if any(not 0 <= index < len(self.problem.pipeline) for index in side):
                raise InvalidInput("expected indices of stages", field="host_stages")
        if len({*self.hosts.sender, *self.hosts.receiver}) < len(
            (*self.hosts.sender, *self.hosts.receiver)
        ):
            raise InconsistentInput("expected each stage at most once", field="host_stages")
        if self.processes is not None and self.calculation_us == 0.0:
            raise InconsistentInput(
                "without a calculation there is nothing that more processes could share",
                field="calculation_us",
            )
        if self.streamed and self.messages > 1:
            raise InconsistentInput("one message is streamed, not several", field="messages")
        if self.streamed and len(self.problem.pipeline) == MAX_STAGES:
            raise InconsistentInput(
                f"the calculation is a stage of its own, and {MAX_STAGES} are allowed",
                field="streamed",
            )

    def _check_train(self) -> None:
        problem, messages = self.problem, self.messages
        if messages * problem.message_bytes > MAX_MESSAGE_BYTES:
            raise InconsistentInput(
                f"expected messages x message_bytes <= {MAX_MESSAGE_BYTES} of a train",
                field="messages",
            )
        if messages * problem.count_range().maximum > MAX_TRAIN_FRAGMENTS:
            raise InconsistentInput(
                f"expected messages x fragments <= {MAX_TRAIN_FRAGMENTS} of a train",
                field="messages",
            )

    @property
    def are_train(self) -> bool:
        """Whether several messages follow right behind each other."""
        return self.messages > 1 and self.messages_are is MessagesAre.TRAIN

    @property
    def first_us(self) -> float:
        """The part of the calculation that hides nothing, (1 - f) c."""
        return (1.0 - self.hideable_fraction) * self.calculation_us

    @property
    def before_us(self) -> float:
        """What is over before the message begins to leave: nothing where it is streamed."""
        return 0.0 if self.streamed else self.first_us

    @property
    def behind_us(self) -> float:
        """What the processor has to do while the message is under way, its work aside."""
        fraction = 1.0 if self.streamed else self.hideable_fraction
        return fraction * self.calculation_us + self.overhead_us

    @property
    def overlap(self) -> Overlap | None:
        """The paper's terms of this; None where it is streamed, and without a calculation."""
        if self.calculation_us <= 0.0 or self.streamed:
            return None
        overhead = self.overhead_us / self.calculation_us
        return Overlap(self.hideable_fraction, overhead) if overhead <= MAX_OVERHEAD else None

    @property
    def is_bound(self) -> bool:
        """Whether stages that share a processor make the run time a lower bound."""
        processors = self.hosts.processors(self.exchange)
        return any(len(on) > 1 for on in processors) or (self.streamed and bool(processors))


@dataclass(frozen=True, slots=True)
class LatencyOptimal:
    """The cut of least latency, its run time behind this calculation, and by what share more."""

    fragments: int
    latency_us: float
    with_us: float
    more_by: float


@dataclass(frozen=True, slots=True)
class CountRow:
    """One number of fragments: latency T, the processor's part, and the run time; µs.

    `bound_us` is below the run time of every cut of that count.
    """

    fragments: int
    latency_us: float
    host_us: float
    with_us: float
    bound_us: float


@dataclass(frozen=True, slots=True)
class Hidden:
    """The answer. Times in µs; `with_us` is the evaluator's on whole bytes.

    `gain` is without_us / with_us, `gain_at_most` that over the proven bound.
    `calculation_for_full_hiding_us` is the calculation from which on this cut is hidden wholly,
    None where none is enough.
    """

    question: HideQuestion
    without_us: float
    with_us: float
    lower_bound_us: float
    cut: HiddenCut
    regime: Regime
    latency_optimal: LatencyOptimal
    calculation_for_full_hiding_us: float | None
    gamma: float | None
    window: GammaWindow | None
    rows: tuple[CountRow, ...]
    best_processes: BestProcesses | None
    curve: tuple[ProcessPoint, ...]
    warnings: tuple[Notice, ...]

    @property
    def gain(self) -> float:
        """1 where nothing takes any time."""
        return ratio(self.without_us, self.with_us)

    @property
    def status(self) -> Status:
        """What was proven of `with_us`: the gap is that of the whole run time."""
        before_us, unrounded = self.question.before_us, self.cut.unrounded_us
        return status_of(
            self.with_us,
            None if unrounded is None else before_us + unrounded,
            self.lower_bound_us,
            relative_gap=self.question.relative_gap,
            cut_off=self.cut.cut_off,
        )

    @property
    def relative_gap(self) -> float:
        """(with_us - bound) / bound."""
        return relative_excess(self.with_us, self.lower_bound_us, self.lower_bound_us)

    @property
    def max_gain(self) -> float | None:
        """The model's greatest gain over all communication; None without a calculation."""
        return None if self.overlap is None else self.overlap.peak_gain

    @property
    def overlap(self) -> Overlap | None:
        """The paper's terms of the question."""
        return self.question.overlap

    @property
    def gain_at_most(self) -> float | None:
        """Of the cut without hiding that was found; None where the bound is 0."""
        if self.lower_bound_us <= 0.0:
            return None if self.without_us > 0.0 else 1.0
        return self.without_us / self.lower_bound_us


OnBest = Callable[[Hidden], None]


def ratio(above: float, below: float) -> float:
    """Return the quotient; 1 of two zeros. The divisor of a gain is 0 only where both are."""
    return above / below if below > 0.0 else 1.0


def hide(question: HideQuestion, on_best: OnBest = lambda found: None) -> Hidden:
    """Return run times, the best fragments and the limits of hiding.

    `on_best` is given a whole answer before the search, with the cut of least latency. Raises
    Infeasible where no cut satisfies the limits, and what `solvers.solve` does.
    """
    deadline = Deadline.after(question.time_limit_s)
    processors = question.hosts.processors(question.exchange)
    plain = _solved(question, question.problem, deadline.share(0.3))
    sent_us = question.messages * plain.latency_us
    if question.are_train:
        sent_us = _unhidden(question, plain, (), deadline.share(0.3)).run_us
    unhidden_us, unhidden = sent_us, plain.schedule.fragment_bytes
    if processors:
        alone = _unhidden(question, plain, processors, deadline.share(0.3))
        unhidden_us, unhidden = alone.run_us, alone.fragment_bytes
    problem, known, shift = question.problem, plain, 0
    if question.streamed and question.first_us > 0.0:
        problem, shift = streamed_problem(question), 1
        known = _solved(question, problem, deadline.share(0.5))
    moved = tuple(tuple(index + shift for index in on) for on in processors)
    host = HostWork(question.behind_us, moved, question.messages, question.are_train)
    cut = known.schedule.fragment_bytes
    latency_us = host.sent_us(solvers.evaluator_of(problem.pipeline), cut)
    host_us = host.calculation_us + host.work_us(problem, cut)
    with_us = question.before_us + max(host_us, latency_us)

    def conclude(best: HiddenCut) -> Hidden:
        more_by = max(0.0, ratio(with_us, question.before_us + best.run_us) - 1.0)
        optimal = LatencyOptimal(known.schedule.fragments, latency_us, with_us, more_by)
        return _concluded(question, sent_us, unhidden_us, best, optimal)

    best = hidden_cut(
        problem,
        host,
        known,
        relative_gap=question.relative_gap,
        deadline=deadline,
        shown=_shown_counts(known),
        on_first=lambda first: on_best(conclude(first)),
    )
    found = conclude(best)
    if question.uncertain is not None and not question.streamed and not deadline.passed:
        alone_work = HostWork(0.0, processors, question.messages, question.are_train)
        cuts = HiddenCuts(
            unhidden,
            alone_work,
            question.calculation_us,
            best.fragment_bytes,
            host,
            question.before_us,
        )
        found = _with_interval(found, gain_interval(question.uncertain, cuts))
    on_best(found)
    return found


def _with_interval(found: Hidden, gains: tuple[float, float] | None) -> Hidden:
    """Warn where the costs may be such that hiding loses."""
    if gains is None or found.regime is Regime.LOSS or gains[0] >= 1.0:
        return found
    notice = Notice(
        "interval_contains_loss",
        f"with costs as uncertain as they were fitted the gain is from {gains[0]:.4g} to "
        f"{gains[1]:.4g} (95 %): hiding may lose",
        values=(("from", gains[0]), ("to", gains[1])),
    )
    return replace(found, warnings=(*found.warnings, notice))


def _unhidden(
    question: HideQuestion,
    plain: Solution,
    processors: tuple[tuple[int, ...], ...],
    deadline: Deadline,
) -> HiddenCut:
    """The best cut found for the messages without a calculation."""
    return hidden_cut(
        question.problem,
        HostWork(0.0, processors, question.messages, question.are_train),
        plain,
        relative_gap=question.relative_gap,
        deadline=deadline,
    )


def streamed_problem(question: HideQuestion) -> Problem:
    """Return the message behind the calculation that produces it: a stage of its own, the first."""
    problem, pipeline = question.problem, question.problem.pipeline
    names = unique_names([CALCULATION, *(stage.name for stage in pipeline.stages)])
    cost = 1e3 * question.first_us / problem.message_bytes
    stages = (Stage.of_line(CALCULATION, overhead_us=0.0, ns_per_byte=cost), *pipeline.stages)
    named = tuple(replace(stage, name=name) for stage, name in zip(stages, names, strict=True))
    return replace(problem, pipeline=Pipeline(named, pipeline.delay_us))


def _solved(question: HideQuestion, problem: Problem, deadline: Deadline) -> Solution:
    return solvers.solve(
        problem,
        Strategy.AUTO,
        relative_gap=question.relative_gap,
        time_limit_s=max(1e-3, deadline.remaining_s),
    )


def _shown_counts(known: Solution) -> tuple[int, ...]:
    """Counts from 1 to beyond that of the least latency, all of them where these are few."""
    last = min(2 * known.schedule.fragments, known.schedule.fragments + 4)
    step = max(1, last // _SHOWN_COUNTS)
    if last > _MAX_SHOWN:
        return ()
    return tuple(range(1, last + 1, step))


def _concluded(
    question: HideQuestion,
    sent_us: float,
    unhidden_us: float,
    best: HiddenCut,
    latency_optimal: LatencyOptimal,
) -> Hidden:
    before_us = question.before_us
    without_us, with_us = question.calculation_us + unhidden_us, before_us + best.run_us
    curve, best_processes = _curve_of(question, sent_us)
    found = Hidden(
        question=question,
        without_us=without_us,
        with_us=with_us,
        lower_bound_us=min(with_us, before_us + best.lower_bound_us),
        cut=best,
        regime=_regime(without_us, with_us, best),
        latency_optimal=latency_optimal,
        calculation_for_full_hiding_us=_enough_us(question, best),
        gamma=question.calculation_us / sent_us if sent_us > 0.0 else None,
        window=_window(question),
        rows=tuple(_row(point, before_us) for point in best.points),
        best_processes=best_processes,
        curve=curve,
        warnings=(),
    )
    return replace(found, warnings=tuple(_warnings(found)))


def _row(point: HiddenPoint, before_us: float) -> CountRow:
    return CountRow(
        point.fragments,
        point.latency_us,
        point.host_us,
        before_us + point.run_us,
        before_us + point.bound_us,
    )


def _regime(without_us: float, with_us: float, best: HiddenCut) -> Regime:
    if with_us > without_us:
        return Regime.LOSS
    is_hidden = best.latency_us <= best.host_us
    return Regime.FULLY_HIDDEN if is_hidden else Regime.COMMUNICATION_BOUND


def _enough_us(question: HideQuestion, best: HiddenCut) -> float | None:
    """The calculation that hides this cut wholly: f c + o + w >= T; streamed, T grows with c."""
    if question.streamed or question.hideable_fraction == 0.0:
        return None
    missing_us = best.latency_us - (best.host_us - question.behind_us) - question.overhead_us
    enough = max(0.0, missing_us) / question.hideable_fraction
    return enough if enough <= MAX_CALCULATION_US else None


def _window(question: HideQuestion) -> GammaWindow | None:
    overlap = question.overlap
    if overlap is None or question.min_gain is None:
        return None
    return gamma_window(overlap, question.min_gain)


def _curve_of(
    question: HideQuestion, sent_us: float
) -> tuple[tuple[ProcessPoint, ...], BestProcesses | None]:
    """The communication is that of the least latency; what hiding adds is a time for each."""
    overlap = question.overlap
    if overlap is None:
        return (), None
    sent = sent_us / question.calculation_us
    return of_processes(question.processes, sent, overlap, overhead_grows=True)


def _warnings(found: Hidden) -> Iterator[Notice]:
    question, best = found.question, found.cut
    if found.regime is Regime.LOSS:
        yield replace(HIDING_LOSES, values=(("us", found.with_us - found.without_us),))
    if found.latency_optimal.more_by > _WORTH_SAYING:
        yield Notice(
            "latency_cut_is_not_best",
            "the fragments of least latency take longer behind this calculation: each costs the "
            "processor its overhead",
            values=(("share", found.latency_optimal.more_by),),
        )
    if best.latency_us > best.host_us:
        yield Notice(
            "not_hidden_by",
            "the message ends after the calculation",
            values=(("us", best.latency_us - best.host_us),),
        )
    if question.is_bound:
        yield Notice(
            "exchange_is_bound",
            "stages that share a processor also delay each other: the run times are lower bounds",
        )
    if question.hosts.sender or question.hosts.receiver:
        yield Notice(
            "assumes_preemption", "what communicates is taken to interrupt the calculation at once"
        )
    if question.messages > 1 and not question.are_train:
        yield Notice("serial_messages", "the messages are sent one after the other")
    if len(question.problem.pipeline) == 1 and not question.streamed:
        yield Notice("fragments_overlap_nothing", "one stage alone: fragments of it do not overlap")
