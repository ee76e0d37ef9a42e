"""One count: the program against exact fractions and another program, its bound against both."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from bench.data_movers import data_mover, wide_chain
from domain.machine import Machine
from domain.problem import FragmentLimits, MachineProblem
from solvers.contract import Deadline
from solvers.machine.program import (
    Dual,
    Region,
    bound_by_us,
    knapsack_us,
    solve_region,
    within,
)
from solvers.machine.regions import BoundedRegion, parts_of, regions_of
from tests.solvers.machine_programs import min_us
from tests.solvers.random_machines import machine_of, small_machine
from tests.support.counts import count


def by_count(values: str) -> dict[int, str]:
    """Fractions for 1, 2, ... fragments."""
    return dict(enumerate(values.split(), start=1))


SLOTS = ((1, 2, 2, 0.0), (2, 3, 2, 0.0))
# Stages, the message, and T*(k) by k, proven by exact primals and exact flows.
ORACLES = {
    "three lanes alike": (
        machine_of([1, 2], [3, 1], lanes=[3, 3]),
        12,
        {3: "19", 6: "69/4", 9: "230/13"},
    ),
    "not unimodal": (
        machine_of([3, 2, 2], [5, 1, 3], lanes=[2, 1, 2]),
        4,
        by_count("43 311/11 1537/64 12291/500 3237/133 70472/2785 44613/1676"),
    ),
    "one stage with lanes": (
        machine_of([5, 0], [1, 4], lanes=[2, 1]),
        1,
        by_count("10 55/6 10 21/2 15 31/2"),
    ),
    "three lanes in the middle": (
        machine_of([1, 2, 1], [1, 4, 2], lanes=[1, 3, 1]),
        24,
        by_count("172 1183/11 7914/91 51905/671 335456/4651 2143767/31031"),
    ),
    "one slot": (
        machine_of([1, 1, 1], [2, 3, 2], windows=[(1, 2, 1, 0.0)]),
        20,
        by_count("143 813/7 4315/39 22333/203 114447/1031 113"),
    ),
    "two slots": (
        machine_of([1, 1, 1], [2, 3, 2], windows=SLOTS),
        20,
        by_count("143 104 615/7 82 2263/29 1452/19 7747/103 974/13"),
    ),
    "no windows": (
        machine_of([1, 1, 1], [2, 3, 2]),
        20,
        by_count("143 104 615/7 82 2263/29 1452/19 7747/103 974/13"),
    ),
    "two slots that bind": (
        machine_of([6, 0, 1], [0, 3, 2], windows=SLOTS),
        30,
        {7: "206785/2059", 8: "651172/6497", **dict.fromkeys(range(9, 15), "902/9")},
    ),
    "the same without": (
        machine_of([6, 0, 1], [0, 3, 2]),
        30,
        {8: "629827/6305", 9: "1908681/19171"},
    ),
    "a place that takes time to come back": (
        machine_of([1, 2], [2, 2], windows=[(1, 2, 2, 6.0)]),
        16,
        by_count("67 105/2 152/3 101/2 261/5 109/2"),
    ),
    "a window over a delay": (
        machine_of([1, 0, 2], [1, 2, 1], delays={2: 10.0}, windows=[(2, 3, 3, 10.0)]),
        30,
        by_count("133 103 355/4 84 161/2 9389/117 7093/86"),
    ),
    "lanes and windows": (
        machine_of([2, 3, 1], [1, 4, 1], lanes=[1, 2, 1], windows=[(1, 2, 3, 1.0), (2, 3, 2, 0.0)]),
        18,
        by_count("114 141/2 65 4224/67 18189/293 4575/73"),
    ),
    "a shared part": (
        machine_of([1, 1, 0], [1, 3, 0.5], lanes=[1, 2, 1], shared={2: 1.0}),
        12,
        by_count("56 425/12 153/5 1063/38 3583/134 1733/66"),
    ),
}
CORE = machine_of([1, 2, 1], [2, 3, 1], processors=[(1, 3)])
OF_LAGS = {0: {1: "124", 2: "128", 3: "132"}, 1: {5: "2131/27", 6: "3007/38"}, 2: {5: "8017/103"}}
# Stages by columns with Wang98 Table 1's costs, and what a message of 4096 bytes takes at best.
WANG = ([7.2, 5.2, 7.5, 7.4], [0.00703125, 0.02431640625, 0.02431640625, 0.00771484375])
MYRINET = {
    "two slots everywhere": (
        machine_of(*WANG, windows=[(1, 2, 2, 0.0), (2, 3, 2, 0.0), (3, 4, 2, 0.0)]),
        6,
        184.348272,
    ),
    "two rails": (machine_of(*WANG, lanes=[1, 2, 2, 1]), 6, 132.257065),
    "credits": (machine_of(*WANG, windows=[(1, 4, 3, 5.0)]), 5, 184.569346),
}
RULES = 8  # of three stages with one processor: routes, stages, the processor's two, the end
SOON = Deadline(float("inf"))


def region_of(
    problem: MachineProblem, k: int, lags: tuple[int, ...] = (), least: float = 0.0
) -> Region:
    """All cuts of k real fragments, of at least so many bytes."""
    places = tuple(problem.machine.places(1.0))
    return Region(k, least, float(problem.largest_fragment_bytes), places, lags, lags)


def check(machine: Machine, total: int, region: Region, expected_us: float, rel: float) -> None:
    """The bound, and the evaluator's latency of the sizes, are the least latency."""
    problem = MachineProblem(machine, total)
    found = solve_region(problem, region, SOON)
    assert found.sizes is not None
    assert found.sizes.sum() == pytest.approx(total, rel=1e-12)
    latency_us = machine.node_times(found.sizes.tolist(), region.live_lags).latency_us
    assert latency_us == pytest.approx(expected_us, rel=rel)
    assert found.bound_us == pytest.approx(expected_us, rel=rel)
    assert found.bound_us <= latency_us


