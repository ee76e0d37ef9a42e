"""Uncertain stages for tests, and the domain's model of one draw."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from analysis.draws import Draws, pipeline_of, project
from domain.aggregate import Aggregate
from domain.machine import Machine
from domain.model import CostModel
from domain.pipeline import FitRange, Stage
from domain.uncertainty import (
    StatedStage,
    UncertainAggregate,
    UncertainLine,
    UncertainPipeline,
    UncertainStage,
)

# Wang et al. 1998, Table 1, as in examples/: µs and ns per byte.
MYRINET = ((7.2, 7.03125), (5.2, 24.31640625), (7.5, 24.31640625), (7.4, 7.71484375))


def stated(lines: Sequence[tuple[float, float]], relative: float) -> UncertainPipeline:
    """A pipeline of typed lines, each parameter known to the same deviation."""
    stages = (
        Stage.of_line(f"stage {j}", overhead_us=overhead, ns_per_byte=per_byte)
        for j, (overhead, per_byte) in enumerate(lines)
    )
    return UncertainPipeline(tuple(StatedStage(stage, relative) for stage in stages))


def model_of(draws: Draws, at: int) -> CostModel:
    """The domain's model of one draw."""
    pipeline = pipeline_of(draws, at)
    if draws.kind == "aggregate":
        return Aggregate(pipeline.stages[0], pipeline.stages[1], draws.delay_us)
    if draws.machine is not None:
        return Machine(pipeline, draws.machine.rules, draws.machine.windows)
    return pipeline


costs = st.floats(0.0, 100.0, allow_subnormal=False)
errors = st.just(0.0) | st.floats(1e-6, 30.0)


@st.composite
def fitted_stages(draw: st.DrawFn) -> UncertainStage:
    """A stage of one to four ranges with any covariances, ends between measured sizes."""
    brackets = sorted(draw(st.lists(st.integers(2, 5000), max_size=6, unique=True)))
    pairs = list(zip(brackets[0::2], brackets[1::2], strict=False))
    lines = []
    for pair in [*pairs, None]:
        overhead, per_byte = draw(costs), draw(costs)
        sd, other = draw(errors), draw(errors)
        both = draw(st.floats(-1.0, 1.0)) * sd * other
        end = None if pair is None else draw(st.integers(pair[0], pair[1] - 1))
        lines.append(
            UncertainLine(
                FitRange(overhead, per_byte, end),
                overhead - draw(st.floats(0.0, 5.0)),
                per_byte - draw(st.floats(0.0, 5.0)),
                (sd**2, both, other**2),
                pair,
            )
        )
    return UncertainStage("fitted", tuple(lines), draw(st.integers(1, 100)), 0.02, 0.05)


@st.composite
def stated_stages(draw: st.DrawFn) -> StatedStage:
    """A stage of one or two ranges with typed deviations."""
    first = draw(st.none() | st.integers(1, 5000))
    ranges: tuple[FitRange, ...] = (FitRange(draw(costs), draw(costs)),)
    if first is not None:
        ranges = (FitRange(draw(costs), draw(costs), first), *ranges)
    return StatedStage(Stage("stated", ranges), draw(st.floats(0.0, 1.0)))


stages = fitted_stages() | stated_stages()
pipelines = st.builds(
    UncertainPipeline, st.lists(stages, min_size=1, max_size=5).map(tuple), st.floats(0.0, 10.0)
)
aggregates = st.builds(UncertainAggregate, stages, stages, st.floats(0.0, 10.0))


MEASURED_BYTES = tuple(round(64 * 2048 ** (i / 11)) for i in range(12))  # 64 B to 128 KiB


def measured_stage(
    rng: np.random.Generator, overhead_us: float, ns_per_byte: float, deviation: float
) -> UncertainStage:
    """What a fit of a line says of this truth, each of twelve sizes being off by a Gaussian share.

    The estimate has the covariance of weighted least squares; the covariance that is stated has
    the error of one that was estimated with ten degrees of freedom.
    """
    sizes, degrees = np.array(MEASURED_BYTES), len(MEASURED_BYTES) - 2
    off_us = deviation * (overhead_us + ns_per_byte * sizes / 1e3)
    design = np.stack([np.ones(len(sizes)), sizes / 1e3], axis=1) / off_us[:, None]
    true = np.linalg.inv(design.T @ design)
    free = rng.multivariate_normal([overhead_us, ns_per_byte], true, method="cholesky")
    stated = true * rng.chisquare(degrees) / degrees
    covariance = (float(stated[0, 0]), float(stated[0, 1]), float(stated[1, 1]))
    point = project(free[:1], free[1:], np.array(covariance))
    estimate = FitRange(float(point[0][0]), float(point[1][0]))
    line = UncertainLine(estimate, float(free[0]), float(free[1]), covariance)
    return UncertainStage("stage", (line,), degrees, deviation, deviation, MEASURED_BYTES)
