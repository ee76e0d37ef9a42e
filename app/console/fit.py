"""sluice fit, of one file, several, folders or standard input, together or each for itself, sluice
compose, of stages with files of their own, and sluice plan, what to measure next.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from app.console.commands import opened_store
from app.console.files import (
    STANDARD_INPUT,
    check_plot_file,
    read_trace,
    said_of_overlap,
    said_of_rows,
    test_in_names,
    write_plot,
)
from app.console.reports import fit_parts
from app.console.running import run_operation, working_line
from app.errors import exit_code
from app.settings import Settings
from app.text.notices import capitalised
from app.text.numbers import format_figure
from app.text.units import format_time, printable, quoted
from app.ui.parts import Column, Grid, Part
from app.ui.terminal import Output
from domain.conditions import RowChoice
from domain.errors import InconsistentInput, InvalidInput, SluiceError, UnreadableTrace
from domain.measurement import TraceKind
from domain.units import format_bytes

if TYPE_CHECKING:
    from app.questions.fits import FittedTrace, SavedFit
    from app.questions.question import LoadedTrace
    from contract.plan import MeasurementPlanOut
    from domain.fit import ComposedStage
    from domain.profile import HardwareProfile
    from models.records import FitRequest


@dataclass(frozen=True, slots=True)
class _File:
    """A file that was named, or found in a folder that was."""

    name: str
    is_named: bool
    ran: str = ""  # the commands whose tables it has, where the user says them


def fit(arguments: argparse.Namespace, output: Output) -> int:
    """Fit, store and draw where asked to, and print the fit or the fits."""
    request = _fit_request(arguments)
    _check_targets(arguments, arguments.sources)
    settings = Settings.from_environment()
    files = tuple(_ran(_files(arguments.sources), arguments))
    if arguments.separately:
        return _fit_each(files, request, settings, output)
    return _fit_together(files, arguments, request, settings, output)


def fit_named(names: Sequence[str], arguments: argparse.Namespace, output: Output) -> int:
    """Fit files together as they are, and store and draw where the arguments say so."""
    from models.records import FitRequest

    request = FitRequest(kinds=(None,) * len(names))
    files = tuple(_File(name, is_named=True) for name in names)
    return _fit_together(files, arguments, request, Settings.from_environment(), output)


def compose(arguments: argparse.Namespace, output: Output) -> int:
    """Fit every stage to its own files, and store, draw and print the pipeline of all."""
    from app.schemas.fit_requests import parse_composed

    stages = [parse_composed(text, "stage") for text in arguments.stages]
    files = tuple(_File(file, is_named=True) for _, names in stages for file in names)
    request = _request(arguments, composed=_composed(stages, arguments))
    _check_targets(arguments, [file.name for file in files])
    return _fit_together(files, arguments, request, Settings.from_environment(), output)


def plan(arguments: argparse.Namespace, output: Output) -> int:
    """Print which message sizes to measure next, or that enough is known."""
    from app.questions.fits import plan as planned
    from app.questions.question import Measurement
    from app.schemas.base import dump_json
    from app.schemas.plan import plan_out
    from contract.limits import DEFAULT_TOLERANCE
    from domain.plan import PlanLimits

    settings = Settings.from_environment()
    limits = PlanLimits(
        _or(arguments.min_message_bytes, _PLANNED_FROM_BYTES),
        _or(arguments.max_message_bytes, _PLANNED_TO_BYTES),
        _or(arguments.tolerance, DEFAULT_TOLERANCE),
    )
    if arguments.sources.count(STANDARD_INPUT) > 1:
        raise InvalidInput("expected - only once", field="source")
    contents = [read_trace(file.name, settings) for file in _files(arguments.sources)]
    found = plan_out(planned(tuple(map(Measurement, contents)), limits))
    if output.wants_json:
        output.document(dump_json(found))
    else:
        output.parts(_plan_parts(found))
    return 0


_PLANNED_FROM_BYTES, _PLANNED_TO_BYTES = 64, 2**20
_MEASURED = {
    "latency": "latency of a message on its own",
    "interarrival": "time between messages back to back",
}
N = TypeVar("N", int, float)


def _or(given: N | None, default: N) -> N:
    return default if given is None else given


def _plan_parts(found: MeasurementPlanOut) -> Iterator[Part]:
    """Yield what is known and what is not, the sizes to measure, and the lines so far."""
    yield capitalised(printable(found.reason)) + "."
    if found.measure:
        yield ""
        columns = (Column("message"), Column("measure", is_number=False), Column("times"))
        rows = (
            (format_bytes(one.message_bytes), _MEASURED.get(one.what, one.what), one.repetitions)
            for one in found.measure
        )
        yield Grid(columns, tuple((size, what, str(times)) for size, what, times in rows))
    if found.bottlenecks:
        yield ""
        headings = ("from", "to", "overhead", "ns per byte")
        lines = (
            (
                format_bytes(one.from_bytes),
                format_bytes(one.to_bytes),
                format_time(one.overhead_us),
                format_figure(one.ns_per_byte),
            )
            for one in found.bottlenecks
        )
        yield Grid(tuple(map(Column, headings)), tuple(lines))


def fit_stages(
    files: Sequence[tuple[str, str]], *, save_as: str, settings: Settings, output: Output
) -> HardwareProfile:
    """Fit each named stage to its file, by the default rules, and store their pipeline."""
    from domain.fit import ComposedStage, FitOptions
    from models.records import FitRequest

    options = FitOptions(composed=tuple(ComposedStage(name, 1) for name, _ in files))
    named = tuple(_File(file, is_named=True) for _, file in files)
    fitted = _fit(named, FitRequest(options, kinds=(None,)), settings, output)
    assert fitted is not None  # named files are refused, and never left out
    saved = _save(fitted, save_as, settings)
    assert saved is not None
    return saved.profile


def _fit_together(
    files: Sequence[_File],
    arguments: argparse.Namespace,
    request: FitRequest,
    settings: Settings,
    output: Output,
) -> int:
    wants_plot = arguments.plot is not None
    fitted = _fit(files, request, settings, output, wants_plot=wants_plot)
    if fitted is None:
        raise UnreadableTrace("no file in the folder is recognised", field="source")
    if fitted.plot is not None:
        write_plot(arguments.plot, fitted.fit, fitted.plot)
    saved = _save(fitted, arguments.save_as, settings)
    _show(fitted, saved, output)
    if not output.wants_json and arguments.plot is not None:
        output.parts([f"plot written to {printable(arguments.plot)}"])
    return 0


def _fit_each(
    files: Sequence[_File], request: FitRequest, settings: Settings, output: Output
) -> int:
    """Return a fit for every file; a refusal of one of them does not keep the others back."""
    codes = []
    for file in files:
        try:
            fitted = _fit((file,), request, settings, output)
            if fitted is not None:
                _show_named(file.name, fitted, output)
                codes.append(0)
        except SluiceError as refusal:
            refusal.detail = f"{quoted(file.name)}: {refusal.detail}"
            output.error(refusal)
            codes.append(exit_code(refusal))
    if not codes:
        raise UnreadableTrace("no file in the folder is recognised", field="source")
    return next((code for code in codes if code), 0)


# --- the request ----------------------------------------------------------------------------------


def _fit_request(arguments: argparse.Namespace) -> FitRequest:
    """Return how to fit, by the same rules as in the service. Raises InvalidInput."""
    from app.questions.fits import check_request
    from app.schemas.fit_requests import parse_group

    groups = tuple(map(parse_group, arguments.group or ()))
    said = said_of_rows(arguments)
    if arguments.message_bytes is None and said["test"] is None:
        said["test"] = test_in_names(arguments.sources)
    if arguments.message_bytes is not None:
        said["test"] = None  # the command of ucx_perftest says it
    request = _request(
        arguments,
        groups=groups,
        as_stage=arguments.as_stage,
        columns=arguments.columns,
        total_is_uncut=arguments.uncut,
        choice=RowChoice(**said),
        **said_of_overlap(arguments),
    )
    message_bytes = None
    if arguments.test is None and arguments.message_bytes is not None:
        message_bytes, *more = arguments.message_bytes
        if more:
            raise InvalidInput("expected one message without --test", field="message_bytes")
    request = replace(request, message_bytes=message_bytes)
    check_request(request)
    return request


def _request(arguments: argparse.Namespace, **more: Any) -> FitRequest:
    from app.schemas.fit_requests import parse_excluded
    from contract.limits import DEFAULT_MAX_RANGES
    from domain.fit import FitMethod, FitOptions, FitShape
    from models.records import FitRequest

    options = FitOptions(
        method=FitMethod(arguments.method or FitMethod.ROBUST),
        shape=FitShape(arguments.shape or FitShape.RANGES),
        max_ranges=DEFAULT_MAX_RANGES if arguments.max_ranges is None else arguments.max_ranges,
        excluded=tuple(map(parse_excluded, arguments.exclude or ())),
        **more,
    )
    kind = None if arguments.kind is None else TraceKind(arguments.kind)
    return FitRequest(options, kinds=(kind,))


def _composed(
    stages: Sequence[tuple[str, tuple[str, ...]]], arguments: argparse.Namespace
) -> tuple[ComposedStage, ...]:
    """Return the stages with their steps and processors. Raises InvalidInput."""
    from app.schemas.fit_requests import parse_composed
    from domain.fit import ComposedStage

    steps = dict(parse_composed(text, "step") for text in arguments.steps or ())
    columns = dict(parse_composed(text, "columns") for text in arguments.columns or ())
    processors = [parse_composed(text, "processor") for text in arguments.processors or ()]
    shared = {stage: processor for processor, on_it in processors for stage in on_it}
    names = [name for name, _ in stages]
    said = {
        field: dict(parse_composed(text, field) for text in getattr(arguments, field) or ())
        for field in ("test", "run", "where")
    }
    given_by_field: dict[str, Mapping[str, Any]] = {
        "step": steps,
        "columns": columns,
        "processor": shared,
        **said,
    }
    for field, given in given_by_field.items():
        unknown = next((name for name in given if name not in names), None)
        if unknown is not None:
            raise InvalidInput(
                f"there is no stage {unknown}; expected one of {', '.join(names)}", field=field
            )
    return tuple(
        ComposedStage(
            name,
            len(files),
            ",".join(steps[name]) if name in steps else None,
            shared.get(name),
            ",".join(columns[name]) if name in columns else None,
            _choice(
                {field: ",".join(given[name]) for field, given in said.items() if name in given}
            ),
        )
        for name, files in stages
    )


def _choice(said: Mapping[str, str]) -> RowChoice:
    """Return which rows of a stage's files are taken. Raises InvalidInput."""
    run = said.get("run")
    if run is not None and not (run.isascii() and run.isdigit() and len(run) < 6):
        raise InvalidInput("expected the number of a run, as NAME=2", field="run")
    return RowChoice(said.get("test"), None if run is None else int(run), said.get("where"))