def drawn_dual(region: Region, nodes: int, numbers: np.random.Generator) -> Dual:
    """Any values for these fragments, many of them 0."""
    shapes = (region.k, nodes), (40, region.k)
    starts, passed = (numbers.random(of) * (numbers.random(of) < 0.6) for of in shapes)
    return Dual(starts, passed, numbers.random(region.lags.count(None)))


@pytest.mark.parametrize("name", ORACLES)
def test_exact_fractions(name: str) -> None:
    machine, total, known = ORACLES[name]
    problem = MachineProblem(machine, total)
    for k, fraction in known.items():
        check(machine, total, region_of(problem, k), float(Fraction(fraction)), 1e-6)


@pytest.mark.parametrize("lag", OF_LAGS)
def test_exact_fractions_of_a_processor(lag: int) -> None:
    problem = MachineProblem(CORE, 20)
    for k, fraction in OF_LAGS[lag].items():
        check(CORE, 20, region_of(problem, k, (lag,)), float(Fraction(fraction)), 1e-6)


@pytest.mark.parametrize("name", MYRINET)
def test_table_1_with_windows_and_rails(name: str) -> None:
    machine, k, expected_us = MYRINET[name]
    check(machine, 4096, region_of(MachineProblem(machine, 4096), k), expected_us, 1e-8)


def test_table_1_with_two_slots_binds_late() -> None:
    machine, _, _ = MYRINET["two slots everywhere"]
    region = region_of(MachineProblem(machine, 4096), 9)
    check(machine, 4096, region, 193.5836, 1e-6)
    without = machine_of(*WANG)
    check(without, 4096, region_of(MachineProblem(without, 4096), 9), 193.5717, 1e-6)


@pytest.mark.parametrize(("lag", "k", "expected_us"), [(1, 4, 195.042960), (2, 6, 184.348272)])
def test_table_1_with_one_core_for_both_copies(lag: int, k: int, expected_us: float) -> None:
    machine = machine_of(*WANG, processors=[(1, 4)])
    region = region_of(MachineProblem(machine, 4096), k, (lag,))
    check(machine, 4096, region, expected_us, 1e-8)


