"""sluice crossover: what only a terminal has: two sources, and a setting alone."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.ui.options import add_words, body_of_options
from contract.crossover import CrossoverIn
from contract.declare import words_of

if TYPE_CHECKING:
    from app.console.files import Source
    from app.ui.terminal import Output


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the words of the request, and those of a terminal alone."""
    parser.add_argument("a", metavar="A", help="path below: file, - or profile")
    parser.add_argument("b", metavar="B", help="path from the threshold on")
    add_words(parser, words_of(CrossoverIn))


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Search, and print what was found, or the setting alone where one was asked for."""
    from app.console.commands import INTERRUPTED, store_for
    from app.console.files import costs_of, read_source
    from app.console.running import counting_line, run_operation
    from app.questions.source import Stored
    from app.schemas.base import dump_json, parse_json
    from app.schemas.source import source_of
    from app.settings import Settings
    from app.verbs.crossover import show
    from app.verbs.crossover.operation import operation

    settings = Settings.from_environment()
    names = (arguments.a, arguments.b)
    _check_different(*names)
    a, b = (read_source(name, settings) for name in names)
    body: dict[str, Any] = {
        "a": _body(a),
        "b": _body(b),
        "a_name": _name_of(arguments.a),
        "b_name": _name_of(arguments.b),
        **body_of_options(words_of(CrossoverIn), arguments),
    }
    asked = parse_json(CrossoverIn, dump_json(body))
    costs = costs_of(a, source_of(asked.a)), costs_of(b, source_of(asked.b))
    with store_for(costs[0], settings) as first, store_for(costs[1], settings) as second:
        prepared = operation(asked, Stored.of_store(first or second), settings, costs)
    with counting_line(output.err) as line:
        ran = run_operation(prepared, settings, line)
    found = prepared.document(ran.result)
    if output.wants_json:
        output.document(dump_json(found))
    elif found.setting is not None:
        output.out.stream.write(found.setting.text)
    else:
        output.parts(show.parts(found))
    return INTERRUPTED if ran.is_interrupted else 0


def _check_different(a: str, b: str) -> None:
    """Raise InvalidInput where both are standard input, which is read once."""
    from app.console.files import STANDARD_INPUT
    from domain.errors import InvalidInput

    if a == b == STANDARD_INPUT:
        raise InvalidInput("expected standard input for one path alone", field="b")


def _body(source: Source) -> dict[str, Any]:
    """Return the costs of a source: of a request body what it says of them."""
    from app.console.files import body_of
    from contract.source import SOURCE_FIELDS

    return {name: one for name, one in body_of(source).items() if name in SOURCE_FIELDS}


def _name_of(source: str) -> str:
    """Return what a path is called: its file without the folder, or its profile; "" of no name."""
    from contract.limits import MAX_NAME_LENGTH

    return "" if source == "-" else Path(source).name[:MAX_NAME_LENGTH]
