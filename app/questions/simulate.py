"""Simulations of a given cut, or of one that the stages choose."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from app.questions import source
from app.questions.source import FitNow, Source, Stored, check_asked_of, field_of
from contract.limits import (
    MAX_MESSAGE_BYTES,
    MAX_SIMULATED,
)
from contract.simulate import Interval
from domain.aggregate import Aggregate
from domain.delivery import Delivery, deliver, flows_of, store_and_forward_us
from domain.errors import InconsistentInput, StrategyDeclined
from domain.fit import FitOptions
from domain.machine import Machine
from domain.machine_timeline import MachineTimeline, machine_timeline_of, work_of
from domain.model import CostModel
from domain.nested import NestedSchedule, simulate_nested
from domain.pipeline import FitRange, Pipeline
from domain.problem import FragmentLimits, Problem
from domain.profile import ProfileRevision
from domain.schedule import check_sizes
from domain.schedule import simulate as simulate_shared
from domain.solution import Notice
from domain.timeline import nested_timeline_of, timeline_of
from solvers.nested.bound import nested_lower_bound_us

T = TypeVar("T", "Simulation", "PricedCut", "Simulation | PricedCut")


@dataclass(frozen=True, slots=True)
class Cut:
    """One cut for all stages, or where `is_nested` one a stage; or, with `rules`, what the stages
    choose while a message of so many bytes arrives.
    """

    levels: tuple[tuple[int, ...], ...]
    is_nested: bool
    rules: tuple[Delivery, ...] = ()
    message_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Delivered:
    """What a cut that was chosen on line is compared with, and what is to be said about it.

    `lower_bound_us` is proven for every cut of every stage, of this model; store and forward is the
    whole message in every stage.
    """

    levels: tuple[tuple[int, ...], ...]
    store_and_forward_us: float
    lower_bound_us: float
    notices: tuple[Notice, ...]


@dataclass(frozen=True, slots=True)
class Simulation:
    """The run of one cut. `critical_path` are (fragment, stage) pairs, and None for cuts that are
    given by stage; `delivered` is there for cuts that the stages chose, `said` is what is known of
    the model. `machine` is there for runs through one.
    """

    pipeline: Pipeline | Machine
    message_bytes: int
    latency_us: float
    intervals: tuple[Interval, ...]
    critical_path: tuple[tuple[int, int], ...] | None
    busy_us: tuple[float, ...]
    profile: ProfileRevision | None = None
    delivered: Delivered | None = None
    said: tuple[Notice, ...] = ()
    machine: MachineTimeline | None = None

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What is to be said about it, what is known of its model first."""
        return (*self.said, *(self.delivered.notices if self.delivered else ()))

    @property
    def bottleneck_stage(self) -> int:
        """Index of the stage occupied longest, of lanes by one of them; the first one of equals."""
        if self.machine is not None:
            return self.machine.busiest
        return self.busy_us.index(max(self.busy_us))

    @property
    def lags(self) -> dict[str, int]:
        """By how many fragments each processor's earlier stage is ahead of its later one."""
        if self.machine is None or not isinstance(self.pipeline, Machine):
            return {}
        return dict(zip(self.pipeline.processors, self.machine.lags, strict=True))


