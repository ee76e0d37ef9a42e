"""Measurements to stages: read the text, fit its stages, and on request store both as a profile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.errors import InconsistentInput
from app.flows.questions import Measurement
from domain.errors import UnreadableTrace
from domain.measurement import PipelineFit
from domain.profile import Origin, Provenance

if TYPE_CHECKING:
    from domain.profile import HardwareProfile
    from models.session import UnitOfWork

DIRECT = "direct"
KINDS = (DIRECT,)


@dataclass(frozen=True, slots=True)
class FittedTrace:
    """A fit and the text that it came from."""

    fit: PipelineFit
    content: bytes


@dataclass(frozen=True, slots=True)
class SavedFit:
    """A fit that was stored as a profile's new current revision."""

    fit_id: str
    trace_digest: str
    profile: HardwareProfile


def fit_trace(measurement: Measurement, *, field: str = "measurements") -> FittedTrace:
    """Read and fit one trace. Raises UnreadableTrace, also for an unknown kind, and PoorFit."""
    from fitting.direct import fit_direct
    from fitting.readers.csv_direct import read_direct_csv

    if measurement.kind not in (None, *KINDS):
        raise UnreadableTrace(
            f"kind {measurement.kind} is not read by this version; it reads {', '.join(KINDS)}",
            field="kind",
        )
    fit = fit_direct(read_direct_csv(measurement.content))
    return FittedTrace(fit, _utf8(measurement.content, field))


def fit_bytes(content: bytes, *, kind: str | None = None) -> FittedTrace:
    """Read and fit the bytes of one file. Raises as `fit_trace` does."""
    try:
        text = content.decode()
    except UnicodeDecodeError as refusal:
        raise UnreadableTrace(f"byte {refusal.start} is not UTF-8", field="measurements") from None
    return FittedTrace(fit_trace(Measurement(text, kind)).fit, content)


def fit_measurements(measurements: tuple[Measurement, ...]) -> FittedTrace:
    """The fit of all measurements of one question. Raises as `fit_trace` does."""
    if len(measurements) != 1:
        raise InconsistentInput(
            "expected one direct measurement; one trace of all stages gives the whole pipeline",
            field="measurements",
        )
    return fit_trace(measurements[0])


def save_fit(unit: UnitOfWork, fitted: FittedTrace, *, name: str) -> SavedFit:
    """Store trace, fit and profile in this unit of work."""
    digest = unit.traces.add(fitted.content, kind=fitted.fit.kind)
    fit_id = unit.fits.add(digest, fitted.fit)
    profile = unit.profiles.save(
        name,
        fitted.fit.to_pipeline(),
        Provenance(Origin.FIT, f"{fitted.fit.method} of a {fitted.fit.kind} trace", fit_id),
    )
    return SavedFit(fit_id, digest, profile)


def _utf8(text: str, field: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise UnreadableTrace("expected text without lone surrogates", field=field) from None
