"""Every count: against brute force over whole bytes, and against another program over real ones."""

from __future__ import annotations

import random
from dataclasses import replace
from math import inf

import pytest

from bench.data_movers import data_mover
from domain.errors import Infeasible, StrategyDeclined
from domain.machine import Machine, StageRules, Window
from domain.pipeline import FitRange, Pipeline, Stage
from domain.problem import FragmentLimits, MachineProblem
from domain.solution import Solution, Status, Strategy
from solvers.contract import Candidate, Deadline, SolveOptions
from solvers.machine import exact, solve
from solvers.machine.exact import Exact, exact_cut
from solvers.machine.regions import regions_of
from solvers.machine.solve import solve_machine
from tests.solvers.machine_programs import min_us
from tests.solvers.outside import all_cuts
from tests.solvers.random_machines import machine_of, small_machine
from tests.support.counts import count

OPTIONS = SolveOptions()
LATER = Deadline(float("inf"))
CLOSE = 1.0 + 1e-9
LIMITS = (
    FragmentLimits(),
    FragmentLimits(),
    FragmentLimits(min_fragment_bytes=2),
    FragmentLimits(max_fragment_bytes=3),
    FragmentLimits(alignment_bytes=2, max_fragments=4),
)
WANG = ([7.2, 5.2, 7.5, 7.4], [0.00703125, 0.02431640625, 0.02431640625, 0.00771484375])
CASES = {
    "two slots everywhere": (
        machine_of(*WANG, windows=[(1, 2, 2, 0.0), (2, 3, 2, 0.0), (3, 4, 2, 0.0)]),
        184.348272,
        6,
    ),
    "two rails": (machine_of(*WANG, lanes=[1, 2, 2, 1]), 132.257065, 6),
    "one core for both copies": (machine_of(*WANG, processors=[(1, 4)]), 184.348272, 6),
    "credits": (machine_of(*WANG, windows=[(1, 4, 3, 5.0)]), 184.569346, 5),
}


def small_problem(rng: random.Random) -> MachineProblem | None:
    """A message of few bytes with some limits; None where these admit no cut of it."""
    total = rng.randint(2, 8)
    machine = small_machine(rng, has_bytes=rng.random() < 0.4, total=total)
    problem = MachineProblem(machine, total, rng.choice(LIMITS))
    try:
        problem.count_range()
    except Infeasible:
        return None
    return problem


def best_whole_us(problem: MachineProblem) -> float:
    """The least latency over every admitted whole-byte cut, by trying all."""
    cuts = filter(problem.admits, all_cuts(problem.message_bytes))
    return min(problem.machine.latency_us(cut) for cut in cuts)


def best_real_us(problem: MachineProblem) -> float:
    """The least latency over real cuts of every admitted count, by another program."""
    best, counts = inf, problem.count_range()
    for k in range(counts.minimum, counts.maximum + 1):
        for bounded in regions_of(problem, k):
            region = bounded.region
            given = list(region.places[-len(problem.machine.windows) or len(region.places) :])
            found = min_us(
                problem.machine,
                float(problem.message_bytes),
                k,
                places=given,
                least=region.minimum,
                most=region.most,
            )
            best = min(best, found)
    return best + problem.machine.delay_us


def solved_exactly(problem: MachineProblem, options: SolveOptions = OPTIONS) -> Exact:
    """What `exact` finds from one fragment, or from as few as are admitted."""
    start = solve_machine(problem, Strategy.AUTO, SolveOptions(time_limit_s=1e-6))
    return exact_cut(problem, Candidate(start.schedule.fragment_bytes), options, LATER)


def check_status(
    problem: MachineProblem, solution: Solution, whole_us: float, real_us: float
) -> None:
    """The status says no more than what brute force shows."""
    gap = 1.0 + OPTIONS.relative_gap
    assert solution.lower_bound_us <= min(whole_us, real_us) * CLOSE
    assert solution.latency_us >= whole_us / CLOSE
    assert problem.admits(solution.schedule.fragment_bytes)
    if solution.status is Status.OPTIMAL:
        assert solution.latency_us <= whole_us * gap * CLOSE
    if solution.status is Status.OPTIMAL_BEFORE_ROUNDING:
        assert solution.unrounded_latency_us is not None
        assert solution.unrounded_latency_us <= real_us * gap * CLOSE


