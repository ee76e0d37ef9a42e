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

from collections.abc import Mapping
from dataclasses import dataclass, replace

from domain.errors import InvalidInput
from domain.fragment_setting import SettingStep
from domain.regret import SizeRule
from exports.targets.target import (
    OF_COLLECTIVES,
    ExportInput,
    LibraryDefault,
    TargetOption,
    Unpriced,
)

# Multiples of 64 hold whole elements of every plain datatype; sizes are `int` in the source.
SIZES = SizeRule(min_bytes=4096, max_bytes=2**30, multiple_of=64)
NUMBERS = {"bcast": 7, "reduce": 11}
ALGORITHMS = {
    "bcast": {"pipeline": 3, "binary_tree": 5, "binomial": 6},
    "reduce": {"pipeline": 3, "binary": 4, "binomial": 5, "in-order_binary": 6},
}
PROGRAMS_SHOWING = ("ping-pong", "bcast", "reduce", "allreduce")  # blocking calls
LIBRARY = "Open MPI"
_SAFE = ("reduce", "in-order_binary")
PROGRAMS = TargetOption(
    "programs",
    "any",
    "what the programs are known to do: uniform, all ranks of a broadcast pass the same count and "
    "datatype, and all reductions commute; or any, and then only what is right for all of them",
    choices=("any", "uniform"),
)
COLLECTIVE = TargetOption(
    "collective", "bcast", "the collective that is cut", choices=tuple(NUMBERS)
)
_NONE = "none"
ALGORITHM = TargetOption(
    "algorithm",
    _NONE,
    "how it is done, which a rule forces and which has no price here: pipeline and binomial for "
    "both, binary_tree for bcast, binary and in-order_binary for reduce; none is refused",
    choices=(_NONE, "in-order_binary", "pipeline", "binomial", "binary", "binary_tree"),
)
OWN_DECISION = LibraryDefault(
    "an algorithm and a size by message and communicator size",
    "ompi/mca/coll/tuned/coll_tuned_decision_fixed.c of 4.1.4",
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
    if algorithm == _NONE:
        raise InvalidInput(
            "expected algorithm to be named: a rule forces it, and what an algorithm costs is not "
            "priced here; take the one that your programs already use, such as pipeline",
            field="options",
        )
    if algorithm not in ALGORITHMS[collective]:
        known = ", ".join(ALGORITHMS[collective])
        raise InvalidInput(f"expected an algorithm of {collective}: {known}", field="options")
    if (collective, algorithm) != _SAFE:
        check_uniform(given)
    number = ALGORITHMS[collective][algorithm]
    return Cut(collective, NUMBERS[collective], algorithm, number)


def forced(options: Mapping[str, str]) -> tuple[Unpriced, ...]:
    """What the figures of a rule leave out: the algorithm that it forces, and the collective."""
    name = f"algorithm {options['algorithm']} of {options['collective']}, which is forced"
    return Unpriced(name, may_lose=True), OF_COLLECTIVES


def check_uniform(given: ExportInput) -> None:
    """Raise InvalidInput unless the programs are said to be uniform."""
    if given.options["programs"] != "uniform":
        raise InvalidInput(
            "expected programs=uniform: cut like this, a broadcast with other counts or datatypes "
            "on other ranks, or a reduction that does not commute, gives wrong data",
            field="options",
        )


def cut_steps(steps: tuple[SettingStep, ...]) -> tuple[SettingStep, ...]:
    """The steps from the first message on that is cut; () where none is.

    What is shorter would be sent whole by the forced algorithm: it is left to the library.
    """
    ends = [*(step.from_bytes for step in steps[1:]), None]
    for at, (step, end) in enumerate(zip(steps, ends, strict=True)):
        if step.size_bytes is not None:
            first = max(step.from_bytes, step.size_bytes + 1)
            if end is None or first < end:
                return replace(step, from_bytes=first), *steps[at + 1 :]
    return ()
