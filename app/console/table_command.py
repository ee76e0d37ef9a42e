"""sluice table: compile a plan table for a range of message sizes, and write it to a file."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from app.console.commands import finder, store_for
from app.console.output import Output
from app.console.progress import share_line
from app.console.running import run_operation
from app.console.sources import Source, TraceSource, body_of, merged, read_source
from app.console.table_reports import table_parts
from app.console.whole_files import check_target, write_whole
from app.settings import Settings
from app.text.names import printable
from domain.errors import InvalidInput

if TYPE_CHECKING:
    from app.flows.build_table import TableScope
    from app.flows.questions import Question
    from models.session import Store

_FIELD, _NOUN = "output", "the table"
_OURS = ("pipeline", "aggregate", "profile", "measurements", "fit_options", "constraints")


def table(arguments: argparse.Namespace, output: Output) -> int:
    """Compile, store where the source is a profile, write where a file is named, and tell."""
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
    """The table's scope, and the question that finds or fits its model."""
    from dataclasses import replace

    from app.flows.questions import Measurement
    from app.schemas.base import dump_json, parse_json
    from app.schemas.optimize import OptimizeIn
    from app.schemas.tables import TableIn

    # What only an optimisation has is left out, so that its request file serves here too.
    given = {name: value for name, value in body_of(source).items() if name in _OURS}
    body = merged(given, {"constraints": _constraints(arguments)})
    constraints = {"constraints": body["constraints"]} if "constraints" in body else {}
    options = {
        "least_bytes": arguments.least_bytes,
        "greatest_bytes": arguments.greatest_bytes,
        "relative_gap": arguments.relative_gap,
    }
    scope = parse_json(TableIn, dump_json(merged(constraints, options))).to_domain()
    asked = {**body, "message_bytes": scope.greatest_bytes}
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
    """The table file and the document that tells of it: stored ones, or compiled now."""
    from app.flows import build_table as flow
    from app.flows import solve_message
    from app.operations.tables import CompileTable
    from app.schemas.tables import render_table

    cap = settings.max_fragments
    prepared = solve_message.prepare(question, finder(store), fragment_cap=cap)
    asked = flow.table_question(prepared.problem.model, prepared.profile, scope, fragment_cap=cap)
    operation = CompileTable(asked, activate)
    if store is not None:
        with store.unit_of_work() as unit:
            stored = operation.stored(unit)
        if stored is not None and stored.table_digest is not None:
            return flow.get_table(store, stored.table_digest).file, stored.document
    with share_line(output.err, "compiling") as show:
        compiled = run_operation(operation, settings, show).result
    if store is None:
        return compiled.file, render_table(compiled)
    with store.unit_of_work() as unit:
        return compiled.file, operation.keep(unit, compiled).document


def _form(name: str, file: bytes) -> bytes:
    """The table file, or its JSON twin where the name says so."""
    from app.flows.build_table import json_twin

    return json_twin(file) if name.lower().endswith(".json") else file
