"""Signatures of an end point (Culler et al. 1996): bursts of many lengths and computations.

Rules beside those of `measuring.sweep`: lengths grow until three steps in a row cost the same a
message, or a burst takes too long to stay on its processor; computations are chosen from the gap
that was found, since what it hides tells nothing; the computation that is written is the one that
was measured; round trips and receives are taken between the bursts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from statistics import median

from measuring.sweep import Ask, check_plan, half_width

Point = tuple[int, int]  # messages of a burst, and ns of computation between them

WARM_UP = 200
MAX_BURST_NS = 2e6  # beyond a time slice every burst is preempted
MAX_MESSAGES = 4096
COMPUTATIONS = (0.5, 1.5, 2.0, 4.0)  # of the gap
_STEADY = 0.05
_STEADY_STEPS = 3
_FIRST, _MAX_TRIES = 7, 30  # bursts of a length while lengths are looked for
_FIRST_LONG = 64  # messages: shorter bursts may not have filled the transport
_FARTHEST = 4  # lengths that computations are measured at
_MAX_BURSTS = 200  # of a point
_TRIPS = 2  # in every block


@dataclass(frozen=True, slots=True)
class SignaturePlan:
    """One message size; how narrow each interval is to be, and until when. Raises InvalidInput."""

    message_bytes: int
    tolerance: float = 0.05
    time_limit_s: float = 20.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_plan(self.tolerance, self.time_limit_s)


@dataclass(slots=True)
class Signature:
    """What was measured so far, in µs: the cost of a message by (messages, ns of computation), and
    round trips and receives.
    """

    plan: SignaturePlan
    cost_us: dict[Point, list[float]] = field(default_factory=dict)
    round_trip_us: list[float] = field(default_factory=list)
    receive_us: list[float] = field(default_factory=list)
    computed_us: dict[int, float] = field(default_factory=dict)
    preempted: int = 0
    ended: str = "interrupted"
    _lost: dict[Point, int] = field(default_factory=dict)

    def run(
        self, ask: Ask, on_block: Callable[[int, int], None] = lambda wanted, taken: None
    ) -> None:
        """Ask until every point is known or time ends; what was measured stays after an exception.

        `ask` takes the lines that the probe does.
        """
        order = Random(self.plan.seed)
        end_s = time.monotonic() + self.plan.time_limit_s
        self.computed_us = {0: 0.0}
        for _ in range(WARM_UP):
            if time.monotonic() < end_s:
                ask("burst 1 0")
        wanted = self._points(ask, end_s)
        while wanted:
            order.shuffle(wanted)
            for point in wanted:
                if time.monotonic() > end_s:
                    self.ended = "time"
                    return
                self._burst(ask, point)
            for _ in range(_TRIPS):
                self._take(ask, "trip", self.round_trip_us)
                self._take(ask, "receive", self.receive_us)
            wanted = [point for point in wanted if not self._is_known(point)]
            on_block(len(wanted), sum(map(len, self.cost_us.values())))
        is_known = all(map(self._is_narrow, self.cost_us))
        self.ended = "known" if is_known else f"{_MAX_BURSTS} bursts of a point"

    def _points(self, ask: Ask, end_s: float) -> list[Point]:
        """The lengths without computation, and the longest of them with each computation."""
        lengths = self._lengths(ask, end_s)
        gap_ns = 1000.0 * median(self.cost_us.get((lengths[-1], 0)) or [0.001])
        points = [(length, 0) for length in lengths]
        for factor in COMPUTATIONS:
            wanted_ns = max(1, round(factor * gap_ns))
            took_ns = float(ask(f"compute {wanted_ns}").split()[2])
            self.computed_us[wanted_ns] = took_ns / 1000.0
            long = max(1, int(MAX_BURST_NS / max(took_ns, gap_ns)))
            points += [(min(length, long), wanted_ns) for length in lengths[-_FARTHEST:]]
        points = list(dict.fromkeys(points))
        self.cost_us = {point: self.cost_us.get(point, []) for point in points}
        return points

    def _lengths(self, ask: Ask, end_s: float) -> list[int]:
        """1, 2, 3, 4, 6, 8, 12, ... until another message costs the same three times in a row, or
        until time ends.
        """
        found, costs_us, lost = list[int](), list[float](), 0
        for length in _doubling():
            for _ in range(_MAX_TRIES):
                if time.monotonic() > end_s:
                    return found or [1]
                self._burst(ask, (length, 0))
                if len(self.cost_us[length, 0]) == _FIRST:
                    break
            times = self.cost_us[length, 0]
            lost = 0 if times else lost + 1
            if lost == _STEADY_STEPS:
                break  # bursts of this length and more are always preempted
            if not times:
                continue
            found.append(length)
            costs_us.append(median(times))
            if length * costs_us[-1] * 1000.0 > MAX_BURST_NS or length >= MAX_MESSAGES:
                break
            if length >= _FIRST_LONG and _is_steady(found, costs_us):
                break
        return found or [1]

    def _burst(self, ask: Ask, point: Point) -> None:
        length, computation_ns = point
        times = self.cost_us.setdefault(point, [])
        if not self._take(ask, f"burst {length} {computation_ns}", times, messages=length):
            self._lost[point] = self._lost.get(point, 0) + 1

    def _take(self, ask: Ask, line: str, into: list[float], messages: int = 1) -> bool:
        """Keep the sample; return whether nobody was preempted during it."""
        *_, ns, preempted = ask(line).split()
        if int(preempted):
            self.preempted += 1
            return False
        into.append(float(ns) / 1000.0 / messages)
        return True

    def _is_known(self, point: Point) -> bool:
        taken = len(self.cost_us[point]) + self._lost.get(point, 0)
        return taken >= _MAX_BURSTS or self._is_narrow(point)

    def _is_narrow(self, point: Point) -> bool:
        return half_width(self.cost_us[point]) <= self.plan.tolerance


def signatures_csv(measured: Sequence[Signature], facts: Mapping[str, str]) -> str:
    """Return all as signature CSV, with what was measured in the first lines."""
    preempted = sum(one.preempted for one in measured)
    kept = sum(
        len(times)
        for one in measured
        for times in (*one.cost_us.values(), one.round_trip_us, one.receive_us)
    )
    ended = dict.fromkeys(one.ended for one in measured)
    facts = {
        **facts,
        "timer_subtracted": "true",
        "preempted": f"{preempted} of {preempted + kept}",
        "ended": ", ".join(ended),
    }
    head = "".join(f"# {name}: {value}\n" for name, value in facts.items())
    bursts = "".join(
        f"{one.plan.message_bytes},{length},{one.computed_us[ns]:.6g},{cost_us:.6g}\n"
        for one in measured
        for (length, ns), times in sorted(one.cost_us.items(), key=lambda item: item[0][::-1])
        for cost_us in times
    )
    tables = [f"message_bytes,burst,computation_us,cost_us\n{bursts}"]
    for name in ("round_trip_us", "receive_us"):
        rows = "".join(
            f"{one.plan.message_bytes},{at},{time_us:.6g}\n"
            for one in measured
            for at, time_us in enumerate(getattr(one, name))
        )
        tables += [f"message_bytes,repetition,{name}\n{rows}"] if rows else []
    return head + "".join(tables)


def _is_steady(lengths: Sequence[int], costs_us: Sequence[float]) -> bool:
    """Whether another message cost the same in each of the last steps."""
    totals = [length * cost for length, cost in zip(lengths, costs_us, strict=True)]
    points = list(zip(lengths, totals, strict=True))[-_STEADY_STEPS - 1 :]
    if len(points) <= _STEADY_STEPS:
        return False
    steps = [
        (after - before) / (more - fewer) for (fewer, before), (more, after) in pairwise(points)
    ]
    return max(steps) - min(steps) <= _STEADY * costs_us[-1]


def _doubling() -> list[int]:
    powers = [2**power for power in range(13)]
    return sorted({1, *powers, *(3 * power // 2 for power in powers[1:])})
