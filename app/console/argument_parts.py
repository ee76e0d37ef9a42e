"""Parts of the command line's grammar: the parser, what several commands share, and the types."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any, NoReturn, TypeVar

from app.text.units import parse_counts, parse_prices, parse_sizes
from domain.errors import InvalidInput
from domain.solution import Strategy
from domain.units import (
    parse_bytes,
    parse_clock_mhz,
    parse_number,
    parse_share,
    parse_time_us,
)

T = TypeVar("T")


class Parser(argparse.ArgumentParser):
    """Reports misuse as any other bad input, in one line, instead of usage and exit."""

    def error(self, message: str) -> NoReturn:
        """Raise InvalidInput."""
        raise InvalidInput(f"{message} (see {self.prog} --help)")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse what is none of the choices, with the one that is meant (argparse shows reprs)."""
        if action.choices is not None and value not in action.choices:
            raise argparse.ArgumentError(action, expected_one_of(map(str, action.choices), value))


def expected_one_of(choices: Iterable[str], given: str) -> str:
    """Return what is wrong with a name that is none of these, the nearest one named."""
    known = list(choices)
    near = get_close_matches(given, known, n=1)
    meant = f"; did you mean {near[0]}?" if near else ""
    return f"expected one of {', '.join(known)}, got {given!r}{meant}"


# One of each command, as it stands in a checkout after `make demo`.
_EXAMPLES = {
    "optimize": "sluice optimize examples/kv-staging.json --current 512KiB",
    "fit": "sluice fit examples/local-path-direct.csv --save-as local-path",
    "compose": "sluice compose --stage copy=copy.csv --stage wire=wire.csv --save-as path",
    "measure": "sluice measure memcpy --bytes 4KiB..1MiB --save-as copy",
    "verify": "sluice verify path --stage memcpy --stage crc32 --bytes 1MiB --current 64KiB",
    "tune": "sluice tune --stage memcpy --stage crc32 --current 64KiB --target ucx",
    "compare": "sluice compare examples/kv-staging.json --bytes 1MiB 16MiB",
    "table": "sluice table examples/kv-staging.json --max-message 16MiB --output staging.slt",
    "export": "sluice export examples/kv-staging.json --target ucx --output sluice-ucx.conf",
    "apply": "sluice apply mpich path --check --option collective=bcast",
    "audit": "sluice audit examples/kv-staging.json --setting 512KiB --max-regret 12%",
    "layer": "sluice layer cmam-finite --bytes 16 1KiB --tune",
    "layer count": "sluice layer count --mpicc mpicc.mpich --output layer.json",
    "layer check": "sluice layer check layer.json --max-more 1%",
    "mover": "sluice mover exchange --bytes 800KB --calculation 5000 --fragment 32KiB",
    "reproduce": "sluice reproduce wang98 --output papers-report",
    "hide": "sluice hide examples/kv-staging.json --calculation 600",
    "deliver": "sluice deliver trapeze --bytes 8KiB --rules eager,eager=512,eager=512,eager",
    "thresholds": "sluice thresholds trapeze --bytes 1KiB..256KiB --rule eager",
    "list": "sluice profiles list --json",
    "show": "sluice profiles show myrinet-gam",
    "save": "sluice profiles save staging examples/kv-staging.json",
    "revisions": "sluice profiles revisions myrinet-gam",
    "use": "sluice profiles use myrinet-gam 1",
    "tables": "sluice profiles tables myrinet-gam",
    "activate": "sluice profiles activate myrinet-gam 0123abcd",
    "delete": "sluice profiles delete staging --yes",
    "serve": "sluice serve --port 8080",
    "work": "sluice work --workers 2",
}


Commands = argparse._SubParsersAction  # the name that argparse gives to what add_subparsers returns


def add(commands: Commands[Parser], name: str, summary: str) -> Parser:
    parser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=f"example: {_EXAMPLES[name]}",
        formatter_class=argparse.RawDescriptionHelpFormatter,  # an example is never broken
        allow_abbrev=False,
    )
    parser.add_argument("--json", action="store_true", help="print the HTTP service's document")
    return parser


def add_constraints(parser: Parser) -> None:
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


def add_time_limit(parser: Parser, summary: str) -> None:
    parser.add_argument(
        "--time-limit", dest="time_limit_s", type=number, metavar="SECONDS", help=summary
    )


# What tune knows by name: stages, as the probe has them. TCP over a link into a synced file.
PATHS = {"tcp-to-file": ("tcp", "write-sync")}


