"""How much longer a message takes because the times of its fragments vary.

A slow fragment holds up those behind it, and a fast one makes up for that nowhere: with n stages
the expected end of the last fragment is later than where each takes its mean time.

Source    the recurrence of `domain.schedule` over fragments whose times are drawn anew, which is a
          longest path (Baccelli, Cohen, Olsder & Quadrat 1992): convex in every time, so that its
          mean is no less than its value at the means (Jensen).
Notation  k fragments, of which at most _FRAGMENTS are drawn; n stages; _MESSAGES draws.
Cost      O(n _FRAGMENTS _MESSAGES), once a cut.
Traps     the same draws serve all cuts, and each column of factors has the mean 1: one fragment
          takes exactly its mean. Beyond the fragments drawn what is held up grows as the square
          root of their number, as sums do; where one stage is slowest by far it grows less.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from analysis.draws import normals, uniforms
from domain.measured_times import MeasuredStage, MeasuredTimes
from domain.pipeline import Pipeline
from domain.uncertainty import NamedCut

Floats = NDArray[np.float64]

_MESSAGES = 64
_FRAGMENTS = 64
_SEED = 0
_MOST = 1.0  # relative deviation of single times: as wide as waiting in a queue makes them


def held_up(times: MeasuredTimes, message_bytes: int, cut: NamedCut) -> float:
    """Return the expected latency of a cut over that of fragments which take their means, >= 1.

    Times are lognormal, with the measured means and deviations. 1 of an aggregate, whose stages are
    not known, and of a cut that stages divide further.
    """
    sizes, count = _drawn_sizes(message_bytes, cut)
    if times.kind != Pipeline.kind or len(times.stages) < 2 or len(sizes) < 2:
        return 1.0
    at_means, varying = np.zeros((1, len(sizes))), np.zeros((_MESSAGES, len(sizes)))
    slowest_us = 0.0
    for place, stage in enumerate(times.stages):
        mean_us, sigma = _at(stage, sizes)
        factors = np.exp(_scores(place)[:, : len(sizes)] * sigma)
        at_means = _ends_us(at_means, mean_us[None, :])
        varying = _ends_us(varying, factors / factors.mean(axis=0) * mean_us)
        slowest_us = max(slowest_us, float(mean_us[0]))
    known_us = float(at_means[0, -1])
    more_us = float(varying[:, -1].mean()) - known_us
    if count > len(sizes):
        known_us += (count - len(sizes)) * slowest_us
        more_us *= (count / len(sizes)) ** 0.5
    return 1.0 + max(0.0, more_us) / known_us if known_us > 0.0 else 1.0


def _drawn_sizes(message_bytes: int, cut: NamedCut) -> tuple[Floats, int]:
    """The sizes of the fragments that are drawn, (fragments,), and how many the cut has."""
    if cut.schedule is not None:
        levels = cut.schedule.stage_bytes
        sizes = levels[0] if len(levels) == 1 else levels[0][:1]
        return np.array(sizes[:_FRAGMENTS], dtype=np.float64), len(sizes)
    size = min(cut.size_bytes or message_bytes, message_bytes)
    full, rest = divmod(message_bytes, size)
    drawn = [float(size)] * min(full, _FRAGMENTS)
    if rest and len(drawn) < _FRAGMENTS:
        drawn.append(float(rest))
    return np.array(drawn), full + (rest > 0)


def _at(stage: MeasuredStage, sizes: Floats) -> tuple[Floats, Floats]:
    """Mean times in µs and deviations of their logarithms at sizes, (fragments,)."""
    known = np.array([(one.message_bytes, one.mean_us, one.deviation) for one in stage.sizes])
    mean_us = np.interp(sizes, known[:, 0], known[:, 1])
    deviation = np.minimum(np.interp(sizes, known[:, 0], known[:, 2]), _MOST)
    return mean_us, np.sqrt(np.log1p(deviation**2))


def _ends_us(before_us: Floats, times_us: Floats) -> Floats:
    """When fragments end in a stage, after their ends in the one before it, (messages, fragments).

    e_i = max(e_(i-1), a_i) + t_i is the greatest of all a_l + t_l + ... + t_i.
    """
    sums = np.cumsum(times_us, axis=1)
    ends: Floats = sums + np.maximum.accumulate(before_us - (sums - times_us), axis=1)
    return ends


@cache
def _scores(stage: int) -> Floats:
    """Standard normal numbers of a stage, (messages, fragments)."""
    return normals(uniforms(_SEED, stage, _MESSAGES, _FRAGMENTS)).T
