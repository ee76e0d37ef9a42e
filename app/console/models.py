"""sluice simulate, deliver, thresholds and hide: cuts that are given, chosen on line, or hidden
behind a calculation.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from app.console.commands import INTERRUPTED, fit_source, store_for
from app.console.files import (
    TraceSource,
    body_of,
    check_plot_file,
    check_timeline_file,
    merged,
    read_source,
    write_whole,
)
from app.console.running import counting_line, run_operation
from app.console.screen import (
    Column,
    Facts,
    GanttRow,
    Grid,
    Ink,
    Output,
    Part,
    chart_of,
    draw,
    failure_lines,
    others,
    paint,
    warning_parts,
)
from app.settings import Settings
from app.text.numbers import format_count, format_percent, format_sizes
from app.text.units import PROVEN_BOUND, format_proven, format_time, printable
from domain.errors import InconsistentInput, InvalidInput
from domain.units import format_bytes
from domain.verification import said_of

if TYPE_CHECKING:
    from app.operations.models import Hide
    from app.questions.compare import Cut, PricedCut, Simulation
    from app.schemas.base import Input
    from app.schemas.hide import HideIn, HideOut
    from app.schemas.simulate import DeliveredOut, MessageThresholdsOut, SimulateIn, ThresholdsOut


_SHOWN = 16  # choices of one message in the table: the best, and as many as there is room for

T = TypeVar("T", bound="Input")


def simulate(arguments: argparse.Namespace, output: Output) -> int:
    """Run a cut that is given, print what it takes, and draw it where that is asked for."""
    from app.questions.compare import model_of, run_on
    from app.questions.source import Stored
    from app.schemas.simulate import SimulateIn

    if arguments.timeline is not None:
        check_timeline_file(arguments.timeline)
    settings = Settings.from_environment()
    asked = _asked(SimulateIn, arguments, {}, settings, output, needs_message=False)
    source = asked.source()
    with store_for(source, settings) as store:
        found = model_of(source, asked.options(), Stored.of_store(store))
    model, profile = found.model, found.profile
    cut = _given_cut(arguments, asked, len(model.stages or (model,)))
    simulation = replace(run_on(model, cut), profile=profile)
    _show_simulation(simulation, cut, arguments, output)
    return 0


def _given_cut(arguments: argparse.Namespace, asked: SimulateIn, stages: int) -> Cut:
    """Return the cut of the options, or else of the request. Raises InvalidInput."""
    from app.questions.compare import MAX_INTERVALS, Cut

    if arguments.fragments is not None:
        if arguments.repeat is not None:
            raise InconsistentInput("--fragments has every size already", field="repeat")
        return Cut((tuple(arguments.fragments),), is_nested=False)
    if arguments.repeat is None:
        if (asked.fragment_bytes, asked.levels, asked.delivery) == (None, None, None):
            raise InvalidInput(
                "expected --repeat, as 64KiB or whole, or --fragments", field="repeat"
            )
        return asked.cut()
    message_bytes = asked.message_bytes if arguments.bytes is None else arguments.bytes
    if message_bytes is None:
        raise _no_message()
    repeated = message_bytes if arguments.repeat == "whole" else arguments.repeat["repeat"]
    if repeated < 1 or message_bytes < 1:
        raise InvalidInput("expected sizes of 1 byte and more", field="repeat")
    count = -(-message_bytes // repeated)
    if count * stages > MAX_INTERVALS:
        raise InvalidInput(
            f"expected at most {MAX_INTERVALS} fragments times stages, got {count * stages}",
            field="repeat",
        )
    sizes = (repeated,) * (count - 1) + (message_bytes - repeated * (count - 1),)
    return Cut((sizes,), is_nested=False)


def _show_simulation(
    simulation: Simulation | PricedCut, cut: Cut, arguments: argparse.Namespace, output: Output
) -> None:
    from app.questions.compare import PricedCut
    from app.questions.compare import draw as drawn
    from app.schemas.base import dump_json
    from app.schemas.priced_cut import PricedCutOut, simulated
    from app.schemas.simulate import DeliveredOut

    picture = None if arguments.timeline is None else drawn(simulation, cut)
    found = simulated(simulation)
    if output.wants_json:
        output.document(dump_json(found))
    elif isinstance(simulation, PricedCut):
        output.parts([Facts(tuple(PricedCutOut.of(simulation).facts()))])
    elif isinstance(found, DeliveredOut):
        output.parts(_delivered(found))
    else:
        output.parts(_simulated(simulation, cut, width=output.out.width, ink=output.out.ink))
    if picture is not None:
        write_whole(arguments.timeline, picture, field="timeline", noun="the timeline")
        if not output.wants_json:
            output.parts([f"timeline written to {printable(arguments.timeline)}"])


def _simulated(simulation: Simulation, cut: Cut, *, width: int, ink: Ink) -> Iterator[Part]:
    """Yield a given cut: what it takes, which stage is busy longest, and the Gantt."""
    stages = simulation.pipeline.stages
    bottleneck = simulation.bottleneck_stage
    busy = format_time(simulation.busy_us[bottleneck])
    profile = simulation.profile
    of = f", profile {profile.name}@{profile.revision}" if profile else ""
    yield f"{format_bytes(simulation.message_bytes)} through {len(stages)} stages{of}"
    yield ""
    cuts = [f"{format_count(len(sizes))}: {format_sizes(sizes)} bytes" for sizes in cut.levels]
    names = [printable(stage.name) for stage in stages] if cut.is_nested else ["fragments"]
    yield Facts(
        (
            *zip(names, cuts, strict=True),
            ("latency", format_time(simulation.latency_us)),
            ("bottleneck", f"{printable(stages[bottleneck].name)}, busy for {busy}"),
        )
    )
    yield ""
    levels = cut.levels if cut.is_nested else None
    chart = chart_of(simulation.pipeline, cut.levels[0], bottleneck=bottleneck, levels=levels)
    yield "\n".join(draw(chart, width=width, ink=ink))


def deliver(arguments: argparse.Namespace, output: Output) -> int:
    """Run the rules, print what each stage did, and draw it where that is asked for."""
    from app.questions.compare import pipeline_of, simulate_delivery
    from app.questions.source import Stored
    from app.schemas.simulate import SimulateIn

    if arguments.timeline is not None:
        check_timeline_file(arguments.timeline)
    settings = Settings.from_environment()
    options = {"message_bytes": arguments.bytes, "delivery": arguments.rules}
    asked = _asked(SimulateIn, arguments, options, settings, output)
    source, cut = asked.source(), asked.cut()
    with store_for(source, settings) as store:
        pipeline, found = pipeline_of(source, asked.options(), Stored.of_store(store))
    delivered = simulate_delivery(pipeline, cut.message_bytes, cut.rules)
    simulation = replace(delivered, profile=found.profile)
    _show_simulation(simulation, cut, arguments, output)
    return 0


def _delivered(found: DeliveredOut) -> Iterator[Part]:
    took, bound = format_proven(found.latency_us, found.lower_bound_us)
    saved = 1.0 - found.latency_us / found.store_and_forward_us if found.latency_us else 0.0
    versus = f"{format_percent(abs(saved))} {'less' if saved >= 0.0 else 'more'} here"
    yield Facts(
        (
            ("latency", f"{took}, {PROVEN_BOUND} {bound}"),
            ("store and forward", f"{format_time(found.store_and_forward_us)}; {versus}"),
        )
    )
    yield ""
    columns = (Column("stage"), Column("pulses"), Column("sizes", is_list=True), Column("busy"))
    rows = tuple(
        (stage.name, format_count(len(sizes)), format_sizes(sizes), format_time(busy_us))
        for stage, sizes, busy_us in zip(
            found.pipeline.stages, found.levels, found.busy_us, strict=True
        )
    )
    yield Grid(columns, rows)
    yield from warning_parts(found.warnings)


def thresholds(arguments: argparse.Namespace, output: Output) -> int:
    """Price the grid, print the best of each message and of all, and draw the first message."""
    from app.operations.compare import PriceThresholds
    from app.questions.compare import pipeline_of
    from app.questions.source import Stored
    from app.schemas.base import dump_json
    from app.schemas.simulate import ThresholdsIn, ThresholdsOut

    if arguments.plot is not None:
        check_plot_file(arguments.plot)
    settings = Settings.from_environment()
    options = {
        "message_bytes": None if arguments.bytes is None else list(arguments.bytes),
        "rule": arguments.rule,
        "stages": arguments.stages,
        "sizes": None if arguments.sizes is None else list(arguments.sizes),
        "time_limit_s": arguments.time_limit_s,
    }
    asked = _asked(ThresholdsIn, arguments, options, settings, output)
    source = asked.source()
    with store_for(source, settings) as store:
        pipeline, known = pipeline_of(source, asked.options(), Stored.of_store(store))
    question = asked.to_domain(
        pipeline,
        known.profile,
        max_pulses=settings.max_fragments,
        said=said_of(known.verification),
    )
    with counting_line(output.err) as show:
        ran = run_operation(PriceThresholds(question, asked.as_job), settings, show)
    found = ThresholdsOut.of(ran.result)
    if output.wants_json:
        output.document(dump_json(found))
    else:
        output.parts(_priced(found))
    if arguments.plot is not None:
        write_whole(arguments.plot, drawing(found).encode(), field="plot", noun="the plot")
        if not output.wants_json:
            output.parts([f"plot written to {printable(arguments.plot)}"])
    return INTERRUPTED if ran.is_interrupted else 0


def _priced(found: ThresholdsOut) -> Iterator[Part]:
    yield from failure_lines(found.warnings)
    if found.one is not None and len(found.messages) > 1:
        one = found.one
        worst = (
            f"{format_percent(one.max_regret)} at worst ({format_bytes(one.worst_message_bytes)})"
        )
        mean = f"{format_percent(one.mean_regret)} above the best of each message on average"
        yield Facts(((f"one {_noun(found)}", f"{_choice(one.sizes_bytes)}: {mean}, {worst}"),))
        yield ""
    headings = ("message", f"best {_noun(found)}", "latency", "at least", "store and forward")
    rows = tuple(
        (
            format_bytes(message.message_bytes),
            "–" if message.best_bytes is None else _choice(message.best_bytes),
            *_times(message),
            format_time(message.store_and_forward_us),
        )
        for message in found.messages
    )
    yield Grid(tuple(map(Column, headings)), rows)
    if len(found.messages) == 1:
        yield ""
        yield _grid(found, found.messages[0])
    yield from warning_parts(others(found.warnings))


def _times(message: MessageThresholdsOut) -> tuple[str, str]:
    if message.best_us is None:
        return "–", format_time(message.lower_bound_us)
    took, bound = format_proven(message.best_us, message.lower_bound_us)
    return took, bound


def _grid(found: ThresholdsOut, message: MessageThresholdsOut) -> Grid:
    """The choices of one message: all of them where they are few, else those of least latency."""
    priced = [
        (us, choice)
        for us, choice in zip(message.latencies_us, found.choices, strict=True)
        if us is not None
    ]
    shown = sorted(sorted(priced)[:_SHOWN], key=lambda pair: pair[1])
    best_us = message.best_us
    rows = tuple(
        (_choice(choice), format_time(us), format_percent(us / best_us - 1.0) if best_us else "–")
        for us, choice in shown
    )
    return Grid((Column(_noun(found)), Column("latency"), Column("above the best")), rows)


def _noun(found: ThresholdsOut) -> str:
    return "threshold" if found.rule == "eager" else "pulse size"


def _choice(sizes: tuple[int, ...]) -> str:
    return " / ".join(map(format_bytes, sizes))


def drawing(found: ThresholdsOut) -> str:
    """Return latencies of the first message by size as SVG: a curve, or one for each size of the
    stages before the last that varies. Raises InconsistentInput where nothing was priced.
    """
    from app.plots.models_svg import thresholds_svg
    from app.schemas.simulate import size_curves

    message = found.messages[0]
    if message.best_us is None or message.best_bytes is None:
        raise InconsistentInput("nothing was priced in time", field="plot")
    return thresholds_svg(
        size_curves(found),
        rule=found.rule,
        store_and_forward_us=message.store_and_forward_us,
        ideal_us=message.ideal_us,
        lower_bound_us=message.lower_bound_us,
        best=(message.best_bytes[-1], message.best_us),
    )


def _asked(
    model: type[T],
    arguments: argparse.Namespace,
    options: dict[str, Any],
    settings: Settings,
    output: Output,
    *,
    needs_message: bool = True,
) -> T:
    """Return the request of a source and options. Raises InvalidInput, and what a fit does."""
    from app.schemas.base import dump_json, parse_json
    from app.schemas.stages import given_model

    source = read_source(arguments.source, settings)
    if isinstance(source, TraceSource):
        fit = fit_source(source, settings, output.err).fit
        given: dict[str, Any] = given_model(fit.to_model())
    else:
        given = body_of(source)
    base = {name: value for name, value in given.items() if name in model.model_fields}
    sizes = model.model_fields["message_bytes"]
    if isinstance(base.get("message_bytes"), int) and "list" in str(sizes.annotation):
        base["message_bytes"] = [base["message_bytes"]]
    body = merged(base, options)
    if needs_message and body.get("message_bytes") is None:
        raise _no_message()
    return parse_json(model, dump_json(body))


def _no_message() -> InvalidInput:
    return InvalidInput(
        "expected --bytes, the size of the message, as 4096 or 64KiB", field="message_bytes"
    )


def hide_parts(found: HideOut, *, width: int, ink: Ink) -> Iterator[Part]:
    """Yield two bars, the figures, the table of the counts, and the warnings."""
    from app.operations.models import hide_facts

    yield from failure_lines(found.warnings)
    if found.with_us is not None:
        yield from _bars(found, width=width, ink=ink)
        yield ""
    yield Facts(tuple(hide_facts(found)))
    yield ""
    if found.counts:
        yield "By number of fragments:"
        yield _counts(found)
        yield ""
    yield from warning_parts(others(found.warnings))


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
    from app.questions.source import Stored
    from app.schemas.base import dump_json, parse_json
    from app.schemas.hide import HideIn

    source = None if arguments.source is None else read_source(arguments.source, settings)
    given = {} if source is None else body_of(source)
    base = {name: value for name, value in given.items() if name in HideIn.model_fields}
    asked: HideIn = parse_json(HideIn, dump_json(merged(base, _options(arguments))))
    cap = settings.max_fragments
    if asked.granularity is not None:
        with store_for(None, settings) as store:
            return prepared_hide(asked, Stored.of_store(store), fragment_cap=cap)
    asked.to_model()
    question = asked.to_question()
    if isinstance(source, TraceSource):
        # The trace goes round the JSON parser: it may be a hundred times longer than any request.
        question = replace(question, source=(Measurement(source.content),))
    with store_for(question.source, settings) as store:
        prepared = prepare(question, Stored.of_store(store), fragment_cap=cap)
    return Hide(asked.to_domain(prepared.problem, prepared.uncertain), prepared, asked.as_job)


def hiding_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what a message is hidden behind, and where, as requests have it."""
    hosts = {side: getattr(arguments, f"{side}_stage") for side in ("sender", "receiver")}
    return {
        "calculation_us": arguments.calculation,
        "hideable_fraction": arguments.hideable_fraction,
        "hiding_overhead_us": arguments.hiding_overhead,
        "host_stages": _given({side: _stages(names) for side, names in hosts.items()}),
        "exchange": "both_ways" if arguments.both_ways else None,
    }


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    terms = {name: getattr(arguments, name) for name in ("software", "hardware", "overhead")}
    processes = {
        "max_processes": arguments.processes,
        "communication": arguments.communication,
    }
    return {
        "message_bytes": arguments.bytes,
        "messages": arguments.messages,
        "messages_are": "train" if arguments.train else None,
        **hiding_options(arguments),
        "instructions": arguments.instructions,
        "instructions_per_us": arguments.instructions_per_us,
        "streamed": arguments.streamed,
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
