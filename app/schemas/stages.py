"""Cost models as they are asked about and sent: stages in a pipeline or a machine, or an aggregate
of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

from app.schemas.base import same_named
from app.text.numbers import format_percent
from app.text.units import format_time, printable
from contract.constraints import ConstraintsIn, ConstraintsOut
from contract.pipeline import (
    AggregateIn,
    AggregateOut,
    LineCostIn,
    LineStageIn,
    LineStageOut,
    PipelineIn,
    PipelineOut,
    RangeOut,
    RangesCostIn,
    RangesStageIn,
    RangesStageOut,
    StageOut,
    WindowIn,
    WindowOut,
)
from contract.sensitivities import (
    CostChangeOut,
    PlacesChangeOut,
    SensitivitiesOut,
    SlopeOut,
    StageSensitivityOut,
    WindowSensitivityOut,
)
from domain.aggregate import Aggregate
from domain.errors import InconsistentInput, InvalidStage
from domain.machine import Machine, StageRules, Window, check_plain
from domain.model import CostModel
from domain.pipeline import FitRange, Pipeline, Stage, stage_name
from domain.problem import FragmentLimits
from domain.sensitivity import PlacesChange, Sensitivities, Slope, WordSensitivity
from domain.units import format_bytes

# --- what is asked about --------------------------------------------------------------------------


def asked_pipeline(given: PipelineIn) -> Pipeline | Machine:
    """Return the domain's pipeline, or its machine where a stage or the pipeline says a word that
    plain stages do not have. Raises InvalidStage naming the field at fault.
    """
    stages = tuple(
        stage_of(stage, number, field=f"pipeline.stages.{number - 1}")
        for number, stage in enumerate(given.stages, start=1)
    )
    costs = Pipeline(stages, given.delay_us)
    if not given.windows and all(_words_of(stage) == _NONE_GIVEN for stage in given.stages):
        return costs
    rules = tuple(
        rules_of(stage, number, field=f"pipeline.stages.{number - 1}")
        for number, stage in enumerate(given.stages, start=1)
    )
    if not given.windows and all(one.is_plain for one in rules):
        return costs
    names = [stage.name for stage in stages]
    windows = tuple(
        _window_of(window, names, field=f"pipeline.windows.{place}")
        for place, window in enumerate(given.windows or ())
    )
    try:
        return Machine(costs, rules, windows)
    except InvalidStage as refusal:
        raise InvalidStage(refusal.detail, field=f"pipeline.{refusal.field}") from None


def _words_of(stage: LineStageIn | RangesStageIn | StageOut) -> tuple[object, ...]:
    return stage.lanes, stage.shared_ns_per_byte, stage.delay_us, stage.processor


_NONE_GIVEN, _NONE_SENT = (None, None, None, None), (1, 0.0, 0.0, None)


def rules_of(given: LineStageIn | RangesStageIn, number: int, *, field: str) -> StageRules:
    """Return how a stage handles fragments. Raises InvalidStage as `stage_of` does."""
    try:
        return StageRules(
            1 if given.lanes is None else given.lanes,
            given.shared_ns_per_byte or 0.0,
            given.delay_us or 0.0,
            given.processor,
        )
    except InvalidStage as refusal:
        raise _at_stage(refusal, stage_name(number), field) from None


def _window_of(given: WindowIn, names: list[str], *, field: str) -> Window:
    """Return the window over stages of these names. Raises InvalidStage."""
    places = []
    for end, name in (("from", given.from_), ("to", given.to)):
        if names.count(name) != 1:
            rule = "only one stage has" if name in names else "a stage of this pipeline has"
            raise InvalidStage(f"expected a name that {rule}", field=f"{field}.{end}")
        places.append(names.index(name))
    try:
        first, last = places
        return Window(first, last, given.fragments, given.bytes, given.return_us)
    except InvalidStage as refusal:
        raise InvalidStage(refusal.detail, field=f"{field}.{refusal.field}") from None


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
        raise _at_stage(refusal, called or stage_name(number), field) from None


def _at_stage(refusal: InvalidStage, which: str, field: str) -> InvalidStage:
    return InvalidStage(f"{which}: {refusal.detail}", field=f"{field}.{refusal.field}")


def _ranges_of(costs: LineCostIn | RangesCostIn | StageOut) -> tuple[FitRange, ...]:
    if isinstance(costs, RangesCostIn | RangesStageOut):
        return tuple(
            FitRange(part.overhead_us, part.ns_per_byte, part.up_to_bytes) for part in costs.ranges
        )
    return (FitRange(costs.overhead_us, costs.ns_per_byte, None),)


def limits_of(given: ConstraintsIn | ConstraintsOut, *, items: bool = False) -> FragmentLimits:
    """Return the domain's limits; that on the number of items is said by whoever takes `items`.

    Raises InvalidLimits, and InconsistentInput for one on items without any.
    """
    if not items and given.max_fragment_items is not None:
        raise InconsistentInput(
            "max_fragment_items goes with items alone", field="constraints.max_fragment_items"
        )
    return FragmentLimits(
        given.min_fragment_bytes,
        given.max_fragment_bytes,
        given.alignment_bytes,
        given.max_fragments,
    )


# --- what is sent ---------------------------------------------------------------------------------


_PLAIN = StageRules()


def stage_out(stage: Stage, rules: StageRules = _PLAIN) -> StageOut:
    """Return a stage in the form that requests have."""
    words = (
        stage.handoff_bytes,
        rules.lanes,
        rules.shared_ns_per_byte,
        rules.delay_us,
        rules.processor,
    )
    if stage.is_line:
        line = stage.ranges[0]
        return LineStageOut(stage.name, line.overhead_us, line.ns_per_byte, *words)
    ranges = tuple(same_named(RangeOut, part) for part in stage.ranges)
    return RangesStageOut(stage.name, ranges, *words)


def pipeline_out(model: Pipeline | Machine) -> PipelineOut:
    """Return a pipeline or a machine as it is sent."""
    if isinstance(model, Pipeline):
        return PipelineOut(tuple(map(stage_out, model.stages)), model.delay_us)
    stages = tuple(map(stage_out, model.stages, model.rules))
    windows = tuple(_window_out(window, model) for window in model.windows)
    return PipelineOut(stages, model.delay_us, windows)


def _window_out(window: Window, machine: Machine) -> WindowOut:
    ends = (machine.stages[place].name for place in (window.first, window.last))
    found: WindowOut = dict(zip(("from", "to"), ends, strict=True))
    for name in ("fragments", "bytes"):
        if (size := getattr(window, name)) is not None:
            found[name] = size
    if window.return_us:
        found["return_us"] = window.return_us
    return found


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
    return model.derived(pipeline_out) if isinstance(model, Pipeline | Machine) else None


def aggregate_or_none(model: CostModel) -> AggregateOut | None:
    """Return the model as it is sent, None for one that is no aggregate."""
    return aggregate_out(model) if isinstance(model, Aggregate) else None


def given_aggregate(aggregate: AggregateOut) -> dict[str, object]:
    """Return an aggregate as a request gives it, without the sums that follow from it."""
    return {each.name: getattr(aggregate, each.name) for each in fields(AggregateIn)}


def constraints_out(
    limits: FragmentLimits, max_fragment_items: int | None = None
) -> ConstraintsOut:
    """Return the limits as they are sent; of items those on their number, too."""
    return ConstraintsOut(
        limits.min_fragment_bytes,
        limits.max_fragment_bytes,
        limits.alignment_bytes,
        limits.max_fragments,
        max_fragment_items,
    )


# --- what was sent and stored ---------------------------------------------------------------------


def stored_stage(stage: StageOut) -> Stage:
    """Return what the domain's stage of a stored one costs. Raises InvalidStage."""
    return Stage(stage.name, _ranges_of(stage), stage.handoff_bytes)


