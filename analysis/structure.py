"""Begins of stages to what of them overlaps: what is never begun before an end, and begun right
after it, is a rule.

Source    docs/theory.md, "What overlaps", has the tests and their thresholds.
Notation  m messages, f fragments (padded by NaN), j stages. A begin is late by what it comes after
          all that a chain waits for, less what handing over takes.
Traps     what does not bind is not seen: a window that never fills is a chain. Durations in flow
          contain what processors share, so that without processor times sharing looks like a chain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from analysis.replay import Rules, Window, replayed_us
from domain.structure import (
    Evidence,
    PlaceFlag,
    SharedProcessors,
    Structure,
    StructureKind,
    TracedWindow,
)
from domain.traced_events import TracedEvents

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

MIN_MESSAGES, MIN_FRAGMENTS = 20, 8
MAX_MESSAGES, MAX_FRAGMENTS = 64, 128  # of longer traces so many are used, evenly apart

SERIAL = 0.05  # of the time with any at work, in which two stages are, below which none overlaps
LATE = 0.10  # a begin is late from this share of its stage's pace on,
_LATE_HANDS, _LATE_STAGE = 1.5, 0.05  # and from so many handings over and this share of its time
CHAIN = 0.06  # late time over elapsed time, up to which the plain chain is accepted
NEVER = 0.02  # a rule may be broken by so many begins
LEFT = 0.34  # a rule explains where it leaves no more of the late time
REPLAY = 0.08  # replayed and measured times of messages may differ by so much, in the median
_REPLAY_TURNS = 0.03  # from which on turns are tried in the place of a chain
_RETURN_TRIP, _RETURN_HANDS, _RETURN_US = 0.05, 4.0, 3.0  # a stop and wait's gap is above these
_COMPUTES = 0.85  # of its best event's time, from which on a stage computes
_KNOWN, _KNOWN_MESSAGES = 0.5, 5  # of a message's events, in so many: what they say, all would
_STANDS = 0.10  # of processor times may be 0
_SHARING = (0.06, 0.40)  # without sharing at least this is unexplained, with it at most this of it
_SLOWING = (0.15, 0.30)  # the same by times of undisturbed events
_FIRST_DEARER, _IN_BURSTS = 1.15, 0.87
_FIRSTS = (*range(1, 9), 12, 16, 24, 32, 48, 64)  # fragments whose times may be others
_LASTS, _LATER = (3, 2, 1), 3
_SHARE_OF_MESSAGES = 0.85
_MOST_MESSAGES, _BY_FAR = 0.6, 2.0  # a bucket that some messages do not empty
_MAX_WINDOW = 16
_MIN_LATE = 10  # late begins, for a window to be sought
_LEVEL = 0.01  # of a stage's busy time, at which so many fragments at once count
_MAX_STAGES = 8
_REPLAYED, _REPLAYED_EVENTS = 32, 8192  # messages, fewer where these have many events
_ALONE = 5  # undisturbed events of a stage and size
_PAUSE = 10.0  # times what a fragment takes, which idle time counts as at most
_EARLY_US = 5e-3  # begins and durations are rounded, each by itself
_MAY_SHARE = (
    "stages overlap, and without processor times (_busy_ns) of most events those that share a "
    "processor do too"
)

Rule: TypeAlias = Window | tuple[int, ...]  # stages that are no window's take turns


@dataclass(frozen=True, slots=True, eq=False)
class TracedMessage:
    """One message: the size of its fragments, and (fragments, stages) of begins, ends and processor
    times in µs, NaN where the last are not known.
    """

    fragment_bytes: int
    begin_us: Floats
    end_us: Floats
    busy_us: Floats


@dataclass(frozen=True, slots=True, eq=False)
class _Events:
    """Messages padded to one length: (m, f, j) times, NaN behind a message's last fragment."""

    fragment_bytes: Ints
    fragments: Ints
    begin_us: Floats
    end_us: Floats
    busy_us: Floats
    sorted_us: Floats  # ends of each stage in their order
    cell_us: Floats  # (m, c): times between events
    at_work: Ints  # (j, m, c): fragments of a stage then
    begin_at: Ints  # in which cell an event begins, (m, f, j)
    end_at: Ints  # before which cell it ends

    @property
    def stages(self) -> int:
        return int(self.begin_us.shape[2])

    @property
    def took_us(self) -> Floats:
        """Each message's time, (m,)."""
        found: Floats = np.nanmax(self.end_us, axis=(1, 2)) - np.nanmin(self.begin_us, axis=(1, 2))
        return found

    @property
    def elapsed_us(self) -> float:
        """Of all messages, with pauses cut: a computer that slept is no evidence of a chain."""
        most_us = _PAUSE * max(
            float(np.nanmedian(self.lasts_us[:, :, stage])) for stage in range(self.stages)
        )
        pace_us = float(np.median(self.took_us / self.fragments))
        idle = self.at_work.sum(axis=0) == 0
        limit_us = max(most_us, _PAUSE * pace_us)
        return float(np.where(idle, np.minimum(self.cell_us, limit_us), self.cell_us).sum())

    @property
    def lasts_us(self) -> Floats:
        found: Floats = self.end_us - self.begin_us
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _Late:
    """How late begins are: of each stage (m, f) in µs, from where on they count, and their sum."""

    late_us: list[Floats]
    from_us: list[float]
    sum_us: list[float]

    @property
    def total_us(self) -> float:
        return sum(self.sum_us)


