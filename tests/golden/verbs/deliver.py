"""Questions about delivery by rules; its page is that of thresholds, which has the best ones."""

from __future__ import annotations

import json
from typing import Any

from tests.golden.asked import Command, Form, Http, command, post
from tests.golden.models import THREE, TWO


def _deliver(name: str, message_bytes: int, *rules: Any, **asked: Any) -> Http:
    delivery = [{"rule": rule} if isinstance(rule, str) else rule for rule in rules]
    body = {"message_bytes": message_bytes, "delivery": delivery, **asked}
    if "profile" not in body:
        body["pipeline"] = THREE
    return post(f"deliver/{name}", "/simulate", body)


def _eager(threshold_bytes: int, max_pulse_bytes: int | None = None) -> dict[str, Any]:
    rule = {"rule": "eager", "threshold_bytes": threshold_bytes, "max_pulse_bytes": max_pulse_bytes}
    return {name: value for name, value in rule.items() if value is not None}


def _static(pulse_bytes: int) -> dict[str, Any]:
    return {"rule": "static", "pulse_bytes": pulse_bytes}


_PLANNED = {"rule": "planned", "planned_bytes": [1000, 1000, 2096]}

HTTP: tuple[Http, ...] = (
    _deliver("eager", 8192, "eager", _eager(512), _eager(512), profile="trapeze"),
    _deliver("at-most", 8192, _static(1280), _eager(256, 1024), "same"),
    _deliver("planned", 4096, _PLANNED, "same", "store_and_forward"),
    _deliver("flow", 4096, _static(512), "flow", "eager"),
    _deliver("wrong-sum", 4000, _PLANNED, "same", "same"),
    _deliver("mistaken", 4096, {"rule": "static"}, "eager", {"rule": "sometimes"}),
    _deliver("too-few", 4096, "eager"),
    Http(
        "deliver/picture",
        "POST",
        "/simulate?format=svg",
        {
            "pipeline": TWO,
            "message_bytes": 2048,
            "delivery": [_static(512), {"rule": "eager"}],
        },
        form=Form.PAGE,
    ),
)


def _commands() -> list[Command]:
    trapeze = ("model", "deliver", "trapeze", "--bytes", "8KiB")
    rules = ("--rules", "eager,eager=512,eager=512")
    two = ("model", "deliver", "<folder>/two.json", "--bytes", "4KiB", "--rules")
    asked = {"pipeline": TWO, "message_bytes": 2048, "delivery": [{"rule": "eager"}] * 2}
    return [
        command("deliver", *trapeze, *rules),
        command("deliver-wide", *trapeze, *rules, environment={"COLUMNS": "120"}),
        command("deliver-json", *trapeze, *rules, "--json", form=Form.JSON),
        command("deliver-static", *two, "static=1280,eager=128..1KiB"),
        command("deliver-planned", *two, "planned=1000+1000+2096,same"),
        command("deliver-flow", *two, "store_and_forward,flow"),
        command(
            "deliver-given",
            "model",
            "deliver",
            "-",
            "--rules",
            "eager,same",
            given=json.dumps(asked),
        ),
        command(
            "deliver-timeline",
            *(*trapeze, *rules, "--timeline", "<folder>/pulses.svg"),
            writes="pulses.svg",
            form=Form.PAGE,
        ),
        command("deliver-drawn", *two, "eager,eager", "--timeline", "two.svg"),
        command("deliver-refused", *two, "eager"),
        command("deliver-refused-json", *two, "planned=1+2,eager", "--json"),
    ]


COMMANDS: tuple[Command, ...] = tuple(_commands())
