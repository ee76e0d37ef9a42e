"""sluice export: a pipeline as a library's settings."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from app.console.commands import INTERRUPTED, list_targets, store_for
from app.console.files import (
    Source,
    TraceSource,
    body_of,
    check_target,
    merged,
    read_source,
    said_of_overlap,
    write_whole,
)
from app.console.running import OperationRun, counting_line, run_operation
from app.settings import Settings
from app.text.units import parse_workload, printable, quoted
from app.ui.options import text_of_file
from app.ui.terminal import Output
from domain.errors import InvalidInput

if TYPE_CHECKING:
    from app.questions.question import Question
    from app.questions.settings import Exported, ExportQuestion, ExportScope, TableFile
    from domain.profile import ProfileRevision
    from models.session import Store


_FIELD = "output"
_ASKED = (
    "min_message_bytes",
    "max_message_bytes",
    "objective",
    "min_fragment_bytes",
    "max_fragment_bytes",
    "alignment_bytes",
    "max_fragments",
    "time_limit_s",
)
_DIGEST_DIGITS = 64
NO_GAIN = 7  # the exit code with --require-gain, where none is known


def export(arguments: argparse.Namespace, output: Output) -> int:
    """Render to standard output or a file, or list the targets."""
    if arguments.list:
        return list_targets(output)
    scope = export_scope(arguments)
    if arguments.output is not None:
        check_target(arguments.output, field=_FIELD, noun="the export", example="sluice-ucx.conf")
    ran = exported(arguments, scope, output)
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


def exported(
    arguments: argparse.Namespace, scope: ExportScope, output: Output
) -> OperationRun[Exported]:
    """Return the export of the source that is named. Raises what reading and choosing do."""
    settings = Settings.from_environment()
    question = _question(read_source(arguments.source, settings), said_of_overlap(arguments))
    with store_for(question.source, settings) as store:
        asked = _asked_export(arguments, scope, question, settings, store)
    return _made(asked, settings, output)


def export_scope(arguments: argparse.Namespace) -> ExportScope:
    """Return what is asked for. Raises InvalidInput."""
    from app.schemas.base import dump_json, parse_json
    from app.schemas.export import export_scope as scope_of
    from app.schemas.export import weights_of
    from contract.export import ExportIn

    for name in ("source", "target"):
        if getattr(arguments, name) is None:
            raise InvalidInput(
                "expected a SOURCE and --target NAME; sluice export --list names the targets",
                field=name,
            )
    given = {name: getattr(arguments, name, None) for name in _ASKED}
    body = {name: value for name, value in given.items() if value is not None}
    body["option"] = [_colon(option) for option in arguments.option]
    if getattr(arguments, "workload", None) is not None:
        sizes = parse_workload(text_of_file(arguments.workload, field="workload"))
        if not sizes:
            raise InvalidInput("expected lines of a size and a weight", field="workload")
        body["workload"] = weights_of(sizes)
    return scope_of(parse_json(ExportIn, dump_json(body)), arguments.target)


def _colon(option: str) -> str:
    name, equals, value = option.partition("=")
    if not equals:
        raise InvalidInput("expected NAME=VALUE", field="option")
    return f"{name}:{value}"


def _question(source: Source, fit_options: dict[str, Any]) -> Question:
    """Return the question that finds or fits the model."""
    from app.questions.question import Measurement
    from app.schemas.base import dump_json, parse_json
    from app.schemas.optimize import optimize_question
    from contract.optimize import OptimizeIn
    from contract.source import SOURCE_FIELDS

    # What only an optimisation has is left out, so that its request file serves here too.
    given = {name: value for name, value in body_of(source).items() if name in SOURCE_FIELDS}
    options = {"message_bytes": 1, "fit_options": fit_options}
    body: dict[str, Any] = merged(given, options)
    question = optimize_question(parse_json(OptimizeIn, dump_json(body)))
    if isinstance(source, TraceSource):
        return replace(question, source=(Measurement(source.content),))
    return question


def _asked_export(
    arguments: argparse.Namespace,
    scope: ExportScope,
    question: Question,
    settings: Settings,
    store: Store | None,
) -> ExportQuestion:
    from app.questions.optimize import prepare
    from app.questions.settings import export_question
    from app.questions.source import Stored

    cap = settings.max_fragments
    prepared = prepare(question, Stored.of_store(store), fragment_cap=cap)
    table = _table(arguments.table, prepared.profile, settings, store)
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
    from app.operations.exports import ExportSetting

    with counting_line(output.err) as show:
        return run_operation(ExportSetting(question), settings, show)


def _shown(made: Exported, output: Output) -> str:
    """Return the text; names are the only part of it that may not be ASCII."""
    text = made.content.decode()
    if output.out.is_unicode:
        return text
    return "".join(one if one.isascii() else "_" for one in text)
