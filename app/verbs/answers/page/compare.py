"""Stored answers side by side: their cuts as bars, and a table of what differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from types import MappingProxyType
from typing import Any, TypeAlias

from fastapi import Request, Response

from app.http.dependencies import client_of, own_router, service_of
from app.operations.fits import Draw
from app.questions.answers import get_answer
from app.schemas.answers import read_answer
from app.text.numbers import (
    format_count,
    format_excess,
    format_excess_span,
    format_gap,
    format_percent,
)
from app.text.units import format_given_time
from app.ui.addresses import address
from app.ui.pages import is_htmx, page, says_refusals
from app.verbs.answers.page.arrivals import arrivals_chart
from app.verbs.optimize.page.change import (
    NONE,
    PLACE,
    Row,
    bottleneck_words,
    profile_words,
    row_of,
    stage_words,
)
from app.verbs.optimize.page.timelines import AT_ONCE_CELLS, IN_THREAD_CELLS
from app.verbs.optimize.show import format_constraints, latency_and_bound, latency_unit, proof_of
from contract.optimize import OptimizeOut
from domain.errors import InvalidInput
from domain.units import format_bytes
from models.session import Store

LETTERS = "ABCDEF"
MAX = len(LETTERS)
WIDTH, HEIGHT = 1000.0, 60.0
MAX_BARS = 200
Names: TypeAlias = Mapping[str, str]  # what answers are called, by identifier
NAMELESS: Names = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Bar:
    """A fragment, or neighbours that are drawn as one: place in the message, and size."""

    x: float
    y: float
    width: float
    height: float
    title: str


@dataclass(frozen=True, slots=True)
class Side:
    """One of the answers."""

    id: str
    letter: str
    name: str
    words: str
    bars: tuple[Bar, ...]
    is_merged: bool
    without: str


@dataclass(frozen=True, slots=True)
class CompareView:
    """What templates/compare.html is given. `rows` are those that are to be shown."""

    sides: tuple[Side, ...]
    same: tuple[str, ...]
    rows: tuple[Row, ...]
    hidden: int
    shows_all: bool
    toggle: str
    highest: str
    is_cut_off: bool
    why_no_timeline: str
    cells: int
    timeline_address: str

    @classmethod
    def from_answers(
        cls, answers: Sequence[OptimizeOut], *, shows_all: bool, names: Names = NAMELESS
    ) -> CompareView:
        rows = [row for row in _rows(answers) if any(row.values)]
        shown = tuple(row for row in rows if shows_all or row.differs)
        part = max(max(one.fragment_bytes) / one.message_bytes for one in answers)
        ids = [("id", answer.id) for answer in answers]
        why_not = _why_no_timeline(answers)
        return cls(
            sides=tuple(
                _side(place, answers, names, max_part=part) for place in range(len(answers))
            ),
            same=tuple(_same_cuts(answers)),
            rows=shown,
            hidden=sum(1 for row in rows if not row.differs),
            shows_all=shows_all,
            toggle=address(PLACE, (*ids, ("all", "" if shows_all else "1"))),
            highest=_highest(answers, part),
            is_cut_off=any(map(_is_cut_off, answers)),
            why_no_timeline=why_not,
            cells=0 if why_not else sum(answer.cells for answer in answers),
            timeline_address=address(f"{PLACE}/timeline", ids),
        )


def letters_of(answers: Sequence[OptimizeOut], names: Names = NAMELESS) -> Iterator[str]:
    """Return a letter and the name or strategy of each, its name in the picture."""
    for letter, answer in zip(LETTERS, answers, strict=False):
        name = names.get(answer.id) or answer.strategy.replace("_", " ")
        yield f"{letter} {name}{_ended(answer)}"


def _same_cuts(answers: Sequence[OptimizeOut]) -> Iterator[str]:
    """Return which of them cut the message alike, at every stage."""
    groups: dict[tuple[Any, ...], list[str]] = {}
    for letter, answer in zip(LETTERS, answers, strict=False):
        cuts = answer.levels or (answer.fragment_bytes,)
        alike = cuts[:1] if len(set(cuts)) == 1 else cuts
        groups.setdefault(alike, []).append(letter)
    for letters in groups.values():
        if len(letters) > 1:
            yield f"{', '.join(letters[:-1])} and {letters[-1]} are the same cut."


def _why_no_timeline(answers: Sequence[OptimizeOut]) -> str:
    if len({answer.message_bytes for answer in answers}) > 1:
        return "Timelines share one time scale only where the message is the same; here it differs."
    if any(answer.pipeline is None for answer in answers):
        return "Of an aggregate it is not known when a fragment is in which stage."
    return ""


def _side(place: int, answers: Sequence[OptimizeOut], names: Names, *, max_part: float) -> Side:
    answer = answers[place]
    others = [("id", one.id) for at, one in enumerate(answers) if at != place]
    cut = answer.fragment_bytes
    asked = f"{format_bytes(answer.message_bytes)}, {answer.strategy.replace('_', ' ')}"
    name = names.get(answer.id)
    latency, fragments = latency_and_bound(answer)[0], _counted(len(cut))
    return Side(
        id=answer.id,
        letter=LETTERS[place],
        name=f"{name or asked}{_ended(answer)}",
        words=", ".join([*([asked] if name else []), latency, fragments]),
        bars=tuple(_bars(cut, max_part)),
        is_merged=len(cut) > MAX_BARS,
        without=address(PLACE, others) if len(others) > 1 else "",
    )


def _ended(answer: OptimizeOut) -> str:
    """The mark of an answer whose search time ended."""
    return " (cut off)" if _is_cut_off(answer) else ""


def _is_cut_off(answer: OptimizeOut) -> bool:
    return answer.status == "time_limit"


def _counted(fragments: int) -> str:
    return f"{format_count(fragments)} fragment{'s' if fragments > 1 else ''}"


def _highest(answers: Sequence[OptimizeOut], part: float) -> str:
    """Return what the highest bar is: a size where the message is the same, else a part of it."""
    if len({answer.message_bytes for answer in answers}) > 1:
        return f"{format_percent(part)} of its message"
    return format_bytes(max(max(answer.fragment_bytes) for answer in answers))


def _bars(cut: Sequence[int], max_part: float) -> Iterator[Bar]:
    """Yield a bar a fragment, as wide as its part of the message; of very many those that touch."""
    scale = WIDTH / sum(cut)
    tallest = max_part * sum(cut)
    step = -(-len(cut) // MAX_BARS)
    begun = 0
    for first in range(0, len(cut), step):
        some = cut[first : first + step]
        height = max(HEIGHT * max(some) / tallest, 0.5)
        width = max(sum(some) * scale - (1.0 if step == 1 else 0.0), 0.4)
        yield Bar(
            round(begun * scale, 2),
            round(HEIGHT - height, 2),
            round(width, 2),
            round(height, 2),
            _bar_title(first, some),
        )
        begun += sum(some)


def _bar_title(first: int, some: Sequence[int]) -> str:
    if len(some) == 1:
        return f"fragment {first + 1}: {format_bytes(some[0])}"
    smallest, largest = format_bytes(min(some)), format_bytes(max(some))
    each = smallest if smallest == largest else f"{smallest} to {largest}"
    return f"fragments {first + 1} to {first + len(some)}: {each}"


# --- the table ------------------------------------------------------------------------------------


def _rows(answers: Sequence[OptimizeOut]) -> Iterator[Row]:
    first = answers[0]
    yield row_of("Message", answers, lambda one: format_bytes(one.message_bytes))
    yield row_of("Profile", answers, profile_words)
    yield row_of("Strategy", answers, lambda one: one.strategy.replace("_", " "))
    yield row_of("Latency", answers, lambda one: _latency(one, first))
    yield row_of("Proven bound of each model", answers, lambda one: latency_and_bound(one)[1])
    yield row_of("Gap to the bound", answers, lambda one: format_gap(one.relative_gap))
    yield row_of("Proof", answers, lambda one: proof_of(one).word)
    yield row_of("Fragments", answers, lambda one: format_count(one.fragments))
    yield row_of("First fragment", answers, lambda one: format_bytes(one.fragment_bytes[0]))
    yield row_of("Least fragment", answers, lambda one: format_bytes(min(one.fragment_bytes)))
    yield row_of("Greatest fragment", answers, lambda one: format_bytes(max(one.fragment_bytes)))
    yield row_of("Last fragment", answers, lambda one: format_bytes(one.fragment_bytes[-1]))
    yield row_of("Best fixed size", answers, _best_fixed)
    yield row_of("Limits", answers, lambda one: ", ".join(format_constraints(one)) or NONE)
    yield row_of("Cuts anew between stages", answers, _refragments)
    yield row_of("Bottleneck", answers, bottleneck_words)
    stages = [stage_words(answer) for answer in answers]
    for number, lines in enumerate(zip_longest(*stages, fillvalue=NONE), start=1):
        yield Row(f"Stage {number}", lines)
    yield row_of("Delay", answers, lambda one: format_given_time(one.model.delay_us))


def _latency(answer: OptimizeOut, first: OptimizeOut) -> str:
    words, _ = latency_and_bound(answer)
    if answer is first:
        return words
    excess = format_excess(answer.latency_us, first.latency_us)
    if excess and (_is_cut_off(answer) or _is_cut_off(first)):
        excess = format_excess_span(
            _min_us(answer) / first.latency_us - 1.0,
            answer.latency_us / _min_us(first) - 1.0 if _min_us(first) > 0.0 else None,
        )
    return words if excess in ("", "equal") else f"{words} ({excess})"


def _min_us(answer: OptimizeOut) -> float:
    """What more time may find at best: the bound where time ended the search."""
    return answer.lower_bound_us if _is_cut_off(answer) else answer.latency_us


def _best_fixed(answer: OptimizeOut) -> str:
    best = answer.best_fixed
    if not best:
        return NONE
    unit = latency_unit(answer)
    return f"{format_bytes(best.size_bytes)}, {unit.named(best.latency_us)}"


def _refragments(answer: OptimizeOut) -> str:
    if answer.levels:
        return "yes"
    return "allowed, of no use" if answer.allow_refragmentation else "no"


def drawn(answers: Sequence[OptimizeOut], names: Names = NAMELESS) -> str:
    """Return the timelines one above the other, on one time scale. Raises LimitReached."""
    from app.operations.fits import answer_schedules
    from app.plots.timeline_svg import timeline_element

    named = [
        replace(next(answer_schedules(answer)), name=name)
        for name, answer in zip(letters_of(answers, names), answers, strict=True)
    ]
    return timeline_element(named, rules="")


# --- routes: the address has the identifiers of the answers ---------------------------------------


router = own_router(include_in_schema=False)

SECTION = "Answers"


@dataclass(frozen=True, slots=True)
class Timelines:
    """Timelines that a worker draws."""

    bodies: tuple[bytes, ...]
    names: Names

    @property
    def noun(self) -> str:
        return "timelines"

    def draw(self) -> str:
        """Draw. Raises SluiceError."""
        return drawn(_read(self.bodies), self.names)


@router.get(PLACE)
@says_refusals
async def compare(request: Request) -> Response:
    """Show two to six answers: cuts, timelines where they can be compared, and what differs."""
    ids = _ids(request)
    shows_all = bool(request.query_params.get("all"))
    service = service_of(request)
    values = await service.call(lambda: _values(service.context.store, ids, shows_all=shows_all))
    return page(request, "compare.html", section=SECTION, **values)


@router.get(f"{PLACE}/timeline")
@says_refusals
async def timeline(request: Request) -> Response:
    """Show the timelines of answers with many fragments."""
    ids = _ids(request)
    service = service_of(request)
    bodies, names = await service.call(lambda: _stored(service.context.store, ids))
    view = await service.call(lambda: CompareView.from_answers(_read(bodies), shows_all=False))
    if view.why_no_timeline:
        raise InvalidInput(view.why_no_timeline)
    if view.cells <= IN_THREAD_CELLS:
        svg = await service.call(lambda: drawn(_read(bodies), names))
    else:
        svg = await service.run(Draw(Timelines(bodies, names)), client_of(request))
    template = "compare_timeline.html" if is_htmx(request) else "compare_alone.html"
    return page(request, template, section=SECTION, svg=svg)


def _ids(request: Request) -> tuple[str, ...]:
    """Return each identifier once, in order."""
    ids = tuple(dict.fromkeys(request.query_params.getlist("id")))
    if not 2 <= len(ids) <= MAX:
        raise InvalidInput(f"expected two to {MAX} different answers to compare", field="id")
    return ids


def _stored(store: Store, ids: Sequence[str]) -> tuple[tuple[bytes, ...], Names]:
    """Return the answers, and the names of those that have one."""
    found = [get_answer(store, identifier) for identifier in ids]
    return tuple(one.body for one in found), {one.id: one.name for one in found if one.name}


def _read(bodies: Sequence[bytes]) -> list[OptimizeOut]:
    return [read_answer(body) for body in bodies]


def _values(store: Store, ids: Sequence[str], *, shows_all: bool) -> dict[str, Any]:
    bodies, names = _stored(store, ids)
    answers = _read(bodies)
    view = CompareView.from_answers(answers, shows_all=shows_all, names=names)
    is_at_once = not view.why_no_timeline and view.cells <= AT_ONCE_CELLS
    svg = drawn(answers, names) if is_at_once else ""
    arrivals = arrivals_chart(answers, [f"{side.letter} {side.name}" for side in view.sides])
    return {"view": view, "svg": svg, "arrivals": arrivals}
