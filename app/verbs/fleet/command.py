"""sluice admin fleet: tables of stored profiles, compiled by jobs; goes on where it was ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from app.text.units import parse_whole
from app.ui.grammar import Arguments, Command
from app.ui.options import add_words, body_of_options
from contract.declare import words_of
from contract.table import TableIn
from domain.profile import ProfileReference

if TYPE_CHECKING:
    from app.ui.terminal import Output
    from models.session import Store

REFUSED = 3  # the exit code where a profile has no table
WORDS = tuple(
    replace(word, help=f"of each table, {word.help}") if word.place == ("time_limit_s",) else word
    for word in words_of(TableIn)
    if word.place != ("activate",)
)
_PAGE = 200


def add_arguments(command: Command) -> None:
    """Add the words of the request, and those of a terminal alone."""
    command.argument(
        "profiles",
        metavar="PROFILE",
        takes_several=True,
        is_optional=True,
        help="such as name or name@2",
    )
    add_words(command, WORDS)
    command.option("--report", metavar="FILE", help="write what became of each into this file")
    command.option("--owner", metavar="OWNER", rest="local", help="whose (local)")
    command.option(
        "--workers", read=parse_whole, metavar="COUNT", help="child processes that solve"
    )


def run(arguments: Arguments, output: Output) -> int:
    """Compile, and end at a signal as at Ctrl-C."""
    from app.console.running import ended_by_signals

    with ended_by_signals():
        return _run(arguments, output)


def _run(arguments: Arguments, output: Output) -> int:
    """Have a job compile each profile's table, and report what became of them.

    Jobs and tables are stored: what is there is not made again, so that the command goes on where
    it was ended. It runs jobs itself, beside all others that do, unless SLUICE_RUN_JOBS=0.
    """
    from contextlib import ExitStack

    from app.console.checked import with_workers
    from app.console.commands import opened_store
    from app.console.files import check_target, write_whole
    from app.console.running import counting_line
    from app.jobs.runner import open_runner
    from app.operations.tasks import open_engine
    from app.questions.keys import check_owner
    from app.schemas.base import dump_json, parse_json
    from app.settings import Settings
    from app.verbs.fleet.answer import fleet_out
    from app.verbs.fleet.operation import Fleet
    from app.verbs.fleet.show import parts
    from app.verbs.table.request import scope_of

    settings = with_workers(Settings.from_environment(), arguments)
    options = body_of_options(WORDS, arguments)
    scope = scope_of(parse_json(TableIn, dump_json(options)))
    references = tuple(map(ProfileReference.parse, arguments.profiles))
    owner = check_owner(arguments.owner)
    if arguments.report is not None:
        check_target(arguments.report, field="report", noun="the report", example="fleet.json")
    with ExitStack() as stack:
        store = stack.enter_context(opened_store(settings))
        if settings.run_jobs:
            engine = open_engine(settings, has_clients=False)
            stack.callback(engine.close)
            runner = open_runner(store, engine, settings)
            runner.start()
            stack.callback(runner.close)
        show = stack.enter_context(counting_line(output.err, "profiles"))
        try:
            mine = store.of(owner)
            made = Fleet(mine, scope, settings, show).compiled(references or _every(mine))
            report = fleet_out(made)
        except KeyboardInterrupt:
            output.note("the same command goes on where this one ended")
            raise
    document = dump_json(report)
    if arguments.report is not None:
        write_whole(arguments.report, document, field="report", noun="the report")
    if output.wants_json:
        output.document(document)
    else:
        output.parts(parts(report))
    return REFUSED if report.failed else 0


def _every(store: Store) -> Iterator[ProfileReference]:
    from app.questions.profiles import list_profiles

    page = list_profiles(store, limit=_PAGE)
    yield from (ProfileReference(profile.name) for profile in page.profiles)
    while page.after is not None:
        page = list_profiles(store, after=page.after, limit=_PAGE)
        yield from (ProfileReference(profile.name) for profile in page.profiles)
