"""sluice measure: the stages and the signatures of this machine, and what other tools time on it,
measured, kept, and fitted.

No service measures: who asks a server to burn its processors has found a hole.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from app.console.files import KeptAsItGoes, write_whole
from app.console.fit import fit_named
from app.console.measurable import check_results
from app.console.running import erased_line
from app.text.units import printable
from app.ui.parts import Column, Grid
from app.ui.terminal import Output
from domain.errors import InconsistentInput, InvalidInput, NotMeasurable
from domain.units import format_bytes
from measuring.feasibility import (
    MAX_BYTES,
    MAX_MPI_BYTES,
    MAX_WINDOW,
    PAGE,
    Needs,
    can_be_cold,
    check_count,
    check_place,
    check_processors,
    check_several,
    check_sizes,
    check_whole_pages,
    is_direct,
)
from measuring.sweep import check_plan

if TYPE_CHECKING:
    from measuring.mpi import Mpi
    from measuring.running import Probe
    from measuring.sweep import Sweep

INTERRUPTED = 130
_STAGE_SIZES = tuple(64 << power for power in range(17))  # to 4 MiB
_SIGNATURE_SIZES = (64,)
_SIGNATURE_TOLERANCE = 0.05  # at least: a burst is no better known
_PROCESSOR = "model name"
_SIGNATURE, _MPI, _UCX = "signature", "mpi", "ucx"
_OF_MPI = ("mpicc", "launcher", "allow_run_as_root")
PROBED = ("gpu", "timer_ns", "library", "lanes", "waits")  # of what the probe says first
_MAX_FILES = 16  # are fitted together
_PORT = 7411
_LISTENER_BYTES = 64 << 20  # of a message, at most
_PLACE = re.compile(r"(?:\[([^\[\]]{1,100})\]|([^:\[\]]{1,253}))(?::([0-9]{1,5}))?", re.ASCII)
_TOKEN = re.compile(r"[!-~]{32}", re.ASCII)
_CLOCK = "this machine's alone: no time is compared with the far side's"
_ENDS = "when the far side's acknowledgement of 8 bytes is back: its way is in every time"
_STAGE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}", re.ASCII)


def measure(arguments: argparse.Namespace, output: Output) -> int:
    """Measure one stage or signature, write what was measured, and print its fit."""
    from measuring.probe import program
    from measuring.tools import TOOLS

    _check_two_machines(arguments)
    if arguments.listen is not None:
        return _listen(arguments, output)
    if arguments.stage is not None:
        return _measure_command(arguments, output)
    if arguments.list or arguments.name is None:
        return _list(arguments, output)
    if arguments.what == "tool" or (arguments.what is None and arguments.name in TOOLS):
        return _measure_tool(arguments, output)
    probe = program()
    kind = _kind_of(arguments, _known(probe, arguments))
    target = arguments.output or f"{as_file_name(arguments.name)}-{kind}.csv"
    check_results(arguments, target, example="pipe.csv")
    is_complete, text = (measure_stage if kind == "stage" else _signatures)(
        probe, arguments, target, output
    )
    return _finish(arguments, output, target, text, is_complete=is_complete)


def _check_two_machines(arguments: argparse.Namespace) -> None:
    """Raise InconsistentInput for what does not go with another machine."""
    if arguments.listen is not None and (
        arguments.name or arguments.host or arguments.stage or arguments.what or arguments.list
    ):
        raise InconsistentInput("a listener measures nothing by itself", field="listen")
    if arguments.host is not None and (arguments.stage or arguments.what == "tool"):
        raise InconsistentInput("only tcp and its signature go to another machine", field="host")
    if arguments.host is not None and arguments.name not in (None, "tcp"):
        raise InconsistentInput("only tcp goes to another machine", field="host")


def _place(text: str, *, field: str) -> tuple[str, int]:
    """Host and port of HOST, HOST:PORT or [ADDRESS]:PORT. Raises InvalidInput."""
    found = _PLACE.fullmatch(text)
    port = int(found[3] or _PORT) if found else 0
    if found is None or not port <= 65_535 or (port == 0 and field == "host"):
        raise InvalidInput(
            f"expected a host and a port, as 10.0.0.2:{_PORT} or [fe80::1]:{_PORT}", field=field
        )
    return found[1] or found[2], port


def _token(arguments: argparse.Namespace) -> str | None:
    """The token of --token or the environment. Raises InvalidInput where it is none."""
    from measuring.running import TOKEN

    found: str | None = arguments.token or os.environ.get(TOKEN)
    if found is not None and not _TOKEN.fullmatch(found):
        raise InvalidInput("expected 32 characters without spaces", field="token")
    return found


def _far_side(arguments: argparse.Namespace) -> tuple[list[str], str | None]:
    """The probe's options for the other machine, and the token; nothing where there is none."""
    if arguments.host is None:
        return [], None
    host, port = _place(arguments.host, field="host")
    token = _token(arguments)
    if token is None:
        raise InvalidInput("expected the token that the listener printed", field="token")
    return ["--host", host, "--port", str(port)], token


