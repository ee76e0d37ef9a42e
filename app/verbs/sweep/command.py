"""sluice sweep: the user's own program says which size to set.

No service runs programs: who asks a server to run one has found a hole.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from app.ui.grammar import Arguments, Command
from app.ui.options import add_words
from contract.constraints import ConstraintsIn
from contract.declare import words_of

if TYPE_CHECKING:
    from app.ui.terminal import Output
    from measuring.own_program import ProgramRun

SMALLEST = tuple(
    replace(word, help="no smaller size is run (1/4096)")
    for word in words_of(ConstraintsIn, ("min_fragment_bytes",))
)
REFUSED = 3  # the exit code where the program cannot use the size in use


def add_arguments(command: Command) -> None:
    """Add the program, its message, and how its time is read."""
    from app.console.argument_parts import add_seed
    from app.console.transfer_arguments import words_of_message
    from app.text.units import parse_whole
    from domain.units import parse_number

    command.argument(
        "program",
        takes_several=True,
        is_optional=True,
        metavar="PROGRAM",
        help="behind --, with {bytes} for the size",
    )
    add_words(command, words_of_message("the message that it moves"))
    command.option(
        "--env",
        is_repeated=True,
        rest=[],
        metavar="NAME=VALUE",
        help="a variable of its environment, as PART={bytes}; may be repeated",
    )
    command.option("--before", metavar="COMMAND", help="run before each run, untimed, as rm -f out")
    command.option(
        "--time",
        rest="wall",
        metavar="HOW",
        help="wall (default), last: the last number printed, or a regular expression with a group",
    )
    command.option("--unit", metavar="UNIT", help="of a number that has none beside it, as ms")
    command.flag("--rate", help="the number is a rate, as 3.1 GB/s")
    add_words(command, SMALLEST)
    command.option("--max-runs", read=parse_whole, rest=40, metavar="COUNT", help="6 to 1000 (40)")
    command.option(
        "--time-limit", read=parse_number, rest=120.0, metavar="SECONDS", help="of all runs (120)"
    )
    add_seed(command)
    command.flag("--quiet", help="say nothing while it runs")
    command.option("--out", metavar="FILE", help="for every run (own.csv)")
    command.option(
        "--continue", name="continued", metavar="FILE", help="go on from the runs of this file"
    )


def run(arguments: Arguments, output: Output) -> int:
    """Run the program at the sizes that the race asks for, keep every run, and say what to set."""
    from app.console.running import ended_by_signals

    with ended_by_signals():
        return _run(arguments, output)


def _run(arguments: Arguments, output: Output) -> int:
    from analysis.size_race import SizeRace
    from app.console.own_transfers import show_decided
    from app.console.racing import Ended, RaceRun
    from app.errors import INTERRUPTED
    from app.questions.transfers import DecidedTransfers
    from app.text.units import printable
    from app.verbs.sweep.operation import Kept, Progress, asked_of, end_of
    from app.verbs.sweep.show import notes

    asked = asked_of(arguments)
    earlier = asked.transfers.rows if asked.transfers else ()
    race = SizeRace(asked.plan, earlier)
    kept = Kept(asked, race)
    progress = Progress(asked, output, arguments.time_limit, is_quiet=arguments.quiet)

    def run(size: int, limit_s: float) -> ProgramRun:
        with progress.running(size):
            return asked.program.run(size, limit_s=limit_s)

    def after_run(size: int, found: ProgramRun) -> None:
        kept.write()
        progress.after(size, found)

    session = RaceRun(race, run, arguments.time_limit, end_of(earlier), after_run)
    try:
        ended = session.to_end()
    except KeyboardInterrupt:
        ended = Ended.INTERRUPTED
        if len(race.rows()) > len(earlier):
            kept.write()  # it may have come before the last run was
    if not race.rows() and ended is Ended.INTERRUPTED:
        raise KeyboardInterrupt
    found = race.decision()
    code = show_decided(DecidedTransfers(found, kept.transfers()), output)
    said = list(notes(found, ended, asked, arguments.time_limit))
    if said and not output.wants_json:
        output.parts(["", *said])
    if ended is Ended.INTERRUPTED:
        output.note(f"interrupted; every run is in {printable(asked.target)}")
        return INTERRUPTED
    if found.is_current_refused:
        return REFUSED
    return code
