"""sluice model thresholds: what only a terminal has: the source, a picture in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.ui.grammar import Arguments, Command
from app.ui.options import add_words, body_of_options
from contract.declare import words_of
from contract.thresholds import ThresholdsIn

if TYPE_CHECKING:
    from app.ui.terminal import Output


def add_arguments(command: Command) -> None:
    """Add the words of the request, and those of a terminal alone."""
    command.argument("source", metavar="SOURCE", help="file, - or profile")
    add_words(command, words_of(ThresholdsIn))
    command.option("--plot", metavar="FILE", help="draw the first message into this SVG file")


def run(arguments: Arguments, output: Output) -> int:
    """Price the grid, print the best of each message and of all, and draw the first message."""
    from app.console.commands import store_for
    from app.console.files import check_plot_file, costs_of, read_source, request_of, write_drawing
    from app.console.running import counting_line, run_operation
    from app.errors import INTERRUPTED
    from app.questions.source import Stored
    from app.schemas.base import dump_json
    from app.schemas.source import source_of
    from app.settings import Settings
    from app.verbs.thresholds import answer, show
    from app.verbs.thresholds.operation import operation

    if arguments.plot is not None:
        check_plot_file(arguments.plot)
    settings = Settings.from_environment()
    source = read_source(arguments.source, settings)
    options = body_of_options(words_of(ThresholdsIn), arguments)
    asked = request_of(ThresholdsIn, source, options, needs_message=True, takes_messages=True)
    costs = costs_of(source, source_of(asked))
    with store_for(costs, settings) as store:
        prepared = operation(asked, Stored.of_store(store), settings, costs)
    with counting_line(output.err) as line:
        ran = run_operation(prepared, settings, line)
    found = answer.priced(ran.result)
    if output.wants_json:
        output.document(dump_json(found))
    else:
        output.parts(show.parts(found))
    if arguments.plot is not None:
        write_drawing(arguments.plot, show.drawing(found), output)
    return INTERRUPTED if ran.is_interrupted else 0