@dataclass(frozen=True, slots=True)
class _Found:
    """A structure by the places of its stages."""

    kind: StructureKind
    rules: Rules
    return_us: float = 0.0
    late: float = 0.0
    left: float = 0.0
    reason: str = ""


def messages_of(events: TracedEvents) -> list[TracedMessage]:
    """Return the messages of traced events, in order, without those of which something is missing.

    That is an event, or a fragment: numbers go up by the same step, or by the bytes of fragments
    that are numbered by their place. Fragments are in the order in which they began, whatever their
    numbers. O(n log n) for n fragments.
    """
    numbers, fragment, sizes = (
        np.asarray(column, dtype=np.int64)
        for column in (events.message, events.fragment, events.fragment_bytes)
    )
    begin_ns, lasts_ns, busy_ns = (
        np.array([np.asarray(column, dtype=np.int64) for column in columns]).T
        for columns in (events.begin_ns, events.duration_ns, events.busy_ns)
    )
    starts = np.flatnonzero(np.diff(numbers, prepend=-1))
    counts = np.diff(starts, append=len(numbers))
    is_whole = np.minimum.reduceat(begin_ns.min(axis=1), starts) >= 0
    is_whole &= _has_all_numbers(fragment, sizes, starts)
    # From the message's own first event: doubles of a long trace would lose the nanoseconds.
    origin_ns = np.repeat(np.minimum.reduceat(begin_ns.min(axis=1), starts), counts)
    order = np.lexsort((begin_ns[:, 0], numbers))
    begin_us = (begin_ns - origin_ns[:, None])[order] / 1000.0
    end_us = begin_us + lasts_ns[order] / 1000.0
    busy_us = np.where(busy_ns < 0, np.nan, busy_ns / 1000.0)[order]
    largest = np.maximum.reduceat(sizes, starts)
    return [
        TracedMessage(
            size, begin_us[at : at + count], end_us[at : at + count], busy_us[at : at + count]
        )
        for size, at, count in zip(
            largest[is_whole].tolist(),
            starts[is_whole].tolist(),
            counts[is_whole].tolist(),
            strict=True,
        )
    ]


def _has_all_numbers(fragment: Ints, sizes: Ints, starts: Ints) -> Flags:
    """Whether no number is left out in the fragments of each message, (messages,)."""
    step = np.diff(fragment, prepend=fragment[0])
    by_size = step - np.concatenate([sizes[:1], sizes[:-1]])
    first = np.zeros(len(fragment), dtype=np.bool_)
    first[starts] = True
    own = np.repeat(step[np.minimum(starts + 1, len(step) - 1)], np.diff(starts, append=len(step)))
    is_off = ~first & (step != own)
    is_no_place = ~first & (by_size != 0)
    found: Flags = ~np.logical_or.reduceat(is_off, starts) | ~np.logical_or.reduceat(
        is_no_place, starts
    )
    return found


def structure_of(messages: Sequence[TracedMessage], stages: tuple[str, ...]) -> Structure:
    """Return what of these stages overlaps, by messages of them; a sweep where none is found.

    Messages of less than MIN_FRAGMENTS fragments are left out. Times must be finite, ends not
    before begins.
    """
    usable = [one for one in messages if len(one.begin_us) >= MIN_FRAGMENTS]
    why = _too_little(usable, stages)
    if why:
        return _sweep(stages, usable, why)
    events = _events_of(_spread(usable))
    hand_us = _handing_over(events)
    overlap = _overlap(events)
    found, replay_error = _first_that_holds(events, hand_us, overlap)
    if found.kind is StructureKind.CHAIN and _computing(events).may_share:
        found = replace(found, kind=StructureKind.SWEEP, reason=_MAY_SHARE)
    return _named(events, stages, found, _place_flags(events), overlap, replay_error)


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


def _events_of(messages: Sequence[TracedMessage]) -> _Events:
    counts = np.array([min(len(one.begin_us), MAX_FRAGMENTS) for one in messages])
    shape = (len(messages), int(counts.max()), messages[0].begin_us.shape[1])
    begin_us, end_us, busy_us = (np.full(shape, np.nan) for _ in range(3))
    for place, (one, count) in enumerate(zip(messages, counts.tolist(), strict=True)):
        begin_us[place, :count] = one.begin_us[:count]
        end_us[place, :count] = one.end_us[:count]
        busy_us[place, :count] = one.busy_us[:count]
    cells = _cells(begin_us, end_us)
    return _Events(
        np.array([one.fragment_bytes for one in messages]),
        counts,
        begin_us,
        end_us,
        busy_us,
        np.sort(end_us, axis=1),
        *cells,
    )


