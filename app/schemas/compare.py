"""POST /compare: a table of strategies and sizes; GET /optimizations/{id}/explanation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, starmap
from typing import Annotated, TypeAlias

from pydantic import FailFast, Field

from analysis.comparison import Cell, Excess, excesses
from analysis.explain import Explained
from analysis.explanation import Cost, Explanation
from app.questions.compare import MAX_COMPARED, Comparison, ComparisonTable
from app.questions.question import DEFAULT_RELATIVE_GAP, DEFAULT_TIME_LIMIT_S
from app.schemas.base import (
    Bytes,
    NoticeOut,
    Output,
    ProfileRevisionOut,
    notices_out,
    read_output,
    same_named,
)
from app.schemas.optimize import (
    OptimizeOut,
    RelativeGap,
    TimeLimitS,
)
from app.schemas.source import SourceIn
from app.schemas.stages import (
    AggregateOut,
    ConstraintsIn,
    PipelineOut,
)
from domain.errors import StrategyDeclined, UnreadableRecord
from domain.solution import Status, Strategy


class CompareIn(SourceIn):
    """What to compare. `time_limit_s` is for the entire table."""

    message_bytes: Annotated[list[Bytes], FailFast(), Field(min_length=1, max_length=MAX_COMPARED)]
    strategies: Annotated[list[Strategy], FailFast(), Field(min_length=1, max_length=len(Strategy))]
    static_bytes: Bytes | None = None
    constraints: ConstraintsIn = ConstraintsIn()
    allow_refragmentation: bool = False
    relative_gap: RelativeGap = DEFAULT_RELATIVE_GAP
    time_limit_s: TimeLimitS = DEFAULT_TIME_LIMIT_S

    def to_domain(self) -> Comparison:
        """Return the comparison. Raises InvalidInput."""
        return Comparison(
            source=self.source(),
            fit_options=self.options(),
            message_bytes=tuple(self.message_bytes),
            strategies=tuple(self.strategies),
            static_bytes=self.static_bytes,
            limits=self.constraints.to_domain(),
            allow_refragmentation=self.allow_refragmentation,
            relative_gap=self.relative_gap,
            time_limit_s=self.time_limit_s,
        )


@dataclass(frozen=True)
class CompareRowOut(Output):
    """One strategy on one message size. `chosen` is the strategy that `auto` took.

    Where time ended its search (`status`), more of it finds a latency of `lower_bound_us` at least.
    It is `excess_at_least` to `excess_at_most` (shares) above the best of the message's rows; the
    two differ where time ended a search, and null is without a bound. `declined` says why there is
    no answer; the other fields are then null.
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
    excess_at_least: float | None = None  # of comparisons kept before
    excess_at_most: float | None = None

    @classmethod
    def of(cls, cell: Cell, excess: Excess | None) -> CompareRowOut:
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
            excess_at_least=excess.at_least if excess else None,
            excess_at_most=excess.at_most if excess else None,
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
        parts = (
            PipelineOut.of_model(table.model),
            AggregateOut.of_model(table.model),
            ProfileRevisionOut.of(table.profile),
            tuple(starmap(CompareRowOut.of, _with_excesses(table.cells))),
        )
        if table.verified is None:
            return cls(*parts)
        return VerifiedCompareOut(*parts, notices_out((table.verified,)))


@dataclass(frozen=True)
class VerifiedCompareOut(CompareOut):
    """A comparison of a profile that was verified; `warnings` say what transfers said of it."""

    warnings: tuple[NoticeOut, ...]


# A field that is only there where it is set: bodies of others stay as they were.
AnyCompareOut: TypeAlias = VerifiedCompareOut | CompareOut


def warnings_of(comparison: CompareOut) -> tuple[NoticeOut, ...]:
    """Return what transfers said of the profile that was compared on; nothing without them."""
    return comparison.warnings if isinstance(comparison, VerifiedCompareOut) else ()


def read_comparison(body: bytes) -> CompareOut:
    """Return what a stored comparison says, of a verified profile too.

    Raises UnreadableRecord for one of another version.
    """
    try:
        return read_output(VerifiedCompareOut, body)
    except UnreadableRecord:
        return read_output(CompareOut, body)


def _with_excesses(cells: Iterable[Cell]) -> Iterator[tuple[Cell, Excess | None]]:
    for _, group in groupby(cells, key=lambda cell: cell.message_bytes):
        row = tuple(group)
        yield from zip(row, excesses(row), strict=True)


# --- GET /optimizations/{id}/explanation ----------------------------------------------------------


@dataclass(frozen=True)
class PathShareOut(Output):
    """What one stage contributes to the critical path; µs. `share` is of the time in stages.

    `is_binding`: more than one of its fragments is on the path, so that it holds the message up.
    """

    stage: int
    name: str
    fragments: int
    overhead_us: float
    bytes_us: float
    share: float
    is_binding: bool


@dataclass(frozen=True)
class SavingOut(Output):
    """What one cost of one stage, made cheaper, would take off the latency; µs.

    `same_cut_us`: with the schedule as it is. `best_cut_us`: with the best schedule of the cheaper
    pipeline, null where it was not solved.
    """

    stage: int
    name: str
    cost: Cost
    same_cut_us: float
    best_cut_us: float | None


@dataclass(frozen=True)
class ExplanationOut(Output):
    """Why an answer takes as long as it does, and what would make it faster."""

    id: str
    latency_us: float
    delay_us: float
    path: tuple[PathShareOut, ...]
    cheaper_by: float
    savings: tuple[SavingOut, ...]

    @classmethod
    def of(cls, explanation: Explanation, *, answer_id: str) -> ExplanationOut:
        """Return the explanation of a stored answer as it is sent."""
        return cls(
            id=answer_id,
            latency_us=explanation.latency_us,
            delay_us=explanation.delay_us,
            path=tuple(same_named(PathShareOut, one) for one in explanation.shares),
            cheaper_by=explanation.cheaper_by,
            savings=tuple(same_named(SavingOut, one) for one in explanation.savings),
        )


def explained_of(answer: OptimizeOut, *, cheaper_by: float, fragment_cap: int) -> Explained:
    """Return what a stored answer is explained by.

    Raises StrategyDeclined for one about an aggregate.
    """
    if answer.pipeline is None:
        raise StrategyDeclined(
            "only an answer about the stages of a pipeline is explained; of this one the total and "
            "the bottleneck alone are known",
            field="id",
        )
    return Explained(
        answer.pipeline.to_domain(),
        answer.levels or (answer.fragment_bytes,),
        answer.constraints.to_domain(),
        fragment_cap,
        cheaper_by,
    )
