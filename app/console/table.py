"""sluice table: compile a plan table and show it; sluice export: one as a library's settings."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
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
from app.console.running import OperationRun, counting_line, run_operation, run_or_end, share_line
from app.settings import Settings
from app.text.numbers import format_count, format_gap
from app.text.units import OF_MODEL, format_time, parse_workload, printable, quoted
from app.ui.notices import failures, noted, others
from app.ui.options import text_of_file
from app.ui.parts import Column, Facts, Grid, Part
from app.ui.terminal import Output
from domain.errors import InvalidInput
from domain.units import format_bytes

if TYPE_CHECKING:
    from app.questions.question import Question
    from app.questions.settings import Exported, ExportQuestion, ExportScope, TableFile
    from app.questions.tables import TableQuestion, TableScope
    from contract.table import GapRangeOut, TableOut, TablesOut
    from domain.hiding import HiddenBehind
    from domain.problem import AnyProblem
    from domain.profile import ProfileRevision
    from models.session import Store


_MAX_ROWS = 12
_DIGITS = 16  # of a digest: enough to name a table by


def table_parts(table: TableOut) -> Iterator[Part]:
    """Yield the certificate, the numbers of fragments, and where the tolerance is missed."""
    yield from failures(table.warnings)
    yield f"messages of {_span(table.min_message_bytes, table.max_message_bytes)}{_of(table)}"
    yield ""
    yield Facts(tuple(_facts(table)))
    yield ""
    yield "Fragments by message size:"
    yield _counts_table(table)
    if table.missed:
        yield ""
        yield f"Where the tolerance is not proven {OF_MODEL}:"
        yield _missed_table(table)
    yield ""
    yield from noted(others(table.warnings))


def tables_table(tables: TablesOut) -> Grid:
    """Return a profile's compiled tables, newest first."""
    columns = (
        Column("revision"),
        Column("", is_number=False),
        Column("messages", is_number=False),
        Column("tolerance"),
        Column("created", is_number=False),
        Column("digest", is_number=False),
    )
    rows = [
        (
            str(one.profile.revision),
            "active" if one.active else "",
            _span(one.min_message_bytes, one.max_message_bytes),
            format_gap(one.relative_gap),
            one.created_at[:19],
            one.digest[:_DIGITS],
        )
        for one in tables.items
    ]
    return Grid(columns, tuple(rows))


def _facts(table: TableOut) -> Iterator[tuple[str, str]]:
    asked = format_gap(table.relative_gap)
    yield "tolerance", asked
    yield "schedules", f"at most {_worst(table.worst)} above the bound over every cut"
    yield (
        "repeated sizes",
        f"at most {_worst(table.worst_repeat)} above the bound over every repeated size",
    )
    if table.uncertainty:
        yield f"in {table.uncertainty.draws} draws", printable(table.uncertainty.sentence)
    cuts, repeats = format_count(table.cut_entries), format_count(table.repeat_entries)
    yield "entries", f"{cuts} cuts, {repeats} repeated sizes"
    yield "file", f"{format_count(table.file_bytes)} bytes, SHA-256 {table.digest}"
    yield "compiled", f"{table.created_at}, in {format_time(1e3 * table.compile_ms)}"


def _worst(one: GapRangeOut) -> str:
    return f"{format_gap(one.relative_gap)} ({_span(one.from_bytes, one.to_bytes)})"


def _of(table: TableOut) -> str:
    return f", profile {table.profile.reference}" if table.profile else ""


def _counts_table(table: TableOut) -> Grid:
    columns = (Column("messages", is_number=False), Column("fragments"))
    rows = [
        (_span(run.from_bytes, run.to_bytes), format_count(run.fragments)) for run in table.counts
    ]
    return Grid(columns, _shortened(rows, table.counts_total))


def _missed_table(table: TableOut) -> Grid:
    columns = (Column("messages", is_number=False), Column("proven"))
    rows = [
        (_span(one.from_bytes, one.to_bytes), format_gap(one.relative_gap)) for one in table.missed
    ]
    return Grid(columns, _shortened(rows, table.missed_total))


