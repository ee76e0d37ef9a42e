"""Which sizes to measure next, so that every transition of the bottleneck is found.

Source    theory.md sec. 7: if both ends of a range of sizes lie on one line, that is the bottleneck
          in between; otherwise measure where the two end lines meet. On the envelope there: one
          transition, exactly located; above it: a third line, and the same again on both sides.
          (The method of Eisner & Severance 1976 for envelopes of lines.)
Notation  b(x): inter-arrival time at x bytes, the upper envelope of the stages' lines; a known line
          is one that two or more measured neighbours lie on.
Cost      O(m^2) for m measured sizes.
Exact     without noise, for stages of one line each: every transition between the end pairs is
          located, after at most two sizes for each line and one for each transition.
Traps     a line needs two sizes: near an end they are a factor of PAIR apart, elsewhere NEAR, which
          is closer than a transition can be told from noise. With protocol switches the times are
          no envelope: lines that do not meet in between are halved instead, and that is said.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import ceil, isnan, nan, sqrt

import numpy as np

from domain.measurement import MessageTrace, Samples
from domain.pipeline import Line
from domain.plan import (
    KnownBottleneck,
    MeasurementPlan,
    NextMeasurement,
    PlanLimits,
    Quantity,
    Transition,
)
from domain.units import format_bytes

PAIR = 2.0
NEAR = 1.25
_RUN = 2.5  # neighbours further apart than this do not make a line by themselves
_SAME_SIZE = 0.02
_EXACT = 1e-3  # relative difference that counts as none where there is no noise
_WIDE = 64.0  # a run of neighbours that spans more than this is looked at in its middle too
_LOCATED = 1.05  # a transition between two sizes this close needs no further measurement
_SPREADS = 3.0
_FIRST_REPETITIONS, _MOST_REPETITIONS = 10, 1000


@dataclass(frozen=True, slots=True)
class _Point:
    """A measured size: the median time and its standard error, both in µs; NaN where unknown."""

    x: int
    y: float
    error: float


@dataclass(frozen=True, slots=True)
class _Run:
    """Neighbouring points that lie on one line."""

    points: tuple[_Point, ...]
    line: Line

    @property
    def first(self) -> int:
        return self.points[0].x

    @property
    def last(self) -> int:
        return self.points[-1].x


def plan_measurements(trace: MessageTrace | None, limits: PlanLimits) -> MeasurementPlan:
    """What to measure next for the bottleneck between two sizes, or that it is known."""
    samples = trace.interarrival if trace is not None else None
    repetitions = _repetitions(samples, limits)
    points = [p for p in _points(samples) if limits.least_bytes <= p.x <= limits.greatest_bytes]
    wanted = _ends(points, limits)
    runs: list[_Run] = []
    transitions: list[Transition] = []
    if not wanted:
        runs, lonely = _runs(points, limits.tolerance)
        wanted += [size for point in lonely for size in _neighbour(point, points)]
        wanted += [size for run in runs for size in _middle(run)]
        for left, right in pairwise(runs):
            between = [point for point in lonely if left.last < point.x < right.first]
            _settle(left, right, between, limits, wanted, transitions)
    latency = _latencies(trace, limits)
    measure = tuple(
        NextMeasurement(size, Quantity.INTERARRIVAL, repetitions, why)
        for size, why in sorted(dict(reversed(wanted)).items())
    )
    return MeasurementPlan(
        decided=not measure and not latency,
        reason=_reason(measure, latency, runs, transitions, limits),
        measure=(*measure, *latency),
        transitions=tuple(transitions),
        bottlenecks=tuple(KnownBottleneck(run.first, run.last, run.line) for run in runs),
    )


# ---- what was measured --------------------------------------------------------------------------


def _points(samples: Samples | None) -> list[_Point]:
    if samples is None:
        return []
    x = np.asarray(samples.message_bytes, dtype=np.int64)
    y = np.asarray(samples.times_us, dtype=np.float64)
    points = []
    for size in np.unique(x):
        times = y[x == size]
        middle = float(np.median(times))
        spread = 1.4826 * float(np.median(np.abs(times - middle))) if len(times) > 2 else nan
        points.append(_Point(int(size), middle, 1.2533 * spread / sqrt(len(times))))
    return points


def _repetitions(samples: Samples | None, limits: PlanLimits) -> int:
    """So many that the median's error is a third of the tolerance, by the noise seen so far."""
    if samples is None:
        return _FIRST_REPETITIONS
    x = np.asarray(samples.message_bytes, dtype=np.int64)
    y = np.asarray(samples.times_us, dtype=np.float64)
    spreads = []
    for size in np.unique(x):
        times = y[x == size]
        middle = float(np.median(times))
        if len(times) > 2 and middle > 0.0:
            spreads.append(1.4826 * float(np.median(np.abs(times / middle - 1.0))))
    if not spreads:
        return _FIRST_REPETITIONS
    needed = (1.2533 * float(np.median(spreads)) * _SPREADS / limits.tolerance) ** 2
    return int(min(_MOST_REPETITIONS, max(5, ceil(needed))))


