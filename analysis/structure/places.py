"""The stages whose first fragments, or last ones, cost something else than the others.

Source    docs/theory.md, "What overlaps".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.structure.events import EARLY_US, Events
from domain.structure import PlaceFlag

Floats = NDArray[np.float64]

Flags = NDArray[np.bool_]

_FIRST_DEARER, _IN_BURSTS = 1.15, 0.87
_FIRSTS = (*range(1, 9), 12, 16, 24, 32, 48, 64)  # fragments whose times may be others
_LASTS, _LATER = (3, 2, 1), 3
_SHARE_OF_MESSAGES = 0.85
_MOST_MESSAGES, _BY_FAR = 0.6, 2.0  # a bucket that some messages do not empty


def place_flags(events: Events) -> tuple[PlaceFlag, ...]:
    """Return stages, by their place as text, whose first fragments cost something else in nearly
    all messages of one size.
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


def _more(events: Events, of_size: Flags, stage: int, first: int, ratio: float) -> float:
    """What the first ones take more, over the message's time."""
    in_flow_us = float(np.nanmedian(events.lasts_us[of_size][:, first:, stage]))
    took_us = max(float(np.median(events.took_us[of_size])), EARLY_US)
    return first * (ratio - 1.0) * in_flow_us / took_us


def _first_over_later(events: Events, of_size: Flags, stage: int, first: int) -> Floats:
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
