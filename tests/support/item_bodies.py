"""Questions about items, whose answers are known by enumerating all their cuts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Body = dict[str, Any]
PI = [3, 1, 4, 1, 5, 9, 2, 6]
PI_READY = [2, 3, 5, 6, 9, 14, 15, 20]


def stages(*costs: tuple[float, float]) -> Body:
    """Stages of these overheads in µs, and of ns per byte."""
    return {
        "stages": [
            {"name": f"stage {place}", "overhead_us": overhead_us, "ns_per_byte": ns_per_byte}
            for place, (overhead_us, ns_per_byte) in enumerate(costs, start=1)
        ]
    }


def question(pipeline: Body, items: Body, **more: Any) -> Body:
    """What POST /optimize is asked."""
    return {"pipeline": pipeline, "items": items, **more}


def small(**more: Any) -> Body:
    """Five items behind ready times, and one wire."""
    items = {"bytes": [4, 1, 1, 2, 4], "ready_us": [1, 2, 3, 5, 9]}
    return question(stages((2, 1000)), items, **more)


# The question, the least latency, the ends of its cut, and by each fill rule the latency of the
# best cap and how many layouts there are.
ORACLES: tuple[tuple[Body, float, list[int], Mapping[str, tuple[float, int]]], ...] = (
    (small(), 18, [2, 5], {"until": (18, 7), "before": (19, 5)}),
    (
        question(stages((1, 1000)), {"repeat": 6, "bytes": 1, "ready_every_us": 1}),
        *(10, [1, 3, 6], {"until": (11, 6), "before": (11, 6)}),
    ),
    (
        question(stages((1, 1000), (2, 1000)), {"bytes": PI}),
        *(48, [3, 5, 6, 8], {"until": (48, 12), "before": (49, 7)}),
    ),
    (
        question(stages((1, 500), (3, 1000), (1, 250)), {"bytes": PI, "ready_us": PI_READY}),
        *(53, [1, 4, 6, 8], {"until": (53.5, 12), "before": (57, 7)}),
    ),
    (
        question(
            stages((3, 1000)),
            {"bytes": PI, "ready_us": PI_READY},
            constraints={"max_fragment_bytes": 9},
        ),
        *(48, [3, 5, 6, 8], {"until": (48, 12), "before": (49, 1)}),
    ),
)