def _shortened(rows: Sequence[tuple[str, str]], total: int) -> tuple[tuple[str, str], ...]:
    if total <= _MAX_ROWS:
        return tuple(rows)
    return (*rows[:_MAX_ROWS], (f"… {total - _MAX_ROWS} more", ""))


def _span(minimum: int, maximum: int) -> str:
    if minimum == maximum:
        return format_bytes(minimum)
    return f"{format_bytes(minimum)} … {format_bytes(maximum)}"


# --- the command ----------------------------------------------------------------------------------


MISSED = 7  # the exit code of a table that misses its tolerance, unless that is accepted
_FIELD = "output"


def table(arguments: argparse.Namespace, output: Output) -> int:
    """Compile, store where the source is a profile, write where a file is named, and report."""
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
    from app.schemas.base import read_output
    from contract.table import TableOut

    compiled = read_output(TableOut, document)
    if output.wants_json:
        output.document(document)
    else:
        output.parts(table_parts(compiled))
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


def _asked(arguments: argparse.Namespace, source: Source) -> tuple[TableScope, Question]:
    """Return the table's scope, and the question that finds or fits its model."""
    from app.questions.question import Measurement
    from app.schemas.base import dump_json, parse_json
    from app.schemas.optimize import optimize_question
    from app.schemas.table import table_scope
    from contract.optimize import OptimizeIn
    from contract.source import SOURCE_FIELDS
    from contract.table import TableIn

    # What only an optimisation has is left out, so that its request file serves here too.
    ours = (*SOURCE_FIELDS, "constraints")
    given = {name: value for name, value in body_of(source).items() if name in ours}
    said = {"constraints": _constraints(arguments), "fit_options": said_of_overlap(arguments)}
    body = merged(given, said)
    constraints = {"constraints": body["constraints"]} if "constraints" in body else {}
    options = {
        "min_message_bytes": arguments.min_message_bytes,
        "max_message_bytes": arguments.max_message_bytes,
        "relative_gap": arguments.relative_gap,
        "time_limit_s": arguments.time_limit_s,
    }
    scope = table_scope(parse_json(TableIn, dump_json(merged(constraints, options))))
    asked = {**body, "message_bytes": scope.max_message_bytes}
    question = optimize_question(parse_json(OptimizeIn, dump_json(asked)))
    if isinstance(source, TraceSource):
        # The trace goes round the JSON parser: it may be a hundred times longer than any request.
        question = replace(question, source=(Measurement(source.content),))
    return scope, question


def _constraints(arguments: argparse.Namespace) -> dict[str, Any]:
    return {
        "min_fragment_bytes": arguments.min_fragment_bytes,
        "max_fragment_bytes": arguments.max_fragment_bytes,
        "alignment_bytes": arguments.alignment_bytes,
        "max_fragments": arguments.max_fragments,
    }


def _question_of(
    arguments: argparse.Namespace,
    scope: TableScope,
    question: Question,
    settings: Settings,
    store: Store | None,
) -> TableQuestion:
    """Return what to compile."""
    from app.questions.optimize import prepare
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


def _behind(arguments: argparse.Namespace, problem: AnyProblem) -> HiddenBehind | None:
    """Return what messages are hidden behind; None where they are waited for."""
    from analysis.hiding import Exchange
    from app.schemas.base import dump_json, parse_json
    from app.schemas.host_stages import host_stages, of_stages
    from app.ui.options import body_of_options
    from contract.declare import words_of
    from contract.hide import HIDDEN_BEHIND, HideIn
    from domain.hiding import HiddenBehind

    given = body_of_options(words_of(HideIn, HIDDEN_BEHIND), arguments)
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
    from app.operations.tables import CompileTable
    from app.questions.tables import get_table
    from app.schemas.table import render_table, said_first

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
    from app.operations.tables import ExportSetting

    with counting_line(output.err) as show:
        return run_operation(ExportSetting(question), settings, show)


def _shown(made: Exported, output: Output) -> str:
    """Return the text; names are the only part of it that may not be ASCII."""
    text = made.content.decode()
    if output.out.is_unicode:
        return text
    return "".join(one if one.isascii() else "_" for one in text)
