"""Which parameters that measurements do not determine a latency rests on.

Source    docs/theory.md, "Uncertain costs".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from analysis.decision import PricedCut, share_of
from analysis.draw_costs import cut_us
from analysis.draws import Draws
from domain.uncertain_answer import RestsOn, Thresholds
from domain.uncertainty import Parameter, UncertainModel, UncertainStage

Floats = NDArray[np.float64]

_IN_DRAWS = 0.1  # a parameter is named that matters in so many draws
_PRICED = 128  # draws in which that is looked at, once a parameter
_STEP = 1e-6  # of a parameter, relative to it, for its share of a latency


def rests_on(
    model: UncertainModel,
    draws: Draws,
    message_bytes: int,
    subject: PricedCut,
    thresholds: Thresholds,
    price: Callable[[Draws], Floats] | None = None,
) -> tuple[RestsOn, ...]:
    """Return parameters that are not determined and make more of the latency than the margin.

    A latency is a longest path, piecewise linear in each parameter: what a parameter makes of it is
    the parameter times its derivative, here a difference. A path has each fragment once a stage, so
    that the derivative is at most the number of fragments, or of bytes; most need no difference.
    `price` prices the subject in draws, where that is no cut at any byte.
    """
    asked = model.derived(_unsupported)
    if not asked:
        return ()
    latency_us = subject.latency_us[:_PRICED]
    margin_us = thresholds.margin * latency_us
    most = {
        Parameter.OVERHEAD: float(subject.cut.fragments(message_bytes)),
        Parameter.PER_BYTE: message_bytes / 1000.0,
    }
    found = []
    for name, j, r, parameter in asked:
        costs = _costs(draws, parameter)[j, r, :_PRICED]
        if not np.any(costs * most[parameter] > margin_us):
            continue
        raised = _raised(draws.part(0, _PRICED), j, r, parameter)
        raised_us = price(raised) if price else cut_us(raised, message_bytes, subject.cut)
        more_us = raised_us - latency_us
        share = share_of(more_us > _STEP * margin_us)
        if share >= _IN_DRAWS:
            found.append(RestsOn(name, r, parameter, share))
    return tuple(found)


def _unsupported(model: UncertainModel) -> list[tuple[str, int, int, Parameter]]:
    """The parameters that are not determined: of which stage and range."""
    return [
        (stage.name, j, r, parameter)
        for j, stage in enumerate(model.stages)
        for r, line in enumerate(stage.lines if isinstance(stage, UncertainStage) else ())
        for parameter in line.unsupported
    ]


def _costs(draws: Draws, parameter: Parameter) -> Floats:
    return draws.overhead_us if parameter is Parameter.OVERHEAD else draws.ns_per_byte


def _raised(draws: Draws, stage: int, place: int, parameter: Parameter) -> Draws:
    """The draws with one parameter a step higher."""
    costs = _costs(draws, parameter).copy()
    costs[stage, place] *= 1.0 + _STEP
    if parameter is Parameter.OVERHEAD:
        return replace(draws, overhead_us=costs)
    return replace(draws, ns_per_byte=costs)
