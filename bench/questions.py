"""Bodies of requests."""

from __future__ import annotations

import orjson

from domain.pipeline import Pipeline


def pipeline_question(pipeline: Pipeline, message_bytes: int) -> bytes:
    """POST /optimize for this pipeline, written out in the request; its stages are lines."""
    stages = [
        {
            "name": stage.name,
            "overhead_us": stage.ranges[0].overhead_us,
            "ns_per_byte": stage.ranges[0].ns_per_byte,
        }
        for stage in pipeline.stages
    ]
    return orjson.dumps({"message_bytes": message_bytes, "pipeline": {"stages": stages}})
