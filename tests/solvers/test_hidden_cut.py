"""The hidden cut against brute force over counts, over whole bytes, and a simulated processor."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from domain.errors import InvalidInput
from domain.pipeline import FitRange, Pipeline, Stage, pipeline_of_lines
from domain.problem import FragmentLimits, Problem
from domain.schedule import latency_us, simulate
from domain.solution import Status
from solvers import solve
from solvers.contract import Deadline
from solvers.exact.lp.lines import solve_count
from solvers.hidden_cut import HiddenCut, HostWork, hidden_cut
from solvers.line_problem import LineProblem
from tests.support.counts import count

MAX_COUNT = 12


def hidden(problem: Problem, host: HostWork, *, shown: Sequence[int] = ()) -> HiddenCut:
    """The cut by the search, without a limit that time could reach."""
    return hidden_cut(
        problem,
        host,
        solve(problem),
        relative_gap=1e-6,
        deadline=Deadline.after(600.0),
        shown=shown,
    )


def pipeline(rng: random.Random) -> Pipeline:
    """Two to five stages of lines."""
    stages = rng.randint(2, 5)
    return pipeline_of_lines(
        [(f"s{j}", rng.uniform(0.0, 20.0), rng.uniform(1.0, 60.0)) for j in range(stages)],
        delay_us=rng.choice([0.0, 5.0]),
    )


def host_of(rng: random.Random, problem: Problem) -> HostWork:
    """Some stages on one or two processors, and a calculation about as long as the message."""
    indices = list(range(len(problem.pipeline)))
    sides = [(0,), (indices[-1],), (0, indices[-1]), tuple(indices[:2]), ()]
    processors = tuple(rng.sample(sides, rng.randint(1, 2)))
    whole_us = problem.pipeline.latency_us([problem.message_bytes])
    return HostWork(rng.choice([0.0, rng.uniform(0.0, 1.2)]) * whole_us, processors)


def real_optimum_us(problem: Problem, host: HostWork) -> tuple[float, float]:
    """By brute force over the counts with the general linear program, and by the written rule."""
    lines = LineProblem.of(problem)
    assert lines is not None
    work, sent = [], []
    for k in range(1, MAX_COUNT + 1):
        solved = solve_count(lines, k, Deadline.after(60.0))
        sent.append(solved.upper_us + problem.pipeline.delay_us)
        equal = [problem.message_bytes / k] * k
        work.append(host.calculation_us + host.work_us(problem, equal))
    values = [max(pair) for pair in zip(work, sent, strict=True)]
    best = sent.index(min(sent))
    by_rule = values[best]
    if sent[best] < work[best]:
        crossing = next(k for k in range(MAX_COUNT) if sent[k] <= work[k])
        by_rule = min(values[max(0, crossing - 1)], values[crossing])
    return min(values), by_rule


def test_equals_brute_force_over_the_counts_and_the_written_rule() -> None:
    rng = random.Random(5)
    for _ in range(count(200, share=4)):
        limits = FragmentLimits(max_fragments=MAX_COUNT)
        problem = Problem(pipeline(rng), rng.randint(2_000, 60_000), limits)
        host = host_of(rng, problem)
        found = hidden(problem, host)
        best, by_rule = real_optimum_us(problem, host)
        assert by_rule == pytest.approx(best, rel=1e-9)
        assert found.lower_bound_us <= best * (1.0 + 1e-9)
        assert found.lower_bound_us >= best * (1.0 - 2e-6)
        assert found.run_us >= best * (1.0 - 1e-9)
        assert found.run_us <= best * 1.01
        assert found.run_us == host.run_us(problem, found.fragment_bytes)
        assert found.status in (Status.OPTIMAL, Status.OPTIMAL_BEFORE_ROUNDING)
        if found.unrounded_us is not None:
            assert found.unrounded_us == pytest.approx(best, rel=2e-6)


def cuts(total: int) -> Iterator[tuple[int, ...]]:
    """Every cut of so many bytes."""
    yield (total,)
    for first in range(1, total):
        for rest in cuts(total - first):
            yield (first, *rest)


def ranged(rng: random.Random) -> Stage:
    """A stage whose cost changes its line, upwards or downwards, at some size."""
    first = FitRange(rng.uniform(0.0, 3.0), rng.uniform(0.0, 900.0), rng.randint(1, 9))
    return Stage("ranged", (first, FitRange(rng.uniform(0.0, 6.0), rng.uniform(0.0, 900.0))))


def test_bound_and_cut_against_every_cut_in_whole_bytes() -> None:
    rng = random.Random(9)
    for case in range(count(400, share=5)):
        lines = [("a", rng.uniform(0.0, 3.0), rng.uniform(0.0, 900.0)) for _ in range(2)]
        stages = list(pipeline_of_lines(lines).stages)
        if case % 2:
            stages.insert(rng.randint(0, 2), ranged(rng))
        limits = rng.choice(
            [
                FragmentLimits(),
                FragmentLimits(min_fragment_bytes=2),
                FragmentLimits(max_fragment_bytes=5),
                FragmentLimits(alignment_bytes=3),
                FragmentLimits(max_fragments=4),
            ]
        )
        problem = Problem(Pipeline(tuple(stages)), rng.randint(2, 11), limits)
        host = host_of(rng, problem)
        found = hidden(problem, host)
        admitted = [cut for cut in cuts(problem.message_bytes) if problem.admits(cut)]
        best = min(host.run_us(problem, cut) for cut in admitted)
        assert problem.admits(found.fragment_bytes)
        assert found.lower_bound_us <= best * (1.0 + 1e-12)
        assert best <= found.run_us * (1.0 + 1e-12)
        if found.status is Status.OPTIMAL:
            assert found.run_us <= best * (1.0 + 1e-6)
        for point in found.points:
            of_count = [cut for cut in admitted if len(cut) == point.fragments]
            least = min(host.run_us(problem, cut) for cut in of_count)
            assert point.bound_us <= least * (1.0 + 1e-12)
            assert least <= point.run_us * (1.0 + 1e-12)


def preempted_us(
    problem: Problem, cut: tuple[int, ...], stage: int, calculation_us: float
) -> float:
    """When all is done where one stage's work interrupts the calculation on its processor."""
    times = simulate(problem.pipeline, cut)
    left, now = calculation_us, 0.0
    for exit_row, size in zip(times.exit_us, cut, strict=True):
        end = exit_row[stage]
        begin = end - problem.pipeline.stages[stage].time_us(size)
        if left <= begin - now:
            break
        left -= begin - now
        now = end
    return max(now + left, times.latency_us)