@dataclass(frozen=True, slots=True)
class PricedCut:
    """What a cut takes at most where all stages are known together and the slowest of them alone:
    nothing is known of when each fragment is where.
    """

    aggregate: Aggregate
    fragment_bytes: tuple[int, ...]
    latency_us: float
    profile: ProfileRevision | None = None
    said: tuple[Notice, ...] = ()

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What is to be said about it."""
        return self.said

    @property
    def message_bytes(self) -> int:
        """The size of the message that this cuts."""
        return sum(self.fragment_bytes)


def run(
    stored: Stored, asked: Source, options: FitOptions | None, cut: Cut
) -> Simulation | PricedCut:
    """Run a cut on a model, wherever that comes from. Raises NotFound, InvalidInput, what a fit
    does, and StrategyDeclined for an aggregate whose stages would cut by themselves.
    """
    found = model_of(asked, options, stored)
    return said_by(run_on(found.model, cut), found)


def said_by(simulation: T, found: source.Resolved) -> T:
    """Return a simulation on a model that was found, with what is known of that."""
    return replace(simulation, profile=found.profile, said=found.said)


def model_of(asked: Source, options: FitOptions | None, stored: Stored) -> source.Resolved:
    """Return the model, found or fitted, the profile that it is of, and what transfers said of it.

    Raises NotFound, and what a fit does.
    """
    return source.resolve(asked, stored, FitNow(options), machines=True)


def run_on(model: CostModel, cut: Cut) -> Simulation | PricedCut:
    """Run a cut on a model. Raises as `run` does, and NeedsPlainStages for what stages choose, or
    a cut a stage, on a machine.
    """
    if isinstance(model, Pipeline):
        return _run(model, cut)
    if isinstance(model, Machine):
        check_asked_of(model, {"delivery": bool(cut.rules), "levels": cut.is_nested})
        return simulate_machine(model, cut.levels[0])
    assert isinstance(model, Aggregate)  # of the three kinds there are
    if cut.rules or cut.is_nested:
        raise StrategyDeclined(
            "an aggregate has one cut for all stages: they are not told apart", field="aggregate"
        )
    sizes = cut.levels[0]
    check_sizes(sizes)
    _check_cells(len(sizes), field="fragment_bytes")
    return PricedCut(model, sizes, model.latency_us(sizes))


def pipeline_of(
    asked: Source, options: FitOptions | None, stored: Stored
) -> tuple[Pipeline, source.Resolved]:
    """Return the pipeline, found or fitted, and what else is known of it.

    Raises NotFound, what a fit does, StrategyDeclined for an aggregate and NeedsPlainStages for a
    machine.
    """
    found = source.resolve(asked, stored, FitNow(options))
    if not isinstance(found.model, Pipeline):
        raise StrategyDeclined(
            "this needs every stage, and these costs are an aggregate: the time of every stage (a "
            "direct measurement) is missing",
            field=field_of(asked),
        )
    return found.model, found


def draw(simulation: Simulation | PricedCut, cut: Cut) -> bytes:
    """Return the timeline of a cut that was run, as an SVG document.

    Raises StrategyDeclined where the stages are not known.
    """
    from app.plots.timeline_plan import DrawnSchedule
    from app.plots.timeline_svg import render_timeline_svg

    if isinstance(simulation, PricedCut):
        raise StrategyDeclined(
            "a timeline shows every stage, and of an aggregate they are not known", field="format"
        )

    if simulation.machine is not None:
        return render_timeline_svg([DrawnSchedule("given cut", simulation.machine)]).encode()
    pipeline = simulation.pipeline
    assert isinstance(pipeline, Pipeline)
    if cut.is_nested:
        levels = simulation.delivered.levels if simulation.delivered else cut.levels
        timeline = nested_timeline_of(pipeline, NestedSchedule(levels, flows_of(cut.rules)))
    else:
        timeline = timeline_of(pipeline, cut.levels[0])
    return render_timeline_svg([DrawnSchedule("given cut", timeline)]).encode()


def _run(pipeline: Pipeline, cut: Cut) -> Simulation:
    if cut.rules:
        return simulate_delivery(pipeline, cut.message_bytes, cut.rules)
    if cut.is_nested:
        return simulate_levels(pipeline, cut.levels)
    return simulate(pipeline, cut.levels[0])


def simulate(pipeline: Pipeline, fragment_bytes: tuple[int, ...]) -> Simulation:
    """Run one cut shared by all stages. Raises InvalidInput for sizes that are none."""
    _check_cells(len(fragment_bytes) * len(pipeline), field="fragment_bytes")
    _check_sum(fragment_bytes, field="fragment_bytes")
    timeline = simulate_shared(pipeline, fragment_bytes)
    intervals = tuple(
        Interval(i, j, size, timeline.start_us[i][j], timeline.exit_us[i][j])
        for i, size in enumerate(fragment_bytes)
        for j in range(len(pipeline))
    )
    return Simulation(
        pipeline=pipeline,
        message_bytes=sum(fragment_bytes),
        latency_us=timeline.latency_us,
        intervals=intervals,
        critical_path=timeline.critical_path(),
        busy_us=timeline.busy_us(),
    )


def simulate_machine(machine: Machine, fragment_bytes: tuple[int, ...]) -> Simulation:
    """Run one cut through a machine, at the best lags. Raises InvalidInput for sizes that are none,
    and Infeasible for one that fits no window.
    """
    _check_cells(work_of(machine, len(fragment_bytes)), field="fragment_bytes")
    _check_sum(fragment_bytes, field="fragment_bytes")
    timeline = machine_timeline_of(machine, fragment_bytes)
    intervals = tuple(
        Interval(i, j, size, *timeline.span_us(i, j))
        for i, size in enumerate(fragment_bytes)
        for j in range(len(machine))
    )
    return Simulation(
        pipeline=machine,
        message_bytes=timeline.message_bytes,
        latency_us=timeline.latency_us,
        intervals=intervals,
        critical_path=timeline.critical_path(),
        busy_us=timeline.busy_us,
        machine=timeline,
    )


def simulate_levels(pipeline: Pipeline, levels: tuple[tuple[int, ...], ...]) -> Simulation:
    """Run one cut per stage. Raises InvalidInput where they are not cuts of one message."""
    _check_cells(sum(len(cut) for cut in levels), field="levels")
    return _simulated(pipeline, _nested(pipeline, levels))


def _simulated(pipeline: Pipeline, schedule: NestedSchedule) -> Simulation:
    timeline, levels = simulate_nested(pipeline, schedule), schedule.stage_bytes
    intervals = tuple(
        Interval(i, j, size, timeline.start_us[j][i], timeline.exit_us[j][i])
        for j, cut in enumerate(levels)
        for i, size in enumerate(cut)
    )
    busy = tuple(
        sum(interval.exit_us - interval.start_us for interval in intervals if interval.stage == j)
        for j in range(len(pipeline))
    )
    return Simulation(
        pipeline=pipeline,
        message_bytes=sum(levels[0]),
        latency_us=timeline.latency_us,
        intervals=intervals,
        critical_path=None,
        busy_us=busy,
    )


def simulate_delivery(
    pipeline: Pipeline, message_bytes: int, rules: tuple[Delivery, ...]
) -> Simulation:
    """Run what the stages choose. Raises InvalidInput, and Infeasible for too many pulses."""
    cap = max(1, MAX_SIMULATED // len(pipeline))
    schedule = deliver(pipeline, message_bytes, rules, max_pulses=cap)
    found = _simulated(pipeline, schedule)
    delivered = Delivered(
        levels=schedule.stage_bytes,
        store_and_forward_us=store_and_forward_us(pipeline, message_bytes),
        lower_bound_us=_bound_us(pipeline, message_bytes, schedule.flows),
        notices=tuple(_delivery_notices(pipeline, schedule, rules)),
    )
    path = None if schedule.flows else nested_timeline_of(pipeline, schedule).critical_path()
    return replace(found, critical_path=path, delivered=delivered)


def _bound_us(pipeline: Pipeline, message_bytes: int, flows: frozenset[int]) -> float:
    """The bound of all cuts of the stages that cut. A flow is as good as fragments of one byte
    without an overhead, handed on as they move, and its own overhead once.
    """
    stages, delay_us = list(pipeline.stages), pipeline.delay_us
    for j in flows:
        part = stages[j].range_at(message_bytes)
        delay_us += part.overhead_us
        line = FitRange(0.0, part.ns_per_byte)
        stages[j] = replace(stages[j], ranges=(line,), handoff_bytes=1)
    bounded = Problem(Pipeline(tuple(stages), delay_us), message_bytes, FragmentLimits())
    return nested_lower_bound_us(bounded)


def _delivery_notices(
    pipeline: Pipeline, schedule: NestedSchedule, rules: tuple[Delivery, ...]
) -> Iterator[Notice]:
    total = schedule.message_bytes
    for stage, rule in zip(pipeline.stages, rules, strict=True):
        if rule.threshold > total:
            yield Notice.of_stage(
                stage.name,
                "threshold_above_message",
                f"its threshold of {rule.threshold} bytes is above the message: store and forward",
            )
    hands_on = any(stage.handoff_bytes is not None for stage in pipeline.stages[:-1])
    if not hands_on and len(schedule.stage_bytes[0]) == 1 and len(pipeline) > 1:
        yield Notice(
            "nothing_to_overlap",
            "the first stage takes the message whole and no stage hands bytes on as they move, so "
            "that nothing overlaps: give a stage handoff_bytes, or cut the first one",
        )


def _nested(pipeline: Pipeline, levels: tuple[tuple[int, ...], ...]) -> NestedSchedule:
    if len(levels) != len(pipeline):
        raise InconsistentInput(f"expected {len(pipeline)} cuts, one a stage", field="levels")
    if len({sum(cut) for cut in levels}) != 1:
        raise InconsistentInput("expected cuts that sum to the same message", field="levels")
    _check_sum(levels[0], field="levels")
    return NestedSchedule(levels)


def _check_sum(cut: tuple[int, ...], *, field: str) -> None:
    if sum(cut) > MAX_MESSAGE_BYTES:
        raise InconsistentInput(
            f"expected fragments that sum to at most {MAX_MESSAGE_BYTES} bytes", field=field
        )


def _check_cells(cells: int, *, field: str) -> None:
    if cells > MAX_SIMULATED:
        raise InconsistentInput(
            f"expected fragments x stages <= {MAX_SIMULATED} intervals in one simulation, "
            f"got {cells}",
            field=field,
        )
