"""Messaging layers: what their software costs, and what features of a network would save."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fastapi import Request, Response

from analysis.layer_answer import LayerAnswer
from app.errors import kind_of
from app.http.dependencies import client_of, own_router, service_of
from app.plots.models_svg import render_layer_svg
from app.questions.source import Stored
from app.settings import Settings
from app.text.notices import sentence
from app.text.numbers import format_count, format_instructions, format_percent
from app.text.units import format_time
from app.ui.addresses import MAX_ADDRESS
from app.ui.pages import is_htmx, moved, page, says_refusals
from app.ui.panel.state import InputState
from app.ui.parts import Grid
from app.verbs.layer.answer import sent
from app.verbs.layer.operation import CostLayer, operation
from app.verbs.layer.page.form import WORDS, LayerForm
from app.verbs.layer.show import largest, services, share
from app.web.forms import read_form
from contract.layer_costs import BestCutOut, FeatureSavingOut, MessageCostsOut
from domain.errors import Overloaded, SluiceError
from domain.pipeline import Pipeline
from domain.units import format_bytes

SECTION = "Models"
PLACE = "/ui/layers"
RESULT = f"{PLACE}/result"


# --- the result -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SavingRow:
    """What features save: of the work, at today's fragmentation, and with one chosen anew."""

    features: str
    instructions: str
    of_instructions: str
    of_cycles: str
    at_old_cut: str
    tuned: str
    largest: str


@dataclass(frozen=True, slots=True)
class MessageView:
    """One message: its figures, services and savings; `best` is about its best fragmentation."""

    size: str
    figures: tuple[tuple[str, str], ...]
    services: Grid
    savings: tuple[SavingRow, ...]
    best: str

    @classmethod
    def from_message(cls, message: MessageCostsOut, words_a_packet: int) -> MessageView:
        """Return a message as it is shown."""
        return cls(
            size=format_bytes(message.message_bytes),
            figures=tuple(_figures(message, words_a_packet)),
            services=services(message),
            savings=tuple(_saving(one, message.best) for one in message.savings),
            best=_best(message.best),
        )


@dataclass(frozen=True, slots=True)
class LayerView:
    """The result: a picture, messages, the stages to optimise with, and what all of it rests on."""

    name: str
    source: str
    picture: str
    messages: tuple[MessageView, ...]
    is_tuned: bool
    has_cycles: bool
    stages: tuple[tuple[str, str], ...]
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]

    @classmethod
    def from_answer(cls, answer: LayerAnswer) -> LayerView:
        """Return an answer as it is shown."""
        costs = sent(answer)
        drawn = base64.b64encode(render_layer_svg(answer).encode()).decode()
        words = costs.layer.packet_words
        return cls(
            name=costs.layer.name,
            source=costs.layer.source,
            picture=f"data:image/svg+xml;base64,{drawn}",
            messages=tuple(MessageView.from_message(one, words) for one in costs.messages),
            is_tuned=bool(answer.tuned),
            has_cycles=costs.cycles is not None,
            stages=tuple(_panel_fields(answer)),
            assumptions=costs.assumptions,
            warnings=tuple(sentence(one.detail) for one in costs.warnings),
        )


def _figures(message: MessageCostsOut, words_a_packet: int) -> Iterator[tuple[str, str]]:
    yield "Instructions", format_instructions(message.instructions)
    yield "Overhead", f"{format_percent(message.overhead_of_instructions)} of them"
    if message.cycles is not None and message.overhead_of_cycles is not None:
        yield "Cycles", format_instructions(message.cycles)
        yield "Overhead", f"{format_percent(message.overhead_of_cycles)} of cycles"
    if message.us is not None:
        yield "Processor time", format_time(message.us)
    if words_a_packet > 1:
        yield "Packets", f"{format_count(message.packets)} of {words_a_packet} words"


def _saving(saving: FeatureSavingOut, before: BestCutOut | None) -> SavingRow:
    names = [feature.replace("_", " ") for feature in saving.features]
    return SavingRow(
        features=names[0] if len(names) == 1 else "all of them",
        instructions=format_instructions(saving.instructions),
        of_instructions=format_percent(saving.share_of_instructions),
        of_cycles=share(saving.share_of_cycles),
        at_old_cut=_less(saving.saved_at_old_cut_us, before),
        tuned=_less(saving.saved_us, before),
        largest=largest(saving.best),
    )


def _less(saved_us: float | None, before: BestCutOut | None) -> str:
    """Return a saving of a latency, with its share of it."""
    whole_us = before.latency_us if before else None
    if saved_us is None or not whole_us:
        return "–"
    return f"{format_time(saved_us)}, {format_percent(saved_us / whole_us)}"


