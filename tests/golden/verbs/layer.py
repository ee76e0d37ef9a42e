"""Questions about messaging layers, and counts of an MPI whose instructions are made up."""

from __future__ import annotations

import json
from typing import Any

from tests.golden.asked import Command, Form, Http, command, page, post
from tests.golden.stand_ins import ALONE, PATIENT

MINE: dict[str, Any] = {
    "name": "mine",
    "source": "counted by hand",
    "word_bytes": 4,
    "packet_words": 16,
    "components": [
        {
            "name": "send a packet",
            "service": "base",
            "end": "source",
            "per": "packet",
            "counts": {"reg": 40, "mem": 12},
        },
        {
            "name": "put in order",
            "service": "ordering",
            "end": "destination",
            "per": "packet",
            "when": "after",
            "counts": {"reg": 50},
        },
    ],
}
_BETWEEN = {"name": "wire", "overhead_us": 1.0, "ns_per_byte": 2.0}
_PAGE, _FORM = "/ui/layers", "/ui/layers?bytes=64,+4+KiB&clock=33+MHz"


def _costs(name: str, **asked: Any) -> Http:
    body = {"layer": "cmam-finite", "message_bytes": [64], "time_limit_s": 600, **asked}
    return post(f"layer/{name}", "/layer-costs", body)


HTTP: tuple[Http, ...] = (
    Http("layer/list", "GET", "/layers"),
    Http("layer/published", "GET", "/layers/cmam-indefinite"),
    Http("layer/none", "GET", "/layers/none-such"),
    _costs("work", message_bytes=[16, 4096], packet_words=[4, 16, 128]),
    _costs(
        "stages",
        clock_mhz=33,
        cycles={"dev": 10, "reg": 1, "mem": 2},
        between=[_BETWEEN],
        wire_us=0.25,
        mapping="transfer",
        save_as="layered",
    ),
    _costs("blocking", clock_mhz=33, handshake="blocking", mapping="transfer"),
    _costs("no-stages", clock_mhz=33, handshake="blocking", save_as="layered"),
    _costs("tuned", layer="cmam-indefinite", message_bytes=[4096], clock_mhz=33, tune=True),
    _costs("document", layer=MINE, message_bytes=[100, 1000], features=["in_order"]),
    _costs("out-of-order", layer="cmam-indefinite", out_of_order=0.5),
    _costs("not-published", layer="cmam-indefinite", out_of_order=0.25),
    _costs("no-clock", tune=True),
    _costs("mistaken", message_bytes=[0], packet_words=[0], features=["quantum"], clock_mhz=0),
    post("layer/job", "/layer-costs", {"layer": MINE, "message_bytes": [640]}, job=True),
    page("layer", _PAGE),
    page("layer-asked", f"{_FORM}&packet_words=4..16&cycles=reg=1,mem=1,dev=5&wire=250+ns"),
    page("layer-no-clock", f"{_PAGE}?bytes=64&layer=cmam-single&features=in_order"),
    page(
        "layer-tuned",
        f"{_PAGE}?layer=cmam-indefinite&bytes=4+KiB&clock=33+MHz&tune=yes&time_limit=60",
    ),
    page(
        "layer-result",
        f"{_PAGE}/result?layer=cmam-indefinite&bytes=4+KiB&clock=33+MHz&tune=yes&time_limit=60",
        "POST",
        htmx=True,
    ),
    page(
        "layer-document",
        _PAGE,
        "POST",
        fields=(("bytes", "1 KiB"), ("document", json.dumps({**MINE, "source": "s" * 600}))),
    ),
    page(
        "layer-mistaken",
        _PAGE,
        "POST",
        fields=(
            ("bytes", "0"),
            ("packet_words", "four"),
            ("cycles", "reg"),
            ("clock", "33"),
            ("wire", "-1 us"),
            ("document", "{"),
            ("time_limit", "1e9"),
        ),
    ),
    page("layer-refused", f"{_PAGE}?bytes=64&tune=yes&layer=none-such"),
    page("layer-job", "/ui/jobs/<layer/job>"),
)


def _commands() -> list[Command]:
    finite = ("model", "layer", "cmam-finite", "--bytes")
    clock, count = ("--clock", "33MHz"), ("model", "layer", "count", "--bytes", "8", "64", "256")
    baseline = ("model", "layer", "check", "counted.json")
    return [
        command("layer", *finite, "64", "4KiB"),
        command("layer-clock", *finite, "64", *clock, "--packet-words", "4..128"),
        command("layer-wide", *finite, "64", *clock, environment={"COLUMNS": "120"}),
        command("layer-json", *finite, "64", *clock, "--json", form=Form.JSON),
        command(
            "layer-tuned",
            *("model", "layer", "cmam-indefinite", "--bytes", "4KiB", *clock, "--tune"),
            *PATIENT,
        ),
        command(
            "layer-between",
            *(*finite, "1KiB", *clock, "--between", "two.json", "--wire", "100ns"),
            *("--mapping", "transfer", "--save-as", "layered"),
        ),
        command(
            "layer-document",
            *("model", "layer", "mine.json", "--bytes", "1000", "--features", "in_order"),
            *("--cycles", "reg=1,mem=2"),
        ),
        command(
            "layer-out-of-order",
            *("model", "layer", "cmam-indefinite", "--bytes", "64", "--out-of-order", "50%"),
        ),
        command(
            "layer-plot",
            *(*finite, "64", "4KiB", "--packet-words", "4,16", "--plot", "<folder>/layer.svg"),
            writes="layer.svg",
            form=Form.PAGE,
        ),
        command("layer-plotted", *finite, "64", "--plot", "bars.svg"),
        command("layer-refused", *finite, "64", "--out-of-order", "25%"),
        command("layer-refused-json", *finite, "64", "--tune", "--json"),
        command("layer-count", *count, "--output", "counted.json", environment=ALONE),
        command("layer-count-json", *count, "2KiB", "--json", form=Form.JSON, environment=ALONE),
        command(
            "layer-counted",
            *(
                "model",
                "layer",
                "counted.json",
                "--bytes",
                "128",
                *clock,
                "--cycles",
                "reg=1,mem=3",
            ),
        ),
        command("layer-no-cycles", "model", "layer", "counted.json", "--bytes", "128", *clock),
        command("layer-blocking", *finite, "64", *clock, "--handshake", "blocking"),
        command("layer-count-none", *count, "--mpicc", "mpicc.none", environment=ALONE),
        command("layer-check", *baseline, environment=ALONE),
        command("layer-check-more", *baseline, environment={**ALONE, "INSTRUCTIONS_MORE": "0.03"}),
        command(
            "layer-check-json",
            *(*baseline, "--max-more", "5%", "--json"),
            form=Form.JSON,
            environment={**ALONE, "INSTRUCTIONS_MORE": "0.03"},
        ),
        command("layer-check-none", "model", "layer", "check", "two.json", environment=ALONE),
    ]


COMMANDS: tuple[Command, ...] = tuple(_commands())
FILES: dict[str, Any] = {"mine.json": MINE}
