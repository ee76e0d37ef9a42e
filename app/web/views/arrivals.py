"""Answers in one picture: how much of the message has arrived by when."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from app.text.numbers import format_percent
from app.text.units import TimeUnit
from app.web.schedule_csv import course_of_document
from app.web.views.answer_around import Chart
from app.web.views.answer_timeline import cells_of
from app.web.views.answer_words import Document

MOST_CELLS = 100_000  # fragments times stages of all answers: some 100 ms
MOST_POINTS = 400  # of a curve: more cannot be told apart
_SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
_NOT_KNOWN = "Of a pipeline seen from outside it is not known when which fragment arrives."
_TOO_MANY = "These answers have more fragments than are followed here."


@dataclass(frozen=True, slots=True)
class _Arrivals:
    """When the last stage has handed on each fragment, µs, and the bytes that are there then."""

    exit_us: Sequence[float]
    arrived_bytes: Sequence[int]

    def when_us(self, share: float) -> float:
        """When this share of the message is there."""
        return self.exit_us[bisect_left(self.arrived_bytes, share * self.arrived_bytes[-1])]

    def points(self) -> Iterator[tuple[float, float]]:
        """Time and per cent, from nothing at the start; of many fragments some, and the last."""
        yield 0.0, 0.0
        last, step = len(self.exit_us) - 1, -(-len(self.exit_us) // MOST_POINTS)
        for at in sorted({*range(step - 1, last, step), last}):
            yield self.exit_us[at], 100.0 * self.arrived_bytes[at] / self.arrived_bytes[-1]


def arrivals_chart(documents: Sequence[Document], names: Sequence[str]) -> Chart:
    """A curve for each of these OptimizeOut, and the times at which shares of it are there."""
    why_empty = _why_empty(documents)
    if why_empty:
        return Chart({}, (), (), (), why_empty)
    found = [_arrivals(document) for document in documents]
    latest_us = max(one.exit_us[-1] for one in found)
    unit = TimeUnit.of(latest_us)
    if latest_us <= 0.0:
        return Chart({}, (), (), ())
    curves = zip(names, found, strict=True)
    data: dict[str, Any] = {
        "kind": "arrivals",
        "unit": unit.name,
        "us": unit.us,
        "lines": [{"name": name, "points": list(one.points())} for name, one in curves],
    }
    headings = ("Arrived", *(f"{name}, {unit.name}" for name in names))
    rows = tuple(
        (format_percent(share), *(unit.text(one.when_us(share)) for one in found))
        for share in _SHARES
    )
    return Chart(data, headings, rows, ())


def _why_empty(documents: Sequence[Document]) -> str:
    if any(document["pipeline"] is None for document in documents):
        return _NOT_KNOWN
    return _TOO_MANY if sum(map(cells_of, documents)) > MOST_CELLS else ""


def _arrivals(document: Document) -> _Arrivals:
    course = course_of_document(document)
    last = course.stages[-1]
    arrived = list(accumulate(last.fragment_bytes))
    return _Arrivals([us + course.delay_us for us in last.exit_us], arrived)