def _check_targets(arguments: argparse.Namespace, sources: Sequence[str]) -> None:
    from app.questions.question import check_save_as

    if getattr(arguments, "separately", False) and (arguments.save_as or arguments.plot):
        raise InconsistentInput(
            "--separately makes several fits, and --save-as and --plot are for one",
            field="save_as" if arguments.save_as else "plot",
        )
    if arguments.save_as is not None:
        check_save_as(arguments.save_as)
    if arguments.plot is not None:
        check_plot_file(arguments.plot)
    if sources.count(STANDARD_INPUT) > 1:
        raise InvalidInput("expected - only once", field="source")


def _files(names: Sequence[str]) -> Iterator[_File]:
    """Yield the files named; for a folder the regular files in it, by name."""
    for name in names:
        if not name:
            raise InvalidInput("expected the name of a file", field="source")
        if name == STANDARD_INPUT or not Path(name).is_dir():
            yield _File(name, is_named=True)
            continue
        try:
            inside = sorted(path for path in Path(name).iterdir() if path.is_file())
        except OSError as refusal:
            reason = refusal.strerror or "it cannot be read"
            raise InvalidInput(f"{quoted(name)}: {reason}", field="source") from None
        if not inside:
            raise InvalidInput(f"{quoted(name)}: there is no file in this folder", field="source")
        yield from (_File(str(path), is_named=False) for path in inside)


