"""The grammar of commands that transfer a message: what it is, and how it is transferred."""

from __future__ import annotations

import argparse
from dataclasses import replace

from app.console.argument_parts import add_seed, cpus, number, share, whole
from app.ui.options import add_words
from contract.declare import Asked, words_of
from contract.optimize import OptimizeIn


def words_of_message(means: str) -> tuple[Asked, ...]:
    """Return the size of the message, said to be this, and the setting in use, as requests declare
    them.
    """
    (message,) = words_of(OptimizeIn, ("message_bytes",))
    uncertainty = words_of(OptimizeIn, ("uncertainty",))
    current = next(word for word in uncertainty if word.place[-1] == "current")
    return replace(message, help=means), current


def add_transfers(parser: argparse.ArgumentParser, time_limit_s: float) -> None:
    """Add what says which transfers to run, and how."""
    parser.add_argument(
        "--stage",
        dest="stages",
        action="append",
        metavar="NAME",
        help="a stage, as sluice measure --list has it; repeated, in the order of the pipeline",
    )
    add_words(parser, words_of_message("of the message (1 MiB)"))
    parser.add_argument(
        "--depth", type=whole, default=4, metavar="COUNT", help="fragments between two stages (4)"
    )
    parser.add_argument("--cpus", type=cpus, metavar="A,B", help="the processors of the stages")
    parser.add_argument("--path", default=".", metavar="FOLDER", help="of files (default here)")
    parser.add_argument(
        "--tolerance",
        type=share,
        default=0.02,
        metavar="SHARE",
        help="how narrow the 95 %% interval of each median is to be (2%%)",
    )
    parser.add_argument(
        "--time-limit",
        type=number,
        default=time_limit_s,
        metavar="SECONDS",
        help=f"default {time_limit_s:g}",
    )
    add_seed(parser)
