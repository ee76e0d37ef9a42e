"""An answer about items as its page shows it: what to set, its fragments, the curve over caps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from analysis.item_caps import CapCurve
from app.schemas.items import MIB, slots_facts, stored_cut, stored_problem
from app.schemas.uncertainty import uncertainty_facts
from app.text.notices import capitalised
from app.text.numbers import (
    format_count,
    format_counted,
    format_excess,
    format_gap,
    format_percent,
    format_size,
)
from app.text.units import PROVEN_BOUND, TimeUnit, format_time, printable
from app.verbs.optimize.page.surroundings import Chart, about_size
from app.verbs.optimize.page.view import Figure
from app.verbs.optimize.show import (
    Proof,
    format_constraints,
    latency_and_bound,
    latency_unit,
    proof_of,
)
from contract.items import BestCapOut
from contract.optimize import ItemsOptimizeOut
from domain.items import ItemTimes

_FIRST, _LAST = 60, 20  # of the fragments, where there are more
_IN_TIME = "that was found in time"
_RULES = {
    "until": "a fragment ends with the item that reaches the cap",
    "before": "a fragment ends before the item that would exceed the cap",
}


@dataclass(frozen=True, slots=True)
class Copyable:
    """A line to copy, and what it is."""

    key: str
    about: str
    text: str


@dataclass(frozen=True, slots=True)
class SettingRow:
    """A setting with what it takes; `above` is how far it is above the list."""

    name: str
    what: str
    fragments: str
    latency: str
    above: str
    is_chosen: bool = False


@dataclass(frozen=True, slots=True)
class FragmentRow:
    """A fragment: which items, how large, when all of them are ready, and when it has arrived."""

    number: str
    items: str
    size: str
    ready: str
    done: str


@dataclass(frozen=True, slots=True)
class ItemsView:
    """What answer_items.html is given. `left_out` fragments stand between `head` and `tail`."""

    id: str
    title: str
    headline: str
    proof: Proof
    figures: tuple[Figure, ...]
    lines: tuple[Copyable, ...]
    settings: tuple[SettingRow, ...]
    unit: str
    limit: str
    shares: tuple[tuple[str, str], ...]
    slots: tuple[tuple[str, str], ...]
    sure: tuple[tuple[str, str], ...]
    profile: str
    warnings: tuple[str, ...]
    head: tuple[FragmentRow, ...]
    left_out: int
    tail: tuple[FragmentRow, ...]
    limits: tuple[str, ...]
    has_ready: bool

    @classmethod
    def from_answer(cls, answer: ItemsOptimizeOut) -> ItemsView:
        problem, unit = stored_problem(answer), latency_unit(answer)
        times = problem.simulate(stored_cut(answer))
        count = answer.fragments
        shown = range(count) if count <= _FIRST + _LAST else range(_FIRST)
        ends = range(max(len(shown), count - _LAST), count) if len(shown) < count else range(0)
        return cls(
            id=answer.id,
            title=_title(answer),
            headline=answer.set_items.sentence,
            proof=proof_of(answer),
            figures=tuple(_figures(answer)),
            lines=tuple(_lines(answer)),
            settings=tuple(_settings(answer, unit)),
            unit=unit.name,
            limit=answer.limit.sentence,
            shares=tuple(_shares(answer)),
            slots=tuple(slots_facts(answer.set_items.slots, answer.pipeline)),
            sure=tuple(uncertainty_facts(answer.uncertainty)) if answer.uncertainty else (),
            profile=answer.profile.reference if answer.profile else "",
            warnings=tuple(dict.fromkeys(one.detail for one in answer.warnings)),
            head=tuple(_fragments(answer, times, shown)),
            left_out=count - len(shown) - len(ends),
            tail=tuple(_fragments(answer, times, ends)),
            limits=format_constraints(answer),
            has_ready=bool(times.ready_us[-1]),
        )


def _title(answer: ItemsOptimizeOut) -> str:
    items = format_counted(len(answer.items.bytes), "item")
    stages = format_counted(len(answer.pipeline.stages) if answer.pipeline else 0, "stage")
    return f"{items}, {about_size(answer.message_bytes)}, through {stages}"


def _figures(answer: ItemsOptimizeOut) -> Iterator[Figure]:
    latency, bound = latency_and_bound(answer)
    best, advised = answer.best_cap, _advised(answer)
    is_cap = best is not None and advised is not None and _gives(best, advised)
    if best is not None and is_cap:
        yield Figure("Latency", latency_unit(answer).named(best.latency_us), "of the best cap")
    else:
        yield Figure("Latency", latency, "of the list")
    yield Figure(capitalised(PROVEN_BOUND), bound, "no cut between these items takes less")
    yield Figure(
        "Gap to the bound", format_gap(answer.relative_gap), "what is left to gain at most"
    )
    items = format_count(len(answer.items.bytes))
    yield Figure("Fragments", format_count(answer.fragments), f"of {items} items")
    if best is not None:
        of_list = f"{format_percent(best.loss / (1.0 + best.loss))} less"
        other, share = "One cap instead", f"{format_percent(best.loss)} more"
        if is_cap:
            other, share = "The list instead", of_list
        yield Figure(other, share if best.loss else "as fast", "" if best.is_complete else _IN_TIME)


def _lines(answer: ItemsOptimizeOut) -> Iterator[Copyable]:
    found, sizes = answer.set_items, answer.items.bytes
    is_alike = len(sizes) > 1 and len(set(sizes)) == 1
    is_until = answer.fill.rule == "until" and not is_alike
    listed = f"[{', '.join(map(repr, found.caps_mb))}]"
    about = "a cap for each fragment, MiB"
    yield Copyable("list", about, f"bucket_cap_mb_list={listed}" if is_until else listed)
    if found.cap_mb is not None:
        cap = repr(found.cap_mb)
        about = "one cap for all, MiB"
        yield Copyable("cap", about, f"bucket_cap_mb={cap}" if is_until else cap)
    counts = ", ".join(map(str, answer.fragment_items))
    yield Copyable("items", "how many items each fragment holds", f"[{counts}]")


def _settings(answer: ItemsOptimizeOut, unit: TimeUnit) -> Iterator[SettingRow]:
    own, advised = format_count(answer.fragments), _advised(answer)
    latency, is_list = unit.text(answer.latency_us), advised is None
    yield SettingRow("The list", "a cap for each fragment", own, latency, "", is_list)
    best, current = answer.best_cap, answer.current
    if best is not None:
        yield SettingRow(
            "The best cap" if best.is_complete else f"The best cap {_IN_TIME}",
            f"{cap_range(best.from_bytes, best.to_bytes)} bytes",
            format_count(best.fragments),
            unit.text(best.latency_us),
            format_excess(best.latency_us, answer.latency_us),
            advised is not None and _gives(best, advised),
        )
    if current is not None:
        yield SettingRow(
            "Your cap",
            format_size(current.cap_bytes),
            format_count(current.fragments),
            unit.text(current.latency_us),
            format_excess(current.latency_us, answer.latency_us),
            advised == current.cap_bytes,
        )


def _advised(answer: ItemsOptimizeOut) -> int | None:
    """The cap that the first sentence says to set, bytes; None: a cap for each fragment."""
    if answer.uncertainty is not None:
        return answer.uncertainty.advised_bytes
    if has_buffers(answer) and answer.best_cap is not None:
        return answer.best_cap.from_bytes  # so many buffers of one size
    return None


def has_buffers(answer: ItemsOptimizeOut) -> bool:
    """Whether the sentence on what to set is of buffers of one size: memory holds so many."""
    return answer.fill.rule == "before" and bool(answer.set_items.slots)


def _gives(best: BestCapOut, cap_bytes: int) -> bool:
    """Whether this cap gives the layout of the best one."""
    return best.from_bytes <= cap_bytes and (best.to_bytes is None or cap_bytes <= best.to_bytes)


def cap_range(from_bytes: int, to_bytes: int | None) -> str:
    """Return caps that give one layout."""
    if to_bytes is None:
        return f"{format_count(from_bytes)} and more"
    if from_bytes == to_bytes:
        return format_count(from_bytes)
    return f"{format_count(from_bytes)} to {format_count(to_bytes)}"


def _shares(answer: ItemsOptimizeOut) -> Iterator[tuple[str, str]]:
    """Where the time of the list goes, along a longest path of steps that wait for each other."""
    limit, whole_us = answer.limit, answer.latency_us
    delay_us = answer.pipeline.delay_us if answer.pipeline else 0.0
    for name, us in (
        ("calculation before the first step", limit.calculation_us),
        ("bytes and items in stages", limit.bytes_us),
        ("overheads of fragments", limit.overheads_us),
        ("until places of windows are free", limit.return_us),
        ("constant delay", delay_us),
    ):
        if us > 0.0:
            yield name, f"{format_time(us)}, {format_percent(us / whole_us)}"


def _fragments(answer: ItemsOptimizeOut, times: ItemTimes, shown: range) -> Iterator[FragmentRow]:
    spans = list(pairwise((0, *times.cut)))
    for fragment in shown:
        first, last = spans[fragment]
        yield FragmentRow(
            format_count(fragment + 1),
            _named(answer, first, last),
            about_size(answer.fragment_bytes[fragment]),
            format_time(times.ready_us[fragment]),
            format_time(times.in_stages.exit_us[fragment][-1]),
        )


def _named(answer: ItemsOptimizeOut, first: int, last: int) -> str:
    """Items first+1 to last, with the names of both ends."""
    names = answer.items.names
    if last == first + 1:
        return f"{last}{f': {printable(names[first])}' if names else ''}"
    ends = f": {printable(names[first])} … {printable(names[last - 1])}" if names else ""
    return f"{format_count(first + 1)} to {format_count(last)}{ends}"


# --- latency against the cap ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CapsData:
    """Latencies by cap, µs; null where the limits admit no such layout. Each holds from its cap to
    the next one's. `list_us` is the list's; `marks` are (name, label, bytes, µs).
    """

    kind: Literal["caps"] = "caps"
    unit: str
    us: float
    caps: list[int]
    latency_us: list[float | None]
    first_bytes: int
    last_bytes: int
    list_us: float
    list_text: str
    marks: list[tuple[str, str, int, float]]


def caps_chart(answer: ItemsOptimizeOut, curve: CapCurve) -> Chart[CapsData]:
    """Return the curve of caps beside the list, the best cap and the one in use."""
    unit, steps = latency_unit(answer), (*curve.steps, *curve.tried)
    marks = list(_marks(answer))
    places = [place for _, _, place, _ in marks]
    data = CapsData(
        unit=unit.name,
        us=unit.us,
        caps=[one.from_bytes for one in steps],
        latency_us=[one.latency_us for one in steps],
        first_bytes=min([steps[0].to_bytes or steps[0].from_bytes, *places]),
        last_bytes=max([round(1.25 * steps[-1].from_bytes), *places]),
        list_us=answer.latency_us,
        list_text=unit.named(answer.latency_us),
        marks=marks,
    )
    if len(steps) < 2:
        only = "Every cap gives the same fragments, so there is nothing to draw."
        return Chart(data, (), (), (), only)
    headings = ("Cap, bytes", "Fragments", f"Latency, {unit.name}", "Above the list")
    rows = [
        (
            cap_range(one.from_bytes, one.to_bytes),
            format_count(one.fragments) if one.fragments else "not admitted",
            "" if one.latency_us is None else unit.text(one.latency_us),
            "" if one.latency_us is None else format_excess(one.latency_us, answer.latency_us),
        )
        for one in steps
    ]
    own = ("the list", format_count(answer.fragments), unit.text(answer.latency_us), "")
    found = [(row.name, row.fragments, row.latency, row.above) for row in _settings(answer, unit)]
    rows = [own, *found[1:], *rows]
    return Chart(data, headings, tuple(rows), tuple(_remarks(answer, curve)))


def _marks(answer: ItemsOptimizeOut) -> Iterator[tuple[str, str, int, float]]:
    best, current = answer.best_cap, answer.current
    if best is not None:
        cap_bytes = int((answer.set_items.cap_mb or 0.0) * MIB) or best.from_bytes
        yield "best cap", f"best cap, {about_size(cap_bytes)}", cap_bytes, best.latency_us
    if current is not None:
        size = about_size(current.cap_bytes)
        yield "your cap", f"yours, {size}", current.cap_bytes, current.latency_us


def _remarks(answer: ItemsOptimizeOut, curve: CapCurve) -> Iterator[str]:
    count = format_count(curve.layouts)
    if not curve.is_complete:
        tried = format_counted(len(curve.tried), "cap")
        yield (
            f"Time ended the walk over all caps at {about_size(curve.walked_bytes)}: of greater "
            f"ones {tried} were tried, and a better one may lie between them."
        )
    yield f"By this rule {_RULES[answer.fill.rule]}; each step is another cut, {count} of them."
    if curve.is_thinned:
        yield "Where many stand in one place, the fastest and the slowest of them are drawn."
    if any(one.latency_us is None for one in curve.steps):
        yield "Where there is no line, the limits do not admit the cut."
