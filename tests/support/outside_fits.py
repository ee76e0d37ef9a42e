"""Fits of measurements from outside, made by hand: what tests of everything behind a fit need."""

from __future__ import annotations

from collections.abc import Sequence

from domain.fit import (
    END_TO_END_STAGE,
    AggregateFit,
    FitMethod,
    FitOptions,
    LineFit,
    StageFit,
    TraceFit,
    Verdict,
)
from domain.measurement import MessageTrace, Reading, Samples, TraceKind

LATENCY_CSV = "message_bytes,repetition,latency_us\n64,0,1\n4096,0,2\n"
INTERARRIVAL_CSV = "message_bytes,repetition,interarrival_us\n64,0,1\n4096,0,2\n"


def line_fit(overhead_us: float, ns_per_byte: float, up_to_bytes: int | None = None) -> LineFit:
    """A line whose intervals are a tenth of its values wide."""
    return LineFit(
        overhead_us=overhead_us,
        ns_per_byte=ns_per_byte,
        overhead_std_error_us=overhead_us / 40.0,
        ns_per_byte_std_error=ns_per_byte / 40.0,
        correlation=-0.5,
        overhead_us_interval=(0.95 * overhead_us, 1.05 * overhead_us),
        ns_per_byte_interval=(0.95 * ns_per_byte, 1.05 * ns_per_byte),
        overhead_verdict=Verdict.SUPPORTED,
        ns_per_byte_verdict=Verdict.SUPPORTED,
        from_bytes=64,
        to_bytes=65536,
        up_to_bytes=up_to_bytes,
        num_samples=20,
    )


def stage_fit(name: str, *lines: LineFit) -> StageFit:
    """A stage of these lines."""
    return StageFit(
        name=name,
        method=FitMethod.ROBUST,
        lines=lines,
        sizes=(),
        num_samples=20,
        outliers=0,
        relative_residual_std=0.02,
        residual_std_us=0.1,
        r_squared=0.999,
    )


TOTAL = stage_fit("total", line_fit(27.3, 63.37890625))
BOTTLENECK = stage_fit("bottleneck", line_fit(7.5, 24.31640625))
AGGREGATE = AggregateFit(TOTAL, BOTTLENECK)  # of Wang98 Table 1


def reading_of(content: bytes, *, kind: TraceKind | None = None) -> Reading:
    """In place of `fitting.read`: the header alone says what was measured."""
    samples = Samples((64, 4096), (1.0, 2.0))
    if b"interarrival_us" in content:
        return Reading("message CSV", MessageTrace(interarrival=samples))
    return Reading("message CSV", MessageTrace(latency=samples))


def fit_of(readings: Sequence[Reading], options: FitOptions | None = None) -> TraceFit:
    """In place of `fitting.fit`: the fit that these kinds of measurements give together."""
    kinds = {reading.trace.kind for reading in readings}
    understood = (("format", "message CSV"),)
    if len(kinds) == 2:
        return TraceFit(TraceKind.INDIRECT, FitMethod.ROBUST, understood, aggregate=AGGREGATE)
    (kind,) = kinds
    is_latency = kind is TraceKind.END_TO_END
    alone = stage_fit(END_TO_END_STAGE if is_latency else "bottleneck", line_fit(30.0, 60.0))
    return TraceFit(kind, FitMethod.ROBUST, understood, stages=(alone,))
