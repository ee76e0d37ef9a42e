"""The signatures of an end point as curves: mean costs by size, computation and burst."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np

from domain.fit_plot import SignatureCurve, SignaturePlot
from domain.measurement import SignatureTrace

_Key = TypeVar("_Key", int, float)

MAX_SIGNATURES, MAX_CURVES, MAX_BURSTS = 6, 12, 200


def signature_plots(trace: SignatureTrace) -> tuple[SignaturePlot, ...]:
    """Return mean costs by size, computation and burst; the median of several rows."""
    costs: dict[int, dict[float, dict[int, list[float]]]] = {}
    rows = zip(trace.message_bytes, trace.computation_us, trace.bursts, trace.cost_us, strict=True)
    for size, computation, burst, cost in rows:
        by_burst = costs.setdefault(int(size), {}).setdefault(float(computation), {})
        by_burst.setdefault(int(burst), []).append(float(cost))
    return tuple(
        SignaturePlot(
            size,
            tuple(_curve(value, costs[size][value]) for value in _spread(costs[size], MAX_CURVES)),
        )
        for size in _spread(costs, MAX_SIGNATURES)
    )


def _curve(computation_us: float, costs: Mapping[int, Sequence[float]]) -> SignatureCurve:
    bursts = _spread(costs, MAX_BURSTS)
    medians = tuple(float(np.median(costs[burst])) for burst in bursts)
    return SignatureCurve(computation_us, tuple(bursts), medians)


def _spread(keys: Mapping[_Key, object], maximum: int) -> list[_Key]:
    """At most so many of the keys, ascending, the least and the greatest among them."""
    ordered = sorted(keys)
    if len(ordered) <= maximum:
        return ordered
    return [ordered[place * (len(ordered) - 1) // (maximum - 1)] for place in range(maximum)]