def _cells(begin_us: Floats, end_us: Floats) -> tuple[Floats, Ints, Ints, Ints]:
    """Times between neighbouring events of all stages, what is at work in them, and in which each
    event begins and ends.
    """
    count, fragments, stages = begin_us.shape
    # Ends stand first: the sort is stable, so that what ends when another begins has ended.
    times = np.concatenate([end_us.reshape(count, -1), begin_us.reshape(count, -1)], axis=1)
    order = np.argsort(times, axis=1, kind="stable")
    cell_us = np.nan_to_num(np.diff(np.take_along_axis(times, order, axis=1), axis=1))
    half = fragments * stages
    step = np.where(order < half, -1, 1)
    stage = order % half % stages
    at_work = np.stack(
        [np.cumsum(np.where(stage == j, step, 0), axis=1)[:, :-1] for j in range(stages)]
    )
    place = np.argsort(order, axis=1)
    end_at, begin_at = (one.reshape(begin_us.shape) for one in (place[:, :half], place[:, half:]))
    return cell_us, at_work, begin_at, end_at


def _overlap(events: _Events) -> float:
    """The time in which two fragments are at work over that in which any is."""
    level = events.at_work.sum(axis=0)
    any_us = float(events.cell_us[level >= 1].sum())
    return float(events.cell_us[level >= 2].sum()) / max(any_us, 1e-9)


def _handing_over(events: _Events) -> list[float]:
    """From the last end anywhere to a message's first begin in a stage: the median."""
    found = [0.0]
    ends = np.sort(events.end_us.reshape(len(events.fragments), -1), axis=1)
    for j in range(1, events.stages):
        first = events.begin_us[:, 0, j]
        before = np.where(ends <= first[:, None], ends, -np.inf).max(axis=1)
        before = np.where(np.isfinite(before), before, events.end_us[:, 0, j - 1])
        found.append(max(float(np.median(first - before)), 0.0))
    return found


def _first_that_holds(
    events: _Events, hand_us: list[float], overlap: float
) -> tuple[_Found, float]:
    """The first structure whose replay holds, with the replay's error; else a sweep."""
    failed = list[tuple[_Found, float]]()
    for found in _candidates(events, hand_us, overlap):
        if found.kind is StructureKind.SWEEP:
            failed.append((found, 0.0))
            continue
        held, error = _held_to_replay(events, found)
        if held.kind is not StructureKind.SWEEP:
            return held, error
        failed.append((held, error))
    return failed[-1]


def _candidates(events: _Events, hand_us: list[float], overlap: float) -> Iterator[_Found]:
    """Yield what begins keep to, the strictest first."""
    lanes = tuple(_lanes_of(events, j) for j in range(events.stages))
    plain = Rules(lanes, hand_us=tuple(hand_us))
    if overlap < SERIAL:
        one_way = _one_at_a_time(events, plain, max(hand_us))
        if one_way is not None:
            yield one_way
            return
    after_all = events.begin_us[:, 0, 1:] - np.nanmax(events.end_us, axis=1)[:, :-1]
    if float(np.mean(after_all < -_EARLY_US)) <= NEVER:
        hands = (0.0, *np.maximum(np.median(after_all, axis=0), 0.0).tolist())
        yield _Found(StructureKind.BARRIER, replace(plain, is_barrier=True, hand_us=hands))
        return
    shared = _shared(events, _computing(events)) if overlap >= SERIAL else None
    if shared is not None:
        stages, processors, is_proved = shared
        kind = StructureKind.SHARED_PROCESSORS if is_proved else StructureKind.SLOW_EACH_OTHER
        yield _Found(kind, replace(plain, shares=((stages, processors),)))
    yield _by_late_begins(events, plain, hand_us)
    if overlap < SERIAL:
        yield _Found(StructureKind.TURNS, replace(plain, turns=(tuple(range(events.stages)),)))


def _one_at_a_time(events: _Events, plain: Rules, hand_us: float) -> _Found | None:
    """A fragment begins after the one before has left the last stage; None where it does not."""
    last = events.stages - 1
    gap = _known(events.begin_us[:, 1:, 0] - events.end_us[:, :-1, last])
    if float(np.mean(gap < -_EARLY_US)) > NEVER:
        return None
    waits_us = float(np.median(gap))
    trip_us = float(np.median(_known(events.end_us[:, :, last] - events.begin_us[:, :, 0])))
    # Of a serial mover the gap is what it does between two fragments.
    rules = replace(plain, windows=(Window(0, last, 1, max(waits_us, 0.0)),))
    if waits_us > max(_RETURN_HANDS * hand_us, _RETURN_TRIP * trip_us, _RETURN_US):
        return _Found(StructureKind.STOP_AND_WAIT, rules, return_us=waits_us)
    return _Found(StructureKind.SERIAL, rules, return_us=max(waits_us, 0.0))


