"""Compiled plan tables: what to compile, and what is sent of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import Field

from analysis.premise import unknown_overlap
from analysis.table_facts import TableFacts
from app.questions.tables import (
    COMPILE_LIMIT_S,
    CUTS,
    DEFAULT_MAX_MESSAGE_BYTES,
    REPEATS,
    CompiledTable,
    TablePage,
    TableQuestion,
    TableScope,
)
from app.schemas.base import (
    Bytes,
    Input,
    NoticeOut,
    Output,
    ProfileRevisionOut,
    dump_json,
    notices_out,
    read_output,
    same_named,
    timestamp,
)
from app.schemas.settings_in_draws import SettingsInDrawsOut
from app.schemas.stages import ConstraintsIn, ConstraintsOut, PipelineOut
from app.text.numbers import format_percent
from app.text.units import format_given_time
from domain.errors import InconsistentInput
from domain.fit import beyond_measured, taken_for_granted
from domain.plan_table import DEFAULT_TABLE_GAP
from domain.solution import Notice
from models.records import TableSummary

_WORDS = {REPEATS: "the table's repeated sizes", CUTS: "the table's schedules"}
TableTimeLimitS = Annotated[
    float, Field(gt=0.0, le=COMPILE_LIMIT_S, description="from then on gaps are as reached")
]
TableGap = Annotated[float, Field(ge=1e-6, le=1.0, description="the tolerance")]


class TableIn(Input):
    """What to compile: a range of message sizes, inclusive, a tolerance, and the constraints."""

    min_message_bytes: Bytes = 1
    max_message_bytes: Bytes = DEFAULT_MAX_MESSAGE_BYTES
    relative_gap: TableGap = DEFAULT_TABLE_GAP
    constraints: ConstraintsIn = ConstraintsIn()
    time_limit_s: TableTimeLimitS = COMPILE_LIMIT_S
    activate: Annotated[
        bool | None,
        Field(description="lookups answer from it; null: if the revision has no active table"),
    ] = None

    def to_domain(self) -> TableScope:
        """Return what the table is for. Raises InconsistentInput for a range that is none."""
        if self.max_message_bytes < self.min_message_bytes:
            raise InconsistentInput(
                "expected min_message_bytes <= max_message_bytes", field="max_message_bytes"
            )
        return TableScope(
            self.constraints.to_domain(),
            self.min_message_bytes,
            self.max_message_bytes,
            self.relative_gap,
            self.time_limit_s,
        )


class ActivateIn(Input):
    """Which compiled table the lookups of its revision answer from."""

    digest: Annotated[str, Field(pattern="^[0-9a-f]{64}$", description="of its file")]


@dataclass(frozen=True)
class GapRangeOut(Output):
    """Message sizes, inclusive, and the greatest relative gap certified of the model for them."""

    from_bytes: int
    to_bytes: int
    relative_gap: float


@dataclass(frozen=True)
class CountRunOut(Output):
    """Message sizes, inclusive, whose cut has this number of fragments."""

    from_bytes: int
    to_bytes: int
    fragments: int


@dataclass(frozen=True)
class TableOut(Output):
    """A compiled plan table as it was told when it was compiled. Sizes in bytes.

    Of long lists the first are here, and how many there are.
    """

    digest: str
    created_at: str
    profile: ProfileRevisionOut | None
    min_message_bytes: int
    max_message_bytes: int
    relative_gap: float
    constraints: ConstraintsOut
    fragment_cap: int
    pipeline: PipelineOut
    file_bytes: int
    cut_entries: int
    repeat_entries: int
    worst: GapRangeOut
    worst_repeat: GapRangeOut
    missed: tuple[GapRangeOut, ...]
    missed_total: int
    missed_bytes: int
    unrepeatable_bytes: int
    counts: tuple[CountRunOut, ...]
    counts_total: int
    compile_ms: float
    warnings: tuple[NoticeOut, ...]
    uncertainty: SettingsInDrawsOut | None = None  # of tables of earlier versions

    @classmethod
    def of(cls, compiled: CompiledTable) -> TableOut:
        """Return a table that was just compiled as it is sent."""
        question, scope, facts = compiled.question, compiled.question.scope, compiled.facts
        return cls(
            digest=compiled.digest,
            created_at=timestamp(compiled.created_at),
            profile=ProfileRevisionOut.of(question.profile),
            min_message_bytes=scope.min_message_bytes,
            max_message_bytes=scope.max_message_bytes,
            relative_gap=scope.relative_gap,
            constraints=ConstraintsOut.of(scope.limits),
            fragment_cap=question.fragment_cap,
            pipeline=PipelineOut.of(question.pipeline),
            file_bytes=len(compiled.file),
            cut_entries=facts.cut_entries,
            repeat_entries=facts.repeat_entries,
            worst=same_named(GapRangeOut, facts.worst),
            worst_repeat=same_named(GapRangeOut, facts.worst_repeat),
            missed=tuple(same_named(GapRangeOut, one) for one in facts.missed),
            missed_total=facts.missed_total,
            missed_bytes=facts.missed_bytes,
            unrepeatable_bytes=facts.unrepeatable_bytes,
            counts=tuple(same_named(CountRunOut, run) for run in facts.counts),
            counts_total=facts.counts_total,
            compile_ms=round(compiled.compile_ms, 3),
            warnings=notices_out(_notices(compiled)),
            uncertainty=SettingsInDrawsOut.of(compiled.in_draws, question.errors, _WORDS),
        )


@dataclass(frozen=True)
class TableSummaryOut(Output):
    """What a page shows of a compiled table; GET /tables/{digest} gives all of it."""

    digest: str
    created_at: str
    profile: ProfileRevisionOut
    min_message_bytes: int
    max_message_bytes: int
    relative_gap: float
    constraints: ConstraintsOut
    fragment_cap: int
    worst_relative_gap: float
    file_bytes: int
    active: bool

    @classmethod
    def of(cls, summary: TableSummary) -> TableSummaryOut:
        """Return what a page shows of a profile's table."""
        name, revision = summary.profile_name, summary.profile_revision
        assert name is not None
        assert revision is not None
        return cls(
            digest=summary.digest,
            created_at=timestamp(summary.created_at),
            profile=ProfileRevisionOut(name, revision),
            min_message_bytes=summary.min_message_bytes,
            max_message_bytes=summary.max_message_bytes,
            relative_gap=summary.relative_gap,
            constraints=ConstraintsOut.of(summary.limits),
            fragment_cap=summary.fragment_cap,
            worst_relative_gap=summary.worst_gap,
            file_bytes=summary.file_bytes,
            active=summary.is_active,
        )


