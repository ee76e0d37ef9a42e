"""sluice model layer count: instructions of an installed MPI, counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.ui.grammar import Arguments, Command

if TYPE_CHECKING:
    from app.ui.terminal import Output

_COUNTS = "the layer"


def add_arguments(command: Command) -> None:
    """Add the MPI, the sizes to count at, and the layer's file."""
    from app.console.counting import add_counting
    from domain.units import parse_bytes

    add_counting(command)
    command.option(
        "--bytes", read=parse_bytes, takes_several=True, metavar="SIZE", help="sizes (8 64 256)"
    )
    command.option("--output", metavar="FILE", help="write the layer as JSON")


def run(arguments: Arguments, output: Output) -> int:
    """Count an installed MPI's send and receive, print, and write the layer that they make."""
    from app.console.counting import plan_of
    from app.console.files import check_target, write_whole
    from app.console.running import ticking_line
    from app.schemas.base import dump_json
    from app.schemas.layer import counted_layer_out
    from app.text.units import printable
    from app.verbs.layer_count.show import parts
    from measuring.count import count
    from measuring.counted_layer import layer_of

    if arguments.output is not None:
        check_target(arguments.output, field="output", noun=_COUNTS, example="layer.json")
    plan = plan_of(arguments, {})
    with ticking_line(output.err, "counting instructions"):
        counted = count(plan)
    found = counted_layer_out(plan, counted, layer_of(counted))
    body = dump_json(found)
    if arguments.output is not None:
        write_whole(arguments.output, body + b"\n", field="output", noun=_COUNTS)
    if output.wants_json:
        output.document(body)
        return 0
    output.parts(parts(found))
    if arguments.output is not None:
        output.parts([f"layer written to {printable(arguments.output)}"])
    return 0
