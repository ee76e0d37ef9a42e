"""sluice table: compile a plan table for a range of messages, and show what is known of it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from app.console.commands import finder, fit_finder, store_for
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
from app.console.reports import warning_parts
from app.console.running import run_operation, share_line
from app.console.screen import Column, Facts, Grid, Part
from app.settings import Settings
from app.text.names import OF_MODEL, printable
from app.text.numbers import format_count, format_gap
from app.text.units import format_time
from domain.errors import InvalidInput
from domain.units import format_bytes

if TYPE_CHECKING:
    from app.questions.question import Question
    from app.questions.tables import TableScope
    from app.schemas.tables import GapRangeOut, TableOut, TablesOut
    from models.session import Store


_MAX_ROWS = 12
_DIGITS = 16  # of a digest: enough to name a table by


def table_parts(table: TableOut) -> Iterator[Part]:
    """Yield the certificate, the numbers of fragments, and where the tolerance is missed."""
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
    yield from warning_parts(table.warnings)


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


_FIELD, _NOUN = "output", "the table"
_OURS = ("pipeline", "aggregate", "profile", "measurements", "fit_options", "constraints")


def table(arguments: argparse.Namespace, output: Output) -> int:
    """Compile, store where the source is a profile, write where a file is named, and report."""
    if arguments.output is not None:
        check_target(arguments.output, field=_FIELD, noun=_NOUN, example="myrinet.slt")
    settings = Settings.from_environment()
    scope, question = _asked(arguments, read_source(arguments.source, settings))
    with store_for(question.source, settings) as store:
        if arguments.activate and store is None:
            raise InvalidInput("a table becomes active for a stored profile", field="activate")
        file, document = _compiled(
            scope, question, settings, store, output, activate=arguments.activate
        )
    if arguments.output is not None:
        write_whole(arguments.output, _form(arguments.output, file), field=_FIELD, noun=_NOUN)
    if output.wants_json:
        output.document(document)
        return 0
    from app.schemas.base import read_output
    from app.schemas.tables import TableOut

    output.parts(table_parts(read_output(TableOut, document)))
    if arguments.output is not None:
        output.out.write_line(f"written to {printable(arguments.output)}")  # never wrapped
    return 0


def _asked(arguments: argparse.Namespace, source: Source) -> tuple[TableScope, Question]:
    """Return the table's scope, and the question that finds or fits its model."""
    from dataclasses import replace

    from app.questions.question import Measurement
    from app.schemas.base import dump_json, parse_json
    from app.schemas.optimize import OptimizeIn
    from app.schemas.tables import TableIn

    # What only an optimisation has is left out, so that its request file serves here too.
    given = {name: value for name, value in body_of(source).items() if name in _OURS}
    body = merged(given, {"constraints": _constraints(arguments)})
    constraints = {"constraints": body["constraints"]} if "constraints" in body else {}
    options = {
        "min_message_bytes": arguments.min_message_bytes,
        "max_message_bytes": arguments.max_message_bytes,
        "relative_gap": arguments.relative_gap,
        "time_limit_s": arguments.time_limit_s,
    }
    scope = parse_json(TableIn, dump_json(merged(constraints, options))).to_domain()
    asked = {**body, "message_bytes": scope.max_message_bytes}
    question = parse_json(OptimizeIn, dump_json(asked)).to_domain()
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


def _compiled(
    scope: TableScope,
    question: Question,
    settings: Settings,
    store: Store | None,
    output: Output,
    *,
    activate: bool | None,
) -> tuple[bytes, bytes]:
    """Return the table file and its document: stored ones, or compiled now."""
    from app.operations.tables import CompileTable
    from app.questions.optimize import prepare
    from app.questions.tables import get_table, table_question
    from app.schemas.tables import render_table

    cap = settings.max_fragments
    find_fit = None if store is None else fit_finder(store)
    prepared = prepare(question, finder(store), fragment_cap=cap, find_fit=find_fit)
    model, profile, fit = prepared.problem.model, prepared.profile, prepared.fit
    asked = table_question(model, profile, scope, fragment_cap=cap, fit=fit)
    operation = CompileTable(asked, activate)
    if store is not None:
        with store.unit_of_work() as unit:
            stored = operation.stored(unit)
        if stored is not None and stored.table_digest is not None:
            return get_table(store, stored.table_digest).file, stored.document
    with share_line(output.err, "compiling") as show:
        compiled = run_operation(operation, settings, show).result
    if store is None:
        return compiled.file, render_table(compiled)
    with store.unit_of_work() as unit:
        return compiled.file, operation.keep(unit, compiled).document


def _form(name: str, file: bytes) -> bytes:
    """Return the table file, or its JSON twin where the name says so."""
    from app.questions.tables import json_twin

    return json_twin(file) if name.lower().endswith(".json") else file
