"""sluice model hide: what only a terminal has: the source, a picture in a file."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from app.ui.grammar import Arguments, Command
from app.ui.options import (
    add_items,
    add_most_items,
    add_words,
    body_of_options,
    says_items,
    with_most_items,
)
from contract.declare import words_of
from contract.hide import HideIn

if TYPE_CHECKING:
    from app.settings import Settings
    from app.ui.terminal import Output


def add_arguments(command: Command) -> None:
    """Add the words of the request, and those of a terminal alone."""
    command.argument("source", metavar="SOURCE", is_optional=True, help="file, - or profile")
    add_items(command)
    add_most_items(command)
    add_words(command, words_of(HideIn))
    command.option("--plot", metavar="FILE", help="draw into this SVG file")
    command.option(
        "--picture",
        choices=("run_time", "gain", "speedup"),
        metavar="NAME",
        help="run_time (default), gain or speedup",
    )


def run(arguments: Arguments, output: Output) -> int:
    """Search, print, draw where that is asked for, and return the exit code."""
    from app.console.commands import store_for
    from app.console.files import check_plot_file, costs_of, read_source, request_of, write_drawing
    from app.console.running import OperationRun, counting_line, run_operation
    from app.errors import INTERRUPTED
    from app.questions.source import Stored
    from app.schemas.base import dump_json
    from app.schemas.source import source_of
    from app.settings import Settings
    from app.verbs.hide import show
    from app.verbs.hide.operation import operation
    from app.verbs.hide.request import model_question, source_question

    if arguments.plot is not None:
        check_plot_file(arguments.plot)
    settings = Settings.from_environment()
    source = None if arguments.source is None else read_source(arguments.source, settings)
    asked = request_of(
        HideIn,
        source,
        body_of_options(words_of(HideIn), arguments),
        complete=partial(_completed, arguments=arguments, settings=settings),
    )
    costs = None
    if asked.items is not None and asked.granularity is None:
        costs = costs_of(source, source_of(asked))
    elif model_question(asked) is None:
        costs = costs_of(source, source_question(asked).source)
    with store_for(costs, settings) as store:
        prepared = operation(asked, Stored.of_store(store), settings, costs)
    with counting_line(output.err) as line:
        ran: OperationRun[Any] = run_operation(prepared, settings, line)
    found = prepared.document(ran.result)
    if output.wants_json:
        output.document(dump_json(found))
    else:
        output.parts(show.parts(found))
    if arguments.plot is not None:
        write_drawing(arguments.plot, show.drawing(found, arguments.picture), output)
    return INTERRUPTED if ran.is_interrupted else 0


def _completed(body: dict[str, Any], arguments: Arguments, settings: Settings) -> dict[str, Any]:
    """Return the body with items of a file, and the limit on those of a fragment."""
    if says_items(arguments):
        from app.console.items import with_items

        body = with_items(body, arguments, settings)
    return with_most_items(body, arguments)
