"""sluice layer: what a messaging layer costs; sluice layer count and check: of installed MPIs."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.console.commands import INTERRUPTED, opened_store
from app.console.files import (
    STANDARD_INPUT,
    RequestSource,
    check_target,
    read_source,
    write_whole,
)
from app.console.reports import stages_table
from app.console.running import counting_line, run_operation, ticking_line
from app.console.screen import Column, Grid, Output, Part, warning_parts
from app.settings import Settings
from app.text.numbers import (
    format_count,
    format_instructions,
    format_percent,
    format_signed_percent,
)
from app.text.units import format_time, printable
from domain.errors import InvalidInput, UnreadableRecord
from domain.messaging_layer import Service
from domain.units import format_bytes

if TYPE_CHECKING:
    from app.schemas.layer_costs import (
        BestCutOut,
        FeatureSavingOut,
        LayerCostsOut,
        MessageCostsOut,
    )
    from app.schemas.layers import CountChecksOut, CountedLayerOut
    from measuring.count import CountPlan

_PLOT = "the plot"
_number = format_instructions


def layer(arguments: argparse.Namespace, output: Output) -> int:
    """Count, tune where that is asked for, print, draw, and store the stages."""
    from app.operations.models import layer_operation
    from app.schemas.base import dump_json, parse_json, read_output
    from app.schemas.layer_costs import LayerCostsIn, LayerCostsOut

    if arguments.plot is not None:
        check_target(arguments.plot, field="plot", noun=_PLOT, example="layer.svg")
    settings = Settings.from_environment()
    asked = parse_json(LayerCostsIn, dump_json(_asked(arguments, settings)))
    operation = layer_operation(asked, settings)
    with counting_line(output.err) as show:
        ran = run_operation(operation, settings, show)
    if operation.stores:
        with opened_store(settings) as store, store.unit_of_work() as unit:
            body = operation.keep(unit, ran.result).document
    else:
        body = dump_json(LayerCostsOut.of(ran.result))
    if arguments.plot is not None:
        from app.plots.models_svg import render_layer_svg

        drawing = render_layer_svg(ran.result).encode()
        write_whole(arguments.plot, drawing, field="plot", noun=_PLOT)
    if output.wants_json:
        output.document(body)
    else:
        output.parts(layer_parts(read_output(LayerCostsOut, body)))
        if arguments.plot is not None:
            output.parts([f"plot written to {printable(arguments.plot)}"])
    if ran.is_interrupted:
        output.note("interrupted; the rest was not tuned")
        return INTERRUPTED
    return 0


def _asked(arguments: argparse.Namespace, settings: Settings) -> dict[str, Any]:
    """Return the request that the arguments make. Raises InvalidInput."""
    if arguments.bytes is None:
        raise InvalidInput("expected --bytes, sizes of messages, as 64 4KiB", field="message_bytes")
    given: dict[str, Any] = {
        "layer": _layer_of(arguments.layer, settings),
        "message_bytes": arguments.bytes,
        "between": _between(arguments.between, settings),
        "tune": arguments.tune or None,
        **{name: getattr(arguments, name) for name in _OPTIONS},
    }
    return {name: value for name, value in given.items() if value is not None}


_OPTIONS = (
    *("cycles", "clock_mhz", "features", "packet_words", "mapping", "handshake", "wire_us"),
    *("out_of_order", "time_limit_s", "save_as"),
)


def _layer_of(name: str, settings: Settings) -> str | dict[str, Any]:
    """Return a layer's document where a file has this name, else the name of a published one."""
    if name != STANDARD_INPUT and not Path(name).exists():
        return name
    document = _body(name, settings, field="layer")
    inner = document.get("layer")
    return inner if isinstance(inner, dict) else document  # also as GET /layers/{name} sends it


def _between(name: str | None, settings: Settings) -> list[Any] | None:
    if name is None:
        return None
    pipeline = _body(name, settings, field="between").get("pipeline")
    stages = pipeline.get("stages") if isinstance(pipeline, dict) else None
    if not isinstance(stages, list):
        raise InvalidInput("expected a file with stages, in JSON", field="between")
    return stages


