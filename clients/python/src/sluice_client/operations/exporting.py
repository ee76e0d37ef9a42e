"""Configurations of messaging libraries: a profile as one, and what an existing one costs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sluice_client.calls import Answer, Call, get, reads, reads_page, segment, send
from sluice_client.export_answers import Audit, ExportedFile, ExportTarget
from sluice_client.fit_answers import Fit
from sluice_client.operations.as_job import as_job
from sluice_client.operations.sources import source_json
from sluice_client.shapes import (
    Aggregate,
    Constraints,
    FitOptions,
    Measurement,
    Pipeline,
    Setting,
    WorkloadSize,
)
from sluice_client.uncertainty import Draws

_EXPORT_LIMIT_S = 120.0  # the service's own, where sizes have to be chosen by solving
_AUDIT_LIMIT_S = 120.0  # the same, whatever of it the solves may take
_FILE_NAME = re.compile(r'filename="([^"/\\]+)"')


def export_targets() -> Call[tuple[ExportTarget, ...]]:
    """Return every target: what it takes, its options, and what verifies it."""
    page = reads_page(ExportTarget)
    return get("/exports", lambda answer: page(answer).items, remembers=True)


def export(
    name: str,
    target: str,
    *,
    min_message_bytes: int | None = None,
    max_message_bytes: int | None = None,
    workload: Sequence[WorkloadSize] | None = None,
    objective: str | None = None,
    constraints: Constraints | None = None,
    options: Mapping[str, str] | None = None,
    time_limit_s: float | None = None,
    table: str | None = None,
) -> Call[ExportedFile]:
    """Return a profile as a library's configuration; `name@2` pins a revision.

    Sizes are chosen for messages of `min_message_bytes` to `max_message_bytes`, or for a `workload`
    in place of that range. The `objective` is what they have the least of: the regret of the total
    "time" with a workload, else the "mean" regret; or the "worst".
    `time_limit_s` is for the solves by which they are chosen. `options` are the target's own;
    `table` is the digest of a compiled table in place of the active one.
    """
    call = get(
        f"/profiles/{segment(name)}/exports/{segment(target)}",
        _exported,
        remembers=True,
        min_message_bytes=min_message_bytes,
        max_message_bytes=max_message_bytes,
        workload=[f"{one.message_bytes}:{one.weight!r}" for one in workload or ()],
        objective=objective,
        **_limits(constraints),
        option=[f"{option}:{value}" for option, value in (options or {}).items()],
        time_limit_s=time_limit_s,
        table=table,
    )
    return replace(call, takes_s=_EXPORT_LIMIT_S)


def audit(
    setting: Setting,
    *,
    pipeline: Pipeline | None = None,
    aggregate: Aggregate | None = None,
    profile: str | None = None,
    measurements: Measurement | Sequence[Measurement] | None = None,
    fit: Fit | Mapping[str, Any] | None = None,
    fit_id: str | None = None,
    fit_options: FitOptions | None = None,
    min_message_bytes: int | None = None,
    max_message_bytes: int | None = None,
    workload: Sequence[WorkloadSize] | None = None,
    objective: str | None = None,
    max_regret: float | None = None,
    over: str | None = None,
    time_limit_s: float | None = None,
    in_draws: float | None = None,
    uncertainty: Draws | None = None,
) -> Call[Audit]:
    """Return what an existing setting costs over the optimum, and what to change.

    Exactly one of where costs may come from (see `optimize`). Without a `workload` every octave of
    the range counts the same. The `objective` is "time" with a workload, the total time of its
    messages, else the "mean" regret; or "worst". `max_regret` is a share, 0.05 for 5 %; with
    `in_draws`, another share, it has to be kept in so many draws of the costs too. `uncertainty`
    says which.
    """
    document = {
        "setting": setting.document,
        **source_json(pipeline, aggregate, profile, measurements, fit, fit_id, fit_options),
        "min_message_bytes": min_message_bytes,
        "max_message_bytes": max_message_bytes,
        "workload": None if workload is None else [one.as_json() for one in workload],
        "objective": objective,
        "max_regret": max_regret,
        "over": over,
        "time_limit_s": time_limit_s,
        "in_draws": in_draws,
        "uncertainty": uncertainty and uncertainty.as_json(),
    }
    return send(
        "POST",
        "/audit",
        reads(Audit),
        document,
        may_repeat=True,
        takes_s=_AUDIT_LIMIT_S,
    )


# The service finds a job of the same question again: sent twice it starts one.
start_export = as_job(export, may_repeat=True)
start_audit = as_job(audit, may_repeat=True)


def _limits(constraints: Constraints | None) -> dict[str, object]:
    if constraints is None:
        return {}
    return {name: value for name, value in constraints.as_json().items() if value is not None}


def _exported(answer: Answer) -> ExportedFile:
    named = _FILE_NAME.search(answer.headers.get("content-disposition", ""))
    kind = answer.headers.get("content-type", "").partition(";")[0]
    return ExportedFile(named[1] if named else "", kind, answer.body)
