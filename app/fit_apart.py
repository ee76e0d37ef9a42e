"""Fits long traces in a process of its own, which reads them from files without names."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO

from app.apart import Apart, ReportSteps, Watch, unwatched
from app.flows.fit_trace import FittedTrace, fit_traces
from app.flows.held_trace import HeldTrace
from app.flows.solve_message import sizes_used_for
from domain.fit import FitShape, TraceFit
from domain.fit_plot import FitPlot
from models.records import FitRequest


@dataclass(frozen=True, slots=True)
class FitTask:
    """Open files by descriptor, length and digest, and how to fit them together."""

    files: tuple[tuple[int, int, str], ...]
    request: FitRequest
    wants_plot: bool
    fragment_cap: int

    @property
    def noun(self) -> str:
        """What it is called in a refusal."""
        return "fit"

    def prepare(self) -> None:
        """Load what every fit needs."""
        import numpy as np  # noqa: F401
        import scipy.optimize
        import scipy.special  # noqa: F401

        import fitting.combine
        import fitting.recognise
        import fitting.stage  # noqa: F401

        if self.request.options.shape is FitShape.NARROWED:
            import solvers

            solvers.warm_up()

    def run(self, report: ReportSteps) -> tuple[TraceFit, FitPlot | None]:
        """Read and fit. Raises as `fit_traces` does."""
        fitted = fit_traces(
            [
                HeldTrace.in_file(descriptor, content_bytes=length, digest=digest)
                for descriptor, length, digest in self.files
            ],
            self.request,
            sizes_used=sizes_used_for(self.request.message_bytes, fragment_cap=self.fragment_cap),
            wants_plot=self.wants_plot,
        )
        return fitted.fit, fitted.plot


class FitApart:
    """A fit in a process of its own. `run` blocks; `cancel` may be called by another thread."""

    def __init__(
        self,
        traces: Sequence[HeldTrace],
        request: FitRequest,
        *,
        memory_bytes: int,
        fragment_cap: int,
        wants_plot: bool = False,
    ) -> None:
        self._traces = tuple(traces)
        self._open = ExitStack()
        files = tuple(
            (self._descriptor(trace), trace.content_bytes, trace.digest) for trace in traces
        )
        self._request = request
        self._child = Apart(
            FitTask(files, request, wants_plot, fragment_cap),
            memory_bytes=memory_bytes,
            descriptors=[descriptor for descriptor, _, _ in files],
        )

    def run(self, watch: Watch = unwatched) -> FittedTrace:
        """The fit. Raises as `fit_traces` does, Cancelled, LimitReached and SolverFailed."""
        with self._open:
            fit, plot = self._child.run(watch)
        return FittedTrace(fit, self._traces, self._request, plot)

    def cancel(self) -> None:
        """Nobody waits any more: kill the process."""
        self._child.cancel()

    def _descriptor(self, trace: HeldTrace) -> int:
        if trace.descriptor is not None:
            return trace.descriptor
        file = self._open.enter_context(_unnamed_file())
        for piece in trace.pieces():
            file.write(piece)
        file.flush()
        return file.fileno()


def _unnamed_file() -> IO[bytes]:
    return tempfile.TemporaryFile()
