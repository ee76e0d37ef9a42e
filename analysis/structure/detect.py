"""Begins of stages to what of them overlaps: what is never begun before an end, and begun right
after it, is a rule.

Source    docs/theory.md, "What overlaps", has the tests and their thresholds.
Notation  m messages, f fragments (padded by NaN), j stages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from analysis.replay import Rules, Window
from analysis.structure.events import (
    EARLY_US,
    MAX_MESSAGES,
    MIN_FRAGMENTS,
    MIN_MESSAGES,
    Events,
    TracedMessage,
    events_of,
    finite,
)
from analysis.structure.found import NEVER, Found
from analysis.structure.late import by_late_begins
from analysis.structure.places import place_flags
from analysis.structure.replayed import held_to_replay
from analysis.structure.sharing import computing_of, shared_processors
from domain.structure import (
    Evidence,
    PlaceFlag,
    SharedProcessors,
    Structure,
    StructureKind,
    TracedWindow,
)

SERIAL = 0.05  # of the time with any at work, in which two stages are, below which none overlaps

_RETURN_TRIP, _RETURN_HANDS, _RETURN_US = 0.05, 4.0, 3.0  # a stop and wait's gap is above these

_LEVEL = 0.01  # of a stage's busy time, at which so many fragments at once count
_MAX_STAGES = 8

_MAY_SHARE = (
    "stages overlap, and without processor times (_busy_ns) of most events those that share a "
    "processor do too"
)


def structure_of(messages: Sequence[TracedMessage], stages: tuple[str, ...]) -> Structure:
    """Return what of these stages overlaps, by messages of them; a sweep where none is found.

    Messages of less than MIN_FRAGMENTS fragments are left out. Times must be finite, ends not
    before begins.
    """
    usable = [one for one in messages if len(one.begin_us) >= MIN_FRAGMENTS]
    why = _too_little(usable, stages)
    if why:
        return _sweep(stages, usable, why)
    events = events_of(_spread(usable))
    hand_us = _handing_over(events)
    overlap = _overlap(events)
    found, replay_error = _first_that_holds(events, hand_us, overlap)
    if found.kind is StructureKind.CHAIN and computing_of(events).may_share:
        found = replace(found, kind=StructureKind.SWEEP, reason=_MAY_SHARE)
    return _named(events, stages, found, place_flags(events), overlap, replay_error)


def _too_little(usable: Sequence[TracedMessage], stages: tuple[str, ...]) -> str:
    if len(stages) < 2:
        return "one stage overlaps with nothing"
    if len(stages) > _MAX_STAGES:
        return f"more than {_MAX_STAGES} stages"
    if len(usable) < MIN_MESSAGES:
        return (
            f"{len(usable)} of its messages are whole and have {MIN_FRAGMENTS} fragments or more, "
            f"{MIN_MESSAGES} are needed"
        )
    return ""


def _sweep(stages: tuple[str, ...], usable: Sequence[TracedMessage], why: str) -> Structure:
    evidence = Evidence(len(usable), sum(len(one.begin_us) for one in usable), 0.0, 0.0, 0.0, 0.0)
    return Structure(StructureKind.SWEEP, stages, evidence, reason=why)


def _spread(messages: Sequence[TracedMessage]) -> list[TracedMessage]:
    places = np.linspace(0, len(messages) - 1, min(MAX_MESSAGES, len(messages)))
    return [messages[place] for place in places.round().astype(int).tolist()]


def _overlap(events: Events) -> float:
    """The time in which two fragments are at work over that in which any is."""
    level = events.at_work.sum(axis=0)
    any_us = float(events.cell_us[level >= 1].sum())
    return min(float(events.cell_us[level >= 2].sum()) / max(any_us, 1e-9), 1.0)


def _handing_over(events: Events) -> list[float]:
    """From the last end anywhere to a message's first begin in a stage: the median."""
    found = [0.0]
    ends = np.sort(events.end_us.reshape(len(events.fragments), -1), axis=1)
    for j in range(1, events.stages):
        first = events.begin_us[:, 0, j]
        before = np.where(ends <= first[:, None], ends, -np.inf).max(axis=1)
        before = np.where(np.isfinite(before), before, events.end_us[:, 0, j - 1])
        found.append(max(float(np.median(first - before)), 0.0))
    return found


def _first_that_holds(events: Events, hand_us: list[float], overlap: float) -> tuple[Found, float]:
    """The first structure whose replay holds, with the replay's error; else a sweep."""
    failed = list[tuple[Found, float]]()
    for found in _candidates(events, hand_us, overlap):
        if found.kind is StructureKind.SWEEP:
            failed.append((found, 0.0))
            continue
        held, error = held_to_replay(events, found)
        if held.kind is not StructureKind.SWEEP:
            return held, error
        failed.append((held, error))
    return failed[-1]


