"""sluice model deliver: a run by a rule for each stage, which is a form of simulate's request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.ui.grammar import Arguments, Command
from app.ui.options import add_words, body_of_options
from contract.declare import words_of
from contract.simulate import SimulateIn

if TYPE_CHECKING:
    from app.ui.terminal import Output

WORDS = words_of(SimulateIn, ("message_bytes", "delivery", "fit_options"))


def add_arguments(command: Command) -> None:
    """Add the words of the request, and those of a terminal alone."""
    command.argument("source", metavar="SOURCE", help="file, - or profile")
    add_words(command, WORDS, required=("--rules",))
    command.option("--timeline", metavar="FILE", help="draw the intervals into this SVG file")


def run(arguments: Arguments, output: Output) -> int:
    """Run the rules, print what each stage did, and draw it where that is asked for."""
    from app.console.commands import store_for
    from app.console.files import check_timeline_file, costs_of, read_source, request_of
    from app.questions.simulate import pipeline_of, said_by, simulate_delivery
    from app.questions.source import Stored
    from app.schemas.source import options_of, source_of
    from app.settings import Settings
    from app.verbs.simulate.command import show_run
    from app.verbs.simulate.request import cut_of

    if arguments.timeline is not None:
        check_timeline_file(arguments.timeline)
    settings = Settings.from_environment()
    source = read_source(arguments.source, settings)
    options = body_of_options(WORDS, arguments)
    asked = request_of(SimulateIn, source, options, needs_message=True)
    costs = costs_of(source, source_of(asked))
    cut = cut_of(asked)
    with store_for(costs, settings) as store:
        pipeline, found = pipeline_of(costs, options_of(asked), Stored.of_store(store))
    delivered = simulate_delivery(pipeline, cut.message_bytes, cut.rules)
    show_run(said_by(delivered, found), cut, arguments.timeline, output)
    return 0
