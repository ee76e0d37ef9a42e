"""Regrets are the evaluator's; a chosen size is the best of all; size steps merge only what is
free.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

import solvers
from contract.limits import MAX_MESSAGE_BYTES
from domain.aggregate import Aggregate
from domain.errors import InvalidInput
from domain.fragment_setting import FragmentSetting, SettingStep
from domain.model import CostModel
from domain.pipeline import FitRange, Pipeline, Stage, pipeline_of_lines
from domain.problem import FragmentLimits, problem_of
from domain.regret import BestKnown, ChosenSetting, Objective, PricedSetting, SizeRule
from domain.schedule import latency_us
from domain.workload import Workload
from solvers.settings.costs import repeated_latencies_us
from solvers.settings.regret import MERGE_REGRET
from solvers.settings.sizes import EVERY, Sizes
from tests.solvers.outside import seen_from_outside
from tests.solvers.pipelines import random_cases
from tests.solvers.ranged_pipelines import Rule, random_problems
from tests.support.counts import count

MYRINET = pipeline_of_lines(
    [("a", 7.2, 7.03125), ("b", 5.2, 24.31640625), ("c", 7.5, 24.31640625), ("d", 7.4, 7.71484375)]
)


def repeated(total: int, size: int) -> tuple[int, ...]:
    """floor(B/s) fragments of s, then the remainder."""
    size = min(size, total)
    full, rest = divmod(total, size)
    return (size,) * full + ((rest,) if rest else ())


def evaluated(model: CostModel, cut: Sequence[int]) -> float:
    """What the evaluator says."""
    return latency_us(model, cut) if isinstance(model, Pipeline) else model.latency_us(cut)


def models(number: int, *, seed: int) -> Iterator[tuple[CostModel, int]]:
    """Lines, ranges that jump either way, and aggregates, with a greatest message each."""
    for case in random_cases(number, seed=seed):
        yield case.pipeline, case.message_bytes
    rule = Rule(message_bytes=(50, 3000))
    for problem in random_problems(number, seed=seed, rule=rule):
        yield problem.pipeline, problem.message_bytes
        yield seen_from_outside(problem.pipeline, problem.message_bytes), problem.message_bytes


def best_of(model: CostModel, workload: Workload) -> tuple[BestKnown, ...]:
    """A reference: fixed, not best, but the same for whoever is compared."""
    low, high = workload.sizes[0].message_bytes, workload.sizes[-1].message_bytes
    powers = {1 << bit for bit in range(60) if low <= 1 << bit <= high}
    found = []
    for size in sorted(powers | {one.message_bytes for one in workload.sizes}):
        problem = problem_of(model, size, FragmentLimits())
        min_us = solvers.solve(problem, "fixed", time_limit_s=1.0).latency_us
        found.append(BestKnown(size, min_us, min_us, None, None))
    return tuple(found)


# --- pricing --------------------------------------------------------------------------------------


def test_latencies_are_the_evaluators() -> None:
    """Random models, sizes and messages: sizes above the message and those that divide it too."""
    rng = np.random.default_rng(1)
    for model, maximum in models(count(200), seed=5):
        for _ in range(12):
            total = int(rng.integers(1, min(maximum, 3000) + 1))
            size = int(rng.integers(1, total + 20))
            if rng.random() < 0.3:
                size = -(-total // int(rng.integers(1, 9)))
            priced = repeated_latencies_us(model, np.array([size]), np.array([total]))[0]
            assert priced == pytest.approx(evaluated(model, repeated(total, size)), rel=1e-11)


def test_a_byte_repeated_in_the_largest_message_is_priced_in_closed_form() -> None:
    """2^48 fragments: the slowest stage for all of them, the others once."""
    setting = FragmentSetting.always(1)
    best = BestKnown(MAX_MESSAGE_BYTES, 1.0, 1.0, None, None)
    (regret,) = solvers.regrets(MYRINET, setting, [best])
    times = [stage.time_us(1) for stage in MYRINET.stages]
    expected = sum(times) + (MAX_MESSAGE_BYTES - 1) * max(times)
    assert regret.size_bytes == 1
    assert regret.latency_us == pytest.approx(expected, rel=1e-12)


def test_regrets_follow_the_steps_of_the_setting() -> None:
    """In the order of the messages, each by its own step."""
    setting = FragmentSetting((SettingStep(1, None), SettingStep(2000, 700)))
    best = [BestKnown(size, 10.0, 5.0, None, None) for size in (5000, 1999, 2000)]
    found = solvers.regrets(MYRINET, setting, best)
    assert [one.size_bytes for one in found] == [700, 1999, 700]
    assert [one.best for one in found] == best
    for one in found:
        cut = repeated(one.message_bytes, one.size_bytes)
        assert one.latency_us == pytest.approx(latency_us(MYRINET, cut), rel=1e-12)
    assert solvers.regrets(MYRINET, setting, []) == ()


# --- one size -------------------------------------------------------------------------------------


def value_of(chosen: ChosenSetting) -> float:
    """What the objective says of it."""
    return chosen.written.regret_of(chosen.objective)


def power_above(workload: Workload) -> int:
    """The least power of two that sends every message of the workload whole."""
    return 1 << (workload.sizes[-1].message_bytes - 1).bit_length()


def brute(
    model: CostModel, best: Sequence[BestKnown], workload: Workload, rule: SizeRule
) -> tuple[np.ndarray, dict[Objective, np.ndarray]]:
    """Every admitted size up to the first that sends all whole; what each objective says of it."""
    largest = power_above(workload)
    top = largest + rule.multiple_of
    sizes = np.arange(rule.multiple_of, top + 1, rule.multiple_of, dtype=np.int64)
    if rule.is_power_of_two:
        sizes = 1 << np.arange(0, largest.bit_length() + 1, dtype=np.int64)
    sizes = sizes[(sizes >= rule.min_bytes) & (sizes <= rule.max_bytes)]
    known = {one.message_bytes: one.latency_us for one in best}
    mean, worst = np.zeros(len(sizes)), np.full(len(sizes), -np.inf)
    taken, least = np.zeros(len(sizes)), 0.0
    for one in workload.sizes:
        priced = repeated_latencies_us(model, sizes, np.array([one.message_bytes]))
        regret = priced / known[one.message_bytes] - 1.0
        mean += one.share * regret
        worst = np.maximum(worst, regret)
        taken += one.share * priced
        least += one.share * known[one.message_bytes]
    time = taken / least - 1.0
    return sizes, {Objective.TIME: time, Objective.MEAN: mean, Objective.WORST: worst}


RULES = (
    SizeRule(),
    SizeRule(multiple_of=64),
    SizeRule(min_bytes=100, max_bytes=3000, multiple_of=7),
    SizeRule(is_power_of_two=True),
    SizeRule(min_bytes=100, is_power_of_two=True),
)


def chosen_cases(number: int) -> Iterator[tuple[CostModel, Workload]]:
    """Models of up to six stages with workloads up to 64 KiB, more sizes than are all priced."""
    rng = np.random.default_rng(3)
    for case in random_cases(number, seed=11):
        minimum = int(rng.choice([1, 64, 1024]))
        yield case.pipeline, Workload.log_uniform(minimum, 65536, points=int(rng.choice([9, 48])))
    for problem in random_problems(number, seed=12, rule=Rule(message_bytes=(60_000, 65_536))):
        yield problem.pipeline, Workload.log_uniform(64, problem.message_bytes, points=24)


def test_no_size_is_better_than_the_one_that_is_chosen() -> None:
    """Brute force over every admitted size, by each objective; one of the workload is frequent."""
    for at, (model, workload) in enumerate(chosen_cases(count(80, share=16))):
        if at % 3 == 2:
            frequent = workload.sizes[at % len(workload.sizes)].message_bytes
            weights = [(one.message_bytes, one.share) for one in workload.sizes]
            workload = Workload.weighted([*weights, (frequent, 30.0)], "one size mostly")
        best = best_of(model, workload)
        if min(one.latency_us for one in best) <= 0.0:
            continue
        rule = RULES[at % len(RULES)] if at % 2 else RULES[0]
        sizes, by_objective = brute(model, best, workload, rule)
        assert rule != RULES[0] or len(sizes) > EVERY
        for objective, values in by_objective.items():
            chosen = solvers.choose_size(model, best, workload, rule=rule, objective=objective)
            assert value_of(chosen) <= values.min() + 1e-9
            (step,) = chosen.setting.steps
            assert step.size_bytes in sizes


def test_what_is_told_of_a_choice_is_its_regret() -> None:
    """Mean and worst over the workload, and each power of two in its range."""
    workload = Workload.weighted([(3000, 3.0), (500, 1.0), (65000, 0.0)], "three")
    best = best_of(MYRINET, workload)
    chosen = solvers.choose_size(MYRINET, best, workload, rule=SizeRule())
    found = {one.message_bytes: one for one in solvers.regrets(MYRINET, chosen.setting, best)}
    expected = 0.75 * found[3000].over_best + 0.25 * found[500].over_best
    assert chosen.mean_regret == pytest.approx(expected, abs=1e-12)
    taken_us = 3.0 * found[3000].latency_us + found[500].latency_us
    best_us = 3.0 * found[3000].best.latency_us + found[500].best.latency_us
    assert chosen.time_regret == pytest.approx(taken_us / best_us - 1.0, abs=1e-12)
    assert chosen.time_at_most >= chosen.time_regret
    assert chosen.worst_regret == max(found[3000].over_best, found[500].over_best)
    assert [one.message_bytes for one in chosen.at_powers] == [2**bit for bit in range(9, 16)]
    assert all(one == found[one.message_bytes] for one in chosen.at_powers)
    assert (chosen.workload, chosen.objective) == (workload, Objective.MEAN)


def test_of_equals_the_largest_size_is_taken() -> None:
    """One stage without overhead: every size takes the same, and the whole message is one."""
    pipeline = pipeline_of_lines([("only", 0.0, 1.0)])
    workload = Workload.log_uniform(1000, 50_000, points=16)
    best = best_of(pipeline, workload)
    for rule, expected in (
        (SizeRule(), 65536),
        (SizeRule(multiple_of=4096), 65536),
        (SizeRule(multiple_of=3000), 66_000),
        (SizeRule(is_power_of_two=True), 65536),
        (SizeRule(max_bytes=30_000), 30_000),
    ):
        chosen = solvers.choose_size(pipeline, best, workload, rule=rule)
        assert chosen.setting == FragmentSetting.always(expected)


def test_a_message_that_takes_no_time_is_no_trouble() -> None:
    """Nothing is divided by 0, and no warning is given; a size with an infinite regret loses."""
    pipeline = pipeline_of_lines([("nothing", 0.0, 0.0)])
    workload = Workload.log_uniform(1, 100_000, points=8)
    chosen = solvers.choose_size(pipeline, best_of(pipeline, workload), workload, rule=SizeRule())
    assert chosen.written == PricedSetting(chosen.setting, 0.0, 0.0, 0.0)
    for objective in Objective:
        size_steps = solvers.choose_size_steps(
            pipeline, best_of(pipeline, workload), workload, rule=SizeRule(), objective=objective
        )
        assert len(size_steps.setting.steps) == 1


def test_what_takes_no_time_at_best_adds_to_the_total_what_it_takes() -> None:
    """A message that is free whole and costs 5 µs a fragment has no infinite regret of its own."""
    pipeline = Pipeline((Stage("one", (FitRange(5.0, 0.0, 100), FitRange(0.0, 0.0))),))
    workload = Workload.weighted([(4096, 9.0), (2**16, 1.0)], "two")
    best = (
        BestKnown(4096, 0.0, 0.0, None, None),
        *(BestKnown(1 << bit, 100.0, 100.0, None, None) for bit in range(13, 17)),
    )
    for choose in (solvers.choose_size, solvers.choose_size_steps):
        rule = SizeRule(max_bytes=64)
        chosen = choose(pipeline, best, workload, rule=rule, objective=Objective.TIME)
        assert chosen.setting == FragmentSetting.always(64)
        taken_us = 0.9 * 64 * 5.0 + 0.1 * 1024 * 5.0
        assert chosen.time_regret == pytest.approx(taken_us / 10.0 - 1.0)
        assert chosen.mean_regret == np.inf


def test_the_same_question_has_the_same_answer() -> None:
    """Nothing is drawn at random."""
    workload = Workload.log_uniform(1000, 2**24)
    best = [BestKnown(one.message_bytes, 1.0, 1.0, None, None) for one in workload.sizes]
    one, other = (solvers.choose_size(MYRINET, best, workload, rule=SizeRule()) for _ in range(2))
    assert one == other


def test_a_mix_of_four_thousand_sizes_is_chosen_for() -> None:
    """The search prices fewer candidates, and still finds what is near the best of a sample."""
    workload = Workload.log_uniform(2**10, 2**30, points=4000)
    best = [
        BestKnown(one.message_bytes, float(one.message_bytes), 1.0, None, None)
        for one in workload.sizes
    ]
    chosen = solvers.choose_size(MYRINET, best, workload, rule=SizeRule())
    sampled = [
        solvers.choose_size(
            MYRINET, best, workload, rule=SizeRule(min_bytes=size, max_bytes=size)
        ).mean_regret
        for size in (1000, 2000, 3000, 4000, 6000)
    ]
    assert chosen.mean_regret <= min(sampled)


@pytest.mark.parametrize(
    "rule",
    [
        SizeRule(min_bytes=9, max_bytes=8),
        SizeRule(min_bytes=9, max_bytes=15, multiple_of=8),
        SizeRule(min_bytes=9, max_bytes=15, is_power_of_two=True),
        SizeRule(max_bytes=0),
        SizeRule(multiple_of=6, is_power_of_two=True),
    ],
)
def test_a_rule_that_admits_no_size_is_refused(rule: SizeRule) -> None:
    """Said so, and not left to the search."""
    workload = Workload.log_uniform(64, 4096, points=4)
    with pytest.raises(InvalidInput) as refusal:
        solvers.choose_size(MYRINET, best_of(MYRINET, workload), workload, rule=rule)
    assert refusal.value.field == "sizes"


def test_a_size_without_a_best_is_refused() -> None:
    """Each size of the workload has to be known."""
    workload = Workload.log_uniform(64, 4096, points=4)
    with pytest.raises(InvalidInput, match="each size of the workload"):
        solvers.choose_size(MYRINET, best_of(MYRINET, workload)[1:], workload, rule=SizeRule())


def test_admitted_sizes_end_with_the_first_that_sends_all_whole() -> None:
    """Rounded up to the unit or the power; a rule that ends before that ends before that."""
    assert Sizes.of(SizeRule(multiple_of=100), 950) == Sizes(100, 1000, 100, False)
    assert Sizes.of(SizeRule(min_bytes=5000), 950) == Sizes(5000, 5000, 1, False)
    assert Sizes.of(SizeRule(is_power_of_two=True, min_bytes=3), 950) == Sizes(4, 1024, 1, True)
    assert Sizes.of(SizeRule(max_bytes=77), 950) == Sizes(1, 77, 1, False)


# --- size steps
# --------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", [*Objective])
def test_size_steps_are_no_worse_than_one_size_by_more_than_the_mergers(
    objective: Objective,
) -> None:
    """Every octave has its best size, but for what merging may cost."""
    for case in random_cases(count(60), seed=21):
        workload = Workload.log_uniform(256, 2**20, points=48)
        best = best_of(case.pipeline, workload)
        rule = SizeRule()
        single = solvers.choose_size(case.pipeline, best, workload, rule=rule, objective=objective)
        size_steps = solvers.choose_size_steps(
            case.pipeline, best, workload, rule=rule, objective=objective
        )
        allowed = len(size_steps.setting.steps) * MERGE_REGRET * 12
        assert value_of(size_steps) <= value_of(single) + allowed
        begins = [step.from_bytes for step in size_steps.setting.steps]
        assert all(begin.bit_count() == 1 for begin in begins)


def test_each_octave_of_an_unmerged_list_of_size_steps_has_its_best_size() -> None:
    """Without mergers worth their while the steps are the octaves' own choices."""
    workload = Workload.log_uniform(2**14, 2**20, points=48)
    best = best_of(MYRINET, workload)
    size_steps = solvers.choose_size_steps(MYRINET, best, workload, rule=SizeRule())
    for step, after in zip(size_steps.setting.steps, size_steps.setting.steps[1:], strict=False):
        assert step.size_bytes is not None
        inside = [
            (one.message_bytes, one.share)
            for one in workload.sizes
            if step.from_bytes <= one.message_bytes < after.from_bytes
        ]
        if after.from_bytes > 2 * max(step.from_bytes, 2**14):
            continue
        octave = Workload.weighted(inside, "an octave")
        alone = solvers.choose_size(MYRINET, best_of(MYRINET, octave), octave, rule=SizeRule())
        assert alone.setting.steps[0].size_bytes == step.size_bytes


