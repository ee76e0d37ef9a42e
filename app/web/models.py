"""Pages of models: cut-through delivery by threshold, and hiding behind a calculation."""

from __future__ import annotations

import base64
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastapi import Request, Response

from app.errors import field_problems
from app.http.dependencies import client_of, own_router, service_of
from app.operations.compare import threshold_operation
from app.operations.models import hide_drawing, hide_facts, hide_operation
from app.plots.models_svg import Picture, thresholds_svg
from app.questions.compare import Cut, draw, simulate_delivery
from app.questions.profiles import list_profiles
from app.schemas.base import dump_json, parse_json, read_output
from app.schemas.hide import HideIn, HideOut, StoredHideOut
from app.schemas.simulate import MessageThresholdsOut, ThresholdsIn, ThresholdsOut, size_curves
from app.text.numbers import format_count, format_figure, format_percent, format_sizes
from app.text.units import OF_MODEL, format_proven, format_time, parse_sizes
from app.web.forms import FieldReader, address
from app.web.pages import page, says_refusals
from domain.delivery import Delivery, DeliveryRule
from domain.errors import InvalidInput, SluiceError
from domain.units import format_bytes, parse_bytes, parse_number, parse_share

router = own_router(include_in_schema=False)

PLACE = "/ui/delivery"
MAX_ROWS = 40  # choices in the table: those of least latency
_MAX_PULSES = 20_000  # of the choice that is drawn
_TIME_LIMIT_S = 5.0
_FIELDS = ("profile", "message", "rule", "stages", "sizes")
_DEFAULT = {"profile": "trapeze", "message": "8 KiB", "rule": "eager"}
_PLACES = (
    ("/profile", "profile"),
    ("/message_bytes", "message"),
    ("/rule", "rule"),
    ("/stages", "stages"),
    ("/sizes", "sizes"),
)


@dataclass(frozen=True, slots=True)
class ChoiceRow:
    """A choice, its latency, how far it is above the best, and where its pulses are shown."""

    sizes: str
    latency: str
    above: str
    address: str
    is_shown: bool


@dataclass(frozen=True, slots=True)
class PulsesView:
    """The pulses of one choice: its name, a picture, and a line for each stage."""

    name: str
    picture: str
    stages: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class ThresholdsView:
    """What templates/delivery.html is given of an answer."""

    noun: str
    best: str
    latency: str
    bound: str
    store_and_forward: str
    saved: str
    ideal: str
    profile: str
    rows: tuple[ChoiceRow, ...]
    left_out: int
    curves: str
    pulses: PulsesView | None
    warnings: tuple[str, ...]
    command: str


@router.get(PLACE)
@says_refusals
async def delivery(request: Request) -> Response:
    """Show the form, and where it is filled in the latencies of all its choices."""
    texts = {name: request.query_params.get(name, "") for name in (*_FIELDS, "at")}
    is_asked = any(texts[name] for name in _FIELDS)
    if not is_asked:
        texts = {**texts, **_DEFAULT}
    service = service_of(request)
    names = await service.call(lambda: _profile_names(service.context.store))
    asked, mistakes = _asked(texts)
    view = None
    if is_asked and asked is not None:
        make = partial(threshold_operation, asked, settings=service.context.settings)
        try:
            performed = await service.perform(make, client_of(request))
        except SluiceError as refusal:
            mistakes = _mistakes(refusal)
        else:
            found = read_output(ThresholdsOut, performed.outcome.document)
            view = await service.call(lambda: _view(asked, found, texts))
    return page(
        request,
        "delivery.html",
        section="Models",
        status=422 if is_asked and mistakes else 200,
        texts=texts,
        mistakes=mistakes if is_asked else {},
        names=names,
        view=view,
    )


def _profile_names(store: Any) -> list[str]:
    return [one.name for one in list_profiles(store, limit=200).profiles]


