"""A stage measured by the probe, block by block, into the text of its file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from app.console.far_side import far_side
from app.console.probe_runs import PROBED, facts_of_machine, probe_options, shown
from app.ui.grammar import Arguments
from app.ui.terminal import Output
from domain.errors import NotMeasurable
from domain.units import format_bytes
from measuring.feasibility import (
    MAX_BYTES,
    MAX_MPI_BYTES,
    PAGE,
    Needs,
    check_place,
    check_processors,
    check_several,
    check_sizes,
    check_whole_pages,
    is_direct,
)

if TYPE_CHECKING:
    from measuring.sweep import Sweep

STAGE_SIZES = tuple(64 << power for power in range(17))  # to 4 MiB
LISTENER_BYTES = 64 << 20  # of a message, at most
CLOCK = "this machine's alone: no time is compared with the far side's"
MPI = "mpi"
_ENDS = "when the far side's acknowledgement of 8 bytes is back: its way is in every time"


def as_file_name(stage: str) -> str:
    """Return a stage's name as a part of a file's: what follows a colon may have slashes."""
    return stage.replace(":", "-").replace("/", "-")


def max_bytes_of(arguments: Arguments) -> int:
    """Return the largest message that there is: a listener's, or an MPI's."""
    if arguments.host is not None:
        return LISTENER_BYTES
    return MAX_MPI_BYTES if arguments.name == MPI else MAX_BYTES


def check_stage(arguments: Arguments, sizes: Sequence[int]) -> None:
    """Check, without a probe, that the stage `arguments.name` can be measured at these sizes.

    Raises InvalidInput and NotMeasurable.
    """
    stage = arguments.name
    check_place(stage, field="name")
    check_sizes(sizes, max_bytes=max_bytes_of(arguments))
    if is_direct(stage):
        check_whole_pages(sizes, field="bytes")
    check_several(sizes)
    check_processors(arguments.cpus)
    Needs.of_stage(stage, max(sizes), is_cold=arguments.cold).check(arguments.path)


def measure_stage(
    probe: Path, arguments: Arguments, target: str, output: Output
) -> tuple[bool, str]:
    """Return whether all was measured, and the samples as the file's text.

    Until then the file has those of a second ago. Raises KeyboardInterrupt where there are none.
    """
    from measuring.running import Probe
    from measuring.sweep import Sweep, SweepPlan

    default = (size for size in STAGE_SIZES if not is_direct(arguments.name) or size >= PAGE)
    sizes = tuple(sorted(set(arguments.bytes or default)))
    plan = SweepPlan(sizes, arguments.tolerance, arguments.time_limit, arguments.seed)
    far_options, token = far_side(arguments)
    check_stage(arguments, sizes)
    options = [*probe_options(arguments, sizes[-1]), "--path", arguments.path, *far_options]
    found = Sweep(plan)
    # `verify` runs the stages of that name here: what needs another machine has another one.
    facts = {"far_stage" if far_options else "stage": arguments.name, **facts_of_machine(arguments)}
    if far_options:
        facts |= {"far_side": arguments.host, "clock": CLOCK, "time_ends": _ENDS}
    if arguments.cold:
        facts["memory"] = "cold: beyond the caches"
    is_complete, column = True, arguments.name.partition(":")[0].replace("-", "_")
    words = ["stage", arguments.name, *options, *["--cold"] * arguments.cold]
    with Probe(probe, words, token=token) as one:
        facts |= {name: one.facts[name] for name in PROBED if name in one.facts}
        try:
            with shown(output, "sizes", target, lambda: found.to_csv(column, facts)) as on_block:
                found.run(one.ask, on_block)
        except KeyboardInterrupt:
            is_complete = False
    check_samples(found, is_complete=is_complete)
    for size in found.left_out:
        output.note(
            f"{format_bytes(size)} is left out: {found.preempted[size]} samples were preempted"
        )
    return is_complete, found.to_csv(column, facts)


def check_samples(found: Sweep, *, is_complete: bool) -> None:
    """Raise NotMeasurable where no size has samples enough, KeyboardInterrupt where Ctrl-C came
    before there were.
    """
    if len(found.left_out) < len(found.times_us):
        return
    if not is_complete:
        raise KeyboardInterrupt  # before there was anything to keep
    preempted = sum(found.preempted.values())
    if not preempted:
        raise NotMeasurable(
            f"{found.plan.time_limit_s:g} s were over before any size had three samples: take a "
            "longer --time-limit, or smaller --bytes"
        )
    raise NotMeasurable(
        f"no size has three samples that were not preempted ({preempted} were): the machine is "
        "busy, or both ends share one processor (--cpus 0,1)"
    )
