"""The stored form of pipelines: one versioned JSON document each.

Floats are written by `repr` and so read back to the same bits. `kind` leaves room for other models
of a pipeline than its stages. Reading a document that this version does not know is refused: it
was written by newer software.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from domain.errors import Conflict
from domain.pipeline import FitRange, Pipeline, Stage

VERSION = 1
_STAGES = "stages"


def dump_pipeline(pipeline: Pipeline) -> str:
    """The document of a pipeline."""
    stages = [
        {"name": stage.name, "ranges": [asdict(part) for part in stage.ranges]}
        for stage in pipeline.stages
    ]
    return _dump(
        {"version": VERSION, "kind": _STAGES, "stages": stages, "delay_us": pipeline.delay_us}
    )


def load_pipeline(text: str) -> Pipeline:
    """The pipeline of a document. Raises Conflict for a version or kind that is not known."""
    document = _load(text)
    if document["kind"] != _STAGES:
        raise Conflict(f"the stored pipeline is of the unknown kind {document['kind']!r}")
    stages = tuple(
        Stage(stage["name"], tuple(FitRange(**part) for part in stage["ranges"]))
        for stage in document["stages"]
    )
    return Pipeline(stages, document["delay_us"])


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
