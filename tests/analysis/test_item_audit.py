"""An audit of a cap of items against every cut, every cap, and sums by hand."""

from __future__ import annotations

from math import inf
from random import Random

import pytest

from analysis.audit import WORTH_SAYING, Reference, RegretVerdict
from analysis.item_audit import (
    ItemAdvice,
    ItemAuditQuestion,
    PricedCaps,
    audit_cap,
    excess_span,
)
from domain.items import Fill, FillRule, ItemProblem, ItemSequence, layout
from domain.regret import Objective
from tests.solvers.items.item_cases import (
    best_of_all_us,
    oracle,
    pipeline_of,
    plain_latency_us,
    some_problem,
)


def sequences(random: Random, count: int) -> tuple[ItemProblem, ...]:
    """So many sequences across the same stages, without limits."""
    first = some_problem(
        random, random.randint(2, 7), random.randint(1, 3), has_limits=False, has_costs=False
    )
    found = [first]
    while len(found) < count:
        sizes = [random.randint(1, 40) for _ in range(random.randint(2, 7))]
        ready = sorted(random.uniform(0, 100) for _ in sizes)
        found.append(ItemProblem(first.pipeline, ItemSequence.of(sizes, ready)))
    return tuple(found)


def value_of(
    objective: Objective, weights: list[float], taken: list[float], best: list[float]
) -> float:
    """The regret that this objective speaks of."""
    regrets = [us / low - 1.0 if us > low else 0.0 for us, low in zip(taken, best, strict=True)]
    if objective is Objective.WORST:
        return max(regrets)
    if objective is Objective.MEAN:
        return sum(map(float.__mul__, weights, regrets)) / sum(weights)
    total = sum(map(float.__mul__, weights, best))
    return max(0.0, sum(map(float.__mul__, weights, taken)) / total - 1.0)


@pytest.mark.parametrize("seed", range(60))
def test_the_regret_and_the_best_cap_are_those_of_all_there_are(seed: int) -> None:
    """One sequence and several, by every objective and both rules."""
    random = Random(seed)
    problems = sequences(random, random.choice((1, 2, 3)))
    weights = [random.choice((1.0, 0.5, 3.0)) for _ in problems]
    fill = FillRule(random.choice((Fill.UNTIL, Fill.BEFORE)), random.choice((None, None, 5)))
    objective = random.choice(tuple(Objective))
    largest = max(one.sequence.total_bytes for one in problems)
    cap = random.choice((None, random.randint(1, largest)))
    asked = ItemAuditQuestion(problems, tuple(weights), cap, fill, objective, time_limit_s=20.0)
    found = audit_cap(asked)
    best = [best_of_all_us(one) for one in problems]

    def value(cap_bytes: int) -> float:
        cuts = [layout(one.sequence, cap_bytes, fill) for one in problems]
        taken = [plain_latency_us(one, cut) for one, cut in zip(problems, cuts, strict=True)]
        return value_of(objective, weights, taken, best)

    now = value_of(
        objective,
        weights,
        [
            plain_latency_us(one, layout(one.sequence, cap or one.sequence.total_bytes, fill))
            for one in problems
        ],
        best,
    )
    assert found.span.at_least == pytest.approx(now, rel=1e-6, abs=1e-9)
    assert found.span.at_most == pytest.approx(now, rel=1e-5, abs=1e-5)
    lowest = 1
    if fill.rule is Fill.BEFORE:
        lowest = max(max(one.sequence.item_bytes) for one in problems)
    assert found.best_cap is not None
    by_caps = min(map(value, range(lowest, largest + 1)))
    got = found.best_cap.regrets.value(objective).at_least
    assert got == pytest.approx(by_caps, rel=1e-6, abs=1e-9)
    ends = found.best_cap.from_bytes, found.best_cap.to_bytes or 2 * largest
    for cap_bytes in ends:
        assert value(cap_bytes) == pytest.approx(got, rel=1e-6, abs=1e-9)
    assert found.best_cap.is_complete
    assert_advised(found.changes, now, found.best_cap, objective)


def assert_advised(
    changes: tuple[ItemAdvice, ...], now: float, best: PricedCaps, objective: Objective
) -> None:
    """What gains a tenth of a per cent is said, and nothing else."""
    by_cap = best.regrets.value(objective).at_least
    assert (ItemAdvice.ONE_CAP in changes) == (now - by_cap >= WORTH_SAYING)
    assert (ItemAdvice.LIST in changes) == (min(now, by_cap) >= WORTH_SAYING)
    assert (ItemAdvice.KEEP in changes) == (len(changes) == 1 and changes[0] is ItemAdvice.KEEP)


@pytest.mark.parametrize(
    ("max_regret", "expected", "is_kept"),
    [(0.06, RegretVerdict.WITHIN, True), (0.05, RegretVerdict.ABOVE, False), (None, None, True)],
)
def test_a_limit_is_held_against_the_regret(
    max_regret: float | None, expected: RegretVerdict | None, is_kept: bool
) -> None:
    """A cap of 4 takes 19 where 18 is best: 5.6 %."""
    asked = ItemAuditQuestion((oracle(0),), (1.0,), 4, FillRule(), max_regret=max_regret)
    found = audit_cap(asked)
    assert (found.verdict, found.is_kept) == (expected, is_kept)
    assert found.span.at_least == pytest.approx(1 / 18)
    assert asked.reference is Reference.BEST


def test_a_sequence_of_no_weight_counts_nowhere() -> None:
    asked = ItemAuditQuestion((oracle(0), oracle(1)), (1.0, 0.0), 5, FillRule())
    found = audit_cap(asked)
    assert found.regrets.worst.at_least == 0.0
    assert found.changes == (ItemAdvice.KEEP,)


def test_over_no_time_a_regret_has_no_end() -> None:
    assert (excess_span(1.0, 0.0, 0.0).at_least, excess_span(0.0, 0.0, 0.0).at_most) == (inf, 0.0)
    free = ItemProblem(pipeline_of([(0, 0)]), ItemSequence.of([1, 2]))
    found = audit_cap(ItemAuditQuestion((free,), (1.0,), 1, FillRule()))
    assert found.span.at_most == 0.0
