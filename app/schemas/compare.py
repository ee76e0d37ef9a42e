"""What contract/compare.py declares, as the domain has it, and what was found as it is sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from analysis.comparison import Cell, Excess, excesses
from analysis.explain import Explained
from analysis.explanation import Explanation
from app.questions.compare import Comparison, ComparisonTable
from app.schemas.base import notices_out, read_output, revision_out, same_named
from app.schemas.source import options_of, source_of
from app.schemas.stages import aggregate_or_none, limits_of, pipeline_or_none, stored_pipeline
from app.text.overlap import PricedBothWays, with_both_times
from contract.compare import (
    AnyCompareOut,
    CompareIn,
    CompareOut,
    CompareRowOut,
    ExplanationOut,
    PathShareOut,
    SavingOut,
    VerifiedCompareOut,
)
from contract.notices import NoticeOut
from contract.optimize import OptimizeOut
from domain.errors import StrategyDeclined, UnreadableRecord
from domain.solution import Strategy


def compare_question(asked: CompareIn) -> Comparison:
    """Return the comparison. Raises InvalidInput."""
    return Comparison(
        source=source_of(asked),
        fit_options=options_of(asked),
        message_bytes=tuple(asked.message_bytes),
        strategies=tuple(map(Strategy, asked.strategies)),
        static_bytes=asked.static_bytes,
        limits=limits_of(asked.constraints),
        allow_refragmentation=asked.allow_refragmentation,
        relative_gap=asked.relative_gap,
        time_limit_s=asked.time_limit_s,
    )


def compare_row_out(cell: Cell, excess: Excess | None, serial_us: float | None) -> CompareRowOut:
    """Return a cell of the table as it is sent."""
    solution = cell.solution
    return CompareRowOut(
        message_bytes=cell.message_bytes,
        strategy=cell.strategy.value,
        chosen=solution.strategy.value if solution else None,
        latency_us=solution.latency_us if solution else None,
        lower_bound_us=solution.lower_bound_us if solution else None,
        relative_gap=solution.relative_gap if solution else None,
        fragments=solution.schedule.fragments if solution else None,
        largest_fragment_bytes=max(solution.schedule.fragment_bytes) if solution else None,
        status=solution.status.value if solution else None,
        declined=cell.declined,
        excess_at_least=excess.at_least if excess else None,
        excess_at_most=excess.at_most if excess else None,
        serial_us=serial_us,
    )


def compare_out(table: ComparisonTable) -> AnyCompareOut:
    """Return a comparison as it is sent."""
    rows = tuple(
        compare_row_out(cell, excess, table.serial_us(cell))
        for cell, excess in _with_excesses(table.cells)
    )
    parts = (
        pipeline_or_none(table.model),
        aggregate_or_none(table.model),
        revision_out(table.profile),
        rows,
    )
    if not table.said:
        return CompareOut(*parts)
    stages = len(table.model.stages or ())
    both = tuple(_both_ways(rows, table))
    said = with_both_times(table.said, both, table.overlap, stages)
    return VerifiedCompareOut(*parts, notices_out(said))


def warnings_of(comparison: CompareOut) -> tuple[NoticeOut, ...]:
    """Return what is said of the model that was compared on, which may be nothing."""
    return comparison.warnings if isinstance(comparison, VerifiedCompareOut) else ()


def read_comparison(body: bytes) -> CompareOut:
    """Return what a stored comparison says, of a verified profile too.

    Raises UnreadableRecord for one of another version.
    """
    try:
        return read_output(VerifiedCompareOut, body)
    except UnreadableRecord:
        return read_output(CompareOut, body)


def _both_ways(rows: Iterable[CompareRowOut], table: ComparisonTable) -> Iterator[PricedBothWays]:
    """The fastest row of each message if stages overlap, and the fastest one after another, or one
    piece.
    """
    for message_bytes, group in groupby(rows, key=lambda row: row.message_bytes):
        known = [
            (row.latency_us, row.serial_us, row)
            for row in group
            if row.latency_us is not None and row.serial_us is not None
        ]
        if not known:
            continue
        latency_us, serial_us, best = min(known, key=lambda one: one[:2])
        _, min_us, instead = min(known, key=lambda one: one[1])
        words = [str(row.chosen).replace("_", " ") for row in (best, instead)]
        whole_us = table.whole_us(message_bytes)
        if whole_us is not None and whole_us < min_us:
            words[1], min_us = "one piece", whole_us
        claim = "the least of these strategies"
        yield PricedBothWays(
            message_bytes, words[0], latency_us, serial_us, words[1], min_us, claim
        )


def _with_excesses(cells: Iterable[Cell]) -> Iterator[tuple[Cell, Excess | None]]:
    for _, group in groupby(cells, key=lambda cell: cell.message_bytes):
        row = tuple(group)
        yield from zip(row, excesses(row), strict=True)


# --- GET /optimizations/{id}/explanation ----------------------------------------------------------


def explanation_out(explanation: Explanation, *, answer_id: str) -> ExplanationOut:
    """Return the explanation of a stored answer as it is sent."""
    return ExplanationOut(
        id=answer_id,
        latency_us=explanation.latency_us,
        delay_us=explanation.delay_us,
        path=tuple(same_named(PathShareOut, share) for share in explanation.shares),
        cheaper_by=explanation.cheaper_by,
        savings=tuple(same_named(SavingOut, saving) for saving in explanation.savings),
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
        stored_pipeline(answer.pipeline),
        answer.levels or (answer.fragment_bytes,),
        limits_of(answer.constraints),
        fragment_cap,
        cheaper_by,
    )
