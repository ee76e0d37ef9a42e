"""What is enough, against trying every count and every size."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from analysis.enough import MARGIN, find_enough, with_bytes
from domain.errors import Infeasible
from domain.in_flight import InUse
from domain.machine import Machine, StageRules, Window
from domain.pipeline import Pipeline
from domain.problem import FragmentLimits, MachineProblem
from solvers.contract import Deadline
from tests.support.counts import count
from tests.support.uncertain_machines import line, s3_connections

CASES = count(400)
PATIENT = 60.0


def drawn(random: Random) -> MachineProblem:
    """A small message over two or three stages with lanes and windows, and a processor in some."""
    number = random.choice((2, 3))
    stages = tuple(
        line(f"s{j}", random.choice((0.0, 1.0, 5.0, 20.0)), random.choice((100.0, 400.0, 1500.0)))
        for j in range(number)
    )
    rules = []
    for stage in stages:
        lanes = random.choice((1, 1, 3, 6))
        shared = random.choice((0.0, 0.2)) * stage.ranges[0].ns_per_byte if lanes > 1 else 0.0
        rules.append(StageRules(lanes, shared, random.choice((0.0, 0.0, 10.0))))
    if random.random() < 0.2:
        for j in (0, number - 1):
            rules[j] = StageRules(delay_us=rules[j].delay_us, processor="core")
    windows = []
    for _ in range(random.choice((0, 1, 1, 2))):
        first = random.randrange(number)
        last = random.randrange(first, number)
        fragments, held = random.choice(((5, None), (None, 60), (4, 48)))
        windows.append(Window(first, last, fragments, held, random.choice((0.0, 15.0))))
    machine = Machine(Pipeline(stages, 3.0), tuple(rules), tuple(windows))
    limits = FragmentLimits(random.choice((1, 4)), alignment_bytes=random.choice((1, 2)))
    return MachineProblem(machine, random.choice((48, 61)), limits)


def best_us(problem: MachineProblem) -> float:
    """The least latency of all repeated sizes, by the evaluator."""
    total, found = problem.message_bytes, float("inf")
    for size in range(1, total + 1):
        full, rest = divmod(total, size)
        cut = (size,) * full + ((rest,) if rest else ())
        try:
            if problem.admits(cut):
                found = min(found, problem.machine.latency_us(cut))
        except Infeasible:
            continue
    return found


def fewest(problem: MachineProblem, machines: list[Machine]) -> int:
    """The first of these, counted from 1, that costs no more than the margin over the last."""
    limit_us = best_us(problem) * (1.0 + MARGIN)
    for number, machine in enumerate(machines, start=1):
        try:
            if best_us(replace(problem, machine=machine)) <= limit_us * (1.0 + 1e-12):
                return number
        except Infeasible:
            continue
    return 0


def best_size(problem: MachineProblem) -> int:
    """A best repeated size, by the evaluator."""
    total, least = problem.message_bytes, best_us(problem)
    for size in range(1, total + 1):
        full, rest = divmod(total, size)
        cut = (size,) * full + ((rest,) if rest else ())
        if problem.admits(cut) and problem.machine.latency_us(cut) == least:
            return size
    return 0


@pytest.mark.parametrize("seed", range(CASES))
def test_the_fewest_are_those_of_trying_all(seed: int) -> None:
    """Of lanes, places and bytes; a quarter more of them holds the margin too."""
    problem = drawn(Random(seed))
    machine, size = problem.machine, best_size(problem)
    if size == 0:
        pytest.skip("no size can be repeated")
    found = find_enough(problem, size, Deadline.after(PATIENT))
    assert found.lanes.keys() == {j for j, one in enumerate(machine.rules) if one.lanes > 1}
    for j, lanes in found.lanes.items():
        given = machine.rules[j].lanes
        each = [machine.with_rules(lanes={j: number}) for number in range(1, given + 1)]
        assert lanes == fewest(problem, each)
        enough = InUse(given, None, lanes).enough or 0
        limit_us = best_us(problem) * (1.0 + MARGIN) * (1.0 + 1e-12)
        assert best_us(replace(problem, machine=each[enough - 1])) <= limit_us
    for w, places in found.places.items():
        given = machine.windows[w].places(size)
        each = [machine.with_rules(places={w: number}) for number in range(1, given + 1)]
        assert places == fewest(problem, each)
    for w, held in found.bytes.items():
        given = machine.windows[w].bytes or 0
        parts = min(64, given)
        sizes = [-(-given * part // parts) for part in range(1, parts + 1)]
        each = [with_bytes(machine, w, one) for one in sizes]
        assert held == sizes[fewest(problem, each) - 1]


def test_no_time_left_takes_all_that_was_given_for_needed() -> None:
    """Where the best size itself does not tell."""
    machine = s3_connections()
    problem = MachineProblem(machine, 2**30, FragmentLimits(5 * 2**20))
    found = find_enough(problem, 21_293_644, Deadline.after(0.0))
    assert found.lanes == {1: 10}
