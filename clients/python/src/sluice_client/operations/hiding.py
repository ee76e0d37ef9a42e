"""Messages that are hidden behind a calculation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sluice_client.calls import Call, get, reads, segment, send
from sluice_client.fit_answers import Fit
from sluice_client.hide_answers import Hidden
from sluice_client.operations.as_job import as_job
from sluice_client.operations.sources import source_json
from sluice_client.shapes import (
    Aggregate,
    Constraints,
    FitOptions,
    Granularity,
    HostStages,
    Measurement,
    Pipeline,
    Processes,
)

_HIDE_LIMIT_S = 10.0  # the service's own, where none is given


def hide(
    message_bytes: int | None = None,
    *,
    calculation_us: float | None = None,
    pipeline: Pipeline | None = None,
    aggregate: Aggregate | None = None,
    profile: str | None = None,
    measurements: Measurement | Sequence[Measurement] | None = None,
    fit: Fit | Mapping[str, Any] | None = None,
    fit_id: str | None = None,
    fit_options: FitOptions | None = None,
    granularity: Granularity | None = None,
    constraints: Constraints | None = None,
    messages: int | None = None,
    messages_are: str | None = None,
    instructions: float | None = None,
    instructions_per_us: float | None = None,
    hideable_fraction: float | None = None,
    streamed: bool | None = None,
    hiding_overhead_us: float | None = None,
    host_stages: HostStages | None = None,
    exchange: str | None = None,
    min_gain: float | None = None,
    processes: Processes | None = None,
    relative_gap: float | None = None,
    time_limit_s: float | None = None,
) -> Call[Hidden]:
    """Return what hiding a message behind a calculation gains, and the fragments for it.

    Exactly one of where stages may come from (see `optimize`) and `granularity`; with the former a
    message, and `calculation_us` or `instructions` with `instructions_per_us`.
    """
    document = {
        "message_bytes": message_bytes,
        "calculation_us": calculation_us,
        **source_json(pipeline, aggregate, profile, measurements, fit, fit_id, fit_options),
        "granularity": granularity and granularity.as_json(),
        "constraints": constraints and constraints.as_json(),
        "messages": messages,
        "messages_are": messages_are,
        "instructions": instructions,
        "instructions_per_us": instructions_per_us,
        "hideable_fraction": hideable_fraction,
        "streamed": streamed,
        "hiding_overhead_us": hiding_overhead_us,
        "host_stages": host_stages and host_stages.as_json(),
        "exchange": exchange,
        "min_gain": min_gain,
        "processes": processes and processes.as_json(),
        "relative_gap": relative_gap,
        "time_limit_s": time_limit_s,
    }
    return send(
        "POST",
        "/hide",
        reads(Hidden),
        document,
        may_repeat=True,
        takes_s=time_limit_s or _HIDE_LIMIT_S,
    )


start_hide = as_job(hide, may_repeat=True)


def hidden(id: str) -> Call[Hidden]:
    """Return a stored answer about hiding."""
    return get(f"/hide/{segment(id)}", reads(Hidden))
