"""How much of a message is there by when, as a chart of one answer or several."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Literal

from app.text.numbers import format_percent
from app.text.units import TimeUnit
from app.verbs.optimize.page.schedule_csv import timeline_of_answer
from app.verbs.optimize.page.surroundings import Chart
from contract.optimize import OptimizeOut

if TYPE_CHECKING:
    from contract.optimize import OptimizeOut


MAX_CELLS = 100_000  # fragments times stages of all answers: some 100 ms
MAX_POINTS = 400  # of a curve: more cannot be distinguished
_SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
_NOT_KNOWN = "Of a pipeline seen from outside it is not known when which fragment arrives."
_TOO_MANY = "These answers have more fragments than are followed here."


@dataclass(frozen=True, slots=True)
class _Arrivals:
    """When the last stage has handed on each fragment, µs, and the bytes that are there then."""

    exit_us: Sequence[float]
    arrived_bytes: Sequence[int]

    def when_us(self, share: float) -> float:
        """Return when this share of the message is there, µs."""
        return self.exit_us[bisect_left(self.arrived_bytes, share * self.arrived_bytes[-1])]

    def points(self) -> Iterator[tuple[float, float]]:
        """Return time and per cent, from nothing at the start; of many fragments some, and the
        last.
        """
        yield 0.0, 0.0
        last, step = len(self.exit_us) - 1, -(-len(self.exit_us) // MAX_POINTS)
        for at in sorted({*range(step - 1, last, step), last}):
            yield self.exit_us[at], 100.0 * self.arrived_bytes[at] / self.arrived_bytes[-1]


@dataclass(frozen=True, slots=True)
class ArrivalsLine:
    """When how much of a message is there: points of µs and per cent."""

    name: str
    points: list[tuple[float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalsData:
    """The curves of all answers, and the unit of their time axis."""

    kind: Literal["arrivals"] = "arrivals"
    unit: str
    us: float
    lines: list[ArrivalsLine]


_NO_DATA = ArrivalsData(unit="µs", us=1.0, lines=[])


def arrivals_chart(answers: Sequence[OptimizeOut], names: Sequence[str]) -> Chart[ArrivalsData]:
    """Return a curve for each of these OptimizeOut, and the times at which shares are there."""
    why_empty = _why_empty(answers)
    if why_empty:
        return Chart(_NO_DATA, (), (), (), why_empty)
    found = [_arrivals(answer) for answer in answers]
    latest_us = max(one.exit_us[-1] for one in found)
    unit = TimeUnit.of(latest_us)
    if latest_us <= 0.0:
        return Chart(_NO_DATA, (), (), ())
    curves = zip(names, found, strict=True)
    lines = [ArrivalsLine(name, list(one.points())) for name, one in curves]
    data = ArrivalsData(unit=unit.name, us=unit.us, lines=lines)
    headings = ("Arrived", *(f"{name}, {unit.name}" for name in names))
    rows = tuple(
        (format_percent(share), *(unit.text(one.when_us(share)) for one in found))
        for share in _SHARES
    )
    return Chart(data, headings, rows, ())


def _why_empty(answers: Sequence[OptimizeOut]) -> str:
    if any(answer.pipeline is None for answer in answers):
        return _NOT_KNOWN
    return _TOO_MANY if sum(answer.cells for answer in answers) > MAX_CELLS else ""


def _arrivals(answer: OptimizeOut) -> _Arrivals:
    timeline = timeline_of_answer(answer)
    last = timeline.by_stage[-1]
    arrived = list(accumulate(last.fragment_bytes))
    return _Arrivals([us + timeline.delay_us for us in last.exit_us], arrived)