def add_transfers(parser: Parser, time_limit_s: float) -> None:
    """Add what says which transfers to run, and how."""
    parser.add_argument(
        "--stage",
        dest="stages",
        action="append",
        metavar="NAME",
        help="a stage, as sluice measure --list has it; repeated, in the order of the pipeline",
    )
    parser.add_argument("--bytes", type=size, metavar="SIZE", help="of the message (1 MiB)")
    parser.add_argument(
        "--current", type=size_or_whole, metavar="SIZE", help="the size in use today, or whole"
    )
    parser.add_argument(
        "--depth", type=int, default=4, metavar="COUNT", help="fragments between two stages (4)"
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
    parser.add_argument("--seed", type=int, default=0, metavar="NUMBER", help="of the random order")


def size(text: str) -> int:
    """Return a size in bytes, as 4096 or 64 KiB."""
    return _read(parse_bytes, text)


def size_or_whole(text: str) -> dict[str, int] | str:
    """Return the setting in use, as a request has it."""
    return text if text == "whole" else {"repeat": size(text)}


def sizes(text: str) -> tuple[int, ...]:
    """Return sizes in bytes, as 4KiB,1MiB, or 64..4MiB: both and the powers of two between."""
    return _read(parse_sizes, text)


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
    return _read(parse_prices, text)


def counts(text: str) -> list[int]:
    """Return whole numbers, as 4,16,64, or as 4..128, each twice the one before."""
    return _read(parse_counts, text)


def rules(text: str) -> list[dict[str, Any]]:
    """Return a rule a stage as requests have them, as eager,eager=512..64KiB,static=1280."""
    found: list[dict[str, Any]] = []
    for part in text.split(","):
        name, equals, value = (one.strip() for one in part.partition("="))
        if name == "eager" and equals:
            threshold, dots, most = value.partition("..")
            sized = {"threshold_bytes": size(threshold)}
            found.append(
                {"rule": name, **sized, **({"max_pulse_bytes": size(most)} if dots else {})}
            )
        elif name == "static" and equals:
            found.append({"rule": name, "pulse_bytes": size(value)})
        elif name == "planned" and equals:
            found.append({"rule": name, "planned_bytes": [size(one) for one in value.split("+")]})
        elif name in ("eager", "store_and_forward", "same", "flow") and not equals:
            found.append({"rule": name})
        else:
            raise argparse.ArgumentTypeError(
                "expected eager, eager=512, eager=512..64KiB, static=1280, planned=512+512, "
                f"store_and_forward, same or flow for each stage, got {part.strip()!r}"
            )
    return found


def strategies(text: str) -> list[str]:
    """Return the names of strategies, separated by commas."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in set(Strategy):
            raise argparse.ArgumentTypeError(expected_one_of(Strategy, name))
    return names


def add_mpi(parser: Parser) -> None:
    """Add the compiler wrapper and the launcher of an installed MPI."""
    parser.add_argument("--mpicc", metavar="NAME", help="compiler wrapper, as mpicc.mpich (mpicc)")
    parser.add_argument("--launcher", metavar="NAME", help="default: named like the wrapper")
    parser.add_argument(
        "--allow-run-as-root", action="store_true", help="have Open MPI start programs as root"
    )


def add_message_range(parser: Parser) -> None:
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


def add_apply(commands: Commands[Parser]) -> None:
    """Add the command that checks a setting over the installed library."""
    parser = add(commands, "apply", "run a library's programs with a setting and without it, here")
    parser.add_argument("target", metavar="TARGET", help="the library, as export has it")
    parser.add_argument("source", metavar="SOURCE", nargs="?", help="file, - or profile")
    parser.add_argument(
        "--check", action="store_true", help="measure before and after: nothing is kept without"
    )
    parser.add_argument(
        "--config", metavar="FILE", help="a configuration that is there, in place of a SOURCE"
    )
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of the target; may be repeated",
    )
    add_message_range(parser)
    parser.add_argument(
        "--bytes",
        type=sizes,
        metavar="SIZES",
        help="what is sent, as 1KiB..4MiB or 4KiB,1MiB (default 1 KiB to 4 MiB, each 4 times)",
    )
    parser.add_argument(
        "--programs",
        type=names,
        metavar="NAMES",
        help="separated by commas: ping-pong, bcast, reduce, allreduce, ibcast, ireduce, "
        "iallreduce; of UCX tag_lat, tag_bw",
    )
    add_mpi(parser)
    parser.add_argument(
        "--pairs", type=int, default=30, metavar="COUNT", help="starts with and without (30)"
    )
    parser.add_argument(
        "--time-limit",
        type=number,
        default=300.0,
        metavar="SECONDS",
        help="of each of two trials (300)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="NUMBER", help="of the random order")
    parser.add_argument(
        "--output", metavar="FILE", help="for what is kept (sluice-TARGET, as its suffix is)"
    )
    parser.set_defaults(table=None)
