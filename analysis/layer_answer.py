"""What a messaging layer costs on messages of several sizes: work, stages, and what features save.

One question and its whole answer, for the service, the command line and reports alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import solvers
from analysis.comparison import Cell, Solve
from analysis.feature_savings import (
    FeatureStages,
    TunedMessage,
    TuningQuestion,
    stages_with_features,
    tuned,
)
from analysis.layer_cost import LayerSums, Work, check_out_of_order, packet_curve
from analysis.layer_stages import StageQuestion, is_pipeline
from contract.limits import MAX_LAYER_MESSAGES, MAX_PACKET_SIZES
from domain.errors import InconsistentInput, InvalidInput
from domain.instruction_counts import CycleModel, sum_of
from domain.messaging_layer import MessageUnits, MessagingLayer, NetworkFeature
from domain.problem import DEFAULT_FRAGMENT_CAP
from domain.solution import Notice, Status, Strategy

_MAX_US = 10**30


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerQuestion:
    """What is asked about a layer. Raises InvalidInput, MissingClassCost and NotPublished.

    `costs` None: instructions alone are told. `features` are those whose savings are wanted, each
    alone and all together. `packet_words` are packet sizes whose work is wanted beside the layer's
    own; with the mapping `packet` the largest of them bounds the packets that are chosen. `tune`
    cuts each message anew for each set of features, `time_limit_s` for all of them.
    """

    layer: MessagingLayer
    costs: CycleModel | None
    message_bytes: tuple[int, ...]
    features: tuple[NetworkFeature, ...] = ()
    packet_words: tuple[int, ...] = ()
    stages: StageQuestion = field(default_factory=StageQuestion)
    tune: bool = False
    out_of_order: float | None = None
    relative_gap: float = solvers.DEFAULT_RELATIVE_GAP
    time_limit_s: float = solvers.DEFAULT_TIME_LIMIT_S
    fragment_cap: int = DEFAULT_FRAGMENT_CAP

    def __post_init__(self) -> None:
        if not 1 <= len(self.message_bytes) <= MAX_LAYER_MESSAGES:
            raise InvalidInput(
                f"expected 1 to {MAX_LAYER_MESSAGES} message sizes", field="message_bytes"
            )
        if len(self.packet_words) > MAX_PACKET_SIZES:
            raise InvalidInput(
                f"expected at most {MAX_PACKET_SIZES} packet sizes", field="packet_words"
            )
        for size in self.message_bytes:
            for words in (self.layer.packet_words, *self.packet_words):
                MessageUnits.of(self.layer, size, words)
        self._check_times()
        check_out_of_order(self.layer, self.out_of_order)
        if self.costs is not None:
            self.costs.cycles_of(sum_of(one.counts for one in self.layer.components))
        if self.tune and not self.has_clock:
            raise InconsistentInput(
                "expected clock_mhz, and the cycles of every class: a cut is tuned by time",
                field="clock_mhz",
            )

    def _check_times(self) -> None:
        """Raise InconsistentInput where no number can hold the time of a message. Pipelines have
        limits of their own.
        """
        if self.costs is None or not self.has_clock or is_pipeline(self.layer, self.stages):
            return
        largest = MessageUnits.of(self.layer, max(self.message_bytes), self.layer.packet_words)
        work = LayerSums.of(self.layer, self.costs).work(largest.filled)
        if self.costs.us_of(work.counts) > _MAX_US:
            raise InconsistentInput(
                f"the cycles of a message take more than {_MAX_US:g} µs", field="clock_mhz"
            )

    @property
    def has_clock(self) -> bool:
        """Whether work has a time."""
        return self.costs is not None and self.costs.clock_mhz is not None

    def pipelines(self) -> tuple[FeatureStages, ...]:
        """Return the stages as it is, with each feature, with all; none without a clock, and none
        where transfers wait for each other. Raises InvalidInput.
        """
        if self.costs is None or not self.has_clock:
            return ()
        return stages_with_features(self.layer, self.costs, self.stages, self.features)


@dataclass(frozen=True, slots=True)
class MessageCosts:
    """One message's work, that of full packets where its last one is not, and at other packets."""

    work: Work
    full_packets: Work | None
    packet_sizes: tuple[Work, ...]


