"""Prices of thresholds as parts: the best of all, of each message, of each choice; as a picture."""

from __future__ import annotations

from collections.abc import Iterator

from app.plots.models_svg import SizeCurve, thresholds_svg
from app.text.numbers import format_percent
from app.text.units import format_proven, format_time
from app.ui.parts import Column, Facts, Grid, Part, failures, noted, others
from app.verbs.thresholds.answer import choice, noun
from contract.thresholds import MessageThresholdsOut, ThresholdsOut
from domain.delivery import DeliveryRule
from domain.errors import InconsistentInput
from domain.units import format_bytes

NOT_KNOWN = "–"
MAX_CHOICES = 16  # of one message on a terminal: those of least latency


def parts(found: ThresholdsOut) -> Iterator[Part]:
    """Yield the best choice of all messages, that of each, the choices of a single one, notices."""
    yield from failures(found.warnings)
    if found.one is not None and len(found.messages) > 1:
        yield Facts(((f"one {noun(found.rule)}", _one(found)),))
        yield ""
    yield messages(found)
    if len(found.messages) == 1:
        yield ""
        yield choices(found, priced(found)[:MAX_CHOICES])
    yield from noted(others(found.warnings))


def _one(found: ThresholdsOut) -> str:
    assert found.one is not None
    worst, at = format_percent(found.one.max_regret), format_bytes(found.one.worst_message_bytes)
    mean = f"{format_percent(found.one.mean_regret)} above the best of each message on average"
    return f"{choice(found.one.sizes_bytes)}: {mean}, {worst} at worst ({at})"


def messages(found: ThresholdsOut) -> Grid:
    """Return the best of each message, between the bound and store and forward."""
    headings = ["message", f"best {noun(found.rule)}", "latency", "at least", "store and forward"]
    has_serial = any(message.serial_us is not None for message in found.messages)
    if has_serial:
        headings.append("serial")
    rows = tuple(
        (
            format_bytes(message.message_bytes),
            NOT_KNOWN if message.best_bytes is None else choice(message.best_bytes),
            *_times(message),
            format_time(message.store_and_forward_us),
            *((_serial(message),) if has_serial else ()),
        )
        for message in found.messages
    )
    return Grid(tuple(map(Column, headings)), rows, f"Best {noun(found.rule)} of each message")


def _serial(message: MessageThresholdsOut) -> str:
    return NOT_KNOWN if message.serial_us is None else format_time(message.serial_us)


def _times(message: MessageThresholdsOut) -> tuple[str, str]:
    if message.best_us is None:
        return NOT_KNOWN, format_time(message.lower_bound_us)
    return format_proven(message.best_us, message.lower_bound_us)


def priced(found: ThresholdsOut) -> list[int]:
    """Return the places of the choices that were priced for the first message, fastest first."""
    latencies = found.messages[0].latencies_us
    return [at for _, at in sorted((us, at) for at, us in enumerate(latencies) if us is not None)]


def choices(found: ThresholdsOut, places: list[int]) -> Grid:
    """Return these choices for the first message, in the order of their sizes."""
    message = found.messages[0]
    rows = tuple(_choice_row(found, message, at) for at in sorted(places))
    columns = (Column(noun(found.rule)), Column("latency"), Column("above the best"))
    return Grid(columns, rows, f"Latency by {noun(found.rule)}")


def _choice_row(
    found: ThresholdsOut, message: MessageThresholdsOut, at: int
) -> tuple[str, str, str]:
    us, best_us = message.latencies_us[at] or 0.0, message.best_us
    above = format_percent(us / best_us - 1.0) if best_us else NOT_KNOWN
    return choice(found.choices[at]), format_time(us), above


# --- the picture ----------------------------------------------------------------------------------


def drawing(found: ThresholdsOut) -> str:
    """Return latencies of the first message by size as SVG: a curve, or one for each size of the
    stages before the last that varies. Raises InconsistentInput where nothing was priced.
    """
    message = found.messages[0]
    if message.best_us is None or message.best_bytes is None:
        raise InconsistentInput("nothing was priced in time", field="plot")
    return thresholds_svg(
        _curves(found),
        rule=DeliveryRule(found.rule),
        store_and_forward_us=message.store_and_forward_us,
        ideal_us=message.ideal_us,
        lower_bound_us=message.lower_bound_us,
        best=(message.best_bytes[-1], message.best_us),
    )


def _curves(found: ThresholdsOut) -> list[SizeCurve]:
    """Return one curve, or where stages vary by themselves those of the best choice, the smallest
    and the largest sizes of the stages before the last: all of them would be a tangle.
    """
    message = found.messages[0]
    curves: dict[tuple[int, ...], list[tuple[int, float]]] = {}
    for sizes, us in zip(found.choices, message.latencies_us, strict=True):
        if us is not None:
            curves.setdefault(sizes[:-1], []).append((sizes[-1], us))
    best = (message.best_bytes or ())[:-1]
    wanted = dict.fromkeys((min(curves), best, max(curves)))
    return [
        SizeCurve(f"{choice(sizes)} before" if sizes else "latency", tuple(curves[sizes]))
        for sizes in wanted
        if sizes in curves
    ]
