"""The samples of one stage to its fit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from domain.errors import PoorFit
from domain.fit import FitMethod, FitOptions, LineFit, StageFit, Verdict
from domain.pipeline import MAX_NS_PER_BYTE
from domain.solution import Notice
from domain.units import format_bytes
from fitting.ordinary import fit_line

LEAST_SAMPLES = 3  # two fix the line; the third is the least that tells how far off it may be


def fit_stage(
    name: str, message_bytes: Sequence[int], times_us: Sequence[float], options: FitOptions
) -> tuple[StageFit, tuple[Notice, ...]]:
    """Fit one stage: sizes (N,) in bytes, times (N,) in µs. Raises PoorFit. O(N)."""
    _check_support(message_bytes)
    x = np.asarray(message_bytes, dtype=np.float64)
    line = fit_line(x, np.asarray(times_us, dtype=np.float64))
    if line.b * 1000.0 > MAX_NS_PER_BYTE:
        raise PoorFit(
            f"the per-byte cost of a stage comes out above {MAX_NS_PER_BYTE:g} ns per byte; "
            "are its times in µs and its sizes in bytes?",
            field="measurements",
        )
    low, high = line.b_interval
    clipped = {None: (), "a": ("overhead_us",), "b": ("ns_per_byte",)}[line.clipped]
    fitted = LineFit(
        overhead_us=line.a,
        ns_per_byte=line.b * 1000.0,
        overhead_std_error_us=line.a_error,
        ns_per_byte_std_error=line.b_error * 1000.0,
        correlation=0.0,
        overhead_us_interval=(max(0.0, line.a_interval[0]), line.a_interval[1]),
        ns_per_byte_interval=(max(0.0, low * 1000.0), high * 1000.0),
        overhead_verdict=Verdict.SUPPORTED,
        ns_per_byte_verdict=Verdict.SUPPORTED,
        from_bytes=int(x.min()),
        to_bytes=int(x.max()),
        up_to_bytes=None,
        num_samples=len(x),
        clipped=clipped,
    )
    stage = StageFit(
        name=name,
        method=FitMethod.ORDINARY,
        lines=(fitted,),
        sizes=(),
        num_samples=len(x),
        outliers=0,
        relative_residual_std=0.0,
        residual_std_us=line.residual_std,
        r_squared=line.r_squared,
    )
    return stage, tuple(_clip_notice(name, field) for field in clipped)


def _check_support(message_bytes: Sequence[int]) -> None:
    smallest, largest = min(message_bytes), max(message_bytes)
    if smallest == largest:
        raise PoorFit(
            f"all rows measure messages of {format_bytes(smallest)}; to tell overhead and per-byte "
            "cost apart, rows of at least 2 distinct message sizes are needed",
            field="measurements",
        )
    if len(message_bytes) < LEAST_SAMPLES:
        raise PoorFit(
            f"expected at least {LEAST_SAMPLES} rows, got {len(message_bytes)}: a line through two "
            "samples leaves nothing to estimate its error from; add a size or a repetition",
            field="measurements",
        )


def _clip_notice(name: str, field: str) -> Notice:
    if field == "overhead_us":
        return Notice(
            "negative_overhead_clipped",
            f"stage {name}: the estimated overhead was negative and is set to 0; "
            "ns_per_byte was fitted again through the origin",
        )
    return Notice(
        "negative_ns_per_byte_clipped",
        f"stage {name}: the estimated per-byte cost was negative and is set to 0; "
        "overhead_us is the mean time",
    )