def _lanes_of(events: _Events, stage: int) -> int:
    """How many fragments at once a stage reaches: in each message the most, of those the median."""
    level = events.at_work[stage]
    busy_us = np.where(level > 0, events.cell_us, 0.0).sum(axis=1)
    reached = np.ones(len(busy_us), dtype=np.int64)
    for count in range(2, int(level.max()) + 1):
        at_us = np.where(level == count, events.cell_us, 0.0).sum(axis=1)
        reached[at_us > _LEVEL * busy_us] = count
    return int(np.quantile(reached, 0.5))


# --- late begins ----------------------------------------------------------------------------------


def _by_late_begins(events: _Events, plain: Rules, hand_us: list[float]) -> _Found:
    """The chain where begins are not late; else the rules, two at most, that explain why."""
    bounds = [_chain_bound(events, j, plain.lanes[j]) for j in range(events.stages)]
    late = _late(events, bounds, hand_us)
    elapsed_us = events.elapsed_us
    first = late.total_us / elapsed_us
    windows, turns = list[Window](), list[tuple[int, ...]]()
    while late.total_us > CHAIN * elapsed_us and len(windows) + len(turns) < 2:
        best = _best_rule(events, plain, bounds, late, hand_us)
        if best is None:
            break
        before_us = late.total_us
        if isinstance(best, Window):
            windows.append(best)
        else:
            turns.append(best)
        bounds = _bounded(events, bounds, best)
        late = _late(events, bounds, hand_us)
        if late.total_us > max(LEFT * before_us, CHAIN * elapsed_us):
            break
    left = late.total_us / elapsed_us
    rules = replace(plain, windows=tuple(windows), turns=tuple(turns))
    if left > max(CHAIN, LEFT * first):
        share = 100 * min(left, 1.0)  # several stages' begins are late at once
        why = f"{share:.0f} % of its time begins are late, by nothing known here"
        return _Found(StructureKind.SWEEP, rules, late=first, left=left, reason=why)
    waits_us = max((one.return_us for one in rules.windows), default=0.0)
    return _Found(_kind_of(rules), rules, waits_us, late=first, left=left)


def _kind_of(rules: Rules) -> StructureKind:
    last = len(rules.lanes) - 1
    if not rules.turns and any(one[:3] == (0, last, 1) for one in rules.windows):
        has_return = any(one.return_us > 0.0 for one in rules.windows)
        return StructureKind.STOP_AND_WAIT if has_return else StructureKind.SERIAL
    if rules.turns:
        return StructureKind.TURNS
    if rules.windows:
        return StructureKind.WINDOW
    return StructureKind.LANES if max(rules.lanes) > 1 else StructureKind.CHAIN


def _chain_bound(events: _Events, stage: int, lanes: int) -> Floats:
    """The earliest begins by the chain, (m, f): the fragment is there, and a lane is free."""
    there = events.end_us[:, :, stage - 1] if stage else None
    free = _shifted(events.sorted_us[:, :, stage], lanes)
    if there is None:
        there = np.broadcast_to(events.begin_us[:, :1, 0], free.shape)
    found: Floats = np.fmax(there, free)
    return found


def _shifted(ends: Floats, places: int) -> Floats:
    """The end by which fragment f may begin, where so many may be under way; -inf for the first."""
    out = np.full(ends.shape, -np.inf)
    out[:, places:] = ends[:, : ends.shape[1] - places]
    return out


def _bounded(events: _Events, bounds: list[Floats], rule: Rule) -> list[Floats]:
    """The earliest begins by one rule more."""
    out = list(bounds)
    if isinstance(rule, Window):
        first, last, places, return_us = rule
        freed = _shifted(events.sorted_us[:, :, last], places) + return_us
        out[first] = np.fmax(out[first], freed)
        return out
    for stage in rule:
        out[stage] = np.fmax(out[stage], _last_end(events, stage, rule))
    return out


def _last_end(events: _Events, stage: int, turns: Sequence[int]) -> Floats:
    """The latest end of another stage of these before each begin of this one, (m, f)."""
    others = [one for one in turns if one != stage]
    out = np.full(events.begin_us.shape[:2], -np.inf)
    for place, begins in enumerate(events.begin_us[:, :, stage]):
        ends = np.sort(_known(events.end_us[place][:, others]))
        at = np.searchsorted(ends, begins + _EARLY_US) - 1
        out[place] = np.where(at >= 0, ends[np.maximum(at, 0)], -np.inf)
    return out


