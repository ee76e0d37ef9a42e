"""Ways of cutting a message between items, side by side: the best cut, single caps, and none.

Source    docs/theory.md, "Items". What PyTorch does where nothing is set: domain/bucket_setting.py.
Notation  a way: how a cut comes about; m items.
Cost      the best cut (`solvers.items.solve`), the walk over the layouts of both fill rules, and
          one evaluation for each other way.
Exact     each latency is the evaluator's on whole bytes. The excess of a way is exact unless time
          ended the search for the best cut, or for the best cap.
Traps     caps are priced as a program fills them; a layout that breaks the limits is declined.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from analysis.comparison import Excess, excess_of
from analysis.items import CAPS_S
from domain.bucket_setting import DDP_RULE, DEFAULT_CAP_BYTES, DEFAULT_FIRST_BYTES
from domain.items import Fill, FillRule, ItemCut, ItemProblem, layout
from domain.solution import Status
from solvers.contract import Deadline, SolveOptions


class ItemWay(StrEnum):
    """How a cut between items comes about.

    exact             the best cut
    best_cap_until    the best layout of one cap, closed with the item that reaches it
    best_cap_before   the same, closed before the item that would exceed it
    one_fragment      all items in one
    one_item_each     each item by itself
    cap               what a given cap makes
    pytorch_default   what PyTorch makes where nothing is set
    """

    EXACT = "exact"
    BEST_CAP_UNTIL = "best_cap_until"
    BEST_CAP_BEFORE = "best_cap_before"
    ONE_FRAGMENT = "one_fragment"
    ONE_ITEM_EACH = "one_item_each"
    CAP = "cap"
    PYTORCH_DEFAULT = "pytorch_default"


@dataclass(frozen=True, slots=True)
class ItemRow:
    """One way: its cut and what that takes, in µs, or why there is none.

    `from_bytes` to `to_bytes` are the caps that make it, `to_bytes` None: any greater one does.
    `is_cut_off`: time ended the search for a better one, which takes `lower_bound_us` at least.
    """

    way: ItemWay
    cut: ItemCut | None
    latency_us: float | None
    fill: FillRule | None = None
    from_bytes: int | None = None
    to_bytes: int | None = None
    lower_bound_us: float | None = None
    status: Status | None = None
    is_cut_off: bool = False
    declined: str | None = None


@dataclass(frozen=True, slots=True)
class ItemsCompareQuestion:
    """What is compared. `caps_bytes` are given caps, filled by `fill`. Picklable."""

    problem: ItemProblem
    fill: FillRule
    caps_bytes: tuple[int, ...]
    relative_gap: float
    time_limit_s: float


ComparedItems = tuple[tuple[ItemRow, Excess | None], ...]


def compare_items(question: ItemsCompareQuestion) -> ComparedItems:
    """Return every way in the order of `ItemWay`, and how far it is above the best of them. Raises
    Infeasible.
    """
    rows = tuple(_rows(question))
    known = [
        (row.latency_us, (row.lower_bound_us or 0.0) if row.is_cut_off else row.latency_us)
        if row.latency_us is not None
        else None
        for row in rows
    ]
    return tuple((row, excess_of(known, place)) for place, row in enumerate(rows))


def _rows(question: ItemsCompareQuestion) -> Iterator[ItemRow]:
    problem, count = question.problem, len(question.problem.sequence)
    best = _exact(question)
    yield best
    for way, rule in ((ItemWay.BEST_CAP_UNTIL, Fill.UNTIL), (ItemWay.BEST_CAP_BEFORE, Fill.BEFORE)):
        first = question.fill.first_bytes if rule is question.fill.rule else None
        yield _best_cap(problem, way, FillRule(rule, first), best.lower_bound_us or 0.0)
    yield _priced(problem, ItemWay.ONE_FRAGMENT, (count,))
    yield _priced(problem, ItemWay.ONE_ITEM_EACH, tuple(range(1, count + 1)))
    for cap in question.caps_bytes:
        yield _of_cap(problem, ItemWay.CAP, cap, question.fill)
    default = FillRule(DDP_RULE.rule, DEFAULT_FIRST_BYTES)
    yield _of_cap(problem, ItemWay.PYTORCH_DEFAULT, DEFAULT_CAP_BYTES, default)


def _exact(question: ItemsCompareQuestion) -> ItemRow:
    from solvers.items.solve import solve_items

    options = SolveOptions(relative_gap=question.relative_gap, time_limit_s=question.time_limit_s)
    found = solve_items(question.problem, options)
    return ItemRow(
        ItemWay.EXACT,
        found.cut,
        found.latency_us,
        lower_bound_us=found.lower_bound_us,
        status=found.status,
        is_cut_off=found.cut_off,
    )


def _best_cap(problem: ItemProblem, way: ItemWay, fill: FillRule, bound_us: float) -> ItemRow:
    from solvers.items.caps import best_cap

    found = best_cap(problem, fill, Deadline.after(CAPS_S))
    if found is None:
        return ItemRow(way, None, None, fill, declined="the limits admit no layout of one cap")
    return ItemRow(
        way,
        found.cut,
        found.latency_us,
        fill,
        found.from_bytes,
        found.to_bytes,
        lower_bound_us=bound_us if not found.is_complete else None,
        is_cut_off=not found.is_complete,
    )


def _of_cap(problem: ItemProblem, way: ItemWay, cap_bytes: int, fill: FillRule) -> ItemRow:
    return _priced(problem, way, layout(problem.sequence, cap_bytes, fill), cap_bytes, fill)


def _priced(
    problem: ItemProblem,
    way: ItemWay,
    cut: ItemCut,
    cap_bytes: int | None = None,
    fill: FillRule | None = None,
) -> ItemRow:
    declined = broken_limit(problem, cut)
    if declined is not None:
        return ItemRow(way, None, None, fill, cap_bytes, cap_bytes, declined=declined)
    return ItemRow(way, cut, problem.latency_us(cut), fill, cap_bytes, cap_bytes)


def broken_limit(problem: ItemProblem, cut: Sequence[int]) -> str | None:
    """Return which limit this cut breaks, in words; None where it breaks none. Raises InvalidInput
    where it is no cut of the items.
    """
    if problem.admits(cut):
        return None
    most = problem.max_fragments
    if most is not None and len(cut) > most:
        return f"it makes {len(cut)} fragments, and max_fragments allows {most}"
    place, items = next(
        (place, last - first)
        for place, (first, last) in enumerate(pairwise((0, *cut)))
        if last > problem.longest_from(first)
    )
    size = problem.sequence.fragment_bytes(cut)[place]
    most_items = problem.max_fragment_items
    if most_items is not None and items > most_items:
        return (
            f"its fragment {place + 1} has {items} items, and max_fragment_items allows "
            f"{most_items}"
        )
    return (
        f"its fragment {place + 1} has {size} bytes, and max_fragment_bytes allows "
        f"{problem.max_fragment_bytes}"
    )
