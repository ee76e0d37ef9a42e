"""What was found is replayed: it has to take as long as what was measured.

Source    docs/theory.md, "What overlaps".
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np

from analysis.replay import Window, replayed_us
from analysis.structure.events import EARLY_US, Events, finite, overlap_of
from analysis.structure.found import NEVER, Found
from domain.structure import StructureKind

REPLAY = 0.08  # replayed and measured times of messages may differ by so much, in the median
_REPLAY_TURNS = 0.03  # from which on turns are tried in the place of a chain

_REPLAYED, _REPLAYED_EVENTS = 32, 8192  # messages, fewer where these have many events


def held_to_replay(events: Events, found: Found) -> tuple[Found, float]:
    """Return what was found, or what replays better, or a sweep; with the replay's error."""
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


def _or_turns(events: Events, found: Found, error: float) -> tuple[Found, float]:
    best, smallest = found, error
    for pair in combinations(range(events.stages), 2):
        if max(found.rules.lanes[one] for one in pair) > 1 or overlap_of(events, pair) > NEVER:
            continue
        rules = replace(found.rules, windows=(), turns=(pair,))
        by_turns = replace(found, kind=StructureKind.TURNS, rules=rules)
        other = _replay_error(events, by_turns)
        if abs(other) < min(abs(smallest), 0.5 * abs(error)):
            best, smallest = by_turns, other
    return best, smallest


def _or_window_of_one(events: Events, found: Found, error: float) -> tuple[Found, float]:
    """Two neighbours that take turns because one fragment at a time is between them."""
    turns = found.rules.turns
    if len(turns) != 1 or len(turns[0]) != 2 or turns[0][1] != turns[0][0] + 1:
        return found, error
    first, last = turns[0]
    gap = finite(events.begin_us[:, 1:, first] - events.end_us[:, :-1, last])
    if float(np.mean(gap < -EARLY_US)) > NEVER:
        return found, error
    window = Window(first, last, 1, max(float(np.median(gap)), 0.0))
    rules = replace(found.rules, windows=(window,), turns=())
    by_window = replace(found, kind=StructureKind.WINDOW, rules=rules)
    other = _replay_error(events, by_window)
    return (by_window, other) if abs(other) < abs(error) else (found, error)


def _replay_error(events: Events, found: Found) -> float:
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
            took_us = replayed_us(rules, np.maximum(work, EARLY_US))
        except RuntimeError:
            return np.inf
        ratios.append(took_us / max(float(events.took_us[place]), EARLY_US))
    return float(np.median(ratios)) - 1.0
