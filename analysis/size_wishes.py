"""Which sizes are worth a first run, and which a second: beside the best, and where one is suspect.

Source    docs/decisions/0029-own-transfers-decide.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log, sqrt

from analysis.size_evidence import SizeEvidence

_CURVE_GAIN = 0.005  # log time by which the curve's best has to be better than the leader
_VALLEY = 0.1  # another local best within so much of the leader's log time is looked into
_WIDE, _NARROW = 2.1, 1.51  # factors between neighbours beside which no middle is wanted
_SUSPECT = log(1.15)  # a size that much slower than both neighbours, run once
_SUSPECT_NEAR = log(1.5)  # of which one is within so much of the best


def new_sizes(evidence: SizeEvidence, open_sizes: Sequence[int], leader: int) -> list[int]:
    """Return sizes among those that were not run, the most wanted first.

    The curve's best; then middles between the leader and its neighbours until these are a factor of
    1.5 apart, or 2 where a curve holds; then the same, to 2, beside other local bests within 10 %.
    """
    found = list[int]()
    on_curve = [size for size in evidence.known_sizes if size in open_sizes]
    if on_curve:
        best = min(on_curve, key=lambda size: evidence.means[size])
        if evidence.means[best] < evidence.means[leader] - _CURVE_GAIN:
            found.append(best)
    at_leader = evidence.sizes.index(leader)
    for place in (at_leader, *_other_valleys(evidence, at_leader)):
        is_rough = place == at_leader and not evidence.curve.holds
        found += _beside(evidence.sizes, place, open_sizes, _NARROW if is_rough else _WIDE)
    return list(dict.fromkeys(found))


def _other_valleys(evidence: SizeEvidence, leader: int) -> Iterator[int]:
    """The places of measured local bests other than the leader, not much slower than it."""
    log_us = evidence.centres.log_us
    last = len(log_us) - 1
    for place in range(last + 1):
        is_low = (place == 0 or log_us[place - 1] > log_us[place]) and (
            place == last or log_us[place + 1] > log_us[place]
        )
        if place != leader and is_low and log_us[place] - log_us[leader] < _VALLEY:
            yield place


def _beside(
    sizes: Sequence[int], place: int, open_sizes: Sequence[int], factor: float
) -> Iterator[int]:
    """The middles to the neighbours that are further than this factor away; where there is no
    neighbour, the furthest open size within the factor.
    """
    size = sizes[place]
    for neighbour in (place - 1, place + 1):
        if 0 <= neighbour < len(sizes):
            low, high = sorted((size, sizes[neighbour]))
            between = [other for other in open_sizes if low < other < high]
            if between and high > factor * low:
                middle = sqrt(low * high)
                yield min(between, key=lambda other: abs(log(other / middle)))
        elif neighbour < 0:
            yield from [other for other in open_sizes if size / factor <= other < size][:1]
        else:
            yield from [other for other in open_sizes if size < other <= size * factor][-1:]


def suspicious_sizes(evidence: SizeEvidence) -> list[int]:
    """Return sizes that were run once and are 15 % slower than both neighbours, near the best one:
    the size, or an accident?
    """
    centres = evidence.centres
    log_us, found = centres.log_us, []
    for place, size in enumerate(centres.sizes):
        beside = [log_us[at] for at in (place - 1, place + 1) if 0 <= at < len(log_us)]
        if not beside or centres.runs[place] > 1:
            continue
        is_slower = log_us[place] > max(beside) + _SUSPECT
        if is_slower and min(beside) <= log_us.min() + _SUSPECT_NEAR:
            found.append(size)
    return found
