"""The stages that share processors, by processor times or by how they slow each other down.

Source    docs/theory.md, "What overlaps".
Traps     durations in flow contain what processors share, so that without processor times sharing
          looks like a chain.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from analysis.structure.events import MIN_MESSAGES, Events, finite
from analysis.structure.places import place_flags

Floats = NDArray[np.float64]

_COMPUTES = 0.85  # of its best event's time, from which on a stage computes
_KNOWN, _KNOWN_MESSAGES = 0.5, 5  # of a message's events, in so many: what they say, all would
_STANDS = 0.10  # of processor times may be 0
_SHARING = (0.06, 0.40)  # without sharing at least this is unexplained, with it at most this of it
_SLOWING = (0.15, 0.30)  # the same by times of undisturbed events

_ALONE = 5  # undisturbed events of a stage and size


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


def computing_of(events: Events) -> _Computing:
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
    known = finite(busy_us)
    return float(np.mean(known <= 0.0)) > _STANDS


def shared_processors(
    events: Events, found: _Computing
) -> tuple[tuple[int, ...], float, bool] | None:
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
    if place_flags(events):
        return None  # what depends on the place is no slowing by others
    rate = events.busy_us / np.maximum(events.lasts_us, 1e-9)
    computing = [j for j in found.stages if float(np.nanmedian(rate[:, :, j])) >= _COMPUTES]
    alone_us = _alone(events, computing)
    if len(computing) < 2 or alone_us is None:
        return None
    shared = _sharing(events, alone_us, computing, _SLOWING, by_quarters=True)
    return None if shared is None else (*shared, False)


def _sharing(
    events: Events,
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


def _alone(events: Events, computing: list[int]) -> Floats | None:
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


def _others_at_work(events: Events, stage: int) -> Floats:
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
