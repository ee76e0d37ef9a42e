"""Direct measurements to stages: one fit a stage over all samples (Wang98 sec. 5.2).

Steps that run at the same time (the network DMA of sender and receiver), or one after the other on
one processor, are one abstract stage: the request says which. Where the time of whole messages was
measured too, the data say whether some do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from domain.errors import InvalidInput
from domain.fit import Combine, FitOptions, StepGroup, TraceFit, WholeMessages
from domain.measurement import DirectTrace, Reading, TraceKind

_FIELD = "groups"
Column = tuple[str, Sequence[float]]


def fit_direct(
    trace: DirectTrace, options: FitOptions, *, understood: tuple[tuple[str, str], ...] = ()
) -> TraceFit:
    """Return a fit for every stage. Raises PoorFit where the trace cannot support one,
    InvalidInput.
    """
    # NumPy is loaded for a fit, not where this package is only named.
    from fitting.overlap import explain_total, timed_whole
    from fitting.preemption import without_preempted
    from fitting.stage import fit_stage

    columns = abstract_stages(trace, options.groups)
    fitted = [fit_stage(name, trace.message_bytes, times, options) for name, times in columns]
    fitted, said = without_preempted(fitted, trace.message_bytes, columns, options)
    stages = [stage for stage, _ in fitted]
    notices = [*said, *(notice for _, found in fitted for notice in found)]
    whole: tuple[WholeMessages, ...] = ()
    if trace.total_us is not None:
        notices[:0] = explain_total(trace.message_bytes, columns, trace.total_us)
        model = [stage.to_stage() for stage in stages]
        whole = timed_whole(trace.message_bytes, trace.total_us, model)
    return TraceFit(
        kind=TraceKind.DIRECT,
        method=options.method,
        understood=understood,
        stages=tuple(stages),
        notices=tuple(notices),
        timed_whole=whole,
        events=trace.events,
    )


def abstract_stages(trace: DirectTrace, groups: Sequence[StepGroup]) -> tuple[Column, ...]:
    """Return the columns with every group combined into one, in order. Raises InvalidInput."""
    begins = _check_groups(trace.stage_names, groups)
    out, place = list[Column](), 0
    while place < len(trace.stage_names):
        group = begins.get(place)
        width = 1 if group is None else len(group.steps)
        parts = trace.stage_us[place : place + width]
        if group is None:
            out.append((trace.stage_names[place], parts[0]))
        else:
            out.append((group.name, _combined(parts, group.combine)))
        place += width
    return tuple(out)


def with_groups(reading: Reading, groups: Sequence[StepGroup]) -> Reading:
    """Return the reading of a direct trace with each group of its steps as one stage.

    Raises InvalidInput.
    """
    trace = reading.trace
    assert isinstance(trace, DirectTrace)
    columns = abstract_stages(trace, groups)
    names, stage_us = (tuple(part) for part in zip(*columns, strict=True))
    return replace(reading, trace=replace(trace, stage_names=names, stage_us=stage_us, events=None))


def _combined(parts: Sequence[Sequence[float]], combine: Combine) -> Sequence[float]:
    import numpy as np

    rows = np.asarray(parts, dtype=np.float64)
    out = rows.max(axis=0) if combine is Combine.OVERLAP else rows.sum(axis=0)
    return tuple(out.tolist())


def _check_groups(names: tuple[str, ...], groups: Sequence[StepGroup]) -> dict[int, StepGroup]:
    """Where each group begins."""
    places, begins, used = {name: at for at, name in enumerate(names)}, {}, set[int]()
    for number, group in enumerate(groups):
        _refuse(len(group.steps) < 2, number, "expected two steps or more")
        unknown = [step for step in group.steps if step not in places]
        _refuse(bool(unknown), number, "a step is not in the trace, which has " + _listed(names))
        taken = sorted(places[step] for step in group.steps)
        _refuse(
            len(set(taken)) < len(taken) or not used.isdisjoint(taken),
            number,
            "a step is used twice",
        )
        _refuse(
            taken != list(range(taken[0], taken[0] + len(taken))),
            number,
            "the steps of a group must be neighbours in the trace, which has " + _listed(names),
        )
        used.update(taken)
        begins[taken[0]] = group
    left = [name for at, name in enumerate(names) if at not in used]
    stages = [*left, *(group.name for group in groups)]
    for number, group in enumerate(groups):
        _refuse(stages.count(group.name) > 1, number, "its name is that of another stage")
    return begins


def _refuse(wrong: object, number: int, rule: str) -> None:
    if wrong:
        raise InvalidInput(f"group {number + 1}: {rule}", field=_FIELD)


def _listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:8])
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"