def stored_stages(sent: PipelineOut) -> Pipeline | Machine:
    """Return the domain's pipeline or machine of a stored one. Raises InvalidStage."""
    costs = Pipeline(tuple(map(stored_stage, sent.stages)), sent.delay_us)
    if not sent.windows and all(_words_of(stage) == _NONE_SENT for stage in sent.stages):
        return costs
    rules = tuple(
        StageRules(one.lanes, one.shared_ns_per_byte, one.delay_us, one.processor)
        for one in sent.stages
    )
    places = {stage.name: place for place, stage in enumerate(sent.stages)}
    windows = []
    for window in sent.windows:
        sizes: dict[str, Any] = dict(window)
        windows.append(Window(places[sizes.pop("from")], places[sizes.pop("to")], **sizes))
    return Machine(costs, rules, tuple(windows))


def stored_pipeline(sent: PipelineOut) -> Pipeline:
    """Return the domain's pipeline of a stored one. Raises InvalidStage, and NeedsPlainStages for a
    machine.
    """
    found = stored_stages(sent)
    check_plain(found)
    assert isinstance(found, Pipeline)  # of the two kinds that are sent so
    return found


def stored_model(sent: PipelineOut | AggregateOut) -> CostModel:
    """Return the domain's model of a stored one. Raises InvalidStage."""
    if isinstance(sent, PipelineOut):
        return stored_stages(sent)
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
    if found is None or not isinstance(model, Pipeline | Machine):
        return None
    names = [stage.name for stage in model.stages]
    stages = tuple(
        StageSensitivityOut(
            name,
            slope_out(stage.overhead),
            slope_out(stage.per_byte, 1e-3),
            tuple(same_named(CostChangeOut, change) for change in stage.changes),
        )
        for name, stage in zip(names, found.stages, strict=True)
    )
    known = found.basis, _deciding_sentence(found, names), slope_out(found.message)
    if found.words is None or not isinstance(model, Machine):
        return SensitivitiesOut(*known, stages)
    words = found.words
    lanes = words.lanes or (None,) * len(stages)
    with_words = tuple(
        replace(stage, by_delay=slope_out(delay), lanes=_places_out(change))
        for stage, delay, change in zip(stages, words.delay, lanes, strict=True)
    )
    windows = tuple(_window_sensitivities(words, model))
    return SensitivitiesOut(*known, with_words, windows, words.size_bytes, words.repeated_us)


