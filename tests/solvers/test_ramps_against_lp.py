"""Ramps against the independent linear program, over every admitted count, with many limits."""

from collections import Counter

import numpy as np
import pytest

from domain.errors import Infeasible, StrategyDeclined
from domain.pipeline import pipeline_of_lines
from domain.problem import FragmentLimits, Problem
from domain.schedule import latency_us
from solvers.contract import Candidate, Deadline, SolveOptions
from solvers.heuristics import ramp, ramp_up_down
from tests.solvers.reference_lp import optimum_us
from tests.support.counts import count

SECONDS = 60.0


def random_problem(rng: np.random.Generator, stages: int) -> Problem:
    """Zeros, ties and nearly equal costs; sizes limited on both sides; at most 12 fragments."""
    g = np.where(rng.random(stages) < 0.25, 0.0, 10.0 ** rng.uniform(-1, 2, stages))
    G = np.where(rng.random(stages) < 0.15, 0.0, 10.0 ** rng.uniform(0, 2, stages))
    if rng.random() < 0.2:
        g, G = np.round(g), np.round(G)
    if rng.random() < 0.1:
        G = G[0] * (1.0 + 1e-9 * rng.random(stages))
    if stages == 3 and rng.random() < 0.7:  # the middle stage slowest at every size
        for costs in (g, G):
            slowest = int(costs.argmax())
            costs[[slowest, 1]] = costs[[1, slowest]]
    total = int(10.0 ** rng.uniform(1.0, 4.5))
    limits = FragmentLimits(
        int(rng.choice([1, 1, 7, 100])),
        [None, None, max(1, total // 2), max(1, total // 4)][rng.integers(4)],
        max_fragments=int(rng.integers(1, 13)),
    )
    rows = [("s", float(overhead), float(cost)) for overhead, cost in zip(g, G, strict=True)]
    return Problem(pipeline_of_lines(rows), total, limits)


def min_us(problem: Problem) -> float:
    """The optimum over all admitted counts and real sizes."""
    counts = problem.count_range()
    return min(
        optimum_us(
            problem.pipeline,
            problem.message_bytes,
            k,
            minimum=problem.smallest_fragment_bytes,
            maximum=problem.largest_fragment_bytes,
        )
        for k in range(counts.minimum, counts.maximum + 1)
    )


def answer(problem: Problem) -> Candidate | None:
    """What the ramp for this number of stages proposes; None where there is none."""
    run = ramp.run if len(problem.pipeline) == 2 else ramp_up_down.run
    try:
        return run(problem, SolveOptions(), Deadline.after(SECONDS))
    except (Infeasible, StrategyDeclined):
        return None


@pytest.mark.parametrize("stages", [2, 3])
def test_without_a_notice_a_ramp_is_the_optimum_over_all_counts(stages: int) -> None:
    """With one it is never below; both happen."""
    rng = np.random.default_rng(7)
    seen: Counter[str] = Counter()
    for _ in range(count(2000, share=30)):
        problem = random_problem(rng, stages)
        candidate = answer(problem)
        if candidate is None:
            continue
        assert candidate.real_sizes is not None
        assert problem.admits(candidate.fragment_bytes)
        value, minimum = latency_us(problem.pipeline, candidate.real_sizes), min_us(problem)
        if candidate.notices:
            assert value >= minimum * (1.0 - 1e-7)
            seen["with notice, above"] += value > minimum * (1.0 + 1e-7)
        else:
            assert value == pytest.approx(minimum, rel=1e-7)
            seen["proven"] += 1
    assert seen["proven"] >= count(500, share=30)
    assert seen["with notice, above"] >= 1


@pytest.mark.parametrize("strategy", ["ramp", "ramp_up_down"])
def test_long_ramps_satisfy_their_recurrence(strategy: str) -> None:
    """Nearly equal stages and a message that takes thousands of fragments."""
    rows = [("a", 0.9, 10.0), ("b", 1.0, 10.01), ("c", 0.95, 9.99)]
    pipeline = pipeline_of_lines(rows[:2] if strategy == "ramp" else rows)
    problem = Problem(pipeline, 2**30)
    candidate = answer(problem)
    assert candidate is not None
    assert candidate.real_sizes is not None
    x = np.array(candidate.real_sizes)
    assert len(x) > 1000
    assert not candidate.notices
    assert x.sum() == pytest.approx(2**30, rel=1e-12)
    peak = int(x.argmax())
    a, b = pipeline.stages[:2]
    for i in range(0, peak, 97):
        assert a.time_us(x[i + 1]) == pytest.approx(b.time_us(x[i]), rel=1e-9)


def test_a_greatest_size_that_needs_very_many_fragments_is_no_effort() -> None:
    """2^48 bytes in at least 50 000 fragments: no pair of ramps that long is ever laid out."""
    rows = [("a", 3.0, 10.0), ("b", 5.0, 10.0), ("c", 2.0, 10.0)]
    limits = FragmentLimits(max_fragment_bytes=2**48 // 50_000)
    problem = Problem(pipeline_of_lines(rows), 2**48, limits)
    candidate = answer(problem)
    assert candidate is None or problem.admits(candidate.fragment_bytes)


def test_a_deadline_that_has_passed_still_gives_a_ramp() -> None:
    """The first cut is always rounded."""
    problem = Problem(pipeline_of_lines([("a", 1.0, 10.0)] * 3), 2**30)
    candidate = ramp_up_down.run(problem, SolveOptions(), Deadline(0.0))
    assert candidate.cut_off
    assert problem.admits(candidate.fragment_bytes)


@pytest.mark.parametrize("overhead_us", [0.0, 1e-300, 1e12])
@pytest.mark.parametrize("ns_per_byte", [0.0, 1e-300, 1e9])
@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.filterwarnings("error")
def test_numbers_at_the_limits_give_a_cut_or_a_reason(
    overhead_us: float, ns_per_byte: float, place: int
) -> None:
    """Ratios that overflow or vanish leave finite sizes and no warning."""
    for stages in (2, 3):
        rows = [("plain", 1.0, 1.0)] * stages
        rows[min(place, stages - 1)] = ("extreme", overhead_us, ns_per_byte)
        for size in (1, 4096, 2**48):
            limits = FragmentLimits(max_fragments=2000)
            problem = Problem(pipeline_of_lines(rows), size, limits)
            candidate = answer(problem)
            if candidate is not None:
                assert problem.admits(candidate.fragment_bytes)
                assert np.isfinite(candidate.real_sizes or ()).all()