def _best(best: BestCutOut | None) -> str:
    if best is None:
        return ""
    if best.latency_us is None or best.lower_bound_us is None:
        return f"No fragmentation was found: {best.declined}."
    return (
        f"With the layer as it is, the best fragmentation found takes "
        f"{format_time(best.latency_us)}, at least {format_time(best.lower_bound_us)} is proven "
        f"for this model; its largest fragment has {largest(best)}."
    )


def _panel_fields(answer: LayerAnswer) -> Iterator[tuple[str, str]]:
    """Yield the fields of the workbench's form that optimise the first message with these stages;
    none where the layer makes none.
    """
    if not answer.pipelines:
        return
    stages, size = answer.pipelines[0].stages, answer.question.message_bytes[0]
    yield from _rows(stages.pipeline)
    yield "message", format_bytes(size)
    yield "alignment", str(stages.limits.alignment_bytes)
    if answer.question.stages.max_packet_words is not None:
        yield "max_fragment", str(stages.limits.max_fragment_bytes)


def _rows(pipeline: Pipeline) -> Iterator[tuple[str, str]]:
    entry = InputState.empty().with_pipeline(pipeline)
    yield "source", entry.source.value
    for name in ("overhead_unit", "cost_unit", "delay"):
        yield name, str(getattr(entry, name))
    for row in entry.rows:
        yield from ((name, getattr(row, name)) for name in ("name", "overhead", "cost", "up_to"))


# --- routes ---------------------------------------------------------------------------------------


router = own_router(include_in_schema=False)


@router.get(PLACE)
@says_refusals
async def layers(request: Request) -> Response:
    """Show the form; where the address asks something, its result, or a place for it."""
    form = LayerForm.from_pairs(request.query_params.multi_items())
    if not form.is_asked:
        return _page(request, "layers.html", form)
    operation, form = _prepared(form, service_of(request).context.settings)
    if operation is not None and form.is_tuned:
        return _page(request, "layers.html", form, ask=f"{RESULT}?{form.query()}")
    return await _shown(request, "layers.html", operation, form)


@router.post(PLACE)
@says_refusals
async def ask(request: Request) -> Response:
    """Lead to the question's own address; where a document makes that too long, show the result."""
    pairs = await read_form(request)
    settings = service_of(request).context.settings
    operation, form = await service_of(request).call(
        lambda: _prepared(LayerForm.from_pairs(pairs), settings)
    )
    query = form.query()
    if operation is not None and len(query) <= MAX_ADDRESS:
        return moved(request, f"{PLACE}?{query}")
    return await _shown(request, "layers.html", operation, form)


@router.post(RESULT)
@says_refusals
async def result(request: Request) -> Response:
    """Show the result of what the address asks, for the place that the page has for it."""
    form = LayerForm.from_pairs(request.query_params.multi_items())
    operation, form = _prepared(form, service_of(request).context.settings)
    template = "layers_result.html" if is_htmx(request) else "layers.html"
    return await _shown(request, template, operation, form)


def _prepared(form: LayerForm, settings: Settings) -> tuple[CostLayer | None, LayerForm]:
    """Return the operation, or None and the form with its mistakes."""
    asked, form = form.asked()
    if asked is None:
        return None, form
    try:
        return operation(asked, Stored(), settings), form
    except SluiceError as refusal:
        return None, form.refused(refusal)


async def _shown(
    request: Request, template: str, operation: CostLayer | None, form: LayerForm
) -> Response:
    """Show the form with the result, or with what is wrong."""
    if operation is None:
        return _page(request, template, form, status=422)
    service = service_of(request)
    try:
        answer = await service.run(operation, client_of(request))
    except SluiceError as refusal:
        if isinstance(refusal, Overloaded):
            raise
        status = kind_of(refusal.code).status
        return _page(request, template, form.refused(refusal), status=status)
    view = await service.call(lambda: LayerView.from_answer(answer))
    return _page(request, template, form, view=view)


def _page(
    request: Request,
    template: str,
    form: LayerForm,
    *,
    ask: str = "",
    status: int = 200,
    **more: Any,
) -> Response:
    """Show the form; `ask` is where its result is asked for, "" where it is not to be."""
    return page(
        request,
        template,
        status=status,
        section=SECTION,
        form=form,
        words=WORDS,
        texts=form.shown_texts,
        mistakes=form.mistakes,
        ask=ask,
        **more,
    )
