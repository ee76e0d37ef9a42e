"""Open MPI's tuned collectives that can be cut: their numbers, their algorithms, what is safe.

Source    numbers of collectives: ompi/mca/coll/base/coll_base_functions.h; algorithms:
          coll_tuned_bcast_decision.c and coll_tuned_reduce_decision.c in ompi/mca/coll/tuned;
          equal in 4.1.4, 5.0.10 and the branch that becomes 6.0.
Traps     every rank counts its fragments in elements of its own datatype. A broadcast whose ranks
          pass other counts or datatypes, which MPI allows, then ends in wrong data or an error
          (open-mpi/ompi#199, #1763, #10523, open). Of the reductions in fragments only the
          in-order binary tree keeps the order of operands, which an operation that does not
          commute needs. Everything else is written only for programs said to be uniform.
"""

from __future__ import annotations

from dataclasses import dataclass

from domain.errors import InvalidInput
from domain.regret import SizeRule
from exports.targets.target import ExportInput, TargetOption

# Multiples of 64 hold whole elements of every plain datatype; sizes are `int` in the source.
SIZES = SizeRule(min_bytes=4096, max_bytes=2**30, multiple_of=64)
NUMBERS = {"bcast": 7, "reduce": 11}
ALGORITHMS = {
    "bcast": {"pipeline": 3, "binary_tree": 5, "binomial": 6},
    "reduce": {"pipeline": 3, "binary": 4, "binomial": 5, "in-order_binary": 6},
}
_SAFE = ("reduce", "in-order_binary")
PROGRAMS = TargetOption(
    "programs",
    "any",
    "what the programs are known to do: uniform, all ranks of a broadcast pass the same count and "
    "datatype, and all reductions commute; or any, and then only what is right for all of them",
    choices=("any", "uniform"),
)
COLLECTIVE = TargetOption(
    "collective", "reduce", "the collective that is cut", choices=tuple(NUMBERS)
)
ALGORITHM = TargetOption(
    "algorithm",
    "in-order_binary",
    "how it is done: pipeline and binomial for both, binary_tree for bcast, binary and "
    "in-order_binary for reduce",
    choices=("in-order_binary", "pipeline", "binomial", "binary", "binary_tree"),
)


@dataclass(frozen=True, slots=True)
class Cut:
    """A collective and how it is done, by name and by number."""

    collective: str
    number: int
    algorithm: str
    algorithm_number: int


def cut_of(given: ExportInput) -> Cut:
    """What the options ask for. Raises InvalidInput where it is not known to be right."""
    collective, algorithm = given.options["collective"], given.options["algorithm"]
    if algorithm not in ALGORITHMS[collective]:
        known = ", ".join(ALGORITHMS[collective])
        raise InvalidInput(f"expected an algorithm of {collective}: {known}", field="options")
    if (collective, algorithm) != _SAFE:
        check_uniform(given)
    number = ALGORITHMS[collective][algorithm]
    return Cut(collective, NUMBERS[collective], algorithm, number)


def check_uniform(given: ExportInput) -> None:
    """Raise InvalidInput unless the programs are said to be uniform."""
    if given.options["programs"] != "uniform":
        raise InvalidInput(
            "expected programs=uniform: cut like this, a broadcast with other counts or datatypes "
            "on other ranks, or a reduction that does not commute, gives wrong data",
            field="options",
        )
