"""The command line's grammar. Imports nothing heavy: `sluice --help` answers at once."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from app.console.argument_parts import (
    PATHS,
    Parser,
    Root,
    add,
    add_above,
    add_mpi,
    add_seed,
    add_target_options,
    add_transfers,
    cpus,
    number,
    share,
    size,
    size_or_whole,
    sizes,
    whole,
)
from app.console.paper_arguments import LAYER_VERBS, add_of_papers
from app.console.service_arguments import add_served
from app.console.stored_arguments import add_stored
from app.registry import VERBS
from domain.measurement import TraceKind

EPILOG = """\
Sizes take units: 4096, 64K, 64KiB, 1MB (K, M, KiB, MiB: powers of 1024; KB, MB: of 1000).
SOURCE is a file or - for standard input: a pipeline or a request body in JSON, or a trace in any
format that is recognised, also as gzip. A SOURCE that is no file is the name of a stored hardware
profile, as myrinet-gam or myrinet-gam@2. Questions about files touch no database; those about
profiles, and --save-as, use SLUICE_DATABASE_URL. In a SOURCE in JSON, costs and sizes may be texts
with units: "overhead_us": "250 ns", "bandwidth": "12 GB/s", "message_bytes": "64 KiB".

Exit codes: 0 done, 2 bad input, 3 refused (no cut, strategy or fit is possible), 4 not found,
5 conflict, 6 stopped at a limit, 7 a setting costs more than --max-regret or is not kept, a call
more than --max-more, or a model does not hold, 69 not available, 70 a defect, 130 interrupted.
"""


class _ShowVersion(argparse.Action):
    """Prints the version, which is imported only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from app.settings import VERSION

        sys.stdout.write(f"sluice {VERSION}\n")
        parser.exit()


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Return the arguments; `command` names it. Raises InvalidInput; SystemExit for help."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:2] == ["model", "layer"] and words[2:3] and words[2] in LAYER_VERBS:
        words[1:3] = [" ".join(words[1:3])]
    own, program = _parted(words)
    found: argparse.Namespace = grammar(own).parse_args(own)
    if program:
        found.program = [*found.program, *program]
    return found


def own_words(words: Sequence[str]) -> list[str]:
    """Return the words that are Sluice's own, without those of a user's program behind --."""
    return _parted(list(words))[0]


def _parted(words: list[str]) -> tuple[list[str], list[str]]:
    """The words before -- and those behind it, of a command that runs a program."""
    if words[:1] != ["sweep"] or "--" not in words:
        return words, []
    at = words.index("--")
    return words[:at], words[at + 1 :]