def test_by_the_total_time_no_steps_of_octaves_take_less() -> None:
    """Brute force over every size of each octave: the total is the sum of theirs, and mergers add
    at most what they may.
    """
    for at, case in enumerate(random_cases(count(60), seed=22)):
        rule = RULES[at % len(RULES)]
        workload = Workload.log_uniform(256, 2**14, points=24)
        best = best_of(case.pipeline, workload)
        chosen = solvers.choose_size_steps(
            case.pipeline, best, workload, rule=rule, objective=Objective.TIME
        )
        min_us = best_us = 0.0
        for bit in range(8, 15):
            inside = [
                (one.message_bytes, one.share)
                for one in workload.sizes
                if 1 << bit <= one.message_bytes < 2 << bit
            ]
            if not inside:
                continue
            octave = Workload.weighted(inside, "an octave")
            _, values = brute(case.pipeline, best, octave, rule)
            known = {one.message_bytes: one.latency_us for one in best}
            of_octave_us = sum(share * known[size] for size, share in inside)
            best_us += of_octave_us
            min_us += of_octave_us * (1.0 + values[Objective.TIME].min())
        least = min_us / best_us - 1.0
        mergers = 7 - len(chosen.setting.steps)
        assert least - 1e-9 <= chosen.time_regret <= least + MERGE_REGRET * mergers + 1e-9


