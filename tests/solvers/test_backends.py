"""What solves which kind of model; another kind takes part once it is registered."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar

import numpy as np
import pytest

import solvers
from domain.aggregate import Aggregate
from domain.errors import StrategyDeclined
from domain.machine import Machine, StageRules
from domain.model import CostModel
from domain.pipeline import Pipeline, Stage, pipeline_of_lines
from domain.problem import PROBLEMS, FragmentLimits, MessageProblem, problem_of
from domain.solution import Solution, Status, Strategy
from models.documents import dump_model, load_model
from solvers import backends
from solvers.assemble import solution_of
from solvers.contract import Candidate, SolveOptions
from solvers.default_settings import BaselineSet

WIRE = Stage.of_line("wire", overhead_us=2.0, ns_per_byte=4.0)
MODELS: tuple[CostModel, ...] = (
    pipeline_of_lines([("a", 1.0, 2.0), ("b", 3.0, 4.0)], delay_us=5.0),
    Aggregate(Stage.of_line("total", overhead_us=3.0, ns_per_byte=6.0), WIRE, 5.0),
    Machine(
        pipeline_of_lines([("a", 1.0, 2.0), ("b", 3.0, 4.0)], delay_us=5.0),
        (StageRules(), StageRules(lanes=2)),
    ),
)


@pytest.mark.parametrize("model", MODELS, ids=[model.kind for model in MODELS])
def test_every_kind_is_registered_everywhere(model: CostModel) -> None:
    """A problem, a backend and a stored document for each."""
    problem = problem_of(model, 4096, FragmentLimits())
    assert problem.model == model
    assert load_model(dump_model(model)) == model
    backend = backends.backend_of(model)
    assert backend.is_quick(problem, Strategy.REPEAT)
    sizes = np.array([1000, 1024], dtype=np.int64)
    q, r = 4096 // sizes, 4096 % sizes
    repeated = backend.repeated_us(model, q, sizes, r) + model.delay_us
    cuts = [[1000] * 4 + [96], [1024] * 4]
    assert repeated.tolist() == pytest.approx([model.latency_us(cut) for cut in cuts])
    equal = model.latency_us([1024.0] * 4)
    assert model.equal_us(1024.0, 4) + model.delay_us == pytest.approx(equal)


def test_the_kinds_are_the_same_in_all_registries() -> None:
    """None is known to one and not to another."""
    assert set(PROBLEMS) == {model.kind for model in MODELS} == set(backends._MODULES)


def test_machines_have_no_tables() -> None:
    """Nor does anything stand in for them."""
    machine = next(model for model in MODELS if isinstance(model, Machine))
    with pytest.raises(StrategyDeclined, match="no plan tables of the kind machine"):
        solvers.compile_table(machine, FragmentLimits(), min_message_bytes=1, max_message_bytes=9)


@pytest.mark.parametrize("model", MODELS[:2], ids=lambda model: model.kind)
def test_the_other_kinds_have_tables(model: CostModel) -> None:
    """Of cuts and of repeated sizes, over the whole range."""
    table = solvers.compile_table(model, FragmentLimits(), min_message_bytes=1, max_message_bytes=9)
    for entries in (table.cuts, table.repeats):
        assert (entries[0].message_bytes, entries[-1].message_bytes) == (1, 9)


# ---- another kind --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wire:
    """One stage that is never shared: the last fragment ends when all have passed."""

    kind: ClassVar = "wire"
    stages: ClassVar = None

    stage: Stage
    delay_us: float = 0.0

    @property
    def range_ends(self) -> tuple[int, ...]:
        return ()

    def costs(self) -> dict[str, Stage]:
        return {"wire": self.stage}

    def words(self) -> dict[str, object]:
        return {}

    def latency_us(self, fragment_bytes: Sequence[float]) -> float:
        return self.delay_us + sum(map(self.stage.time_us, fragment_bytes))

    def equal_us(self, fragment_bytes: float, count: int) -> float:
        return count * self.stage.time_us(fragment_bytes)


@dataclass(frozen=True)
class WireProblem(MessageProblem):
    wire: Wire
    message_bytes: int
    limits: FragmentLimits
    fragment_cap: int = 1000
    allow_refragmentation: bool = False

    @property
    def model(self) -> Wire:
        return self.wire


def solve_wire(problem: WireProblem, strategy: Strategy, options: SolveOptions) -> Solution:
    whole = Candidate((problem.message_bytes,))
    bound_us = problem.model.latency_us(whole.fragment_bytes)
    return solution_of(problem, strategy, whole, bound_us=bound_us, relative_gap=0.0)


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    """A third kind, registered for the test."""
    module = ModuleType("a_wire_backend")
    module.BACKEND = backends.Backend(  # type: ignore[attr-defined]
        solve=solve_wire,
        is_quick=lambda *_: True,
        baselines=lambda *_: BaselineSet((), None),
        repeated_us=lambda model, q, s, r: q * model.stage.time_us(s) + r * 0.0,
        costs=lambda _: 1,
    )
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(backends, "_MODULES", {**backends._MODULES, Wire.kind: module.__name__})
    monkeypatch.setattr("domain.problem.PROBLEMS", {**PROBLEMS, Wire.kind: WireProblem})
    return Wire(WIRE, 1.0)


def test_another_kind_is_solved_by_its_backend(wire: Wire) -> None:
    """Through the same functions as all others; nothing else knows of it."""
    problem = problem_of(wire, 1000, FragmentLimits())
    assert solvers.is_quick(problem, Strategy.AUTO)
    assert solvers.baselines(problem).entries == ()
    solution = solvers.solve(problem)
    assert solution.latency_us == pytest.approx(1.0 + 2.0 + 4.0)
    assert solution.status is Status.OPTIMAL
    assert problem.digest() != problem_of(Wire(WIRE), 1000, FragmentLimits()).digest()


def test_a_pipeline_is_its_own_evaluator() -> None:
    """The model's latency is that of domain.schedule."""
    from domain.schedule import latency_us

    assert isinstance(MODELS[0], Pipeline)
    cut = (1000, 2000, 1096)
    assert MODELS[0].latency_us(cut) == latency_us(MODELS[0], cut)
