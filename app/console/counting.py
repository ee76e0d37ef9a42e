"""What a command counts of an installed MPI: its options, and the plan that they make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from app.console.argument_parts import add_mpi
from app.text.units import parse_whole
from app.ui.grammar import Arguments, Command
from domain.units import parse_number

if TYPE_CHECKING:
    from measuring.count import CountPlan

CALLS = {"source": "send", "destination": "receive"}  # what is counted at each end


def add_counting(command: Command) -> None:
    """Add the MPI, and how often and how long it is counted."""
    add_mpi(command)
    command.option("--repetitions", read=parse_whole, metavar="COUNT", help="of each call (8)")
    command.option(
        "--time-limit",
        name="time_limit_s",
        read=parse_number,
        metavar="SECONDS",
        help="default 120",
    )


def plan_of(arguments: Arguments, known: Mapping[str, Any]) -> CountPlan:
    """Return what to count: what the arguments say, else what is known."""
    from measuring.count import CountPlan

    names = ("mpicc", "launcher", "bytes", "repetitions", "time_limit_s")
    given = {**known, **_given(arguments, names)}
    if "bytes" in given:
        given["message_bytes"] = tuple(given.pop("bytes"))
    if "mpicc" in _given(arguments, names) and "launcher" not in _given(arguments, names):
        given.pop("launcher", None)
    return CountPlan(allow_run_as_root=arguments.allow_run_as_root, **given)


def _given(arguments: Arguments, names: Iterable[str]) -> dict[str, Any]:
    values = {name: getattr(arguments, name, None) for name in names}
    return {name: value for name, value in values.items() if value is not None}
