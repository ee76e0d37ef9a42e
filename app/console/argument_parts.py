"""Parts of the command line's grammar: what several commands take, and how a value is read."""

from __future__ import annotations

from app.text.units import parse_whole
from app.ui.grammar import Command
from domain.errors import InvalidInput


def add_count_and_owner(command: Command) -> None:
    """Add how many are listed, and whose."""
    command.option(
        "--limit", read=parse_whole, rest=20, metavar="COUNT", help="how many at most (20)"
    )
    add_owner(command)


def add_owner(command: Command) -> None:
    """Add whose things are meant."""
    command.option("--owner", metavar="OWNER", rest="local", help="whose (local)")


def add_workers(command: Command) -> None:
    """Add how many child processes solve."""
    command.option(
        "--workers", read=parse_whole, metavar="COUNT", help="child processes that solve"
    )


def add_seed(command: Command) -> None:
    """Add what the random order is made of."""
    command.option("--seed", read=parse_whole, rest=0, metavar="NUMBER", help="of the random order")


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
