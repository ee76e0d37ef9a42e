"""sluice model mover: stages of a way, hiding and the heat solver, by the reference mover here."""

from __future__ import annotations

import argparse
import csv
import io
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import orjson

from app.console.files import check_target, write_whole
from app.console.running import ticking_line
from app.ui.parts import Column, Grid, Part
from app.ui.terminal import Output
from domain.errors import InconsistentInput, InvalidInput
from domain.units import format_bytes

if TYPE_CHECKING:
    from measuring.moving import Way

OUTSIDE = 1
_STAGE_SIZES = tuple(4096 << power for power in range(7))
_OF_EXCHANGE = ("calculation", "spin", "table", "plot")
_OF_HEAT = ("columns", "rows", "steps", "processes")
_CHOICES = {
    "calibrate": ("fragments", "bytes", "repetitions", "output", "buffer", "between", "cpus"),
    "exchange": (*_OF_EXCHANGE, "variant", "fragment", "bytes", "repetitions", "output", "buffer"),
    "heat": (*_OF_HEAT, "variant", "fragment", "output"),
}
_ENDS = ("pack", "unpack", "pack_each", "unpack_each")


def mover(arguments: argparse.Namespace, output: Output) -> int:
    """Measure stages, exchanges or the heat solver; 1 where a solver's grid is not the serial."""
    if arguments.what not in _CHOICES:
        raise InvalidInput("expected calibrate, exchange or heat", field="what")
    allowed = {*_CHOICES[arguments.what]}
    if arguments.what != "heat":
        allowed |= {*_ENDS, "between", "cpus"}
    for name in sorted({"variant", *_ENDS, *(one for row in _CHOICES.values() for one in row)}):
        if getattr(arguments, name) not in (None, False) and name not in allowed:
            raise InconsistentInput(f"{arguments.what} has no use for it", field=name)
    for name in ("output", "plot"):
        if getattr(arguments, name) is not None:
            check_target(getattr(arguments, name), field=name, noun="a file", example="mover.csv")
    if not 1 <= _or(arguments.repetitions, 20) <= 100_000:
        raise InvalidInput("expected 1 to 100000", field="repetitions")
    run = {"calibrate": _calibrate, "exchange": _exchange, "heat": _heat}[arguments.what]
    return run(arguments, output)


def _or(value: Any, otherwise: Any) -> Any:
    return otherwise if value is None else value


def _way(arguments: argparse.Namespace) -> Way:
    from measuring.moving import Way

    cpus = arguments.cpus
    return Way(
        between=arguments.between,
        buffer_bytes=_or(arguments.buffer, 0),
        pack_ns_per_byte=_or(arguments.pack, 0.0),
        unpack_ns_per_byte=_or(arguments.unpack, 0.0),
        pack_us=_or(arguments.pack_each, 0.0),
        unpack_us=_or(arguments.unpack_each, 0.0),
        cpus=None if cpus is None else (cpus[0], cpus[-1]),
    )


def _one_size(arguments: argparse.Namespace) -> int:
    if arguments.bytes is None or len(arguments.bytes) != 1:
        raise InvalidInput("expected the size of a message", field="bytes")
    size: int = arguments.bytes[0]
    return size


def _calibrate(arguments: argparse.Namespace, output: Output) -> int:
    from measuring.moving import calibrate

    counts = arguments.fragments or ()
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    with ticking_line(output.err, "measuring the stages"):
        found = calibrate(
            _way(arguments),
            _or(arguments.bytes, _STAGE_SIZES),
            repetitions=_or(arguments.repetitions, 20),
            message_bytes=_one_size(arguments) if counts else None,
            counts=counts,
        )
    _keep(arguments.output, "output", found.text.encode())
    if counts:
        columns = ("fragments", "measured µs", "predicted µs", "predicted / measured")
        rows = [
            (
                str(one.fragments),
                f"{one.measured_us:.1f}",
                f"{one.predicted_us:.1f}",
                f"{one.ratio:.4f}",
            )
            for one in found.messages
        ]
    else:
        samples = list(csv.DictReader(one for one in found.text.splitlines() if one[0] != "#"))
        parts = ("sender", "wire", "receiver", "total")
        columns = ("message", *(f"{name} µs" for name in parts))
        by_size: dict[int, list[dict[str, str]]] = {}
        for row in samples:
            by_size.setdefault(int(row["message_bytes"]), []).append(row)
        rows = [
            (format_bytes(size), *(_middle(row[f"{name}_us"] for row in own) for name in parts))
            for size, own in by_size.items()
        ]
    return _shown(output, columns, rows)


