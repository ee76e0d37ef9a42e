"""sluice model layer: a layer of a file or by name, stages between, a picture in a file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.console.argument_parts import (
    Parser,
    add_time_limit,
    clock,
    counts,
    names,
    prices,
    share,
    size,
    time_us,
)
from domain.errors import InvalidInput
from domain.messaging_layer import NetworkFeature

if TYPE_CHECKING:
    from app.settings import Settings
    from app.ui.terminal import Output


def add_arguments(parser: Parser) -> None:
    """Add what is asked, and what a terminal alone has."""
    parser.add_argument(
        "layer", metavar="LAYER", help="a published one, as cmam-finite, or a document's file"
    )
    parser.add_argument("--bytes", type=size, nargs="+", metavar="SIZE", help="message sizes")
    parser.add_argument(
        "--packet-words", type=counts, metavar="COUNTS", help="other packets, as 4,16 or 4..128"
    )
    parser.add_argument(
        "--features", type=names, metavar="NAMES", help=", ".join(NetworkFeature) + " (all)"
    )
    parser.add_argument(
        "--cycles", type=prices, metavar="CYCLES", help="of an instruction, as reg=1,mem=1,dev=5"
    )
    parser.add_argument("--clock", dest="clock_mhz", type=clock, metavar="CLOCK", help="as 33MHz")
    parser.add_argument("--mapping", metavar="NAME", help="a fragment is a packet or a transfer")
    parser.add_argument("--handshake", metavar="NAME", help="overlapped (default) or blocking")
    parser.add_argument("--between", metavar="FILE", help="stages between both ends")
    parser.add_argument("--wire", dest="wire_us", type=time_us, metavar="TIME", help="one-way trip")
    parser.add_argument(
        "--out-of-order", type=share, metavar="SHARE", help="packets out of order, as counted"
    )
    parser.add_argument("--tune", action="store_true", help="cut anew with each set of features")
    add_time_limit(parser, "default 10")
    parser.add_argument("--plot", metavar="OUT", help="draw bars by service into this SVG file")
    parser.add_argument("--save-as", metavar="PROFILE", help="store the stages under this name")


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Count, tune where that is asked for, print, draw, and store the stages."""
    from app.console.commands import INTERRUPTED, opened_store
    from app.console.files import check_target, write_drawing
    from app.console.running import counting_line, run_operation
    from app.plots.models_svg import render_layer_svg
    from app.questions.source import Stored
    from app.schemas.base import dump_json, parse_json, read_output
    from app.settings import Settings
    from app.verbs.layer import answer, show
    from app.verbs.layer.operation import operation
    from contract.layer_costs import LayerCostsIn, LayerCostsOut

    if arguments.plot is not None:
        check_target(arguments.plot, field="plot", noun="the plot", example="layer.svg")
    settings = Settings.from_environment()
    asked = parse_json(LayerCostsIn, dump_json(_asked(arguments, settings)))
    prepared = operation(asked, Stored(), settings)
    with counting_line(output.err) as line:
        ran = run_operation(prepared, settings, line)
    if prepared.stores:
        with opened_store(settings) as store, store.unit_of_work() as unit:
            body = prepared.keep(unit, ran.result).document
    else:
        body = dump_json(answer.sent(ran.result))
    if output.wants_json:
        output.document(body)
    else:
        output.parts(show.parts(read_output(LayerCostsOut, body)))
    if arguments.plot is not None:
        write_drawing(arguments.plot, render_layer_svg(ran.result), output)
    if ran.is_interrupted:
        output.note("interrupted; the rest was not tuned")
        return INTERRUPTED
    return 0


def _asked(arguments: argparse.Namespace, settings: Settings) -> dict[str, Any]:
    """Return the request that the arguments make. Raises InvalidInput."""
    if arguments.bytes is None:
        raise InvalidInput("expected --bytes, sizes of messages, as 64 4KiB", field="message_bytes")
    given: dict[str, Any] = {
        "layer": _layer_of(arguments.layer, settings),
        "message_bytes": arguments.bytes,
        "between": _between(arguments.between, settings),
        "tune": arguments.tune or None,
        **{name: getattr(arguments, name) for name in _OPTIONS},
    }
    return {name: value for name, value in given.items() if value is not None}


_OPTIONS = (
    *("cycles", "clock_mhz", "features", "packet_words", "mapping", "handshake", "wire_us"),
    *("out_of_order", "time_limit_s", "save_as"),
)


def _layer_of(name: str, settings: Settings) -> str | dict[str, Any]:
    """Return a layer's document where a file has this name, else the name of a published one."""
    from app.console.files import STANDARD_INPUT, json_body

    if name != STANDARD_INPUT and not Path(name).exists():
        return name
    document = json_body(name, settings, field="layer")
    inner = document.get("layer")
    return inner if isinstance(inner, dict) else document  # also as GET /layers/{name} sends it


def _between(name: str | None, settings: Settings) -> list[Any] | None:
    from app.console.files import json_body

    if name is None:
        return None
    pipeline = json_body(name, settings, field="between").get("pipeline")
    stages = pipeline.get("stages") if isinstance(pipeline, dict) else None
    if not isinstance(stages, list):
        raise InvalidInput("expected a file with stages, in JSON", field="between")
    return stages
