"""Comparisons of strategies on several message sizes, and simulations of a given cut."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from analysis.comparison import Cell
from app.questions.optimize import FindRevision, stored_revision
from app.questions.question import DEFAULT_RELATIVE_GAP, DEFAULT_TIME_LIMIT_S, check_static_bytes
from domain.errors import InconsistentInput, StrategyDeclined
from domain.model import CostModel
from domain.nested import NestedSchedule, simulate_nested
from domain.pipeline import MAX_MESSAGE_BYTES, Pipeline
from domain.problem import FragmentLimits
from domain.profile import ProfileReference, ProfileRevision
from domain.schedule import simulate as simulate_shared
from domain.solution import Strategy
from domain.timeline import nested_timeline_of, timeline_of

if TYPE_CHECKING:
    from models.session import Store


MAX_COMPARED = 1_000  # message sizes x strategies in one comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What to compare. `time_limit_s` is for the entire table. Raises InvalidInput."""

    source: CostModel | ProfileReference
    message_bytes: tuple[int, ...]
    strategies: tuple[Strategy, ...]
    static_bytes: int | None = None
    limits: FragmentLimits = field(default_factory=FragmentLimits)
    allow_refragmentation: bool = False
    relative_gap: float = DEFAULT_RELATIVE_GAP
    time_limit_s: float = DEFAULT_TIME_LIMIT_S

    def __post_init__(self) -> None:
        if len(self.message_bytes) * len(self.strategies) > MAX_COMPARED:
            raise InconsistentInput(
                f"expected message sizes x strategies <= {MAX_COMPARED} in one comparison",
                field="message_bytes",
            )
        if self.static_bytes is not None or Strategy.STATIC in self.strategies:
            wanted = Strategy.STATIC if Strategy.STATIC in self.strategies else Strategy.AUTO
            check_static_bytes(wanted, self.static_bytes)


@dataclass(frozen=True, slots=True)
class ComparisonTable:
    """The rows by message size, then in the order of the strategies asked for."""

    model: CostModel
    profile: ProfileRevision | None
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Resolved:
    """A comparison whose model is known, and the profile it came from."""

    comparison: Comparison
    model: CostModel
    profile: ProfileRevision | None


def resolve(comparison: Comparison, find_revision: FindRevision) -> Resolved:
    """Find the model. Raises NotFound."""
    if not isinstance(comparison.source, ProfileReference):
        return Resolved(comparison, comparison.source, None)
    revision = find_revision(comparison.source)
    profile = ProfileRevision(revision.profile, revision.number)
    return Resolved(comparison, revision.model, profile)


# --- simulations of a given cut -------------------------------------------------------------------


MAX_INTERVALS = 200_000  # intervals in one answer; about 12 MB of JSON


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
    """Return the timeline of a cut that was run, as an SVG document."""
    from app.plots.timeline_plan import DrawnSchedule
    from app.plots.timeline_svg import render_timeline_svg

    pipeline = simulation.pipeline
    if cut.is_nested:
        timeline = nested_timeline_of(pipeline, NestedSchedule(cut.levels))
    else:
        timeline = timeline_of(pipeline, cut.levels[0])
    return render_timeline_svg([DrawnSchedule("given cut", timeline)]).encode()


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
    if cells > MAX_INTERVALS:
        raise InconsistentInput(
            f"expected fragments x stages <= {MAX_INTERVALS} intervals in one simulation, "
            f"got {cells}",
            field=field,
        )
