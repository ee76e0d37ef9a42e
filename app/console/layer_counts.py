"""sluice model layer count and check: instructions of installed MPIs, counted, also once more."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from app.console.files import (
    check_target,
    json_body,
    write_whole,
)
from app.console.running import ticking_line
from app.settings import Settings
from app.text.numbers import (
    format_instructions,
    format_percent,
    format_signed_percent,
)
from app.text.units import printable
from app.ui.notices import noted
from app.ui.parts import Column, Grid, Part
from app.ui.terminal import Output
from domain.errors import InvalidInput, UnreadableRecord
from domain.messaging_layer import Service
from domain.units import format_bytes

if TYPE_CHECKING:
    from contract.layer import CountChecksOut, CountedLayerOut
    from measuring.count import CountPlan

_PLOT = "the plot"
_number = format_instructions


MORE = 7  # the exit code where a call takes more than --max-more above its baseline
_COUNTS = "the layer"


def layer_count(arguments: argparse.Namespace, output: Output) -> int:
    """Count an installed MPI's send and receive, print, and write the layer that they make."""
    from app.schemas.base import dump_json
    from app.schemas.layer import counted_layer_out
    from measuring.count import count
    from measuring.counted_layer import layer_of

    if arguments.output is not None:
        check_target(arguments.output, field="output", noun=_COUNTS, example="layer.json")
    plan = _plan(arguments, {})
    with ticking_line(output.err, "counting instructions"):
        counted = count(plan)
    found = counted_layer_out(plan, counted, layer_of(counted))
    body = dump_json(found)
    if arguments.output is not None:
        write_whole(arguments.output, body + b"\n", field="output", noun=_COUNTS)
    if output.wants_json:
        output.document(body)
        return 0
    output.parts(_counted_parts(found))
    if arguments.output is not None:
        output.parts([f"layer written to {printable(arguments.output)}"])
    return 0


def layer_check(arguments: argparse.Namespace, output: Output) -> int:
    """Count again what a file of `layer count` has; MORE where a call takes more now."""
    from app.schemas.base import dump_json, read_output
    from app.schemas.layer import count_checks_out, countable_instructions
    from contract.layer import CountedLayerOut
    from measuring.count import count
    from measuring.counted_layer import changes

    settings = Settings.from_environment()
    try:
        baseline = read_output(
            CountedLayerOut, dump_json(json_body(arguments.baseline, settings, field="baseline"))
        )
    except UnreadableRecord:
        raise InvalidInput(
            "expected a file that sluice model layer count has written", field="baseline"
        ) from None
    before = countable_instructions(baseline)
    if not before:
        raise InvalidInput("the baseline has no call that is countable", field="baseline")
    sizes = sorted({size for _, size in before})
    known = {"mpicc": baseline.mpicc, "launcher": baseline.launcher, "bytes": sizes}
    with ticking_line(output.err, "counting instructions"):
        counted = count(_plan(arguments, known))
    found = count_checks_out(counted.version, changes(before, counted.calls), arguments.max_more)
    if output.wants_json:
        output.document(dump_json(found))
    else:
        output.parts(_changed_parts(found, baseline))
    return 0 if found.is_kept else MORE


def _plan(arguments: argparse.Namespace, known: Mapping[str, Any]) -> CountPlan:
    """Return what to count: what the arguments say, else what is known."""
    from measuring.count import CountPlan

    names = ("mpicc", "launcher", "bytes", "repetitions", "time_limit_s")
    given = {**known, **_given(arguments, names)}
    if "bytes" in given:
        given["message_bytes"] = tuple(given.pop("bytes"))
    if "mpicc" in _given(arguments, names) and "launcher" not in _given(arguments, names):
        given.pop("launcher", None)
    return CountPlan(allow_run_as_root=arguments.allow_run_as_root, **given)


def _given(arguments: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    values = {name: getattr(arguments, name, None) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def _counted_parts(found: CountedLayerOut) -> Iterator[Part]:
    yield printable(f"{found.version}, {found.compiler}, {found.valgrind}")
    yield ""
    there = {name for call in found.calls for name in call.services}
    services = [name for name in Service if name in there]
    columns = [
        Column("call", is_number=False),
        *map(Column, ("message", "instructions", "data", "same", *services)),
    ]
    rows = []
    for call in found.calls:
        shown = [_number(call.instructions), _number(call.data)] if call.countable else ["–", "–"]
        rows.append(
            (
                _CALLS[call.end],
                format_bytes(call.message_bytes),
                *shown,
                f"{call.identical} of {call.repetitions}",
                *(
                    _number(call.services.get(name, 0)) if call.countable else "–"
                    for name in services
                ),
            )
        )
    yield Grid(tuple(columns), tuple(rows))
    yield ""
    yield from noted(found.warnings)
    yield "Services are by the names of functions alone; what no name tells is other."


_CALLS = {"source": "send", "destination": "receive"}


def _changed_parts(found: CountChecksOut, baseline: CountedLayerOut) -> Iterator[Part]:
    yield printable(f"{found.version}, beside {baseline.version}")
    columns = (Column("call", is_number=False), *map(Column, ("message", "before", "now", "more")))
    rows = tuple(
        (
            _CALLS[call.end],
            format_bytes(call.message_bytes),
            _number(call.before),
            "waited" if call.now is None else _number(call.now),
            "–" if call.share is None else format_signed_percent(call.share),
        )
        for call in found.calls
    )
    yield Grid(columns, rows)
    limit = format_percent(found.max_more)
    yield f"{'within' if found.is_kept else 'over'} {limit} more, call by call"
