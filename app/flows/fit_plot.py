"""The plot of a fit that is stored, from the traces that are stored with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from domain.errors import UnreadableTrace
from domain.fit import TraceFit
from domain.fit_plot import FitPlot

if TYPE_CHECKING:
    from domain.measurement import Reading
    from models.session import Store


@dataclass(frozen=True, slots=True)
class StoredFit:
    """A fit and the files that it was made from, as they were stored."""

    fit: TraceFit
    contents: tuple[bytes, ...]

    def __len__(self) -> int:
        """How many bytes the files have together."""
        return sum(map(len, self.contents))


def find_fit(store: Store, fit_id: str) -> StoredFit:
    """A stored fit with its traces. Raises NotFound."""
    with store.reading() as unit:
        digest, fit = unit.fits.get(fit_id)
        return StoredFit(fit, (unit.traces.get(digest),))


def plot_stored(stored: StoredFit) -> FitPlot:
    """Read the files again and say what a plot shows.

    Stages whose samples are not in them, groups of steps for one, show the medians of sizes.
    """
    from fitting import plot

    readings = [_reading(content, stored.fit) for content in stored.contents]
    return plot(stored.fit, [reading for reading in readings if reading is not None])


def _reading(content: bytes, fit: TraceFit) -> Reading | None:
    """The file as it was read then; by the fit's kind where it does not tell its own.

    What this version reads no longer is left out, and the fit shown without its samples.
    """
    from fitting import read

    for kind in (None, fit.kind):
        try:
            return read(content, kind=kind)
        except UnreadableTrace:
            continue
    return None
