"""The real-valued relaxation of a problem whose stages are lines: what the exact methods work on.

Notation  n stages; g, G: (n,) µs and µs/byte; B: message; m, M: least and greatest size, bytes.
The class is every cut into k real sizes in [m, M] that sum to B, for every admitted k. Alignment
is dropped, and the last fragment's limits are those of all: a relaxation, so that its optimum
bounds every whole-byte schedule, and the one for which convexity in k is proven (results sec. 2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from domain.pipeline import Pipeline, Stage
from domain.problem import Problem
from solvers.kernels.native import Choice
from solvers.kernels.native_recurrence import native_recurrence

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LineProblem:
    """g, G (n,) in µs and µs/byte; B, m, M in bytes; admitted k from k_least to k_greatest."""

    g: Floats
    G: Floats
    B: float
    m: float
    M: float
    k_least: int
    k_greatest: int

    @classmethod
    def of(cls, problem: Problem) -> LineProblem | None:
        """The relaxation, or None where some stage is not one line over the admitted sizes."""
        least, greatest = problem.least_fragment_bytes, problem.greatest_fragment_bytes
        counts = problem.count_range()
        lines = [stage.line_over(least, greatest) for stage in problem.pipeline.stages]
        found = [line for line in lines if line is not None]
        if len(found) < len(lines):
            return None
        return cls(
            g=np.array([line.overhead_us for line in found]),
            G=np.array([line.ns_per_byte for line in found]) / 1000.0,
            B=float(problem.message_bytes),
            m=float(least),
            M=float(greatest),
            k_least=counts.least,
            k_greatest=counts.greatest,
        )

    @property
    def n(self) -> int:
        """The number of stages."""
        return len(self.g)

    def free_bytes(self, k: int) -> float:
        """What is left of the message when each of k fragments has its least size."""
        return max(0.0, self.B - k * self.m)

    def pipeline(self) -> Pipeline:
        """The stages as domain objects without delay, for the judge."""
        return Pipeline(
            tuple(
                Stage.of_line(str(j), overhead_us=float(g), ns_per_byte=float(cost) * 1000.0)
                for j, (g, cost) in enumerate(zip(self.g, self.G, strict=True))
            )
        )

    def latency_us(self, x: Floats, *, kernels: Choice = "auto") -> float:
        """Latency of real sizes x (k,), without the constant delay; the recurrence in C or NumPy.

        Raises InvalidInput where `kernels` asks for C and there is no build.
        """
        native = native_recurrence(kernels)
        if native is not None:
            return native.latency_of_lines_us(self.g, self.G, x)
        entry = np.zeros(len(x))
        for overhead, cost in zip(self.g, self.G, strict=True):
            t = overhead + cost * x
            done = np.cumsum(t)
            entry = np.maximum.accumulate(entry - (done - t)) + done
        return float(entry[-1])
