"""Measurements: fits, what is stored of them, and what to measure next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sluice_client.calls import Answer, Call, get, reads, send
from sluice_client.calls import segment as one_segment
from sluice_client.fit_answers import Fit, FitPlot, MeasurementPlan
from sluice_client.operations.sources import measurements_json
from sluice_client.shapes import ComposedStage, ExcludedSample, Measurement, StepGroup

_FIT_LIMIT_S = 120.0  # the service's own, for a long file


def fit(
    trace: bytes | str,
    *,
    content_type: str = "application/octet-stream",
    kind: str | None = None,
    method: str | None = None,
    shape: str | None = None,
    max_ranges: int | None = None,
    groups: Sequence[StepGroup] = (),
    excluded: Sequence[ExcludedSample] = (),
    as_stage: str | None = None,
    columns: str | None = None,
    test: str | None = None,
    run: int | None = None,
    where: str | None = None,
    total_is_uncut: bool | None = None,
    several_at_once: bool | None = None,
    stages_overlap: bool | None = None,
    message_bytes: int | None = None,
    save_as: str | None = None,
    plot: bool | None = None,
) -> Call[Fit]:
    """Fit one file of measurements, as it was written; gzip too.

    The service detects formats by their content. `content_type` "application/json" is for its own
    JSON format alone. `columns` are those of a table, as in "size=bytes,time=copy:ms"; `test` is
    the test of what the file does not name, `run` the one to take of several, and `where` which
    conditions, as in "connections=1".
    `total_is_uncut` says that nothing cut the messages whose latencies were measured,
    `several_at_once` whether a stage handles several fragments at once, and `stages_overlap`
    whether stages work on different fragments at the same time.
    """
    query = _fit_query(
        method,
        shape,
        max_ranges,
        groups,
        as_stage,
        columns,
        test,
        run,
        where,
        total_is_uncut,
        several_at_once,
        stages_overlap,
        message_bytes,
        save_as,
        plot,
    )
    query["exclude"] = [sample.as_word() for sample in excluded]
    return Call(
        "POST",
        "/fit",
        reads(Fit),
        {"kind": kind, **query},
        trace.encode() if isinstance(trace, str) else trace,
        {"Content-Type": content_type},
        may_repeat=save_as is None,
        takes_s=_FIT_LIMIT_S,
    )


def fit_together(
    measurements: Sequence[Measurement],
    *,
    method: str | None = None,
    shape: str | None = None,
    max_ranges: int | None = None,
    groups: Sequence[StepGroup] = (),
    excluded: Sequence[ExcludedSample] = (),
    as_stage: str | None = None,
    columns: str | None = None,
    test: str | None = None,
    run: int | None = None,
    where: str | None = None,
    total_is_uncut: bool | None = None,
    several_at_once: bool | None = None,
    stages_overlap: bool | None = None,
    message_bytes: int | None = None,
    save_as: str | None = None,
    plot: bool | None = None,
) -> Call[Fit]:
    """Fit several files that are measurements of one pipeline."""
    call = send(
        "POST",
        "/fit",
        reads(Fit),
        {
            "measurements": measurements_json(measurements),
            "excluded": [sample.as_json() for sample in excluded],
        },
        may_repeat=save_as is None,
        takes_s=_FIT_LIMIT_S,
    )
    query = _fit_query(
        method,
        shape,
        max_ranges,
        groups,
        as_stage,
        columns,
        test,
        run,
        where,
        total_is_uncut,
        several_at_once,
        stages_overlap,
        message_bytes,
        save_as,
        plot,
    )
    return replace(call, query=query)


def compose(
    stages: Sequence[ComposedStage],
    *,
    method: str | None = None,
    shape: str | None = None,
    max_ranges: int | None = None,
    excluded: Sequence[ExcludedSample] = (),
    save_as: str | None = None,
    plot: bool | None = None,
) -> Call[Fit]:
    """Fit a pipeline of stages that were measured each by itself, in files of their own."""
    document = {
        "stages": [
            {
                "name": stage.name,
                "measurements": measurements_json(stage.measurements),
                "step": stage.step,
                "processor": stage.processor,
                "columns": stage.columns,
                "test": stage.test,
                "run": stage.run,
                "where": stage.where,
            }
            for stage in stages
        ],
        "method": method,
        "shape": shape,
        "max_ranges": max_ranges,
        "excluded": [sample.as_json() for sample in excluded],
        "save_as": save_as,
        "plot": plot,
    }
    may_repeat = save_as is None
    return send(
        "POST", "/compose", reads(Fit), document, may_repeat=may_repeat, takes_s=_FIT_LIMIT_S
    )


def stored_fit(id: str) -> Call[Fit]:
    """Return a stored fit, by its `fit_id`."""
    return get(f"/fits/{one_segment(id)}", reads(Fit))


def fit_plot(id: str) -> Call[FitPlot]:
    """Return what a plot of a stored fit shows."""
    return get(f"/fits/{one_segment(id)}/plot", reads(FitPlot))


def trace(digest: str) -> Call[bytes]:
    """Return a stored trace, byte for byte as it was measured."""
    return get(f"/traces/{one_segment(digest)}", _body)


def plan_measurements(
    min_message_bytes: int,
    max_message_bytes: int,
    *,
    measurements: Measurement | Sequence[Measurement] | None = None,
    tolerance: float | None = None,
) -> Call[MeasurementPlan]:
    """Return which message sizes to measure next, from outside."""
    document = {
        "min_message_bytes": min_message_bytes,
        "max_message_bytes": max_message_bytes,
        "measurements": measurements_json(measurements),
        "tolerance": tolerance,
    }
    return send("POST", "/measurement-plans", reads(MeasurementPlan), document, may_repeat=True)


def _fit_query(
    method: str | None,
    shape: str | None,
    max_ranges: int | None,
    groups: Sequence[StepGroup],
    as_stage: str | None,
    columns: str | None,
    test: str | None,
    run: int | None,
    where: str | None,
    total_is_uncut: bool | None,
    several_at_once: bool | None,
    stages_overlap: bool | None,
    message_bytes: int | None,
    save_as: str | None,
    plot: bool | None,
) -> dict[str, object]:
    return {
        "method": method,
        "shape": shape,
        "max_ranges": max_ranges,
        "group": [group.as_word() for group in groups],
        "as_stage": as_stage,
        "columns": columns,
        "test": test,
        "run": run,
        "where": where,
        "total_is_uncut": total_is_uncut,
        "several_at_once": several_at_once,
        "stages_overlap": stages_overlap,
        "message_bytes": message_bytes,
        "save_as": save_as,
        "plot": plot,
    }


def _body(answer: Answer) -> bytes:
    return answer.body