def test_best_sizes_are_those_that_are_known() -> None:
    machine, total, _ = ORACLES["not unimodal"]
    found = solve_region(
        MachineProblem(machine, total), region_of(MachineProblem(machine, 4), 3), SOON
    )
    assert found.sizes is not None
    assert found.sizes.tolist() == pytest.approx([159 / 128, 121 / 64, 111 / 128], rel=1e-6)


def test_against_the_simplex() -> None:
    """Other rows, other columns, another method: one optimum."""
    rng = random.Random(41)
    for _ in range(count(500)):
        machine, k, total = small_machine(rng), rng.randint(1, 8), rng.randint(8, 40)
        problem = MachineProblem(machine, total)
        least = rng.choice([0.0, 0.0, 0.5])
        for lags, _ in machine.lag_choices(machine.places(1.0)):
            if max(lags, default=0) > 2:
                continue
            region = region_of(problem, k, lags, least)
            expected_us = min_us(machine, total, k, lags=lags, least=least)
            check(machine, total, region, expected_us, 1e-7)


def test_lags_that_deadlock_have_no_solution() -> None:
    machine = machine_of([1, 2, 1], [2, 3, 1], processors=[(1, 3)], windows=[(1, 3, 2, 0.0)])
    assert min_us(machine, 20, 5, lags=(2,)) == float("inf")
    live = [lags for lags, _ in machine.lag_choices(machine.places(1.0))]
    assert live == [(0,), (1,)]


class TestBounds:
    """What is proven without a program, and with any dual."""

    def test_any_values_make_a_flow(self) -> None:
        rng, numbers = random.Random(3), np.random.default_rng(3)
        for _ in range(count(400)):
            machine, k, total = small_machine(rng), rng.randint(1, 6), rng.randint(8, 30)
            problem = MachineProblem(machine, total)
            for bounded in regions_of(problem, k):
                for part in [bounded, *parts_of(problem, bounded)]:
                    bound_us = bound_by_us(
                        problem, part.region, drawn_dual(part.region, len(machine.network), numbers)
                    )
                    lags = None if None in part.region.lags else part.region.live_lags
                    least = float(problem.smallest_fragment_bytes)
                    expected_us = min_us(machine, total, k, lags=lags, least=least)
                    assert bound_us <= expected_us * (1.0 + 1e-9)
                    assert part.bound_us <= expected_us * (1.0 + 1e-9)

    def test_without_any_value_one_path_is_left(self) -> None:
        problem = MachineProblem(CORE, 20)
        region = region_of(problem, 4, (1,))
        nothing = Dual(np.zeros((4, 3)), np.zeros((RULES, 4)), np.zeros(0))
        bound_us = bound_by_us(problem, region, nothing)
        # The first fragment through all stages, then the last stage through all fragments.
        assert bound_us == pytest.approx((1.0 + 2.0 + 1.0) + 3.0 * 1.0 + 20.0 * 1.0)

    def test_any_order_bounds_every_lag(self) -> None:
        """A program without a processor's edges is below those of all lags."""
        rng = random.Random(5)
        for _ in range(count(200)):
            machine, total = data_mover(rng)
            problem, k = MachineProblem(machine, total), rng.randint(2, 6)
            for bounded in regions_of(problem, k):
                proven_us = max(
                    bounded.bound_us, solve_region(problem, bounded.region, SOON).bound_us
                )
                for part in parts_of(problem, bounded):
                    least = solve_region(problem, part.region, SOON)
                    assert least.sizes is not None
                    latency_us = machine.node_times(
                        least.sizes.tolist(), part.region.live_lags
                    ).latency_us
                    assert proven_us <= latency_us * (1.0 + 1e-9)

    def test_a_dual_of_another_count_is_a_bound_and_nearly_the_least_latency(self) -> None:
        """A fragment in the middle is repeated, or left out."""
        machine, total = wide_chain(random.Random(2), 4), 10**6
        problem = MachineProblem(machine, total)
        known = solve_region(problem, region_of(problem, 20), SOON)
        assert known.dual is not None
        for k in (17, 19, 21, 24):
            min_us = solve_region(problem, region_of(problem, k), SOON).bound_us
            bounds = [
                bound_by_us(problem, region_of(problem, k), known.dual.of_count(k, at))
                for at in range(20)
            ]
            assert max(bounds) <= min_us * (1.0 + 1e-9)
            assert max(bounds) >= min_us * (1.0 - 0.01)

    def test_duals_are_made_longer_and_shorter(self) -> None:
        dual = Dual(np.arange(3.0)[:, None], np.arange(6.0).reshape(2, 3), np.ones(1))
        assert dual.of_count(5, 1).starts.ravel().tolist() == [0.0, 1.0, 1.0, 1.0, 2.0]
        assert dual.of_count(3, 2).passed.tolist() == dual.passed.tolist()
        assert dual.of_count(2, 1).passed.tolist() == [[0.0, 2.0], [3.0, 5.0]]
        assert dual.of_count(1, 2).starts.ravel().tolist() == [0.0]

    def test_time_that_is_up_leaves_no_sizes_but_a_bound(self) -> None:
        machine, total = data_mover(random.Random(1))
        problem = MachineProblem(machine, total)
        bounded = regions_of(problem, 290)[0]
        found = solve_region(problem, bounded.region, Deadline(0.0))
        assert found.sizes is None
        assert found.bound_us == 0.0
        assert bounded.bound_us > 0.0

    def test_least_weights_carry_most(self) -> None:
        weights = np.array([3.0, 1.0, 2.0])
        assert knapsack_us(weights, 10.0, 1.0, 6.0) == pytest.approx(6.0 + 2.0 * 3.0 + 3.0)
        assert knapsack_us(weights, 10.0, 0.0, 10.0) == pytest.approx(10.0)
        assert knapsack_us(weights, 9.0, 3.0, 3.0) == pytest.approx(18.0)

    def test_sizes_are_moved_into_limits(self) -> None:
        moved = within(np.array([0.5, 8.0, 1.5]), 10.0, 1.0, 5.0)
        assert moved.sum() == pytest.approx(10.0)
        assert moved.min() >= 1.0
        assert moved.max() <= 5.0


