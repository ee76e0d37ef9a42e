"""What a node of branch and bound is divided by: regions of fragments, counts, groups.

Source    own derivation; docs/theory.md sec. 7, "What is divided".
Notation  as in nodes.py.
Cost      O(s R) for s fragments that are told apart and R regions.
Exact     each cut of the node is in one of the two parts, whatever it is divided by.
Traps     weights are a solver's: what is whole to its tolerance is not divided by.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from solvers.ranges.nodes import Node, Relaxed

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WHOLE = 1e-6  # of a number of fragments, and of a fragment: what a solver may miss a whole one by
_LITTLE, _TINY = 1e-9, 1e-300  # weight of fragments that miss nothing
_FEW = 8.0  # fragments of a region or one above that a node is divided by the number of


def divisions(
    node: Node, found: Relaxed, regions_of_ends: Ints, most: int
) -> list[tuple[Node, Node]]:
    """Return pairs of nodes that are together this one, by what its program leaves undecided.

    By which fragment has a region or one above, by the first and by the last fragment of a group
    that has, at most so many of each, and by how many have. None where nothing is left to decide.
    """
    q, R = regions_of_ends, found.weights.shape[1]
    above = np.cumsum(found.weights[:, ::-1], axis=1)[:, ::-1]  # weight in region r or above
    away = np.minimum(above, 1.0 - above)
    away[(away <= WHOLE) | (found.weights <= WHOLE)] = 0.0  # one of those that say the same
    little = _LITTLE * found.missing.sum() + _TINY
    by_fragment = away * (found.missing + little)[:, None]
    scored = [
        (float(by_fragment[i, r]), node.by_fragment(int(i), int(r)))
        for i, r in zip(*np.nonzero(by_fragment), strict=True)
        if node.low[i] < r <= node.high[i]
    ]
    scored.sort(key=lambda one: -one[0])
    pairs = [pair for _, pair in scored[:most]]
    for _, g, r, is_above in _of_groups(node, found, q)[:most]:
        by = {"above": r} if is_above else {"below": r}
        pairs += [node.by_first(g, **by), node.by_last(g, **by)]
    used = np.flatnonzero(found.in_groups.sum(axis=1) > WHOLE)
    if not pairs:
        lows = [(int(g), int(node.group_low[g])) for g in used]
        pairs += [by(g, above=low) for g, low in lows for by in (node.by_first, node.by_last)]
    if not pairs:
        return []
    counts, number = above.sum(axis=0), np.zeros((R, len(found.in_groups)))
    np.add.at(number, q, found.in_groups.T)
    counts = counts + np.cumsum(number.sum(axis=1)[::-1])[::-1]
    return pairs + [node.by_count(r, count) for r, count in _of_counts(node, counts)]


def _of_counts(node: Node, counts: Floats) -> list[tuple[int, int]]:
    """Regions and numbers of fragments in each or above that a node may be divided by."""
    low, high, chosen = node.min_counts, node.max_counts, []
    if node.grouped.any() and low[0] < high[0]:
        chosen.append((0, int(min(max(np.floor(counts[0]), low[0]), high[0] - 1))))
    for r in range(1, len(counts)):
        at = int(np.floor(counts[r]))
        is_off = abs(counts[r] - np.rint(counts[r])) > WHOLE * counts[0]
        is_used = counts[r - 1] - counts[r] > WHOLE
        if is_off and is_used and counts[r] < _FEW and low[r] <= at < high[r]:
            chosen.append((r, at))
    return chosen


def _of_groups(node: Node, found: Relaxed, q: Ints) -> list[tuple[float, int, int, bool]]:
    """What telling apart a fragment of some regions could raise: (µs, g, r, above), most first.

    Fragments in region r or above, or those below it, whichever are fewer.
    """
    scored, R = [], found.weights.shape[1]
    for g in np.flatnonzero(found.in_groups.sum(axis=1) > WHOLE):
        number, paid = np.zeros(R), np.zeros(R)
        np.add.at(number, q, found.in_groups[g])
        np.add.at(paid, q, found.in_groups[g] * np.maximum(found.beyond[g], 0.0))
        total, low = number.sum(), int(node.group_low[g])
        is_one = low == node.group_high[g]
        for r in range(low if is_one else low + 1, int(node.group_high[g]) + 1):
            above = number[r:].sum()
            is_above = bool(is_one or above <= total - above)
            part = above if is_above else total - above
            if part > WHOLE and number[r if is_above else r - 1] > WHOLE:
                each = (paid[r:] if is_above else paid[:r]).sum() / part
                scored.append((float(each) * min(1.0, float(part)), int(g), r, is_above))
    return sorted(scored, key=lambda one: -one[0])
