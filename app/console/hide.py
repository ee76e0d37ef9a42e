"""sluice hide: what hiding a message behind a calculation gains, as a person reads it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from app.console.commands import INTERRUPTED, finder, fit_finder, store_for
from app.console.files import (
    TraceSource,
    body_of,
    check_plot_file,
    merged,
    read_source,
    write_whole,
)
from app.console.reports import warning_parts
from app.console.running import counting_line, run_operation
from app.console.screen import Column, Facts, GanttRow, Grid, Ink, Output, Part, paint
from app.settings import Settings
from app.text.numbers import format_count
from app.text.units import format_proven, format_time, printable

if TYPE_CHECKING:
    from app.operations.models import Hide
    from app.schemas.hide import HideIn, HideOut

_OURS = ("pipeline", "profile", "measurements", "fit_options", "message_bytes", "constraints")


def hide_parts(found: HideOut, *, width: int, ink: Ink) -> Iterator[Part]:
    """Yield two bars, the figures, the table of the counts, and the warnings."""
    from app.operations.models import hide_facts

    if found.with_us is not None:
        yield from _bars(found, width=width, ink=ink)
        yield ""
    yield Facts(tuple(hide_facts(found)))
    yield ""
    if found.counts:
        yield "By number of fragments:"
        yield _counts(found)
        yield ""
    yield from warning_parts(found.warnings)


def _bars(found: HideOut, *, width: int, ink: Ink) -> Iterator[str]:
    """The calculation above the communication, with hiding, on one scale."""
    assert found.calculation_us is not None
    assert found.latency_us is not None
    assert found.with_us is not None
    end_us = found.with_us
    begins_us = 0.0 if found.streamed else (1.0 - found.hideable_fraction) * found.calculation_us
    sent_us = (begins_us, min(end_us, begins_us + found.latency_us))
    rows = (
        GanttRow("calculation", ((0.0, min(end_us, found.calculation_us)),)),
        GanttRow("communication", (sent_us,)),
    )
    columns = max(20, width - 15)
    for row in rows:
        yield f"{row.name:<13} {paint(row, end_us, columns, ink)}" if end_us > 0.0 else row.name


def _counts(found: HideOut) -> Grid:
    headings = ("fragments", "latency", "processor", "run time", "at least")
    rows = tuple(
        (
            format_count(row.fragments),
            format_time(row.latency_us),
            format_time(row.host_us),
            format_time(row.with_us),
            format_proven(row.with_us, row.bound_us)[1],
        )
        for row in found.counts
    )
    return Grid(tuple(map(Column, headings)), rows)


# --- the command ----------------------------------------------------------------------------------


def hide(arguments: argparse.Namespace, output: Output) -> int:
    """Search, print, draw where that is asked for, and return the exit code."""
    from app.operations.models import hide_drawing
    from app.schemas.base import dump_json

    if arguments.plot is not None:
        check_plot_file(arguments.plot)
    settings = Settings.from_environment()
    operation = _operation(arguments, settings)
    with counting_line(output.err) as show:
        ran = run_operation(operation, settings, show)
    found = operation.document(ran.result)
    if output.wants_json:
        output.document(dump_json(found))
    else:
        output.parts(hide_parts(found, width=output.out.width, ink=output.out.ink))
    if arguments.plot is not None:
        drawn = hide_drawing(found, arguments.picture)
        write_whole(arguments.plot, drawn.encode(), field="plot", noun="the plot")
        if not output.wants_json:
            output.parts([f"plot written to {printable(arguments.plot)}"])
    return INTERRUPTED if ran.is_interrupted else 0


def _operation(arguments: argparse.Namespace, settings: Settings) -> Hide:
    """Return the operation of these arguments. Raises InvalidInput, NotFound, what a fit does."""
    from dataclasses import replace

    from app.operations.models import Hide, prepared_hide
    from app.questions.optimize import prepare
    from app.questions.question import Measurement
    from app.schemas.base import dump_json, parse_json
    from app.schemas.hide import HideIn

    source = None if arguments.source is None else read_source(arguments.source, settings)
    given = {} if source is None else body_of(source)
    base = {name: value for name, value in given.items() if name in (*_OURS, *HideIn.model_fields)}
    asked: HideIn = parse_json(HideIn, dump_json(merged(base, _options(arguments))))
    cap = settings.max_fragments
    if asked.granularity is not None:
        with store_for(None, settings) as store:
            return prepared_hide(asked, finder(store), None, fragment_cap=cap)
    asked.to_model()
    question = asked.to_question()
    if isinstance(source, TraceSource):
        # The trace goes round the JSON parser: it may be a hundred times longer than any request.
        question = replace(question, source=(Measurement(source.content),))
    with store_for(question.source, settings) as store:
        find_fit = None if store is None else fit_finder(store)
        prepared = prepare(question, finder(store), fragment_cap=cap, find_fit=find_fit)
    return Hide(asked.to_domain(prepared.problem), prepared)


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    hosts = {side: getattr(arguments, f"{side}_stage") for side in ("sender", "receiver")}
    terms = {name: getattr(arguments, name) for name in ("software", "hardware", "overhead")}
    processes = {
        "max_processes": arguments.processes,
        "communication": arguments.communication,
    }
    return {
        "message_bytes": arguments.bytes,
        "messages": arguments.messages,
        "calculation_us": arguments.calculation,
        "instructions": arguments.instructions,
        "instructions_per_us": arguments.instructions_per_us,
        "hideable_fraction": arguments.hideable_fraction,
        "streamed": arguments.streamed,
        "hiding_overhead_us": arguments.hiding_overhead,
        "host_stages": _given({side: _stages(names) for side, names in hosts.items()}),
        "exchange": "both_ways" if arguments.both_ways else None,
        "min_gain": arguments.min_gain,
        "processes": _given(processes),
        "granularity": _given(terms),
        "time_limit_s": arguments.time_limit_s,
        "constraints": {
            "min_fragment_bytes": arguments.min_fragment_bytes,
            "max_fragment_bytes": arguments.max_fragment_bytes,
            "alignment_bytes": arguments.alignment_bytes,
            "max_fragments": arguments.max_fragments,
        },
    }


def _given(options: dict[str, Any]) -> dict[str, Any] | None:
    found = {name: value for name, value in options.items() if value is not None}
    return found or None


def _stages(names: list[str] | None) -> list[int | str] | None:
    """Return stages as requests have them: digits are a place from 0."""
    if names is None:
        return None
    return [int(one) if one.isascii() and one.isdigit() else one for one in names]