def test_run_time_is_that_of_a_processor_which_communication_interrupts() -> None:
    rng = random.Random(13)
    for _ in range(count(2000)):
        problem = Problem(
            pipeline_of_lines(
                [(f"s{j}", rng.uniform(0.0, 9.0), rng.uniform(0.0, 90.0)) for j in range(3)]
            ),
            600,
        )
        places = sorted(rng.sample(range(1, 600), rng.randint(0, 5)))
        cut = tuple(b - a for a, b in zip([0, *places], [*places, 600], strict=True))
        stage = rng.randrange(3)
        calculation_us = rng.uniform(0.0, 300.0)
        host = HostWork(calculation_us, ((stage,),))
        simulated = preempted_us(problem, cut, stage, calculation_us)
        assert host.run_us(problem, cut) == pytest.approx(simulated, rel=1e-12)


def test_without_host_work_the_cut_of_least_latency_is_best() -> None:
    rng = random.Random(17)
    for _ in range(count(100)):
        problem = Problem(pipeline(rng), 20_000)
        best = solve(problem)
        found = hidden(problem, HostWork(0.0))
        assert found.run_us == pytest.approx(best.latency_us, rel=1e-5)
        assert found.lower_bound_us <= best.latency_us


def test_counts_that_are_shown_are_solved() -> None:
    problem = Problem(pipeline(random.Random(3)), 20_000)
    found = hidden(problem, HostWork(10.0), shown=range(1, 9))
    assert [point.fragments for point in found.points][:8] == list(range(1, 9))
    for point in found.points:
        assert point.bound_us <= point.run_us <= found.run_us * 100.0


def test_messages_one_after_the_other_take_so_many_times_as_long() -> None:
    problem = Problem(pipeline(random.Random(3)), 20_000)
    once = hidden(problem, HostWork(40.0, ((0,),)))
    thrice = hidden(problem, HostWork(120.0, ((0,),), messages=3))
    assert thrice.run_us == pytest.approx(3.0 * once.run_us, rel=1e-9)
    assert thrice.latency_us == pytest.approx(3.0 * once.latency_us, rel=1e-9)


def test_a_train_against_every_cut_in_whole_bytes() -> None:
    """Of several messages cut alike, simulated as one row of fragments."""
    rng = random.Random(23)
    for _ in range(count(60)):
        lines = [(f"s{j}", rng.uniform(0.0, 3.0), rng.uniform(0.0, 900.0)) for j in range(3)]
        problem = Problem(pipeline_of_lines(lines, delay_us=rng.choice([0.0, 2.0])), 9)
        messages, stages = rng.randint(2, 4), rng.choice([(), (0,), (0, 2)])
        host = HostWork(rng.uniform(0.0, 20.0), (stages,) if stages else (), messages, True)
        found = hidden(problem, host)
        runs = {}
        for cut in cuts(9):
            work_us = sum(problem.pipeline.stages[j].time_us(size) for j in stages for size in cut)
            sent_us = latency_us(problem.pipeline, cut * messages)
            runs[cut] = max(host.calculation_us + messages * work_us, sent_us)
        assert found.run_us == pytest.approx(runs[found.fragment_bytes], rel=1e-12)
        best_us = min(runs.values())
        assert found.lower_bound_us <= best_us * (1.0 + 1e-9)
        assert best_us <= found.run_us * (1.0 + 1e-12)
        assert found.run_us <= best_us * 1.05
        in_turn = hidden(problem, replace(host, are_train=False))
        assert found.run_us <= in_turn.run_us * (1.0 + 1e-9)


def test_a_train_of_one_is_that_message() -> None:
    problem = Problem(pipeline(random.Random(3)), 20_000)
    one = HostWork(40.0, ((0,),))
    assert hidden(problem, replace(one, are_train=True)).run_us == hidden(problem, one).run_us


def test_without_time_the_answer_says_so() -> None:
    problem = Problem(pipeline(random.Random(21)), 20_000)
    host = HostWork(100.0, ((0, 1),))
    found = hidden_cut(
        problem, host, solve(problem), relative_gap=0.0, deadline=Deadline.after(0.0)
    )
    assert found.cut_off
    assert found.status is Status.TIME_LIMIT
    assert found.lower_bound_us <= found.run_us


@pytest.mark.parametrize("stage", [-1, 9])
def test_stages_that_there_are_not_are_refused(stage: int) -> None:
    problem = Problem(pipeline(random.Random(1)), 1000)
    with pytest.raises(InvalidInput, match="indices"):
        hidden(problem, HostWork(0.0, ((stage,),)))


def test_bad_host_work_is_refused() -> None:
    for bad in (-1.0, float("nan"), float("inf")):
        with pytest.raises(InvalidInput):
            HostWork(bad)
    with pytest.raises(InvalidInput):
        HostWork(0.0, messages=0)
