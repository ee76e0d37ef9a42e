"""How far off a line may be: covariance and 95 % intervals of its two parameters.

Source    the sandwich of Huber (1967) with the correction HC3 (MacKinnon & White 1985); the same
          with sizes as the independent units; Huber's covariance for noise that is even on the
          relative scale, with his correction for few samples (Huber & Ronchetti 2009, sec. 7.6).
          The deviation between sizes (fitting/between.py) is a random effect of each of them; the
          degrees of freedom of the sum are Satterthwaite's (1946).
Notation  as in fitting/robust.py; D (N, p) derivatives of f / (f s); psi the weighted residual and
          `slope` its derivative by the residual, (N,); A, V matrices (p, p); p = 2, or 1 where one
          parameter is held at 0; m sizes.
Cost      O(N).
Exact     no: an M-estimate's intervals are asymptotic. Coverage is measured by simulation (tests).
Traps     samples of one run may err together (a size that sits off the line by itself), few samples
          make a sandwich too small, and many hide what is common to a size: the deviation between
          sizes is added to the first two covariances, and of all three the widest interval counts.
          A clock's step errs the same way in all samples of a size, and no number of repetitions
          makes that smaller. Both columns of D are nearly in proportion where sizes are close: D is
          centred and the covariance carried back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from domain.fit import CONFIDENCE
from fitting.line import Floats, Line
from fitting.robust import TUKEY, scaled
from fitting.samples import Ints, SortedSamples


@dataclass(frozen=True, slots=True)
class Known:
    """What is known beside the samples of one range.

    `tick` is the clock's step as a share of the greatest time; `common` the relative covariance of
    what all samples of a cell share, (m, m), `freedom` how many sizes there are beyond the
    parameters in all ranges together; `start` the entries where those that share it begin.
    """

    tick: float
    common: Floats
    freedom: int
    start: Ints


_ROUNDING = 1e-12  # of the greatest time: a smaller error is no variance

# Covariances of noise and of the deviation between sizes, and the former's degrees of freedom.
_View = tuple[Floats, Floats, float]


@dataclass(frozen=True, slots=True)
class Uncertain:
    """What a range's line may be off by.

    `errors` and `half` are the standard errors and half widths of a and b, `covariance` (2, 2)
    theirs. `free` are a and b without the constraint that neither is below 0, at the weights of
    the fit, `free_covariance` (2, 2) theirs, known from so many `degrees_of_freedom`.
    """

    errors: tuple[float, float]
    half: tuple[float, float]
    covariance: Floats
    free: tuple[float, float]
    free_covariance: Floats
    degrees_of_freedom: float


def uncertainty(
    samples: SortedSamples,
    x: Floats,
    y: Floats,
    fitted: tuple[Line, Floats, Floats],
    *,
    known: Known,
) -> Uncertain:
    """Return how far off a and b may be.

    `fitted` is the line with the scale and the weight of every sample. The half widths beside a
    clipped parameter are those of the free estimate: where sizes do not tell the two apart, the
    clipped one may well be more than 0, and the other one that much less.
    """
    line, scale, weights = fitted
    f = line.at(x)
    w = samples.c * weights / (f * scale) ** 2
    middle = float(w @ x / w.sum())
    spread = float(np.sqrt(w @ (x - middle) ** 2 / w.sum()))
    centred = np.stack([np.ones(len(x)), (x - middle) / spread], axis=1) / (f * scale)[:, None]
    back = np.array([[1.0, -middle / spread], [0.0, 1.0 / spread]])
    both = [
        (back @ N @ back.T, back @ B @ back.T, free)
        for N, B, free in _covariances(samples, x, y, fitted, centred, known)
    ]
    errors, half = _widest(both, known.freedom)
    widest = max(both, key=lambda view: float(np.trace(view[0] + view[1])))
    covariance = widest[0] + widest[1]
    root = np.sqrt(np.maximum(np.diag(covariance), 5e-324))
    known_errors = np.where(errors > _ROUNDING, errors, 0.0)
    shape = covariance / np.outer(root, root)
    free_covariance = shape * np.outer(known_errors, known_errors) + 0.0  # and no -0
    degrees = float(np.min(_shared(widest, known.freedom)))
    if line.clipped is not None:
        free = 1 if line.clipped == "a" else 0
        D = ((x if free else np.ones(len(x))) / (f * scale))[:, None]
        alone = _widest(_covariances(samples, x, y, fitted, D, known), known.freedom)
        errors[[free]], half[[free]] = np.maximum(alone, (errors[[free]], half[[free]]))
        covariance = np.diag(errors**2)
    return Uncertain(
        errors=(float(errors[0]), float(errors[1])),
        half=(float(half[0]), float(half[1])),
        covariance=covariance,
        free=_free(x, y, w, line),
        free_covariance=free_covariance,
        degrees_of_freedom=degrees,
    )


def _free(x: Floats, y: Floats, w: Floats, line: Line) -> tuple[float, float]:
    """The least squares line at these weights, whatever its signs."""
    if line.clipped is None:
        return line.a, line.b
    middle_x, middle_y = float(w @ x / w.sum()), float(w @ y / w.sum())
    dx = x - middle_x
    b = float(w @ (dx * (y - middle_y)) / (w @ dx**2))
    return middle_y - b * middle_x, b


def quantile(freedom: float) -> float:
    """Return the two-sided quantile of Student's t."""
    return float(stdtrit(freedom, 0.5 + CONFIDENCE / 2.0))