def _late(events: _Events, bounds: list[Floats], hand_us: list[float]) -> _Late:
    late_us, from_us, sum_us = [], [], []
    for stage, bound in enumerate(bounds):
        begins = events.begin_us[:, :, stage]
        late = begins - bound - hand_us[stage]
        pace_us = float(np.nanmedian(np.diff(begins, axis=1)))
        lasts_us = float(np.nanmedian(events.lasts_us[:, :, stage]))
        cut_us = max(LATE * pace_us, _LATE_HANDS * max(hand_us), _LATE_STAGE * lasts_us)
        cap_us = 10.0 * max(pace_us, lasts_us)  # one outlier is not all of the evidence
        late_us.append(late)
        from_us.append(cut_us)
        sum_us.append(float(np.minimum(late[late > cut_us], cap_us).sum()))
    return _Late(late_us, from_us, sum_us)


def _best_rule(
    events: _Events, plain: Rules, bounds: list[Floats], late: _Late, hand_us: list[float]
) -> Rule | None:
    scored = [
        *_scored_turns(events, plain, bounds, late, hand_us),
        *_scored_windows(events, plain, bounds, late, hand_us),
    ]
    return min(scored, key=lambda one: one[0])[1] if scored else None


def _late_stages(events: _Events, late: _Late) -> list[int]:
    return [j for j, sum_us in enumerate(late.sum_us) if sum_us > NEVER * events.elapsed_us]


def _scored_turns(
    events: _Events, plain: Rules, bounds: list[Floats], late: _Late, hand_us: list[float]
) -> Iterator[tuple[float, Rule]]:
    wanted = _late_stages(events, late)
    for pair in combinations(range(events.stages), 2):
        if not set(pair) & set(wanted) or max(plain.lanes[one] for one in pair) > 1:
            continue
        if _overlap_of(events, pair) > NEVER:
            continue
        by_turns = _late(events, _bounded(events, bounds, pair), hand_us)
        yield by_turns.total_us / late.total_us, pair


def _overlap_of(events: _Events, pair: tuple[int, int]) -> float:
    """The time in which both are at work over what the shorter is busy."""
    one, other = (events.at_work[stage] for stage in pair)
    both_us = float((events.cell_us * one * other).sum())
    return both_us / max(min(float(np.nansum(events.lasts_us[:, :, j])) for j in pair), 1e-9)


def _scored_windows(
    events: _Events, plain: Rules, bounds: list[Floats], late: _Late, hand_us: list[float]
) -> Iterator[tuple[float, Rule]]:
    """Windows that begins keep to; the tightest has the smallest score."""
    hand = max(hand_us)
    for first in _late_stages(events, late):
        is_late = late.late_us[first] > late.from_us[first]
        typical_us = max(float(np.median(late.late_us[first][is_late])), 1e-9)
        for last in range(first, events.stages):
            for places in range(1, min(_MAX_WINDOW, events.begin_us.shape[1] - 2) + 1):
                if first == last and 1 < places <= plain.lanes[first]:
                    continue
                freed = events.sorted_us[:, :-places, last]
                after = events.begin_us[:, places:, first] - freed
                late_after = after[is_late[:, places:]]
                if len(late_after) < _MIN_LATE:
                    continue
                return_us = float(np.quantile(late_after, 0.25)) - hand_us[first]
                if _is_broken(_known(after), return_us, hand):
                    continue
                has_return = return_us > max(3.0 * hand, 2.0)
                rule = Window(first, last, places, return_us if has_return else 0.0)
                by_window = _late(events, _bounded(events, bounds, rule), hand_us)
                median_us = np.median(late_after)
                spread = float(np.median(np.abs(late_after - median_us))) / typical_us
                score = by_window.total_us / late.total_us + 0.5 * min(spread, 1.0)
                yield score + 0.01 * has_return + 0.001 * places, rule


def _is_broken(after_us: Floats, return_us: float, hand_us: float) -> bool:
    """Whether begins come before a place was free, more often than a rule may be broken."""
    if return_us <= max(3.0 * hand_us, 2.0):
        at_us = min(0.0, return_us) - max(1.0, 0.5 * hand_us)
    else:
        at_us = 0.9 * return_us - hand_us
    return float(np.mean(after_us < at_us)) > NEVER


# --- shared processors ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Computing:
    """What processor times say of stages: which compute, and of which they do not say whether.

    Of the others the times show that they wait. `lost` is the share of the computing ones' time in
    which they did not compute; `is_partial`, whether some of their events have no processor time.
    """

    stages: list[int]
    unknown: list[int]
    lost: float
    is_partial: bool

    @property
    def may_share(self) -> bool:
        """Whether stages may share what nobody has measured them to."""
        is_slowed = self.lost >= _SHARING[0]
        others = len(self.unknown) + (bool(self.stages) and is_slowed)
        return others >= 2 or (self.is_partial and is_slowed)


