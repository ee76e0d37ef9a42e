"""The real-valued relaxation of a problem whose stages are lines: what the exact methods work on.

Notation  n stages; g, G: (n,) µs and µs/byte; B: message; m, M: least and greatest size, bytes.
The class is every cut into k real sizes in [m, M] that sum to B, for every admitted k. Alignment
is dropped, and the last fragment's limits are those of all: a relaxation, so that its optimum
bounds every whole-byte schedule, and the one for which convexity in k is proven (results sec. 2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from domain.derived import Derived
from domain.pipeline import Pipeline, Stage
from domain.problem import Problem
from solvers.kernels import line_latency_us
from solvers.kernels.native_dual import NativeLines, native_lines

Floats = NDArray[np.float64]

_ALIKE = 1e-9  # relative: times that differ by less are one
_SAFETY = 1.0 - 1e-13  # a few roundings of sums of at most 130 terms


@dataclass(frozen=True)
class LineProblem(Derived):
    """g, G (n,) in µs and µs/byte; B, m, M in bytes; admitted k from k_min to k_max."""

    g: Floats
    G: Floats
    B: float
    m: float
    M: float
    k_min: int
    k_max: int

    @classmethod
    def of(cls, problem: Problem) -> LineProblem | None:
        """Return the relaxation, or None where a stage is not one line over the admitted sizes."""
        return problem.derived(_lines_of)

    @property
    def n(self) -> int:
        """The number of stages."""
        return len(self.g)

    def free_bytes(self, k: int) -> float:
        """Return what is left of the message when each of k fragments has its least size."""
        return max(0.0, self.B - k * self.m)

    def ends_are_slowest(self, k: int) -> bool:
        """Return whether equal sizes are the real optimum of k: no stage takes longer than the
        first and the last do (docs/theory.md sec. 14).
        """
        times = self.g + self.G * (self.B / k)
        slowest = float(times.max())
        return self.n > 1 and float(min(times[0], times[-1])) >= slowest * (1.0 - _ALIKE)

    def pipeline(self) -> Pipeline:
        """Return the stages as domain objects without delay, for the evaluator."""
        return Pipeline(
            tuple(
                Stage.of_line(str(j), overhead_us=float(g), ns_per_byte=float(cost) * 1000.0)
                for j, (g, cost) in enumerate(zip(self.g, self.G, strict=True))
            )
        )

    def latency_us(self, x: Floats) -> float:
        """Return the latency in µs of real sizes x (k,), without the constant delay."""
        return line_latency_us(self.g, self.G, x)

    def whole_us(self, stage: int) -> float:
        """Return the time in µs that a stage takes for the message in one piece."""
        return float(self.g[stage] + self.G[stage] * self.B)

    def with_changed(self, stage: int, by: float) -> LineProblem:
        """Return the problem with both costs of a stage changed by a share."""
        factor = np.where(np.arange(self.n) == stage, 1.0 + by, 1.0)
        return replace(self, g=self.g * factor, G=self.G * factor)

    def whole_byte_bound_us(self) -> float:
        """Return a lower bound, µs without delay, on every whole-byte cut of every admitted count.

        Some fragment has at least x = ceil(B/k) bytes. The path that crosses all stages with the
        greatest one meets the others in the first stage or the last: T >= sum(g + G x) +
        (k-1) min(g_0, g_{n-1}) + (B - x) min(G_0, G_{n-1}), rising with x (docs/theory.md sec. 6).
        """
        k = np.arange(self.k_min, self.k_max + 1, dtype=np.float64)
        x = np.ceil(self.B / k * (1.0 - 4e-16))
        g, G = min(self.g[0], self.g[-1]), min(self.G[0], self.G[-1])
        others = (k - 1.0) * g + (self.B - x) * G if self.n > 1 else k * 0.0
        paths = others + (self.g.sum() + self.G.sum() * x)
        return float(paths.min()) * _SAFETY

    @property
    def native(self) -> NativeLines:
        """The same for the kernels in C, made once."""
        return self.derived(_native_of)


def _native_of(lines: LineProblem) -> NativeLines:
    return native_lines(lines.g, lines.G, B=lines.B, m=lines.m, M=lines.M)


def _lines_of(problem: Problem) -> LineProblem | None:
    minimum, maximum = problem.smallest_fragment_bytes, problem.largest_fragment_bytes
    counts = problem.count_range()
    lines = [stage.line_over(minimum, maximum) for stage in problem.pipeline.stages]
    found = [line for line in lines if line is not None]
    if len(found) < len(lines):
        return None
    return LineProblem(
        g=np.array([line.overhead_us for line in found]),
        G=np.array([line.ns_per_byte for line in found]) / 1000.0,
        B=float(problem.message_bytes),
        m=float(minimum),
        M=float(maximum),
        k_min=counts.minimum,
        k_max=counts.maximum,
    )
