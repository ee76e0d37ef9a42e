"""How alike successive repetitions are, and what that does to the mean of a size.

Source    an autoregressive process of the first order (Box & Jenkins 1970, ch. 3); the expectations
          of its sample moments about the mean of n values, which are exact.
Notation  rho the correlation of successive times; n repetitions of a size, one after the other; A
          the variance of their mean by that of one time; psi Tukey's weighted residuals. Where
          sizes take turns, n batches of as many rows each, in the order of the file, stand for
          them: what moves a batch moves all its sizes, and the mean of all is off for every size.
Cost      O(N).
Exact     A and the expectation of the lag-1 ratio are, for the process; rho is an estimate.
Traps     what disturbs a run for longer than a size takes moves all repetitions of it: around their
          own mean they scatter little and their correlation seems low. The ratio expected around a
          mean of n is solved for rho, instead of the ratio itself. Repetitions of a size that do
          not follow each other in the file say nothing, and are taken as independent. Near 1 a
          small error of rho is a large one of A: ranges are found by what the correlation is at
          least, or none would be found, and intervals are those of what it is at most. Of a file
          that drifts from end to end no correlation says how far it will go: its mean is taken to
          be off by no more than a batch is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_MIN_REPETITIONS = 8
_MIN_FOLLOWING = 0.8  # of the repetitions follow another one of their size
_SURE = 2.0  # standard errors of the ratio below which there is no correlation
_BELOW, _ABOVE = 1.5, 0.5  # standard errors of the ratio
_MIN_BATCHES, _MAX_BATCHES = 4, 32
_MAX_FOLLOWING = 0.2  # of the repetitions, where sizes take turns
_MAX_COMMON = 0.5  # relative error; beyond it the file says nothing of any size
_BATCHES_ABOVE = 1.0  # standard errors of the ratio of batches, which are few
_REACH = 4.685  # scales, for a time to count
_NEIGHBOURS = 3  # on both sides whose scales are looked at
_RHO: Floats = np.linspace(0.0, 0.98, 197)


@dataclass(frozen=True, slots=True)
class Repetitions:
    """The correlation of successive times, which lies between `at_least` and `at_most`; `in_order`
    where sizes ascend, or descend, in the file, so that neighbouring sizes follow each other too.
    `common_error` is the relative standard error that the times of all sizes have in common where
    sizes take turns, beyond that of independent times.
    """

    at_least: float = 0.0
    at_most: float = 0.0
    in_order: bool = False
    common_error: float = 0.0

    def widening(self, rho: float, n: Floats) -> Floats:
        """Return by how much the variance of the mean of n times is above s^2 / n, (m,).

        s^2 is the variance around that mean: s^2 = (1 - A) n / (n - 1) times that of the process.
        """
        n = np.maximum(n, 2.0)
        if rho == 0.0:
            return np.ones(len(n))
        A = variance_of_mean(rho, n)
        out: Floats = (n - 1.0) * A / (1.0 - A)
        return out

    def alike(self, rho: float, n: float, sizes: int) -> Floats:
        """Return the correlation of the means of n times, 0, 1, ... sizes apart, (sizes,)."""
        out = np.zeros(sizes)
        out[0] = 1.0
        if rho > 0.0 and self.in_order:
            A = float(variance_of_mean(rho, np.array([max(n, 2.0)]))[0])
            first = rho * (1.0 - rho**n) ** 2 / ((n * (1.0 - rho)) ** 2 * A)
            out[1:] = first * rho ** (n * np.arange(sizes - 1))
        return out


INDEPENDENT = Repetitions()


def variance_of_mean(rho: float | Floats, n: float | Floats) -> Floats:
    """Return A for n values; rho below 1."""
    gap = 1.0 - np.asarray(rho, np.float64)
    out: Floats = ((1.0 + rho) / gap - 2.0 * rho * (1.0 - rho**n) / (n * gap**2)) / n
    return out


def repetitions_of(order: Ints, y: Floats, by_size: Floats, start: Ints) -> Repetitions:
    """Return what the rows of a file say. `order` (N,) are the rows by size and then as they come,
    `y` (N,) their times, `by_size` (N,) the times of each size sorted, `start` (m,) where each size
    begins.
    """
    count = np.diff(np.append(start, len(y)))
    n = float(np.median(count))
    begins = order[start]
    in_order = len(start) > 1 and abs(int(np.sign(np.diff(begins)).sum())) == len(start) - 1
    inside = np.ones(len(y), dtype=bool)
    inside[start] = False
    follows = inside[1:] & (np.diff(order) == 1)
    pairs = float(follows.sum())
    if pairs < _MAX_FOLLOWING * float(inside.sum()):
        u, scale = _residuals(y, by_size, start, count)
        in_turn = np.empty(len(y))
        known = by_size[start + (count - 1) // 2] > 0.0  # of a time of 0 no part is known
        in_turn[order] = np.clip(u, -_REACH, _REACH) * np.repeat(np.where(known, scale, 0.0), count)
        return Repetitions(common_error=_common_error(in_turn, int(n)))
    if n < _MIN_REPETITIONS or pairs < _MIN_FOLLOWING * float(inside.sum()):
        return INDEPENDENT
    psi = _psi(y, by_size, start, count)
    squares = float(psi @ psi)
    if squares <= 0.0:
        return INDEPENDENT
    ratio = float((psi[1:] * psi[:-1])[follows].sum()) / squares
    if ratio + 1.0 / n <= _SURE / pairs**0.5:
        return Repetitions(0.0, 0.0, in_order)
    error = ((1.0 - min(1.0, ratio**2)) / pairs) ** 0.5
    both = [ratio - _BELOW * error, ratio + _ABOVE * error]
    at_least, at_most = np.interp(both, _expected_ratio(n), _RHO)
    return Repetitions(float(at_least), float(at_most), in_order)


def _common_error(residuals: Floats, repetitions: int) -> float:
    """The relative standard error of the mean of all rows, beyond that of independent ones.

    `residuals` (N,) are relative to the middles of sizes, in the order of the file.
    """
    n = min(repetitions, _MAX_BATCHES, len(residuals) // 2)
    if n < _MIN_BATCHES:
        return 0.0
    r = np.array([batch.mean() for batch in np.array_split(residuals, n)])
    r -= r.mean()
    squares = float(r @ r)
    if squares <= 0.0:
        return 0.0
    ratio = float(r[1:] @ r[:-1]) / squares
    error = ((1.0 - min(1.0, ratio**2)) / (n - 1.0)) ** 0.5
    rho = float(np.interp(ratio + _BATCHES_ABOVE * error, _expected_ratio(n), _RHO))
    s2 = squares / (n - 1.0)
    wide = float(Repetitions().widening(rho, np.array([n], np.float64))[0])
    return min(_MAX_COMMON, float(max(0.0, s2 / n * (min(wide, float(n)) - 1.0)) ** 0.5))


def residuals(y: Floats, by_size: Floats, start: Ints, count: Ints) -> tuple[Floats, Floats]:
    """Return relative residuals around the middle of each size in units of their scale there, (N,),
    NaN for outliers; and these scales, (m,). Arguments are those of `repetitions_of`.
    """
    u, scale = _residuals(y, by_size, start, count)
    return np.where(np.abs(u) < _REACH, u, np.nan), scale


def _psi(y: Floats, by_size: Floats, start: Ints, count: Ints) -> Floats:
    """Residuals less the mean of each size; those of outliers are 0."""
    u, _ = residuals(y, by_size, start, count)
    kept = np.isfinite(u).astype(np.float64)
    u = np.where(kept > 0.0, u, 0.0)
    mean = np.add.reduceat(u, start) / np.maximum(np.add.reduceat(kept, start), 1.0)
    out: Floats = (u - np.repeat(mean, count)) * kept
    return out


def _residuals(y: Floats, by_size: Floats, start: Ints, count: Ints) -> tuple[Floats, Floats]:
    """Relative residuals around the middle of each size in units of their scale there, (N,), and
    these scales, (m,).

    The scale is the middle one of neighbouring sizes: a size by its own scale would weigh as much
    where its times happen to scatter little, and that is where they follow each other less.
    """
    low, middle, high = (
        by_size[start + ((count - 1) * share).astype(np.int64)] for share in (0.25, 0.5, 0.75)
    )
    middle = np.maximum(middle, max(float(by_size.max()) * 1e-15, 5e-324))
    padded = np.pad((high - low) / middle / 1.349, _NEIGHBOURS, mode="symmetric")
    scale = np.median(np.lib.stride_tricks.sliding_window_view(padded, 2 * _NEIGHBOURS + 1), axis=1)
    with np.errstate(over="ignore"):  # times next to nothing scatter by nothing
        u = (y / np.repeat(middle, count) - 1.0) / np.repeat(np.maximum(scale, 1e-280), count)
    return u, scale


def _expected_ratio(n: float) -> Floats:
    """The expectation of sum r_i r_{i+1} / sum r_i^2 around the mean of n times, for each _RHO."""
    A = variance_of_mean(_RHO, n)
    edge = (1.0 - _RHO**n) / (n * (1.0 - _RHO))  # covariance of the first time and the mean
    out: Floats = ((n - 1.0) * _RHO - (n + 1.0) * A + 2.0 * edge) / (n * (1.0 - A))
    return np.maximum.accumulate(out)
