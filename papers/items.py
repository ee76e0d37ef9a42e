"""Items of papers: published numbers beside computed ones, curves, and where a paper errs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite

from domain.hiding import Activity
from domain.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Figure:
    """One number: `published` is None where the paper prints none, and it is the model's own, or
    was measured here.

    Where the paper prints a range, it is from `published` to `published_max`. `tolerance` is the
    greatest difference that agrees, in the number's own unit; None where the paper contradicts its
    number, or does not say how near it should be: it is then shown and not compared.
    """

    name: str
    unit: str
    computed: float
    published: float | None = None
    published_max: float | None = None
    tolerance: float | None = 0.0
    is_measured: bool = False  # on this machine, in place of computed

    @property
    def difference(self) -> float | None:
        """Return computed less published, or less the nearer end of a range that it is outside of.

        None for the model's own.
        """
        if self.published is None:
            return None
        nearest = self.published
        if self.published_max is not None:
            nearest = min(max(self.computed, self.published), self.published_max)
        return self.computed - nearest

    @property
    def ok(self) -> bool | None:
        """Return whether the difference is within the tolerance; None where nothing is compared."""
        difference = self.difference
        if difference is None or self.tolerance is None:
            return None
        return isfinite(difference) and abs(difference) <= self.tolerance


@dataclass(frozen=True, slots=True)
class Curve:
    """Points by ascending x, each a ring without a line where `is_mark`.

    An item's own are latencies (µs) by number of fragments; those of a plot are by its axes. No
    paper prints its curves' numbers: model's own.
    """

    name: str
    points: tuple[tuple[float, float], ...]
    is_mark: bool = False


class Scale(StrEnum):
    """What the values on an axis are."""

    BYTES = "bytes"
    COUNT = "count"
    NUMBER = "number"
    TIME_US = "time_us"


@dataclass(frozen=True, slots=True)
class PlotAxis:
    """The words beside an axis, and what its values are."""

    words: str
    scale: Scale


@dataclass(frozen=True, slots=True)
class Plot:
    """Curves over axes of their own: the model's, for a figure of the paper."""

    name: str
    title: str
    across: PlotAxis
    upwards: PlotAxis
    curves: tuple[Curve, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """A message on its way, by name: when every stage has which bytes of it."""

    name: str
    timeline: Timeline


@dataclass(frozen=True, slots=True)
class Item:
    """A table or figure of a paper. `runs` are of one message and drawn on one time axis.

    `activities` are those of an exchange that was measured.
    """

    name: str
    title: str
    source: str
    figures: tuple[Figure, ...]
    curves: tuple[Curve, ...] = ()
    remarks: tuple[str, ...] = ()
    plots: tuple[Plot, ...] = ()
    runs: tuple[Run, ...] = ()
    activities: tuple[Activity, ...] = ()

    @property
    def ok(self) -> bool:
        """Return whether no number is outside its tolerance."""
        return all(figure.ok is not False for figure in self.figures)


@dataclass(frozen=True, slots=True)
class ItemSpec:
    """An item by name, computed when it is asked for."""

    name: str
    compute: Callable[[], Item]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two statements of one paper that contradict each other, and what follows from its data."""

    where: str
    statement: str


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper, what of it is computed, and where it contradicts itself."""

    name: str
    citation: str
    items: tuple[ItemSpec, ...]
    disagreements: tuple[Disagreement, ...] = ()
