"""sluice plan: what only a terminal has: files and folders, and the sizes that it begins with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.ui.grammar import Arguments, Command
from app.ui.options import add_words, body_of_options
from contract.declare import words_of
from contract.plan import MeasurementPlanIn
from domain.errors import InvalidInput

if TYPE_CHECKING:
    from app.ui.terminal import Output

WORDS = words_of(MeasurementPlanIn)
_BEGINS_WITH = {"min_message_bytes": 64, "max_message_bytes": 2**20}


def add_arguments(command: Command) -> None:
    """Add the words of the request, and those of a terminal alone."""
    files = next(word for word in WORDS if word.name == "measurements")
    command.argument(
        "sources", metavar=files.metavar, takes_several=True, is_optional=True, help=files.help
    )
    add_words(command, WORDS)


def run(arguments: Arguments, output: Output) -> int:
    """Print which message sizes to measure next, or that enough is known."""
    from app.console.files import STANDARD_INPUT, read_trace
    from app.console.fit import files_of
    from app.questions.plans import plan
    from app.questions.traces import Measurement
    from app.schemas.base import dump_json
    from app.settings import Settings
    from app.verbs.plan.answer import planned
    from app.verbs.plan.request import plan_limits
    from app.verbs.plan.show import parts

    settings = Settings.from_environment()
    asked = MeasurementPlanIn(**{**_BEGINS_WITH, **body_of_options(WORDS, arguments)})
    limits = plan_limits(asked)
    if arguments.sources.count(STANDARD_INPUT) > 1:
        raise InvalidInput("expected - only once", field="source")
    contents = [read_trace(file.name, settings) for file in files_of(arguments.sources)]
    found = planned(plan(tuple(map(Measurement, contents)), limits))
    if output.wants_json:
        output.document(dump_json(found))
    else:
        output.parts(parts(found))
    return 0
