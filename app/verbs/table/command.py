"""sluice table: compile a plan table, store it or write it into a file, and show it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from app.ui.grammar import Arguments, Command
from app.ui.options import add_words, body_of_options
from contract.declare import words_of
from contract.hide import HIDDEN_BEHIND, HideIn
from contract.source import SOURCE_FIELDS, SourceIn
from contract.table import TableIn
from domain.errors import InvalidInput
from domain.units import parse_number

if TYPE_CHECKING:
    from app.console.files import Source
    from app.questions.question import Question
    from app.questions.tables import TableQuestion, TableScope
    from app.settings import Settings
    from app.ui.terminal import Output
    from domain.hiding import HiddenBehind
    from domain.problem import AnyProblem
    from models.session import Store

MISSED = 7  # the exit code of a table that misses its tolerance, unless that is accepted
WORDS = (*words_of(TableIn), *words_of(SourceIn, ("fit_options",)))
BEHIND = words_of(HideIn, HIDDEN_BEHIND)
_FIELD = "output"


def add_arguments(command: Command) -> None:
    """Add the words of the request, and those of a terminal alone."""
    command.argument("source", metavar="SOURCE", help="file, - or profile")
    add_words(command, WORDS)
    command.option("--output", metavar="FILE", help="write the table file; .json: its JSON twin")
    command.flag("--accept-missed", help="exit with 0, not 7, where the tolerance is missed")
    command.flag("--hidden", help="for messages behind a --calculation, as in hide")
    command.option(
        "--calculation-per-byte", read=parse_number, metavar="US", help="and for each byte, in µs"
    )
    add_words(command, BEHIND)


def run(arguments: Arguments, output: Output) -> int:
    """Compile, store where the source is a profile, write where a file is named, and report."""
    from app.console.commands import store_for
    from app.console.files import check_target, read_source, write_whole
    from app.errors import INTERRUPTED
    from app.schemas.base import read_output
    from app.settings import Settings
    from app.text.numbers import format_count
    from app.text.units import printable
    from app.verbs.table.show import parts
    from contract.table import TableOut

    if arguments.output is not None:
        check_target(arguments.output, field=_FIELD, noun="the table", example="myrinet.slt")
    settings = Settings.from_environment()
    scope, question = _asked(arguments, read_source(arguments.source, settings))
    with store_for(question.source, settings) as store:
        if arguments.activate and (store is None or arguments.hidden):
            what = "a table becomes active for a stored profile, and none of hidden messages does"
            raise InvalidInput(what, field="activate")
        asked = _question_of(arguments, scope, question, settings, store)
        keep_in = None if asked.behind else store  # lookups give latencies
        made = _compiled(asked, settings, keep_in, output, activate=arguments.activate)
    file, document, is_interrupted = made
    if arguments.output is not None:
        write_whole(arguments.output, _form(arguments.output, file), field=_FIELD, noun="the table")
    compiled = read_output(TableOut, document)
    if output.wants_json:
        output.document(document)
    else:
        output.parts(parts(compiled))
        if arguments.output is not None:
            output.out.write_line(f"written to {printable(arguments.output)}")  # never wrapped
    if is_interrupted:
        output.note("interrupted; gaps are those reached by then, and no profile keeps the table")
        return INTERRUPTED
    if not compiled.missed_total or arguments.accept_missed:
        return 0
    output.note(
        f"the tolerance is missed for {format_count(compiled.missed_bytes)} message sizes: accept "
        "that with --accept-missed, or give a looser --relative-gap or more --time-limit"
    )
    return MISSED


def _asked(arguments: Arguments, source: Source) -> tuple[TableScope, Question]:
    """Return the table's scope, and the question that finds or fits its model."""
    from app.console.files import body_of, costs_of, merged, refuse_items
    from app.schemas.base import dump_json, parse_json
    from app.schemas.source import costs_question
    from app.verbs.table.request import scope_of
    from contract.optimize import OptimizeIn

    # What only an optimisation has is left out, so that its request file serves here too.
    ours = (*SOURCE_FIELDS, "constraints")
    refuse_items(body_of(source))
    given = {name: value for name, value in body_of(source).items() if name in ours}
    body = merged(given, body_of_options(WORDS, arguments))
    costs = {name: body.pop(name) for name in SOURCE_FIELDS if name in body}
    asked = parse_json(TableIn, dump_json(body))
    scope = scope_of(asked)
    costs |= {"message_bytes": scope.max_message_bytes, **_limits(body)}
    of_costs = parse_json(OptimizeIn, dump_json(costs))
    question = costs_question(of_costs, scope.max_message_bytes, of_costs.constraints)
    return scope, replace(question, source=costs_of(source, question.source))


