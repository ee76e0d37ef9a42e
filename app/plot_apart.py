"""Plots a long stored trace in a process of its own, with a memory cap and a time limit."""

from __future__ import annotations

from dataclasses import dataclass

from app.apart import Apart, ReportSteps
from app.flows.fit_plot import StoredFit, plot_stored
from domain.fit_plot import FitPlot


@dataclass(frozen=True, slots=True)
class PlotTask:
    """The stored fit with its traces."""

    stored: StoredFit

    @property
    def noun(self) -> str:
        """What it is called in a refusal."""
        return "plot"

    def prepare(self) -> None:
        """Load what every plot needs."""
        import fitting.plotting
        import fitting.recognise  # noqa: F401

    def run(self, report: ReportSteps) -> FitPlot:
        """Read the traces and plot. Raises SluiceError."""
        return plot_stored(self.stored)


def plot_apart(stored: StoredFit, *, memory_bytes: int) -> FitPlot:
    """Plot in a child process; blocks. Raises LimitReached and SolverFailed."""
    return Apart(PlotTask(stored), memory_bytes=memory_bytes).run()