def _widest(found: list[_View], freedom: int) -> tuple[Floats, Floats]:
    """The largest standard errors and half widths, (p,) each."""
    errors, half = [], []
    for N, B, free in found:
        errors.append(np.sqrt(np.maximum(np.diag(N), 0.0) + np.maximum(np.diag(B), 0.0)))
        half.append(
            errors[-1] * np.array([quantile(one) for one in _shared((N, B, free), freedom)])
        )
    return np.max(errors, axis=0), np.max(half, axis=0)


def _shared(view: _View, freedom: int) -> Floats:
    """Degrees of freedom of each variance, (p,), at least 1.

    A sum of variances N of n and B of m degrees of freedom has (N + B)^2 / (N^2 / n + B^2 / m) of
    them (Satterthwaite).
    """
    N, B, free = view
    noise, between = (np.maximum(np.diag(V), 0.0) for V in (N, B))
    total = noise + between
    squares = noise**2 / max(1.0, free) + between**2 / max(1.0, freedom)
    shared = np.where(squares > 0.0, total**2 / np.maximum(squares, 5e-324), max(1.0, free))
    return np.maximum(1.0, shared)


def _gram(D: Floats, c: Floats) -> Floats:
    out: Floats = (D * c[:, None]).T @ D
    return out


def _covariances(
    samples: SortedSamples,
    x: Floats,
    y: Floats,
    fitted: tuple[Line, Floats, Floats],
    D: Floats,
    known: Known,
) -> list[_View]:
    """One for each view of what is independent."""
    line, scale, weights = fitted
    c, p, u = samples.c, D.shape[1], scaled(x, y, line, scale)
    psi = TUKEY * u * weights
    slope = weights
    if bool((weights < 1.0).any()):
        slope = np.where(weights > 0.0, (1.0 - u**2) * (1.0 - 5.0 * u**2), 0.0)
    kept, m = float(c @ (weights > 0.0)), len(samples.sizes)
    A = _gram(D, c * slope)
    inverse = np.linalg.pinv(_gram(D, c * weights), hermitian=True)
    definite = float(np.linalg.eigvalsh(A)[0]) > 1e-3 * float(np.linalg.eigvalsh(A)[-1])
    bread = np.linalg.inv(A) if definite else inverse
    lever = np.einsum("ij,jk,ik->i", D, inverse, D) * weights
    alone = _gram(D * (psi / np.maximum(1.0 - lever, 0.1))[:, None], c)
    steps = _by_group(samples.start, c * weights * known.tick / (line.at(x) * scale), D)
    shared = _by_group(known.start, c * slope / scale, D)
    between = bread @ (shared.T @ known.common @ shared) @ bread
    rounding = bread @ (steps.T @ steps / 12.0) @ bread
    views = [
        (bread @ alone @ bread + rounding, between, kept - p),
        (_even(D, c, psi, slope) + rounding, between, kept - p),
    ]
    if m > p:
        sums = _by_group(samples.start, c * psi, D)
        V = bread @ (sums.T @ sums) @ bread * (m / (m - p)) + rounding
        views.append((V, np.zeros_like(V), float(max(m - p, known.freedom))))
    return views


def _by_group(start: Ints, value: Floats, D: Floats) -> Floats:
    """Sums of value times D over the samples of each size or cell, (m, p)."""
    out: Floats = np.add.reduceat(D * value[:, None], start, axis=0)
    return out


def _even(D: Floats, c: Floats, psi: Floats, slope: Floats) -> Floats:
    """Huber's covariance: the same relative noise everywhere."""
    n, p = float(c.sum()), D.shape[1]
    mean = max(float(c @ slope) / n, 0.1)
    correction = 1.0 + p / n * float(c @ (slope - mean) ** 2) / n / mean**2
    spread = float(c @ psi**2) / max(1.0, n - p) * (correction / mean) ** 2
    out: Floats = np.asarray(np.linalg.pinv(_gram(D, c), hermitian=True) * spread, np.float64)
    return out
