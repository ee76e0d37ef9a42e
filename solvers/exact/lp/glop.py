"""A linear program as sparse arrays, solved by OR-Tools' GLOP.

Cost      one simplex solve.
Traps     GLOP may end ABNORMAL on badly scaled rows; then the next parameter set is tried, and what
          gap is left is stated by the bounds of whoever asks. fill_model_from_sparse_data is on a
          helper class of OR-Tools rather than its public surface: the version is locked, and the
          building of the model through the public classes costs ten times more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from solvers.contract import Deadline

if TYPE_CHECKING:
    from scipy import sparse

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SparseModel:
    """minimise cost.v subject to row_low <= A v <= row_high, low <= v <= high."""

    cost: Floats
    low: Floats
    high: Floats
    row_low: Floats
    row_high: Floats
    matrix: sparse.csr_matrix


def sparse_matrix(
    values: Floats, rows: Ints, columns: Ints, *, shape: tuple[int, int]
) -> sparse.csr_matrix:
    """Return the matrix of these entries, in rows.

    SciPy's matrices and OR-Tools are imported by the first model: most problems need none, and a
    command would spend a third of its start on them.
    """
    from scipy import sparse

    return sparse.csr_matrix((values, (rows, columns)), shape=shape)


# GLOP's own tolerances of 1e-7 leave the two bounds up to 1e-8 apart, and further attempts
# start for nothing. `make bench` has the times that these choices rest on.
_TOLERANCES = " primal_feasibility_tolerance:1e-10 dual_feasibility_tolerance:1e-10"
# In order of trial: the dual simplex is the fastest here and rarely fails.
PARAMETER_SETS = (
    "use_dual_simplex:true use_preprocessing:false" + _TOLERANCES,
    _TOLERANCES,
    "solve_dual_problem:ALWAYS_DO" + _TOLERANCES,
    "use_dual_simplex:true use_scaling:false",
)


def run_glop(
    model: SparseModel, parameters: str, deadline: Deadline
) -> tuple[Floats, Floats] | None:
    """Return variable values and row multipliers, or None where the solver ended without any."""
    from ortools.linear_solver.python import model_builder_helper as helper

    builder: Any = helper.ModelBuilderHelper()  # its stub has a wrong type for the arrays
    builder.fill_model_from_sparse_data(
        model.low, model.high, model.cost, model.row_low, model.row_high, model.matrix
    )
    solver = helper.ModelSolverHelper("glop")
    # A basis that cycles is met by the next parameter set, not by the deadline.
    iterations = 1000 + 100 * model.matrix.shape[0]
    solver.set_solver_specific_parameters(f"{parameters} max_number_of_iterations:{iterations}")
    solver.set_time_limit_in_seconds(max(1e-3, deadline.remaining_s))
    solver.solve(builder)
    if not solver.has_solution():
        return None
    values, multipliers = np.array(solver.variable_values()), np.array(solver.dual_values())
    if not len(multipliers) or not (np.isfinite(values).all() and np.isfinite(multipliers).all()):
        return None
    return values, np.abs(multipliers)
