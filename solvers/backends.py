"""What solves each kind of model. Another kind needs a line here, and a backend of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from domain.errors import StrategyDeclined
from domain.model import CostModel
from domain.plan_table import PlanTable
from domain.solution import Solution, Strategy
from solvers.contract import SolveOptions
from solvers.default_settings import BaselineSet

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Compile: TypeAlias = Callable[..., PlanTable]


@dataclass(frozen=True, slots=True)
class Backend:
    """Functions for the problems of one kind of model.

    `solve(problem, strategy, options)`; `is_quick(problem, strategy)`: whether that is certain to
    end within 50 ms; `baselines(problem, current_bytes)`: what the setting in use, None for no
    known one, and the default settings cost;
    `repeated_us(model, q, s, r)`: latencies in µs, without the delay, of q fragments of s bytes and
    a remainder of r, arrays of one shape; `costs(model)`: by how many numbers one size is priced;
    `most_fragments`: into how many no size is looked for that cuts a message, None where any count
    is priced alike;
    `compile_table` as `solvers.compile_table`, None where this kind has no tables.
    """

    solve: Callable[[Any, Strategy, SolveOptions], Solution]
    is_quick: Callable[[Any, Strategy], bool]
    baselines: Callable[[Any, int | None], BaselineSet]
    repeated_us: Callable[[Any, Ints, Ints, Ints], Floats]
    costs: Callable[[Any], int]
    compile_table: Compile | None = None
    most_fragments: int | None = None


_MODULES: Mapping[str, str] = {
    "stages": "solvers.stages",
    "aggregate": "solvers.aggregate.solve",
    "machine": "solvers.machine.solve",
}


def backend_of(model: CostModel) -> Backend:
    """Return what solves models of this kind; its module is imported at the first call."""
    return _backend(model.kind)


@cache
def _backend(kind: str) -> Backend:
    backend: Backend = import_module(_MODULES[kind]).BACKEND
    return backend


def table_compiler(model: CostModel) -> Compile:
    """Return what compiles tables of this kind. Raises StrategyDeclined where there is none."""
    found = backend_of(model).compile_table
    if found is None:
        raise StrategyDeclined(f"there are no plan tables of the kind {model.kind}")
    return found
