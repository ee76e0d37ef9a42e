# app/verbs/curve/command.py
"""sluice curve: what only a terminal has. Modules are loaded when the command runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.ui.grammar import Arguments, Command
from app.ui.options import add_words, body_of_options
from contract.curve import CurveIn
from contract.declare import words_of

if TYPE_CHECKING:
    from app.ui.terminal import Output


def add_arguments(command: Command) -> None:
    """Add the words of the request, and those of a terminal alone."""
    command.argument("profile", metavar="PROFILE", help="a stored one")
    add_words(command, words_of(CurveIn))


def run(arguments: Arguments, output: Output) -> int:
    """Compute, print, and return the exit code."""
    from app.console.commands import opened_store
    from app.console.running import counting_line, run_operation
    from app.questions.source import Stored
    from app.schemas.base import dump_json, parse_json
    from app.settings import Settings
    from app.verbs.curve.answer import sent
    from app.verbs.curve.operation import operation
    from app.verbs.curve.show import parts

    settings = Settings.from_environment()
    body = {"profile": arguments.profile, **body_of_options(words_of(CurveIn), arguments)}
    with opened_store(settings) as store:
        prepared = operation(parse_json(CurveIn, dump_json(body)), Stored.of_store(store), settings)
    with counting_line(output.err) as line:
        found = sent(run_operation(prepared, settings, line).result)
    if output.wants_json:
        output.document(dump_json(found))
    else:
        output.parts(parts(found))
    return 0