def grammar(words: Sequence[str] | None = None) -> Parser:
    """Return the parser of all commands, or one that is sufficient for these words: of what is not
    among them the name alone is known.
    """
    parser = Root(
        description="Cut messages so that they cross a pipeline fastest, with proof of the model.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_ShowVersion, nargs=0, help="show it and exit")
    _add_measure(parser)
    _add_verify(parser)
    _add_tune(parser)
    _add_sweep(parser)
    for verb in VERBS.values():
        about = verb.name, verb.summary
        own = add(parser, *about, verb.example) if verb.example else add_above(parser, *about)
        if words is None or verb.name in words:
            verb.module("command").add_arguments(own)
    add_of_papers(parser)
    add_stored(parser)
    add_served(parser)
    return parser


_KINDS = ", ".join(TraceKind)


def _add_measure(commands: Root) -> None:
    parser = add(commands, "measure", "measure a stage, or the signature of a transport, here")
    parser.add_argument("name", nargs="?", metavar="NAME", help="as --list has them")
    parser.add_argument("--list", action="store_true", help="what can be measured")
    parser.add_argument(
        "--stage",
        metavar="NAME=COMMAND",
        help="a program of your own that prints the time it took, as h2d=./copy {bytes}",
    )
    parser.add_argument(
        "--what",
        choices=["stage", "signature", "tool"],
        help="of a name that is several (default stage)",
    )
    parser.add_argument(
        "--bytes",
        type=sizes,
        metavar="SIZES",
        help="as 64..4MiB (powers of two between) or 4KiB,1MiB (default 64..4MiB; signatures 64)",
    )
    parser.add_argument(
        "--host",
        metavar="HOST[:PORT]",
        help="the other machine, where a listener runs: tcp and its signature",
    )
    parser.add_argument(
        "--listen",
        metavar="ADDRESS[:PORT]",
        help="be the other machine, for one peer at a time, until Ctrl-C",
    )
    parser.add_argument(
        "--token", metavar="TOKEN", help="of the listener (default $SLUICE_MEASURE_TOKEN)"
    )
    parser.add_argument("--cpus", type=cpus, metavar="A,B", help="the processors of both ends")
    parser.add_argument("--path", default=".", metavar="FOLDER", help="of files (default here)")
    parser.add_argument(
        "--cold", action="store_true", help="copies and checksums of what caches do not hold"
    )
    parser.add_argument(
        "--window", type=whole, default=256, metavar="COUNT", help="messages without a reply (256)"
    )
    add_mpi(parser)
    parser.add_argument(
        "--tolerance",
        type=share,
        default=0.02,
        metavar="SHARE",
        help="how narrow the 95 %% interval of each median is to be (2%%; signatures 5%%)",
    )
    parser.add_argument(
        "--time-limit", type=number, default=20.0, metavar="SECONDS", help="default 20"
    )
    parser.add_argument(
        "--seed", type=whole, default=0, metavar="NUMBER", help="of the random order"
    )
    parser.add_argument("--output", metavar="FILE", help="for the measurements (NAME-stage.csv)")
    parser.add_argument("--save-as", metavar="PROFILE", help="store measurements, fit and stages")
    parser.add_argument("--plot", metavar="OUT", help="draw the fit into this SVG file")


def _add_verify(commands: Root) -> None:
    parser = add(commands, "verify", "compare a model with real transfers over its stages, here")
    parser.add_argument("source", metavar="SOURCE", help="profile or file")
    add_transfers(parser, 30.0)
    parser.add_argument(
        "--recorded", metavar="FILE", help="transfers of before, in place of new ones"
    )
    parser.add_argument("--output", metavar="FILE", help="for every transfer (transfers.csv)")


def _add_tune(commands: Root) -> None:
    parser = add(commands, "tune", "measure, compose, fit and verify, and say what to set")
    parser.add_argument(
        "place",
        nargs="?",
        choices=list(PATHS),
        default="tcp-to-file",
        metavar="PATH",
        help="tcp-to-file (default): TCP over a link into a synced file; or name each --stage",
    )
    add_transfers(parser, 80.0)
    parser.add_argument("--target", metavar="NAME", help="print it for this library, as export has")
    add_target_options(parser)
    parser.add_argument(
        "--save-as", default="tuned", metavar="PROFILE", help="store the stages (tuned)"
    )
    parser.add_argument(
        "--folder", default=".", metavar="FOLDER", help="of the measurements (default here)"
    )


def _add_sweep(commands: Root) -> None:
    parser = add(commands, "sweep", "run your own program at sizes that win, and say which to set")
    parser.add_argument(
        "program", nargs="*", metavar="PROGRAM", help="behind --, with {bytes} for the size"
    )
    parser.add_argument("--bytes", type=size, metavar="SIZE", help="the message that it moves")
    parser.add_argument(
        "--current", type=size_or_whole, metavar="SIZE", help="the size in use today, or whole"
    )
    parser.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a variable of its environment, as PART={bytes}; may be repeated",
    )
    parser.add_argument(
        "--before", metavar="COMMAND", help="run before each run, untimed, as rm -f out"
    )
    parser.add_argument(
        "--time",
        default="wall",
        metavar="HOW",
        help="wall (default), last: the last number printed, or a regular expression with a group",
    )
    parser.add_argument("--unit", metavar="UNIT", help="of a number that has none beside it, as ms")
    parser.add_argument("--rate", action="store_true", help="the number is a rate, as 3.1 GB/s")
    parser.add_argument(
        "--min-fragment-bytes", type=size, metavar="SIZE", help="no smaller size is run (1/4096)"
    )
    parser.add_argument(
        "--max-runs", type=whole, default=40, metavar="COUNT", help="6 to 1000 (40)"
    )
    parser.add_argument(
        "--time-limit", type=number, default=120.0, metavar="SECONDS", help="of all runs (120)"
    )
    add_seed(parser)
    parser.add_argument("--quiet", action="store_true", help="say nothing while it runs")
    parser.add_argument("--out", metavar="FILE", help="for every run (own.csv)")
    parser.add_argument(
        "--continue", dest="continued", metavar="FILE", help="go on from the runs of this file"
    )
