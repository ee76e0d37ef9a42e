"""How far whole sizes lie off their line on their own, whatever the number of repetitions.

Source    random effects between groups; their variance by Huber's proposal 2 on standardised
          residuals of sizes (Huber 1964; Huber & Ronchetti 2009, sec. 6.4).
Notation  r relative residuals of the centres of sizes (m,); e their standard errors from noise
          within sizes (m,); t the relative standard deviation between sizes in the middle of all, h
          its shape, 1 in the middle, (m,); free how many sizes there are beyond the parameters of
          all lines.
Cost      O(m) a step of a bisection, 60 steps.
Exact     t solves sum min(z^2, K^2) = E[min(Z^2, K^2)] free with z = r / sqrt(t^2 h^2 + e^2), Z
          standard normal; 0 where noise within sizes explains all.
Traps     what disturbs a run for a while, where sizes are measured in order, moves neighbouring
          sizes alike, and lines are then known less well. The plain method of moments is wrong: one
          size that lies off by itself makes t several times too large. Ranges that are not there
          would take up what sizes deviate by. Times of a fraction of a microsecond deviate by half
          of themselves where long ones deviate by a hundredth: one deviation for all sizes would
          hide every range of the long ones. Where single times scatter unevenly, sizes may deviate
          by a part of that beside a constant, and the measurements decide whether they do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fitting.line import Floats

_BOUND = 1.5
_EXPECTED = 0.7785  # E[min(Z^2, 1.5^2)] of a standard normal Z
MAX_DEVIATION = 10.0
_STEPS = 60
_MIN_FREE = 5  # sizes beyond the parameters, for a correlation
_MAX_CORRELATION = 0.8
_UNEVEN, _PART = 1.5, 0.5  # times the least scatter is the greatest one, for a part of it to count


@dataclass(frozen=True, slots=True)
class Shape:
    """A deviation between sizes: a constant one, and this part of the scatter of single times."""

    constant: float = 1.0
    of_scatter: float = 0.0

    def at(self, s: Floats) -> Floats:
        """Return the deviations where single times scatter by s, (m,)."""
        return np.hypot(self.constant, self.of_scatter * s)

    def relative(self, s: Floats) -> Floats:
        """Return h, (m,)."""
        deviation = self.at(s)
        out: Floats = deviation / float(np.median(deviation))
        return out


CONSTANT = Shape()


def parts_of_scatter(s: Floats) -> tuple[float, ...]:
    """Return which parts of the scatter of single times, (m,), are tried."""
    return (0.0,) if float(s.max()) < _UNEVEN * float(s.min()) else (0.0, _PART)


def between_size_deviation(r: Floats, e: Floats, h: Floats, free: int) -> float:
    """Return t, 0 without sizes beyond the parameters; derivation in the header."""
    if free < 1:
        return 0.0
    wanted = _EXPECTED * free

    def found(t: float) -> float:
        z = np.minimum(np.abs(r) / np.maximum(np.hypot(t * h, e), 1e-300), _BOUND)
        return float(z @ z)

    if found(0.0) <= wanted:
        return 0.0
    low, high = 0.0, MAX_DEVIATION
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if found(middle) > wanted else (low, middle)
    return high


def neighbours_correlation(z: Floats, free: int) -> float:
    """Return the correlation of the deviations of neighbouring sizes, 0 to 0.8.

    `z` are standardised residuals (m,), ascending by size. The estimate from residuals of lines
    with p = m - free parameters has an expectation of about rho - (1 + 3 rho + p) / m (Kendall
    1954), which is solved for rho. What is below 0.7 of its standard error, 1 / sqrt(m), is none.
    """
    if free < _MIN_FREE:
        return 0.0
    u = np.clip(z, -_BOUND, _BOUND)
    squares = float(u @ u)
    if squares <= 0.0:
        return 0.0
    m = len(z)
    found = (float(u[1:] @ u[:-1]) / squares + (1 + m - free) / m) / (1.0 - 3.0 / m)
    return min(found, _MAX_CORRELATION) if found > 0.7 / m**0.5 else 0.0
