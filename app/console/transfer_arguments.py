"""The grammar of commands that transfer a message: what it is, and how it is transferred."""

from __future__ import annotations

from dataclasses import replace

from app.console.argument_parts import add_seed, cpus
from app.text.units import parse_whole
from app.ui.grammar import Command
from app.ui.options import add_words
from contract.declare import Asked, words_of
from contract.optimize import OptimizeIn
from domain.units import parse_number, parse_share


def words_of_message(means: str) -> tuple[Asked, ...]:
    """Return the size of the message, said to be this, and the setting in use, as requests declare
    them.
    """
    (message,) = words_of(OptimizeIn, ("message_bytes",))
    uncertainty = words_of(OptimizeIn, ("uncertainty",))
    current = next(word for word in uncertainty if word.place[-1] == "current")
    return replace(message, help=means), current


def add_transfers(command: Command, time_limit_s: float) -> None:
    """Add what says which transfers to run, and how."""
    command.option(
        "--stage",
        name="stages",
        is_repeated=True,
        metavar="NAME",
        help="a stage, as sluice measure --list has it; repeated, in the order of the pipeline",
    )
    add_words(command, words_of_message("of the message (1 MiB)"))
    command.option(
        "--depth",
        read=parse_whole,
        rest=4,
        metavar="COUNT",
        help="fragments between two stages (4)",
    )
    command.option("--cpus", read=cpus, metavar="A,B", help="the processors of the stages")
    command.option("--path", rest=".", metavar="FOLDER", help="of files (default here)")
    command.option(
        "--tolerance",
        read=parse_share,
        rest=0.02,
        metavar="SHARE",
        help="how narrow the 95 % interval of each median is to be (2%)",
    )
    command.option(
        "--time-limit",
        read=parse_number,
        rest=time_limit_s,
        metavar="SECONDS",
        help=f"default {time_limit_s:g}",
    )
    add_seed(command)
