"""What workers are sent of files and fits: the inputs of an operation's `run`, and nothing of how
it was asked for.

Workers import this module and what it computes with, but neither schemas nor repositories: they
start faster and hold less memory without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from app.operations.operation import Report
from app.questions.fits import (
    StoredFit,
    fit_readings,
    fit_traces,
    options_named,
    plot_stored,
    read_traces,
)
from app.questions.question import sizes_used_for
from app.questions.source import FileWork, FitNow, MeasurementsWork
from app.questions.traces import LoadedTrace, Measurement
from domain.errors import SluiceError
from domain.fit import FitOptions, TraceFit
from domain.fit_plot import FitPlot
from domain.measurement import Reading
from models.records import FitRequest

Fitted = tuple[TraceFit, FitPlot | None]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FitWork:
    """Open files by length and digest, and how to fit them together."""

    lengths: tuple[tuple[int, str], ...]
    fit_request: FitRequest
    fragment_cap: int
    wants_plot: bool

    def run(self, report: Report) -> Fitted:
        """Read the files and fit them. Raises as `fit_traces` does."""
        return self.fit(
            [
                LoadedTrace.in_file(descriptor, content_bytes=length, digest=digest)
                for descriptor, (length, digest) in zip(report.files, self.lengths, strict=True)
            ]
        )

    def fit(self, traces: Sequence[LoadedTrace]) -> Fitted:
        """Fit these. Raises as `fit_traces` does."""
        request = self.fit_request
        with options_named({"groups": "group"}):
            fitted = fit_traces(
                traces,
                request,
                sizes_used=sizes_used_for(request.message_bytes, fragment_cap=self.fragment_cap),
                wants_plot=self.wants_plot,
            )
        return fitted.fit, fitted.plot


@dataclass(frozen=True, slots=True)
class FilesFitted:
    """A fit of files, which of them it is of, and why others were left out, by their places.

    `fit` is None where all were left out.
    """

    fit: TraceFit | None
    plot: FitPlot | None
    used: tuple[int, ...]
    left_out: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class FilesWork:
    """Named files to fit together; those that may be left out are, where they are not understood.

    `fit_request` has one kind, which is said of each of them.
    """

    lengths: tuple[tuple[int, str], ...]
    names: tuple[str, ...]
    may_leave_out: tuple[bool, ...]
    fit_request: FitRequest
    fragment_cap: int
    wants_plot: bool

    def run(self, report: Report) -> FilesFitted:
        """Read the files and fit them. Raises as `fit` does."""
        return self.fit(
            [
                LoadedTrace.in_file(descriptor, content_bytes=length, digest=digest)
                for descriptor, (length, digest) in zip(report.files, self.lengths, strict=True)
            ]
        )

    def fit(self, traces: Sequence[LoadedTrace]) -> FilesFitted:
        """Fit these. Raises as `fit_traces` does, naming the file where there are several."""
        readings: dict[int, Reading] = {}
        left_out: list[tuple[int, str]] = []
        for place, trace in enumerate(traces):
            try:
                options = self.fit_request.options
                own = FitOptions(columns=options.columns_of(place), choice=options.choice_of(place))
                (readings[place],) = read_traces((trace,), self.fit_request.kinds, own)
            except SluiceError as refusal:
                if not self.may_leave_out[place]:
                    if len(traces) > 1:
                        refusal.detail = f"{self.names[place]}: {refusal.detail}"
                    raise
                left_out.append((place, refusal.detail))
        if not readings:
            return FilesFitted(None, None, (), tuple(left_out))
        request, cap = self.fit_request, self.fragment_cap
        fitted = fit_readings(
            tuple(readings.values()),
            [traces[place] for place in readings],
            replace(request, kinds=request.kinds * len(readings)),
            sizes_used=sizes_used_for(request.message_bytes, fragment_cap=cap),
            wants_plot=self.wants_plot,
        )
        return FilesFitted(fitted.fit, fitted.plot, tuple(readings), tuple(left_out))


@dataclass(frozen=True, slots=True)
class ReadWork(Generic[T]):
    """Files that came with a request, and what is read off them."""

    files_work: FileWork[T]

    def run(self, report: Report) -> T:
        """Read. Raises SluiceError."""
        return self.files_work.read()


def warm_up() -> None:
    """Load what reading and fitting need, by a small fit."""
    few = "message_bytes,repetition,a_us\n" + "".join(
        f"{size},{i},{size / 100 + i}\n" for size in (64, 256, 1024) for i in range(3)
    )
    MeasurementsWork((Measurement(few),), FitNow()).read()


@dataclass(frozen=True, slots=True)
class PlotWork:
    """The stored fit with its traces."""

    fit: StoredFit

    def run(self, report: Report) -> FitPlot:
        """Read the traces and plot."""
        return plot_stored(self.fit)
