"""Which sizes to measure next, so that every transition of the bottleneck is found.

Source    theory.md sec. 7: if both ends of a range of sizes lie on one line, that is the bottleneck
          in between; otherwise measure where the two end lines meet. On the envelope there: one
          transition, exactly located; above it: a third line, and the same again on both sides.
          (Eisner76 finds envelopes of lines like that.)
Notation  b(x): inter-arrival time at x bytes, the upper envelope of the stages' lines. Convex:
          between two neighbours it is not above their chord, and not below the lines that their
          outer neighbours lie on too.
Cost      O(m^2) for m measured sizes.
Exact     without noise, for stages of one line each, where no two sizes of a pair lie on both sides
          of a transition: all are located, after at most two sizes for each line and one for each
          transition. With noise: those that stand out from it.
Traps     a line needs two sizes: at the ends they are a factor of PAIR apart, elsewhere as close as
          the noise allows. Three points that agree within the noise may still have a dent between
          them where they are far apart: wide holes are looked into. With protocol switches the
          times are no envelope: lines that do not meet in between are halved, and that is said.
"""

from __future__ import annotations

from itertools import pairwise
from math import ceil, sqrt

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
from measuring.neighbours import CLOSE, SPREADS, Noise, Point, Run, points_of, runs_of

PAIR = 2.0
_NEAREST = 1.02  # a pair in the middle is at least this far apart, and at most PAIR
_SAME_SIZE = 0.02
_SEEN = 0.1  # a dent this deep in a run of neighbours is not to be missed
_SEEN_DENT = 1.0  # standard errors by which a third line between two others may stand out
_LOCATED = 1.05  # a transition between two sizes this close needs no further measurement
_FIRST_REPETITIONS, _MIN_REPETITIONS, _MAX_REPETITIONS = 10, 5, 1000

Wanted = dict[int, str]  # sizes to measure, and why


def plan_measurements(trace: MessageTrace | None, limits: PlanLimits) -> MeasurementPlan:
    """Return what to measure next for the bottleneck between two sizes, or that it is known."""
    samples = trace.interarrival if trace is not None else None
    points, noise = points_of(
        samples, limits.min_message_bytes, limits.max_message_bytes, limits.tolerance / SPREADS
    )
    needed = _needed(noise, limits)
    transitions: list[Transition] = []
    runs = runs_of(points)
    wanted = _ends(points, limits) or _loud(points, noise, needed)
    if not wanted:
        wanted, transitions = _between(runs, points)
    interarrival = tuple(
        NextMeasurement(size, Quantity.INTERARRIVAL, _more(size, points, needed), why)
        for size, why in sorted(wanted.items())
    )
    latency = _latencies(trace, limits)
    known = [run for run in runs if run.is_line]
    return MeasurementPlan(
        decided=not interarrival and not latency,
        reason=_reason(interarrival, latency, known, transitions, limits),
        measure=(*interarrival, *latency),
        transitions=tuple(transitions),
        bottlenecks=tuple(KnownBottleneck(run.first, run.last, run.line) for run in known),
    )


def _needed(noise: Noise, limits: PlanLimits) -> int:
    """So many that the median's error is a third of the tolerance, by the noise seen so far."""
    if noise.spread is None:
        return _FIRST_REPETITIONS
    needed = (1.2533 * noise.spread * SPREADS / limits.tolerance) ** 2
    return int(min(_MAX_REPETITIONS, max(_MIN_REPETITIONS, ceil(min(needed, 1e9)))))


def _more(size: int, points: list[Point], needed: int) -> int:
    have = sum(point.samples for point in points if point.x == size)
    return max(_MIN_REPETITIONS, needed - have)


def _loud(points: list[Point], noise: Noise, needed: int) -> Wanted:
    """Sizes that were measured too seldom for the noise there is."""
    if noise.spread is None or needed <= _FIRST_REPETITIONS:
        return {}
    why = f"times vary by {100.0 * noise.spread:.2g} %: more repetitions tell them apart"
    return {point.x: why for point in points if point.samples < 0.7 * needed}


def _ends(points: list[Point], limits: PlanLimits) -> Wanted:
    """Sizes that are missing for a line at each end."""
    low, high = limits.min_message_bytes, limits.max_message_bytes
    sizes = [point.x for point in points]
    why = "a line at the end of the range needs two sizes"
    ends = (
        (low, ceil(PAIR * low), [x for x in sizes if x <= CLOSE * low]),
        (high, int(high / PAIR), [x for x in sizes if x * CLOSE >= high]),
    )
    wanted: Wanted = {}
    for end, second, near in ends:
        if not any(_is_same(x, end) for x in near):
            wanted[end] = why
        if all(_is_same(x, end) for x in near):
            wanted[second] = why
    return wanted


def _is_same(x: float, size: float) -> bool:
    return abs(x - size) <= max(1.0, _SAME_SIZE * size)


def _between(runs: list[Run], points: list[Point]) -> tuple[Wanted, list[Transition]]:
    """Sizes that are missing between the ends, and the transitions that are known."""
    wanted: Wanted = {}
    transitions: list[Transition] = []
    for run in runs:
        wanted |= _holes(run) if run.is_line else _second(run.points[0], points)
    for left, right in pairwise(runs):
        if not (left.is_line and right.is_line):
            continue  # its own line comes first
        found = _settle(left, right)
        if isinstance(found, Transition):
            transitions.append(found)
        else:
            wanted |= found
    return wanted, transitions