def _computing(events: _Events) -> _Computing:
    """A stage computes where its best event does: all of it, which no waiting would leave.

    Where few events of a message are known, their best one may be slowed as the others are.
    """
    rate = events.busy_us / np.maximum(events.lasts_us, 1e-9)
    is_known = np.isfinite(rate)
    computing, unknown = list[int](), list[int]()
    for stage in range(events.stages):
        known = is_known[:, :, stage]
        of_message = known.sum(axis=1)
        is_seen = of_message >= np.maximum(_KNOWN * events.fragments, 1.0)
        if known.sum() < MIN_MESSAGES or _has_ticks(events.busy_us[:, :, stage]):
            unknown.append(stage)
            continue
        some = of_message > 0
        best = np.nanmax(rate[some, :, stage], axis=1)
        if np.median(best) >= _COMPUTES:
            computing.append(stage)
        elif (
            np.count_nonzero(is_seen) < _KNOWN_MESSAGES
            or np.median(best[is_seen[some]]) >= _COMPUTES
        ):
            unknown.append(stage)
    known = is_known[:, :, computing]
    lasts_us = np.where(known, events.lasts_us[:, :, computing], 0.0)
    busy_us = np.where(known, events.busy_us[:, :, computing], 0.0)
    lost = 1.0 - float(busy_us.sum()) / max(float(lasts_us.sum()), 1e-9)
    is_partial = bool((known != np.isfinite(events.lasts_us[:, :, computing])).any())
    return _Computing(computing, unknown, lost, is_partial)


def _has_ticks(busy_us: Floats) -> bool:
    """Whether the clock of processor times stands still in many events: then it says nothing."""
    known = _known(busy_us)
    return float(np.mean(known <= 0.0)) > _STANDS


def _shared(events: _Events, found: _Computing) -> tuple[tuple[int, ...], float, bool] | None:
    """The stages that share processors, how many these are, and whether processor times show it.

    While m of them work they progress by min(m, P) together, in sums over a message, whatever the
    scheduler does: that is held against processor times, else against times of undisturbed events.
    """
    if len(found.stages) < 2:
        return None
    # Processor times prove sharing and never its absence: a hypervisor takes without telling.
    shared = _sharing(events, events.busy_us, found.stages, _SHARING, by_quarters=False)
    if shared is not None:
        return *shared, True
    if _place_flags(events):
        return None  # what depends on the place is no slowing by others
    rate = events.busy_us / np.maximum(events.lasts_us, 1e-9)
    computing = [j for j in found.stages if float(np.nanmedian(rate[:, :, j])) >= _COMPUTES]
    alone_us = _alone(events, computing)
    if len(computing) < 2 or alone_us is None:
        return None
    shared = _sharing(events, alone_us, computing, _SLOWING, by_quarters=True)
    return None if shared is None else (*shared, False)


def _sharing(
    events: _Events,
    work_us: Floats,
    computing: list[int],
    thresholds: tuple[float, float],
    *,
    by_quarters: bool,
) -> tuple[tuple[int, ...], float] | None:
    """The set and its processors that leave least unexplained, where that is enough.

    Events without a time in `work_us` say nothing. Sums are over as many events as have one in a
    message where all have: so many messages together.
    """
    known = np.isfinite(work_us)
    known_us = np.where(known, work_us, 0.0)
    wall_us = float(np.where(known, events.lasts_us, 0.0)[:, :, computing].sum())
    share = float(known[:, :, computing].sum()) / (len(computing) * float(events.fragments.sum()))
    starts = np.arange(0, len(known), max(1, round(1.0 / max(share, 1e-3))))

    def lacks(stage: int, weight: Floats) -> Floats:
        """By how much a stage's work differs from its progress at this rate in each cell."""
        progress = np.zeros((weight.shape[0], weight.shape[1] + 1))
        np.cumsum(weight, axis=1, out=progress[:, 1:])
        upto = np.take_along_axis(progress, events.end_at[:, :, stage], axis=1)
        since = np.take_along_axis(progress, events.begin_at[:, :, stage], axis=1)
        found = known_us[:, :, stage] - np.where(known[:, :, stage], upto - since, 0.0)
        out: Floats = np.add.reduceat(found.sum(axis=1), starts)
        return out

    alone_us = {j: lacks(j, events.cell_us) for j in computing}

    def unexplained(stages: tuple[int, ...], processors: float) -> float:
        at_once = events.at_work[list(stages)].sum(axis=0)
        weight = events.cell_us * np.minimum(1.0, processors / np.maximum(at_once, 1))
        inside = [lacks(j, weight) for j in stages]
        found = np.abs(np.sum(inside, axis=0)) + 0.25 * np.abs(inside).sum(axis=0)
        for j in computing:
            if j not in stages:
                found = found + 1.25 * np.abs(alone_us[j])
        return float(found.sum()) / wall_us

    unexplained_from, explained = thresholds
    without = 1.25 * float(sum(np.abs(one).sum() for one in alone_us.values())) / wall_us
    if without < unexplained_from:
        return None
    step = 0.25 if by_quarters else 1.0
    _, _, stages, processors = min(
        (unexplained(stages, float(processors)), size, stages, float(processors))
        for size in range(2, len(computing) + 1)
        for stages in combinations(computing, size)
        for processors in np.arange(1.0, size, step).tolist()
    )
    is_enough = unexplained(stages, processors) <= explained * without
    return (stages, processors) if is_enough else None


