"""The command line's grammar. Imports nothing heavy: `sluice --help` answers at once."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn, TypeVar

from domain.errors import InvalidInput
from domain.fit import FitMethod, FitShape
from domain.measurement import TraceKind
from domain.messaging_layer import NetworkFeature
from domain.regret import Objective
from domain.solution import Strategy
from domain.units import (
    parse_bytes,
    parse_clock_mhz,
    parse_number,
    parse_share,
    parse_time_us,
)

T = TypeVar("T")

EPILOG = """\
Sizes take units: 4096, 64K, 64KiB, 1MB (K, M, KiB, MiB: powers of 1024; KB, MB: of 1000).
SOURCE is a file or - for standard input: a pipeline or a request body in JSON, or a trace in any
format that is recognised, also as gzip. A SOURCE that is no file is the name of a stored hardware
profile, as myrinet-gam or myrinet-gam@2. Questions about files touch no database; those about
profiles, and --save-as, use SLUICE_DATABASE_URL. In a SOURCE in JSON, costs and sizes may be texts
with units: "overhead_us": "250 ns", "ns_per_byte": "12 GB/s", "message_bytes": "64 KiB".

Exit codes: 0 done, 2 bad input, 3 refused (no cut, strategy or fit is possible), 4 not found,
5 conflict, 6 stopped at a limit, 7 a setting costs more than --max-regret, or a call more than
--max-more, 69 not available, 70 a defect, 130 interrupted.
"""


class Parser(argparse.ArgumentParser):
    """Reports misuse as any other bad input, in one line, instead of usage and exit."""

    def error(self, message: str) -> NoReturn:
        """Raise InvalidInput."""
        raise InvalidInput(f"{message} (see {self.prog} --help)")


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Return the arguments; `command` names it. Raises InvalidInput; SystemExit for help."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["layer"] and words[1:2] and words[1] in _LAYER_VERBS:
        words[:2] = [" ".join(words[:2])]
    return _parser().parse_args(words)


def _parser() -> Parser:
    parser = Parser(
        prog="sluice",
        description="Cut messages so that they cross a pipeline fastest, with proof of the model.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_optimize(commands)
    _add_fit(commands)
    _add_compose(commands)
    _add_measure(commands)
    _add_compare(commands)
    _add_table(commands)
    _add_export(commands)
    _add_audit(commands)
    _add_layer(commands)
    _add_reproduce(commands)
    _add_hide(commands)
    _add_profiles(commands)
    _add_serve(commands)
    _add_work(commands)
    return parser


_Commands = (
    argparse._SubParsersAction
)  # the name that argparse gives to what add_subparsers returns


def _add(commands: _Commands[Parser], name: str, summary: str) -> Parser:
    parser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        allow_abbrev=False,
    )
    parser.add_argument("--json", action="store_true", help="print the HTTP service's document")
    return parser


def _add_optimize(commands: _Commands[Parser]) -> None:
    parser = _add(commands, "optimize", "find the best cut of one message")
    parser.add_argument("source", metavar="SOURCE", help="file, - or profile")
    parser.add_argument("--bytes", type=size, metavar="SIZE", help="size of the message")
    parser.add_argument("--strategy", choices=[*Strategy], metavar="NAME", help=_STRATEGIES)
    parser.add_argument("--save-as", metavar="PROFILE", help="store the stages under this name")
    parser.add_argument("--timeline", metavar="FILE", help="draw the schedule into this SVG file")
    parser.add_argument(
        "--current", type=size_or_whole, metavar="SIZE", help="the size in use today, or whole"
    )
    parser.add_argument(
        "--relative", type=share, metavar="SHARE", help="deviation of every cost, as 10%%"
    )
    _add_solving(parser)


_KINDS = ", ".join(TraceKind)
_STRATEGIES = "one of " + ", ".join(Strategy) + " (default auto)"


def _add_solving(parser: Parser) -> None:
    parser.add_argument("--static-bytes", type=size, metavar="SIZE", help="with strategy static")
    _add_constraints(parser)
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


def _add_constraints(parser: Parser) -> None:
    parser.add_argument(
        "--min-fragment-bytes", type=size, metavar="SIZE", help="least size of a fragment"
    )
    parser.add_argument(
        "--max-fragment-bytes", type=size, metavar="SIZE", help="greatest size of a fragment"
    )
    parser.add_argument(
        "--alignment-bytes",
        type=size,
        metavar="SIZE",
        help="all fragments but the last are multiples",
    )
    parser.add_argument("--max-fragments", type=int, metavar="COUNT", help="most fragments")


def _add_fit(commands: _Commands[Parser]) -> None:
    parser = _add(commands, "fit", "estimate each stage's overhead and per-byte cost from a trace")
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
        "--as-stage", metavar="NAME", help="times of whole messages are those of this one stage"
    )
    parser.add_argument(
        "--group",
        action="append",
        metavar="GROUP",
        help="name:overlap:step,step or name:sequence:step,step; may be repeated",
    )
    parser.add_argument(
        "--message-bytes", type=size, metavar="SIZE", help="with shape narrowed: the message"
    )


def _add_compose(commands: _Commands[Parser]) -> None:
    parser = _add(
        commands, "compose", "make a pipeline of stages that were measured each by itself"
    )
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
        "--processor",
        dest="processors",
        action="append",
        metavar="NAME=STAGE,STAGE",
        help="stages that share a processor or an engine; may be repeated",
    )
    _add_fitting(parser, [FitShape.RANGES, FitShape.LINE])


def _add_measure(commands: _Commands[Parser]) -> None:
    parser = _add(commands, "measure", "measure a stage, or the signature of a transport, here")
    parser.add_argument("name", nargs="?", metavar="NAME", help="as --list has them")
    parser.add_argument("--list", action="store_true", help="what can be measured")
    parser.add_argument(
        "--what", choices=["stage", "signature"], help="of a name that is both (default stage)"
    )
    parser.add_argument(
        "--bytes",
        type=sizes,
        metavar="SIZES",
        help="as 64..4MiB (powers of two between) or 4KiB,1MiB (default 64..4MiB; signatures 64)",
    )
    parser.add_argument("--cpus", type=cpus, metavar="A,B", help="the processors of both ends")
    parser.add_argument("--path", default=".", metavar="FOLDER", help="of files (default here)")
    parser.add_argument(
        "--cold", action="store_true", help="copies and checksums of what caches do not hold"
    )
    parser.add_argument(
        "--window", type=int, default=256, metavar="COUNT", help="messages without a reply (256)"
    )
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
    parser.add_argument("--seed", type=int, default=0, metavar="NUMBER", help="of the random order")
    parser.add_argument("--output", metavar="FILE", help="for the measurements (NAME-stage.csv)")
    parser.add_argument("--save-as", metavar="PROFILE", help="store measurements, fit and stages")
    parser.add_argument("--plot", metavar="OUT", help="draw the fit into this SVG file")


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
    parser.add_argument("--max-ranges", type=int, metavar="COUNT", help="most ranges a stage (12)")
    parser.add_argument(
        "--exclude",
        action="append",
        metavar="SAMPLE",
        help="bytes:µs:stage, a sample to leave out; may be repeated",
    )
    parser.add_argument("--save-as", metavar="PROFILE", help="store traces, fit and stages")
    parser.add_argument("--plot", metavar="OUT", help="draw the fit into this SVG file")


def _add_compare(commands: _Commands[Parser]) -> None:
    parser = _add(commands, "compare", "compare strategies on messages of several sizes")
    parser.add_argument("source", metavar="SOURCE", help="file, - or profile")
    parser.add_argument("--bytes", type=size, nargs="+", metavar="SIZE", help="message sizes")
    parser.add_argument(
        "--strategies", type=strategies, metavar="NAMES", help="separated by commas"
    )
    _add_solving(parser)


def _add_table(commands: _Commands[Parser]) -> None:
    parser = _add(commands, "table", "compile a schedule for every message size of a range")
    parser.add_argument("source", metavar="SOURCE", help="file, - or profile")
    parser.add_argument(
        *("--min-message", "--from"),
        dest="min_message_bytes",
        type=size,
        metavar="SIZE",
        help="smallest message (1 B)",
    )
    parser.add_argument(
        *("--max-message", "--to"),
        dest="max_message_bytes",
        type=size,
        metavar="SIZE",
        help="largest message (16 MiB)",
    )
    parser.add_argument(
        "--relative-gap", "--gap", type=share, metavar="GAP", help="tolerance, as 0.1%% (default)"
    )
    _add_constraints(parser)
    _add_time_limit(parser, "default 100")
    parser.add_argument(
        "--output", metavar="FILE", help="write the table file; .json: its JSON twin"
    )
    parser.add_argument(
        "--activate",
        action="store_true",
        default=None,
        help="have the profile's lookups answer from it",
    )


def _add_export(commands: _Commands[Parser]) -> None:
    parser = _add(commands, "export", "write a pipeline as a library's configuration")
    parser.add_argument("source", metavar="SOURCE", nargs="?", help="file, - or profile")
    parser.add_argument("--list", action="store_true", help="list the targets and their options")
    parser.add_argument("--target", metavar="NAME", help="the library, out of those of --list")
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of the target; may be repeated",
    )
    _add_message_range(parser)
    parser.add_argument(
        "--objective", choices=[*Objective], metavar="NAME", help="mean (default) or worst regret"
    )
    parser.add_argument("--table", metavar="TABLE", help="digest or file of a compiled table")
    _add_constraints(parser)
    _add_time_limit(parser, "default 30")
    parser.add_argument("--output", metavar="FILE", help="write it to this file")


def _add_time_limit(parser: Parser, summary: str) -> None:
    parser.add_argument(
        "--time-limit", dest="time_limit_s", type=number, metavar="SECONDS", help=summary
    )


def _add_message_range(parser: Parser) -> None:
    parser.add_argument(
        "--min-message",
        dest="min_message_bytes",
        type=size,
        metavar="SIZE",
        help="smallest message (1 KiB)",
    )
    parser.add_argument(
        "--max-message",
        dest="max_message_bytes",
        type=size,
        metavar="SIZE",
        help="largest (16 MiB)",
    )


def _add_audit(commands: _Commands[Parser]) -> None:
    parser = _add(
        commands, "audit", "say what an existing setting costs over the optimum of its model"
    )
    parser.add_argument("source", metavar="SOURCE", help="file, - or profile")
    parser.add_argument(
        "--setting", metavar="SETTING", help="512KiB, whole, or steps as 1:whole,64KiB:512KiB"
    )
    parser.add_argument("--config", metavar="FILE", help="a library's configuration instead")
    parser.add_argument("--target", metavar="NAME", help="whose: an export target that is read")
    _add_message_range(parser)
    parser.add_argument(
        "--workload", metavar="FILE", help="lines SIZE WEIGHT (default log-uniform)"
    )
    parser.add_argument(
        "--objective", choices=[*Objective], metavar="NAME", help="mean (default) or worst regret"
    )
    parser.add_argument(
        "--max-regret", type=share, metavar="SHARE", help="exit with 7 above this, as 5%%"
    )
    parser.add_argument(
        "--in-draws", type=share, metavar="SHARE", help="and above it in more draws, as 95%%"
    )
    parser.add_argument(
        "--relative", type=share, metavar="SHARE", help="deviation of every cost, as 10%%"
    )
    parser.add_argument(
        "--over", choices=("best", "bound"), metavar="NAME", help="what decides: best (default)"
    )
    _add_time_limit(parser, "default 30")


_LAYER_VERBS = ("count", "check")


def _add_layer(commands: _Commands[Parser]) -> None:
    parser = _add(commands, "layer", "say what a messaging layer's software costs, by service")
    parser.add_argument(
        "layer", metavar="LAYER", help="a published one, as cmam-finite, or a document's file"
    )
    parser.add_argument("--bytes", type=size, nargs="+", metavar="SIZE", help="message sizes")
    parser.add_argument(
        "--packet-words", type=counts, metavar="COUNTS", help="other packets, as 4,16 or 4..128"
    )
    parser.add_argument(
        "--features", type=names, metavar="NAMES", help=", ".join(NetworkFeature) + " (all)"
    )
    parser.add_argument(
        "--cycles", type=prices, metavar="CYCLES", help="of an instruction, as reg=1,mem=1,dev=5"
    )
    parser.add_argument("--clock", dest="clock_mhz", type=clock, metavar="CLOCK", help="as 33MHz")
    parser.add_argument("--mapping", metavar="NAME", help="a fragment is a packet or a transfer")
    parser.add_argument("--handshake", metavar="NAME", help="overlapped (default) or blocking")
    parser.add_argument("--between", metavar="FILE", help="stages between both ends")
    parser.add_argument("--wire", dest="wire_us", type=time_us, metavar="TIME", help="one-way trip")
    parser.add_argument(
        "--out-of-order", type=share, metavar="SHARE", help="packets out of order, as counted"
    )
    parser.add_argument("--tune", action="store_true", help="cut anew with each set of features")
    _add_time_limit(parser, "default 10")
    parser.add_argument("--plot", metavar="OUT", help="draw bars by service into this SVG file")
    parser.add_argument("--save-as", metavar="PROFILE", help="store the stages under this name")

    count = _add(commands, "layer count", "count an installed MPI's instructions under callgrind")
    _add_counting(count)
    count.add_argument("--bytes", type=size, nargs="+", metavar="SIZE", help="sizes (8 64 256)")
    count.add_argument("--output", metavar="FILE", help="write the layer as JSON")
    check = _add(commands, "layer check", "count again, and say what takes more instructions now")
    check.add_argument("baseline", metavar="BASELINE", help="a file of sluice layer count")
    _add_counting(check)
    check.add_argument(
        "--max-more", type=share, default=0.01, metavar="SHARE", help="exit with 7 above it (1%%)"
    )


def _add_counting(parser: Parser) -> None:
    parser.add_argument("--mpicc", metavar="NAME", help="compiler wrapper, as mpicc.mpich (mpicc)")
    parser.add_argument("--launcher", metavar="NAME", help="default: named like the wrapper")
    parser.add_argument("--repetitions", type=int, metavar="COUNT", help="of each call (8)")
    parser.add_argument(
        "--allow-run-as-root", action="store_true", help="have Open MPI start programs as root"
    )
    _add_time_limit(parser, "default 120")


def _add_reproduce(commands: _Commands[Parser]) -> None:
    parser = _add(commands, "reproduce", "the numbers of a paper, published beside computed")
    parser.add_argument("paper", metavar="PAPER", help="a paper's name, or all")
    parser.add_argument("--only", metavar="ITEM", help="one table or figure")
    parser.add_argument("--output", metavar="DIR", help="folder for CSV, SVG, HTML and JSON")


def _add_hide(commands: _Commands[Parser]) -> None:
    parser = _add(commands, "hide", "say what hiding a message behind a calculation gains")
    parser.add_argument("source", metavar="SOURCE", nargs="?", help="file, - or profile")
    parser.add_argument("--bytes", type=size, metavar="SIZE", help="size of the message")
    parser.add_argument("--messages", type=int, metavar="COUNT", help="one after the other (1)")
    parser.add_argument("--calculation", type=number, metavar="US", help="of an iteration, in µs")
    parser.add_argument("--instructions", type=number, metavar="COUNT", help="instead of that")
    parser.add_argument("--instructions-per-us", type=number, metavar="RATE", help="of these")
    parser.add_argument(
        "--hideable-fraction", type=share, metavar="SHARE", help="of the calculation (100%%)"
    )
    parser.add_argument(
        "--streamed",
        action="store_true",
        default=None,
        help="fragments leave while the rest is calculated",
    )
    parser.add_argument(
        "--hiding-overhead", type=number, metavar="US", help="what hiding adds, in µs"
    )
    for side in ("sender", "receiver"):
        parser.add_argument(
            f"--{side}-stage",
            action="append",
            metavar="STAGE",
            help=f"runs on the {side}'s calculating processor; may be repeated",
        )
    parser.add_argument(
        "--both-ways", action="store_true", default=None, help="both ends are one processor"
    )
    parser.add_argument("--min-gain", type=number, metavar="GAIN", help="show where it is reached")
    parser.add_argument("--processes", type=int, metavar="COUNT", help="curves from 1 to so many")
    parser.add_argument(
        "--communication",
        choices=("constant", "sqrt", "linear"),
        metavar="NAME",
        help="how messages grow with processes: constant (default), sqrt, linear",
    )
    for name in ("software", "hardware"):
        parser.add_argument(
            f"--{name}", type=number, metavar="RATIO", help=f"granularity of the {name}, no SOURCE"
        )
    parser.add_argument("--overhead", type=number, metavar="RATIO", help="with these: of hiding")
    parser.add_argument("--plot", metavar="FILE", help="draw into this SVG file")
    parser.add_argument(
        "--picture",
        choices=("run_time", "gain", "speedup"),
        metavar="NAME",
        help="run_time (default), gain or speedup",
    )
    _add_constraints(parser)
    _add_time_limit(parser, "default 10")


def _add_profiles(commands: _Commands[Parser]) -> None:
    profiles = commands.add_parser(
        "profiles", help="hardware profiles in the database", allow_abbrev=False
    )
    verbs = profiles.add_subparsers(dest="verb", required=True, metavar="VERB")
    _add(verbs, "list", "list all profiles")
    show = _add(verbs, "show", "show a profile's stages")
    show.add_argument("profile", metavar="PROFILE", help="name or name@revision")
    save = _add(verbs, "save", "store a pipeline, or the fit of a trace, as a profile's revision")
    save.add_argument("profile", metavar="PROFILE")
    save.add_argument("source", metavar="SOURCE", help="pipeline JSON, CSV, or -")
    revisions = _add(verbs, "revisions", "list a profile's revisions")
    revisions.add_argument("profile", metavar="PROFILE")
    use = _add(verbs, "use", "make a revision the current one")
    use.add_argument("profile", metavar="PROFILE")
    use.add_argument("revision", type=int, metavar="REVISION")
    tables = _add(verbs, "tables", "list a profile's compiled tables")
    tables.add_argument("profile", metavar="PROFILE", help="name or name@revision")
    activate = _add(verbs, "activate", "have lookups answer from a compiled table, or again")
    activate.add_argument("profile", metavar="PROFILE", help="name or name@revision")
    activate.add_argument("digest", metavar="DIGEST", help="of the table; its first 8 or more")
    delete = _add(verbs, "delete", "delete a profile and its revisions")
    delete.add_argument("profile", metavar="PROFILE")


def _add_serve(commands: _Commands[Parser]) -> None:
    parser = _add(commands, "serve", "serve the HTTP interface until Ctrl-C")
    parser.add_argument("--host", metavar="HOST", help="default 127.0.0.1, or SLUICE_HOST")
    parser.add_argument("--port", type=int, metavar="PORT", help="default 8080, or SLUICE_PORT")
    parser.add_argument("--workers", type=int, metavar="COUNT", help="child processes that solve")


def _add_work(commands: _Commands[Parser]) -> None:
    parser = _add(commands, "work", "run durable jobs of the same database, without HTTP")
    parser.add_argument("--workers", type=int, metavar="COUNT", help="child processes that solve")


def size(text: str) -> int:
    """Return a size in bytes, as 4096 or 64 KiB."""
    return _read(parse_bytes, text)


def size_or_whole(text: str) -> dict[str, int] | str:
    """Return the setting in use, as a request has it."""
    return text if text == "whole" else {"repeat": size(text)}


def sizes(text: str) -> tuple[int, ...]:
    """Return sizes in bytes, as 4KiB,1MiB, or 64..4MiB: both and the powers of two between."""
    found: list[int] = []
    for part in text.split(","):
        first, dots, last = part.partition("..")
        low = size(first)
        high = size(last) if dots else low
        if not 1 <= low <= high:
            raise argparse.ArgumentTypeError(f"expected sizes as 64..4MiB, got {text!r}")
        between = (2**power for power in range(low.bit_length(), high.bit_length()))
        found += [low, *(one for one in between if low < one < high), high]
    return tuple(sorted(set(found)))


def cpus(text: str) -> tuple[int, ...]:
    """Return the numbers of one processor or two, as 0,1."""
    parts = text.split(",")
    if len(parts) > 2 or not all(part.isascii() and part.isdigit() for part in parts):
        raise argparse.ArgumentTypeError(f"expected one number or two, as 0,1, got {text!r}")
    return tuple(map(int, parts))


def number(text: str) -> float:
    """Return a finite number."""
    return _read(parse_number, text)


def share(text: str) -> float:
    """Return a share, as 0.05 or 5%."""
    return _read(parse_share, text)


def _read(parser: Callable[[str], T], text: str) -> T:
    """Return a value, refused as argparse wants it."""
    try:
        return parser(text)
    except InvalidInput as refusal:
        raise argparse.ArgumentTypeError(refusal.detail) from None


def time_us(text: str) -> float:
    """Return a time in µs, as 250ns."""
    return _read(parse_time_us, text)


def clock(text: str) -> float:
    """Return a clock in MHz, as 33MHz."""
    return _read(parse_clock_mhz, text)


def names(text: str) -> list[str]:
    """Return names that are separated by commas."""
    return [name.strip() for name in text.split(",")]


def prices(text: str) -> dict[str, float]:
    """Return numbers by name, as reg=1,mem=1,dev=5."""
    pairs = [pair.partition("=") for pair in text.split(",")]
    if not all(name.strip() and equals for name, equals, _ in pairs):
        raise argparse.ArgumentTypeError("expected cycles by class, as reg=1,mem=1,dev=5")
    return {name.strip(): number(value.strip()) for name, _, value in pairs}


def counts(text: str) -> list[int]:
    """Return whole numbers, as 4,16,64, or as 4..128, each twice the one before."""
    first, dots, last = text.partition("..")
    numbers = [first, last] if dots else text.split(",")
    if not all(re.fullmatch(r"[0-9]{1,9}", one.strip(), re.ASCII) for one in numbers):
        raise argparse.ArgumentTypeError("expected whole numbers, as 4,16,64 or 4..128")
    if not dots:
        return [int(one) for one in numbers]
    found, end = [max(1, int(first))], int(last)
    while 2 * found[-1] <= end:
        found.append(2 * found[-1])
    return found


def strategies(text: str) -> list[str]:
    """Return the names of strategies, separated by commas."""
    names = [name.strip() for name in text.split(",")]
    if not set(names) <= set(Strategy):
        raise argparse.ArgumentTypeError(f"expected names out of {', '.join(Strategy)}")
    return names
