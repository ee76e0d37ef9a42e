"""Direct measurements to stages: one regression a stage over all samples (Wang98 sec. 5.2).

Ordinary least squares trusts every sample alike, in µs: outliers and noise that grows with the
size pull the overhead most, and the standard errors say by how much it is uncertain.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from domain.errors import PoorFit
from domain.measurement import DirectTrace, PipelineFit, StageFit
from domain.pipeline import MAX_NS_PER_BYTE
from domain.solution import Notice
from domain.units import format_bytes

if TYPE_CHECKING:
    from fitting.ordinary import LineFit

METHOD = "ordinary_least_squares"
LEAST_SAMPLES = 3  # two fix the line; the third is the least that tells how far off it may be


def fit_direct(trace: DirectTrace) -> PipelineFit:
    """A line for every stage, with standard errors and 95 % intervals.

    A negative estimate is clipped to 0, the other one fitted again under that constraint, and a
    notice says so. Raises PoorFit where the trace cannot support a line. O(rows x stages).
    """
    _check_support(trace)
    # NumPy is loaded for a fit, not for whoever only names this room.
    import numpy as np

    from fitting.ordinary import fit_line

    x = np.asarray(trace.message_bytes, dtype=np.float64)
    stages = tuple(
        _stage_fit(name, fit_line(x, np.asarray(times, dtype=np.float64)), len(trace))
        for name, times in zip(trace.stage_names, trace.stage_us, strict=True)
    )
    return PipelineFit(
        kind="direct",
        method=METHOD,
        stages=stages,
        understood=understood(trace),
        notices=tuple(_clip_notice(stage) for stage in stages if stage.clipped),
    )


def understood(trace: DirectTrace) -> tuple[tuple[str, str], ...]:
    """What was read, said back so that a misreading is seen: (name, value) pairs."""
    repeats = Counter(trace.message_bytes)
    fewest, most = min(repeats.values()), max(repeats.values())
    return (
        ("format", "direct CSV"),
        ("time_unit", "µs"),
        ("size_unit", "bytes"),
        ("rows", str(len(trace))),
        ("sizes", f"{len(repeats)}: {format_bytes(min(repeats))} to {format_bytes(max(repeats))}"),
        ("rows_per_size", str(fewest) if fewest == most else f"{fewest} to {most}"),
        ("stages", ", ".join(trace.stage_names)),
    )


def _check_support(trace: DirectTrace) -> None:
    smallest, largest = min(trace.message_bytes), max(trace.message_bytes)
    if smallest == largest:
        raise PoorFit(
            f"all rows measure messages of {format_bytes(smallest)}; to tell overhead and per-byte "
            "cost apart, rows of at least 2 distinct message sizes are needed",
            field="measurements",
        )
    if len(trace) < LEAST_SAMPLES:
        raise PoorFit(
            f"expected at least {LEAST_SAMPLES} rows, got {len(trace)}: a line through two samples "
            "leaves nothing to estimate its error from; add a size or a repetition",
            field="measurements",
        )


def _stage_fit(name: str, line: LineFit, num_samples: int) -> StageFit:
    if line.b * 1000.0 > MAX_NS_PER_BYTE:
        raise PoorFit(
            f"the per-byte cost of a stage comes out above {MAX_NS_PER_BYTE:g} ns per byte; "
            "are its times in µs and its sizes in bytes?",
            field="measurements",
        )
    low, high = line.b_interval
    return StageFit(
        name=name,
        overhead_us=line.a,
        ns_per_byte=line.b * 1000.0,
        overhead_std_error_us=line.a_error,
        ns_per_byte_std_error=line.b_error * 1000.0,
        overhead_us_interval=line.a_interval,
        ns_per_byte_interval=(low * 1000.0, high * 1000.0),
        residual_std_us=line.residual_std,
        r_squared=line.r_squared,
        num_samples=num_samples,
        clipped=_CLIPPED[line.clipped],
    )


_CLIPPED: dict[str | None, tuple[str, ...]] = {
    None: (),
    "a": ("overhead_us",),
    "b": ("ns_per_byte",),
}


def _clip_notice(stage: StageFit) -> Notice:
    if "overhead_us" in stage.clipped:
        return Notice(
            "negative_overhead_clipped",
            f"stage {stage.name}: the estimated overhead was negative and is set to 0; "
            "ns_per_byte was fitted again through the origin",
        )
    return Notice(
        "negative_ns_per_byte_clipped",
        f"stage {stage.name}: the estimated per-byte cost was negative and is set to 0; "
        "overhead_us is the mean time",
    )