def _asked(texts: Mapping[str, str]) -> tuple[ThresholdsIn | None, dict[str, str]]:
    """Return the question, None where a text is wrong, and what is wrong by field."""
    reader = FieldReader(texts)
    document = {
        "profile": reader.text("profile"),
        "message_bytes": [reader.read("message", parse_bytes)],
        "rule": reader.text("rule") or "eager",
        "stages": reader.read("stages", _places),
        "sizes": reader.read("sizes", lambda text: list(parse_sizes(text))),
        "time_limit_s": _TIME_LIMIT_S,
    }
    for name in ("profile", "message"):
        if not reader.text(name):
            reader.mistakes[name] = "expected one"
    if reader.mistakes:
        return None, reader.mistakes
    given = {name: value for name, value in document.items() if value is not None}
    try:
        return parse_json(ThresholdsIn, dump_json(given)), {}
    except SluiceError as refusal:
        return None, _mistakes(refusal)


def _places(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 4 for part in parts):
        raise InvalidInput("expected stages from 0, as 1,2")
    return [int(part) for part in parts]


def _mistakes(refusal: SluiceError, places: Sequence[tuple[str, str]] = _PLACES) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in field_problems(refusal):
        field = next((name for start, name in places if one.pointer.startswith(start)), "")
        found.setdefault(field, one.detail)
    return found or {"": refusal.detail}


def _view(asked: ThresholdsIn, found: ThresholdsOut, texts: Mapping[str, str]) -> ThresholdsView:
    (message,) = found.messages
    places = _by_latency(message)
    shown = _place(texts.get("at", ""), places, found)
    best_us = message.best_us or 0.0
    latency, bound = format_proven(best_us, message.lower_bound_us)
    saved = 1.0 - best_us / message.store_and_forward_us if message.store_and_forward_us else 0.0
    is_eager = found.rule is DeliveryRule.EAGER
    return ThresholdsView(
        noun="threshold" if is_eager else "pulse size",
        best="none was priced" if message.best_bytes is None else _choice(message.best_bytes),
        latency=latency,
        bound=f"{bound} {OF_MODEL}",
        store_and_forward=format_time(message.store_and_forward_us),
        saved=format_percent(saved),
        ideal=format_time(message.ideal_us),
        profile=found.profile.reference if found.profile else "",
        rows=tuple(_rows(found, message, places[:MAX_ROWS], shown, texts)),
        left_out=max(0, len(places) - MAX_ROWS),
        curves=_curves(found, message),
        pulses=None if shown is None else _pulses(asked, found, message, shown),
        warnings=tuple(one.detail for one in found.warnings),
        command=_command(texts),
    )


def _by_latency(message: MessageThresholdsOut) -> list[int]:
    """The places of the choices that were priced, the fastest first."""
    priced = [(us, place) for place, us in enumerate(message.latencies_us) if us is not None]
    return [place for _, place in sorted(priced)]


def _place(text: str, places: list[int], found: ThresholdsOut) -> int | None:
    """The choice that is asked to be shown, else the best one."""
    if text.isascii() and text.isdigit() and len(text) < 6 and int(text) in places:
        return int(text)
    best = found.messages[0].best_bytes
    return None if best is None else found.choices.index(best)


def _rows(
    found: ThresholdsOut,
    message: MessageThresholdsOut,
    places: list[int],
    shown: int | None,
    texts: Mapping[str, str],
) -> Iterator[ChoiceRow]:
    for place in sorted(places):
        us, best_us = message.latencies_us[place], message.best_us
        assert us is not None
        assert best_us is not None
        pairs = [(name, texts.get(name, "")) for name in _FIELDS]
        yield ChoiceRow(
            _choice(found.choices[place]),
            format_time(us),
            format_percent(us / best_us - 1.0) if best_us else "–",
            address(PLACE, [*pairs, ("at", str(place))]) + "#pulses",
            place == shown,
        )


def _choice(sizes: tuple[int, ...]) -> str:
    return " / ".join(map(format_bytes, sizes))


