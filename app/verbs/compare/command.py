"""sluice compare: every strategy on every size, printed as a table a size."""

from __future__ import annotations

from dataclasses import replace
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
from contract.compare import CompareIn
from contract.declare import words_of

if TYPE_CHECKING:
    from app.questions.source import Source, Stored
    from app.settings import Settings
    from app.ui.terminal import Output

DEFAULT_STATIC_BYTES = 4096  # what GAM repeats


def add_arguments(command: Command) -> None:
    """Add the words of the request, and those of a terminal alone."""
    command.argument("source", metavar="SOURCE", help="file, - or profile")
    add_items(command)
    add_most_items(command)
    add_words(command, words_of(CompareIn))


def run(arguments: Arguments, output: Output) -> int:
    """Solve every strategy on every size and print the table."""
    from app.console.commands import store_for
    from app.console.files import body_of, costs_of, read_source, request_of
    from app.console.running import OperationRun, counting_line, run_operation, ticking_line
    from app.errors import INTERRUPTED
    from app.questions.source import Stored
    from app.schemas.base import dump_json
    from app.schemas.source import source_of
    from app.settings import Settings
    from app.verbs.compare.operation import operation
    from app.verbs.compare.show import parts

    settings = Settings.from_environment()
    source = read_source(arguments.source, settings)
    asked = request_of(
        CompareIn,
        source,
        body_of_options(words_of(CompareIn), arguments),
        needs_message=not says_items(arguments),
        takes_messages=True,
        complete=partial(_completed, arguments=arguments, settings=settings),
    )
    costs = costs_of(source, source_of(asked))
    names_none = "strategies" not in body_of(source) and arguments.strategies is None
    with store_for(costs, settings) as store, ticking_line(output.err, "fitting"):
        stored = Stored.of_store(store)
        if names_none and asked.items is None and _is_machine(costs, stored):
            asked = _on_machine(asked, names_static=arguments.static_bytes is not None)
        prepared = operation(asked, stored, settings, costs)
    with counting_line(output.err) as show:
        ran: OperationRun[Any] = run_operation(prepared, settings, show)
    found = prepared.document(ran.result)
    if output.wants_json:
        output.document(dump_json(found))
    else:
        output.parts(parts(found))
    if ran.is_interrupted:
        output.note("interrupted; the rest was not tried")
    return INTERRUPTED if ran.is_interrupted else 0


def _completed(body: dict[str, Any], arguments: Arguments, settings: Settings) -> dict[str, Any]:
    """Return the body with items of a file, or with the strategies that it does not name."""
    if says_items(arguments):
        from app.console.items import with_items

        body = with_items(body, arguments, settings)
    return _with_strategies(with_most_items(body, arguments))


def _with_strategies(body: dict[str, Any]) -> dict[str, Any]:
    """Return the body with all strategies where it names none, and no items."""
    from domain.solution import COMPARED

    if body.get("items") is not None:
        return body
    if "strategies" in body:
        return body
    return {"static_bytes": DEFAULT_STATIC_BYTES, **body, "strategies": [*COMPARED]}


def _is_machine(costs: Source, stored: Stored) -> bool:
    """Whether these costs, or those of the profile that they name, are a machine's."""
    from domain.machine import Machine
    from domain.profile import ProfileReference

    if isinstance(costs, ProfileReference):
        return isinstance(stored.revision(costs, machines=True).model, Machine)
    return isinstance(costs, Machine)


def _on_machine(asked: CompareIn, *, names_static: bool) -> CompareIn:
    """Return the same with the strategies that hold for machines; `static` where it has a size."""
    from domain.solution import COMPARED_ON_MACHINES, Strategy

    names = [one.value for one in (*COMPARED_ON_MACHINES, *[Strategy.STATIC] * names_static)]
    given: dict[str, Any] = {"strategies": names}
    return replace(asked, **given, static_bytes=asked.static_bytes if names_static else None)
