"""What an answer of a machine has in flight, in sentences: the count beside a size, what sets the
pace, and what to beware of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from app.text.numbers import (
    format_count,
    format_counted,
    format_figure,
    format_size,
)
from app.text.units import format_time
from domain.in_flight import InFlight, Limit, LimitKind, StageLanes, WindowPlaces
from domain.machine import Machine
from domain.solution import Notice
from domain.uncertain_answer import Thresholds

_MARGIN = Thresholds().margin
_DECIMAL = ((12, "TB"), (9, "GB"), (6, "MB"), (3, "kB"))


def format_in_budget(size_bytes: int, budget_bytes: int) -> str:
    """Return a size in units of the budget that it is a part of: those of 1000 where the budget is
    whole in them alone.
    """
    power = next((one for one in _DECIMAL if budget_bytes % 10 ** one[0] == 0), None)
    if power is None or budget_bytes % 2 ** (power[0] // 3 * 10) == 0:
        return format_size(size_bytes, with_bytes=False)
    power = next((one for one in _DECIMAL if size_bytes >= 10 ** one[0]), _DECIMAL[-1])
    return f"{format_figure(size_bytes / 10 ** power[0], 4).rstrip('0').rstrip('.')} {power[1]}"


def format_whole(size_bytes: int, written: Callable[[int], str] = format_size) -> str:
    """Return a size in units of 1000 where it is whole in them alone, as a memory or a message of
    2 GB, else as it is `written`.
    """
    if size_bytes % 2**20 == 0 or size_bytes % 10**6:
        return written(size_bytes)
    power, unit = next(one for one in _DECIMAL if size_bytes % 10 ** one[0] == 0)
    return f"{size_bytes // 10**power} {unit}"


# --- the count beside a size ----------------------------------------------------------------------


def at_once_words(machine: Machine, size_bytes: int, message_bytes: int) -> str:
    """Return on how many lanes, or how many at a time, a size is to be repeated: as many as are
    enough for it, of the first stage with lanes, else of the first window. "" without either, and
    for a whole message.
    """
    if size_bytes >= message_bytes:
        return ""
    from analysis.enough import enough_of_first

    count = enough_of_first(machine, message_bytes, size_bytes)
    if count is None:
        return ""
    for stage, rules in zip(machine.stages, machine.rules, strict=True):
        if rules.lanes > 1:
            return f" on {format_counted(count, 'lane')} of {stage.name}"
    budget = machine.windows[0].bytes
    if budget is None:
        return f", {format_count(count)} at a time"
    each, all_of = (format_in_budget(one, budget) for one in (size_bytes, budget))
    return f", {format_counted(count, 'buffer')} of {each} in your {all_of}"


# --- what sets the pace ---------------------------------------------------------------------------


def limit_sentence(machine: Machine, found: InFlight) -> str:
    """Return what sets the pace, and what the full rate takes where lanes or places do."""
    limit = found.limit
    fragment = f"a fragment of {format_size(found.size_bytes, with_bytes=False)}"
    trip, period = format_time(limit.round_trip_us), format_time(limit.period_us)
    first, last = (machine.stages[one].name for one in (limit.first, limit.last))
    if limit.kind is LimitKind.STAGE:
        return f"{first} sets the pace: {fragment} takes it {trip}."
    if limit.kind is LimitKind.SHARED_PART:
        return f"What the lanes of {first} share sets the pace: {fragment} takes {trip} of it."
    if limit.kind is LimitKind.LANES:
        said = f"The {limit.places} lanes of {first} set the pace: {fragment} takes {trip} on one"
        return f"{said}, so that one ends every {period}.{_full_rate(limit, 'lanes')}"
    if limit.kind is LimitKind.WINDOW:
        places = format_counted(limit.places, "place")
        said = f"The window {_ends(machine, limit.first, limit.last)} sets the pace: its {places}"
        lets = "lets" if limit.places == 1 else "let"
        back = f"free again after {trip}, {lets} {fragment} pass every {period}"
        return f"{said}, {back}.{_full_rate(limit, 'places')}"
    if limit.places == 1:
        return f"{limit.processor} sets the pace: {first} and {last} take {trip} of it together."
    lag = format_counted(limit.places - 1, "fragment")
    said = f"{limit.processor} sets the pace: with {first} {lag} ahead of {last}"
    return f"{said}, {fragment} passes every {period}."


def _full_rate(limit: Limit, noun: str) -> str:
    full = limit.full_rate
    if full is None:
        return ""
    under_way = format_size(full.bytes, with_bytes=False)
    every = format_time(full.period_us)
    return f" The full rate, one every {every}, takes {full.places} {noun}: {under_way} under way."


def _ends(machine: Machine, first: int, last: int) -> str:
    if first == last:
        return f"over {machine.stages[first].name}"
    return f"from {machine.stages[first].name} to {machine.stages[last].name}"


# --- what to beware of ----------------------------------------------------------------------------


def in_flight_notices(machine: Machine, found: InFlight, latency_us: float) -> Iterator[Notice]:
    """Yield what limits an answer, what idles in it, and where the model is known to be off."""
    limit = found.limit
    if limit.kind is LimitKind.WINDOW:
        yield _window_limits(machine, limit)
    for lanes in found.stages:
        yield from _of_lanes(machine, found, lanes, latency_us)
    if limit.kind is LimitKind.PROCESSOR:
        yield _processor_bound(machine, found, latency_us)
    for window in found.windows:
        if window.never_binds:
            yield _never_binds(machine, window)
    if found.delays_alone:
        yield Notice(
            "delays_change_no_cut",
            "no window and no processor is over the delays: they add what they are to every cut, "
            "and change none",
            values=(("delay_us", sum(rules.delay_us for rules in machine.rules)),),
        )


def _window_limits(machine: Machine, limit: Limit) -> Notice:
    trip, full = format_time(limit.round_trip_us), limit.full_rate
    values = [
        ("window", float(limit.window or 0)),
        ("round_trip_us", limit.round_trip_us),
        ("places", float(limit.places)),
        ("period_us", limit.period_us),
    ]
    raised = ""
    if full is not None:
        values += [("full_rate_places", float(full.places)), ("full_rate_bytes", float(full.bytes))]
        under_way = format_size(full.bytes, with_bytes=False)
        raised = f"; {format_count(full.places)}, {under_way}, would let the full rate through"
    return Notice(
        "window_limits",
        f"the window {_ends(machine, limit.first, limit.last)} sets the pace: its "
        f"{format_counted(limit.places, 'place')} come back after {trip}{raised}",
        values=tuple(values),
    )


def _of_lanes(
    machine: Machine, in_flight: InFlight, found: StageLanes, latency_us: float
) -> Iterator[Notice]:
    limit = in_flight.limit
    name, lanes = machine.stages[found.stage].name, found.lanes
    said = []
    values: dict[str, float] = {"lanes": float(lanes.given)}
    if lanes.used is not None and lanes.used < lanes.given:
        said.append(f"{lanes.used} of {lanes.given} lanes are in use at once at most")
        values["used"] = float(lanes.used)
    if lanes.enough is not None and lanes.enough < lanes.given:
        said.append(f"{lanes.enough} of {lanes.given} lanes are enough with their best size")
        values["enough"] = float(lanes.enough)
    is_limit = limit.kind is LimitKind.LANES and limit.first == found.stage
    if is_limit and found.uneven_us > _MARGIN * latency_us:
        last = format_counted(found.last_round, "fragment")
        costs = f"up to {format_time(found.uneven_us)} of {format_time(latency_us)}"
        said.append(f"the last round over the lanes has {last}, and what idles in it costs {costs}")
        values |= {"last_round": float(found.last_round), "uneven_us": found.uneven_us}
    if said:
        yield Notice.of_stage(name, "lanes_idle", "; ".join(said), **values)
    if found.is_near_knee:
        each = lanes.given / found.alone_us, 1.0 / found.shared_us
        together, shared = (format_figure(one * in_flight.size_bytes) for one in each)
        yield Notice.of_stage(
            name,
            "near_the_knee",
            f"its {lanes.given} lanes could do {together} MB/s together, and share {shared} MB/s: "
            "so near to that, movers were 18 to 26 % slower than is said here",
            ratio=found.rate_ratio,
        )


def _processor_bound(machine: Machine, found: InFlight, latency_us: float) -> Notice:
    limit = found.limit
    first, last = (machine.stages[one].name for one in (limit.first, limit.last))
    work, whole = format_time(found.work_us), format_time(latency_us)
    return Notice(
        "processor_bound",
        f"{limit.processor} is at work for {work} of {whole}: no cut hides what it does for both "
        f"{first} and {last}",
        values=(("work_us", found.work_us), ("share", found.work_us / latency_us)),
    )


def _never_binds(machine: Machine, found: WindowPlaces) -> Notice:
    window = machine.windows[found.window]
    places = format_counted(found.places.given, "place")
    return Notice(
        "window_never_binds",
        f"the window {_ends(machine, window.first, window.last)} of {places} changes nothing for "
        "fragments of one size: its stages handle no more at once",
        values=(("window", float(found.window)), ("places", float(found.places.given))),
    )
