"""Cost models as they are asked about and sent: stages in a pipeline, or an aggregate of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields

from app.schemas.base import same_named
from app.text.numbers import format_percent
from app.text.units import printable
from contract.constraints import ConstraintsIn, ConstraintsOut
from contract.pipeline import (
    AggregateIn,
    AggregateOut,
    HandoffStageOut,
    LineCostIn,
    LineHandoffStageOut,
    LineStageOut,
    PipelineIn,
    PipelineOut,
    RangeOut,
    RangesCostIn,
    RangesHandoffStageOut,
    RangesStageOut,
    StageOut,
)
from contract.sensitivities import CostChangeOut, SensitivitiesOut, SlopeOut, StageSensitivityOut
from domain.aggregate import Aggregate
from domain.errors import InvalidStage
from domain.model import CostModel
from domain.pipeline import FitRange, Pipeline, Stage, stage_name
from domain.problem import FragmentLimits
from domain.sensitivity import Sensitivities, Slope

# --- what is asked about --------------------------------------------------------------------------


def asked_pipeline(given: PipelineIn) -> Pipeline:
    """Return the domain's pipeline. Raises InvalidStage naming the stage at fault."""
    stages = tuple(
        stage_of(stage, number, field=f"pipeline.stages.{number - 1}")
        for number, stage in enumerate(given.stages, start=1)
    )
    return Pipeline(stages, given.delay_us)


def asked_aggregate(given: AggregateIn) -> Aggregate:
    """Return the domain's aggregate. Raises InvalidStage naming the part at fault."""
    return Aggregate(
        stage_of(given.total, 1, field="aggregate.total", called="the total"),
        stage_of(given.bottleneck, 2, field="aggregate.bottleneck", called="the bottleneck"),
        given.delay_us,
        given.total_is_uncut,
    )


def stage_of(
    given: LineCostIn | RangesCostIn, number: int, *, field: str, called: str = ""
) -> Stage:
    """Return the domain's stage; `number` names it where nobody did.

    Raises InvalidStage naming the field at fault inside this one. `called` says in the refusal
    which one it is, where its number does not.
    """
    name = given.name or stage_name(number)
    try:
        return Stage(name, _ranges_of(given), getattr(given, "handoff_bytes", None))
    except InvalidStage as refusal:
        place = f"{field}.{refusal.field}"
        which = called or stage_name(number)
        raise InvalidStage(f"{which}: {refusal.detail}", field=place) from None


def _ranges_of(costs: LineCostIn | RangesCostIn | StageOut) -> tuple[FitRange, ...]:
    if isinstance(costs, RangesCostIn | RangesStageOut):
        return tuple(
            FitRange(part.overhead_us, part.ns_per_byte, part.up_to_bytes) for part in costs.ranges
        )
    return (FitRange(costs.overhead_us, costs.ns_per_byte, None),)


def limits_of(given: ConstraintsIn | ConstraintsOut) -> FragmentLimits:
    """Return the domain's limits. Raises InvalidLimits."""
    return FragmentLimits(
        given.min_fragment_bytes,
        given.max_fragment_bytes,
        given.alignment_bytes,
        given.max_fragments,
    )


# --- what is sent ---------------------------------------------------------------------------------


def stage_out(stage: Stage) -> StageOut:
    """Return a stage in the form that requests have."""
    grain = stage.handoff_bytes
    if stage.is_line:
        line = stage.ranges[0]
        costs = stage.name, line.overhead_us, line.ns_per_byte
        return LineStageOut(*costs) if grain is None else LineHandoffStageOut(*costs, grain)
    ranges = tuple(same_named(RangeOut, part) for part in stage.ranges)
    if grain is None:
        return RangesStageOut(stage.name, ranges)
    return RangesHandoffStageOut(stage.name, ranges, grain)


def pipeline_out(pipeline: Pipeline) -> PipelineOut:
    """Return a pipeline as it is sent."""
    return PipelineOut(tuple(map(stage_out, pipeline.stages)), pipeline.delay_us)


def aggregate_out(aggregate: Aggregate) -> AggregateOut:
    """Return an aggregate as it is sent."""
    line = aggregate.total.ranges[0] if aggregate.total.is_line else None
    return AggregateOut(
        line.overhead_us if line else None,
        line.ns_per_byte if line else None,
        stage_out(aggregate.total),
        stage_out(aggregate.bottleneck),
        aggregate.delay_us,
        aggregate.total_is_uncut,
    )


