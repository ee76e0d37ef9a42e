"""Questions about machines: what takes them, and what refuses them."""

from __future__ import annotations

from typing import Any

from tests.golden.asked import Command, Form, Http, command, page, post
from tests.golden.stand_ins import PATIENT
from tests.support.machine_bodies import lanes, staging

_LANES, _STAGING = lanes(), staging()
_MISTAKES: dict[str, dict[str, Any]] = {
    "window-unknown": {"windows": [{"from": "read", "to": "none", "fragments": 1}]},
    "window-backwards": {"windows": [{"from": "write", "to": "read", "fragments": 1}]},
    "window-without-a-size": {"windows": [{"from": "read", "to": "write"}]},
    "window-too-small": {"windows": [{"from": "read", "to": "write", "bytes": 16}]},
    "words-mistaken": {
        "stages": [
            {"overhead_us": 1, "ns_per_byte": 1, "lanes": 0, "delay_us": -1},
            {"overhead_us": 1, "ns_per_byte": 1, "processor": "", "shared_ns_per_byte": "x"},
        ]
    },
    "shared-without-lanes": {
        "stages": [{"overhead_us": 1, "ns_per_byte": 1, "shared_ns_per_byte": 0.5}]
    },
    "processor-of-one": {"stages": [{"overhead_us": 1, "ns_per_byte": 1, "processor": "p"}]},
    "handoff-beside": {
        "stages": [{"overhead_us": 1, "ns_per_byte": 1, "lanes": 2, "handoff_bytes": 16}]
    },
}


def _optimize(name: str, **asked: Any) -> Http:
    body = {"message_bytes": 4096, "time_limit_s": 600, "strategy": "repeat", **asked}
    return post(f"machine/{name}", "/optimize", body)


HTTP: tuple[Http, ...] = (
    post("machine/profile", "/profiles", {"name": "staging", "pipeline": _STAGING}),
    _optimize("optimize", pipeline=_LANES),
    _optimize("optimize-profile", profile="staging"),
    page("machine-answer", "/ui/answers/<machine/optimize-profile>"),
    page("machine-profile", "/ui/profiles/staging"),
    Http(
        "machine/schedule-svg",
        "GET",
        "/ui/answers/<machine/optimize-profile>/schedule.svg",
        form=Form.PAGE,
    ),
    Http(
        "machine/schedule-csv",
        "GET",
        "/ui/answers/<machine/optimize-profile>/schedule.csv",
        form=Form.TEXT,
    ),
    post(
        "machine/compare",
        "/compare",
        {
            "pipeline": _LANES,
            "message_bytes": [4096],
            "strategies": ["single", "repeat", "fixed", "ramp"],
            "time_limit_s": 600,
        },
    ),
    post("machine/simulate", "/simulate", {"pipeline": _STAGING, "fragment_bytes": [1 << 20] * 3}),
    post(
        "machine/ramp-repeat-plain",
        "/optimize",
        {
            "message_bytes": 64,
            "pipeline": {"stages": [{"overhead_us": 1, "ns_per_byte": 1}]},
            "strategy": "ramp_repeat",
        },
    ),
    post("machine/hide", "/hide", {"profile": "staging", "message_bytes": 64, "calculation_us": 9}),
    post("machine/crossover", "/crossover", {"a": {"pipeline": _LANES}, "b": {"profile": "line"}}),
    Http("machine/export", "GET", "/profiles/staging/exports/ucx"),
    post("machine/table", "/profiles/staging/tables", {"max_message_bytes": 64}),
    *(
        _optimize(name, pipeline={**_LANES, **words}, constraints={"min_fragment_bytes": 64})
        for name, words in _MISTAKES.items()
    ),
)
_SOURCE = "<folder>/staging.json"
COMMANDS: tuple[Command, ...] = (
    command(
        "machine-optimize",
        *("optimize", _SOURCE, "--bytes", "4MiB", "--strategy", "repeat", *PATIENT),
    ),
    command("machine-simulate", "simulate", _SOURCE, "--bytes", "4MiB", "--repeat", "1MiB"),
    command(
        "machine-compare",
        *("compare", "<folder>/lanes.json", "--bytes", "4KiB", "--strategies", "single,repeat"),
    ),
    command("machine-save", "profiles", "save", "staging", _SOURCE),
    command("machine-table", "table", _SOURCE, "--to", "4KiB"),
)
FILES: dict[str, Any] = {"staging.json": _STAGING, "lanes.json": _LANES}