@dataclass(frozen=True)
class TablesOut(Output):
    """A page of a profile's compiled tables, newest first; `next_cursor` is null at the end."""

    items: tuple[TableSummaryOut, ...]
    next_cursor: str | None

    @classmethod
    def of(cls, page: TablePage) -> TablesOut:
        """Return a page of a profile's tables as it is sent."""
        return cls(tuple(map(TableSummaryOut.of, page.summaries)), page.after)


def said_first(document: bytes, question: TableQuestion) -> bytes:
    """Return a TableOut as JSON with what transfers say of the profile now: that stands before its
    other warnings, and decides in the place of the draws.
    """
    said, say = question.said, question.transfers
    if said is None:
        return document
    table = read_output(TableOut, document)
    known = table.uncertainty
    if known is not None and say is not None:
        known = known.measured(say)
    warnings = (*notices_out((said,)), *table.warnings)
    return dump_json(replace(table, warnings=warnings, uncertainty=known))


def render_table(compiled: CompiledTable) -> bytes:
    """Return the JSON of a compiled table, as it is sent and stored."""
    return dump_json(TableOut.of(compiled))


def _notices(compiled: CompiledTable) -> Iterator[Notice]:
    facts, behind = compiled.facts, compiled.question.behind
    measured = compiled.question.measured_bytes
    if beyond := beyond_measured(facts.cut_bytes, measured, "the table"):
        yield beyond
    if behind is not None:
        per_byte = behind.calculation_us_per_byte
        took = format_given_time(behind.calculation_us)
        more = f" and {per_byte:g} µs a byte" if per_byte else ""
        yield Notice(
            "run_times",
            f"chosen for messages behind a calculation of {took}{more}: its figures are run times, "
            "and messages that are waited for need another table",
        )
    if compiled.question.model.stages is None:
        yield Notice(
            "repeated_sizes_alone",
            "only the total and the bottleneck are known: each schedule repeats the repeated size, "
            "whose gap is over every repeated size; its own is over every cut of every pipeline "
            "with these costs",
        )
    if premise := compiled.question.model.premise:
        yield taken_for_granted(premise)
    errors = compiled.question.errors
    if errors:
        yield from unknown_overlap(errors.overlap, len(compiled.question.model.stages or ()))
    if facts.is_cut_off:
        yield Notice(
            "time_limit",
            "time ended the compilation: gaps are those reached by then, and more of it may reach "
            "the tolerance",
        )
    if facts.missed_total:
        yield Notice(
            "tolerance_missed",
            f"{facts.missed_bytes} message sizes in {facts.missed_total} ranges are not proven to "
            f"the tolerance: {_cause(facts)}; each range states what is proven of its model",
        )
    if facts.unrepeatable_bytes:
        yield Notice(
            "no_repeated_size",
            f"for {facts.unrepeatable_bytes} message sizes no size can be repeated within the "
            "limits; their schedules are there",
        )


def _cause(facts: TableFacts) -> str:
    loosened_gap = facts.loosened_gap
    if facts.is_cut_off:
        return "time ended before"
    if loosened_gap is None:
        return "whole bytes, the alignment or the limits keep them from it, or the bound does"
    return (
        "it takes more cuts than a compilation may try, so all message sizes are compiled to "
        f"{format_percent(loosened_gap)} instead, or as near to it as whole bytes and limits let"
    )


# --- many tables ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class FleetItemOut(Output):
    """What became of one profile: `compiled`, `stored` where its table was there, or `failed`.

    `profile` has the revision that the table is of, where there is one; `relative_gap` is the
    greatest that its certificate has, of the model.
    """

    profile: str
    outcome: Literal["compiled", "stored", "failed"]
    digest: str | None = None
    relative_gap: float | None = None
    error: str | None = None


@dataclass(frozen=True)
class FleetOut(Output):
    """The tables of many profiles, in the order of their names."""

    profiles: int
    compiled: int
    stored: int
    failed: int
    items: tuple[FleetItemOut, ...]

    @classmethod
    def of(cls, items: Iterable[FleetItemOut]) -> FleetOut:
        """Count and sort."""
        found = tuple(sorted(items, key=lambda one: one.profile))
        counts = Counter(one.outcome for one in found)
        return cls(len(found), counts["compiled"], counts["stored"], counts["failed"], found)
