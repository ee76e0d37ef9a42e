"""Limits around the real solvers while they are deep in native code, where no one asks Python."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from app.pool.protocol import LocalEngine, SolveTask
from domain.pipeline import Pipeline, pipeline_of_lines
from domain.problem import Problem
from domain.solution import Status, Strategy
from tests.app.engine_support import GUARD_S, MEMORY_BYTES

MIB = 2**20


def heavy() -> Problem:
    """64 stages next to each other in speed: some 100 000 fragments, gigabytes where all wait."""
    draw = random.Random(3)
    rows = [(str(j), draw.uniform(1e-4, 1e-3), draw.uniform(1.0, 1.05)) for j in range(64)]
    return Problem(pipeline_of_lines(rows), 2**30)


def light() -> Problem:
    return Problem(Pipeline(heavy().pipeline.stages[:3]), 4096)


@pytest.fixture(params=[0.0, 1.0], ids=["killed at the limit", "ends at the limit"])
def engine(request: pytest.FixtureRequest) -> Iterator[LocalEngine]:
    engine = LocalEngine(1, MEMORY_BYTES + 256 * MIB, grace_s=request.param)
    yield engine
    engine.close()


def test_the_best_so_far_is_the_answer_and_says_how_far_it_is(engine: LocalEngine) -> None:
    """The time limit ends a solve in the middle of an iteration; what was reported is kept."""
    ticket = engine.submit(SolveTask(heavy(), Strategy.AUTO, 1e-9, 2.0))
    solution = engine.result(ticket, GUARD_S)
    assert solution.status is Status.TIME_LIMIT
    assert heavy().admits(solution.schedule.fragment_bytes)
    assert 0.0 < solution.lower_bound_us <= solution.latency_us
    assert solution.relative_gap < 0.01
    after = engine.submit(SolveTask(light(), Strategy.AUTO, 1e-6, 10.0))
    assert engine.result(after, GUARD_S).status is not Status.TIME_LIMIT


def test_memory_that_is_not_there_costs_closeness_and_not_the_answer() -> None:
    """A kernel that is refused its arrays leaves the best so far, with its true gap."""
    engine = LocalEngine(1, MEMORY_BYTES)
    try:
        ticket = engine.submit(SolveTask(heavy(), Strategy.AUTO, 1e-9, 3.0))
        solution = engine.result(ticket, GUARD_S)
        assert heavy().admits(solution.schedule.fragment_bytes)
        assert 0.0 < solution.lower_bound_us <= solution.latency_us
    finally:
        engine.close()
