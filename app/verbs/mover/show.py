"""What the reference mover measured, as tables."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median

from app.ui.parts import Column, Grid
from domain.units import format_bytes
from measuring.moving import HeatRun, MessageTime

_PARTS = ("sender", "wire", "receiver", "total")


def predicted(messages: Iterable[MessageTime]) -> Grid:
    """Return a row for each number of fragments: measured, predicted, and the ratio of both."""
    columns = ("fragments", "measured µs", "predicted µs", "predicted / measured")
    rows = (
        (
            str(message.fragments),
            f"{message.measured_us:.1f}",
            f"{message.predicted_us:.1f}",
            f"{message.ratio:.4f}",
        )
        for message in messages
    )
    return _table(columns, rows)


def stages(text: str) -> Grid:
    """Return a row for each size in a file of samples: the median of each stage, in µs."""
    by_size: dict[int, list[dict[str, str]]] = {}
    for row in csv.DictReader(line for line in text.splitlines() if line[0] != "#"):
        by_size.setdefault(int(row["message_bytes"]), []).append(row)
    rows = (
        (format_bytes(size), *(_middle(row[f"{name}_us"] for row in own) for name in _PARTS))
        for size, own in by_size.items()
    )
    return _table(("message", *(f"{name} µs" for name in _PARTS)), rows)


def _middle(values: Iterable[str]) -> str:
    return f"{median(map(float, values)):.1f}"


def exchanged(found: Mapping[str, Sequence[float]]) -> Grid:
    """Return a row for each variant of an exchange: its times in µs, and what it gains."""
    rows = (
        (name, f"{min(times_us):.1f}", f"{median(times_us):.1f}", _gain(found, min(times_us)))
        for name, times_us in found.items()
    )
    return _table(("variant", "least µs", "median µs", "simultaneous / this"), rows)


def _gain(found: Mapping[str, Sequence[float]], fastest_us: float) -> str:
    return f"{min(found['simultaneous']) / fastest_us:.3f}" if "simultaneous" in found else ""


def iterations(
    found: Mapping[str, Sequence[float]],
) -> tuple[tuple[str, ...], Iterator[tuple[str, ...]]]:
    """Return the headings and the rows of a file with the time of each iteration, in µs."""
    rows = (
        (name, str(number), f"{time_us:.3f}")
        for name, times_us in found.items()
        for number, time_us in enumerate(times_us)
    )
    return ("variant", "repetition", "iteration_us"), rows


def solved(runs: Iterable[HeatRun]) -> Grid:
    """Return a row for each run of the heat solver: its steps in µs, and its grid."""
    rows = (
        (
            run.variant,
            str(run.processes),
            f"{run.min_step_us:.1f}",
            f"{run.median_step_us:.1f}",
            run.grid,
        )
        for run in runs
    )
    return _table(("variant", "processes", "least µs a step", "median µs", "grid"), rows)


def _table(columns: Sequence[str], rows: Iterable[tuple[str, ...]]) -> Grid:
    headings = tuple(Column(name, is_number=at > 0) for at, name in enumerate(columns))
    return Grid(headings, tuple(rows))