def _alone(events: _Events, computing: list[int]) -> Floats | None:
    """Each event's time, at most that of its size where nothing else was at work; None: unknown."""
    out = events.lasts_us.copy()
    for stage in computing:
        disturbed_us = _others_at_work(events, stage)
        is_alone = disturbed_us < 0.1 * events.lasts_us[:, :, stage]
        for size in np.unique(events.fragment_bytes).tolist():
            of_size = events.fragment_bytes == size
            alone = events.lasts_us[of_size, :, stage][is_alone[of_size]]
            if len(alone) < _ALONE:
                return None
            out[of_size, :, stage] = np.minimum(out[of_size, :, stage], np.median(alone))
    return out


def _others_at_work(events: _Events, stage: int) -> Floats:
    """The time of all other fragments, any stage's, within each fragment's own, (m, f)."""
    starts = np.concatenate(
        [
            np.nanmin(events.begin_us, axis=(1, 2))[:, None],
            np.nanmin(events.begin_us, axis=(1, 2))[:, None] + np.cumsum(events.cell_us, axis=1),
        ],
        axis=1,
    )
    work = np.cumsum(events.cell_us * events.at_work.sum(axis=0), axis=1)
    work = np.concatenate([np.zeros((len(work), 1)), work], axis=1)
    out = np.full(events.begin_us.shape[:2], np.inf)
    for place in range(len(out)):
        upto = np.interp(events.end_us[place, :, stage], starts[place], work[place])
        since = np.interp(events.begin_us[place, :, stage], starts[place], work[place])
        out[place] = upto - since - events.lasts_us[place, :, stage]
    return out


# --- what depends on the place --------------------------------------------------------------------


def _place_flags(events: _Events) -> tuple[PlaceFlag, ...]:
    """Stages, by their place as text, whose first fragments cost something else in nearly all
    messages of one size.
    """
    found = list[PlaceFlag]()
    for stage in range(events.stages):
        best: tuple[float, PlaceFlag] | None = None
        for size in np.unique(events.fragment_bytes).tolist():
            of_size = events.fragment_bytes == size
            longest = int(events.fragments[of_size].max())
            # Also what lasts nearly all of a message: its last ones alone are others then.
            for first in (*_FIRSTS, *(longest - tail for tail in _LASTS)):
                ratios = _first_over_later(events, of_size, stage, first)
                if len(ratios) < 5:
                    continue
                middle = float(np.median(ratios))
                if not _depends(ratios):
                    continue
                strength = abs(float(np.log(middle)))
                if best is None or strength > best[0] + 0.02:
                    more = _more(events, of_size, stage, first, middle)
                    best = (strength, PlaceFlag(str(stage), middle, first, more))
        if best is not None:
            found.append(best[1])
    return tuple(found)


def _depends(ratios: Floats) -> bool:
    """Whether nearly all messages' first ones cost something else, or most of them by far."""
    for share, factor in ((_SHARE_OF_MESSAGES, 1.0), (_MOST_MESSAGES, _BY_FAR)):
        low, high = np.quantile(ratios, [1.0 - share, share]).tolist()
        if low > max(_FIRST_DEARER, factor) or high < min(_IN_BURSTS, 1.0 / factor):
            return True
    return False


def _more(events: _Events, of_size: Flags, stage: int, first: int, ratio: float) -> float:
    """What the first ones take more, over the message's time."""
    in_flow_us = float(np.nanmedian(events.lasts_us[of_size][:, first:, stage]))
    took_us = max(float(np.median(events.took_us[of_size])), _EARLY_US)
    return first * (ratio - 1.0) * in_flow_us / took_us


