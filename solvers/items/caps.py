"""Every layout that one cap gives, and the best of them.

Source    docs/theory.md, "Items", one cap. A layout is the same for all caps up to the smallest
          fragment that its cap closed (`until`), or below the smallest fragment with the item
          behind it (`before`): walking from change to change sees each layout once.
Notation  m items; k fragments.
Cost      a layout O(k (log m + stages)), and less once it is worse than the best; at most
          m (m+1)/2 layouts, mostly some for each item.
Exact     over all layouts that the limits admit, unless the deadline ends the walk: then some caps
          beyond are tried.
Traps     `before` begins at the largest item, or at the limit on bytes where that is less: with a
          smaller cap a program refuses the item, or sends it by itself all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import inf

import numpy as np
from numpy.typing import NDArray

from domain.items import CapChoice, Fill, FillRule, ItemCut, ItemProblem, layout
from solvers.contract import Deadline
from solvers.items.arrays import arrays_of, item_kernels
from solvers.kernels.items import CapWalk, ListedLayouts, filled, next_cap

_WORK = 200_000  # fragments between two looks at the clock
TRIED = 128  # caps beyond those for which there was time


@dataclass(frozen=True, slots=True)
class Layout:
    """A cut, and the first and last cap in bytes that gives it; None: every greater one does."""

    cut: ItemCut
    from_bytes: int
    to_bytes: int | None


def layouts(problem: ItemProblem, rule: FillRule) -> Iterator[Layout]:
    """Yield every layout that a cap gives by this rule, by rising caps; limits are not looked at,
    but by `before` no cap is above that on bytes. Raises Infeasible.
    """
    arrays, walk = arrays_of(problem), _started(problem, rule)
    cap = walk.next_cap
    while cap:
        here = CapWalk(walk.is_before, walk.first_bytes, cap, walk.last_cap)
        ends = filled(arrays, here, cap)
        following = next_cap(arrays, here, ends)
        yield Layout(ends, cap, following - 1 if following else None)
        cap = following if following <= walk.last_cap else 0


def best_cap(problem: ItemProblem, rule: FillRule, deadline: Deadline) -> CapChoice | None:
    """Return the best admitted layout that one cap gives, of equals that of fewer fragments; None
    where none is admitted. Raises Infeasible.
    """
    arrays, walk = arrays_of(problem), _started(problem, rule)
    while walk.next_cap:
        walk = item_kernels().walk_caps(arrays, walk, _WORK)
        if deadline.passed:
            break
    choice = _choice(problem, walk, rule)
    if walk.next_cap:
        tried = _tried(problem, walk, rule)
        if tried and (choice is None or tried.latency_us < choice.latency_us):
            return tried
    return choice


def _choice(problem: ItemProblem, walk: CapWalk, rule: FillRule) -> CapChoice | None:
    if walk.latency_us == inf:
        return None
    cut = layout(problem.sequence, walk.from_bytes, rule)
    return CapChoice(
        rule=rule,
        cut=cut,
        latency_us=problem.latency_us(cut),
        from_bytes=walk.from_bytes,
        to_bytes=walk.to_bytes or None,
        layouts=walk.layouts,
        is_complete=not walk.next_cap,
    )


def _tried(problem: ItemProblem, walk: CapWalk, rule: FillRule) -> CapChoice | None:
    """The best layout of some caps beyond those that were walked over."""
    tried = priced_above(problem, rule, walk.next_cap, TRIED)
    admitted = [one for one in tried if one.latency_us is not None]
    if not admitted:
        return None
    best = min(admitted, key=lambda one: (one.latency_us, one.fragments))
    cut = layout(problem.sequence, best.from_bytes, rule)
    return CapChoice(
        rule=rule,
        cut=cut,
        latency_us=problem.latency_us(cut),
        from_bytes=_min_cap(problem, cut, rule),
        to_bytes=best.to_bytes,
        layouts=walk.layouts + len(tried),
        is_complete=False,
    )


def _min_cap(problem: ItemProblem, cut: ItemCut, rule: FillRule) -> int:
    """The least cap that gives this layout: every item but the last of a fragment stays below it by
    `until`, and every fragment of several items fits by `before`.
    """
    ends, sizes = problem.sequence.ends_bytes, problem.sequence.item_bytes
    spans = list(pairwise((0, *cut)))[1 if rule.first_bytes else 0 :]
    if rule.rule is Fill.UNTIL:
        return max(
            (ends[last] - ends[first] - sizes[last - 1] + 1 for first, last in spans), default=1
        )
    begun = _started(problem, rule).next_cap
    fitted = (ends[last] - ends[first] for first, last in spans if last > first + 1)
    return max(begun, *fitted, 1)


@dataclass(frozen=True, eq=False)
class LayoutList:
    """Layouts by rising caps as far as the walk has come, and the first cap behind the last of
    them, in bytes; None: every greater cap gives that one, too.
    """

    problem: ItemProblem
    rule: FillRule
    layouts: ListedLayouts
    next_bytes: int | None
    is_complete: bool

    def ends(self, places: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return the ends of the fragments of these layouts, one behind the other."""
        chosen = self.layouts.from_bytes[places], self.layouts.fragments[places]
        walk = _started(self.problem, self.rule)
        return item_kernels().laid_out(arrays_of(self.problem), walk, *chosen)

    def to_bytes(self, place: int) -> int | None:
        """Return the greatest cap that gives this layout; None: every greater one does."""
        following = place + 1
        if following < len(self.layouts.from_bytes):
            return int(self.layouts.from_bytes[following]) - 1
        return None if self.next_bytes is None else self.next_bytes - 1


