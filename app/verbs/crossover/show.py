"""Where one path overtakes the other as parts: for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Iterator

from app.text.numbers import format_size
from app.text.units import format_time
from app.ui.parts import Column, Facts, Grid, Part, failures, noted, others
from app.verbs.crossover.answer import (
    between_words,
    headline,
    name_of,
    price_words,
    threshold_words,
)
from contract.crossover import CrossoverOut

MAX_MEASURED = 24  # sizes of a table: those next to the crossovers first
_SURE = {True: "yes", False: "no", None: "–"}


def parts(found: CrossoverOut) -> Iterator[Part]:
    """Yield where the faster path changes, what thresholds cost, and the sizes measured."""
    yield from failures(found.warnings)
    yield headline(found)
    yield ""
    yield Facts(tuple(_thresholds(found)))
    yield ""
    yield runs(found)
    if found.crossovers:
        yield ""
        yield changes(found)
    if found.timed_by_both:
        yield ""
        yield measured(found)
    yield from noted(others(found.warnings))


def _thresholds(found: CrossoverOut) -> Iterator[tuple[str, str]]:
    if found.advised is not None:
        words = price_words(found, found.advised)
        yield "threshold", f"{threshold_words(found.advised.threshold_bytes, found)}: {words}"
    else:
        yield "threshold", "none is provable"
    if found.current is not None:
        words = price_words(found, found.current)
        yield "today's", f"{threshold_words(found.current.threshold_bytes, found)}: {words}"


def runs(found: CrossoverOut) -> Grid:
    """Return which path is faster in each range of sizes."""
    rows = tuple(
        (
            format_size(run.from_bytes),
            format_size(run.up_to_bytes),
            name_of(found, run.faster),
            _SURE[run.is_sure],
        )
        for run in found.runs
    )
    columns = (
        Column("messages from"),
        Column("up to"),
        Column("faster path", is_number=False),
        Column("certain somewhere", is_number=False),
    )
    return Grid(columns, rows, "The faster path by size of the message")


def changes(found: CrossoverOut) -> Grid:
    """Return what both paths take at each crossover, and where else it may lie."""
    rows = tuple(
        (
            format_size(crossover.at_bytes),
            between_words(crossover).strip(" ()") or "not known",
            format_time(crossover.a_us),
            format_time(crossover.b_us),
            "times of both" if crossover.basis == "measured" else "costs",
        )
        for crossover in found.crossovers
    )
    columns = (
        Column("crossover"),
        Column("95 % certain", is_number=False),
        Column(found.a.name),
        Column(found.b.name),
        Column("by", is_number=False),
    )
    return Grid(columns, rows, "Crossovers, and what both paths take there by their costs")


def measured(found: CrossoverOut) -> Grid:
    """Return the sizes that both files measured, those nearest to a crossover where they
    are many.

    """
    places = [crossover.at_bytes for crossover in found.crossovers]
    near = sorted(
        found.timed_by_both,
        key=lambda one: min((abs(one.message_bytes - at) for at in places), default=0),
    )
    shown = sorted(near[:MAX_MEASURED], key=lambda one: one.message_bytes)
    rows = tuple(
        (
            format_size(one.message_bytes),
            format_time(one.a_us),
            format_time(one.b_us),
            "within errors" if one.faster == "neither" else name_of(found, one.faster),
        )
        for one in shown
    )
    columns = (
        Column("measured"),
        Column(found.a.name),
        Column(found.b.name),
        Column("faster path", is_number=False),
    )
    return Grid(columns, rows, "Messages that both files timed")