def _first_over_later(events: _Events, of_size: Flags, stage: int, first: int) -> Floats:
    lasts_us = events.lasts_us[of_size][:, :, stage]
    counts = events.fragments[of_size]
    long_enough = counts >= first + _LATER if first in _FIRSTS else counts > first
    lasts_us, counts = lasts_us[long_enough], counts[long_enough]
    if not len(counts):
        return np.zeros(0)
    later = np.arange(lasts_us.shape[1]) >= np.maximum(first, counts // 2)[:, None]
    behind = np.nanmedian(np.where(later, lasts_us, np.nan), axis=1)
    found: Floats = np.median(lasts_us[:, :first], axis=1) / np.maximum(behind, 1e-9)
    return np.maximum(found, 1e-9)


# --- what was found is replayed -------------------------------------------------------------------


def _held_to_replay(events: _Events, found: _Found) -> tuple[_Found, float]:
    """What was found, or what replays better, or a sweep; with the replay's error."""
    error = _replay_error(events, found)
    overlaps = (StructureKind.CHAIN, StructureKind.LANES)
    if found.kind in overlaps and abs(error) > _REPLAY_TURNS:
        found, error = _or_turns(events, found, error)
    if found.kind is StructureKind.TURNS:
        found, error = _or_window_of_one(events, found, error)
    if abs(error) > REPLAY:
        why = f"replayed messages take {100 * (1.0 + error):.0f} % of what was measured"
        return replace(found, kind=StructureKind.SWEEP, reason=why), error
    return found, error


def _or_turns(events: _Events, found: _Found, error: float) -> tuple[_Found, float]:
    best, smallest = found, error
    for pair in combinations(range(events.stages), 2):
        if max(found.rules.lanes[one] for one in pair) > 1 or _overlap_of(events, pair) > NEVER:
            continue
        rules = replace(found.rules, windows=(), turns=(pair,))
        by_turns = replace(found, kind=StructureKind.TURNS, rules=rules)
        other = _replay_error(events, by_turns)
        if abs(other) < min(abs(smallest), 0.5 * abs(error)):
            best, smallest = by_turns, other
    return best, smallest


def _or_window_of_one(events: _Events, found: _Found, error: float) -> tuple[_Found, float]:
    """Two neighbours that take turns because one fragment at a time is between them."""
    turns = found.rules.turns
    if len(turns) != 1 or len(turns[0]) != 2 or turns[0][1] != turns[0][0] + 1:
        return found, error
    first, last = turns[0]
    gap = _known(events.begin_us[:, 1:, first] - events.end_us[:, :-1, last])
    if float(np.mean(gap < -_EARLY_US)) > NEVER:
        return found, error
    window = Window(first, last, 1, max(float(np.median(gap)), 0.0))
    rules = replace(found.rules, windows=(window,), turns=())
    by_window = replace(found, kind=StructureKind.WINDOW, rules=rules)
    other = _replay_error(events, by_window)
    return (by_window, other) if abs(other) < abs(error) else (found, error)


def _replay_error(events: _Events, found: _Found) -> float:
    """The median of replayed over measured times of messages, less 1."""
    rules = found.rules
    shared = sorted({stage for stages, _ in rules.shares for stage in stages})
    count = len(events.fragments)
    replayed = min(_REPLAYED, count, max(_REPLAYED_EVENTS // events.lasts_us[0].size, 1))
    places = np.linspace(0, count - 1, replayed).round().astype(int)
    is_known = np.isfinite(events.busy_us)
    known_us = np.where(is_known, events.lasts_us, 0.0).sum(axis=(0, 1))
    in_flow = np.where(is_known, events.busy_us, 0.0).sum(axis=(0, 1)) / np.maximum(known_us, 1e-9)
    ratios = []
    for place in places.tolist():
        work = events.lasts_us[place, : events.fragments[place]].copy()
        if found.kind is StructureKind.SHARED_PROCESSORS:
            busy = events.busy_us[place, : events.fragments[place]]
            work[:, shared] = np.where(np.isfinite(busy), busy, work * in_flow)[:, shared]
        try:
            took_us = replayed_us(rules, np.maximum(work, _EARLY_US))
        except RuntimeError:
            return np.inf
        ratios.append(took_us / max(float(events.took_us[place]), _EARLY_US))
    return float(np.median(ratios)) - 1.0


# --- what is said ---------------------------------------------------------------------------------


def _named(
    events: _Events,
    stages: tuple[str, ...],
    found: _Found,
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


def _own_gaps(events: _Events, lanes: tuple[int, ...]) -> tuple[float, ...]:
    """What a stage does between two fragments where the next one was there: the median."""
    found = []
    for stage, count in enumerate(lanes):
        free = events.end_us[:, :-1, stage]
        there = events.end_us[:, 1:, stage - 1] if stage else np.full_like(free, -np.inf)
        gap = _known((events.begin_us[:, 1:, stage] - free)[free >= there])
        is_known = count == 1 and len(gap) >= MIN_MESSAGES
        found.append(max(float(np.median(gap)), 0.0) if is_known else 0.0)
    return tuple(found)


def _queues(events: _Events) -> tuple[float, ...]:
    """How long a fragment waits for a stage that was at work when it came: the median."""
    found = [0.0]
    for stage in range(1, events.stages):
        came = events.end_us[:, 1:, stage - 1]
        free = events.end_us[:, :-1, stage]
        waits = _known((events.begin_us[:, 1:, stage] - came)[free > came])
        found.append(max(float(np.median(waits)), 0.0) if len(waits) else 0.0)
    return tuple(found)


def _known(values: Floats) -> Floats:
    found: Floats = values[np.isfinite(values)]
    return found
