"""How many fragments at each end of a cut have sizes of their own; those between share one.

Notation  as in chain.py; b: the bottleneck; Q: running sums of G.
Source    docs/theory.md sec. 14.
Cost      O(n).
Exact     a guess, tried in order; the solve without it comes last.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from solvers.exact.chain import LONG
from solvers.line_problem import LineProblem

Floats = NDArray[np.float64]

_SHORT_ENDS = (64, 512, 4_096)

_SETTLED = 1e-13  # of the weight that the ends of a cut may leave in its middle,
_LOST = 1e-11  # or of the latency that long ones may lose by it
_WORTH_SHORTENING = 0.6  # of the fragments: a chain longer than this is not worth the attempt
_WORTH_GUESSING = 0.7  # of the ends that are long enough for every stage: a guess of more is none
_MARGIN = 8  # fragments of each end beyond those of a guess: iterates are not settled yet
_OTHER_END = 48  # fragments of the end across from a long one at least: its sizes need a start


def ends_to_try(lines: LineProblem, k: int) -> list[tuple[int, int] | None]:
    """Return how many fragments of each end to let differ, in order of trial; None: all.

    Behind the bottleneck b the dual leaves e_b by a factor of G_{s..b-1} / G_{s+1..b} a step, for
    a stage s before it (docs/theory.md sec. 14); mirrored for the stages after it. Few of these
    matter: where b is the slowest stage at every size short ends are tried first, else those that
    the stages of greater overheads need.
    """
    b = int(np.argmax(lines.g + lines.G * (lines.B / k)))
    Q = np.concatenate([[0.0], np.cumsum(lines.G)])
    before = (Q[b] - Q[:b]) / np.maximum(Q[b + 1] - Q[1 : b + 1], 1e-300)
    after = (Q[b + 2 :] - Q[b + 1]) / np.maximum(Q[b + 1 : -1] - Q[b], 1e-300)
    lost = 1.0 - lines.G / lines.G[b] if lines.G[b] > 0.0 else np.zeros(lines.n)
    certain = _settling(before, lost[:b]), _settling(after, lost[b + 1 :])
    if lines.g[b] == lines.g.max() and lines.G[b] == lines.G.max():
        guesses = [(length, length) for length in _SHORT_ENDS]
    else:  # a path stays elsewhere for an overhead: stages of lesser ones are left in a step or two
        dearer = lines.g > lines.g[b]
        first = _settling(before[dearer[:b]], lost[:b][dearer[:b]])
        last = _settling(after[dearer[b + 1 :]], lost[b + 1 :][dearer[b + 1 :]])
        shortest = min(max(first, last) // 4, _OTHER_END)
        first, last = max(first, shortest) + _MARGIN, max(last, shortest) + _MARGIN
        # Ends of one length are given up at the first rough iterate that has not settled.
        guess = first, last + (first == last)
        guesses = [guess] if sum(guess) < _WORTH_GUESSING * sum(certain) else []
    worth = [ends for ends in [*guesses, certain] if sum(ends) <= _WORTH_SHORTENING * k]
    return [*sorted(worth, key=sum), None]


def _settling(factors: Floats, lost: Floats) -> int:
    """Steps until the slowest of these geometric sequences has died away; where that is long, until
    what is left costs nothing: of a weight left, the middle loses this share.
    """
    slowest = float(factors.max(initial=0.0))
    if slowest >= 1.0 - 1e-9:
        return 1 << 40
    steps = 8 + int(np.log(_SETTLED) / np.log(max(slowest, 1e-3)))
    if steps <= LONG:
        return steps
    left = np.minimum(_LOST / np.maximum(lost, _LOST), 1.0)
    return 8 + int((np.log(left) / np.log(np.maximum(factors, 1e-3))).max())