def _ends(points: list[_Point], limits: PlanLimits) -> list[tuple[int, str]]:
    """Sizes that are missing for a line at each end."""
    low, high = limits.least_bytes, limits.greatest_bytes
    sizes = [point.x for point in points]
    why = "a line at the end of the range needs two sizes"
    wanted: list[tuple[int, str]] = []
    near_low = [x for x in sizes if x <= _RUN * low]
    near_high = [x for x in sizes if x * _RUN >= high]
    if not any(_is_same(x, low) for x in near_low):
        wanted.append((low, why))
    if len([x for x in near_low if not _is_same(x, low)]) < 1:
        wanted.append((ceil(PAIR * low), why))
    if not any(_is_same(x, high) for x in near_high):
        wanted.append((high, why))
    if len([x for x in near_high if not _is_same(x, high)]) < 1:
        wanted.append((int(high / PAIR), why))
    return wanted


def _is_same(x: float, size: float) -> bool:
    return abs(x - size) <= max(1.0, _SAME_SIZE * size)


# ---- lines --------------------------------------------------------------------------------------


def _runs(points: list[_Point], tolerance: float) -> tuple[list[_Run], list[_Point]]:
    """Maximal runs of neighbours on one line, from the left; and the points on none."""
    runs: list[_Run] = []
    lonely: list[_Point] = []
    at = 0
    while at < len(points):
        upto = _run_end(points, at, tolerance)
        if upto is None:
            lonely.append(points[at])
            at += 1
            continue
        found = tuple(points[at : upto + 1])
        runs.append(_Run(found, _line(found)))
        at = upto + 1
    return runs, lonely


def _run_end(points: list[_Point], at: int, tolerance: float) -> int | None:
    """The last point of the longest run from here; None where there is no line.

    Two neighbours make one where they are close; three and more where they agree, however far.
    """
    best: int | None = None
    for upto in range(at + 1, len(points)):
        part = points[at : upto + 1]
        line = _line(part)
        if not all(_is_on(point, line, tolerance) for point in part):
            break
        if upto > at + 1 or points[upto].x <= _RUN * points[at].x:
            best = upto
    return best


def _line(points: list[_Point] | tuple[_Point, ...]) -> Line:
    """The line of least relative squares."""
    x = np.array([point.x for point in points], dtype=np.float64)
    y = np.array([point.y for point in points])
    w = 1.0 / np.maximum(y, 1e-12 * float(y.max()) + 1e-300) ** 2
    w = w / w.max()
    centre = float(w @ x / w.sum())
    middle = float(w @ y / w.sum())
    slope = float(w @ ((x - centre) * (y - middle))) / float(w @ (x - centre) ** 2)
    return Line(middle - slope * centre, 1000.0 * slope)


def _is_on(point: _Point, line: Line, tolerance: float) -> bool:
    expected = line.time_us(point.x)
    # Where the noise is known it decides, and not what would be near enough: far ends that are
    # nearly on one line may have another one high above it between them.
    allowed = tolerance * abs(expected)
    if not isnan(point.error):
        allowed = min(allowed, max(_SPREADS * point.error, _EXACT * abs(expected)))
    return abs(point.y - expected) <= allowed