def test_against_brute_force() -> None:
    """Bounds are below every whole cut and every real one; both optima are found."""
    rng, solved, met = random.Random(12), 0, 0
    for _ in range(count(500)):
        problem = small_problem(rng)
        if problem is None:
            continue
        found, whole_us = solved_exactly(problem), best_whole_us(problem)
        real_us = best_real_us(problem)
        latency_us = problem.machine.latency_us(found.candidate.fragment_bytes)
        assert found.bound_us <= real_us * CLOSE
        assert found.bound_us <= whole_us * CLOSE
        assert found.unrounded_us is not None
        assert found.unrounded_us >= found.bound_us
        assert found.unrounded_us == pytest.approx(real_us, rel=1e-6)
        assert latency_us >= whole_us / CLOSE
        solved, met = solved + 1, met + (latency_us <= whole_us * CLOSE)
    assert solved >= count(500) / 2
    # Whole bytes are found near the real optimum, and of messages of few bytes not always the best.
    assert met >= 0.8 * solved


def test_statuses_say_no_more_than_brute_force_shows() -> None:
    rng = random.Random(4)
    for _ in range(count(300)):
        problem = small_problem(rng)
        if problem is None:
            continue
        whole_us, real_us = best_whole_us(problem), best_real_us(problem)
        for strategy in (Strategy.AUTO, Strategy.EXACT, Strategy.REPEAT, Strategy.RAMP_REPEAT):
            try:
                solution = solve_machine(problem, strategy, OPTIONS)
            except StrategyDeclined:
                assert strategy is not Strategy.AUTO
                continue
            check_status(problem, solution, whole_us, real_us)


def test_auto_is_never_above_the_best_single_size() -> None:
    rng = random.Random(6)
    for _ in range(count(60)):
        problem = MachineProblem(*data_mover(rng))
        auto = solve_machine(problem, Strategy.AUTO, OPTIONS)
        assert auto.lower_bound_us <= auto.latency_us
        for strategy in (Strategy.SINGLE, Strategy.REPEAT, Strategy.FIXED, Strategy.RAMP_REPEAT):
            assert auto.latency_us <= solve_machine(problem, strategy, OPTIONS).latency_us * CLOSE


@pytest.mark.parametrize("name", CASES)
def test_table_1(name: str) -> None:
    """The best count and its real optimum, proven over all counts and lags."""
    machine, expected_us, fragments = CASES[name]
    solution = solve_machine(MachineProblem(machine, 4096), Strategy.EXACT, OPTIONS)
    assert solution.unrounded_latency_us == pytest.approx(expected_us, rel=1e-8)
    assert len(solution.schedule.fragment_bytes) == fragments
    assert solution.status in (Status.OPTIMAL, Status.OPTIMAL_BEFORE_ROUNDING)
    assert solution.lower_bound_us == pytest.approx(expected_us, rel=1e-6)
    assert solution.latency_us == pytest.approx(expected_us, rel=3e-4)


def test_a_constant_delay_is_in_all_three() -> None:
    machine, expected_us, _ = CASES["two rails"]
    later = replace(machine, pipeline=replace(machine.pipeline, delay_us=1000.0))
    found = solved_exactly(MachineProblem(later, 4096))
    assert found.unrounded_us == pytest.approx(expected_us + 1000.0, rel=1e-9)
    assert found.bound_us == pytest.approx(expected_us + 1000.0, rel=1e-6)


def test_a_window_of_bytes_is_counted_at_the_greatest_size() -> None:
    """Two fragments of half a window, or three of a third: the bound holds for either."""
    machine = machine_of([1, 2, 1], [2, 3, 2])
    bounded = replace(machine, windows=(Window(0, 2, None, 12, 5.0),))
    problem = MachineProblem(bounded, 24, FragmentLimits(max_fragments=5))
    found, real_us = solved_exactly(problem), best_real_us(problem)
    assert found.unrounded_us == pytest.approx(real_us, rel=1e-6)
    assert found.bound_us <= real_us * CLOSE
    sizes = found.candidate.real_sizes
    assert sizes is not None
    assert bounded.latency_us(sizes) == pytest.approx(found.unrounded_us, rel=1e-9)


