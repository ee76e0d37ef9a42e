"""One message over all repeated sizes at the costs as they stand: what to set, and what is near it.

from analysis.size_curve import size_curve, with_cost
curve = size_curve(problem, also=(65536,))
curve.recommended.size_bytes, curve.latency_of(65536)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf

import numpy as np
from numpy.typing import NDArray

from analysis.draw_costs import repeated_us
from analysis.draws import Draws, at_estimates
from analysis.range_size import RangeSize
from analysis.repeated_sizes import (
    admits,
    good_sizes,
    is_admitted,
    price_sizes,
    round_sizes,
)
from domain.errors import Infeasible, StrategyDeclined
from domain.pipeline import Pipeline
from domain.problem import MessageProblem
from domain.uncertain_answer import (
    DecisionCode,
    GoodSizes,
    RoundSize,
    Thresholds,
    Uncertainty,
    round_or_best,
)

Ints = NDArray[np.int64]

_PER_OCTAVE = 12  # sizes that are drawn
_MAX_COUNT = 64  # and those that cut the message into one fragment fewer, up to this many
_MARGIN = Thresholds().margin + 1e-9
_TIMES_THE_BEST = 16.0  # sizes are drawn down to where they cost so much


class ChangedCost(StrEnum):
    """Which of a stage's two costs is changed."""

    OVERHEAD = "overhead"
    PER_BYTE = "per_byte"
    BOTH = "both"


def with_cost(pipeline: Pipeline, stage: int, cost: ChangedCost, factor: float) -> Pipeline:
    """Return the pipeline with this cost of a stage, counted from 0, times a factor, in all ranges.

    Raises what `Pipeline.scaled` does.
    """
    overhead = factor if cost is not ChangedCost.PER_BYTE else 1.0
    per_byte = factor if cost is not ChangedCost.OVERHEAD else 1.0
    return pipeline.scaled(stage, overhead=overhead, per_byte=per_byte)


@dataclass(frozen=True, slots=True)
class SizePoint:
    """A repeated size, into how many fragments it cuts the message, and what that takes."""

    size_bytes: int
    fragments: int
    latency_us: float


@dataclass(frozen=True, slots=True)
class SizeCurve:
    """A message over all repeated sizes. `points` ascend by size.

    `best` takes least of all sizes that were tried; `round_sizes` has the best of each rule, the
    recommended one first, with its regret over `best`; `good` the sizes within 1, 2 and 5 % of it;
    `asked` those that were asked for, of which None is what the limits do not admit.
    """

    message_bytes: int
    points: tuple[SizePoint, ...]
    best: SizePoint
    round_sizes: tuple[tuple[RoundSize, SizePoint], ...]
    good: tuple[GoodSizes, ...]
    asked: tuple[SizePoint | None, ...]

    @property
    def recommended(self) -> SizePoint:
        """The round size to repeat; the best one where none is within 2 % of it."""
        size = round_or_best([one for one, _ in self.round_sizes[:1]], self.best.size_bytes)
        return self.best if size == self.best.size_bytes else self.round_sizes[0][1]


@dataclass(frozen=True, slots=True)
class SizeChoice:
    """The size to repeat, `chosen`: today's, `current`, or the one that is best to change to.

    `current` is None where none was named or the limits do not admit it. `over` is the one size for
    messages of a range, None where it was not looked for.
    """

    chosen: SizePoint
    recommended: SizePoint
    current: SizePoint | None
    over: RangeSize | None = None


def gain_over(one: SizePoint, other: SizePoint) -> float:
    """Return 1 - T/T_other, 0 where the other takes no time."""
    return 1.0 - one.latency_us / other.latency_us if other.latency_us > 0.0 else 0.0


def preferred(
    wanted: SizePoint, current: SizePoint | None, decision: str = "", *, misfit: float = 0.0
) -> SizePoint:
    """Return the size that is wanted, or today's where that gains no more than 1 % over it, or than
    the share that the model is known to be wrong by.

    `decision` over draws of the costs is about these two: what it sets is wanted, and what is to be
    measured first where it gains anything.
    """
    if current is None or decision == DecisionCode.SET_IT:
        return wanted
    needed = 0.0 if decision == DecisionCode.MEASURE_FIRST else max(_MARGIN, misfit)
    return wanted if gain_over(wanted, current) > needed else current