def _curves(found: ThresholdsOut, message: MessageThresholdsOut) -> str:
    if message.best_us is None or message.best_bytes is None:
        return ""
    return _embedded(
        thresholds_svg(
            size_curves(found),
            rule=found.rule,
            store_and_forward_us=message.store_and_forward_us,
            ideal_us=message.ideal_us,
            lower_bound_us=message.lower_bound_us,
            best=(message.best_bytes[-1], message.best_us),
        ).encode()
    )


def _pulses(
    asked: ThresholdsIn, found: ThresholdsOut, message: MessageThresholdsOut, place: int
) -> PulsesView | None:
    """None where there are more pulses than can be looked at."""
    pipeline, total = found.pipeline.to_domain(), message.message_bytes
    question = asked.to_domain(pipeline, None, max_pulses=_MAX_PULSES)
    rules: tuple[Delivery, ...] = question.rules(found.choices[place], total)
    try:
        simulation = simulate_delivery(pipeline, total, rules)
    except SluiceError:
        return None
    delivered = simulation.delivered
    if delivered is None or sum(map(len, delivered.levels)) > _MAX_PULSES:
        return None
    cut = Cut((), is_nested=True, rules=rules, message_bytes=total)
    rows = zip(pipeline.stages, delivered.levels, simulation.busy_us, strict=True)
    return PulsesView(
        _choice(found.choices[place]),
        _embedded(draw(simulation, cut)),
        tuple(
            (stage.name, f"{format_count(len(sizes))}: {format_sizes(sizes)}", format_time(busy))
            for stage, sizes, busy in rows
        ),
    )


def _embedded(picture: bytes) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(picture).decode()}"


def _command(texts: Mapping[str, str]) -> str:
    words = ["sluice", "thresholds", texts["profile"].strip()]
    words += ["--bytes", texts["message"].replace(" ", "")]
    for name in ("rule", "stages", "sizes"):
        text = texts.get(name, "").replace(" ", "")
        if text and (name, text) != ("rule", "eager"):
            words += [f"--{name}", text]
    return shlex.join(words)


# --- hiding behind a calculation ------------------------------------------------------------------


_HIDE_TEXTS = (
    *("profile", "message", "calculation", "hideable", "sender", "receiver", "min_gain"),
    *("processes", "communication"),
)
_HIDE_MARKS = ("both_ways", "streamed")
_HIDE_DEFAULT = {"profile": "myrinet-gam", "message": "4 KiB", "calculation": "120"}
_HIDE_PLACES = (
    ("/profile", "profile"),
    ("/message_bytes", "message"),
    ("/calculation_us", "calculation"),
    ("/hideable_fraction", "hideable"),
    ("/host_stages/sender", "sender"),
    ("/host_stages/receiver", "receiver"),
    ("/host_stages", "sender"),
    ("/exchange", "both_ways"),
    ("/streamed", "streamed"),
    ("/min_gain", "min_gain"),
    ("/processes", "processes"),
)
_PICTURES = {
    Picture.RUN_TIME: "Run time by number of fragments",
    Picture.GAIN: "Gain by calculation over communication",
    Picture.SPEEDUP: "Speed-up by number of processes",
}


_HIDE_OPTIONS = (
    ("hideable", "--hideable-fraction"),
    ("min_gain", "--min-gain"),
    ("processes", "--processes"),
    ("communication", "--communication"),
)


@dataclass(frozen=True, slots=True)
class HideView:
    """What templates/hiding.html is given of an answer; `counts` are rows of its table."""

    gain: str
    facts: tuple[tuple[str, str], ...]
    counts: tuple[tuple[str, str, str, str, str], ...]
    pictures: tuple[tuple[str, str], ...]
    profile: str
    warnings: tuple[str, ...]
    command: str

    @classmethod
    def of(cls, found: HideOut, texts: Mapping[str, str]) -> HideView:
        return cls(
            gain=format_figure(found.gain),
            facts=tuple(hide_facts(found)),
            counts=tuple(
                (
                    format_count(row.fragments),
                    format_time(row.latency_us),
                    format_time(row.host_us),
                    format_time(row.with_us),
                    format_proven(row.with_us, row.bound_us)[1],
                )
                for row in found.counts
            ),
            pictures=tuple(_hide_pictures(found)),
            profile=found.profile.reference if found.profile else "",
            warnings=tuple(one.detail for one in found.warnings),
            command=_hide_command(texts),
        )