@pytest.mark.parametrize("max_steps", [1, 2, 3])
def test_no_more_steps_than_asked_for(max_steps: int) -> None:
    """Also where merging costs something; fewer steps cost more."""
    workload = Workload.log_uniform(2**10, 2**24)
    best = best_of(MYRINET, workload)
    free = solvers.choose_size_steps(MYRINET, best, workload, rule=SizeRule())
    size_steps = solvers.choose_size_steps(
        MYRINET, best, workload, rule=SizeRule(), max_steps=max_steps
    )
    assert len(size_steps.setting.steps) == max_steps < len(free.setting.steps)
    assert size_steps.mean_regret > free.mean_regret
    with pytest.raises(InvalidInput):
        solvers.choose_size_steps(MYRINET, best, workload, rule=SizeRule(), max_steps=0)


def test_where_every_message_goes_whole_there_is_one_step() -> None:
    """Overheads alone: octaves that are sent whole are one step, of the largest size."""
    pipeline = pipeline_of_lines([("one", 5.0, 0.0), ("two", 3.0, 0.0)])
    workload = Workload.log_uniform(1, 2**20, points=32)
    size_steps = solvers.choose_size_steps(
        pipeline, best_of(pipeline, workload), workload, rule=SizeRule()
    )
    (step,) = size_steps.setting.steps
    assert step.size_bytes == power_above(workload)
    assert size_steps.mean_regret == pytest.approx(0.0, abs=1e-12)


