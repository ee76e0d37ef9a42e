"""Measurements to stages: read the text, fit its stages, and on request store both as a profile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.flows.questions import Measurement
from domain.errors import UnreadableTrace
from domain.fit import TraceFit
from domain.fit_plot import FitPlot
from domain.measurement import TraceKind
from domain.profile import Origin, Provenance

if TYPE_CHECKING:
    from domain.profile import HardwareProfile
    from models.session import UnitOfWork

KINDS = tuple(TraceKind)


@dataclass(frozen=True, slots=True)
class FittedTrace:
    """A fit and the texts that it came from, in the order in which they were given.

    `plot` is there where it was wanted.
    """

    fit: TraceFit
    contents: tuple[bytes, ...]
    plot: FitPlot | None = None


@dataclass(frozen=True, slots=True)
class SavedFit:
    """A fit that was stored as a profile's new current revision."""

    fit_id: str
    trace_digest: str
    profile: HardwareProfile


def fit_trace(
    measurement: Measurement, *, field: str = "measurements", wants_plot: bool = False
) -> FittedTrace:
    """Read and fit one trace. Raises UnreadableTrace, also for an unknown kind, and PoorFit."""
    content = _utf8(measurement.content, field)
    return fit_bytes(content, kind=measurement.kind, wants_plot=wants_plot)


def fit_bytes(content: bytes, *, kind: str | None = None, wants_plot: bool = False) -> FittedTrace:
    """Read and fit the bytes of one file. Raises as `fit_trace` does."""
    return _fitted(((content, kind),), wants_plot=wants_plot)


def fit_measurements(measurements: tuple[Measurement, ...]) -> FittedTrace:
    """The one fit of all measurements of one question. Raises as `fit_trace` does."""
    return _fitted(tuple((_utf8(one.content, "measurements"), one.kind) for one in measurements))


def _fitted(
    given: tuple[tuple[bytes, str | None], ...], *, wants_plot: bool = False
) -> FittedTrace:
    from fitting import fit, plot, read

    readings = []
    for content, kind in given:
        if kind not in (None, *KINDS):
            raise UnreadableTrace(f"expected kind to be one of {', '.join(KINDS)}", field="kind")
        readings.append(read(content, kind=None if kind is None else TraceKind(kind)))
    found = fit(readings)
    contents = tuple(content for content, _ in given)
    return FittedTrace(found, contents, plot(found, readings) if wants_plot else None)


def save_fit(unit: UnitOfWork, fitted: FittedTrace, *, name: str) -> SavedFit:
    """Store trace, fit and profile in this unit of work. Raises MeasurementMissing."""
    model = fitted.fit.to_model()
    digest, *_ = [unit.traces.add(content, kind=fitted.fit.kind) for content in fitted.contents]
    fit_id = unit.fits.add(digest, fitted.fit)
    profile = unit.profiles.save(
        name,
        model,
        Provenance(Origin.FIT, f"{fitted.fit.method} of a {fitted.fit.kind} trace", fit_id),
    )
    return SavedFit(fit_id, digest, profile)


def _utf8(text: str, field: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise UnreadableTrace("expected text without lone surrogates", field=field) from None
