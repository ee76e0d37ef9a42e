"""A compiled table, as contract/table.py sends it."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.premise import unknown_overlap
from analysis.table_facts import TableFacts
from app.questions.tables import (
    CUTS,
    REPEATS,
    CompiledTable,
)
from app.schemas.base import (
    dump_json,
    echoes,
    notices_out,
    revision_out,
    same_named,
    timestamp,
)
from app.schemas.settings_in_draws import settings_in_draws_out
from app.schemas.stages import constraints_out, pipeline_out
from app.text.numbers import format_percent
from app.text.units import format_given_time
from contract.table import (
    CountRunOut,
    GapRangeOut,
    TableOut,
)
from domain.fit import beyond_measured, taken_for_granted
from domain.solution import Notice

_WORDS = {REPEATS: "the table's repeated sizes", CUTS: "the table's schedules"}


def table_out(compiled: CompiledTable) -> TableOut:
    """Return a table that was just compiled as it is sent."""
    question, scope, facts = compiled.question, compiled.question.scope, compiled.facts
    return TableOut(
        digest=compiled.digest,
        created_at=timestamp(compiled.created_at),
        profile=revision_out(question.profile),
        **echoes(TableOut, scope),
        constraints=constraints_out(scope.limits),
        fragment_cap=question.fragment_cap,
        pipeline=pipeline_out(question.pipeline),
        file_bytes=len(compiled.file),
        cut_entries=facts.cut_entries,
        repeat_entries=facts.repeat_entries,
        worst=same_named(GapRangeOut, facts.worst),
        worst_repeat=same_named(GapRangeOut, facts.worst_repeat),
        missed=tuple(same_named(GapRangeOut, gap) for gap in facts.missed),
        missed_total=facts.missed_total,
        missed_bytes=facts.missed_bytes,
        unrepeatable_bytes=facts.unrepeatable_bytes,
        counts=tuple(same_named(CountRunOut, run) for run in facts.counts),
        counts_total=facts.counts_total,
        compile_ms=round(compiled.compile_ms, 3),
        warnings=notices_out(_notices(compiled)),
        uncertainty=settings_in_draws_out(compiled.over_draws, question.errors, _WORDS),
    )


def render_table(compiled: CompiledTable) -> bytes:
    """Return the JSON of a compiled table, as it is sent and stored."""
    return dump_json(table_out(compiled))


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
