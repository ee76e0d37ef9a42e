"""Traced messages as arrays of events: begins, ends, and what is at work between them.

Notation  m messages, f fragments (padded by NaN), j stages, c cells between neighbouring events.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from domain.traced_events import TracedEvents

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

MIN_MESSAGES, MIN_FRAGMENTS = 20, 8
MAX_MESSAGES, MAX_FRAGMENTS = 64, 128  # of longer traces so many are used, evenly apart

_PAUSE = 10.0  # times what a fragment takes, which idle time counts as at most
EARLY_US = 5e-3  # begins and durations are rounded, each by itself


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
class Events:
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
        """How many stages there are."""
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
        """How long each fragment is in each stage, (m, f, j)."""
        found: Floats = self.end_us - self.begin_us
        return found


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


def events_of(messages: Sequence[TracedMessage]) -> Events:
    """Return these messages padded to one length; fragments beyond MAX_FRAGMENTS are left out."""
    counts = np.array([min(len(one.begin_us), MAX_FRAGMENTS) for one in messages])
    shape = (len(messages), int(counts.max()), messages[0].begin_us.shape[1])
    begin_us, end_us, busy_us = (np.full(shape, np.nan) for _ in range(3))
    for place, (one, count) in enumerate(zip(messages, counts.tolist(), strict=True)):
        begin_us[place, :count] = one.begin_us[:count]
        end_us[place, :count] = one.end_us[:count]
        busy_us[place, :count] = one.busy_us[:count]
    cells = _cells(begin_us, end_us)
    return Events(
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


def overlap_of(events: Events, pair: tuple[int, int]) -> float:
    """Return the time in which both are at work over what the shorter is busy."""
    one, other = (events.at_work[stage] for stage in pair)
    both_us = float((events.cell_us * one * other).sum())
    return both_us / max(min(float(np.nansum(events.lasts_us[:, :, j])) for j in pair), 1e-9)


def finite(values: Floats) -> Floats:
    """Return the values that are known."""
    found: Floats = values[np.isfinite(values)]
    return found