def _ran(files: Iterable[_File], arguments: argparse.Namespace) -> Iterator[_File]:
    """Yield the files with the commands of ucx_perftest that they are of, where those are said."""
    found, test, sizes = tuple(files), arguments.test, arguments.message_bytes
    if test is None or sizes is None:
        yield from found
        return
    if re.fullmatch("[a-z_]{2,40}", test) is None:
        raise InvalidInput("expected a test of ucx_perftest, as tag_lat", field="test")
    if len(found) not in (1, len(sizes)):
        raise InconsistentInput(
            "expected the message size of each file in --message-bytes, or those of all tables of "
            "the one file",
            field="message_bytes",
        )
    commands = [f"$ ucx_perftest HOST -t {test} -s {size}\n" for size in sizes]
    for place, file in enumerate(found):
        yield replace(file, ran=commands[place] if len(found) > 1 else "".join(commands))


# --- reading, fitting, showing --------------------------------------------------------------------


def _fit(
    files: Sequence[_File],
    request: FitRequest,
    settings: Settings,
    output: Output,
    *,
    wants_plot: bool = False,
) -> FittedTrace | None:
    """Return the fit of the files; those of a folder that are not recognised are reported instead.

    None where that is all of them.
    """
    from app.operations.fits import FitFiles

    found = tuple(_held(files, settings, output))
    if not found:
        return None
    operation = FitFiles(
        traces=tuple(trace for _, trace in found),
        names=tuple(quoted(file.name) for file, _ in found),
        may_leave_out=tuple(not file.is_named for file, _ in found),
        fit_request=request,
        fragment_cap=settings.max_fragments,
        wants_plot=wants_plot,
    )
    with ExitStack() as stack, working_line(output.err, "fitting") as show:
        fitted = run_operation(operation.in_files(stack), settings, show).result
    for place, why in fitted.left_out:
        output.note(f"left out {operation.names[place]}: {printable(why)}")
    return operation.fitted(fitted) if fitted.used else None


