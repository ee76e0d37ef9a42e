"""sluice model layer: a layer of a file or by name, stages between, a picture in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.ui.grammar import Arguments, Command
from app.ui.options import add_words, body_of_options
from contract.declare import words_of
from contract.layer_costs import LayerCostsIn
from domain.errors import InvalidInput

if TYPE_CHECKING:
    from app.settings import Settings
    from app.ui.terminal import Output

WORDS = words_of(
    LayerCostsIn,
    (
        *("message_bytes", "packet_words", "features", "cycles", "clock_mhz", "mapping"),
        *("handshake", "between", "wire_us", "out_of_order", "tune", "time_limit_s"),
    ),
)
SAVED = words_of(LayerCostsIn, ("save_as",))


def add_arguments(command: Command) -> None:
    """Add the words of the request, and those of a terminal alone."""
    command.argument(
        "layer", metavar="LAYER", help="a published one, as cmam-finite, or a document's file"
    )
    add_words(command, WORDS)
    command.option("--plot", metavar="OUT", help="draw bars by service into this SVG file")
    add_words(command, SAVED)


def run(arguments: Arguments, output: Output) -> int:
    """Count, tune where that is asked for, print, draw, and store the stages."""
    from app.console.commands import opened_store
    from app.console.files import check_target, write_drawing
    from app.console.running import counting_line, run_operation
    from app.errors import INTERRUPTED
    from app.plots.models_svg import render_layer_svg
    from app.questions.source import Stored
    from app.schemas.base import dump_json, read_output
    from app.settings import Settings
    from app.verbs.layer import answer, show
    from app.verbs.layer.operation import operation
    from contract.layer_costs import LayerCostsOut

    if arguments.plot is not None:
        check_target(arguments.plot, field="plot", noun="the plot", example="layer.svg")
    settings = Settings.from_environment()
    prepared = operation(asked_of(arguments, settings), Stored(), settings)
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


def asked_of(arguments: Arguments, settings: Settings) -> LayerCostsIn:
    """Return the request that the arguments make. Raises InvalidInput, and what reading a file
    does.
    """
    from app.schemas.base import dump_json, parse_json

    body = body_of_options((*WORDS, *SAVED), arguments)
    if "message_bytes" not in body:
        raise InvalidInput("expected --bytes, sizes of messages, as 64 4KiB", field="message_bytes")
    body["layer"] = _layer_of(arguments.layer, settings)
    if arguments.between is not None:
        body["between"] = _between(arguments.between, settings)
    return parse_json(LayerCostsIn, dump_json(body))


def _layer_of(name: str, settings: Settings) -> str | dict[str, Any]:
    """Return a layer's document where a file has this name, else the name of a published one."""
    from app.console.files import is_there, json_body
    from app.schemas.layer import document_in

    if not is_there(name):
        return name
    return document_in(json_body(name, settings, field="layer"))


def _between(name: str, settings: Settings) -> list[Any]:
    """Return the stages of a file. Raises InvalidInput, and what reading it does."""
    from app.console.files import json_body

    pipeline = json_body(name, settings, field="between").get("pipeline")
    stages = pipeline.get("stages") if isinstance(pipeline, dict) else None
    if not isinstance(stages, list):
        raise InvalidInput("expected a file with stages, in JSON", field="between")
    return stages