def test_regions_of_windows_of_bytes_are_all_greatest_sizes() -> None:
    """Their caps follow each other, and each holds as many as it says."""
    rng = random.Random(8)
    for _ in range(count(400)):
        total = rng.randint(8, 40)
        machine = small_machine(rng, has_bytes=True, total=total)
        problem = MachineProblem(machine, total)
        k = rng.randint(problem.count_range().minimum, 12)
        regions: list[BoundedRegion] = regions_of(problem, k)
        caps = [one.region.most for one in regions]
        assert caps == sorted(caps, reverse=True)
        assert caps[0] == problem.largest_fragment_bytes
        for size in range(-(-total // k), problem.largest_fragment_bytes + 1):
            holding = [one.region for one in regions if one.region.most >= size]
            expected = [min(places, k) for places in machine.places(size)]
            assert [min(places, k) for places in holding[-1].places] == expected


def test_limits_of_sizes_hold_in_programs() -> None:
    machine = machine_of([1, 1, 1], [2, 3, 2])
    problem = MachineProblem(
        machine, 20, FragmentLimits(min_fragment_bytes=4, max_fragment_bytes=6)
    )
    (bounded,) = regions_of(problem, 4)
    found = solve_region(problem, bounded.region, SOON)
    assert found.sizes is not None
    assert found.sizes.min() >= 4.0
    assert found.sizes.max() <= 6.0
    expected_us = min_us(machine, 20, 4, least=4.0, most=6.0)
    assert found.bound_us == pytest.approx(expected_us, rel=1e-9)


def test_a_program_that_cannot_end_in_time_does_not_begin() -> None:
    """The library reads these rows for longer than that, and then knows no limit."""
    machine = wide_chain(random.Random(4), 64)
    problem = MachineProblem(machine, 64_000_000)
    region = regions_of(problem, 100)[0].region
    found = solve_region(problem, region, Deadline.after(0.15))
    assert (found.bound_us, found.sizes, found.dual) == (0.0, None, None)