def _listen(arguments: argparse.Namespace, output: Output) -> int:
    """Be the far side for one peer at a time, until Ctrl-C."""
    from measuring.probe import program
    from measuring.running import Probe

    address, port = _place(arguments.listen, field="listen")
    token = _token(arguments) or secrets.token_hex(16)
    words = ["listen", address, *probe_options(arguments, _LISTENER_BYTES)]
    words += ["--port", str(port)] if port else []
    with Probe(program(), words, token=token) as one:
        output.note(f"listening on {address} port {one.facts['port']}; Ctrl-C ends it")
        output.note(f"the other side needs --token {token}")
        with suppress(KeyboardInterrupt):
            for line in one.lines():
                output.note(printable(line))
    return INTERRUPTED


def _finish(
    arguments: argparse.Namespace, output: Output, target: str, text: str, *, is_complete: bool
) -> int:
    """Keep what was measured, and fit it where all of it was."""
    write_whole(target, text.encode(), field="output", noun="measurements")
    if not is_complete:
        output.note(f"interrupted; what was measured is in {printable(target)}")
        return INTERRUPTED
    output.note(f"measured into {printable(target)}")
    return fit_named([target], arguments, output)


def _measure_command(arguments: argparse.Namespace, output: Output) -> int:
    """Measure a program of the user's own, NAME=COMMAND, as a stage."""
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
    sizes = tuple(sorted(set(arguments.bytes or _STAGE_SIZES)))
    check_several(sizes)
    found = Sweep(SweepPlan(sizes, arguments.tolerance, arguments.time_limit, arguments.seed))
    facts = {"program": printable(line), **facts_of_machine(arguments)}
    is_complete = True
    try:
        with shown(output, "sizes", target, lambda: found.to_csv(name, facts)) as on_block:
            found.run(command.ask, on_block)
    except KeyboardInterrupt:
        is_complete = False
    _check_samples(found, is_complete=is_complete)
    return _finish(arguments, output, target, found.to_csv(name, facts), is_complete=is_complete)


def _measure_tool(arguments: argparse.Namespace, output: Output) -> int:
    """Run an existing tool, keep what it prints in a folder, and fit that."""
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
    except KeyboardInterrupt:
        output.note(f"interrupted; what was measured is in {printable(str(folder))}")
        return INTERRUPTED
    except NotMeasurable:
        if run.files:
            output.note(f"what was measured until then is in {printable(str(folder))}")
        raise
    output.note(f"measured into {printable(str(folder))}")
    return fit_named([str(file) for file in run.files], arguments, output)


def _list(arguments: argparse.Namespace, output: Output) -> int:
    """Print what can be measured here, and why the rest cannot."""
    from measuring.probe import program
    from measuring.tools import TOOLS, elsewhere

    try:
        known = _known(program(), arguments)
    except NotMeasurable as refusal:
        known = {("stage", "memcpy and others"): f"not here: {refusal.detail}"}
    rows = [(kind, name, about) for (kind, name), about in known.items()]
    rows += [("tool", name, tool.missing or tool.about) for name, tool in TOOLS.items()]
    rows += [("tool", name, about) for name, about in elsewhere().items()]
    columns = tuple(Column(name, is_number=False) for name in ("what", "name", "is"))
    output.parts([Grid(columns, tuple(rows))])
    return 0


