"""A line by least squares on relative residuals, both parameters >= 0.

Source    weighted regression with the noise in proportion to the time: weights 1/f^2, found by
          iteration (Carroll & Ruppert 1988, ch. 2: generalised least squares).
Notation  as in fitting/line.py; c weights (N,), how many samples an entry stands for; r the
          relative residual (y - f) / f.
Cost      O(N) an iteration, some iterations.
Exact     each iteration is (fitting/line.py); the fixed point solves the estimating equations.
Traps     weights 1/y^2 in place of 1/f^2 pull the line below the middle of the noise, by twice the
          variance: 0.1 % at 2 % of noise, 50 % at 50 %. Not robust: one slow sample moves it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fitting.line import MIN_SCALE, Line, first_line, is_settled, solve

Floats = NDArray[np.float64]

_STEPS = 40
_SETTLED = 1e-9


def weighted_line(x: Floats, y: Floats, c: Floats) -> Line:
    """Return the line; weights are those of the line itself."""
    line = first_line(x, y, c)
    for _ in range(_STEPS):
        f = line.at(x)
        line = solve(x, y, c / f**2)
        if is_settled(line, f, x, _SETTLED):
            break
    return line


def relative_scale(x: Floats, y: Floats, c: Floats, line: Line) -> float:
    """Return the standard deviation of relative residuals."""
    f = line.at(x)
    # From a line at 0 the residual of a time that is not 0 has no bound; its square must have one.
    r = np.minimum(np.abs(y - f) / f, 1e9)
    return max(MIN_SCALE, float(np.sqrt(float(c @ r**2) / max(1.0, float(c.sum()) - 2.0))))
