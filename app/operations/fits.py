"""Fit measurements; draw fits, timelines, reports. A fit is stored where a profile is made.

Whoever sends a file decides how long it takes to read: a service reads none in its own process.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Generic, Protocol, TypeVar

from app.execution.engine import Pool
from app.operations.operation import OperationDefaults, OperationKind, Outcome, Report, digest_of
from app.operations.work import FilesFitted, FilesWork, Fitted, FitWork, PlotWork, ReadWork
from app.questions.fits import FittedTrace, StoredFit, save_fit
from app.questions.source import FileWork
from app.questions.traces import LoadedTrace
from app.schemas.answers import with_unique_names
from app.schemas.base import dump_json
from app.schemas.fits import fit_out, fit_plot_out
from app.schemas.stages import stored_stages
from contract.limits import MAX_SIMULATED
from contract.optimize import ItemsOptimizeOut
from domain.errors import LimitReached, StrategyDeclined, UnreadableTrace
from domain.fit_plot import FitPlot
from domain.machine import Machine
from models.records import FitRequest

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
ReadT = TypeVar("ReadT")

if TYPE_CHECKING:
    from app.plots.timeline_plan import DrawnSchedule
    from contract.optimize import OptimizeOut
    from models.session import UnitOfWork


TIME_LIMIT_S = 120.0
SHORT_TIME_LIMIT_S = 20.0  # of what reads at most LONG_TRACE_BYTES
LONG_TRACE_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class FitTraces(OperationDefaults[Fitted]):
    """One fit of all traces; `save_as` names the profile that it is to be stored as."""

    traces: tuple[LoadedTrace, ...]
    fit_request: FitRequest
    fragment_cap: int
    wants_plot: bool = False
    save_as: str | None = None

    @property
    def kind(self) -> OperationKind:
        return OperationKind.FIT

    @property
    def noun(self) -> str:
        return "fit"

    @property
    def pool(self) -> Pool:
        """Short files wait for no long ones."""
        return _pool_of(_bytes_of(self.traces))

    @property
    def time_s(self) -> float:
        """Long traces may take longer."""
        return _limit_s(_bytes_of(self.traces))

    @property
    def request(self) -> bytes:
        """None: fits are no jobs."""
        return b""

    @property
    def digest(self) -> str:
        digests = tuple(trace.digest for trace in self.traces)
        return digest_of(self.kind, digests, self.fit_request, self.wants_plot, self.fragment_cap)

    @property
    def files(self) -> Sequence[int]:
        """The open files of the traces; `in_files` puts there what is in memory."""
        return tuple(one.descriptor for one in self.traces if one.descriptor is not None)

    @property
    def work(self) -> FitWork:
        """How to fit, and how long the files are."""
        files = tuple((trace.content_bytes, trace.digest) for trace in self.traces)
        return FitWork(files, self.fit_request, self.fragment_cap, self.wants_plot)

    def in_files(self, stack: ExitStack) -> FitTraces:
        """Return the same with every trace in an open file, which the stack closes."""
        return replace(self, traces=tuple(_in_file(trace, stack) for trace in self.traces))

    def run(self, report: Report) -> Fitted:
        """Fit. Raises UnreadableTrace, PoorFit, MeasurementMissing and InvalidInput."""
        return self.work.run(report)

    def fitted(self, result: Fitted) -> FittedTrace:
        """Return the fit with the files that it came from."""
        fit, plot = result
        return FittedTrace(fit, self.traces, self.fit_request, plot)

    @property
    def stores(self) -> bool:
        """A profile, where a name is given."""
        return self.save_as is not None

    def keep(self, unit: UnitOfWork, result: Fitted) -> Outcome:
        """Store traces, fit and profile where a name is given."""
        fitted = self.fitted(result)
        saved = None if self.save_as is None else save_fit(unit, fitted, name=self.save_as)
        return Outcome(dump_json(fit_out(fitted, saved)))


@dataclass(frozen=True, slots=True)
class FitFiles(OperationDefaults[FilesFitted]):
    """One fit of files that a command names, or found in a folder that it names.

    No service asks this: the command reads short files in its own process.
    """

    traces: tuple[LoadedTrace, ...]
    names: tuple[str, ...]
    may_leave_out: tuple[bool, ...]
    fit_request: FitRequest
    fragment_cap: int
    wants_plot: bool = False

    @property
    def kind(self) -> OperationKind:
        return OperationKind.FIT

    @property
    def noun(self) -> str:
        return "fit"

    @property
    def time_s(self) -> float:
        """Long traces may take so long."""
        return TIME_LIMIT_S

    @property
    def request(self) -> bytes:
        """None: fits are no jobs."""
        return b""

    @property
    def digest(self) -> str:
        digests = tuple(trace.digest for trace in self.traces)
        return digest_of(self.kind, digests, self.fit_request, self.wants_plot, self.fragment_cap)

    @property
    def files(self) -> Sequence[int]:
        """The open files of the traces; `in_files` puts there what is in memory."""
        return tuple(one.descriptor for one in self.traces if one.descriptor is not None)

    @property
    def work(self) -> FilesWork:
        """How to fit, and how long the files are."""
        return FilesWork(
            tuple((trace.content_bytes, trace.digest) for trace in self.traces),
            self.names,
            self.may_leave_out,
            self.fit_request,
            self.fragment_cap,
            self.wants_plot,
        )

    def in_files(self, stack: ExitStack) -> FitFiles:
        """Return the same with every trace in an open file, which the stack closes."""
        return replace(self, traces=tuple(_in_file(trace, stack) for trace in self.traces))

    def run_here(self) -> FilesFitted | None:
        """Fit where the traces are short."""
        return None if _bytes_of(self.traces) > LONG_TRACE_BYTES else self.work.fit(self.traces)

    def run(self, report: Report) -> FilesFitted:
        """Fit. Raises UnreadableTrace, PoorFit, MeasurementMissing and InvalidInput."""
        return self.work.run(report)

    def fitted(self, result: FilesFitted) -> FittedTrace:
        """Return the fit with its files. Raises UnreadableTrace where all were left out."""
        if result.fit is None:
            raise UnreadableTrace("no file in the folder is recognised", field="source")
        traces = tuple(self.traces[place] for place in result.used)
        request = replace(self.fit_request, kinds=self.fit_request.kinds * len(traces))
        return FittedTrace(result.fit, traces, request, result.plot)

    def keep(self, unit: UnitOfWork, result: FilesFitted) -> Outcome:
        """Store nothing: a command stores a fit where it is to be a profile."""
        return Outcome(dump_json(fit_out(self.fitted(result), None)))


def _bytes_of(traces: Sequence[LoadedTrace]) -> int:
    return sum(trace.content_bytes for trace in traces)


def _pool_of(content_bytes: int) -> Pool:
    return Pool.LONG if content_bytes > LONG_TRACE_BYTES else Pool.READ


def _limit_s(content_bytes: int) -> float:
    return TIME_LIMIT_S if content_bytes > LONG_TRACE_BYTES else SHORT_TIME_LIMIT_S


def _in_file(trace: LoadedTrace, stack: ExitStack) -> LoadedTrace:
    if trace.descriptor is not None:
        return trace
    file = stack.enter_context(_unnamed_file())
    for piece in trace.pieces():
        file.write(piece)
    file.flush()
    length, digest = trace.content_bytes, trace.digest
    return LoadedTrace.in_file(file.fileno(), content_bytes=length, digest=digest)


def _unnamed_file() -> IO[bytes]:
    return tempfile.TemporaryFile()


@dataclass(frozen=True, slots=True)
class PlotFit(OperationDefaults[FitPlot]):
    """What a plot of a stored fit shows."""

    fit: StoredFit

    @property
    def kind(self) -> OperationKind:
        return OperationKind.PLOT

    @property
    def noun(self) -> str:
        return "plot"

    @property
    def pool(self) -> Pool:
        """Short files wait for no long ones."""
        return _pool_of(len(self.fit))

    @property
    def time_s(self) -> float:
        """Long traces may take longer."""
        return _limit_s(len(self.fit))

    @property
    def request(self) -> bytes:
        """None: plots are no jobs."""
        return b""

    @property
    def digest(self) -> str:
        digests = tuple(trace.digest for trace in self.fit.traces)
        return digest_of(self.kind, digests, self.fit.fit, self.fit.options, self.fit.kinds)

    @property
    def work(self) -> PlotWork:
        """The traces, compressed."""
        return PlotWork(self.fit)

    def run(self, report: Report) -> FitPlot:
        """Read the traces and plot."""
        return self.work.run(report)

    def keep(self, unit: UnitOfWork, result: FitPlot) -> Outcome:
        """Store nothing."""
        return Outcome(dump_json(fit_plot_out(result)))


@dataclass(frozen=True, slots=True)
class ReadFiles(OperationDefaults[ReadT]):
    """What files say that came with a request, where the question is still to be prepared."""

    files_work: FileWork[ReadT]

    @property
    def kind(self) -> OperationKind:
        return OperationKind.FIT

    @property
    def noun(self) -> str:
        return "reading of the file"

    @property
    def pool(self) -> Pool:
        """Bodies of such requests are short."""
        return Pool.READ

    @property
    def time_s(self) -> float:
        """The limit of a worker."""
        return SHORT_TIME_LIMIT_S

    @property
    def request(self) -> bytes:
        """None: such readings are no jobs."""
        return b""

    @property
    def digest(self) -> str:
        """None: they are not found again."""
        return ""

    @property
    def work(self) -> ReadWork[ReadT]:
        """What is read."""
        return ReadWork(self.files_work)

    def run(self, report: Report) -> ReadT:
        """Read. Raises SluiceError."""
        return self.work.run(report)

    def keep(self, unit: UnitOfWork, result: ReadT) -> Outcome:
        """Store nothing."""
        return Outcome(b"")


MAX_BLOCKS = 8_000_000  # of one schedule; 64 stages times 100 000 fragments is within it
TIMELINE_FIELD = "timeline"


class Drawing(Protocol[T_co]):
    """Something to draw, all of its data at hand. Picklable; `noun` names it in refusals."""

    @property
    def noun(self) -> str: ...

    def draw(self) -> T_co:
        """Draw. Raises SluiceError."""
        ...


@dataclass(frozen=True, slots=True)
class Draw(OperationDefaults[T], Generic[T]):
    """One drawing."""

    drawing: Drawing[T]

    @property
    def kind(self) -> OperationKind:
        return OperationKind.DRAW

    @property
    def noun(self) -> str:
        return self.drawing.noun

    @property
    def time_s(self) -> float:
        """Millions of blocks may take so long."""
        return TIME_LIMIT_S

    @property
    def request(self) -> bytes:
        """None: drawings are no jobs."""
        return b""

    @property
    def digest(self) -> str:
        """None: drawings are not found again."""
        return ""

    @property
    def work(self) -> Draw[T]:
        return self

    def run(self, report: Report) -> T:
        """Draw. Raises SluiceError."""
        return self.drawing.draw()

    def keep(self, unit: UnitOfWork, result: T) -> Outcome:
        """Store nothing."""
        return Outcome(b"")


def answer_schedules(answer: OptimizeOut) -> Iterator[DrawnSchedule]:
    """Yield the answer's schedule, and the best fixed size where that is another cut; of items the
    cap in use, else the best one.

    Raises StrategyDeclined for an aggregate, and LimitReached.
    """
    if isinstance(answer, ItemsOptimizeOut):
        yield from _item_schedules(answer)
        return
    from app.plots.timeline_plan import DrawnSchedule
    from domain.nested import NestedSchedule
    from domain.timeline import nested_timeline_of, timeline_of

    named = with_unique_names(answer).pipeline
    if named is None:
        raise StrategyDeclined("an aggregate does not know when a fragment is in which stage")
    pipeline, bound_us = stored_stages(named), answer.lower_bound_us
    cut, levels = answer.fragment_bytes, answer.levels
    if isinstance(pipeline, Machine):
        yield from _machine_schedules(answer, pipeline)
        return
    _check_blocks(sum(map(len, levels)) if levels else len(cut) * len(pipeline))
    if levels:
        timeline = nested_timeline_of(pipeline, NestedSchedule(levels))
    else:
        timeline = timeline_of(pipeline, cut)
    yield DrawnSchedule(answer.strategy, timeline, bound_us)
    fixed = _fixed_cut(answer)
    if fixed and (levels or fixed != cut) and len(fixed) * len(pipeline) <= MAX_BLOCKS:
        yield DrawnSchedule("best fixed size", timeline_of(pipeline, fixed), bound_us)


def _item_schedules(answer: ItemsOptimizeOut) -> Iterator[DrawnSchedule]:
    """Yield the same of items. Raises LimitReached."""
    from app.plots.timeline_plan import DrawnSchedule
    from app.schemas.items import compared_cap, stored_cut, stored_fill, stored_problem
    from domain.item_timeline import item_timeline_of
    from domain.items import layout

    problem, cut = stored_problem(answer), stored_cut(answer)
    _check_blocks(len(cut) * len(problem.pipeline))
    yield DrawnSchedule("the list", item_timeline_of(problem, cut), answer.lower_bound_us)
    beside = compared_cap(answer)
    if beside is None:
        return
    name, cap_bytes = beside
    other = layout(problem.sequence, cap_bytes, stored_fill(answer))
    if other != cut and len(other) * len(problem.pipeline) <= MAX_BLOCKS:
        yield DrawnSchedule(name, item_timeline_of(problem, other), answer.lower_bound_us)


def _machine_schedules(answer: OptimizeOut, machine: Machine) -> Iterator[DrawnSchedule]:
    """Yield the same of a machine. Raises LimitReached."""
    from app.plots.timeline_plan import DrawnSchedule
    from domain.machine_timeline import machine_timeline_of, work_of

    cut, bound_us = answer.fragment_bytes, answer.lower_bound_us
    _check_blocks(work_of(machine, len(cut)), MAX_SIMULATED)
    timeline = machine_timeline_of(machine, cut)
    yield DrawnSchedule(answer.strategy, timeline, bound_us)
    fixed = _fixed_cut(answer)
    if fixed and fixed != cut and work_of(machine, len(fixed)) <= MAX_SIMULATED:
        yield DrawnSchedule("best fixed size", machine_timeline_of(machine, fixed), bound_us)


def _fixed_cut(answer: OptimizeOut) -> tuple[int, ...]:
    """Return the best fixed size repeated, the rest of the message last; empty where none is."""
    best = answer.best_fixed
    if best is None:
        return ()
    whole, rest = divmod(answer.message_bytes, best.size_bytes)
    return (best.size_bytes,) * whole + ((rest,) if rest else ())


def _check_blocks(blocks: int, most: int = MAX_BLOCKS) -> None:
    if blocks > most:
        raise LimitReached(
            f"expected fragments x stages <= {most} in a timeline, got {blocks}",
            field=TIMELINE_FIELD,
        )
