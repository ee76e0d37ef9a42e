"""sluice measure: the stages and the signatures of this machine, and what other tools time on it,
measured, kept, and fitted.

No service measures: who asks a server to burn its processors has found a hole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.ui.grammar import Arguments, Command
from domain.errors import InconsistentInput

if TYPE_CHECKING:
    from app.ui.terminal import Output


def add_arguments(command: Command) -> None:
    """Add what is measured, and how."""
    from app.console.argument_parts import add_mpi, add_seed, cpus
    from app.text.units import parse_sizes, parse_whole
    from domain.units import parse_number, parse_share

    command.argument("name", is_optional=True, metavar="NAME", help="as --list has them")
    command.flag("--list", help="what can be measured")
    command.option(
        "--stage",
        metavar="NAME=COMMAND",
        help="a program of your own that prints the time it took, as h2d=./copy {bytes}",
    )
    command.option(
        "--what",
        choices=["stage", "signature", "tool"],
        help="of a name that is several (default stage)",
    )
    command.option(
        "--bytes",
        read=parse_sizes,
        metavar="SIZES",
        help="as 64..4MiB (powers of two between) or 4KiB,1MiB (default 64..4MiB; signatures 64)",
    )
    command.option(
        "--host",
        metavar="HOST[:PORT]",
        help="the other machine, where a listener runs: tcp and its signature",
    )
    command.option(
        "--listen",
        metavar="ADDRESS[:PORT]",
        help="be the other machine, for one peer at a time, until Ctrl-C",
    )
    command.option(
        "--token", metavar="TOKEN", help="of the listener (default $SLUICE_MEASURE_TOKEN)"
    )
    command.option("--cpus", read=cpus, metavar="A,B", help="the processors of both ends")
    command.option("--path", rest=".", metavar="FOLDER", help="of files (default here)")
    command.flag("--cold", help="copies and checksums of what caches do not hold")
    command.option(
        "--window",
        read=parse_whole,
        rest=256,
        metavar="COUNT",
        help="messages without a reply (256)",
    )
    add_mpi(command)
    command.option(
        "--tolerance",
        read=parse_share,
        rest=0.02,
        metavar="SHARE",
        help="how narrow the 95 % interval of each median is to be (2%; signatures 5%)",
    )
    command.option(
        "--time-limit", read=parse_number, rest=20.0, metavar="SECONDS", help="default 20"
    )
    add_seed(command)
    command.option("--output", metavar="FILE", help="for the measurements (NAME-stage.csv)")
    command.option("--save-as", metavar="PROFILE", help="store measurements, fit and stages")
    command.option("--plot", metavar="OUT", help="draw the fit into this SVG file")


def run(arguments: Arguments, output: Output) -> int:
    """Measure one stage or signature, write what was measured, and print its fit."""
    from app.console.running import ended_by_signals

    with ended_by_signals():
        return _run(arguments, output)


def _run(arguments: Arguments, output: Output) -> int:
    from app.console.measurable import check_results
    from app.console.stage_samples import as_file_name, measure_stage
    from app.verbs.measure import operation, show
    from measuring.probe import program
    from measuring.tools import TOOLS

    _check_two_machines(arguments)
    if arguments.listen is not None:
        return operation.listen(arguments, output)
    if arguments.stage is not None:
        target, text, is_complete = operation.measure_own_program(arguments, output)
        return _finish(arguments, output, target, text, is_complete=is_complete)
    if arguments.list or arguments.name is None:
        output.parts([show.measurable(operation.measurable(arguments))])
        return 0
    if arguments.what == "tool" or (arguments.what is None and arguments.name in TOOLS):
        return _measure_tool(arguments, output)
    probe = program()
    kind = operation.kind_of(arguments, probe)
    target = arguments.output or f"{as_file_name(arguments.name)}-{kind}.csv"
    check_results(arguments, target, example="pipe.csv")
    measure = measure_stage if kind == "stage" else operation.measure_signatures
    is_complete, text = measure(probe, arguments, target, output)
    return _finish(arguments, output, target, text, is_complete=is_complete)


def _check_two_machines(arguments: Arguments) -> None:
    """Raise InconsistentInput for what does not go with another machine."""
    if arguments.listen is not None and (
        arguments.name or arguments.host or arguments.stage or arguments.what or arguments.list
    ):
        raise InconsistentInput("a listener measures nothing by itself", field="listen")
    if arguments.host is not None and (arguments.stage or arguments.what == "tool"):
        raise InconsistentInput("only tcp and its signature go to another machine", field="host")
    if arguments.host is not None and arguments.name not in (None, "tcp"):
        raise InconsistentInput("only tcp goes to another machine", field="host")


def _measure_tool(arguments: Arguments, output: Output) -> int:
    """Run an existing tool, keep what it prints in a folder, and fit that."""
    from app.console.fit import fit_named
    from app.errors import INTERRUPTED
    from app.text.units import printable
    from app.verbs.measure.operation import run_tool

    folder = printable(arguments.output or f"{arguments.name}-tool")
    try:
        files = run_tool(arguments, output)
    except KeyboardInterrupt:
        output.note(f"interrupted; what was measured is in {folder}")
        return INTERRUPTED
    output.note(f"measured into {folder}")
    return fit_named([str(file) for file in files], arguments, output)


def _finish(
    arguments: Arguments, output: Output, target: str, text: str, *, is_complete: bool
) -> int:
    """Keep what was measured, and fit it where all of it was."""
    from app.console.files import write_whole
    from app.console.fit import fit_named
    from app.errors import INTERRUPTED
    from app.text.units import printable

    write_whole(target, text.encode(), field="output", noun="measurements")
    if not is_complete:
        output.note(f"interrupted; what was measured is in {printable(target)}")
        return INTERRUPTED
    output.note(f"measured into {printable(target)}")
    return fit_named([target], arguments, output)
