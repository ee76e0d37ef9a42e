"""How sure a gain of hiding is, where the costs of the stages were fitted.

Source    docs/theory.md, "Uncertain costs", for the draws; Strumpen94 sec. 2.1 for the gain.
Notation  d draws of the costs; c: the calculation, A: what of it goes on meanwhile; q messages.
Cost      O(q k d n) for cuts of k fragments; none beyond `MAX_CELLS`.
Traps     the cuts stay those of the estimates: what is asked is what these may gain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.draw_costs import cut_us, stage_times_us
from analysis.draws import Draws, draw
from contract.limits import DEFAULT_DRAWS
from domain.uncertainty import NamedCut, UncertainPipeline, seed_of
from solvers.hidden_cut import HostWork

Floats = NDArray[np.float64]

MAX_CELLS = 20_000_000  # fragments times draws times stages, about a second
_TAILS = (2.5, 97.5)  # percent; between them are 95 % of the draws


@dataclass(frozen=True, slots=True)
class HiddenCuts:
    """What hiding is compared with: cut and host without it, and with it; before it, µs."""

    plain: tuple[int, ...]
    alone: HostWork
    calculation_us: float
    hidden: tuple[int, ...]
    host: HostWork
    before_us: float


def gain_interval(model: UncertainPipeline, cuts: HiddenCuts) -> tuple[float, float] | None:
    """Return where 95 % of the gains are over draws of the costs; None for very long cuts."""
    messages = max(cuts.alone.messages, 1)
    fragments = messages * max(len(cuts.plain), len(cuts.hidden))
    if fragments * DEFAULT_DRAWS * len(model.stages) > MAX_CELLS:
        return None
    draws = draw(model, DEFAULT_DRAWS, seed_of(model))
    without_us = cuts.calculation_us + _run_us(draws, cuts.alone, cuts.plain)
    with_us = cuts.before_us + _run_us(draws, cuts.host, cuts.hidden)
    gains = np.divide(without_us, with_us, out=np.ones_like(with_us), where=with_us > 0.0)
    low, high = np.percentile(gains, _TAILS)
    return float(low), float(high)


def _run_us(draws: Draws, host: HostWork, cut: Sequence[int]) -> Floats:
    """max(A + w, T) in each draw, µs: (draws,)."""
    row = tuple(cut) * host.messages if host.are_train else tuple(cut)
    one_us = cut_us(draws, sum(row), NamedCut.of_fragments("cut", row))
    sent_us: Floats = one_us if host.are_train else host.messages * one_us
    work_us = np.zeros(draws.count)
    sizes, counts = np.unique(np.array(cut, dtype=np.int64), return_counts=True)
    for on in host.processors:
        busy = sum((counts @ stage_times_us(draws, j, sizes) for j in on), np.zeros(draws.count))
        work_us = np.maximum(work_us, host.messages * busy)
    run_us: Floats = np.maximum(host.calculation_us + work_us, sent_us)
    return run_us
