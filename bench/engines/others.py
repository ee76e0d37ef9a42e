"""Every library that is compared with, in the order of the tables."""

from __future__ import annotations

from bench.engines import highs, linear_solver, model_builder, pulp_cbc
from bench.engines.primal import Engine

OTHERS: tuple[Engine, ...] = (
    pulp_cbc.CBC,
    linear_solver.CBC,
    linear_solver.CLP,
    linear_solver.GLOP,
    model_builder.PRIMAL_SIMPLEX,
    model_builder.DUAL_SIMPLEX,
    highs.SIMPLEX,
    highs.INTERIOR_POINT,
)