def _second(point: Point, points: list[Point]) -> Wanted:
    """A size near a point that is on no line, so that it gets one; none where both are there."""
    sizes = [other.x for other in points]
    why = f"at {format_bytes(point.x)} the times are on no known line: a second size gives it one"
    relative = point.error / point.y if point.y > 0.0 else 1.0
    factor = min(PAIR, max(_NEAREST + 3.0 / point.x, 1.0 + 40.0 * relative))
    for size in (ceil(point.x * factor), int(point.x / factor)):
        if min(sizes) < size < max(sizes) and not any(
            abs(x - size) <= 0.5 * abs(point.x - size) for x in sizes
        ):
            return {size: why}
    return {}


def _holes(run: Run) -> Wanted:
    """The middles of wide holes in a run, where a dent would not be seen from both ends.

    Where a level line passes into one through 0 in the middle of a hole from a to b, the chord is
    off by sqrt(a/b) at its ends for each part that it is off in the middle.
    """
    why = "both ends are on one line: does the middle lie on it too?"
    wanted: Wanted = {}
    for one, other in pairwise(run.points):
        noise = SPREADS * max(p.error / p.y if p.y > 0.0 else 1.0 for p in (one, other))
        if other.x > one.x * max(2.0 * CLOSE, (_SEEN / noise) ** 2):
            wanted[int(sqrt(float(one.x) * other.x))] = why
    return wanted


def _settle(left: Run, right: Run) -> Transition | Wanted:
    """Between two known lines: one transition where they meet, or one more size to measure."""
    low, high = left.points[-1], right.points[0]
    meet = _meeting(left.line, right.line)
    if meet is None or not _may_be_between(meet, left, right):
        if high.x <= _LOCATED * low.x:
            return Transition((low.x, high.x), None)
        why = "the two known lines do not meet in between, as at a protocol switch: halve"
        return {int(sqrt(float(low.x) * high.x)): why}
    at = int(min(max(round(meet), low.x), high.x))
    if any(_is_same(x, at) for x in (low.x, high.x)) or _dent(at, left, right) <= _SEEN_DENT:
        return Transition((low.x, high.x), at)
    return {at: "here the two known lines meet: is there a third above them?"}


def _meeting(one: Line, other: Line) -> float | None:
    apart = other.ns_per_byte - one.ns_per_byte
    if apart <= 0.0:
        return None
    return 1000.0 * (one.overhead_us - other.overhead_us) / apart


def _may_be_between(meet: float, left: Run, right: Run) -> bool:
    """Whether the lines meet between two runs, or so little outside that the noise may do it."""
    low, high = left.points[-1], right.points[0]
    if low.x <= meet <= high.x:
        return True
    end = low if meet < low.x else high
    apart = abs(left.line.time_us(end.x) - right.line.time_us(end.x))
    return apart <= SPREADS * end.error * sqrt(2.0) or _is_same(meet, end.x)


def _dent(at: int, left: Run, right: Run) -> float:
    """By how many standard errors the chord lies above the two lines where they meet.

    A third line there is below the chord.
    """
    low, high = left.points[-1], right.points[0]
    part = (at - low.x) / (high.x - low.x)
    ends = (left.line.time_us(low.x), right.line.time_us(high.x))
    chord = (1.0 - part) * ends[0] + part * ends[1]
    lines = max(left.line.time_us(at), right.line.time_us(at))
    error = (1.0 - part) * low.error + part * high.error
    return (chord - lines) / error


def _latencies(trace: MessageTrace | None, limits: PlanLimits) -> tuple[NextMeasurement, ...]:
    """Latencies at both ends and in the middle: the sum of all stages is one line or shows it."""
    samples: Samples | None = trace.latency if trace is not None else None
    low, high = limits.min_message_bytes, limits.max_message_bytes
    points, noise = points_of(samples, low, high, limits.tolerance / SPREADS)
    sizes = (low, int(sqrt(float(low) * high)), high)
    if len(points) >= len(sizes):
        return ()
    why = "the sum of all stages needs latencies over the range"
    missing = [x for x in sizes if not any(_is_same(point.x, x) for point in points)]
    repetitions = _needed(noise, limits)
    return tuple(NextMeasurement(x, Quantity.LATENCY, repetitions, why) for x in missing)


def _reason(
    interarrival: tuple[NextMeasurement, ...],
    latency: tuple[NextMeasurement, ...],
    runs: list[Run],
    transitions: list[Transition],
    limits: PlanLimits,
) -> str:
    span = (
        f"from {format_bytes(limits.min_message_bytes)} to {format_bytes(limits.max_message_bytes)}"
    )
    if interarrival:
        return f"the bottleneck {span} is not known yet: {interarrival[0].why}"
    if latency:
        return f"the bottleneck {span} is known; {latency[0].why}"
    if not transitions:
        return f"one line holds for the inter-arrival times {span}: one stage is the slowest"
    places = ", ".join(
        f"between {format_bytes(low)} and {format_bytes(high)}"
        for low, high in (found.between_bytes for found in transitions)
    )
    stated = f"{len(runs)} lines hold for the inter-arrival times {span}; they change {places}"
    if any(found.at_bytes is None for found in transitions):
        stated += (
            "; where lines do not meet the times are no upper envelope (not convex), as at a "
            "protocol switch"
        )
    return stated