def _neighbour(point: _Point, points: list[_Point]) -> list[tuple[int, str]]:
    """A size near a point that is on no line, so that it gets one; none where both are there."""
    sizes = [other.x for other in points]
    why = f"at {format_bytes(point.x)} the times are on no known line: a second size gives it one"
    for size in (ceil(point.x * NEAR), int(point.x / NEAR)):
        if not any(_is_same(x, size) for x in sizes) and min(sizes) < size < max(sizes):
            return [(size, why)]
    return []


def _middle(run: _Run) -> list[tuple[int, str]]:
    """The middle of a long run, where nothing was measured there yet."""
    low, high = run.first, run.last
    middle = int(sqrt(float(low) * high))
    quarter = sqrt(sqrt(high / low))
    if high <= _WIDE * low or any(middle / quarter <= p.x <= middle * quarter for p in run.points):
        return []
    return [(middle, "both ends are on one line: does the middle lie on it too?")]


def _settle(
    left: _Run,
    right: _Run,
    between: list[_Point],
    limits: PlanLimits,
    wanted: list[tuple[int, str]],
    transitions: list[Transition],
) -> None:
    """Between two known lines: one transition where they meet, or one more size to measure."""
    if between:
        return  # their own lines come first
    sizes = (left.last, right.first)
    meet = _meeting(left.line, right.line)
    inside = meet is not None and sizes[0] / _LOCATED <= meet <= sizes[1] * _LOCATED
    if inside and meet is not None:
        at = int(min(max(round(meet), sizes[0]), sizes[1]))
        if any(_is_same(x, at) for x in sizes) or sizes[1] <= _LOCATED * sizes[0]:
            transitions.append(Transition(sizes, at))
        else:
            wanted.append((at, "here the two known lines meet: is there a third above them?"))
    elif sizes[1] <= _LOCATED * sizes[0]:
        transitions.append(Transition(sizes, None))
    else:
        middle = int(sqrt(float(sizes[0]) * sizes[1]))
        why = "the two known lines do not meet in between, as at a protocol switch: halve"
        wanted.append((middle, why))


def _meeting(one: Line, other: Line) -> float | None:
    apart = other.ns_per_byte - one.ns_per_byte
    if apart == 0.0:
        return None
    return 1000.0 * (one.overhead_us - other.overhead_us) / apart


# ---- the rest -----------------------------------------------------------------------------------


def _latencies(trace: MessageTrace | None, limits: PlanLimits) -> tuple[NextMeasurement, ...]:
    """Latencies at both ends and in the middle: the sum of all stages is one line or shows it."""
    samples = trace.latency if trace is not None else None
    known = set(samples.message_bytes) if samples is not None else set[int]()
    low, high = limits.least_bytes, limits.greatest_bytes
    sizes = (low, int(sqrt(float(low) * high)), high)
    repetitions = _repetitions(samples, limits)
    why = "the sum of all stages needs latencies over the range"
    if len([x for x in known if low <= x <= high]) >= len(sizes):
        return ()
    missing = [size for size in sizes if not any(_is_same(x, size) for x in known)]
    return tuple(NextMeasurement(x, Quantity.LATENCY, repetitions, why) for x in missing)


def _reason(
    measure: tuple[NextMeasurement, ...],
    latency: tuple[NextMeasurement, ...],
    runs: list[_Run],
    transitions: list[Transition],
    limits: PlanLimits,
) -> str:
    span = f"from {format_bytes(limits.least_bytes)} to {format_bytes(limits.greatest_bytes)}"
    if measure:
        return f"the bottleneck {span} is not known yet: {measure[0].why}"
    if latency:
        return f"the bottleneck {span} is known; {latency[0].why}"
    if not transitions:
        return f"one line holds for the inter-arrival times {span}: one stage is the slowest"
    places = ", ".join(
        f"between {format_bytes(low)} and {format_bytes(high)}"
        for low, high in (found.between_bytes for found in transitions)
    )
    return f"{len(runs)} lines hold for the inter-arrival times {span}; they change {places}"
