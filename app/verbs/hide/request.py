"""What contract/hide.py declares, as the domain has it: of a pipeline, or of ratios."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from analysis.hidden_ratios import ModelQuestion, ProcessQuestion
from analysis.hiding import (
    CALCULATION,
    MAX_TRAIN_FRAGMENTS,
    Exchange,
    HideQuestion,
    MessagesAre,
)
from analysis.uncertainty import UncertaintyQuestion
from app.questions.question import Question
from app.schemas.base import read_request
from app.schemas.host_stages import host_stages, of_stages
from app.schemas.source import check_exactly_one, costs_question
from contract.hide import SOURCES_OF_HIDING, HideIn, ProcessesIn
from contract.limits import MAX_CALCULATION_US
from contract.source import SOURCES
from domain.errors import InconsistentInput
from domain.hiding import CountRange, Granularity, Overlap, SpeedupReference
from domain.problem import AnyProblem, Problem
from domain.uncertainty import UncertainPipeline
from domain.units import format_bytes

if TYPE_CHECKING:
    from analysis.hidden_items import HiddenItemsQuestion, ItemWork
    from domain.items import FillRule, ItemProblem, ItemSequence

_OF_ITEMS = ("fill", "cap_bytes", "fragment_overhead_us", "loading")
_NOT_OF_ITEMS = {
    "message_bytes": "items are given: they are the message, and their sizes say its own",
    "messages": "items are one message",
    "messages_are": "items are one message",
    "hideable_fraction": "all of the calculation makes items, or takes them",
    "hiding_overhead_us": "what hiding costs is said a fragment, by fragment_overhead_us",
    "host_stages": "what the calculating processor does is said a fragment, by "
    "fragment_overhead_us",
    "exchange": "items are sent one way",
    "min_gain": "it is reached by a share of the calculation, and all of it makes items",
    "processes": "curves by processes are of a message that may be cut at any byte",
    "aggregate": "items need the time of every stage, and this is an aggregate",
}
_OF_PIPELINES = (
    *("items", *_OF_ITEMS),
    "message_bytes",
    "messages",
    "messages_are",
    "calculation_us",
    "instructions",
    "instructions_per_us",
    "streamed",
    "hiding_overhead_us",
    "host_stages",
    "exchange",
    "constraints",
)

_EXPONENTS = {"constant": 0.0, "sqrt": 0.5, "linear": 1.0}


def processes_question(asked: ProcessesIn) -> ProcessQuestion:
    """Return what is asked. Raises InconsistentInput."""
    if asked.min_processes > asked.max_processes:
        raise InconsistentInput(
            "expected min_processes <= max_processes", field="processes.min_processes"
        )
    if (asked.exponent is None) == (asked.communication == "exponent"):
        raise InconsistentInput(
            "expected an exponent with the communication `exponent`, and with no other",
            field="processes.exponent",
        )
    exponent = _EXPONENTS.get(asked.communication, asked.exponent)
    counts = CountRange(asked.min_processes, asked.max_processes)
    return ProcessQuestion(
        counts, asked.at, exponent or 0.0, SpeedupReference(asked.speedup_reference)
    )


def model_question(asked: HideIn) -> ModelQuestion | None:
    """Return the question in the paper's terms; None where a pipeline is asked about.

    Raises InvalidInput for sources that exclude others, and fields that need a pipeline.
    """
    check_exactly_one({name: getattr(asked, name) for name in SOURCES_OF_HIDING})
    if asked.granularity is None:
        return None
    said = asked.said()
    for name in _OF_PIPELINES:
        if name in said:
            raise InconsistentInput(
                f"{name} needs a pipeline, and granularity has none", field=name
            )
    given = asked.granularity
    return ModelQuestion(
        Granularity(given.software, given.hardware),
        Overlap(asked.hideable_fraction, given.overhead),
        asked.min_gain,
        None if asked.processes is None else processes_question(asked.processes),
    )


@dataclass(frozen=True, slots=True)
class AskedHiddenItems:
    """Items beside a calculation: `given` as they were asked, `sequence` without the calculation,
    which is `work`.
    """

    given: ItemSequence
    sequence: ItemSequence
    work: ItemWork
    fill: FillRule


def hidden_items(asked: HideIn) -> AskedHiddenItems:
    """Return the items and their calculation. Raises ItemsDeclined for what items do not go with,
    and InconsistentInput where the calculation is said twice, or not.
    """
    from app.schemas.items import fill_of, refuse_beside_items, refuse_limits, sequence_of
    from domain.items import FillRule

    assert asked.items is not None, "items are asked about"
    refuse_beside_items(_NOT_OF_ITEMS, asked.said())
    refuse_limits(asked.constraints)
    given = sequence_of(asked.items)
    sequence, work = _split(asked, given)
    if work.whole_us > MAX_CALCULATION_US:
        raise InconsistentInput(
            f"expected a calculation of at most {MAX_CALCULATION_US:g} µs of all items",
            field=f"items.stage_us.{CALCULATION}",
        )
    return AskedHiddenItems(given, sequence, work, fill_of(asked.fill) or FillRule())


def _split(asked: HideIn, given: ItemSequence) -> tuple[ItemSequence, ItemWork]:
    """The items without their calculation, and it."""
    from analysis.hidden_items import ItemWork

    columns = dict(given.stage_us)
    by_item = columns.pop(CALCULATION, None)
    is_made_ready = given.ready_us is not None and not asked.loading
    is_said = asked.calculation_us is not None or asked.instructions is not None
    ways = {
        "calculation_us": is_said,
        f"items.stage_us.{CALCULATION}": by_item is not None,
        "items.ready_us": is_made_ready,
    }
    said = [name for name, is_given in ways.items() if is_given]
    if len(said) != 1:
        known = [*ways][: 2 if asked.loading else 3]
        raise InconsistentInput(
            f"expected the calculation once, by one of {', '.join(known)}",
            field=said[-1] if said else "calculation_us",
        )
    ready = None if is_made_ready else given.ready_us
    sequence = replace(given, stage_us=tuple(columns.items()), ready_us=ready)
    if is_made_ready:
        return sequence, ItemWork.of_ready(given)
    if by_item is not None:
        return sequence, ItemWork.of_work(by_item)
    return sequence, ItemWork.by_bytes(sequence, calculation_us(asked))


def hidden_items_question(
    asked: HideIn, items: AskedHiddenItems, problem: ItemProblem
) -> HiddenItemsQuestion:
    """Return the question about items across stages that were found. Raises InconsistentInput."""
    from analysis.hidden_items import HiddenItemsQuestion

    return HiddenItemsQuestion(
        problem,
        items.work,
        asked.fragment_overhead_us,
        asked.loading,
        items.fill,
        asked.cap_bytes,
        asked.relative_gap,
        asked.time_limit_s,
    )


def source_question(asked: HideIn) -> Question:
    """Return the question that finds or fits the pipeline. Raises InvalidInput."""
    from app.schemas.items import refuse_without_items

    refuse_without_items(asked.said(), *_OF_ITEMS)
    if asked.message_bytes is None:
        raise InconsistentInput("expected message_bytes", field="message_bytes")
    calculation_us(asked)
    return costs_question(asked, asked.message_bytes, asked.constraints)


def pipeline_question(
    asked: HideIn, problem: AnyProblem, errors: UncertaintyQuestion | None = None
) -> HideQuestion:
    """Return what is hidden behind what, for the pipeline found. Raises InvalidInput, and
    StrategyDeclined where its stages are not known.
    """
    source = next(name for name in SOURCES if getattr(asked, name) is not None)
    staged = of_stages(problem, field=source)
    uncertain = None if errors is None else errors.model
    return HideQuestion(
        problem=_of_train(asked, staged),
        calculation_us=calculation_us(asked),
        hideable_fraction=asked.hideable_fraction,
        streamed=asked.streamed,
        overhead_us=asked.hiding_overhead_us,
        messages=asked.messages,
        messages_are=MessagesAre(asked.messages_are),
        hosts=host_stages(asked.host_stages, staged),
        exchange=Exchange(asked.exchange),
        min_gain=asked.min_gain,
        processes=None if asked.processes is None else processes_question(asked.processes),
        relative_gap=asked.relative_gap,
        time_limit_s=asked.time_limit_s,
        uncertain=uncertain if isinstance(uncertain, UncertainPipeline) else None,
    )


def _of_train(asked: HideIn, problem: Problem) -> Problem:
    """Return the problem with as many fragments as a train may have. Raises InconsistentInput.

    The answer's `constraints` say so.
    """
    if asked.messages_are == "serial" or asked.messages == 1:
        return problem
    most = MAX_TRAIN_FRAGMENTS // asked.messages
    if problem.count_range().minimum > most:
        raise InconsistentInput(
            f"expected messages x fragments <= {MAX_TRAIN_FRAGMENTS} of a train",
            field="messages",
        )
    if problem.count_range().maximum <= most:
        return problem
    return replace(problem, limits=replace(problem.limits, max_fragments=most))


def calculation_us(asked: HideIn) -> float:
    """Return the calculation, µs. Raises InconsistentInput where it is said twice, or not."""
    if (asked.calculation_us is None) == (asked.instructions is None):
        raise InconsistentInput(
            "expected exactly one of calculation_us, instructions", field="calculation_us"
        )
    if asked.calculation_us is not None:
        if asked.instructions_per_us is not None:
            raise InconsistentInput(
                "instructions_per_us is the speed of instructions, and there are none",
                field="instructions_per_us",
            )
        return asked.calculation_us
    if asked.instructions_per_us is None:
        raise InconsistentInput(
            "expected instructions_per_us beside instructions", field="instructions_per_us"
        )
    time_us = (asked.instructions or 0.0) / asked.instructions_per_us
    if time_us > MAX_CALCULATION_US:
        raise InconsistentInput(
            f"expected instructions / instructions_per_us <= {MAX_CALCULATION_US:g} µs",
            field="instructions",
        )
    return time_us


def title(request: bytes) -> str:
    """Return what a job is called on its page."""
    asked = read_request(HideIn, request)
    if asked.items is not None:
        return "Items behind a calculation"
    size = "A message" if asked.message_bytes is None else format_bytes(asked.message_bytes)
    return f"{size} behind a calculation"
