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

Ints = NDArray[np.int64]

WHOLE = 1e-6  # of a number of fragments, and of a fragment: what a solver may miss a whole one by
_LITTLE, _TINY = 1e-9, 1e-300  # weight of fragments that miss nothing
_MAX_SINGLE = 20  # fragments up to which the number of all is decided


def divisions(
    node: Node, found: Relaxed, regions_of_ends: Ints, most: int
) -> list[tuple[Node, Node]]:
    """Return pairs of nodes that are together this one, by what its program leaves undecided.

    By how many fragments have a region or one above, by which fragment has, or by the first
    fragment of a group that has; at most so many, those that may raise most first. None where
    nothing is left to decide.
    """
    R, counted = found.weights.shape[1], node.min_counts[0] + node.max_counts[0]
    if node.grouped.sum() == 1 and node.max_counts[0] <= _MAX_SINGLE:
        return [node.by_count(0, int(counted) // 2)]
    above = np.cumsum(found.weights[:, ::-1], axis=1)[:, ::-1]  # weight in region r or above
    away = np.minimum(above, 1.0 - above)
    away[away <= WHOLE] = 0.0
    little = _LITTLE * found.missing.sum() + _TINY
    by_fragment = away * (found.missing + little)[:, None]
    scored: list[tuple[float, int, tuple[int, int, int]]] = []
    for i, r in zip(*np.nonzero(by_fragment), strict=True):
        if node.low[i] < r <= node.high[i]:
            scored.append((float(by_fragment[i, r]), 0, (int(i), int(r), 0)))
    scored += _of_groups(found, regions_of_ends, R)
    counts = above.sum(axis=0)
    if node.grouped.any():
        number = np.zeros((R, len(found.in_groups)))
        np.add.at(number, regions_of_ends, found.in_groups.T)
        counts = counts + np.cumsum(number.sum(axis=1)[::-1])[::-1]
    off = np.abs(counts - np.rint(counts))
    off[(node.min_counts >= node.max_counts) | (off <= WHOLE * counts[0])] = 0.0
    by_count = off * by_fragment.sum(axis=0)
    for r in np.flatnonzero(by_count):
        scored.append((float(by_count[r]), 2, (int(r), int(np.floor(counts[r])), 0)))
    scored.sort(key=lambda one: -one[0])
    pairs = [_parts(node, kind, which) for _, kind, which in scored[:most]]
    if pairs:
        return pairs
    more = _of_more(node, found, float(counts[0]))
    return [] if more is None else [more]


def _parts(node: Node, kind: int, which: tuple[int, int, int]) -> tuple[Node, Node]:
    one, other, is_above = which
    if kind == 0:
        return node.by_fragment(one, other)
    if kind == 2:
        return node.by_count(one, other)
    return node.by_first(one, above=other) if is_above else node.by_first(one, below=other)


def _of_groups(found: Relaxed, q: Ints, R: int) -> list[tuple[float, int, tuple[int, int, int]]]:
    """What telling a group's first fragment of some regions apart could raise: (µs, g, r, above).

    Fragments in region r or above, or those below it, whichever are fewer.
    """
    scored = []
    for g in np.flatnonzero(found.in_groups.sum(axis=1) > WHOLE):
        number, paid = np.zeros(R), np.zeros(R)
        np.add.at(number, q, found.in_groups[g])
        np.add.at(paid, q, found.in_groups[g] * np.maximum(found.beyond[g], 0.0))
        total = number.sum()
        for r in range(1, R):
            above = number[r:].sum()
            is_above = bool(above <= total - above)
            part = above if is_above else total - above
            if part <= WHOLE:
                continue
            each = (paid[r:] if is_above else paid[:r]).sum() / part
            scored.append((float(each) * min(1.0, float(part)), 1, (int(g), r, int(is_above))))
    return scored


def _of_more(node: Node, found: Relaxed, count: float) -> tuple[Node, Node] | None:
    """By the number of all fragments where they are few, else by one more that is told apart."""
    if not node.grouped.any():
        return None
    low, high = int(node.min_counts[0]), int(node.max_counts[0])
    if low < high and count <= _MAX_SINGLE:
        return node.by_count(0, int(min(max(np.floor(count), low), high - 1)))
    g = int(np.argmax(np.where(node.grouped, found.in_groups.sum(axis=1) + _TINY, 0.0)))
    if g <= len(node.low) - 2 - g:
        return node.by_first(g, above=int(node.group_low[g]))
    return node.by_last(g)
