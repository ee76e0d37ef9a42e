"""The plot of a fit that is stored, from the traces that are stored with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING

from domain.errors import UnreadableTrace
from domain.fit import FitOptions, TraceFit
from domain.fit_plot import FitPlot
from domain.measurement import TraceKind

if TYPE_CHECKING:
    from domain.measurement import Reading
    from models.packing import PackedTrace
    from models.session import Store


@dataclass(frozen=True, slots=True)
class StoredFit:
    """A fit and the files that it was made from, compressed as they were stored.

    `options` are those it was made with, and `kinds` what the user said of each file, as far as
    that was kept.
    """

    fit: TraceFit
    traces: tuple[PackedTrace, ...]
    options: FitOptions = field(default_factory=FitOptions)
    kinds: tuple[TraceKind | None, ...] = ()

    def __len__(self) -> int:
        """How many bytes the files have together, expanded."""
        return sum(trace.content_bytes for trace in self.traces)


def find_fit(store: Store, fit_id: str) -> StoredFit:
    """A stored fit with its traces. Raises NotFound."""
    with store.reading() as unit:
        record = unit.fits.get(fit_id)
        traces = tuple(unit.traces.packed(digest) for digest in record.trace_digests)
        if record.request is None:
            return StoredFit(record.fit, traces)
        return StoredFit(record.fit, traces, record.request.options, record.request.kinds)


def plot_stored(stored: StoredFit) -> FitPlot:
    """Read the files again and say what a plot shows.

    Stages whose samples are not in them any more show the medians of sizes.
    """
    from fitting import plot

    said = zip_longest(stored.traces, stored.kinds[: len(stored.traces)])
    readings = [_reading(trace.content(), kind) for trace, kind in said]
    known = [reading for reading in readings if reading is not None]
    return plot(stored.fit, known, stored.options)


def _reading(content: bytes, kind: TraceKind | None) -> Reading | None:
    """The file as it was read then; None for what this version reads no longer."""
    from fitting import read

    try:
        return read(content, kind=kind)
    except UnreadableTrace:
        return None