def test_time_that_is_up_leaves_the_start_and_what_is_proven_without() -> None:
    problem = MachineProblem(*data_mover(random.Random(2)))
    whole = Candidate((problem.message_bytes,))
    found = exact_cut(problem, whole, OPTIONS, Deadline(0.0))
    assert found.candidate.fragment_bytes == whole.fragment_bytes
    assert found.candidate.cut_off
    assert found.unrounded_us is None
    solution = solve_machine(problem, Strategy.EXACT, SolveOptions(time_limit_s=1e-6))
    assert solution.status is Status.TIME_LIMIT
    assert found.bound_us <= solution.latency_us


def test_counts_that_were_not_solved_keep_the_bound_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the fragments of one program only closed forms are left, and the status says so."""
    machine = machine_of([0.5, 0.5], [2, 3], lanes=[1, 2], windows=[(1, 2, 2, 6.0)])
    problem = MachineProblem(machine, 60)
    full = solved_exactly(problem)
    monkeypatch.setattr(exact, "MAX_FRAGMENTS", 3)
    part = exact_cut(problem, Candidate((30, 30)), OPTIONS, LATER)
    assert part.bound_us < full.bound_us
    assert part.unrounded_us is not None
    assert full.unrounded_us is not None
    assert part.unrounded_us >= full.unrounded_us
    assert part.bound_us <= full.unrounded_us


def test_ranges_are_declined() -> None:
    ranged = Stage("a", (FitRange(1.0, 2.0, 8), FitRange(5.0, 1.0)))
    machine = Machine(
        Pipeline((ranged, Stage.of_line("b", overhead_us=1, ns_per_byte=2))),
        (StageRules(2), StageRules()),
    )
    with pytest.raises(StrategyDeclined, match="stages of one line over the admitted sizes"):
        solve_machine(MachineProblem(machine, 64), Strategy.EXACT, OPTIONS)
    one_range = MachineProblem(machine, 64, FragmentLimits(max_fragment_bytes=8))
    assert solve_machine(one_range, Strategy.EXACT, OPTIONS).status is Status.OPTIMAL


def test_many_fragments_are_declined() -> None:
    machine = machine_of([0.001, 0.001], [1, 1], lanes=[2, 1])
    problem = MachineProblem(machine, 2**20, FragmentLimits(2**9, 2**10))
    with pytest.raises(StrategyDeclined, match="exact solves up to 300 fragments"):
        solve_machine(problem, Strategy.EXACT, OPTIONS)
    auto = solve_machine(problem, Strategy.AUTO, OPTIONS)
    assert auto.latency_us <= solve_machine(problem, Strategy.REPEAT, OPTIONS).latency_us


def test_whole_bytes_keep_the_places_of_a_window() -> None:
    """A byte above a whole share of the window would take a place away."""
    machine = machine_of([200, 60_000], [0.667e-3, 11.1e-3], lanes=[1, 10])
    bounded = replace(machine, windows=(Window(0, 1, None, 100_003),))
    problem = MachineProblem(bounded, 399_001)
    solution = solve_machine(problem, Strategy.EXACT, OPTIONS)
    assert solution.unrounded_latency_us is not None
    assert solution.latency_us <= solution.unrounded_latency_us * (1.0 + 1e-6)


def test_auto_does_a_counted_amount_of_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left is a gap that is said, and no matter of time; exact goes on."""
    machine, expected_us, _ = CASES["two rails"]
    problem = MachineProblem(machine, 4096)
    monkeypatch.setattr(solve, "BOUNDED", exact.Work(1.0, 0))
    auto = solve_machine(problem, Strategy.AUTO, OPTIONS)
    assert auto.status is Status.PROVEN_GAP
    assert "exact_goes_on" in [notice.code for notice in auto.notices]
    assert auto.lower_bound_us <= expected_us * CLOSE
    whole = solve_machine(problem, Strategy.EXACT, OPTIONS)
    assert whole.latency_us <= auto.latency_us
    assert whole.lower_bound_us == pytest.approx(expected_us, rel=1e-6)
    assert "exact_goes_on" not in [notice.code for notice in whole.notices]