def test_octaves_that_are_sent_whole_are_so_to_their_ends() -> None:
    """Between the largest of the workload and the end of its octave there is no tiny second
    fragment.
    """
    pipeline = pipeline_of_lines([("one", 50.0, 1.0), ("two", 50.0, 1.0)])
    workload = Workload.log_uniform(2**10, 2**22, points=48)
    best = best_of(pipeline, workload)
    size_steps = solvers.choose_size_steps(pipeline, best, workload, rule=SizeRule()).setting
    assert len(size_steps.steps) > 1
    assert size_steps.size_at(2**15 - 1) == 2**15 - 1
    small = Workload.log_uniform(2**10, 2**15, points=48)
    single = solvers.choose_size(pipeline, best_of(pipeline, small), small, rule=SizeRule()).setting
    assert single.size_at(2**15) == 2**15


def test_an_aggregate_is_chosen_for_too() -> None:
    """By the latency that no pipeline with these costs exceeds."""
    pipeline = pipeline_of_lines([("one", 5.0, 3.0), ("two", 3.0, 4.0), ("three", 1.0, 2.0)])
    aggregate = seen_from_outside(pipeline, 40_000)
    assert isinstance(aggregate, Aggregate)
    workload = Workload.log_uniform(500, 40_000, points=20)
    best = best_of(aggregate, workload)
    chosen = solvers.choose_size(aggregate, best, workload, rule=SizeRule())
    _, values = brute(aggregate, best, workload, SizeRule())
    assert chosen.mean_regret <= values[Objective.MEAN].min() + 1e-9
