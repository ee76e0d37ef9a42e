"""sluice model mover: stages of a way, hiding and the heat solver, by the reference mover here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.ui.grammar import Arguments, Command
from domain.errors import InconsistentInput, InvalidInput

if TYPE_CHECKING:
    from app.ui.parts import Grid
    from app.ui.terminal import Output
    from measuring.moving import Way

OUTSIDE = 1  # the exit code where a solver's grid is not the serial one's
_STAGE_SIZES = tuple(4096 << power for power in range(7))
_OF_EXCHANGE = ("calculation", "spin", "table", "plot")
_OF_HEAT = ("columns", "rows", "steps", "processes")
_CHOICES = {
    "calibrate": ("fragments", "bytes", "repetitions", "output", "buffer", "between", "cpus"),
    "exchange": (*_OF_EXCHANGE, "variant", "fragment", "bytes", "repetitions", "output", "buffer"),
    "heat": (*_OF_HEAT, "variant", "fragment", "output"),
}
_ENDS = ("pack", "unpack", "pack_each", "unpack_each")


def add_arguments(command: Command) -> None:
    """Add what the mover does, and over which way."""
    from app.console.argument_parts import cpus
    from app.text.units import parse_counts, parse_sizes, parse_whole
    from domain.units import parse_bytes, parse_number

    command.argument("what", metavar="WHAT", help="calibrate, exchange or heat")
    command.argument("variant", metavar="VARIANT", is_optional=True, help="one of them (all)")
    command.option("--bytes", read=parse_sizes, metavar="SIZES", help="of a message, or messages")
    command.option("--fragments", read=parse_counts, metavar="COUNTS", help="predict and measure")
    command.option("--fragment", read=parse_bytes, metavar="SIZE", help="cut into these (4KiB)")
    command.option("--table", metavar="FILE", help="cut by this table instead")
    command.option("--calculation", read=parse_number, metavar="US", help="of an iteration, in µs")
    command.flag("--spin", help="calculate here, not elsewhere")
    command.option("--between", metavar="PLACE", help="namespaces, as a/b/10.0.0.2")
    command.option("--buffer", read=parse_bytes, metavar="SIZE", help="of the sockets")
    for name, of in (("pack", "ns a byte of a sender"), ("unpack", "ns a byte of a receiver")):
        command.option(f"--{name}", read=parse_number, metavar="NS", help=f"{of}'s own")
        command.option(f"--{name}-each", read=parse_number, metavar="US", help="µs a fragment")
    command.option("--cpus", read=cpus, metavar="CPUS", help="of both ends, as 0,1")
    command.option("--repetitions", read=parse_whole, metavar="COUNT", help="of each (20)")
    for name, most in (("columns", "64"), ("rows", "64"), ("steps", "50"), ("processes", "2")):
        command.option(f"--{name}", read=parse_whole, metavar="COUNT", help=f"of heat ({most})")
    command.option("--output", metavar="FILE", help="stages as CSV, times, or the grid")
    command.option("--plot", metavar="FILE", help="draw the overlap into this SVG file")


def run(arguments: Arguments, output: Output) -> int:
    """Measure stages, exchanges or the heat solver; 1 where a solver's grid is not the serial."""
    from app.console.running import ended_by_signals

    with ended_by_signals():
        return _run(arguments, output)


def _run(arguments: Arguments, output: Output) -> int:
    from app.console.files import check_target

    if arguments.what not in _CHOICES:
        raise InvalidInput("expected calibrate, exchange or heat", field="what")
    allowed = {*_CHOICES[arguments.what]}
    if arguments.what != "heat":
        allowed |= {*_ENDS, "between", "cpus"}
    for name in sorted(
        {"variant", *_ENDS, *(name for names in _CHOICES.values() for name in names)}
    ):
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


def _way(arguments: Arguments) -> Way:
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


def _one_size(arguments: Arguments) -> int:
    if arguments.bytes is None or len(arguments.bytes) != 1:
        raise InvalidInput("expected the size of a message", field="bytes")
    size: int = arguments.bytes[0]
    return size


def _calibrate(arguments: Arguments, output: Output) -> int:
    from app.console.running import ticking_line
    from app.verbs.mover import show
    from measuring.moving import calibrate

    counts = arguments.fragments or ()
    with ticking_line(output.err, "measuring the stages"):
        found = calibrate(
            _way(arguments),
            _or(arguments.bytes, _STAGE_SIZES),
            repetitions=_or(arguments.repetitions, 20),
            message_bytes=_one_size(arguments) if counts else None,
            counts=counts,
        )
    _keep(arguments.output, "output", found.text.encode())
    _print(show.predicted(found.messages) if counts else show.stages(found.text), output)
    return 0


def _exchange(arguments: Arguments, output: Output) -> int:
    import tempfile
    from pathlib import Path

    from app.console.files import csv_of
    from app.console.running import ticking_line
    from app.plots.models_svg import overlap_svg
    from app.verbs.mover import show
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
    _keep(arguments.output, "output", csv_of(*show.iterations(found)))
    _print(show.exchanged(found), output)
    return 0


def _heat(arguments: Arguments, output: Output) -> int:
    from pathlib import Path

    from app.console.running import ticking_line
    from app.verbs.mover import show
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
    _print(show.solved(runs), output)
    serial = {run.grid for run in runs if run.variant == "serial"}
    return 0 if not serial or {run.grid for run in runs} == serial else OUTSIDE


def _keep(name: str | None, field: str, content: bytes) -> None:
    from app.console.files import write_whole

    if name is not None:
        write_whole(name, content, field=field, noun="what was measured")


def _print(table: Grid, output: Output) -> None:
    """Print a table, in JSON a list with an object for each row."""
    import orjson

    if output.wants_json:
        columns = [column.heading for column in table.columns]
        named = [dict(zip(columns, row, strict=True)) for row in table.rows]
        output.document(orjson.dumps(named, option=orjson.OPT_INDENT_2) + b"\n")
    else:
        output.parts([table])