def _middle(values: Iterable[str]) -> str:
    return f"{median(map(float, values)):.1f}"


def _exchange(arguments: argparse.Namespace, output: Output) -> int:
    from app.plots.models_svg import overlap_svg
    from measuring.moving import activities, exchange

    if arguments.calculation is None or arguments.calculation < 0:
        raise InvalidInput("expected µs of each iteration, from 0", field="calculation")
    with (
        tempfile.TemporaryDirectory(prefix="sluice-mover-") as folder,
        ticking_line(output.err, "exchanging"),
    ):
        timeline = Path(folder) / "timeline.csv"
        found = exchange(
            _way(arguments),
            _one_size(arguments),
            calculation_us=arguments.calculation,
            variant=_or(arguments.variant, "all"),
            repetitions=_or(arguments.repetitions, 20),
            fragment_bytes=arguments.fragment,
            table=None if arguments.table is None else Path(arguments.table),
            is_calculated_here=arguments.spin,
            timeline=timeline,
        )
        if arguments.plot is not None:
            drawing = overlap_svg(activities(timeline.read_text()))
            _keep(arguments.plot, "plot", drawing.encode())
    times = [(name, str(i), f"{us:.3f}") for name, row in found.items() for i, us in enumerate(row)]
    _keep(arguments.output, "output", _csv(times))
    columns = ("variant", "least µs", "median µs", "simultaneous / this")
    rows = [
        (name, f"{min(row):.1f}", f"{median(row):.1f}", _gain(found, min(row)))
        for name, row in found.items()
    ]
    return _shown(output, columns, rows)


def _gain(found: Mapping[str, Sequence[float]], fastest_us: float) -> str:
    return f"{min(found['simultaneous']) / fastest_us:.3f}" if "simultaneous" in found else ""


def _heat(arguments: argparse.Namespace, output: Output) -> int:
    from measuring.moving import solve_heat

    variant = _or(arguments.variant, "all")
    sizes = {name: _or(getattr(arguments, name), 64) for name in ("columns", "rows")}
    sizes |= {"steps": _or(arguments.steps, 50), "processes": _or(arguments.processes, 2)}
    for name, value in sizes.items():
        if value < 1:
            raise InvalidInput("expected 1 or more", field=name)
    target = None if arguments.output is None else Path(arguments.output)
    with ticking_line(output.err, "solving"):
        runs = solve_heat(
            variant=variant, fragment_bytes=arguments.fragment, output=target, **sizes
        )
    serial = [one.grid for one in runs if one.variant == "serial"]
    columns = ("variant", "processes", "least µs a step", "median µs", "grid")
    rows = [
        (
            one.variant,
            str(one.processes),
            f"{one.min_step_us:.1f}",
            f"{one.median_step_us:.1f}",
            one.grid,
        )
        for one in runs
    ]
    _shown(output, columns, rows)
    return 0 if not serial or {one.grid for one in runs} == set(serial) else OUTSIDE


def _keep(name: str | None, field: str, content: bytes) -> None:
    if name is not None:
        write_whole(name, content, field=field, noun="what was measured")


def _shown(output: Output, columns: Sequence[str], rows: Sequence[tuple[str, ...]]) -> int:
    if output.wants_json:
        named = [dict(zip(columns, row, strict=True)) for row in rows]
        output.document(orjson.dumps(named, option=orjson.OPT_INDENT_2) + b"\n")
    else:
        headings = tuple(Column(name, is_number=i > 0) for i, name in enumerate(columns))
        parts: list[Part] = [Grid(headings, tuple(rows))]
        output.parts(parts)
    return 0


def _csv(rows: Iterable[Iterable[str]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("variant", "repetition", "iteration_us"))
    writer.writerows(rows)
    return text.getvalue().encode()
