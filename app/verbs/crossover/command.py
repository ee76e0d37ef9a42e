"""sluice crossover: what only a terminal has: two sources, and a setting alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.ui.grammar import Arguments, Command
from app.ui.options import add_words, body_of_options, options_named
from contract.crossover import CrossoverIn
from contract.declare import words_of
from contract.fit_options import FitOptionsIn
from domain.errors import InconsistentInput

if TYPE_CHECKING:
    from app.console.files import Source
    from app.questions.source import Source as CostSource
    from app.settings import Settings
    from app.ui.terminal import Output

OF_ROWS = words_of(FitOptionsIn, ("test", "run", "where", "columns"))


def add_arguments(command: Command) -> None:
    """Add the words of the request, and those of a terminal alone."""
    command.argument("a", metavar="A", help="path below: file, - or profile")
    command.argument("b", metavar="B", help="path from the threshold on")
    add_words(command, words_of(CrossoverIn))
    add_words(command, OF_ROWS)


def run(arguments: Arguments, output: Output) -> int:
    """Search, and print what was found, or the setting alone where one was asked for."""
    from app.console.commands import store_for
    from app.console.running import counting_line, run_operation
    from app.errors import INTERRUPTED
    from app.questions.source import Stored
    from app.schemas.base import dump_json
    from app.settings import Settings
    from app.verbs.crossover import show
    from app.verbs.crossover.operation import operation

    settings = Settings.from_environment()
    asked, (a, b) = asked_of(arguments, settings)
    with store_for(a, settings) as first, store_for(b, settings) as second:
        prepared = operation(asked, Stored.of_store(first or second), settings, (a, b))
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


def asked_of(
    arguments: Arguments, settings: Settings
) -> tuple[CrossoverIn, tuple[CostSource, CostSource]]:
    """Return the request of the arguments, and where both paths' costs come from. A path is called
    as its file, without the folder. Raises InvalidInput, and what reading a source does.
    """
    from app.console.files import (
        STANDARD_INPUT,
        ProfileSource,
        TraceSource,
        body_of,
        costs_of,
        merged,
        read_source,
    )
    from app.schemas.base import dump_json, parse_json
    from app.schemas.source import source_of
    from contract.limits import MAX_NAME_LENGTH
    from contract.source import SOURCE_FIELDS
    from domain.conditions import named_test
    from domain.errors import InvalidInput

    if arguments.a == arguments.b == STANDARD_INPUT:
        raise InvalidInput("expected standard input for one path alone", field="b")
    body: dict[str, Any] = body_of_options(words_of(CrossoverIn), arguments)
    sources = {place: read_source(getattr(arguments, place), settings) for place in ("a", "b")}
    said = body_of_options(OF_ROWS, arguments)
    _check_said(said, tuple(sources.values()))
    for place, source in sources.items():
        is_file = isinstance(source, TraceSource)
        name = Path(getattr(arguments, place)).name
        of_file = {"test": named_test(name), **said}
        costs = merged(body_of(source), {"fit_options": of_file if is_file else {}})
        body[place] = {name: one for name, one in costs.items() if name in SOURCE_FIELDS}
        if not isinstance(source, ProfileSource) and name != STANDARD_INPUT:
            body[f"{place}_name"] = name[:MAX_NAME_LENGTH]
    with options_named(words_of(CrossoverIn)):
        asked = parse_json(CrossoverIn, dump_json(body))
    a, b = costs_of(sources["a"], source_of(asked.a)), costs_of(sources["b"], source_of(asked.b))
    return asked, (a, b)


def _check_said(said: Mapping[str, Any], sources: Sequence[Source]) -> None:
    """Raise InconsistentInput for what is said of a file's rows where no path is a file."""
    from app.console.files import TraceSource

    first = next(iter(said), None)
    if first is not None and not any(isinstance(source, TraceSource) for source in sources):
        raise InconsistentInput(
            "said of a file of measurements, and neither path is one", field=f"--{first}"
        )