@router.get("/ui/hiding")
@says_refusals
async def hiding(request: Request) -> Response:
    """Show the form, and where it is filled in what hiding gains."""
    names = (*_HIDE_TEXTS, *_HIDE_MARKS)
    texts = {name: request.query_params.get(name, "") for name in names}
    is_asked = any(texts.values())
    if not is_asked:
        texts = {**texts, **_HIDE_DEFAULT}
    service = service_of(request)
    profiles = await service.call(lambda: _profile_names(service.context.store))
    asked, mistakes = _asked_to_hide(texts)
    view = None
    if is_asked and asked is not None:
        make = partial(hide_operation, asked, settings=service.context.settings)
        try:
            performed = await service.perform(make, client_of(request))
        except SluiceError as refusal:
            mistakes = _mistakes(refusal, _HIDE_PLACES)
        else:
            found = read_output(StoredHideOut, performed.outcome.document)
            view = await service.call(lambda: HideView.of(found, texts))
    return page(
        request,
        "hiding.html",
        section="Models",
        status=422 if is_asked and mistakes else 200,
        texts=texts,
        mistakes=mistakes if is_asked else {},
        names=profiles,
        view=view,
    )


def _asked_to_hide(texts: Mapping[str, str]) -> tuple[HideIn | None, dict[str, str]]:
    """Return the question, None where a text is wrong, and what is wrong by field."""
    reader = FieldReader(texts)
    hosts = {side: _stage_names(reader.text(side)) for side in ("sender", "receiver")}
    most = reader.read("processes", _whole)
    processes = {"max_processes": most, "communication": reader.text("communication") or None}
    document = {
        "profile": reader.text("profile"),
        "message_bytes": reader.size("message"),
        "calculation_us": reader.read("calculation", parse_number),
        "hideable_fraction": reader.read("hideable", parse_share),
        "streamed": True if reader.text("streamed") else None,
        "host_stages": {side: on for side, on in hosts.items() if on} or None,
        "exchange": "both_ways" if reader.text("both_ways") else None,
        "min_gain": reader.read("min_gain", parse_number),
        "processes": {n: v for n, v in processes.items() if v is not None} if most else None,
        "time_limit_s": _TIME_LIMIT_S,
    }
    for name in ("profile", "message", "calculation"):
        if not reader.text(name):
            reader.mistakes[name] = "expected one"
    if reader.mistakes:
        return None, reader.mistakes
    given = {name: value for name, value in document.items() if value is not None}
    try:
        return parse_json(HideIn, dump_json(given)), {}
    except SluiceError as refusal:
        return None, _mistakes(refusal, _HIDE_PLACES)


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise InvalidInput("expected a whole number")
    return int(text)


def _stage_names(text: str) -> list[int | str]:
    """Stages as requests have them: digits are a place from 0."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    return [int(one) if one.isascii() and one.isdigit() and len(one) < 4 else one for one in parts]


def _hide_pictures(found: HideOut) -> Iterator[tuple[str, str]]:
    for picture, words in _PICTURES.items():
        try:
            drawn = hide_drawing(found, picture)
        except InvalidInput:  # the answer has nothing of it
            continue
        yield words, _embedded(drawn.encode())


def _hide_command(texts: Mapping[str, str]) -> str:
    words = ["sluice", "hide", texts["profile"].strip()]
    words += ["--bytes", texts["message"].replace(" ", ""), "--calculation", texts["calculation"]]
    for name, option in _HIDE_OPTIONS:
        if texts.get(name) and (name != "communication" or texts["processes"]):
            words += [option, texts[name].strip()]
    for side in ("sender", "receiver"):
        for stage in _stage_names(texts[side]):
            words += [f"--{side}-stage", str(stage)]
    words += [f"--{name.replace('_', '-')}" for name in _HIDE_MARKS if texts[name]]
    return shlex.join(words)