def _body(name: str, settings: Settings, *, field: str) -> dict[str, Any]:
    source = read_source(name, settings)
    if not isinstance(source, RequestSource):
        raise InvalidInput("expected a document in JSON", field=field)
    return source.body


# --- the report -----------------------------------------------------------------------------------


def layer_parts(costs: LayerCostsOut) -> Iterator[Part]:
    """Yield the work of each message, what features save, the stages, and what they rest on."""
    yield printable(f"{costs.layer.name}: {costs.layer.source or 'given'}")
    for message in costs.messages:
        yield ""
        yield _headline(costs, message)
        yield _services(message)
        if message.savings:
            yield ""
            yield "What features of a network would save:"
            yield _savings(message)
            if message.best and message.best.latency_us is not None:
                yield (
                    f"Latencies are of the best cut, whose largest fragment is "
                    f"{_largest(message.best)}: {format_time(message.best.latency_us)} without any"
                )
        if message.packet_sizes:
            yield ""
            yield _packet_sizes(message)
    if costs.stages:
        yield ""
        yield f"Stages, a fragment being one {costs.mapping}:"
        yield stages_table(costs.stages.pipeline)
        yield f"and a delay of {format_time(costs.stages.pipeline.delay_us)}"
    yield ""
    yield from (f"- {printable(one)}" for one in costs.assumptions)
    if costs.profile:
        yield f"stored as profile {costs.profile.reference}"
    yield from warning_parts(costs.warnings)


def _headline(costs: LayerCostsOut, message: MessageCostsOut) -> str:
    packets = format_count(message.packets)
    words = costs.layer.packet_words
    cut = f" in {packets} packets of {words} words" if words > 1 else ""
    parts = [
        f"{format_bytes(message.message_bytes)}{cut}: {_number(message.instructions)} instructions",
        f"overhead {format_percent(message.overhead_of_instructions)} of them",
    ]
    if message.cycles is not None and message.overhead_of_cycles is not None:
        share = format_percent(message.overhead_of_cycles)
        parts.append(f"{_number(message.cycles)} cycles, overhead {share}")
    if message.us is not None:
        parts.append(format_time(message.us))
    return "; ".join(parts)


def _services(message: MessageCostsOut) -> Grid:
    """Return services in rows; both ends, their sum, its shares."""
    has_cycles = message.cycles is not None
    headings = ["source", "destination", "total", "share", *(["of cycles"] if has_cycles else [])]
    rows = []
    for place in range(0, len(message.services), 2):
        ends = message.services[place : place + 2]
        shares = [sum(one.share_of_instructions for one in ends)]
        if has_cycles:
            shares.append(sum(one.share_of_cycles or 0.0 for one in ends))
        counts = [*(one.instructions for one in ends), sum(one.instructions for one in ends)]
        rows.append((ends[0].service.value, *map(_number, counts), *map(format_percent, shares)))
    columns = (Column("instructions", is_number=False), *map(Column, headings))
    return Grid(columns, tuple(rows))


def _savings(message: MessageCostsOut) -> Grid:
    is_tuned = any(saving.best for saving in message.savings)
    columns = [
        Column("feature", is_number=False),
        Column("instructions"),
        Column("of all"),
        Column("of cycles"),
    ]
    if is_tuned:
        columns += [Column("old cut"), Column("new cut"), Column("fragment")]
    rows = [_saving_row(saving, message.best, is_tuned=is_tuned) for saving in message.savings]
    return Grid(tuple(columns), tuple(rows))