def choose_size(
    problem: MessageProblem,
    known: Uncertainty | None,
    *,
    current_bytes: int | None,
    misfit: float = 0.0,
) -> SizeChoice | None:
    """Return the size to repeat: that of the decision where errors of the costs are known, else a
    round one within 2 % of the best, or that; today's where it is as good. Sizes in bytes.

    `misfit` is the share of the latency that the model is known to be wrong by. None where the
    limits admit no repeated size, and for stages that hand bytes on as they move. Where measured
    times are told, latencies are of these; what is to be measured first is not chosen.
    """
    model, total = problem.model, problem.message_bytes
    if isinstance(model, Pipeline) and model.without_handoffs is not model:
        return None
    decided = known.repeats_bytes if known else 0
    also = [min(size, total) for size in (current_bytes, decided) if size]
    exact = at_estimates(model)
    try:
        points = {size: _point(exact, total, size) for size in also if admits(problem, size)}
        wanted = points.get(min(decided, total))
        if wanted is None:  # nothing is decided, and all sizes are to be looked at
            priced = price_sizes(problem, exact, also=also)
            best = int(priced.sizes[priced.order[0]])
            rounds = round_sizes(problem, priced, mtu_bytes=None)
            wanted = _point(exact, total, round_or_best(rounds, best))
    except (StrategyDeclined, Infeasible):
        return None
    current = points.get(min(current_bytes or 0, total))
    if known is not None and known.is_refused:
        whole = _point(exact, total, total) if admits(problem, total) else wanted
        return SizeChoice(current or whole, wanted, current)
    file = known.file_of_repeated if known else None
    if current is not None and file is not None and min(file.gains) <= 0.0:
        wanted = current  # of uneven fragments: by the measured times the one size gains nothing
    elif known is not None and file is not None and known.tells_file:
        at = int(known.are_means)
        wanted = replace(wanted, latency_us=file.latency_us[at])
        current = replace(current, latency_us=file.against_us[at]) if current else None
    decision = known.decision.code if known and known.decision.advised.size_bytes else ""
    chosen = preferred(wanted, current, decision, misfit=misfit)
    return SizeChoice(chosen, wanted, current)


def size_curve(
    problem: MessageProblem,
    *,
    also: Sequence[int] = (),
    mtu_bytes: int | None = None,
) -> SizeCurve:
    """Return what every repeated size takes, sizes in bytes, at the costs as they stand.

    O(sizes x stages), for some 300 sizes. Raises Infeasible, and StrategyDeclined where the limits
    admit no repeated size.
    """
    exact = at_estimates(problem.model)
    total = problem.message_bytes
    priced = price_sizes(problem, exact, also=also, mtu_bytes=mtu_bytes)

    def point(size: int) -> SizePoint:
        return _point(exact, total, size)

    best = point(int(priced.sizes[priced.order[0]]))
    asked = np.array([max(1, size) for size in also], dtype=np.int64)
    admitted = is_admitted(problem, asked)
    return SizeCurve(
        total,
        tuple(_points(problem, exact, priced.sizes, best)),
        best,
        tuple(
            (one, point(one.size_bytes))
            for one in round_sizes(problem, priced, mtu_bytes=mtu_bytes)
        ),
        good_sizes(problem, exact, priced),
        tuple(point(size) if fits else None for size, fits in zip(also, admitted, strict=True)),
    )


def _point(exact: Draws, total: int, size: int) -> SizePoint:
    whole = min(size, total)
    latency = float(repeated_us(exact, total, np.array([whole], dtype=np.int64))[0, 0])
    return SizePoint(whole, -(-total // whole), latency)


def _points(problem: MessageProblem, exact: Draws, known: Ints, best: SizePoint) -> list[SizePoint]:
    """Sizes evenly on a logarithmic axis, those beside which one fragment more begins, and those
    that were priced anyway.
    """
    total, unit = problem.message_bytes, problem.limits.alignment_bytes
    octaves = max(1, total.bit_length())
    evenly = np.geomspace(1, total, octaves * _PER_OCTAVE).astype(np.int64)
    counts = np.arange(1, _MAX_COUNT + 1, dtype=np.int64)
    divided = -(-total // counts)
    sizes = np.concatenate([evenly, divided, divided[divided > 1] - 1, known])
    sizes = np.unique(np.minimum(-(-sizes // unit) * unit, total))
    sizes = sizes[is_admitted(problem, sizes)]
    latency = repeated_us(exact, total, sizes)[:, 0]
    limit = _TIMES_THE_BEST * best.latency_us if best.latency_us > 0.0 else inf
    near = np.flatnonzero(latency <= limit)
    first = int(near[0]) if len(near) else 0
    shown = range(first, len(sizes))
    return [SizePoint(int(sizes[i]), -(-total // int(sizes[i])), float(latency[i])) for i in shown]
