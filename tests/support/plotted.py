"""Fits with known numbers, and samples that go with them, for the tests of plots."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from domain.fit import FitMethod, LineFit, SizeFit, StageFit, TraceFit, Verdict
from domain.loggp import Estimate, LogGPFit, LogGPParameters
from domain.measurement import DirectTrace, Reading, SignatureTrace, TraceKind

SIZES = tuple(2**power for power in range(6, 21))


def line(
    overhead_us: float,
    ns_per_byte: float,
    *,
    up_to_bytes: int | None = None,
    from_bytes: int = SIZES[0],
    to_bytes: int = SIZES[-1],
    verdict: Verdict = Verdict.SUPPORTED,
    share: float = 0.05,
) -> LineFit:
    """A line whose standard errors are this share of the estimates; the quantile is 2.1."""
    errors = (share * overhead_us, share * ns_per_byte)
    return LineFit(
        overhead_us=overhead_us,
        ns_per_byte=ns_per_byte,
        overhead_std_error_us=errors[0],
        ns_per_byte_std_error=errors[1],
        correlation=-0.5,
        overhead_us_interval=(overhead_us - 2.1 * errors[0], overhead_us + 2.1 * errors[0]),
        ns_per_byte_interval=(ns_per_byte - 2.1 * errors[1], ns_per_byte + 2.1 * errors[1]),
        overhead_verdict=verdict,
        ns_per_byte_verdict=verdict,
        from_bytes=from_bytes,
        to_bytes=to_bytes,
        up_to_bytes=up_to_bytes,
        num_samples=10,
    )


def switched() -> tuple[LineFit, ...]:
    """A protocol switch at 8 KiB."""
    first = line(4.0, 2.0, up_to_bytes=8192, to_bytes=8192)
    return first, line(30.0, 0.5, from_bytes=16384)


def stage_fit(
    name: str,
    lines: Sequence[LineFit],
    message_bytes: Sequence[int] = (),
    times_us: Sequence[float] = (),
    *,
    outliers_a_size: int = 0,
) -> StageFit:
    """A stage's fit with these lines, and what it says of each size."""
    x, y = np.asarray(message_bytes), np.asarray(times_us)
    sizes = []
    for size in sorted(set(message_bytes)):
        times = y[x == size]
        fitted = fitted_us(lines, size)
        median = float(np.median(times))
        residual = (median - fitted) / fitted if fitted else 0.0
        sizes.append(SizeFit(size, len(times), median, fitted, residual, 0.02, outliers_a_size))
    return StageFit(
        name=name,
        method=FitMethod.ROBUST,
        lines=tuple(lines),
        sizes=tuple(sizes),
        num_samples=len(times_us),
        outliers=outliers_a_size * len(sizes),
        relative_residual_std=0.02,
        residual_std_us=1.0,
        r_squared=0.99,
    )


def fitted_us(lines: Sequence[LineFit], size: int) -> float:
    """The line's time at this size; ends of ranges are inclusive."""
    part = next(one for one in lines if one.up_to_bytes is None or size <= one.up_to_bytes)
    return part.overhead_us + part.ns_per_byte * size / 1000.0


def samples(
    lines: Sequence[LineFit], *, repetitions: int = 8, seed: int = 1
) -> tuple[list[int], list[float]]:
    """Sizes and times around these lines, 2 % noise."""
    noise = np.random.default_rng(seed)
    sizes = [size for size in SIZES for _ in range(repetitions)]
    factors = np.exp(0.02 * noise.standard_normal(len(sizes)))
    times = [
        fitted_us(lines, size) * float(factor) for size, factor in zip(sizes, factors, strict=True)
    ]
    return sizes, times


def direct_fit(*stages: StageFit) -> TraceFit:
    """The fit of a direct trace with these stages."""
    return TraceFit(
        TraceKind.DIRECT,
        FitMethod.ROBUST,
        (("format", "direct CSV"), ("rows", "120")),
        stages,
    )


def direct_reading(
    names: Sequence[str], message_bytes: Sequence[int], columns: Sequence[Sequence[float]]
) -> Reading:
    """A direct trace as read."""
    rows = len(message_bytes)
    trace = DirectTrace(tuple(names), message_bytes, [0] * rows, tuple(columns))
    return Reading("direct CSV", trace)


def one_stage(
    name: str = "wire", *, repetitions: int = 8, outliers_a_size: int = 0
) -> tuple[TraceFit, list[Reading]]:
    """A stage with a protocol switch, and its trace."""
    lines = switched()
    sizes, times = samples(lines, repetitions=repetitions)
    fit = stage_fit(name, lines, sizes, times, outliers_a_size=outliers_a_size)
    return direct_fit(fit), [direct_reading([name], sizes, [times])]


def estimate(value: float) -> Estimate:
    """5 % up and down."""
    return Estimate(value, (0.95 * value, 1.05 * value))


def signatures() -> tuple[TraceFit, list[Reading]]:
    """LogP signatures of two sizes, and a fit of them."""
    rows = [
        (size, burst, computation, 2.0 + computation + size / 1000.0 + repetition)
        for size in (64, 1024)
        for computation in (0.0, 5.0, 20.0)
        for burst in (1, 4, 16, 64)
        for repetition in (0.0, 1.0, 2.0)
    ]
    sizes, bursts, computation, costs = zip(*rows, strict=True)
    found = LogGPFit(
        (
            LogGPParameters(64, estimate(2.0), estimate(3.0), estimate(6.0), None, None),
            LogGPParameters(1024, estimate(2.5), None, estimate(9.0), estimate(4.0), estimate(20)),
        ),
        estimate(3.1),
        ("send and receive do not overlap",),
    )
    fit = TraceFit(
        TraceKind.LOGP,
        FitMethod.ROBUST,
        (("format", "signature CSV"),),
        (stage_fit("send", [line(2.0, 0.5)]),),
        loggp=found,
    )
    return fit, [Reading("signature CSV", SignatureTrace(sizes, bursts, computation, costs))]
