"""Traces to stages: readers turn a file into a trace, fits turn traces into stages with errors.

from fitting import fit, read
found = fit([read(content)])
"""

from __future__ import annotations

from collections.abc import Sequence

from domain.fit import FitOptions, TraceFit
from domain.fit_plot import FitPlot
from domain.measurement import Reading, TraceKind

__all__ = ["fit", "plot", "read"]


def read(content: bytes, *, kind: TraceKind | None = None) -> Reading:
    """Recognise and read the content of one file. `kind` is for what its layout does not tell.

    Raises UnreadableTrace, which says what was looked for where nothing was recognised.
    """
    from fitting.recognise import read_recognised

    return read_recognised(content, kind)


def fit(readings: Sequence[Reading], options: FitOptions | None = None) -> TraceFit:
    """Fit the measurements of one pipeline: one direct trace, or messages seen from outside.

    Raises PoorFit where the data support nothing at all, and UnreadableTrace for traces that do
    not go together.
    """
    from fitting.combine import fit_readings

    return fit_readings(readings, options or FitOptions())


def plot(
    found: TraceFit, readings: Sequence[Reading], options: FitOptions | None = None
) -> FitPlot:
    """What a plot of this fit shows: samples, lines and bands, in data coordinates.

    `readings` and `options` are those that it was fitted with.
    """
    from fitting.plotting import plot_fit

    return plot_fit(found, readings, options or FitOptions())