def _known(probe: Path, arguments: argparse.Namespace) -> dict[tuple[str, str], str]:
    """What the probe has, by kind and name, and what it is where it is compiled for a library."""
    from measuring.feasibility import known_of
    from measuring.ucx import Ucx

    mpi, found = _mpi_of(arguments), known_of(probe)
    libraries = {
        _MPI: mpi.missing or f"messages between two ranks, started by {mpi.starts_with}",
        _UCX: Ucx().missing or "active messages of UCX",
    }
    return {**found, **{(_SIGNATURE, name): about for name, about in libraries.items()}}


def _mpi_of(arguments: argparse.Namespace) -> Mpi:
    from measuring.mpi import Mpi

    return Mpi(arguments.mpicc or "mpicc", arguments.launcher, arguments.allow_run_as_root)


def _kind_of(arguments: argparse.Namespace, known: dict[tuple[str, str], str]) -> str:
    """What to measure of this name: the stage where there is one. Raises InvalidInput."""
    kinds = [arguments.what] if arguments.what else ["stage", "signature"]
    name = arguments.name.partition(":")[0]
    found = next((kind for kind in kinds if (kind, name) in known), None)
    if found is None:
        names = dict.fromkeys(name for kind, name in known if kind in kinds)
        raise InvalidInput(f"expected one of {', '.join(names)}", field="name")
    given = (arguments.mpicc, arguments.launcher, arguments.allow_run_as_root or None)
    if name != _MPI and any(one is not None for one in given):
        field = next(word for word, one in zip(_OF_MPI, given, strict=True) if one is not None)
        raise InconsistentInput("only signatures over MPI are started by one", field=field)
    if arguments.cold and (found == _SIGNATURE or not can_be_cold(name)):
        raise InconsistentInput("only copies and checksums can be cold", field="cold")
    if (about := known[found, name]).startswith("not here: ") and found != _SIGNATURE:
        raise NotMeasurable(f"{name}: {about}")
    return found


def as_file_name(stage: str) -> str:
    """Return a stage's name as a part of a file's: what follows a colon may have slashes."""
    return stage.replace(":", "-").replace("/", "-")


def facts_of_machine(arguments: argparse.Namespace) -> dict[str, str]:
    """Where this was measured, for the first lines of the file."""
    system = platform.uname()
    found = {"machine": f"{system.machine}, {_processor()}", "kernel": system.release}
    if arguments.cpus is not None:
        found["cpus"] = ",".join(map(str, arguments.cpus))
    return found


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith(_PROCESSOR))
    return next(named, "unknown processor")


def check_stage(arguments: argparse.Namespace, sizes: Sequence[int]) -> None:
    """Check, without a probe, that the stage `arguments.name` can be measured at these sizes."""
    stage = arguments.name
    check_place(stage, field="name")
    check_sizes(sizes, max_bytes=_largest(arguments))
    if is_direct(stage):
        check_whole_pages(sizes, field="bytes")
    check_several(sizes)
    check_processors(arguments.cpus)
    Needs.of_stage(stage, max(sizes), is_cold=arguments.cold).check(arguments.path)


def _largest(arguments: argparse.Namespace) -> int:
    """The largest message that there is: a listener's, or an MPI's."""
    if arguments.host is not None:
        return _LISTENER_BYTES
    return MAX_MPI_BYTES if arguments.name == _MPI else MAX_BYTES


def probe_options(arguments: argparse.Namespace, max_bytes: int) -> list[str]:
    options = ["--max-bytes", str(max_bytes)]
    if arguments.cpus is not None:
        options += ["--cpus", ",".join(map(str, arguments.cpus))]
    return options


