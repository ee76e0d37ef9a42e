"""The primal in one place: which rows there are, as arrays for the sparse interfaces.

Notation  x_i: bytes of fragment i; tau_ij: its exit time from stage j, µs; variables are ordered
          x_0..x_{k-1}, tau_00, tau_01, ..., tau_{k-1,n-1}.

    tau_00 - G_0 x_0                 >= g_0
    tau_ij - tau_{i-1,j} - G_j x_i   >= g_j        i >= 1
    tau_ij - tau_{i,j-1} - G_j x_i   >= g_j        j >= 1
    sum_i x_i                         = B
    x_i >= m, tau_ij >= 0; minimise tau_{k-1,n-1}
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from solvers.line_problem import LineProblem

Floats = NDArray[np.float64]

TIME_LIMIT_S = 30.0  # what each library gets; it ends with its own word for that


@dataclass(frozen=True, slots=True)
class EngineRun:
    """How an engine ended: its own word for it, and its objective in µs where it has one."""

    status: str
    objective_us: float | None
    certified_gap: float | None = None


@dataclass(frozen=True, slots=True)
class Engine:
    """A side of the comparison; `solve` builds the model, solves it and reads the objective."""

    name: str
    solve: Callable[[LineProblem, int], EngineRun]


@dataclass(frozen=True, slots=True)
class PrimalArrays:
    """The >= rows, and the row of the bytes apart from them."""

    cost: Floats
    low: Floats
    matrix: sparse.csr_matrix
    row_low: Floats
    byte_row: Floats


def primal_arrays(lines: LineProblem, k: int) -> PrimalArrays:
    """All rows at once, without a Python loop."""
    n, columns = lines.n, k + k * lines.n
    cell = np.arange(k * n).reshape(k, n)
    here = np.concatenate([cell[:1, 0], cell[1:].ravel(), cell[:, 1:].ravel()])
    before = np.concatenate([cell[:-1].ravel(), cell[:, :-1].ravel()])
    fragment, stage = np.divmod(here, n)
    rows = np.arange(len(here))
    matrix = sparse.csr_matrix(
        (
            np.concatenate([np.ones(len(here)), np.full(len(before), -1.0), -lines.G[stage]]),
            (
                np.concatenate([rows, rows[1:], rows]),
                np.concatenate([k + here, k + before, fragment]),
            ),
        ),
        shape=(len(here), columns),
    )
    cost = np.zeros(columns)
    cost[-1] = 1.0
    low = np.zeros(columns)
    low[:k] = lines.m
    byte_row = np.zeros(columns)
    byte_row[:k] = 1.0
    return PrimalArrays(cost, low, matrix, lines.g[stage], byte_row)
