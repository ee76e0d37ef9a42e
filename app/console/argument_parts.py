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


# One of each command, without `sluice`; files of examples are there in a checkout.
_EXAMPLES = {
    "optimize": "optimize examples/kv-staging.json --current 512KiB",
    "fit": "fit examples/local-path-direct.csv --save-as local-path",
    "compose": "compose --stage copy=copy.csv --stage wire=wire.csv --save-as path",
    "measure": "measure memcpy --bytes 4KiB..1MiB --save-as copy",
    "verify": "verify path --stage memcpy --stage crc32 --bytes 1MiB --current 64KiB",
    "tune": "tune --stage memcpy --stage crc32 --current 64KiB --target ucx",
    "compare": "compare examples/kv-staging.json --bytes 1MiB 16MiB",
    "table": "table examples/kv-staging.json --max-message 16MiB --output staging.slt",
    "export": "export examples/kv-staging.json --target ucx --output sluice-ucx.conf",
    "apply": "apply mpich path --check --option collective=bcast",
    "audit": "audit examples/kv-staging.json --setting 512KiB --max-regret 12%",
    "layer": "layer cmam-finite --bytes 16 1KiB --tune",
    "layer count": "layer count --mpicc mpicc.mpich --output layer.json",
    "layer check": "layer check layer.json --max-more 1%",
    "mover": "mover exchange --bytes 800KB --calculation 5000 --fragment 32KiB",
    "reproduce": "reproduce wang98 --output papers-report",
    "hide": "hide examples/kv-staging.json --calculation 600",
    "deliver": "deliver trapeze --bytes 8KiB --rules eager,eager=512,eager=512,eager",
    "thresholds": "thresholds trapeze --bytes 1KiB..256KiB --rule eager",
    "profiles list": "profiles list --json",
    "profiles show": "profiles show myrinet-gam",
    "profiles save": "profiles save staging examples/kv-staging.json",
    "profiles revisions": "profiles revisions myrinet-gam",
    "profiles use": "profiles use myrinet-gam 1",
    "profiles tables": "profiles tables myrinet-gam",
    "profiles activate": "profiles activate myrinet-gam 0123abcd",
    "profiles delete": "profiles delete staging --yes",
    "keys list": "keys list",
    "keys create": "keys create build-server --scope write --days 90",
    "keys rotate": "keys rotate 7f3a5c --keep 600",
    "keys revoke": "keys revoke 7f3a5c",
    "serve": "serve --port 8080",
    "work": "work --workers 2",
    "fleet": "fleet --max-message 16MiB --report fleet.json",
    "engine scheduler": "engine scheduler",
    "engine worker": "engine worker --workers 2",
    "collect": "collect --keep jobs=30d,answers=90d --dry-run",
    "backup": "backup monday.sluice",
    "restore": "restore monday.sluice",
}


Commands = argparse._SubParsersAction  # the name that argparse gives to what add_subparsers returns


def add(commands: Commands[Parser], name: str, summary: str, *, of: str = "") -> Parser:
    parser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        formatter_class=argparse.RawDescriptionHelpFormatter,  # an example is never broken
        allow_abbrev=False,
    )
    parser.epilog = f"example: sluice {_EXAMPLES[parser.prog.removeprefix('sluice ')]}"
    parser.add_argument("--json", action="store_true", help="print the HTTP service's document")
    return parser


def add_keys(commands: Commands[Parser]) -> None:
    keys = commands.add_parser(
        "keys", help="keys by which programs and browsers say who they are", allow_abbrev=False
    )
    verbs = keys.add_subparsers(dest="verb", required=True, metavar="VERB")
    listing = add(verbs, "list", "list an owner's keys", of="keys ")
    create = add(verbs, "create", "make a key, and print its secret this once", of="keys ")
    create.add_argument("name", metavar="NAME", help="what it is for")
    create.add_argument(
        "--scope", choices=["read", "write", "admin"], required=True, help="what it may do"
    )
    create.add_argument("--days", type=number, metavar="DAYS", help="until it expires")
    create.add_argument(
        "--requests-per-s", type=int, metavar="COUNT", help="fewer than its owner may ask"
    )
    rotate = add(verbs, "rotate", "make a key in the place of another one", of="keys ")
    rotate.add_argument("--keep", type=number, metavar="SECONDS", help="of the other one (3600)")
    revoke = add(verbs, "revoke", "end a key at once", of="keys ")
    for verb in (rotate, revoke):
        verb.add_argument("id", metavar="ID", help="of the key")
    for verb in (listing, create, rotate, revoke):
        verb.add_argument("--owner", metavar="OWNER", default="local", help="whose (local)")


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


def add_message_range(parser: Parser, *, smallest: str = "1 KiB") -> None:
    parser.add_argument(
        "--min-message",
        dest="min_message_bytes",
        type=size,
        metavar="SIZE",
        help=f"smallest message ({smallest})",
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
        "--ranks", type=int, metavar="COUNT", help="of an MPI (2), where its own settings say"
    )
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


def add_fleet(commands: Commands[Parser]) -> None:
    """Add the command that compiles tables for many profiles."""
    fleet = add(commands, "fleet", "compile tables of stored profiles, all or those that are named")
    fleet.add_argument("profiles", metavar="PROFILE", nargs="*", help="such as name or name@2")
    add_message_range(fleet, smallest="1 B")
    fleet.add_argument(
        "--relative-gap", type=share, metavar="GAP", help="tolerance, as 0.1%% (default)"
    )
    add_constraints(fleet)
    add_time_limit(fleet, "of each table (100)")
    fleet.add_argument("--report", metavar="FILE", help="write what became of each into this file")
    fleet.add_argument("--owner", metavar="OWNER", default="local", help="whose profiles (local)")
    fleet.add_argument("--workers", type=int, metavar="COUNT", help="child processes that solve")


def add_service(commands: Commands[Parser]) -> None:
    serve = add(commands, "serve", "serve the HTTP interface until Ctrl-C")
    serve.add_argument("--host", metavar="HOST", help="default 127.0.0.1, or SLUICE_HOST")
    serve.add_argument("--port", type=int, metavar="PORT", help="default 8080, or SLUICE_PORT")
    work = add(commands, "work", "run durable jobs of the same database, without HTTP")
    engine = commands.add_parser(
        "engine",
        help="the parts of a cluster, which runs work on machines",
        allow_abbrev=False,
    )
    verbs = engine.add_subparsers(dest="verb", required=True, metavar="VERB")
    add(verbs, "scheduler", "route work at SLUICE_DASK_ADDRESS until Ctrl-C", of="engine ")
    worker = add(verbs, "worker", "run what its scheduler has to be done", of="engine ")
    for parser in (serve, work, worker):
        parser.add_argument(
            "--workers", type=int, metavar="COUNT", help="child processes that solve"
        )


def add_upkeep(commands: Commands[Parser]) -> None:
    collect = add(commands, "collect", "delete what is kept no longer, as SLUICE_RETENTION says")
    collect.add_argument("--keep", metavar="RULES", help="in its place, such as jobs=30d/10000")
    collect.add_argument("--dry-run", action="store_true", help="delete nothing; say what would go")
    backup = add(commands, "backup", "write everything that is stored into one file")
    backup.add_argument("file", metavar="FILE", help="which is not there yet")
    restore = add(commands, "restore", "put a backup into an empty database")
    restore.add_argument("file", metavar="FILE", help="a backup, of either database")
    restore.add_argument("--replace", action="store_true", help="first delete all that is there")