def _held(
    files: Sequence[_File], settings: Settings, output: Output
) -> Iterator[tuple[_File, LoadedTrace]]:
    """Return the contents of the files."""
    from app.questions.question import LoadedTrace

    for file in files:
        try:
            content = read_trace(file.name, settings)
            yield file, LoadedTrace.of(file.ran.encode() + content if file.ran else content)
        except SluiceError as refusal:
            if file.is_named:
                if len(files) > 1:
                    refusal.detail = f"{quoted(file.name)}: {refusal.detail}"
                raise
            output.note(f"left out {quoted(file.name)}: {printable(refusal.detail)}")


def _save(fitted: FittedTrace, name: str | None, settings: Settings) -> SavedFit | None:
    from app.questions.fits import save_fit

    if name is None:
        return None
    with opened_store(settings) as store, store.unit_of_work() as unit:
        return save_fit(unit, fitted, name=name)


def _show(fitted: FittedTrace, saved: SavedFit | None, output: Output) -> None:
    from app.schemas.base import dump_json
    from app.schemas.fits import fit_out

    fit = fit_out(fitted, saved)
    if output.wants_json:
        output.document(dump_json(fit))
        return
    output.parts(fit_parts(fit, width=output.out.width))
    if saved is not None:
        output.parts([f"saved as {saved.profile.name}@{saved.profile.current.number}"])


def _show_named(name: str, fitted: FittedTrace, output: Output) -> None:
    from app.schemas.base import dump_json
    from app.schemas.fits import fit_out

    if output.wants_json:
        # One line a file; a name that is no text is shown as Python spells it.
        shown = name.encode(errors="backslashreplace").decode()
        output.document(dump_json({"source": shown, "fit": fit_out(fitted, None)}))
        return
    output.parts([f"── {printable(name)}"])
    _show(fitted, None, output)
    output.parts([""])
