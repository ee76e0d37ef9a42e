"""What is measured but for stages of the probe: signatures, own programs, tools; and a listener."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from app.console.far_side import far_side, place_of, token_of
from app.console.measurable import check_results
from app.console.probe_runs import PROBED, facts_of_machine, probe_options, shown
from app.console.running import erased_line
from app.console.stage_samples import (
    CLOCK,
    LISTENER_BYTES,
    MPI,
    STAGE_SIZES,
    check_samples,
    max_bytes_of,
)
from app.errors import INTERRUPTED
from app.text.units import printable
from app.ui.grammar import Arguments
from app.ui.terminal import Output
from domain.errors import InconsistentInput, InvalidInput, NotMeasurable
from measuring.feasibility import (
    MAX_WINDOW,
    Needs,
    can_be_cold,
    check_count,
    check_place,
    check_processors,
    check_several,
    check_sizes,
)
from measuring.sweep import check_plan

if TYPE_CHECKING:
    from measuring.mpi import Mpi
    from measuring.running import Probe

_SIGNATURE_SIZES = (64,)
_SIGNATURE_TOLERANCE = 0.05  # at least: a burst is no better known
_SIGNATURE, _UCX = "signature", "ucx"
_OF_MPI = ("mpicc", "launcher", "allow_run_as_root")
_MAX_FILES = 16  # are fitted together
_STAGE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}", re.ASCII)


def measurable(arguments: Arguments) -> list[tuple[str, str, str]]:
    """Return what can be measured here, and why the rest cannot: what, its name, and what it is."""
    from measuring.probe import program
    from measuring.tools import TOOLS, elsewhere

    try:
        known = _known(program(), arguments)
    except NotMeasurable as refusal:
        known = {("stage", "memcpy and others"): f"not here: {refusal.detail}"}
    rows = [(kind, name, about) for (kind, name), about in known.items()]
    rows += [("tool", name, tool.missing or tool.about) for name, tool in TOOLS.items()]
    rows += [("tool", name, about) for name, about in elsewhere().items()]
    return rows


def _known(probe: Path, arguments: Arguments) -> dict[tuple[str, str], str]:
    """What the probe has, by kind and name, and what it is where it is compiled for a library."""
    from measuring.feasibility import known_of
    from measuring.ucx import Ucx

    mpi, found = _mpi_of(arguments), known_of(probe)
    libraries = {
        MPI: mpi.missing or f"messages between two ranks, started by {mpi.starts_with}",
        _UCX: Ucx().missing or "active messages of UCX",
    }
    return {**found, **{(_SIGNATURE, name): about for name, about in libraries.items()}}


def _mpi_of(arguments: Arguments) -> Mpi:
    from measuring.mpi import Mpi

    return Mpi(arguments.mpicc or "mpicc", arguments.launcher, arguments.allow_run_as_root)


def kind_of(arguments: Arguments, probe: Path) -> str:
    """Return what to measure of this name: the stage where there is one. Raises InvalidInput."""
    known = _known(probe, arguments)
    kinds = [arguments.what] if arguments.what else ["stage", "signature"]
    name = arguments.name.partition(":")[0]
    found = next((kind for kind in kinds if (kind, name) in known), None)
    if found is None:
        names = dict.fromkeys(name for kind, name in known if kind in kinds)
        raise InvalidInput(f"expected one of {', '.join(names)}", field="name")
    given = (arguments.mpicc, arguments.launcher, arguments.allow_run_as_root or None)
    if name != MPI and any(value is not None for value in given):
        field = next(word for word, one in zip(_OF_MPI, given, strict=True) if one is not None)
        raise InconsistentInput("only signatures over MPI are started by one", field=field)
    if arguments.cold and (found == _SIGNATURE or not can_be_cold(name)):
        raise InconsistentInput("only copies and checksums can be cold", field="cold")
    if (about := known[found, name]).startswith("not here: ") and found != _SIGNATURE:
        raise NotMeasurable(f"{name}: {about}")
    return found


def listen(arguments: Arguments, output: Output) -> int:
    """Be the far side for one peer at a time, until Ctrl-C."""
    from measuring.probe import program
    from measuring.running import Probe

    address, port = place_of(arguments.listen, field="listen")
    token = token_of(arguments) or secrets.token_hex(16)
    words = ["listen", address, *probe_options(arguments, LISTENER_BYTES)]
    words += ["--port", str(port)] if port else []
    with Probe(program(), words, token=token) as one:
        output.note(f"listening on {address} port {one.facts['port']}; Ctrl-C ends it")
        output.note(f"the other side needs --token {token}")
        with suppress(KeyboardInterrupt):
            for line in one.lines():
                output.note(printable(line))
    return INTERRUPTED


def measure_own_program(arguments: Arguments, output: Output) -> tuple[str, str, bool]:
    """Measure a program of the user's own, NAME=COMMAND, as a stage. Return the name of the file,
    its text, and whether all was measured.
    """
    from measuring.running import Command
    from measuring.sweep import Sweep, SweepPlan

    name, equals, line = arguments.stage.partition("=")
    if arguments.name is not None or arguments.what == "signature" or arguments.cold:
        raise InconsistentInput("a command is a stage by itself", field="stage")
    if arguments.cpus is not None:
        raise InconsistentInput("a command is run as it is", field="cpus")
    if not equals or not _STAGE_NAME.fullmatch(name):
        raise InvalidInput("expected NAME=COMMAND, as h2d=./copy {bytes}", field="stage")
    command = Command(name, line)
    target = arguments.output or f"{name}-stage.csv"
    check_results(arguments, target, example="h2d.csv")
    sizes = tuple(sorted(set(arguments.bytes or STAGE_SIZES)))
    check_several(sizes)
    found = Sweep(SweepPlan(sizes, arguments.tolerance, arguments.time_limit, arguments.seed))
    facts = {"program": printable(line), **facts_of_machine(arguments)}
    is_complete = True
    try:
        with shown(output, "sizes", target, lambda: found.to_csv(name, facts)) as on_block:
            found.run(command.ask, on_block)
    except KeyboardInterrupt:
        is_complete = False
    check_samples(found, is_complete=is_complete)
    return target, found.to_csv(name, facts), is_complete


def run_tool(arguments: Arguments, output: Output) -> tuple[Path, ...]:
    """Run an existing tool, and return the files that have what it prints, in a folder."""
    from measuring.tools import SIZES, TOOLS, ToolRun

    tool = TOOLS.get(arguments.name)
    if tool is None:
        raise InvalidInput(f"expected one of {', '.join(TOOLS)}", field="name")
    if arguments.cold or arguments.cpus is not None:
        raise InconsistentInput(
            "a tool is run as it is", field="cold" if arguments.cold else "cpus"
        )
    default = (size for size in SIZES if tool.min_bytes <= size <= tool.max_bytes)
    sizes = tuple(sorted(set(arguments.bytes or default)))
    if len(sizes) > _MAX_FILES:
        raise InvalidInput(f"expected {_MAX_FILES} sizes at most for a tool", field="bytes")
    check_several(sizes)
    check_plan(arguments.tolerance, arguments.time_limit)
    folder = Path(arguments.output or f"{arguments.name}-tool")
    check_results(arguments, None, example="")
    run = ToolRun(tool, sizes, folder, limit_s=arguments.time_limit)
    try:
        with erased_line(output.err) as show:
            run.run(lambda left, done: show(f"{done} runs done, {left} to come"))
    except NotMeasurable:
        if run.files:
            output.note(f"what was measured until then is in {printable(str(folder))}")
        raise
    return tuple(run.files)


def measure_signatures(
    probe: Path, arguments: Arguments, target: str, output: Output
) -> tuple[bool, str]:
    """Return whether all was measured, and the signatures, as `measure_stage` does."""
    from measuring.signature import Signature, SignaturePlan, signatures_csv

    sizes = tuple(sorted(set(arguments.bytes or _SIGNATURE_SIZES)))
    if arguments.save_as is not None and len(sizes) < 2:
        raise InconsistentInput(
            "a profile is made of signatures of two sizes or more: give --bytes 64,1KiB",
            field="save_as",
        )
    check_sizes(sizes, max_bytes=max_bytes_of(arguments))
    check_place(arguments.name, field="name")
    check_count(arguments.window, MAX_WINDOW, field="window")
    check_processors(arguments.cpus)
    check_plan(max(_SIGNATURE_TOLERANCE, arguments.tolerance), arguments.time_limit)
    Needs(2 * sizes[-1]).check(arguments.path)
    facts = {
        "transport": arguments.name,
        **facts_of_machine(arguments),
        "window": str(arguments.window),
    }
    far_options, token = far_side(arguments)
    if far_options:
        facts |= {"far_side": arguments.host, "clock": CLOCK, "far_preempted": "not known"}
    limit_s = arguments.time_limit / len(sizes)
    measured, is_complete = list[Signature](), True

    def text() -> str:
        return signatures_csv(measured, facts)

    with _started(probe, arguments, token) as start:
        for size in sizes:
            tolerance = max(_SIGNATURE_TOLERANCE, arguments.tolerance)
            plan = SignaturePlan(size, tolerance, limit_s, arguments.seed)
            options = [*probe_options(arguments, size), "--window", str(arguments.window)]
            with start([_SIGNATURE, arguments.name, *options, *far_options]) as one:
                facts |= {name: one.facts[name] for name in PROBED if name in one.facts}
                measured.append(Signature(plan))
                try:
                    with shown(output, "points", target, text) as on_block:
                        measured[-1].run(one.ask, on_block)
                except KeyboardInterrupt:
                    is_complete = False
                    break
    if not any(times for layer in measured for times in layer.cost_us.values()):
        if not is_complete:
            raise KeyboardInterrupt  # before there was anything to keep
        raise NotMeasurable(
            "every burst until the end of time was preempted: the machine is busy, or both ends "
            "share one processor (--cpus 0,1)"
        )
    return is_complete, text()


@contextmanager
def _started(
    probe: Path, arguments: Arguments, token: str | None
) -> Iterator[Callable[[Sequence[str]], Probe]]:
    """How the probe is started: as it is, or compiled for an MPI or UCX."""
    from measuring.running import Probe, probe_of
    from measuring.ucx import Ucx

    if arguments.name not in (MPI, _UCX):
        yield partial(Probe, probe, token=token)
        return
    with probe_of(_mpi_of(arguments) if arguments.name == MPI else Ucx()) as start:
        yield start
