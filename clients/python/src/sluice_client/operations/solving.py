"""Schedules: optimize, compare, simulate, thresholds, crossovers, stored answers, the lookup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from sluice_client.answers import (
    Comparison,
    Explanation,
    Optimization,
    OptimizationSummary,
    Page,
    Schedule,
    Simulation,
)
from sluice_client.calls import Call, get, reads, reads_page, segment, send
from sluice_client.crossover_answers import Crossovers
from sluice_client.fit_answers import Fit
from sluice_client.operations.as_job import as_job
from sluice_client.operations.sources import path_json, source_json
from sluice_client.shapes import (
    Aggregate,
    Constraints,
    Delivery,
    FitOptions,
    Measurement,
    Pipeline,
)
from sluice_client.threshold_answers import Thresholds
from sluice_client.transfer_answers import DecidedTransfers
from sluice_client.uncertainty import UncertaintyOptions

_DEFAULT_LIMIT_S = 10.0  # the service's own, where the request names none


def optimize(
    message_bytes: int,
    *,
    pipeline: Pipeline | None = None,
    aggregate: Aggregate | None = None,
    profile: str | None = None,
    measurements: Measurement | Sequence[Measurement] | None = None,
    fit: Fit | Mapping[str, Any] | None = None,
    fit_id: str | None = None,
    fit_options: FitOptions | None = None,
    strategy: str | None = None,
    static_bytes: int | None = None,
    constraints: Constraints | None = None,
    allow_refragmentation: bool | None = None,
    relative_gap: float | None = None,
    time_limit_s: float | None = None,
    save_as: str | None = None,
    uncertainty: UncertaintyOptions | None = None,
    transfers: str | Mapping[str, Any] | None = None,
) -> Call[Optimization]:
    """Cut a message of this size, with a proof of how good the cut is.

    Exactly one of `pipeline`, `aggregate`, `profile` ("name", or "name@2"), `measurements`, `fit`
    (what `fit` and `compose` return, or the document that `sluice fit --json` prints) and `fit_id`
    (of a stored fit); `fit_options` go with `measurements`. Of fitted costs the answer says how
    sure it is; `uncertainty` says over which draws, and what setting is in use. Own `transfers` of
    this message, the text of a file or a mapping with `rows` and `where`, decide in its place.
    """
    document = {
        "message_bytes": message_bytes,
        **source_json(pipeline, aggregate, profile, measurements, fit, fit_id, fit_options),
        "strategy": strategy,
        **_options(static_bytes, constraints, allow_refragmentation, relative_gap, time_limit_s),
        "save_as": save_as,
        "uncertainty": uncertainty and uncertainty.as_json(),
        "transfers": _transfers_json(transfers),
    }
    return send(
        "POST",
        "/optimize",
        reads(Optimization),
        document,
        may_repeat=save_as is None,  # a second one would store a second revision
        takes_s=time_limit_s or _DEFAULT_LIMIT_S,
    )


def optimize_transfers(
    message_bytes: int,
    transfers: str | Mapping[str, Any],
    *,
    current: int | Literal["whole"] | None = None,
) -> Call[DecidedTransfers]:
    """Have own transfers of a message decide its size, without a model; `current` is the one in
    use.

    `transfers` is the text of a file with message_bytes, fragment_bytes and latency_us, or a
    mapping with `content` or `rows`, and `where` for its conditions.
    """
    setting = {"repeat": current} if isinstance(current, int) else current
    document = {
        "message_bytes": message_bytes,
        "transfers": _transfers_json(transfers),
        "uncertainty": None if setting is None else {"current": setting},
    }
    return send("POST", "/optimize", reads(DecidedTransfers), document, may_repeat=True)


def _transfers_json(transfers: str | Mapping[str, Any] | None) -> Any:
    return {"content": transfers} if isinstance(transfers, str) else transfers


def compare(
    message_bytes: Sequence[int],
    *,
    strategies: Sequence[str],
    pipeline: Pipeline | None = None,
    aggregate: Aggregate | None = None,
    profile: str | None = None,
    measurements: Measurement | Sequence[Measurement] | None = None,
    fit: Fit | Mapping[str, Any] | None = None,
    fit_id: str | None = None,
    fit_options: FitOptions | None = None,
    static_bytes: int | None = None,
    constraints: Constraints | None = None,
    allow_refragmentation: bool | None = None,
    relative_gap: float | None = None,
    time_limit_s: float | None = None,
) -> Call[Comparison]:
    """Return what each strategy gives on each message size; `time_limit_s` is for the entire
    table.
    """
    document = {
        "message_bytes": list(message_bytes),
        "strategies": list(strategies),
        **source_json(pipeline, aggregate, profile, measurements, fit, fit_id, fit_options),
        **_options(static_bytes, constraints, allow_refragmentation, relative_gap, time_limit_s),
    }
    return send(
        "POST",
        "/compare",
        reads(Comparison),
        document,
        may_repeat=True,
        takes_s=time_limit_s or _DEFAULT_LIMIT_S,
    )


def simulate(
    *,
    pipeline: Pipeline | None = None,
    aggregate: Aggregate | None = None,
    profile: str | None = None,
    measurements: Measurement | Sequence[Measurement] | None = None,
    fit: Fit | Mapping[str, Any] | None = None,
    fit_id: str | None = None,
    fit_options: FitOptions | None = None,
    fragment_bytes: Sequence[int] | None = None,
    levels: Sequence[Sequence[int]] | None = None,
    delivery: Sequence[Delivery] | None = None,
    message_bytes: int | None = None,
) -> Call[Simulation]:
    """Return when each fragment is in each stage: one cut for all stages, `levels`, one a stage, or
    what the stages choose by `delivery`, one rule a stage, of a message of `message_bytes`. Of an
    aggregate what one cut takes at most.
    """
    document = {
        **source_json(pipeline, aggregate, profile, measurements, fit, fit_id, fit_options),
        "fragment_bytes": None if fragment_bytes is None else list(fragment_bytes),
        "levels": None if levels is None else [list(sizes) for sizes in levels],
        "delivery": None if delivery is None else [rule.as_json() for rule in delivery],
        "message_bytes": message_bytes,
    }
    return send("POST", "/simulate", reads(Simulation), document, may_repeat=True)


def thresholds(
    message_bytes: Sequence[int],
    *,
    pipeline: Pipeline | None = None,
    aggregate: Aggregate | None = None,
    profile: str | None = None,
    measurements: Measurement | Sequence[Measurement] | None = None,
    fit: Fit | Mapping[str, Any] | None = None,
    fit_id: str | None = None,
    fit_options: FitOptions | None = None,
    rule: str | None = None,
    stages: Sequence[int] | None = None,
    sizes: Sequence[int] | None = None,
    time_limit_s: float | None = None,
) -> Call[Thresholds]:
    """Return latencies by threshold (`rule` "eager") or by pulse size ("static"), the best of each
    message, and the best one for all of them.

    All stages have the same size, or those of `stages`, from 0, vary independently.
    """
    document = {
        **source_json(pipeline, aggregate, profile, measurements, fit, fit_id, fit_options),
        "message_bytes": list(message_bytes),
        "rule": rule,
        "stages": None if stages is None else list(stages),
        "sizes": None if sizes is None else list(sizes),
        "time_limit_s": time_limit_s,
    }
    takes_s = time_limit_s or _DEFAULT_LIMIT_S
    reading = reads(Thresholds)
    return send("POST", "/thresholds", reading, document, may_repeat=True, takes_s=takes_s)


def crossover(
    a: str | Pipeline | Aggregate | Measurement | Sequence[Measurement] | Fit,
    b: str | Pipeline | Aggregate | Measurement | Sequence[Measurement] | Fit,
    *,
    a_name: str | None = None,
    b_name: str | None = None,
    current_bytes: int | None = None,
    min_message_bytes: int | None = None,
    max_message_bytes: int | None = None,
    target: str | None = None,
    form: str | None = None,
    parameter: str | None = None,
) -> Call[Crossovers]:
    """Return where path `b` overtakes path `a`, and what a threshold between them costs.

    Each is a profile's name, stages, an aggregate, measurements or a fit. `current_bytes` is the
    first size that takes `b` today; `target` the program whose setting is written.
    """
    document = {
        "a": path_json(a),
        "b": path_json(b),
        "a_name": a_name,
        "b_name": b_name,
        "current_bytes": current_bytes,
        "min_message_bytes": min_message_bytes,
        "max_message_bytes": max_message_bytes,
        "target": target,
        "form": form,
        "parameter": parameter,
    }
    return send("POST", "/crossover", reads(Crossovers), document, may_repeat=True)


def optimization(id: str) -> Call[Optimization]:
    """Return a stored answer."""
    return get(f"/optimizations/{segment(id)}", reads(Optimization))


def describe_optimization(
    id: str, *, name: str | None = None, note: str | None = None
) -> Call[OptimizationSummary]:
    """Give a stored answer a name and a note; "" takes one away, None leaves it as it is."""
    path, document = f"/optimizations/{segment(id)}", {"name": name, "note": note}
    return send("PATCH", path, reads(OptimizationSummary), document, may_repeat=True)


def explanation(id: str, *, cheaper_by: float | None = None) -> Call[Explanation]:
    """Return where the latency of a stored answer is spent, and what cheaper stages would buy."""
    call = get(
        f"/optimizations/{segment(id)}/explanation", reads(Explanation), cheaper_by=cheaper_by
    )
    return replace(call, takes_s=_DEFAULT_LIMIT_S)


def optimizations(
    *,
    profile: str | None = None,
    revision: int | None = None,
    message_bytes: int | None = None,
    strategy: str | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Call[Page[OptimizationSummary]]:
    """Return a page of stored answers, newest first."""
    return get(
        "/optimizations",
        reads_page(OptimizationSummary),
        profile=profile,
        revision=revision,
        message_bytes=message_bytes,
        strategy=strategy,
        cursor=cursor,
        limit=limit,
    )


def schedule(name: str, message_bytes: int) -> Call[Schedule]:
    """Return the run-time lookup: from the profile's active table, or solved where there is none.

    `name@2` pins a revision. The answer is kept, and asked for again only if it has changed.
    """
    call = get(
        f"/profiles/{segment(name)}/schedule", reads(Schedule), remembers=True, bytes=message_bytes
    )
    return replace(call, takes_s=_DEFAULT_LIMIT_S)


start_optimize = as_job(optimize)
start_compare = as_job(compare)
start_thresholds = as_job(thresholds, may_repeat=True)


def _options(
    static_bytes: int | None,
    constraints: Constraints | None,
    allow_refragmentation: bool | None,
    relative_gap: float | None,
    time_limit_s: float | None,
) -> dict[str, Any]:
    return {
        "static_bytes": static_bytes,
        "constraints": constraints and constraints.as_json(),
        "allow_refragmentation": allow_refragmentation,
        "relative_gap": relative_gap,
        "time_limit_s": time_limit_s,
    }
