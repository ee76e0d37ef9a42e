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
    add_columns,
    add_constraints,
    add_message_range,
    add_mpi,
    add_overlap,
    add_rows,
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
from domain.fit import FitMethod, FitShape
from domain.measurement import TraceKind
from domain.solution import Strategy

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
    _add_optimize(parser)
    _add_fit(parser)
    _add_compose(parser)
    _add_plan(parser)
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


def _add_optimize(commands: Root) -> None:
    parser = add(commands, "optimize", "find the best cut of one message")
    parser.add_argument(
        "sources",
        nargs="+",
        metavar="SOURCE",
        help="file, own transfers too, - or profile; or several files of one path, as its "
        "latencies and bandwidths",
    )
    parser.add_argument("--bytes", type=size, metavar="SIZE", help="size of the message")
    parser.add_argument("--strategy", choices=[*Strategy], metavar="NAME", help=_STRATEGIES)
    parser.add_argument("--save-as", metavar="PROFILE", help="store the stages under this name")
    parser.add_argument("--timeline", metavar="FILE", help="draw the schedule into this SVG file")
    parser.add_argument(
        "--current", type=size_or_whole, metavar="SIZE", help="the size in use today, or whole"
    )
    parser.add_argument(
        "--transfers", metavar="FILE", help="own transfers of this message, which decide"
    )
    parser.add_argument(
        "--relative", type=share, metavar="SHARE", help="deviation of every cost, as 10%%"
    )
    parser.add_argument(
        "--robust",
        action="store_true",
        default=None,
        help="seek the cut whose greatest regret over draws of the costs is least",
    )
    parser.add_argument(
        "--sensitivities",
        action="store_true",
        help="say how the latency moves with the costs of each stage",
    )
    add_overlap(parser)
    add_rows(parser)
    _add_solving(parser)


_KINDS = ", ".join(TraceKind)
_STRATEGIES = "one of " + ", ".join(Strategy) + " (default auto)"


def _add_solving(parser: Parser) -> None:
    parser.add_argument("--static-bytes", type=size, metavar="SIZE", help="with strategy static")
    add_constraints(parser)
    parser.add_argument(
        "--allow-refragmentation",
        action="store_true",
        default=None,
        help="stages may reassemble or cut again",
    )
    parser.add_argument(
        "--relative-gap",
        "--gap",
        type=number,
        metavar="GAP",
        help="gap to the optimum of this model that suffices (1e-6)",
    )
    parser.add_argument("--time-limit", type=number, metavar="SECONDS", help="default 10")


def _add_fit(commands: Root) -> None:
    parser = add(commands, "fit", "estimate each stage's overhead and per-byte cost from a trace")
    parser.add_argument(
        "sources",
        metavar="FILE",
        nargs="+",
        help="trace, folder of traces, or -; several are measurements of one pipeline",
    )
    parser.add_argument(
        "--separately", action="store_true", help="fit each file for itself, not all together"
    )
    _add_fitting(parser, [*FitShape])
    parser.add_argument(
        "--as-stage",
        "--stage",
        metavar="NAME",
        help="times of whole messages are those of this one stage",
    )
    add_columns(parser)
    parser.add_argument(
        "--uncut",
        action="store_true",
        help="nothing cut the messages whose latencies were measured: no library pipelines inside",
    )
    add_overlap(parser)
    add_rows(parser)
    parser.add_argument(
        "--group",
        action="append",
        metavar="GROUP",
        help="name:overlap:step,step or name:sequence:step,step; may be repeated",
    )
    parser.add_argument(
        "--message-bytes",
        type=sizes,
        metavar="SIZES",
        help="with shape narrowed: the message; with --test: of each file, in their order",
    )


def _add_compose(commands: Root) -> None:
    parser = add(commands, "compose", "make a pipeline of stages that were measured each by itself")
    parser.add_argument(
        "--stage",
        dest="stages",
        action="append",
        required=True,
        metavar="NAME=FILE[,FILE]",
        help="a stage and the files that time it; repeated, in the order of the pipeline",
    )
    parser.add_argument(
        "--step",
        dest="steps",
        action="append",
        metavar="NAME=COLUMN",
        help="of a stage whose file has several steps: which one; may be repeated",
    )
    parser.add_argument(
        "--columns",
        action="append",
        metavar="NAME=COLUMNS",
        help="of a stage whose files are tables: NAME=size=COLUMN,time=COLUMN:us; may be repeated",
    )
    for name, what, metavar in (
        ("test", "do not name their test", "NAME=TEST"),
        ("run", "have several runs", "NAME=NUMBER"),
        ("where", "have several conditions", "NAME=CONDITION=VALUE"),
    ):
        parser.add_argument(
            f"--{name}",
            action="append",
            metavar=metavar,
            help=f"of a stage whose files {what}: {metavar}; may be repeated",
        )
    parser.add_argument(
        "--processor",
        dest="processors",
        action="append",
        metavar="NAME=STAGE,STAGE",
        help="stages that share a processor or an engine; may be repeated",
    )
    _add_fitting(parser, [FitShape.RANGES, FitShape.LINE])


def _add_plan(commands: Root) -> None:
    parser = add(commands, "plan", "say which message sizes to measure next, from outside")
    parser.add_argument(
        "sources",
        metavar="FILE",
        nargs="*",
        help="latencies and inter-arrival times so far, folder of them, or -; none at the start",
    )
    add_message_range(parser, "64", "1 MiB")
    parser.add_argument(
        "--tolerance", type=share, metavar="SHARE", help="the difference that counts (3%%)"
    )


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


def _add_fitting(parser: Parser, shapes: list[FitShape]) -> None:
    parser.add_argument(
        "--kind", choices=[*TraceKind], metavar="KIND", help="what was measured: " + _KINDS
    )
    parser.add_argument(
        "--method",
        choices=[*FitMethod],
        metavar="NAME",
        help="robust (default), weighted or ordinary",
    )
    parser.add_argument(
        "--shape",
        choices=shapes,
        metavar="NAME",
        help=f"one of {', '.join(shapes)} (default ranges)",
    )
    parser.add_argument("--max-ranges", type=whole, metavar="COUNT", help="most a stage (12)")
    parser.add_argument(
        "--exclude",
        action="append",
        metavar="SAMPLE",
        help="bytes:µs:stage, a sample to leave out; may be repeated",
    )
    parser.add_argument("--save-as", metavar="PROFILE", help="store traces, fit and stages")
    parser.add_argument("--plot", metavar="OUT", help="draw the fit into this SVG file")
