"""Stored answers side by side: their cuts as bars, and a table of what differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from app.text.numbers import format_cost, format_count, format_excess, format_gap, format_percent
from app.text.units import format_given_time
from app.web.views.answer_timeline import cells_of
from app.web.views.answer_words import latency_and_bound, latency_unit, limits_words, proof_of
from app.web.views.listed import address
from domain.units import format_bytes

PLACE = "/ui/compare"
LETTERS = "ABCDEF"
MOST = len(LETTERS)
WIDTH, HEIGHT = 1000.0, 60.0
MOST_BARS = 200
_NONE = "none"

Document = dict[str, Any]


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
class Row:
    """What the answers say of one thing."""

    name: str
    values: tuple[str, ...]

    @property
    def differs(self) -> bool:
        """Whether they do not all say the same."""
        return len(set(self.values)) > 1


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
    why_no_timeline: str
    cells: int
    timeline_address: str

    @classmethod
    def of(cls, documents: Sequence[Document], *, shows_all: bool) -> CompareView:
        """Of two or more OptimizeOut."""
        rows = [row for row in _rows(documents) if any(row.values)]
        shown = tuple(row for row in rows if shows_all or row.differs)
        part = max(max(one["fragment_bytes"]) / one["message_bytes"] for one in documents)
        ids = [("id", document["id"]) for document in documents]
        why_not = _why_no_timeline(documents)
        return cls(
            sides=tuple(
                _side(place, documents, greatest_part=part) for place in range(len(documents))
            ),
            same=tuple(_same_cuts(documents)),
            rows=shown,
            hidden=sum(1 for row in rows if not row.differs),
            shows_all=shows_all,
            toggle=address(PLACE, (*ids, ("all", "" if shows_all else "1"))),
            highest=_highest(documents, part),
            why_no_timeline=why_not,
            cells=0 if why_not else sum(map(cells_of, documents)),
            timeline_address=address(f"{PLACE}/timeline", ids),
        )


def letters_of(documents: Sequence[Document]) -> Iterator[str]:
    """A letter and the strategy of each, which is what it is called in the picture."""
    for letter, document in zip(LETTERS, documents, strict=False):
        yield f"{letter} {document['strategy'].replace('_', ' ')}"


def _same_cuts(documents: Sequence[Document]) -> Iterator[str]:
    """Which of them cut the message alike, at every stage."""
    groups: dict[tuple[Any, ...], list[str]] = {}
    for letter, document in zip(LETTERS, documents, strict=False):
        cuts = tuple(map(tuple, document["levels"] or [document["fragment_bytes"]]))
        alike = cuts[:1] if len(set(cuts)) == 1 else cuts
        groups.setdefault(alike, []).append(letter)
    for letters in groups.values():
        if len(letters) > 1:
            yield f"{', '.join(letters[:-1])} and {letters[-1]} are the same cut."


def _why_no_timeline(documents: Sequence[Document]) -> str:
    if len({document["message_bytes"] for document in documents}) > 1:
        return "Timelines share one time scale only where the message is the same; here it differs."
    if any(document["pipeline"] is None for document in documents):
        return "Of an aggregate it is not known when a fragment is in which stage."
    return ""


def _side(place: int, documents: Sequence[Document], *, greatest_part: float) -> Side:
    document = documents[place]
    others = [("id", one["id"]) for at, one in enumerate(documents) if at != place]
    cut = document["fragment_bytes"]
    message = format_bytes(document["message_bytes"])
    return Side(
        id=document["id"],
        letter=LETTERS[place],
        name=f"{message}, {document['strategy'].replace('_', ' ')}",
        words=f"{latency_and_bound(document)[0]}, {_counted(len(cut))}",
        bars=tuple(_bars(cut, greatest_part)),
        is_merged=len(cut) > MOST_BARS,
        without=address(PLACE, others) if len(others) > 1 else "",
    )


def _counted(fragments: int) -> str:
    return f"{format_count(fragments)} fragment{'s' if fragments > 1 else ''}"


def _highest(documents: Sequence[Document], part: float) -> str:
    """What the highest bar is: a size where the message is the same, else a part of it."""
    if len({document["message_bytes"] for document in documents}) > 1:
        return f"{format_percent(part)} of its message"
    return format_bytes(max(max(document["fragment_bytes"]) for document in documents))


def _bars(cut: Sequence[int], greatest_part: float) -> Iterator[Bar]:
    """A bar a fragment, as wide as its part of the message; of very many those that touch."""
    scale = WIDTH / sum(cut)
    tallest = greatest_part * sum(cut)
    step = -(-len(cut) // MOST_BARS)
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
    least, most = format_bytes(min(some)), format_bytes(max(some))
    each = least if least == most else f"{least} to {most}"
    return f"fragments {first + 1} to {first + len(some)}: {each}"


# --- the table ------------------------------------------------------------------------------------


def _rows(documents: Sequence[Document]) -> Iterator[Row]:
    first = documents[0]
    yield _row("Message", documents, lambda one: format_bytes(one["message_bytes"]))
    yield _row("Profile", documents, _profile)
    yield _row("Strategy", documents, lambda one: one["strategy"].replace("_", " "))
    yield _row("Latency", documents, lambda one: _latency(one, first))
    yield _row("Proven bound", documents, lambda one: latency_and_bound(one)[1])
    yield _row("Gap to the bound", documents, lambda one: format_gap(one["relative_gap"]))
    yield _row("Proof", documents, lambda one: proof_of(one).word)
    yield _row("Fragments", documents, lambda one: format_count(one["fragments"]))
    yield _row("First fragment", documents, lambda one: format_bytes(one["fragment_bytes"][0]))
    yield _row("Least fragment", documents, lambda one: format_bytes(min(one["fragment_bytes"])))
    yield _row("Greatest fragment", documents, lambda one: format_bytes(max(one["fragment_bytes"])))
    yield _row("Last fragment", documents, lambda one: format_bytes(one["fragment_bytes"][-1]))
    yield _row("Best fixed size", documents, _best_fixed)
    yield _row("Limits", documents, lambda one: ", ".join(limits_words(one)) or _NONE)
    yield _row("Cuts anew between stages", documents, _refragments)
    yield _row("Bottleneck", documents, _bottleneck)
    stages = [_stages(document) for document in documents]
    for number, lines in enumerate(zip_longest(*stages, fillvalue=_NONE), start=1):
        yield Row(f"Stage {number}", lines)
    yield _row("Delay", documents, lambda one: format_given_time(_model(one)["delay_us"]))


def _row(name: str, documents: Sequence[Document], words: Any) -> Row:
    return Row(name, tuple(words(document) for document in documents))


def _profile(document: Document) -> str:
    profile = document["profile"]
    return f"{profile['name']}@{profile['revision']}" if profile else _NONE


def _latency(document: Document, first: Document) -> str:
    words, _ = latency_and_bound(document)
    if document is first:
        return words
    excess = format_excess(document["latency_us"], first["latency_us"])
    return words if excess in ("", "equal") else f"{words} ({excess})"


def _best_fixed(document: Document) -> str:
    best = document["best_fixed"]
    if not best:
        return _NONE
    unit = latency_unit(document)
    return f"{format_bytes(best['size_bytes'])}, {unit.named(best['latency_us'])}"


def _refragments(document: Document) -> str:
    if document["levels"]:
        return "yes"
    return "allowed, of no use" if document["allow_refragmentation"] else "no"


def _bottleneck(document: Document) -> str:
    if document["pipeline"] is None:
        return "not known"
    return str(document["pipeline"]["stages"][document["bottleneck_stage"]]["name"])


def _model(document: Document) -> Document:
    found: Document = document["pipeline"] or document["aggregate"]
    return found


def _stages(document: Document) -> list[str]:
    model = _model(document)
    if document["pipeline"] is None:
        return [f"{name}: {_costs(model[name])}" for name in ("total", "bottleneck")]
    return [f"{stage['name']}: {_costs(stage)}" for stage in model["stages"]]


def _costs(stage: Document) -> str:
    parts = []
    for one in stage.get("ranges") or [stage]:
        end = one.get("up_to_bytes")
        where = f" up to {format_bytes(end)}" if end else ""
        overhead, per_byte = format_cost(one["overhead_us"]), format_cost(one["ns_per_byte"])
        parts.append(f"{overhead} µs + {per_byte} ns/byte{where}")
    return "; ".join(parts)


def drawn(documents: Sequence[Document]) -> str:
    """The timelines one above the other, on one time scale. Raises LimitReached."""
    from app.console.timeline_file import answer_schedules
    from app.plots.timeline_svg import timeline_element

    named = [
        replace(next(answer_schedules(document)), name=name)
        for name, document in zip(letters_of(documents), documents, strict=True)
    ]
    return timeline_element(named, rules="")