def _window_sensitivities(
    words: WordSensitivity, machine: Machine
) -> Iterator[WindowSensitivityOut]:
    """Yield those of each window, which the stages that it is over name."""
    changes: tuple[PlacesChange | None, ...] = words.windows or (None,) * len(machine.windows)
    for window, way_back, change in zip(machine.windows, words.way_back, changes, strict=True):
        over = (machine.stages[place].name for place in (window.first, window.last))
        name = " to ".join(dict.fromkeys(over))
        yield WindowSensitivityOut(name, slope_out(way_back), _places_out(change))


def _places_out(found: PlacesChange | None) -> PlacesChangeOut | None:
    return None if found is None else same_named(PlacesChangeOut, found)


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
    """Yield how the latency moves, in words: the sentence, and the figures of each stage and
    window.
    """
    yield "what decides", found.sentence
    for stage in found.stages:
        parts = [
            f"{_sides(stage.by_overhead)} per µs of overhead",
            f"{_sides(stage.by_ns_per_byte)} per ns/byte",
        ]
        if stage.by_delay is not None and stage.by_delay.falling is not None:
            parts.append(f"{_sides(stage.by_delay)} per µs of delay")
        yield printable(stage.name), ", ".join(part for part in parts if part[0] != " ")
        if stage.lanes is not None:
            yield f"lanes of {printable(stage.name)}", _places_words(stage.lanes, found)
    for window in found.windows:
        parts = [] if window.places is None else [_places_words(window.places, found)]
        if window.by_return.falling is not None:
            parts.insert(0, f"{_sides(window.by_return)} per µs until a place is free")
        if parts:
            yield f"window {printable(window.name)}", "; ".join(parts)


def _places_words(change: PlacesChangeOut, found: SensitivitiesOut) -> str:
    """What a repeated size takes with one fewer, as it is, and with one more."""
    places = change.places
    counted = (
        (places - 1, change.fewer_us),
        (places, found.repeated_us),
        (places + 1, change.more_us),
    )
    known = [(count, us) for count, us in counted if us is not None]
    if len({us for _, us in known}) == 1:
        return f"{places}; one fewer or more changes nothing"
    takes = ", ".join(f"{format_time(us)} with {count}" for count, us in known)
    return f"{takes}; {format_bytes(found.repeated_bytes or 0)} repeated"


def _sides(slope: SlopeOut) -> str:
    """The derivative in µs, two where they differ by a digit that is shown; "" where none is."""
    shown = [f"{side:.4g}" for side in (slope.falling, slope.rising) if side is not None]
    return " to ".join(dict.fromkeys(shown)) + " µs" * bool(shown)
