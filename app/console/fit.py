"""Files of measurements that a command fits: read, fitted together, stored, drawn, printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from app.console.commands import opened_store
from app.console.files import (
    STANDARD_INPUT,
    check_plot_file,
    read_trace,
    write_plot,
)
from app.console.running import run_operation, working_line
from app.settings import Settings
from app.text.units import printable, quoted
from app.ui.fit_parts import fit_parts
from app.ui.grammar import Arguments
from app.ui.terminal import Output
from domain.errors import InvalidInput, SluiceError, UnreadableTrace

if TYPE_CHECKING:
    from app.questions.fits import FittedTrace, SavedFit
    from app.questions.traces import LoadedTrace
    from domain.profile import HardwareProfile
    from models.records import FitRequest


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file that was named, or found in a folder that was."""

    name: str
    is_named: bool
    ran: str = ""  # the commands whose tables it has, where the user says them


def fit_named(names: Sequence[str], arguments: Arguments, output: Output) -> int:
    """Fit files together as they are, and store and draw where the arguments say so."""
    from models.records import FitRequest

    request = FitRequest(kinds=(None,) * len(names))
    files = tuple(NamedFile(name, is_named=True) for name in names)
    return fit_together(files, arguments, request, Settings.from_environment(), output)


def fit_stages(
    files: Sequence[tuple[str, str]], *, save_as: str, settings: Settings, output: Output
) -> HardwareProfile:
    """Fit each named stage to its file, by the default rules, and store their pipeline."""
    from domain.fit import ComposedStage, FitOptions
    from models.records import FitRequest

    options = FitOptions(composed=tuple(ComposedStage(name, 1) for name, _ in files))
    named = tuple(NamedFile(file, is_named=True) for _, file in files)
    fitted = fit_files(named, FitRequest(options, kinds=(None,)), settings, output)
    assert fitted is not None  # named files are refused, and never left out
    saved = _save(fitted, save_as, settings)
    assert saved is not None
    return saved.profile


def fit_together(
    files: Sequence[NamedFile],
    arguments: Arguments,
    request: FitRequest,
    settings: Settings,
    output: Output,
) -> int:
    """Fit the files, store and draw the fit where the arguments say so, and print it."""
    wants_plot = arguments.plot is not None
    fitted = fit_files(files, request, settings, output, wants_plot=wants_plot)
    if fitted is None:
        raise UnreadableTrace("no file in the folder is recognised", field="source")
    if fitted.plot is not None:
        write_plot(arguments.plot, fitted.fit, fitted.plot)
    saved = _save(fitted, arguments.save_as, settings)
    show_fit(fitted, saved, output)
    if not output.wants_json and arguments.plot is not None:
        output.parts([f"plot written to {printable(arguments.plot)}"])
    return 0


def check_targets(arguments: Arguments, sources: Sequence[str]) -> None:
    """Check that a fit can be stored and drawn where that is asked for. Raises InvalidInput."""
    from app.questions.question import check_save_as

    if arguments.save_as is not None:
        check_save_as(arguments.save_as)
    if arguments.plot is not None:
        check_plot_file(arguments.plot)
    if sources.count(STANDARD_INPUT) > 1:
        raise InvalidInput("expected - only once", field="source")


def files_of(names: Sequence[str]) -> Iterator[NamedFile]:
    """Yield the files named; for a folder the regular files in it, by name."""
    for name in names:
        if not name:
            raise InvalidInput("expected the name of a file", field="source")
        if name == STANDARD_INPUT or not Path(name).is_dir():
            yield NamedFile(name, is_named=True)
            continue
        try:
            inside = sorted(path for path in Path(name).iterdir() if path.is_file())
        except OSError as refusal:
            reason = refusal.strerror or "it cannot be read"
            raise InvalidInput(f"{quoted(name)}: {reason}", field="source") from None
        if not inside:
            raise InvalidInput(f"{quoted(name)}: there is no file in this folder", field="source")
        yield from (NamedFile(str(path), is_named=False) for path in inside)


def fit_files(
    files: Sequence[NamedFile],
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
    files: Sequence[NamedFile], settings: Settings, output: Output
) -> Iterator[tuple[NamedFile, LoadedTrace]]:
    """Return the contents of the files."""
    from app.questions.traces import LoadedTrace

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


def show_fit(fitted: FittedTrace, saved: SavedFit | None, output: Output) -> None:
    """Print a fit, and what it was stored as."""
    from app.schemas.base import dump_json
    from app.schemas.fits import fit_out

    fit = fit_out(fitted, saved)
    if output.wants_json:
        output.document(dump_json(fit))
        return
    output.parts(fit_parts(fit, width=output.out.width))
    if saved is not None:
        output.parts([f"saved as {saved.profile.name}@{saved.profile.current.number}"])
