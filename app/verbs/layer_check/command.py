"""sluice model layer check: what is counted again, beside a file of before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.ui.grammar import Arguments, Command

if TYPE_CHECKING:
    from app.ui.terminal import Output

MORE = 7  # the exit code where a call takes more than --max-more above its baseline


def add_arguments(command: Command) -> None:
    """Add the baseline, the MPI, and how much more it may take."""
    from app.console.counting import add_counting
    from domain.units import parse_share

    command.argument("baseline", metavar="BASELINE", help="a file of sluice model layer count")
    add_counting(command)
    command.option(
        "--max-more", read=parse_share, rest=0.01, metavar="SHARE", help="exit with 7 above it (1%)"
    )


def run(arguments: Arguments, output: Output) -> int:
    """Count again what a file of `layer count` has; MORE where a call takes more now."""
    from app.console.counting import plan_of
    from app.console.files import json_body
    from app.console.running import ticking_line
    from app.schemas.base import dump_json, read_output
    from app.schemas.layer import count_checks_out, countable_instructions
    from app.settings import Settings
    from app.verbs.layer_check.show import parts
    from contract.layer import CountedLayerOut
    from domain.errors import InvalidInput, UnreadableRecord
    from measuring.count import count
    from measuring.counted_layer import changes

    settings = Settings.from_environment()
    try:
        baseline = read_output(
            CountedLayerOut, dump_json(json_body(arguments.baseline, settings, field="baseline"))
        )
    except UnreadableRecord:
        raise InvalidInput(
            "expected a file that sluice model layer count has written", field="baseline"
        ) from None
    before = countable_instructions(baseline)
    if not before:
        raise InvalidInput("the baseline has no call that is countable", field="baseline")
    sizes = sorted({size for _, size in before})
    known = {"mpicc": baseline.mpicc, "launcher": baseline.launcher, "bytes": sizes}
    with ticking_line(output.err, "counting instructions"):
        counted = count(plan_of(arguments, known))
    found = count_checks_out(counted.version, changes(before, counted.calls), arguments.max_more)
    if output.wants_json:
        output.document(dump_json(found))
    else:
        output.parts(parts(found, baseline))
    return 0 if found.is_kept else MORE