@dataclass(frozen=True, slots=True)
class LayerAnswer:
    """The answer: a row a message. `tuned` is empty where that was not asked for, or cannot be."""

    question: LayerQuestion
    pipelines: tuple[FeatureStages, ...]
    messages: tuple[MessageCosts, ...]
    tuned: tuple[TunedMessage, ...] = ()

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What the answer does not say, or says of other messages than asked for."""
        return tuple(_notices(self))


def layer_costs(
    question: LayerQuestion,
    solve: Solve = solvers.solve,
    on_progress: Callable[[int, int, LayerAnswer], None] | None = None,
) -> LayerAnswer:
    """Return what a layer costs. Raises InvalidInput.

    `on_progress` is called before the first and after each solve with how many are done, of how
    many, and the answer so far.
    """
    sums, pipelines = LayerSums.of(question.layer, question.costs), question.pipelines()
    messages = tuple(_message(question, sums, size) for size in question.message_bytes)
    answer = LayerAnswer(question, pipelines, messages)
    if not question.tune or not pipelines:
        return answer
    tuning = TuningQuestion(
        pipelines=pipelines,
        message_bytes=question.message_bytes,
        relative_gap=question.relative_gap,
        time_limit_s=question.time_limit_s,
        fragment_cap=question.fragment_cap,
    )
    total = len(question.message_bytes) * len(pipelines)

    def on_cell(done: int, found: tuple[TunedMessage, ...]) -> None:
        if on_progress is not None:
            on_progress(done, total, LayerAnswer(question, pipelines, messages, found))

    if on_progress is not None:
        on_progress(0, total, answer)
    return LayerAnswer(question, pipelines, messages, tuned(tuning, solve, on_cell))


def _message(question: LayerQuestion, sums: LayerSums, message_bytes: int) -> MessageCosts:
    units = MessageUnits.of(question.layer, message_bytes, question.layer.packet_words)
    return MessageCosts(
        sums.work(units),
        sums.work(units.filled) if units.is_partial else None,
        packet_curve(sums, message_bytes, question.packet_words),
    )


def ended(answer: LayerAnswer, why: str) -> LayerAnswer:
    """Return the answer of a question whose solves were ended: those to come say why they have no
    cut.
    """
    sets = len(answer.pipelines)
    known = answer.tuned or tuple(
        TunedMessage(size, (None,) * sets, (None,) * sets) for size in answer.question.message_bytes
    )

    def explained(message: TunedMessage) -> TunedMessage:
        said = f"not tried: {why}"
        open_cell = Cell(message.message_bytes, Strategy.AUTO, None, said, is_late=True)
        return replace(message, cells=tuple(one or open_cell for one in message.cells))

    return LayerAnswer(
        answer.question, answer.pipelines, answer.messages, tuple(map(explained, known))
    )


def _notices(answer: LayerAnswer) -> Iterator[Notice]:
    question, messages = answer.question, answer.messages
    if question.costs is None:
        yield Notice(
            "no_cycle_model",
            "nothing says how many cycles an instruction takes: instructions are told alone, and "
            "no stages",
        )
    elif not question.has_clock:
        yield Notice("no_clock", "no clock is given: cycles are told, and no stages")
    if not is_pipeline(question.layer, question.stages):
        yield Notice(
            "not_a_pipeline",
            "every transfer waits for trips before its own data, so that none overlaps with "
            "another: that is no pipeline, and work is told alone",
        )
    yield from _late(answer)
    partial = sum(one.full_packets is not None for one in messages)
    if partial:
        yield Notice(
            "partial_packet",
            f"{partial} of {len(messages)} messages do not fill their last packet: their words, "
            "rounded up, are counted, and full packets beside",
            values=(("messages", float(partial)),),
        )
    if not all(one.work.is_whole for one in messages):
        yield Notice(
            "half_instructions",
            "some counts are no whole numbers: they are means, of what is done once for two words "
            "or for some packets only",
        )


def _late(answer: LayerAnswer) -> Iterator[Notice]:
    """Say how many cuts time ended, before or in their search."""
    cells = [cell for message in answer.tuned for cell in message.cells if cell is not None]
    missing = sum(cell.is_late for cell in cells)
    found = [cell.solution for cell in cells if cell.solution is not None]
    open_ = sum(one.status is Status.TIME_LIMIT for one in found)
    if missing or open_:
        yield Notice(
            "time_limit",
            f"time ended before {missing} of {len(cells)} cuts were found, and the search for a "
            f"better one in {open_}: savings that need one that is missing are null",
            values=(("missing", float(missing)), ("not_ended", float(open_))),
        )