def _candidates(events: Events, hand_us: list[float], overlap: float) -> Iterator[Found]:
    """Yield what begins keep to, the strictest first."""
    lanes = tuple(_lanes_of(events, j) for j in range(events.stages))
    plain = Rules(lanes, hand_us=tuple(hand_us))
    if overlap < SERIAL:
        one_way = _one_at_a_time(events, plain, max(hand_us))
        if one_way is not None:
            yield one_way
            return
    after_all = events.begin_us[:, 0, 1:] - np.nanmax(events.end_us, axis=1)[:, :-1]
    if float(np.mean(after_all < -EARLY_US)) <= NEVER:
        hands = (0.0, *np.maximum(np.median(after_all, axis=0), 0.0).tolist())
        yield Found(StructureKind.BARRIER, replace(plain, is_barrier=True, hand_us=hands))
        return
    shared = shared_processors(events, computing_of(events)) if overlap >= SERIAL else None
    if shared is not None:
        stages, processors, is_proved = shared
        kind = StructureKind.SHARED_PROCESSORS if is_proved else StructureKind.SLOW_EACH_OTHER
        yield Found(kind, replace(plain, shares=((stages, processors),)))
    yield by_late_begins(events, plain, hand_us)
    if overlap < SERIAL:
        yield Found(StructureKind.TURNS, replace(plain, turns=(tuple(range(events.stages)),)))


def _one_at_a_time(events: Events, plain: Rules, hand_us: float) -> Found | None:
    """A fragment begins after the one before has left the last stage; None where it does not."""
    last = events.stages - 1
    gap = finite(events.begin_us[:, 1:, 0] - events.end_us[:, :-1, last])
    if float(np.mean(gap < -EARLY_US)) > NEVER:
        return None
    waits_us = float(np.median(gap))
    trip_us = float(np.median(finite(events.end_us[:, :, last] - events.begin_us[:, :, 0])))
    # Of a serial mover the gap is what it does between two fragments.
    rules = replace(plain, windows=(Window(0, last, 1, max(waits_us, 0.0)),))
    if waits_us > max(_RETURN_HANDS * hand_us, _RETURN_TRIP * trip_us, _RETURN_US):
        return Found(StructureKind.STOP_AND_WAIT, rules, return_us=waits_us)
    return Found(StructureKind.SERIAL, rules, return_us=max(waits_us, 0.0))


def _lanes_of(events: Events, stage: int) -> int:
    """How many fragments at once a stage reaches: in each message the most, of those the median."""
    level = events.at_work[stage]
    busy_us = np.where(level > 0, events.cell_us, 0.0).sum(axis=1)
    reached = np.ones(len(busy_us), dtype=np.int64)
    for count in range(2, int(level.max()) + 1):
        at_us = np.where(level == count, events.cell_us, 0.0).sum(axis=1)
        reached[at_us > _LEVEL * busy_us] = count
    return int(np.quantile(reached, 0.5))


def _named(
    events: Events,
    stages: tuple[str, ...],
    found: Found,
    places: tuple[PlaceFlag, ...],
    overlap: float,
    replay_error: float,
) -> Structure:
    rules = found.rules
    evidence = Evidence(
        len(events.fragments),
        int(events.fragments.sum()),
        overlap,
        found.late,
        found.left,
        replay_error,
    )
    is_serial = found.kind in (StructureKind.SERIAL, StructureKind.STOP_AND_WAIT)
    windows = () if is_serial else rules.windows
    shared = None
    if rules.shares:
        of, processors = rules.shares[0]
        shared = SharedProcessors(tuple(stages[one] for one in of), processors)
    return Structure(
        found.kind,
        stages,
        evidence,
        lanes=rules.lanes,
        windows=tuple(
            TracedWindow(stages[first], stages[last], count, return_us)
            for first, last, count, return_us in windows
        ),
        turns=tuple(tuple(stages[one] for one in pair) for pair in rules.turns),
        shared=shared,
        return_us=found.return_us,
        places=tuple(replace(one, stage=stages[int(one.stage)]) for one in places),
        handing_over_us=_own_gaps(events, rules.lanes),
        queue_us=_queues(events),
        has_busy_time=bool(np.isfinite(events.busy_us).any()),
        reason=found.reason,
    )


def _own_gaps(events: Events, lanes: tuple[int, ...]) -> tuple[float, ...]:
    """What a stage does between two fragments where the next one was there: the median."""
    found = []
    for stage, count in enumerate(lanes):
        free = events.end_us[:, :-1, stage]
        there = events.end_us[:, 1:, stage - 1] if stage else np.full_like(free, -np.inf)
        gap = finite((events.begin_us[:, 1:, stage] - free)[free >= there])
        is_known = count == 1 and len(gap) >= MIN_MESSAGES
        found.append(max(float(np.median(gap)), 0.0) if is_known else 0.0)
    return tuple(found)


def _queues(events: Events) -> tuple[float, ...]:
    """How long a fragment waits for a stage that was at work when it came: the median."""
    found = [0.0]
    for stage in range(1, events.stages):
        came = events.end_us[:, 1:, stage - 1]
        free = events.end_us[:, :-1, stage]
        waits = finite((events.begin_us[:, 1:, stage] - came)[free > came])
        found.append(max(float(np.median(waits)), 0.0) if len(waits) else 0.0)
    return tuple(found)
