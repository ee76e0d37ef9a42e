"""Whether the level of times moved while a file was written, and how far that may carry a line.

Source    slopes between repetitions, their median (Theil 1950, Sen 1968); means of batches of
          successive values (Law & Carson 1979).
Notation  by row: r relative residuals around the mean of their size, s their scale, w = 1 / s^2;
          T turns: equal parts of the file, each with a repetition of every size, or where sizes
          follow each other all first repetitions, all second ones, ...; B means of r by turn (T,),
          W sums of w; K batches of turns; phi = sum w r^2 / freedom, 1 for normal noise.
Cost      O(N + T^2).
Exact     no: what moves slower than half of a file is seen as its trend alone.
Traps     a disturbance of some turns is no trend, and the line drops it: slopes have a median, and
          turns that lie far off are brought in. Around their own mean the repetitions of a size
          that follow each other show nothing of what moved all of them: batches are asked only
          where repetitions are spread over the file. The first turn may be a warm-up. What moves
          all sizes alike moves their line as a whole, and gains between sizes hardly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fitting.repetitions import Floats, Ints, residuals

_MIN_REPETITIONS, _MAX_TURNS = 5, 24
_SPREAD = 0.5  # of a uniform spread over the file have the repetitions of a size
_ROUNDING = 1e-12  # relative scatter of times that do not differ
_KNOWN = 0.25  # of the weight of a turn in the middle has one that says something
_FAR = 3.0  # standard deviations that a turn lies off at most
# Batches, and phi times their squares that one file in a thousand of unmoved times has.
_BATCHES = ((2, 10.83), (4, 5.42), (8, 3.47))
_ALIKE = 2.0  # batches are alike themselves: the error holds the truth so widened (simulated)
_SURE = 3.5  # standard errors of a trend; of 2000 unmoved files 2 are told to move (simulated)
_OF_TREND = 0.5  # of it is the standard error: what comes after the file may be at its last level


@dataclass(frozen=True, slots=True)
class Drift:
    """`change` is the relative one from the first to the last repetitions of a size, 0 where none
    is sure; `deviation` the relative standard deviation of the whole file's level.
    """

    change: float = 0.0
    deviation: float = 0.0


UNMOVED = Drift()


def drift_of(order: Ints, y: Floats, by_size: Floats, start: Ints) -> Drift:
    """Return what the rows of a file say; arguments are those of `repetitions_of`."""
    count = np.diff(np.append(start, len(y)))
    if float(np.median(count)) < _MIN_REPETITIONS:
        return UNMOVED
    u, scale = residuals(y, by_size, start, count)
    s = np.repeat(np.maximum(scale, 0.1 * float(np.median(scale))), count)
    kept = np.isfinite(u) & (s > _ROUNDING)
    kept[start] = False
    freedom = float(kept.sum() - np.logical_or.reduceat(kept, start).sum())
    if freedom < _MIN_REPETITIONS:
        return UNMOVED
    many = np.repeat(count, count)
    r, w = np.where(kept, u, 0.0) * np.repeat(scale, count), np.zeros(len(y))
    w[kept] = 1.0 / s[kept] ** 2
    r, q = (_less_means(part, w, start, count) for part in (r, order / len(y)))
    phi = max(float(w @ r**2) / freedom, 1e-300)
    is_spread = (12.0 * float(np.average(q**2, weights=w))) ** 0.5 >= _SPREAD
    place = order / len(y) if is_spread else (np.arange(len(y)) - np.repeat(start, count)) / many
    turns = min(int(np.median(count)), _MAX_TURNS)
    turn, B, W = _turns(r, w, (place * turns).astype(np.int64), turns, phi)
    change = _change(turn, B, phi * float(np.mean(1.0 / W)))
    of_batches = _deviation_of_batches(B, W, phi) if is_spread else 0.0
    return Drift(change, max(of_batches, _OF_TREND * abs(change)))


def _less_means(value: Floats, w: Floats, start: Ints, count: Ints) -> Floats:
    total = np.maximum(np.add.reduceat(w, start), 1e-300)
    out: Floats = value - np.repeat(np.add.reduceat(w * value, start) / total, count)
    return out


def _turns(r: Floats, w: Floats, turn: Ints, turns: int, phi: float) -> tuple[Ints, Floats, Floats]:
    """Places of turns that something is known of; their B, those far off brought in; their W."""
    W: Floats = np.bincount(turn, w, turns).astype(np.float64)
    B = np.bincount(turn, w * r, turns) / np.maximum(W, 1e-300)
    known = np.flatnonzero((W > 0.0) & (_KNOWN * float(np.median(W[W > 0.0])) <= W))
    B, W = B[known], W[known]
    middle = float(np.median(B))
    sd = np.maximum(1.4826 * float(np.median(np.abs(B - middle))), np.sqrt(phi / W))
    brought: Floats = np.clip(B, middle - _FAR * sd, middle + _FAR * sd)
    return known, brought, W


def _change(turn: Ints, B: Floats, variance: float) -> float:
    """From the first to the last turn, 0 where it is not sure; `variance` is the mean of turns'."""
    T = len(B)
    if T < _MIN_REPETITIONS - 1:
        return 0.0
    i, j = np.triu_indices(T, 1)
    slopes = (B[j] - B[i]) / (turn[j] - turn[i])
    change = float(np.median(slopes)) * float(turn[-1] - turn[0])
    return change if abs(change) >= _SURE * (12.0 * variance / T) ** 0.5 else 0.0


def _deviation_of_batches(B: Floats, W: Floats, phi: float) -> float:
    """The standard error of the mean of the file's level; 0 where batches scatter as rows do."""
    total, found = float(W.sum()), 0.0
    for K, rare in _BATCHES:
        if len(B) < K:
            break
        batch = np.arange(len(B)) * K // len(B)
        weight = np.bincount(batch, W, K)
        mean = np.bincount(batch, W * B, K) / weight
        squares = float(weight @ (mean - float(W @ B) / total) ** 2) / (K - 1.0)
        if squares > rare * phi:
            found = max(found, squares / total)
    return float(_ALIKE * found**0.5)
