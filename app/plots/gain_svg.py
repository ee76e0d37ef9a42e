"""Pictures of hiding: run time, gain by c / T, speed-up; of thresholds: latency by size.

    render_hiding_svg(answer, Picture.RUN_TIME)

The figures of Strumpen94 and of Yocum97 sec. 4 are curves of these kinds. Domain values in, a
stand-alone SVG out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from app.plots.curves_svg import (
    Curve,
    CurvesPlot,
    HorizontalAxis,
    VerticalAxis,
    curves_element,
)
from domain.delivery import DeliveryRule
from domain.errors import InconsistentInput
from domain.hiding import BestProcesses, Overlap, ProcessPoint

_SPAN = 100.0  # how far the gain is drawn to either side of its peak, as a factor
_POINTS = 121


class Picture(StrEnum):
    """What is drawn."""

    RUN_TIME = "run_time"
    GAIN = "gain"
    SPEEDUP = "speedup"


@dataclass(frozen=True, slots=True)
class CountTimes:
    """One number of fragments: latency, the processor's part, and the run time, µs."""

    fragments: int
    latency_us: float
    host_us: float
    with_us: float


def run_time_svg(counts: Sequence[CountTimes], *, hidden: int, latency_optimal: int) -> str:
    """Draw run times by number of fragments, with both optima marked. Raises InconsistentInput."""
    by_count = {one.fragments: one for one in counts}
    curves = (
        Curve("run time with hiding", tuple((one.fragments, one.with_us) for one in counts)),
        Curve("latency", tuple((one.fragments, one.latency_us) for one in counts)),
        Curve("processor", tuple((one.fragments, one.host_us) for one in counts)),
        _mark("least run time", (hidden, by_count[hidden].with_us)),
        _mark("least latency", (latency_optimal, by_count[latency_optimal].with_us)),
    )
    title = "Run time behind a calculation by number of fragments"
    return _drawn(CurvesPlot(title, HorizontalAxis.FRAGMENTS, VerticalAxis.TIME, curves))


def gain_svg(
    overlap: Overlap, *, point: tuple[float, float] | None, window: tuple[float, float] | None
) -> str:
    """Draw the gain by c / T around its peak, the `point` asked about, and the ends of the window.

    Raises InconsistentInput.
    """
    peak = 1.0 / overlap.full_at if overlap.full_at > 0.0 else 1.0
    steps = (_SPAN ** (2.0 * place / (_POINTS - 1) - 1.0) for place in range(_POINTS))
    curves = [
        Curve("gain", tuple((peak * step, overlap.gain(1.0 / (peak * step))) for step in steps))
    ]
    curves.append(_mark("greatest gain", (peak, overlap.gain(1.0 / peak))))
    if point is not None:
        curves.append(_mark("asked about", point))
    if window is not None:
        ends = tuple((end, overlap.gain(1.0 / end)) for end in window)
        curves.append(Curve("at least the gain asked for", ends))
    title = "Gain by calculation over communication"
    return _drawn(CurvesPlot(title, HorizontalAxis.RATIO, VerticalAxis.GAIN, tuple(curves)))


def speedup_svg(points: Sequence[ProcessPoint], best: BestProcesses) -> str:
    """Draw speed-ups by number of processes, both optima and the gain's peak marked.

    Raises InconsistentInput.
    """
    by_count = {one.processes: one for one in points}
    curves = (
        Curve("without hiding", tuple((one.processes, one.speedup) for one in points)),
        Curve("with hiding", tuple((one.processes, one.hidden_speedup) for one in points)),
        _mark("best without", (best.without, by_count[best.without].speedup)),
        _mark("best with", (best.hidden, by_count[best.hidden].hidden_speedup)),
        _mark("greatest gain", (best.gain, by_count[best.gain].hidden_speedup)),
    )
    title = "Speed-up by number of processes"
    return _drawn(CurvesPlot(title, HorizontalAxis.PROCESSES, VerticalAxis.SPEEDUP, curves))


@dataclass(frozen=True, slots=True)
class SizeCurve:
    """Latencies, µs, by the size in bytes of one stage; the other stages' choice names it."""

    name: str
    points: tuple[tuple[int, float], ...]


def thresholds_svg(
    curves: Sequence[SizeCurve],
    *,
    rule: DeliveryRule,
    store_and_forward_us: float,
    ideal_us: float,
    lower_bound_us: float,
    best: tuple[int, float],
) -> str:
    """Draw latencies by threshold or pulse size between store and forward and what is ideal.

    Raises InconsistentInput.
    """
    sizes = [size for curve in curves for size, _ in curve.points]
    ends = (float(min(sizes)), float(max(sizes)))
    drawn = [Curve(one.name, tuple((float(x), y) for x, y in one.points)) for one in curves]
    levels = {
        "store and forward": store_and_forward_us,
        "ideal cut-through": ideal_us,
        "lower bound, of this model": lower_bound_us,
    }
    drawn += [Curve(name, tuple((end, us) for end in ends)) for name, us in levels.items()]
    drawn.append(_mark("best", (float(best[0]), best[1])))
    is_eager = rule is DeliveryRule.EAGER
    across = HorizontalAxis.THRESHOLD if is_eager else HorizontalAxis.PULSE
    title = f"Latency by {'threshold' if is_eager else 'pulse size'}"
    return _drawn(CurvesPlot(title, across, VerticalAxis.LATENCY, tuple(drawn)))


def _mark(name: str, point: tuple[float, float]) -> Curve:
    return Curve(name, (point,), is_mark=True)


def _drawn(plot: CurvesPlot) -> str:
    element = curves_element(plot)
    if not element:
        raise InconsistentInput(
            "nothing of this can be drawn: all of it takes no time", field="plot"
        )
    return element + "\n"
