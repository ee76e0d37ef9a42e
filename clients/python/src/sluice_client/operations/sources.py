"""Where the costs of a request come from, as bodies have it: one block of fields for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from sluice_client.fit_answers import Fit
from sluice_client.shapes import Aggregate, FitOptions, Measurement, Pipeline


def source_json(
    pipeline: Pipeline | None,
    aggregate: Aggregate | None,
    profile: str | None,
    measurements: Measurement | Sequence[Measurement] | None,
    fit: Fit | Mapping[str, Any] | None,
    fit_id: str | None,
    fit_options: FitOptions | None,
) -> dict[str, Any]:
    """Return the fields of a body that say where its costs come from."""
    return {
        "pipeline": pipeline and pipeline.as_json(),
        "aggregate": aggregate and aggregate.as_json(),
        "profile": profile,
        "measurements": measurements_json(measurements),
        "fit": fit_json(fit),
        "fit_id": fit_id,
        "fit_options": fit_options and fit_options.as_json(),
    }


def fit_json(given: Fit | Mapping[str, Any] | None) -> Any:
    """Return a fit as bodies have it, without what was drawn of it."""
    if isinstance(given, Fit):
        return asdict(replace(given, plot=None))
    return given


def measurements_json(given: Measurement | Sequence[Measurement] | None) -> Any:
    """Return measurements as bodies have them: one, a list, or none."""
    if given is None or isinstance(given, Measurement):
        return given and given.as_json()
    return [one.as_json() for one in given]


def path_json(
    given: str | Pipeline | Aggregate | Measurement | Sequence[Measurement] | Fit,
) -> dict[str, Any]:
    """Return where the costs of one path come from: a text is a profile's name."""
    if isinstance(given, str):
        return {"profile": given}
    if isinstance(given, Pipeline):
        return {"pipeline": given.as_json()}
    if isinstance(given, Aggregate):
        return {"aggregate": given.as_json()}
    if isinstance(given, Fit):
        return {"fit": fit_json(given)}
    return {"measurements": measurements_json(given)}
