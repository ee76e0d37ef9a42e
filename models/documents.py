"""The stored form of what messages cross: one versioned JSON document each.

Floats are written by `repr` and so read back to the same bits. `kind` tells a pipeline by its
stages from an aggregate, and leaves room for more. Reading a document that this version does not
know is refused: it was written by newer software.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from domain.aggregate import Aggregate, CostModel
from domain.errors import Conflict
from domain.pipeline import FitRange, Pipeline, Stage

VERSION = 1
_STAGES = "stages"
_AGGREGATE = "aggregate"


def dump_model(model: CostModel) -> str:
    """The document of a pipeline or of an aggregate."""
    costs = _of_pipeline(model) if isinstance(model, Pipeline) else _of_aggregate(model)
    return _dump({"version": VERSION, **costs, "delay_us": model.delay_us})


def load_model(text: str) -> CostModel:
    """The model of a document. Raises Conflict for a version or kind that is not known."""
    document = _load(text)
    delay_us = document["delay_us"]
    if document["kind"] == _STAGES:
        return Pipeline(tuple(map(_stage, document["stages"])), delay_us)
    if document["kind"] == _AGGREGATE:
        return Aggregate(_stage(document["total"]), _stage(document["bottleneck"]), delay_us)
    raise Conflict(f"the stored pipeline is of the unknown kind {document['kind']!r}")


def _of_pipeline(pipeline: Pipeline) -> dict[str, Any]:
    return {"kind": _STAGES, "stages": [_of_stage(stage) for stage in pipeline.stages]}


def _of_aggregate(aggregate: Aggregate) -> dict[str, Any]:
    return {
        "kind": _AGGREGATE,
        "total": _of_stage(aggregate.total),
        "bottleneck": _of_stage(aggregate.bottleneck),
    }


def _of_stage(stage: Stage) -> dict[str, Any]:
    return {"name": stage.name, "ranges": [asdict(part) for part in stage.ranges]}


def _stage(stored: dict[str, Any]) -> Stage:
    return Stage(stored["name"], tuple(FitRange(**part) for part in stored["ranges"]))


def _dump(document: dict[str, Any]) -> str:
    # ASCII on purpose: a name may hold characters that a text column refuses (NUL, surrogates).
    return json.dumps(document, separators=(",", ":"), ensure_ascii=True)


def _load(text: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(text)
    if document["version"] != VERSION:
        raise Conflict(
            f"the stored document has version {document['version']}, and this version of Sluice "
            f"reads {VERSION}: it was written by newer software"
        )
    return document