def _limits(body: dict[str, Any]) -> dict[str, Any]:
    return {name: body[name] for name in ("constraints",) if name in body}


def _question_of(
    arguments: Arguments,
    scope: TableScope,
    question: Question,
    settings: Settings,
    store: Store | None,
) -> TableQuestion:
    """Return what to compile."""
    from app.questions.question import prepare
    from app.questions.source import Stored
    from app.questions.tables import table_question

    cap = settings.max_fragments
    prepared = prepare(question, Stored.of_store(store), fragment_cap=cap)
    model, profile, fit = prepared.problem.model, prepared.profile, prepared.fit
    verification = prepared.verification
    asked = table_question(
        model, profile, scope, fragment_cap=cap, fit=fit, verification=verification
    )
    return replace(asked, behind=_behind(arguments, prepared.problem))


def _behind(arguments: Arguments, problem: AnyProblem) -> HiddenBehind | None:
    """Return what messages are hidden behind; None where they are waited for."""
    from analysis.hiding import Exchange
    from app.schemas.base import dump_json, parse_json
    from app.schemas.host_stages import host_stages, of_stages
    from domain.hiding import HiddenBehind

    given = body_of_options(BEHIND, arguments)
    per_byte = arguments.calculation_per_byte
    if not arguments.hidden:
        if given or per_byte is not None:
            raise InvalidInput("a calculation is for --hidden messages", field="hidden")
        return None
    asked: HideIn = parse_json(HideIn, dump_json(given))
    if asked.calculation_us is None:
        raise InvalidInput("expected the calculation that hides messages", field="calculation")
    hosts = host_stages(asked.host_stages, of_stages(problem, field="hidden"))
    return HiddenBehind(
        asked.calculation_us,
        per_byte or 0.0,
        asked.hideable_fraction,
        asked.hiding_overhead_us,
        hosts.processors(Exchange(asked.exchange)),
    )


def _compiled(
    asked: TableQuestion,
    settings: Settings,
    store: Store | None,
    output: Output,
    *,
    activate: bool | None,
) -> tuple[bytes, bytes, bool]:
    """Return the table file and its document, stored ones or compiled now, and whether Ctrl-C ended
    that: it is then finished with the gaps reached, and not stored.

    The document says first what transfers say of the profile.
    """
    from app.console.running import run_or_end, share_line
    from app.questions.tables import get_table
    from app.schemas.table import said_first
    from app.verbs.table.answer import render_table
    from app.verbs.table.operation import CompileTable

    operation = CompileTable(asked, activate)
    if store is not None:
        with store.unit_of_work() as unit:
            stored = operation.stored(unit)
        if stored is not None and stored.table_digest is not None:
            file = get_table(store, stored.table_digest).file
            return file, stored.document, False
    with share_line(output.err, "compiling") as show:
        ran = run_or_end(lambda end: replace(operation, files=(end,)), settings, show)
    compiled = ran.result
    if store is None or ran.is_interrupted:
        return compiled.file, said_first(render_table(compiled), asked), ran.is_interrupted
    with store.unit_of_work() as unit:
        return compiled.file, operation.keep(unit, compiled).document, False


def _form(name: str, file: bytes) -> bytes:
    """Return the table file, or its JSON twin where the name says so."""
    from app.questions.tables import json_twin

    return json_twin(file) if name.lower().endswith(".json") else file