def list_layouts(problem: ItemProblem, rule: FillRule, *, work: int, room: int) -> LayoutList:
    """Return the layouts that caps give by this rule with their latencies at the costs as they
    stand, without the delay: so many at most, and until so many fragments were made. Raises
    Infeasible.
    """
    walk, listed = item_kernels().list_caps(arrays_of(problem), _started(problem, rule), work, room)
    is_complete = not walk.next_cap
    next_bytes = walk.next_cap or None
    limit = problem.max_fragment_bytes
    if is_complete and rule.rule is Fill.BEFORE and limit is not None:
        next_bytes = max(limit, int(listed.from_bytes[-1])) + 1
    return LayoutList(problem, rule, listed, next_bytes, is_complete)


def _started(problem: ItemProblem, rule: FillRule) -> CapWalk:
    is_before, limit = rule.rule is Fill.BEFORE, problem.most_bytes
    largest, total = max(problem.sequence.item_bytes), problem.sequence.total_bytes
    first = min(largest, limit or largest) if is_before else 1
    last = min(total, limit or total) if is_before else total
    return CapWalk(is_before, rule.first_bytes or 0, first, max(first, last))


@dataclass(frozen=True, slots=True)
class PricedLayout:
    """The fragments of a layout, what it takes in µs (None: the limits do not admit it, and there
    are 0 fragments), and the first and last cap in bytes that gives it; None: every greater one.
    """

    fragments: int
    latency_us: float | None
    from_bytes: int
    to_bytes: int | None


def priced_layouts(
    problem: ItemProblem, rule: FillRule, deadline: Deadline
) -> tuple[list[PricedLayout], bool]:
    """Return every layout that a cap gives with its latency by the kernels, by rising caps, and
    whether these are all: else the deadline has passed. Raises Infeasible.
    """
    found = list[PricedLayout]()
    for one in _priced(problem, _started(problem, rule)):
        if found and deadline.passed:
            return found, False
        found.append(one)
    return found, True


def priced_above(
    problem: ItemProblem, rule: FillRule, cap_bytes: int, count: int
) -> list[PricedLayout]:
    """Return at most so many layouts above a cap, evenly by the logarithm of theirs. Where one
    begins is not looked for: `from_bytes` is the cap that was tried. Raises Infeasible.
    """
    walk = _started(problem, rule)
    if cap_bytes >= walk.last_cap:
        return []
    ratio = walk.last_cap / cap_bytes
    tried = {round(cap_bytes * ratio ** (place / count)) for place in range(1, count + 1)}
    begun = (
        CapWalk(walk.is_before, walk.first_bytes, cap, walk.last_cap)
        for cap in sorted(tried)
        if cap_bytes < cap <= walk.last_cap
    )
    return [next(_priced(problem, one)) for one in begun]


def _priced(problem: ItemProblem, walk: CapWalk) -> Iterator[PricedLayout]:
    arrays, delay_us = arrays_of(problem), problem.pipeline.delay_us
    for step in item_kernels().cap_steps(arrays, walk):
        latency_us = step.latency_us + delay_us if step.fragments else None
        yield PricedLayout(step.fragments, latency_us, step.from_bytes, step.to_bytes or None)
