"""The rules that explain why begins come late: windows, and stages that take turns.

Source    docs/theory.md, "What overlaps".
Notation  m messages, f fragments (padded by NaN), j stages. A begin is late by what it comes after
          all that a chain waits for, less what handing over takes.
Traps     what does not bind is not seen: a window that never fills is a chain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from analysis.replay import Rules, Window
from analysis.structure.events import EARLY_US, Events, finite, overlap_of
from analysis.structure.found import NEVER, Found
from domain.structure import StructureKind

Floats = NDArray[np.float64]

LATE = 0.10  # a begin is late from this share of its stage's pace on,
_LATE_HANDS, _LATE_STAGE = 1.5, 0.05  # and from so many handings over and this share of its time
CHAIN = 0.06  # late time over elapsed time, up to which the plain chain is accepted

LEFT = 0.34  # a rule explains where it leaves no more of the late time

_MAX_WINDOW = 16
_MIN_LATE = 10  # late begins, for a window to be sought

Rule: TypeAlias = Window | tuple[int, ...]  # stages that are no window's take turns


@dataclass(frozen=True, slots=True, eq=False)
class _Late:
    """How late begins are: of each stage (m, f) in µs, from where on they count, and their sum."""

    late_us: list[Floats]
    from_us: list[float]
    sum_us: list[float]

    @property
    def total_us(self) -> float:
        return sum(self.sum_us)


def by_late_begins(events: Events, plain: Rules, hand_us: list[float]) -> Found:
    """Return the chain where begins are not late; else the rules, two at most, that explain why."""
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
        return Found(StructureKind.SWEEP, rules, late=first, left=left, reason=why)
    waits_us = max((one.return_us for one in rules.windows), default=0.0)
    return Found(_kind_of(rules), rules, waits_us, late=first, left=left)


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


def _chain_bound(events: Events, stage: int, lanes: int) -> Floats:
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


def _bounded(events: Events, bounds: list[Floats], rule: Rule) -> list[Floats]:
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


def _last_end(events: Events, stage: int, turns: Sequence[int]) -> Floats:
    """The latest end of another stage of these before each begin of this one, (m, f)."""
    others = [one for one in turns if one != stage]
    out = np.full(events.begin_us.shape[:2], -np.inf)
    for place, begins in enumerate(events.begin_us[:, :, stage]):
        ends = np.sort(finite(events.end_us[place][:, others]))
        at = np.searchsorted(ends, begins + EARLY_US) - 1
        out[place] = np.where(at >= 0, ends[np.maximum(at, 0)], -np.inf)
    return out


def _late(events: Events, bounds: list[Floats], hand_us: list[float]) -> _Late:
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
    events: Events, plain: Rules, bounds: list[Floats], late: _Late, hand_us: list[float]
) -> Rule | None:
    scored = [
        *_scored_turns(events, plain, bounds, late, hand_us),
        *_scored_windows(events, plain, bounds, late, hand_us),
    ]
    return min(scored, key=lambda one: one[0])[1] if scored else None


def _late_stages(events: Events, late: _Late) -> list[int]:
    return [j for j, sum_us in enumerate(late.sum_us) if sum_us > NEVER * events.elapsed_us]


def _scored_turns(
    events: Events, plain: Rules, bounds: list[Floats], late: _Late, hand_us: list[float]
) -> Iterator[tuple[float, Rule]]:
    wanted = _late_stages(events, late)
    for pair in combinations(range(events.stages), 2):
        if not set(pair) & set(wanted) or max(plain.lanes[one] for one in pair) > 1:
            continue
        if overlap_of(events, pair) > NEVER:
            continue
        by_turns = _late(events, _bounded(events, bounds, pair), hand_us)
        yield by_turns.total_us / late.total_us, pair


def _scored_windows(
    events: Events, plain: Rules, bounds: list[Floats], late: _Late, hand_us: list[float]
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
                if _is_broken(finite(after), return_us, hand):
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
