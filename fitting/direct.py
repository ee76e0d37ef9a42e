"""Direct measurements to stages: one fit a stage over all samples (Wang98 sec. 5.2)."""

from __future__ import annotations

from domain.fit import FitOptions, TraceFit
from domain.measurement import DirectTrace, TraceKind
from domain.solution import Notice


def fit_direct(
    trace: DirectTrace, options: FitOptions, *, understood: tuple[tuple[str, str], ...] = ()
) -> TraceFit:
    """A fit for every stage. Raises PoorFit where the trace cannot support one."""
    # NumPy is loaded for a fit, not for whoever only names this room.
    from fitting.stage import fit_stage

    stages, notices = [], list[Notice]()
    for name, times in zip(trace.stage_names, trace.stage_us, strict=True):
        stage, found = fit_stage(name, trace.message_bytes, times, options)
        stages.append(stage)
        notices += found
    return TraceFit(
        kind=TraceKind.DIRECT,
        method=options.method,
        understood=understood,
        stages=tuple(stages),
        notices=tuple(notices),
    )
