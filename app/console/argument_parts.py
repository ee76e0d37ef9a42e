"""Parts of the command line's grammar: what several commands take, and how a value is read."""

from __future__ import annotations

from app.text.units import parse_whole
from app.ui.grammar import Command
from domain.errors import InvalidInput
from domain.units import parse_number


def add_count_and_owner(command: Command) -> None:
    """Add how many are listed, and whose."""
    command.option(
        "--limit", read=parse_whole, rest=20, metavar="COUNT", help="how many at most (20)"
    )
    add_owner(command)


def add_overlap(command: Command) -> None:
    """Add what the user says of the overlap of a file's stages."""
    command.option(
        "--stages-overlap",
        choices=("yes", "no"),
        help="whether stages work on different fragments at the same time, as threads of their own",
    )
    command.option(
        "--several-at-once",
        choices=("yes", "no"),
        help="whether a stage handles several fragments at once, by connections or threads",
    )


def add_rows(command: Command) -> None:
    """Add which test, run and condition of a file of measurements is meant."""
    command.option(
        "--test", metavar="NAME", help="the test of what a file does not name, as sendrecv_perf"
    )
    command.option(
        "--run",
        read=parse_whole,
        metavar="NUMBER",
        help="of a file of several runs: the one to take",
    )
    command.option(
        "--where",
        read=condition,
        is_repeated=True,
        metavar="NAME=VALUE",
        help="of a file of several conditions: those rows, as connections=1; may be repeated",
    )


def add_owner(command: Command) -> None:
    """Add whose things are meant."""
    command.option("--owner", metavar="OWNER", rest="local", help="whose (local)")


def add_seed(command: Command) -> None:
    command.option("--seed", read=parse_whole, rest=0, metavar="NUMBER", help="of the random order")


def add_time_limit(command: Command, summary: str) -> None:
    command.option(
        "--time-limit", name="time_limit_s", read=parse_number, metavar="SECONDS", help=summary
    )


def cpus(text: str) -> tuple[int, ...]:
    """Return the numbers of one processor or two, as 0,1."""
    parts = text.split(",")
    if len(parts) > 2 or not all(part.isascii() and part.isdigit() for part in parts):
        raise InvalidInput(f"expected one number or two, as 0,1, got {text!r}")
    return tuple(map(int, parts))


def names(text: str) -> list[str]:
    """Return names that are separated by commas."""
    return [name.strip() for name in text.split(",")]


def condition(text: str) -> tuple[str, str]:
    """Return a condition's name and value, as connections=4."""
    name, equals, value = text.partition("=")
    if not (name.strip() and equals and value.strip()):
        raise InvalidInput(f"expected NAME=VALUE, as connections=4, got {text!r}")
    return name.strip(), value.strip()


def add_mpi(command: Command) -> None:
    """Add the compiler wrapper and the launcher of an installed MPI."""
    command.option("--mpicc", metavar="NAME", help="compiler wrapper, as mpicc.mpich (mpicc)")
    command.option("--launcher", metavar="NAME", help="default: named like the wrapper")
    command.flag("--allow-run-as-root", help="have Open MPI start programs as root")