def pipeline_or_none(model: CostModel) -> PipelineOut | None:
    """Return the model as it is sent, made once; None for one that is no pipeline."""
    return model.derived(pipeline_out) if isinstance(model, Pipeline) else None


def aggregate_or_none(model: CostModel) -> AggregateOut | None:
    """Return the model as it is sent, None for one that is no aggregate."""
    return aggregate_out(model) if isinstance(model, Aggregate) else None


def given_aggregate(aggregate: AggregateOut) -> dict[str, object]:
    """Return an aggregate as a request gives it, without the sums that follow from it."""
    return {each.name: getattr(aggregate, each.name) for each in fields(AggregateIn)}


def constraints_out(limits: FragmentLimits) -> ConstraintsOut:
    """Return the limits as they are sent."""
    return same_named(ConstraintsOut, limits)


# --- what was sent and stored ---------------------------------------------------------------------


def stored_stage(stage: StageOut) -> Stage:
    """Return the domain's stage of a stored one. Raises InvalidStage."""
    grain = stage.handoff_bytes if isinstance(stage, HandoffStageOut) else None
    return Stage(stage.name, _ranges_of(stage), grain)


def stored_pipeline(sent: PipelineOut) -> Pipeline:
    """Return the domain's pipeline of a stored one. Raises InvalidStage."""
    return Pipeline(tuple(map(stored_stage, sent.stages)), sent.delay_us)


def stored_model(sent: PipelineOut | AggregateOut) -> CostModel:
    """Return the domain's model of a stored one. Raises InvalidStage."""
    if isinstance(sent, PipelineOut):
        return stored_pipeline(sent)
    costs = stored_stage(sent.total), stored_stage(sent.bottleneck)
    return Aggregate(*costs, sent.delay_us, sent.total_is_uncut)


# --- how an answer's latency moves with its stages ------------------------------------------------


def slope_out(found: Slope, unit: float = 1.0) -> SlopeOut:
    """Return the derivatives by a parameter in this unit."""
    falling, rising = found.falling, found.rising
    return SlopeOut(
        None if falling is None else falling * unit, None if rising is None else rising * unit
    )


def sensitivities_out(found: Sensitivities | None, model: CostModel) -> SensitivitiesOut | None:
    """Return the same as it is sent and stored, None where nothing is known."""
    if found is None or not isinstance(model, Pipeline):
        return None
    names = [stage.name for stage in model.stages]
    return SensitivitiesOut(
        found.basis,
        _deciding_sentence(found, names),
        slope_out(found.message),
        tuple(
            StageSensitivityOut(
                name,
                slope_out(stage.overhead),
                slope_out(stage.per_byte, 1e-3),
                tuple(same_named(CostChangeOut, change) for change in stage.changes),
            )
            for name, stage in zip(names, found.stages, strict=True)
        ),
    )


def _deciding_sentence(found: Sensitivities, names: Sequence[str]) -> str:
    """Return which stage's costs matter most, and what 10 % less of them saves.

    A stage decides where that is half of what 10 % less of all stages would save, or more.
    """
    if (deciding := found.deciding) is None:
        return "No stage decides: 10 % less of the costs of any one saves nothing with this cut."
    how = "decides" if deciding.saved >= deciding.by / 2.0 else "matters most"
    less, saved = f"{deciding.by * 100:.0f} % less cost", format_percent(deciding.saved)
    cut = "" if deciding.is_solved else " with this cut"
    return f"Stage {names[deciding.stage]} {how}: {less} there saves {saved}{cut}."


def sensitivity_facts(found: SensitivitiesOut) -> Iterator[tuple[str, str]]:
    """Yield how the latency moves, in words: the sentence, and each stage's figures."""
    yield "what decides", found.sentence
    for stage in found.stages:
        parts = [
            f"{_sides(stage.by_overhead)} per µs of overhead",
            f"{_sides(stage.by_ns_per_byte)} per ns/byte",
        ]
        yield printable(stage.name), ", ".join(part for part in parts if part[0] != " ")


def _sides(slope: SlopeOut) -> str:
    """The derivative in µs, two where they differ by a digit that is shown; "" where none is."""
    shown = [f"{side:.4g}" for side in (slope.falling, slope.rising) if side is not None]
    return " to ".join(dict.fromkeys(shown)) + " µs" * bool(shown)
