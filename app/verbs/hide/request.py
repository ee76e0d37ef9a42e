"""What contract/hide.py declares, as the domain has it: of a pipeline, or of ratios."""

from __future__ import annotations

from dataclasses import replace

from analysis.hidden_ratios import ModelQuestion, ProcessQuestion
from analysis.hiding import MAX_TRAIN_FRAGMENTS, Exchange, HideQuestion, MessagesAre
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

_OF_PIPELINES = (
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


def source_question(asked: HideIn) -> Question:
    """Return the question that finds or fits the pipeline. Raises InvalidInput."""
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
    size = "A message" if asked.message_bytes is None else format_bytes(asked.message_bytes)
    return f"{size} behind a calculation"
