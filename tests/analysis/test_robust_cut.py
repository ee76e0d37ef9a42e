"""The cut of least worst regret in an uncertain answer, priced again by the evaluator."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import solvers
from analysis.draws import draw
from analysis.robust_cut import CHOSEN_BY
from analysis.uncertainty import UncertaintyQuestion, assess_solution
from domain.pipeline import FitRange, Pipeline, Stage
from domain.problem import FragmentLimits, Problem
from domain.schedule import latency_us
from domain.uncertain_answer import RobustChoice
from domain.uncertainty import seed_of, stated_model
from solvers.contract import Deadline
from solvers.exact.structured import solve_count
from solvers.line_problem import LineProblem
from tests.support.uncertain import model_of


def pipeline() -> Pipeline:
    return Pipeline(
        tuple(
            Stage.of_line(name, overhead_us=g, ns_per_byte=G)
            for name, g, G in (("copy", 2.0, 9.0), ("link", 6.0, 24.0), ("store", 3.0, 15.0))
        ),
        delay_us=4.0,
    )


def asked(
    model: Pipeline, message: int, limits: FragmentLimits | None = None, *, robust: bool = True
) -> tuple[RobustChoice | None, tuple[int, ...], UncertaintyQuestion]:
    limits = limits or FragmentLimits()
    question = UncertaintyQuestion(
        stated_model(model, 0.15), message, limits, draws=100, robust=robust
    )
    solution = solvers.solve(Problem(model, message, limits))
    found = assess_solution(question, solution)
    assert found is not None
    return found.robust, solution.schedule.fragment_bytes, question


@pytest.mark.parametrize("message", [3000, 20_000])
def test_its_regrets_are_those_of_the_evaluator_in_each_draw(message: int) -> None:
    model = pipeline()
    robust, cut, question = asked(model, message)
    assert robust is not None
    assert sum(robust.fragment_bytes) == message
    assert len(robust.fragment_bytes) == len(cut)
    lines = LineProblem.of(Problem(model, message))
    assert lines is not None
    draws = draw(question.model, question.draws, seed_of(question.model))
    regrets = []
    for at in range(CHOSEN_BY):
        drawn = model_of(draws, at)
        assert isinstance(drawn, Pipeline)
        there = replace(lines, g=draws.overhead_us[:, 0, at], G=draws.ns_per_byte[:, 0, at] / 1e3)
        best_us = solve_count(there, len(cut), Deadline.after(60.0)).upper_us + 4.0
        assert best_us <= latency_us(drawn, cut) * (1.0 + 1e-9)
        regrets.append(latency_us(drawn, robust.fragment_bytes) / best_us - 1.0)
    assert robust.draws == CHOSEN_BY
    assert robust.worst_regret == pytest.approx(max(regrets), abs=2e-3)  # a size may be better yet
    assert robust.lower_bound - 1e-9 <= robust.worst_regret <= robust.answer_worst_regret
    assert robust.worst_regret < 0.7 * robust.answer_worst_regret
    assert robust.is_proven
    assert robust.worst_regret - robust.lower_bound < 1e-3  # that whole bytes have added
    assert robust.other_draws is not None
    assert robust.answer_in_other_draws is not None
    assert robust.other_draws.worst_drawn < robust.answer_in_other_draws.worst_drawn
    assert robust.is_best_size == (message == 3000)
    assert robust.size_worst_regret >= 0.0


def test_the_limits_are_kept() -> None:
    limits = FragmentLimits(max_fragment_bytes=1024, alignment_bytes=64)
    robust, _, _ = asked(pipeline(), 6000, limits)
    assert robust is not None
    assert max(robust.fragment_bytes) <= 1024
    assert all(one % 64 == 0 for one in robust.fragment_bytes[:-1])
    assert robust.size_bytes % 64 == 0


def test_it_is_not_sought_unless_asked_for_nor_where_bytes_are_handed_on() -> None:
    assert asked(pipeline(), 3000, robust=False)[0] is None
    moving = replace(pipeline().stages[0], handoff_bytes=1)
    assert asked(replace(pipeline(), stages=(moving, *pipeline().stages[1:])), 3000)[0] is None


def test_of_stages_with_ranges_the_best_of_a_pool_is_taken() -> None:
    """Priced again by the evaluator: no worse than the answer in the draws that chose it."""
    ranged = Stage("disk", (FitRange(5.0, 10.0, 1000), FitRange(20.0, 8.0)))
    model = replace(pipeline(), stages=(*pipeline().stages, ranged))
    robust, cut, question = asked(model, 6000)
    assert robust is not None
    assert sum(robust.fragment_bytes) == 6000
    assert not robust.is_proven
    assert robust.lower_bound == 0.0
    draws = draw(question.model, question.draws, seed_of(question.model))
    worst = {robust.fragment_bytes: 0.0, cut: 0.0}
    for at in range(CHOSEN_BY):
        there = model_of(draws, at)
        assert isinstance(there, Pipeline)
        latencies = [latency_us(there, one) for one in worst]
        # What else is in the pool only raises regrets.
        worst = {
            one: max(known, us / min(latencies) - 1.0)
            for (one, known), us in zip(worst.items(), latencies, strict=True)
        }
    assert worst[robust.fragment_bytes] <= robust.worst_regret + 1e-9
    assert worst[cut] <= robust.answer_worst_regret + 1e-9
    assert robust.worst_regret <= robust.answer_worst_regret


def test_the_pool_keeps_the_cap_on_fragments() -> None:
    """In some draws more than are allowed would pay."""
    ranged = Stage("disk", (FitRange(5.0, 10.0, 1000), FitRange(20.0, 8.0)))
    model = replace(pipeline(), stages=(*pipeline().stages, ranged))
    question = UncertaintyQuestion(
        stated_model(model, 0.5), 60_000, FragmentLimits(), draws=20, fragment_cap=3, robust=True
    )
    found = assess_solution(question, solvers.solve(Problem(model, 60_000, fragment_cap=3)))
    assert found is not None
    assert found.robust is not None
    assert len(found.robust.fragment_bytes) <= 3


def test_no_repeated_size_of_a_small_message_has_less_worst_regret() -> None:
    model, message = pipeline(), 800
    robust, cut, question = asked(model, message)
    assert robust is not None
    assert robust.is_best_size
    lines = LineProblem.of(Problem(model, message))
    assert lines is not None
    draws = draw(question.model, question.draws, seed_of(question.model))
    sizes = [*range(20, 801, 13), robust.size_bytes]
    worst = np.full(len(sizes), -1.0)
    for at in range(CHOSEN_BY):
        there = replace(lines, g=draws.overhead_us[:, 0, at], G=draws.ns_per_byte[:, 0, at] / 1e3)
        best_us = solve_count(there, len(cut), Deadline.after(60.0)).upper_us + 4.0
        latencies = [model_of(draws, at).latency_us(repeated(message, size)) for size in sizes]
        worst = np.maximum(worst, np.array(latencies) / best_us - 1.0)
    assert robust.size_worst_regret >= worst[-1] - 1e-9  # over what may be better still
    assert (worst >= worst[-1] - 2e-3).all()


def repeated(message: int, size: int) -> tuple[int, ...]:
    full, rest = divmod(message, size)
    return (size,) * full + ((rest,) if rest else ())
