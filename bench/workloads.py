"""Pipelines that the cases measure on: the paper's, and seeded random ones along two axes.

Size is k*n. Severity is how nearly the stages cost the same: far apart, one stage decides and the
linear program is easy; nearly equal, many cuts are nearly optimal and every simplex degenerates.
"""

from __future__ import annotations

import numpy as np

import fitting
from bench.machine import CHECKOUT
from domain.pipeline import Pipeline, pipeline_of_lines
from domain.problem import Problem
from solvers.line_problem import LineProblem

KIB = 1024
MIB = 2**20

# Wang98 Table 1 (Myrinet, GAM): name, µs a fragment, µs a KB of 1024 bytes.
_TABLE_1 = (
    ("sender copy", 7.2, 7.2),
    ("sender host DMA", 5.2, 24.9),
    ("network DMAs and receiver host DMA", 7.5, 24.9),
    ("receiver copy", 7.4, 7.9),
)


def myrinet() -> Pipeline:
    """Wang98 Table 1."""
    return pipeline_of_lines(
        [(name, overhead, cost * 1000.0 / 1024.0) for name, overhead, cost in _TABLE_1]
    )


def example_trace() -> Pipeline:
    """The fit of the example trace, with its fit ranges, as it comes when no options are given.

    Raises AssertionError where it comes out as anything but stages.
    """
    reading = fitting.read((CHECKOUT / "examples" / "local-path-direct.csv").read_bytes())
    model = fitting.fit([reading]).to_model()
    if not isinstance(model, Pipeline):
        raise AssertionError("a direct trace gives stages")
    return model


def random_pipeline(stages: int, *, seed: int, spread: float = 10.0) -> Pipeline:
    """Overheads around 7 µs and costs around 15 ns/byte, log-uniform within a factor `spread`."""
    rng = np.random.default_rng([seed, stages])
    half = np.log(spread) / 2.0
    overheads = 7.0 * np.exp(rng.uniform(-half, half, stages))
    costs = 15.0 * np.exp(rng.uniform(-half, half, stages))
    rows = zip(overheads, costs, strict=True)
    return pipeline_of_lines([(f"stage {j}", float(g), float(G)) for j, (g, G) in enumerate(rows)])


def lines_of(pipeline: Pipeline, message_bytes: int) -> LineProblem:
    """The relaxation that the exact engines solve."""
    lines = LineProblem.of(Problem(pipeline, message_bytes))
    if lines is None:
        raise AssertionError("these pipelines are made of lines")
    return lines
