"""What strategies give, as contract/compare.py sends it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from analysis.compare import Cells, CompareQuestion
from analysis.comparison import Cell, Excess, excesses
from app.schemas.base import notices_out, revision_out
from app.schemas.stages import aggregate_or_none, pipeline_or_none
from app.text.overlap import PricedBothWays, with_both_times
from contract.compare import (
    AnyCompareOut,
    CompareOut,
    CompareRowOut,
    ItemsCompareOut,
    ItemsCompareRowOut,
    VerifiedCompareOut,
)
from domain.solution import relative_excess

if TYPE_CHECKING:
    from analysis.compared_items import ComparedItems, ItemRow, ItemsCompareQuestion
    from app.questions.items import ItemsAcross


def compared(question: CompareQuestion, cells: Cells) -> AnyCompareOut:
    """Return the table of all cells as it is sent."""
    rows = tuple(
        _row(cell, excess, question.serial_us(cell)) for cell, excess in _with_excesses(cells)
    )
    parts = (
        pipeline_or_none(question.model),
        aggregate_or_none(question.model),
        revision_out(question.profile),
        rows,
    )
    if not question.said:
        return CompareOut(*parts)
    stages = len(question.model.stages or ())
    both = tuple(_both_ways(rows, question))
    said = with_both_times(question.said, both, question.overlap, stages)
    return VerifiedCompareOut(*parts, notices_out(said))


def _row(cell: Cell, excess: Excess | None, serial_us: float | None) -> CompareRowOut:
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


def _both_ways(
    rows: Iterable[CompareRowOut], question: CompareQuestion
) -> Iterator[PricedBothWays]:
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
        whole_us = question.whole_us(message_bytes)
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


# --- between items --------------------------------------------------------------------------------


def compared_between(
    question: ItemsCompareQuestion, across: ItemsAcross, found: ComparedItems
) -> ItemsCompareOut:
    """Return the ways to cut between items as they are sent."""
    from app.schemas.items import fill_out, items_out
    from app.schemas.stages import constraints_out, pipeline_out

    problem = question.problem
    best = found[0][0].cut or ()
    sizes = problem.sequence.fragment_bytes(best)
    return ItemsCompareOut(
        message_bytes=problem.sequence.total_bytes,
        pipeline=pipeline_out(problem.pipeline),
        profile=revision_out(across.found.profile),
        items=items_out(problem.sequence),
        fill=fill_out(question.fill),
        constraints=constraints_out(across.limits, across.problem.max_fragment_items),
        rows=tuple(_items_row(question, *row) for row in found),
        warnings=notices_out(across.notices(sizes)),
    )


def _items_row(
    question: ItemsCompareQuestion, row: ItemRow, excess: Excess | None
) -> ItemsCompareRowOut:
    is_proven = row.status is not None
    bound_us = row.lower_bound_us if is_proven else None
    gap = None
    if bound_us is not None and row.latency_us is not None:
        gap = relative_excess(row.latency_us, bound_us, bound_us)
    sizes = () if row.cut is None else question.problem.sequence.fragment_bytes(row.cut)
    return ItemsCompareRowOut(
        way=row.way.value,
        rule=None if row.fill is None else row.fill.rule.value,
        first_bytes=None if row.fill is None else row.fill.first_bytes,
        from_bytes=row.from_bytes,
        to_bytes=row.to_bytes,
        fragments=len(sizes) or None,
        largest_fragment_bytes=max(sizes, default=None),
        latency_us=row.latency_us,
        lower_bound_us=bound_us,
        relative_gap=gap,
        status=None if row.status is None else row.status.value,
        excess_at_least=None if excess is None else excess.at_least,
        excess_at_most=None if excess is None else excess.at_most,
        declined=row.declined,
    )
