"""sluice export: a pipeline as a library's settings, on standard output or into a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from app.ui.grammar import Arguments, Command
from app.ui.options import add_words, body_of_options
from contract.declare import Asked, words_of
from contract.export import ExportIn
from contract.source import SOURCE_FIELDS, SourceIn
from domain.errors import InvalidInput

if TYPE_CHECKING:
    from app.console.files import Source
    from app.console.running import OperationRun
    from app.questions.question import Question
    from app.questions.settings import Exported, ExportQuestion, ExportScope, TableFile
    from app.settings import Settings
    from app.ui.terminal import Output
    from domain.profile import ProfileRevision
    from models.session import Store

NO_GAIN = 7  # the exit code with --require-gain, where none is known
WORDS = words_of(ExportIn)
OVERLAP = words_of(SourceIn, ("fit_options",))
_FIELD = "output"
_DIGEST_DIGITS = 64


def add_arguments(command: Command) -> None:
    """Add the words of the request, and those of a terminal alone."""
    command.argument("source", metavar="SOURCE", is_optional=True, help="file, - or profile")
    command.flag("--list", help="list the targets and their options")
    command.option("--target", metavar="NAME", help="the library, out of those of --list")
    add_words(command, (*WORDS, *OVERLAP))
    command.option("--table", metavar="TABLE", help="digest or file of a compiled table")
    command.flag(
        "--require-gain",
        help="exit with 7 unless it is known to be better than the library's default",
    )
    command.option("--output", metavar="FILE", help="write it to this file")


def run(arguments: Arguments, output: Output) -> int:
    """Render to standard output or a file, or list the targets."""
    from app.console.files import check_target, write_whole
    from app.errors import INTERRUPTED
    from app.text.units import printable

    if arguments.list:
        _list(output)
        return 0
    scope = scope_of(arguments, WORDS)
    if arguments.output is not None:
        check_target(arguments.output, field=_FIELD, noun="the export", example="sluice-ucx.conf")
    ran = exported(arguments, scope, output, body_of_options(OVERLAP, arguments), arguments.table)
    made = ran.result
    if arguments.output is None:
        output.out.stream.write(_shown(made, output))
        output.out.stream.flush()
    else:
        write_whole(arguments.output, made.content, field=_FIELD, noun="the export")
        output.out.write_line(f"written to {printable(arguments.output)}")  # never wrapped
    if ran.is_interrupted:
        output.note("interrupted; these sizes are by what was solved so far")
    elif made.chosen is not None and made.chosen.is_partial:
        output.note("time ended: more of it (--time-limit) may choose other sizes")
    for warning in made.warnings:
        output.note(warning)
    if ran.is_interrupted:
        return INTERRUPTED
    return NO_GAIN if arguments.require_gain and made.is_gain_known is not True else 0


def _list(output: Output) -> None:
    """Print every export target, what it takes and its options."""
    from app.schemas.base import dump_json
    from app.verbs.export.answer import export_targets_out
    from app.verbs.export.show import parts

    targets = export_targets_out()
    if output.wants_json:
        output.document(dump_json(targets))
    else:
        output.parts(parts(targets))


def exported(
    arguments: Arguments,
    scope: ExportScope,
    output: Output,
    said: dict[str, Any],
    table: str | None = None,
) -> OperationRun[Exported]:
    """Return the export of the source that is named; `said` is what a command says of its file.

    Raises what reading and choosing do.
    """
    from app.console.commands import store_for
    from app.console.files import read_source
    from app.settings import Settings

    settings = Settings.from_environment()
    question = _question(read_source(arguments.source, settings), said)
    with store_for(question.source, settings) as store:
        asked = _asked_export(table, scope, question, settings, store)
    return _made(asked, settings, output)


def scope_of(arguments: Arguments, words: Sequence[Asked] = WORDS) -> ExportScope:
    """Return what these words ask for. Raises InvalidInput."""
    from app.schemas.base import dump_json, parse_json
    from app.schemas.export import export_scope

    for name in ("source", "target"):
        if getattr(arguments, name) is None:
            raise InvalidInput(
                "expected a SOURCE and --target NAME; sluice export --list names the targets",
                field=name,
            )
    asked = parse_json(ExportIn, dump_json(body_of_options(words, arguments)))
    return export_scope(asked, arguments.target)


def _question(source: Source, options: dict[str, Any]) -> Question:
    """Return the question that finds or fits the model."""
    from app.console.files import body_of, costs_of, merged, refuse_items
    from app.schemas.base import dump_json, parse_json
    from app.schemas.source import costs_question
    from contract.optimize import OptimizeIn

    # What only an optimisation has is left out, so that its request file serves here too.
    refuse_items(body_of(source))
    given = {name: value for name, value in body_of(source).items() if name in SOURCE_FIELDS}
    body = {**merged(given, options), "message_bytes": 1}
    question = costs_question(parse_json(OptimizeIn, dump_json(body)), 1)
    return replace(question, source=costs_of(source, question.source))


def _asked_export(
    wanted: str | None,
    scope: ExportScope,
    question: Question,
    settings: Settings,
    store: Store | None,
) -> ExportQuestion:
    from app.questions.question import prepare
    from app.questions.settings import export_question
    from app.questions.source import Stored

    cap = settings.max_fragments
    prepared = prepare(question, Stored.of_store(store), fragment_cap=cap)
    table = _table(wanted, prepared.profile, settings, store)
    return export_question(
        prepared.problem.model,
        prepared.profile,
        scope,
        table,
        fragment_cap=cap,
        fit=prepared.fit,
        verification=prepared.verification,
    )


def _table(
    wanted: str | None, profile: ProfileRevision | None, settings: Settings, store: Store | None
) -> TableFile | None:
    """Return the table that is named by its digest or as a file, or the revision's active one."""
    from app.questions.settings import stored_table

    is_digest = wanted is not None and len(wanted) == _DIGEST_DIGITS and wanted.isalnum()
    if wanted is not None and not is_digest:
        return _table_file(wanted, settings)
    if store is None or profile is None:
        if wanted is not None:
            raise InvalidInput(
                "a table is named by its digest where the SOURCE is a profile; expected its file",
                field="table",
            )
        return None
    with store.reading() as unit:
        return stored_table(unit, profile, wanted)


def _table_file(name: str, settings: Settings) -> TableFile:
    from app.questions.settings import TableFile
    from app.text.units import quoted
    from exports.table.slt import digest_of

    limit = settings.max_trace_bytes
    try:
        with open(name, "rb") as file:
            content = file.read(limit + 1)
    except OSError as refusal:
        reason = refusal.strerror or "it cannot be read"
        raise InvalidInput(f"{quoted(name)}: {reason}", field="table") from None
    if len(content) > limit:
        raise InvalidInput(f"expected a table file of at most {limit} bytes", field="table")
    return TableFile(digest_of(content), content)


def _made(question: ExportQuestion, settings: Settings, output: Output) -> OperationRun[Exported]:
    from app.console.running import counting_line, run_operation
    from app.verbs.export.operation import ExportSetting

    with counting_line(output.err) as show:
        return run_operation(ExportSetting(question), settings, show)


def _shown(made: Exported, output: Output) -> str:
    """Return the text; names are the only part of it that may not be ASCII."""
    text = made.content.decode()
    if output.out.is_unicode:
        return text
    return "".join(one if one.isascii() else "_" for one in text)
