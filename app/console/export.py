"""sluice export: a pipeline as a library's configuration; sluice export --list: the targets."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from app.console.commands import INTERRUPTED, finder, fit_finder, store_for
from app.console.files import (
    Source,
    TraceSource,
    body_of,
    check_target,
    merged,
    read_source,
    write_whole,
)
from app.console.output import Output
from app.console.running import OperationRun, counting_line, run_operation
from app.console.screen import Column, Grid, Part
from app.settings import Settings
from app.text.names import printable, quoted
from domain.errors import InvalidInput

if TYPE_CHECKING:
    from app.questions.question import Question
    from app.questions.settings import Exported, ExportQuestion, ExportScope, TableFile
    from app.schemas.exports import ExportTargetsOut
    from domain.profile import ProfileRevision
    from models.session import Store


_FIELD, _NOUN = "output", "the export"
_OURS = ("pipeline", "aggregate", "profile", "measurements", "fit_options")
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


def export(arguments: argparse.Namespace, output: Output) -> int:
    """Render to standard output or a file, or list the targets."""
    if arguments.list:
        return _list_targets(output)
    scope = _scope(arguments)
    if arguments.output is not None:
        check_target(arguments.output, field=_FIELD, noun=_NOUN, example="ucx.conf")
    settings = Settings.from_environment()
    question = _question(read_source(arguments.source, settings))
    with store_for(question.source, settings) as store:
        asked = _asked(arguments, scope, question, settings, store)
    ran = _made(asked, settings, output)
    made = ran.result
    if arguments.output is None:
        output.out.stream.write(_shown(made, output))
        output.out.stream.flush()
    else:
        write_whole(arguments.output, made.content, field=_FIELD, noun=_NOUN)
        output.out.write_line(f"written to {printable(arguments.output)}")  # never wrapped
    if ran.is_interrupted:
        output.note("interrupted; these sizes are by what was solved so far")
    elif made.chosen is not None and made.chosen.is_partial:
        output.note("time ended: more of it (--time-limit) may choose other sizes")
    return INTERRUPTED if ran.is_interrupted else 0


def _scope(arguments: argparse.Namespace) -> ExportScope:
    """Return what is asked for. Raises InvalidInput."""
    from app.schemas.base import dump_json, parse_json
    from app.schemas.exports import ExportIn

    for name in ("source", "target"):
        if getattr(arguments, name) is None:
            raise InvalidInput(
                "expected a SOURCE and --target NAME; sluice export --list names the targets",
                field=name,
            )
    given = {name: getattr(arguments, name) for name in _ASKED}
    body = {name: value for name, value in given.items() if value is not None}
    body["option"] = [_colon(option) for option in arguments.option]
    return parse_json(ExportIn, dump_json(body)).to_domain(arguments.target)


def _colon(option: str) -> str:
    name, equals, value = option.partition("=")
    if not equals:
        raise InvalidInput("expected NAME=VALUE", field="option")
    return f"{name}:{value}"


def _question(source: Source) -> Question:
    """Return the question that finds or fits the model."""
    from app.questions.question import Measurement
    from app.schemas.base import dump_json, parse_json
    from app.schemas.optimize import OptimizeIn

    # What only an optimisation has is left out, so that its request file serves here too.
    given = {name: value for name, value in body_of(source).items() if name in _OURS}
    body: dict[str, Any] = merged(given, {"message_bytes": 1})
    question = parse_json(OptimizeIn, dump_json(body)).to_domain()
    if isinstance(source, TraceSource):
        return replace(question, source=(Measurement(source.content),))
    return question


def _asked(
    arguments: argparse.Namespace,
    scope: ExportScope,
    question: Question,
    settings: Settings,
    store: Store | None,
) -> ExportQuestion:
    from app.questions.optimize import prepare
    from app.questions.settings import export_question

    cap = settings.max_fragments
    find_fit = None if store is None else fit_finder(store)
    prepared = prepare(question, finder(store), fragment_cap=cap, find_fit=find_fit)
    table = _table(arguments.table, prepared.profile, settings, store)
    model, profile, fit = prepared.problem.model, prepared.profile, prepared.fit
    return export_question(model, profile, scope, table, fragment_cap=cap, fit=fit)


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


# --- the targets ----------------------------------------------------------------------------------


def _list_targets(output: Output) -> int:
    from app.schemas.base import dump_json
    from app.schemas.exports import ExportTargetsOut

    targets = ExportTargetsOut.all()
    if output.wants_json:
        output.document(dump_json(targets))
    else:
        output.parts(_target_parts(targets))
    return 0


_TAKES = {
    "one_size": "one size",
    "size_steps": "a size a range",
    "costs": "fitted costs",
    "table": "the table",
}


def _target_parts(targets: ExportTargetsOut) -> list[Part]:
    columns = (
        Column("target", is_number=False),
        Column("takes", is_number=False),
        Column("read by", is_number=False),
        Column("options", is_number=False),
    )
    rows = tuple(
        (
            target.name,
            _TAKES[target.takes],
            target.verified_by or "unverified",
            ", ".join(f"{option.name}={option.default}" for option in target.options),
        )
        for target in targets.items
    )
    return [Grid(columns, rows)]
