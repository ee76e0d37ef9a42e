"""What a layer costs as parts: the work of each message, what features save, the stages."""

from __future__ import annotations

from collections.abc import Iterator

from app.console.reports import stages_table
from app.text.numbers import format_count, format_instructions, format_percent
from app.text.units import format_time, printable
from app.ui.parts import Column, Grid, Part, noted
from contract.layer_costs import BestCutOut, FeatureSavingOut, LayerCostsOut, MessageCostsOut
from domain.units import format_bytes

_number = format_instructions


def parts(costs: LayerCostsOut) -> Iterator[Part]:
    """Yield the work of each message, what features save, the stages, and what they rest on."""
    yield printable(f"{costs.layer.name}: {costs.layer.source or 'given'}")
    for message in costs.messages:
        yield ""
        yield _headline(costs, message)
        yield services(message)
        if message.savings:
            yield ""
            yield "What features of a network would save:"
            yield _savings(message)
            if message.best and message.best.latency_us is not None:
                yield (
                    f"Latencies are of the best cut, whose largest fragment is "
                    f"{largest(message.best)}: {format_time(message.best.latency_us)} without any"
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
    yield from (f"- {printable(assumption)}" for assumption in costs.assumptions)
    if costs.profile:
        yield f"stored as profile {costs.profile.reference}"
    yield from noted(costs.warnings)


def _headline(costs: LayerCostsOut, message: MessageCostsOut) -> str:
    packets = format_count(message.packets)
    words = costs.layer.packet_words
    cut = f" in {packets} packets of {words} words" if words > 1 else ""
    figures = [
        f"{format_bytes(message.message_bytes)}{cut}: {_number(message.instructions)} instructions",
        f"overhead {format_percent(message.overhead_of_instructions)} of them",
    ]
    if message.cycles is not None and message.overhead_of_cycles is not None:
        overhead = format_percent(message.overhead_of_cycles)
        figures.append(f"{_number(message.cycles)} cycles, overhead {overhead}")
    if message.us is not None:
        figures.append(format_time(message.us))
    return "; ".join(figures)


def services(message: MessageCostsOut) -> Grid:
    """Return services in rows; both ends, their sum, its shares."""
    has_cycles = message.cycles is not None
    headings = ["source", "destination", "total", "share", *(["of cycles"] if has_cycles else [])]
    rows = []
    for place in range(0, len(message.services), 2):
        ends = message.services[place : place + 2]
        shares = [sum(end.share_of_instructions for end in ends)]
        if has_cycles:
            shares.append(sum(end.share_of_cycles or 0.0 for end in ends))
        counts = [*(end.instructions for end in ends), sum(end.instructions for end in ends)]
        rows.append((ends[0].service, *map(_number, counts), *map(format_percent, shares)))
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
        share(saving.share_of_cycles),
    ]
    if is_tuned:
        whole_us = before.latency_us if before else None
        row += [
            _less(saving.saved_at_old_cut_us, whole_us),
            _less(saving.saved_us, whole_us),
            largest(saving.best),
        ]
    return tuple(row)


def share(of_all: float | None) -> str:
    """Return a share, a dash where cycles are not known."""
    return "–" if of_all is None else format_percent(of_all)


def _less(saved_us: float | None, whole_us: float | None) -> str:
    """Return a saving of a latency, as its share."""
    if saved_us is None or not whole_us:
        return "–"
    return format_percent(saved_us / whole_us)


def largest(cut: BestCutOut | None) -> str:
    """Return the largest fragment of a cut, a dash where none was found."""
    if cut is None or cut.largest_fragment_bytes is None:
        return "–"
    return format_bytes(cut.largest_fragment_bytes)


def _packet_sizes(message: MessageCostsOut) -> Grid:
    rows = tuple(
        (
            format_count(size.packet_words),
            format_count(size.packets),
            _number(size.instructions),
            format_percent(size.overhead_of_instructions),
            share(size.overhead_of_cycles),
        )
        for size in message.packet_sizes
    )
    headings = ("words a packet", "packets", "instructions", "overhead", "of cycles")
    return Grid(tuple(map(Column, headings)), rows)
