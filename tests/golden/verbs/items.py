"""Questions about messages that are cut between items: what takes them, and what refuses them."""

from __future__ import annotations

from typing import Any

from tests.golden.asked import Command, Http, command, page, post
from tests.golden.stand_ins import PATIENT
from tests.support.item_bodies import PI, PI_READY, question, small, stages

_THREE = question(
    stages((1, 500), (3, 1000), (1, 250)),
    {"bytes": PI, "ready_us": PI_READY},
    time_limit_s=600,
    uncertainty={"current": {"repeat": 9}},
)
_SLOTS = question(
    {
        **stages((1, 500), (3, 1000), (1, 250)),
        "windows": [{"from": "stage 1", "to": "stage 3", "bytes": 20}],
    },
    {"bytes": PI, "ready_us": PI_READY},
    time_limit_s=600,
    fill={"rule": "before"},
    uncertainty={"current": {"repeat": 9}},
)
_BARE = {name: _THREE[name] for name in ("pipeline", "items")}
_LOADING: dict[str, Any] = {"loading": True, "calculation_us": 12}
_DRAWS: dict[str, Any] = {"uncertainty": {"relative": 0.1}}
_MISTAKES: dict[str, dict[str, Any]] = {
    "beside-a-size": {"message_bytes": 12},
    "aligned": {"constraints": {"alignment_bytes": 4}},
    "by-repeat": {"strategy": "repeat"},
    "in-draws": {"uncertainty": {"relative": 0.1}},
    "first-without-a-rule": {"fill": {"first_bytes": 4}},
    "unlike-columns": {"items": {"bytes": [1, 2], "ready_us": [1]}},
    "no-bytes": {"items": {"bytes": [0]}},
    "above-a-window": {
        "pipeline": {
            **stages((2, 1000)),
            "windows": [{"from": "stage 1", "to": "stage 1", "bytes": 3}],
        }
    },
}
HTTP: tuple[Http, ...] = (
    post("items/optimize", "/optimize", _THREE),
    post("items/optimize-before", "/optimize", {**_THREE, "fill": {"rule": "before"}}),
    page("items-answer", "/ui/answers/<items/optimize>"),
    post("items/optimize-slots", "/optimize", _SLOTS),
    post("items/simulate", "/simulate", small(cut=[2, 5])),
    post("items/simulate-cap", "/simulate", small(cap_bytes=4, fill={"rule": "before"})),
    post("items/compare", "/compare", {**_BARE, "caps_bytes": [9]}),
    post("items/audit", "/audit", {**_BARE, "setting": {"static_bytes": 9}}),
    post(
        "items/audit-sequences",
        "/audit",
        {
            "pipeline": _BARE["pipeline"],
            "sequences": [{"items": _BARE["items"]}, {"items": {"bytes": PI}, "weight": 2}],
            "setting": {"whole": True},
            "fill": {"rule": "before"},
            "max_regret": 0.1,
        },
    ),
    post("items/hide", "/hide", {**_BARE, "cap_bytes": 9, "fragment_overhead_us": 1}),
    post("items/hide-loading", "/hide", small(**_LOADING)),
    post("items/hide-twice", "/hide", {**_BARE, "calculation_us": 20}),
    post("items/audit-in-draws", "/audit", {**_BARE, "setting": {"whole": True}, **_DRAWS}),
    post("items/compare-by-names", "/compare", {**_BARE, "strategies": ["exact"]}),
    *(post(f"items/{name}", "/optimize", {**small(), **more}) for name, more in _MISTAKES.items()),
)
_FILES = ("<folder>/items-stages.json", "--items", "<folder>/items.csv")
COMMANDS: tuple[Command, ...] = (
    command("items-optimize", "optimize", *_FILES, "--current", "4", *PATIENT),
    command("items-memory", "optimize", *_FILES, "--fill", "before", "--memory", "9", *PATIENT),
    command("items-simulate", "simulate", *_FILES, "--cut", "2,5"),
    command("items-compare", "compare", *_FILES, "--cap", "4", "6", *PATIENT),
    command("items-audit", "audit", *_FILES, "--current", "4", "--max-regret", "5%"),
    command("items-hide", "model", "hide", *_FILES, "--current", "4", *PATIENT),
)
FILES: dict[str, Any] = {
    "items-stages.json": {"pipeline": stages((2, 1000))},
    "items.csv": "name,bytes,ready (us)\na,4,1\nb,1,2\nc,1,3\nd,2,5\ne,4,9\n",
}
