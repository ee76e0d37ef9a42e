"""What every cap costs a message that is cut between items, thinned to what a picture can show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import log

from domain.items import FillRule, ItemProblem
from solvers.contract import Deadline
from solvers.items.caps import TRIED, PricedLayout, priced_above, priced_layouts

CURVE_LIMIT_S = 2.0
MAX_STEPS = 512  # that are drawn each for itself
_COLUMNS = 256


@dataclass(frozen=True, slots=True)
class CapCurve:
    """Latencies by cap, by rising caps. Up to `walked_bytes` all `layouts` were looked at; where
    there are more than `steps` these are the fastest and the slowest of each 256th of the axis.
    Unless that `is_complete`, time was up, and `tried` are some of greater caps.
    """

    steps: tuple[PricedLayout, ...]
    layouts: int
    is_complete: bool
    walked_bytes: int
    tried: tuple[PricedLayout, ...] = ()

    @property
    def is_thinned(self) -> bool:
        """Whether some layouts are left out."""
        return len(self.steps) < self.layouts


def cap_curve(problem: ItemProblem, fill: FillRule, *, time_limit_s: float) -> CapCurve:
    """Price every layout that a cap gives, for this time at most. Raises Infeasible."""
    found, is_complete = priced_layouts(problem, fill, Deadline.after(time_limit_s))
    walked, tried = found[-1].from_bytes, tuple[PricedLayout, ...]()
    if not is_complete:
        tried = tuple(priced_above(problem, fill, found[-1].to_bytes or walked, TRIED))
    return CapCurve(tuple(thinned(found)), len(found), is_complete, walked, tried)


def thinned(found: Sequence[PricedLayout]) -> Iterable[PricedLayout]:
    """Return all of a few; of many the fastest, the slowest and the first that is not admitted of
    each 256th of the logarithm of caps, in their order.
    """
    if len(found) <= MAX_STEPS:
        return found
    first, last = log(found[1].from_bytes), log(found[-1].from_bytes)

    def column(one: PricedLayout) -> int:
        return int(_COLUMNS * (log(one.from_bytes) - first) / (last - first))

    return [one for _, members in groupby(found, column) for one in _extremes(list(members))]


def _extremes(members: Sequence[PricedLayout]) -> Iterable[PricedLayout]:
    priced = [
        (one.latency_us, one.from_bytes, one) for one in members if one.latency_us is not None
    ]
    kept = {one.from_bytes: one for *_, one in (min(priced), max(priced))} if priced else {}
    refused = next((one for one in members if one.latency_us is None), None)
    if refused is not None:
        kept[refused.from_bytes] = refused
    return [kept[cap] for cap in sorted(kept)]
