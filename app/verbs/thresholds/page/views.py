"""The page of thresholds: the form, the parts of its answer, curves, and the pulses of a choice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fastapi import Request, Response

from app.http.dependencies import own_router
from app.questions.simulate import Cut, draw, simulate_delivery
from app.schemas.base import read_output
from app.schemas.stages import stored_pipeline
from app.text.numbers import format_count, format_percent, format_sizes
from app.text.units import OF_MODEL, format_proven, format_time
from app.ui.addresses import address
from app.ui.form_page import asked_page, embedded
from app.ui.forms import RequestForm
from app.ui.html import as_html
from app.ui.pages import says_refusals
from app.ui.parts import Column, Facts, Grid, Link, Part, noted
from app.verbs.thresholds import show
from app.verbs.thresholds.answer import choice, noun
from app.verbs.thresholds.operation import operation
from app.verbs.thresholds.request import grid_question
from contract.thresholds import ThresholdsIn, ThresholdsOut
from domain.errors import InconsistentInput, SluiceError

PLACE = "/ui/delivery"
MAX_ROWS = 40  # choices in the table: those of least latency
_MAX_PULSES = 20_000  # of the choice that is drawn

router = own_router(include_in_schema=False)
FORM = RequestForm(
    ThresholdsIn, "thresholds", always={"time_limit_s": 5.0}, begins_with={"profile": "trapeze"}
)


@router.get(PLACE)
@says_refusals
async def delivery(request: Request) -> Response:
    """Show the form, and where it is filled in the latencies of all its choices."""
    return await asked_page(request, FORM, operation, _view, "delivery.html")


def _view(asked: ThresholdsIn, document: bytes, texts: Mapping[str, str]) -> Mapping[str, Any]:
    found = read_output(ThresholdsOut, document)
    message, places = found.messages[0], show.priced(found)
    shown = _shown(texts.get("at", ""), places, found)
    named = noun(found.rule)
    if message.best_bytes is None:
        title = f"no {named} was priced in time"
    else:
        title = f"{named} {choice(message.best_bytes)}"
    return {
        "title": title,
        "noun": named,
        "parts": as_html([_figures(found), *noted(found.warnings)]),
        "tables": as_html(_tables(found, places, shown, texts)),
        "left_out": max(0, len(places) - MAX_ROWS),
        "curves": _curves(found),
        "pulses": None if shown is None else _pulses(asked, found, shown),
        "profile": found.profile,
    }


def _figures(found: ThresholdsOut) -> Facts:
    """Return the figures of the first message; of its best choice where one was priced."""
    message = found.messages[0]
    whole = format_time(message.store_and_forward_us)
    if message.best_us is None:
        latency = f"not known, at least {format_time(message.lower_bound_us)} {OF_MODEL}"
    else:
        best, bound = format_proven(message.best_us, message.lower_bound_us)
        latency = f"{best}, at least {bound} {OF_MODEL}"
        if message.store_and_forward_us:
            saved = 1.0 - message.best_us / message.store_and_forward_us
            whole = f"{whole}, {format_percent(saved)} saved"
    pairs = [
        ("latency", latency),
        ("store and forward", whole),
        ("ideal cut-through", format_time(message.ideal_us)),
    ]
    if message.serial_us is not None:
        serial = format_time(message.serial_us)
        pairs.append(("one after another", f"{serial}, if stages do not overlap"))
    return Facts(tuple(pairs))


def _tables(
    found: ThresholdsOut, places: list[int], shown: int | None, texts: Mapping[str, str]
) -> list[Part]:
    """Return the messages where there are several, and the choices of the first one, each with a
    link to its pulses.
    """
    several: list[Part] = [show.messages(found)] if len(found.messages) > 1 else []
    if not places:
        return several
    fastest = places[:MAX_ROWS]
    return [*several, _linked(show.choices(found, fastest), sorted(fastest), shown, texts)]


def _linked(grid: Grid, places: list[int], shown: int | None, texts: Mapping[str, str]) -> Grid:
    """Return the table with a column that leads to the pulses of each choice."""
    pairs = [(name, texts[name]) for name in (word.name for word in FORM.words)]
    rows = tuple(
        (
            *row,
            "shown"
            if at == shown
            else Link("show", address(PLACE, [*pairs, ("at", str(at))]) + "#pulses",
                      f" the pulses of {row[0]}"),
        )
        for at, row in zip(places, grid.rows, strict=True)
    )  # fmt: skip
    return replace(grid, columns=(*grid.columns, Column("pulses", is_number=False)), rows=rows)


def _shown(text: str, places: list[int], found: ThresholdsOut) -> int | None:
    """Return the choice that is asked to be shown, else the best one."""
    if text.isascii() and text.isdigit() and len(text) < 6 and int(text) in places:
        return int(text)
    best = found.messages[0].best_bytes
    return None if best is None else found.choices.index(best)


def _curves(found: ThresholdsOut) -> str:
    try:
        return embedded(show.drawing(found).encode())
    except InconsistentInput:  # nothing was priced
        return ""


def _pulses(asked: ThresholdsIn, found: ThresholdsOut, place: int) -> Mapping[str, Any] | None:
    """Return the pulses of a choice, drawn and by stage; None where there are too many to see."""
    pipeline, total = stored_pipeline(found.pipeline), found.messages[0].message_bytes
    question = grid_question(asked, pipeline, None, max_pulses=_MAX_PULSES)
    rules = question.rules(found.choices[place], total)
    try:
        simulation = simulate_delivery(pipeline, total, rules)
    except SluiceError:
        return None
    delivered = simulation.delivered
    if delivered is None or sum(map(len, delivered.levels)) > _MAX_PULSES:
        return None
    rows = tuple(
        (stage.name, f"{format_count(len(sizes))}: {format_sizes(sizes)}", format_time(busy_us))
        for stage, sizes, busy_us in zip(
            pipeline.stages, delivered.levels, simulation.busy_us, strict=True
        )
    )
    columns = (
        Column("stage", is_number=False),
        Column("pulses, bytes", is_number=False),
        Column("busy"),
    )
    return {
        "name": choice(found.choices[place]),
        "picture": embedded(
            draw(simulation, Cut((), is_nested=True, rules=rules, message_bytes=total))
        ),
        "table": as_html([Grid(columns, rows, "Pulses by stage, bytes")]),
    }
