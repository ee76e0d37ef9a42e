"""sluice audit: a setting of options or of a library's file; the exit code says if it is kept."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from app.text.units import parse_size_or_whole
from app.ui.grammar import Arguments, Command
from app.ui.options import add_items, add_words, body_of_options, says_items
from contract.audit import AuditIn
from contract.declare import words_of
from contract.source import SOURCE_FIELDS
from domain.errors import InvalidInput

if TYPE_CHECKING:
    from app.settings import Settings
    from app.ui.terminal import Output

TOO_HIGH = 7  # the exit code where the regret is above what is allowed
OF_COSTS = (*SOURCE_FIELDS, "uncertainty")  # what a file of costs may say; its limits are its own
OF_ITEMS = ("items", "sequences", "fill")


def add_arguments(command: Command) -> None:
    """Add the words of the request, and those of a terminal alone."""
    command.argument("source", metavar="SOURCE", help="file, - or profile")
    add_items(command)
    command.option(
        "--current",
        read=parse_size_or_whole,
        metavar="SIZE",
        help="the cap in use, or whole: as --setting",
    )
    add_words(command, words_of(AuditIn))


def run(arguments: Arguments, output: Output) -> int:
    """Audit, print, and return the exit code, which shows whether the limit is kept."""
    from app.console.commands import store_for
    from app.console.files import costs_of, read_source, request_of
    from app.console.running import OperationRun, counting_line, run_operation
    from app.errors import INTERRUPTED
    from app.questions.source import Stored
    from app.schemas.base import dump_json
    from app.schemas.source import source_of
    from app.settings import Settings
    from app.verbs.audit.operation import operation
    from app.verbs.audit.show import parts

    settings = Settings.from_environment()
    source = read_source(arguments.source, settings)
    asked = request_of(
        AuditIn,
        source,
        options_of(arguments),
        takes=(*OF_COSTS, *OF_ITEMS),
        complete=partial(_completed, arguments=arguments, settings=settings),
    )
    costs = costs_of(source, source_of(asked))
    with store_for(costs, settings) as store:
        prepared = operation(asked, Stored.of_store(store), settings, costs)
    with counting_line(output.err) as show:
        ran: OperationRun[Any] = run_operation(prepared, settings, show)
    found = prepared.document(ran.result)
    if output.wants_json:
        output.document(dump_json(found))
    else:
        output.parts(parts(found))
    if ran.is_interrupted:
        output.note("interrupted; this is by what was solved so far")
        return INTERRUPTED
    return 0 if found.is_kept else TOO_HIGH


def _completed(body: dict[str, Any], arguments: Arguments, settings: Settings) -> dict[str, Any]:
    """Return the body with items of a file."""
    if not says_items(arguments):
        return body
    from app.console.items import items_of

    found = items_of(arguments, settings)
    if "items" in found:
        body = {name: value for name, value in body.items() if name != "sequences"}
    return body | found


def options_of(arguments: Arguments) -> dict[str, Any]:
    """Return what the options say. Raises InvalidInput unless one setting is given."""
    target, config = arguments.setting_configuration_target, arguments.setting_configuration_content
    setting = arguments.setting
    if arguments.current is not None:
        if setting is not None:
            raise InvalidInput("--current and --setting say the same", field="current")
        is_whole = arguments.current == "whole"
        setting = {"whole": True} if is_whole else {"static_bytes": arguments.current["repeat"]}
    if (setting is None) == (config is None):
        raise InvalidInput("expected --setting, or --config with --target", field="setting")
    if config is None and target is not None:
        raise InvalidInput("--target names the syntax of a --config", field="target")
    if config is not None and target is None:
        raise InvalidInput("expected --target, whose syntax --config has", field="target")
    options = body_of_options(words_of(AuditIn), arguments)
    return options if config is not None else options | {"setting": setting}
