"""Questions about the prices of thresholds and pulse sizes; the page is that of delivery."""

from __future__ import annotations

from typing import Any

from tests.golden.asked import Command, Form, Http, command, page, post
from tests.golden.models import AGGREGATE, THREE, TWO

_SIZES = {"message_bytes": [4096], "sizes": [256, 1024, 4096]}


def _thresholds(name: str, **asked: Any) -> Http:
    return post(f"thresholds/{name}", "/thresholds", {"time_limit_s": 600, **asked})


HTTP: tuple[Http, ...] = (
    _thresholds("eager", profile="trapeze", message_bytes=[8192]),
    _thresholds("static", pipeline=TWO, message_bytes=[1024, 9000], rule="static"),
    _thresholds("stages", pipeline=THREE, stages=[1, 2], **_SIZES),
    _thresholds("mistaken", pipeline=TWO, message_bytes=[], rule="late", stages=[7]),
    _thresholds("no-such-stage", pipeline=TWO, stages=[7], **_SIZES),
    _thresholds("aggregate", aggregate=AGGREGATE, **_SIZES),
    _thresholds("none", profile="none-such", **_SIZES),
    post("thresholds/job", "/thresholds", {"pipeline": TWO, **_SIZES}, job=True),
    page("thresholds", "/ui/delivery"),
    page("thresholds-asked", "/ui/delivery?profile=trapeze&message=8+KiB&rule=eager"),
    page(
        "thresholds-stages",
        "/ui/delivery?profile=line&message=4+KiB&rule=static&stages=1,2&sizes=512..2KiB&at=3",
    ),
    page(
        "thresholds-mistaken",
        "/ui/delivery?profile=line&message=4+QiB&rule=static&stages=one&sizes=x",
    ),
    page("thresholds-refused", "/ui/delivery?profile=line&message=4+KiB&rule=late&stages=9"),
    page("thresholds-none", "/ui/delivery?profile=none-such&message=64"),
    page("thresholds-job", "/ui/jobs/<thresholds/job>"),
)


def _commands() -> list[Command]:
    two, trapeze = (
        ("model", "thresholds", "<folder>/two.json"),
        ("model", "thresholds", "trapeze", "--bytes"),
    )
    return [
        command("thresholds", *trapeze, "8KiB"),
        command("thresholds-messages", *trapeze, "1KiB..16KiB", "--rule", "eager"),
        command("thresholds-wide", *trapeze, "1KiB..4KiB", environment={"COLUMNS": "120"}),
        command(
            "thresholds-json",
            *(*trapeze, "8KiB", "--sizes", "128..1KiB", "--json"),
            form=Form.JSON,
        ),
        command("thresholds-static", *two, "--bytes", "4KiB,9000", "--rule", "static"),
        command(
            "thresholds-stages", *two, "--bytes", "4KiB", "--stages", "0,1", "--sizes", "512..4KiB"
        ),
        command(
            "thresholds-plot",
            *(*trapeze, "8KiB", "--plot", "<folder>/thresholds.svg"),
            writes="thresholds.svg",
            form=Form.PAGE,
        ),
        command("thresholds-plotted", *two, "--bytes", "2KiB", "--plot", "grid.svg"),
        command("thresholds-refused", *two, "--bytes", "4KiB", "--stages", "7"),
        command("thresholds-refused-json", *two, "--bytes", "4KiB", "--stages", "7", "--json"),
    ]


COMMANDS: tuple[Command, ...] = tuple(_commands())