def _saving_row(
    saving: FeatureSavingOut, before: BestCutOut | None, *, is_tuned: bool
) -> tuple[str, ...]:
    row = [
        saving.features[0] if len(saving.features) == 1 else "all of them",
        _number(saving.instructions),
        format_percent(saving.share_of_instructions),
        "–" if saving.share_of_cycles is None else format_percent(saving.share_of_cycles),
    ]
    if is_tuned:
        whole_us = before.latency_us if before else None
        row += [
            _less(saving.saved_at_old_cut_us, whole_us),
            _less(saving.saved_us, whole_us),
            _largest(saving.best),
        ]
    return tuple(row)


def _less(saved_us: float | None, whole_us: float | None) -> str:
    """Return a saving of a latency, as its share."""
    if saved_us is None or not whole_us:
        return "–"
    return format_percent(saved_us / whole_us)


def _largest(cut: BestCutOut | None) -> str:
    if cut is None or cut.largest_fragment_bytes is None:
        return "–"
    return format_bytes(cut.largest_fragment_bytes)


def _packet_sizes(message: MessageCostsOut) -> Grid:
    rows = tuple(
        (
            format_count(one.packet_words),
            format_count(one.packets),
            _number(one.instructions),
            format_percent(one.overhead_of_instructions),
            "–" if one.overhead_of_cycles is None else format_percent(one.overhead_of_cycles),
        )
        for one in message.packet_sizes
    )
    headings = ("words a packet", "packets", "instructions", "overhead", "of cycles")
    return Grid(tuple(map(Column, headings)), rows)


# --- counts of an installed library ---------------------------------------------------------------


MORE = 7  # the exit code where a call takes more than --max-more above its baseline
_COUNTS = "the layer"


def layer_count(arguments: argparse.Namespace, output: Output) -> int:
    """Count an installed MPI's send and receive, print, and write the layer that they make."""
    from app.schemas.base import dump_json
    from app.schemas.layers import CountedLayerOut
    from measuring.count import count
    from measuring.counted_layer import layer_of

    if arguments.output is not None:
        check_target(arguments.output, field="output", noun=_COUNTS, example="layer.json")
    plan = _plan(arguments, {})
    with ticking_line(output.err, "counting instructions"):
        counted = count(plan)
    found = CountedLayerOut.of(plan, counted, layer_of(counted))
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
    """Count again what a file of `sluice layer count` has; MORE where a call takes more now."""
    from app.schemas.base import dump_json, read_output
    from app.schemas.layers import CountChecksOut, CountedLayerOut
    from measuring.count import count
    from measuring.counted_layer import changes

    settings = Settings.from_environment()
    try:
        baseline = read_output(
            CountedLayerOut, dump_json(_body(arguments.baseline, settings, field="baseline"))
        )
    except UnreadableRecord:
        raise InvalidInput(
            "expected a file that sluice layer count has written", field="baseline"
        ) from None
    before = baseline.counts()
    if not before:
        raise InvalidInput("the baseline has no call that is countable", field="baseline")
    sizes = sorted({size for _, size in before})
    known = {"mpicc": baseline.mpicc, "launcher": baseline.launcher, "bytes": sizes}
    with ticking_line(output.err, "counting instructions"):
        counted = count(_plan(arguments, known))
    found = CountChecksOut.of(counted.version, changes(before, counted.calls), arguments.max_more)
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
    yield from warning_parts(found.warnings)
    yield "Services are by the names of functions alone; what no name tells is other."


_CALLS = {"source": "send", "destination": "receive"}


def _changed_parts(found: CountChecksOut, baseline: CountedLayerOut) -> Iterator[Part]:
    yield printable(f"{found.version}, beside {baseline.version}")
    columns = (Column("call", is_number=False), *map(Column, ("message", "before", "now", "more")))
    rows = tuple(
        (
            _CALLS[one.end],
            format_bytes(one.message_bytes),
            _number(one.before),
            "waited" if one.now is None else _number(one.now),
            "–" if one.share is None else format_signed_percent(one.share),
        )
        for one in found.calls
    )
    yield Grid(columns, rows)
    limit = format_percent(found.max_more)
    yield f"{'within' if found.is_kept else 'over'} {limit} more, call by call"