def measure_stage(
    probe: Path, arguments: argparse.Namespace, target: str, output: Output
) -> tuple[bool, str]:
    """Return whether all was measured, and the samples as the file's text.

    Until then the file has those of a second ago. Raises KeyboardInterrupt where there are none.
    """
    from measuring.running import Probe
    from measuring.sweep import Sweep, SweepPlan

    default = (size for size in _STAGE_SIZES if not is_direct(arguments.name) or size >= PAGE)
    sizes = tuple(sorted(set(arguments.bytes or default)))
    plan = SweepPlan(sizes, arguments.tolerance, arguments.time_limit, arguments.seed)
    far_side, token = _far_side(arguments)
    check_stage(arguments, sizes)
    options = [*probe_options(arguments, sizes[-1]), "--path", arguments.path, *far_side]
    found = Sweep(plan)
    # `verify` runs the stages of that name here: what needs another machine has another one.
    facts = {"far_stage" if far_side else "stage": arguments.name, **facts_of_machine(arguments)}
    if far_side:
        facts |= {"far_side": arguments.host, "clock": _CLOCK, "time_ends": _ENDS}
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
    _check_samples(found, is_complete=is_complete)
    for size in found.left_out:
        output.note(
            f"{format_bytes(size)} is left out: {found.preempted[size]} samples were preempted"
        )
    return is_complete, found.to_csv(column, facts)


def _check_samples(found: Sweep, *, is_complete: bool) -> None:
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


def _signatures(
    probe: Path, arguments: argparse.Namespace, target: str, output: Output
) -> tuple[bool, str]:
    """Return whether all was measured, and the signatures, as `measure_stage` does."""
    from measuring.signature import Signature, SignaturePlan, signatures_csv

    sizes = tuple(sorted(set(arguments.bytes or _SIGNATURE_SIZES)))
    if arguments.save_as is not None and len(sizes) < 2:
        raise InconsistentInput(
            "a profile is made of signatures of two sizes or more: give --bytes 64,1KiB",
            field="save_as",
        )
    check_sizes(sizes, max_bytes=_largest(arguments))
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
    far_side, token = _far_side(arguments)
    if far_side:
        facts |= {"far_side": arguments.host, "clock": _CLOCK, "far_preempted": "not known"}
    limit_s = arguments.time_limit / len(sizes)
    measured, is_complete = list[Signature](), True

    def text() -> str:
        return signatures_csv(measured, facts)

    with _started(probe, arguments, token) as start:
        for size in sizes:
            tolerance = max(_SIGNATURE_TOLERANCE, arguments.tolerance)
            plan = SignaturePlan(size, tolerance, limit_s, arguments.seed)
            options = [*probe_options(arguments, size), "--window", str(arguments.window)]
            with start([_SIGNATURE, arguments.name, *options, *far_side]) as one:
                facts |= {name: one.facts[name] for name in PROBED if name in one.facts}
                measured.append(Signature(plan))
                try:
                    with shown(output, "points", target, text) as on_block:
                        measured[-1].run(one.ask, on_block)
                except KeyboardInterrupt:
                    is_complete = False
                    break
    if not any(times for one in measured for times in one.cost_us.values()):
        if not is_complete:
            raise KeyboardInterrupt  # before there was anything to keep
        raise NotMeasurable(
            "every burst until the end of time was preempted: the machine is busy, or both ends "
            "share one processor (--cpus 0,1)"
        )
    return is_complete, text()


@contextmanager
def _started(
    probe: Path, arguments: argparse.Namespace, token: str | None
) -> Iterator[Callable[[Sequence[str]], Probe]]:
    """How the probe is started: as it is, or compiled for an MPI or UCX."""
    from measuring.running import Probe, probe_of
    from measuring.ucx import Ucx

    if arguments.name not in (_MPI, _UCX):
        yield partial(Probe, probe, token=token)
        return
    with probe_of(_mpi_of(arguments) if arguments.name == _MPI else Ucx()) as start:
        yield start


@contextmanager
def shown(
    output: Output, what: str, target: str, text: Callable[[], str]
) -> Iterator[Callable[[int, int], None]]:
    """Show how far it is, in a line that is erased after, and keep what there is in the file."""
    kept = KeptAsItGoes(target, text)
    with erased_line(output.err) as show:

        def on_block(wanted: int, taken: int) -> None:
            show(f"{taken} samples; {wanted} {what} not known yet")
            if taken:
                kept.write()

        yield on_block
