"""POST /compare: a pipeline or an aggregate, message sizes and strategies in, a table out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import ConfigDict, FailFast, Field

from analysis.comparison import Cell
from app.flows.compare import MAX_CELLS, Comparison, ComparisonTable
from app.flows.questions import DEFAULT_RELATIVE_GAP, DEFAULT_TIME_LIMIT_S
from app.schemas.base import Bytes, Input, Output, ProfileRevisionOut
from app.schemas.optimize import (
    ProfileAt,
    RelativeGap,
    TimeLimitS,
    check_exactly_one,
    exactly_one,
)
from app.schemas.stages import (
    AggregateIn,
    AggregateOut,
    ConstraintsIn,
    PipelineIn,
    PipelineOut,
)
from domain.profile import ProfileReference, ProfileRevision
from domain.solution import Status, Strategy

SOURCES = ("pipeline", "aggregate", "profile")


class CompareIn(Input):
    """What to compare. `time_limit_s` is for the entire table."""

    model_config = ConfigDict(json_schema_extra={"oneOf": exactly_one(*SOURCES)})

    pipeline: PipelineIn | None = None
    aggregate: AggregateIn | None = None
    profile: ProfileAt | None = None
    message_bytes: Annotated[list[Bytes], FailFast(), Field(min_length=1, max_length=MAX_CELLS)]
    strategies: Annotated[list[Strategy], FailFast(), Field(min_length=1, max_length=len(Strategy))]
    static_bytes: Bytes | None = None
    constraints: ConstraintsIn = ConstraintsIn()
    allow_refragmentation: bool = False
    relative_gap: RelativeGap = DEFAULT_RELATIVE_GAP
    time_limit_s: TimeLimitS = DEFAULT_TIME_LIMIT_S

    def to_domain(self) -> Comparison:
        """The comparison. Raises InvalidInput."""
        check_exactly_one({name: getattr(self, name) for name in SOURCES})
        given = self.pipeline or self.aggregate
        return Comparison(
            source=given.to_domain() if given else ProfileReference.parse(self.profile or ""),
            message_bytes=tuple(self.message_bytes),
            strategies=tuple(self.strategies),
            static_bytes=self.static_bytes,
            limits=self.constraints.to_domain(),
            allow_refragmentation=self.allow_refragmentation,
            relative_gap=self.relative_gap,
            time_limit_s=self.time_limit_s,
        )

    def as_job(self, profile: ProfileRevision | None) -> bytes:
        """This request as a job keeps it: a profile pinned to the revision that it had."""
        pinned = self
        if profile is not None:
            name = f"{profile.name}@{profile.revision}"
            pinned = self.model_copy(update={"profile": name})
        return pinned.model_dump_json(exclude_none=True).encode()


@dataclass(frozen=True)
class CompareRowOut(Output):
    """One strategy on one message size. `chosen` is the strategy that `auto` took.

    `declined` says why there is no answer; the other fields are then null.
    """

    message_bytes: int
    strategy: Strategy
    chosen: Strategy | None
    latency_us: float | None
    lower_bound_us: float | None
    relative_gap: float | None
    fragments: int | None
    largest_fragment_bytes: int | None
    status: Status | None
    declined: str | None

    @classmethod
    def of(cls, cell: Cell) -> CompareRowOut:
        """Return a cell of the table as it is sent."""
        solution = cell.solution
        return cls(
            message_bytes=cell.message_bytes,
            strategy=cell.strategy,
            chosen=solution.strategy if solution else None,
            latency_us=solution.latency_us if solution else None,
            lower_bound_us=solution.lower_bound_us if solution else None,
            relative_gap=solution.relative_gap if solution else None,
            fragments=solution.schedule.fragments if solution else None,
            largest_fragment_bytes=max(solution.schedule.fragment_bytes) if solution else None,
            status=solution.status if solution else None,
            declined=cell.declined,
        )


@dataclass(frozen=True)
class CompareOut(Output):
    """Rows by message size, then in the order of the strategies asked for.

    One of `pipeline` and `aggregate` is null.
    """

    pipeline: PipelineOut | None
    aggregate: AggregateOut | None
    profile: ProfileRevisionOut | None
    rows: tuple[CompareRowOut, ...]

    @classmethod
    def of(cls, table: ComparisonTable) -> CompareOut:
        """Return a comparison as it is sent."""
        return cls(
            PipelineOut.of_model(table.model),
            AggregateOut.of_model(table.model),
            ProfileRevisionOut.of(table.profile),
            tuple(map(CompareRowOut.of, table.cells)),
        )
