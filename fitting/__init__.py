"""Traces to stages: readers turn a file into a trace, fits turn traces into stages with errors.

from fitting import fit, read
found = fit([read(content)])
"""

from __future__ import annotations

from collections.abc import Sequence

from domain.conditions import NO_CHOICE, RowChoice
from domain.errors import UnreadableTrace
from domain.fit import FitOptions, StepGroup, TraceFit
from domain.fit_plot import FitPlot
from domain.measurement import Reading, Trace, TraceKind
from domain.table_columns import parse_columns
from domain.trace_formats import TraceFormat

__all__ = [
    "fit",
    "formats",
    "grouped",
    "is_of_a_tool",
    "join",
    "measured_sizes",
    "part_within",
    "plot",
    "prepared",
    "read",
]


def read(
    content: bytes,
    *,
    kind: TraceKind | None = None,
    columns: str | None = None,
    choice: RowChoice = NO_CHOICE,
) -> Reading:
    """Recognise and read the content of one file. `kind` is for what its layout does not tell.

    With `columns` the file is a table, whose columns that word names (`domain.table_columns`).
    `choice` takes one of several conditions, and names the test of what the file does not name.
    Raises UnreadableTrace; where nothing was recognised, UnrecognisedTrace says what is nearest.
    InvalidInput names `columns` where the table does not have them, and `run` or `where` where the
    file does not have what is chosen.
    """
    if columns is not None:
        from fitting.detect import read_named

        return read_named(content, parse_columns(columns), kind, choice)
    from fitting.detect import read_recognised

    return read_recognised(content, kind, choice)


def is_of_a_tool(content: bytes) -> bool:
    """Return whether this has the layout of a format that is read, our own JSON aside."""
    from fitting.detect import reader_of
    from fitting.readers import json_trace

    try:
        return reader_of(content) is not json_trace.SPEC
    except UnreadableTrace:
        return False


def formats() -> tuple[TraceFormat, ...]:
    """Return every format that is read, for people."""
    from fitting.detect import known_formats

    return known_formats()


def fit(readings: Sequence[Reading], options: FitOptions | None = None) -> TraceFit:
    """Fit the measurements of one pipeline: one direct trace, messages seen from outside, or the
    stages that the options compose, each of files of its own.

    Raises PoorFit where the data support nothing at all, and UnreadableTrace for traces that do
    not go together.
    """
    options = options or FitOptions()
    if options.composed:
        from fitting.compose import fit_composed

        return fit_composed(readings, options)
    from fitting.combine import fit_readings

    return fit_readings(prepared(readings, options), options)


def prepared(readings: Sequence[Reading], options: FitOptions) -> Sequence[Reading]:
    """Return the readings as `fit` takes them: as those of one stage where the options say so, and
    without the samples that are left out by hand.

    Raises PoorFit where nothing would stay, and InvalidInput for what is not of one stage.
    """
    from fitting.as_stage import as_stage
    from fitting.exclusion import without_excluded

    return without_excluded(as_stage(readings, options), options)


def join(readings: Sequence[Reading]) -> Trace:
    """Return one trace of all. Raises UnreadableTrace for traces that do not go together."""
    from fitting.combine import joined

    return joined([reading.trace for reading in readings])


def grouped(reading: Reading, groups: Sequence[StepGroup]) -> Reading:
    """Return the reading of a direct trace with each group of its steps as one stage.

    Raises InvalidInput for groups that the trace does not have.
    """
    from fitting.direct import with_groups

    return with_groups(reading, groups)


def measured_sizes(trace: Trace) -> tuple[tuple[int, ...], ...]:
    """Return the distinct sizes in bytes, ascending, of each group of samples that gets a line."""
    from fitting.narrow import measured_sizes as find_sizes

    return find_sizes(trace)


def part_within(trace: Trace, min_message_bytes: int, max_message_bytes: int) -> Trace:
    """Return the samples of sizes from the least to the greatest. Raises UnreadableTrace
    for none.
    """
    from fitting.narrow import part_within as cut

    return cut(trace, min_message_bytes, max_message_bytes)


def plot(
    found: TraceFit, readings: Sequence[Reading], options: FitOptions | None = None
) -> FitPlot:
    """Return what a plot of this fit shows: samples, lines and bands, in data coordinates.

    `readings` and `options` are those that it was fitted with.
    """
    options = options or FitOptions()
    if options.composed:
        from fitting.compose import plot_composed

        return plot_composed(found, readings, options)
    from fitting.plotting import plot_fit

    return plot_fit(found, prepared(readings, options), options)
