"""What a given cut costs: every interval in every stage, the critical path, the busiest stage."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from app.flows.solve_message import stored_revision
from domain.course import course_of, nested_course_of
from domain.errors import InconsistentInput, StrategyDeclined
from domain.nested import NestedSchedule, simulate_nested
from domain.pipeline import MAX_MESSAGE_BYTES, Pipeline
from domain.profile import ProfileReference, ProfileRevision
from domain.schedule import simulate as simulate_shared

if TYPE_CHECKING:
    from models.session import Store

MAX_CELLS = 200_000  # intervals in one answer; about 12 MB of JSON


@dataclass(frozen=True, slots=True)
class Interval:
    """One fragment in one stage, µs from the start of the message; the delay is left out."""

    fragment: int
    stage: int
    fragment_bytes: int
    start_us: float
    exit_us: float


@dataclass(frozen=True, slots=True)
class Cut:
    """One cut for all stages, or where `is_nested` one a stage."""

    levels: tuple[tuple[int, ...], ...]
    is_nested: bool


@dataclass(frozen=True, slots=True)
class Simulation:
    """The run of one cut. `critical_path` are (fragment, stage) pairs, and None for nested cuts."""

    pipeline: Pipeline
    message_bytes: int
    latency_us: float
    intervals: tuple[Interval, ...]
    critical_path: tuple[tuple[int, int], ...] | None
    busy_us: tuple[float, ...]
    profile: ProfileRevision | None = None

    @property
    def bottleneck_stage(self) -> int:
        """Index of the stage occupied longest; the first one of equals."""
        return self.busy_us.index(max(self.busy_us))


def run(store: Store, source: Pipeline | ProfileReference, cut: Cut) -> Simulation:
    """Run a cut on a pipeline, or on a stored profile. Raises NotFound, InvalidInput,
    and StrategyDeclined for an aggregate.
    """
    if isinstance(source, Pipeline):
        return _run(source, cut)
    with store.reading() as unit:
        revision = stored_revision(unit)(source)
    profile = ProfileRevision(revision.profile, revision.number)
    if not isinstance(revision.model, Pipeline):
        raise StrategyDeclined(
            "a simulation shows every stage, and this profile is an aggregate: the time of every "
            "stage (a direct measurement) is missing",
            field="profile",
        )
    return replace(_run(revision.model, cut), profile=profile)


def draw(simulation: Simulation, cut: Cut) -> bytes:
    """The timeline of a cut that was run, as an SVG document."""
    from app.plots.timeline_svg import render_timeline_svg
    from app.plots.timeline_words import DrawnSchedule

    pipeline = simulation.pipeline
    if cut.is_nested:
        course = nested_course_of(pipeline, NestedSchedule(cut.levels))
    else:
        course = course_of(pipeline, cut.levels[0])
    return render_timeline_svg([DrawnSchedule("given cut", course)]).encode()


def _run(pipeline: Pipeline, cut: Cut) -> Simulation:
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


def simulate_levels(pipeline: Pipeline, levels: tuple[tuple[int, ...], ...]) -> Simulation:
    """Run one cut per stage. Raises InvalidInput where they are not cuts of one message."""
    _check_cells(sum(len(cut) for cut in levels), field="levels")
    timeline = simulate_nested(pipeline, _nested(pipeline, levels))
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
    if cells > MAX_CELLS:
        raise InconsistentInput(
            f"expected fragments x stages <= {MAX_CELLS} intervals in one simulation, got {cells}",
            field=field,
        )
