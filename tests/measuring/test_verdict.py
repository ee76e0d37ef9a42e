"""Verdicts on recorded and invented transfers: against a search over offsets, and by machines whose
fault is known.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from random import Random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import NotMeasurable
from domain.pipeline import Pipeline, pipeline_of_lines
from domain.verification import TOLERANCE, ModelVerdict, Verification
from measuring.verdict import MAX_OFFSET, MIN_RUNS, Run, median_interval, repeated_cut, verdict_on
from tests.support.counts import count

MESSAGE = 1 << 20
NAMES = ("copy", "link", "file")
PIPELINE = pipeline_of_lines([("copy", 5.0, 0.1), ("link", 50.0, 10.0), ("file", 300.0, 2.0)])
SIZES = tuple(MESSAGE // k for k in (1, 2, 4, 8, 16, 32, 64))


def crossed(times_us: list[list[float]]) -> tuple[float, list[float]]:
    """The latency and each stage's occupation, by fragment and stage, event by event."""
    stages = len(times_us[0])
    free, occupied, end = [0.0] * stages, [0.0] * stages, 0.0
    for row in times_us:
        ready = 0.0
        for stage, took in enumerate(row):
            free[stage] = max(ready, free[stage]) + took
            occupied[stage] += took
            ready = free[stage]
        end = free[-1]
    return end, occupied


def runs_of(
    pipeline: Pipeline,
    change: Callable[[int, float, int], float] = lambda stage, took, size: took,
    *,
    noise: float = 0.002,
    added_us: float = 0.0,
    busy: float = 0.3,
    each: int = 8,
) -> dict[int, list[Run]]:
    """Runs on a machine whose stages take what `change` makes of their costs."""
    random, found = Random(5), dict[int, list[Run]]()
    for size in SIZES:
        found[size] = []
        for _ in range(each):
            times = [
                [
                    change(j, stage.time_us(part), part) * (1 + random.gauss(0.0, noise))
                    for j, stage in enumerate(pipeline.stages)
                ]
                for part in repeated_cut(MESSAGE, size)
            ]
            latency, occupied = crossed(times)
            latency += added_us
            processor = tuple(busy * latency / len(occupied) for _ in occupied)
            found[size].append(Run(latency, tuple(occupied), processor))
    return found


def verdict_of(runs: dict[int, list[Run]], pipeline: Pipeline = PIPELINE) -> Verification:
    return verdict_on(pipeline, MESSAGE, runs, stages=NAMES, processors=2)


def codes(found: Verification) -> list[str]:
    return [reason.code for reason in found.reasons]


def _half_more(stage: int, took: float, size: int) -> float:
    return took * (1.5 if stage == 1 else 1.0)


class TestVerdict:
    """Each of the four, and why."""

    def test_a_machine_as_modelled(self) -> None:
        found = verdict_of(runs_of(PIPELINE))
        assert found.verdict is ModelVerdict.HOLDS
        assert found.reasons == ()
        assert [size.fragment_bytes for size in found.sizes] == sorted(SIZES)
        assert all(abs(size.ratio - 1.0) < 0.01 for size in found.sizes)
        least = min(found.sizes, key=lambda size: size.predicted_us)
        assert found.best_measured.measured_us <= least.measured_us

    def test_a_constant_is_told_in_microseconds(self) -> None:
        found = verdict_of(runs_of(PIPELINE, added_us=2000.0))
        assert found.verdict is ModelVerdict.HOLDS_OFFSET
        assert found.offset_us == pytest.approx(2000.0, rel=0.1)

    def test_a_wrong_rate_is_no_constant(self) -> None:
        """Though one constant would bring most sizes near, as their bytes are the same."""
        fine = {size: runs for size, runs in runs_of(PIPELINE, _half_more).items() if size < 2**18}
        assert verdict_of(fine).verdict is ModelVerdict.DOES_NOT_HOLD

    def test_stages_that_share_a_processor(self) -> None:
        """Their times add up, and their threads have the one processor all the time."""
        two = pipeline_of_lines([("copy", 5.0, 4.0), ("link", 5.0, 5.0), ("file", 1.0, 0.1)])
        runs = dict[int, list[Run]]()
        for size in SIZES:
            cut = repeated_cut(MESSAGE, size)
            total = sum(stage.time_us(part) for stage in two.stages for part in cut)
            runs[size] = [Run(total, (total / 2,) * 3, (total / 3.05,) * 3)] * 8
        found = verdict_on(two, MESSAGE, runs, stages=NAMES, processors=1)
        assert found.verdict is ModelVerdict.DOES_NOT_HOLD
        assert codes(found)[0] == "stages_share_processor"
        assert verdict_on(two, MESSAGE, runs, stages=NAMES, processors=2).reasons[0].code != (
            "stages_share_processor"
        )

    @pytest.mark.parametrize("noise", [0.002, 0.5])
    def test_a_busy_machine_is_said_first(self, noise: float) -> None:
        """Of runs that decide nothing, and of those that took longer; never where it holds."""
        runs = runs_of(PIPELINE, lambda j, took, size: took + 400.0 * (j == 1), noise=noise)
        more = {"stages": NAMES, "processors": 2}
        found = verdict_on(PIPELINE, MESSAGE, runs, load=(13.5, 2), **more)
        assert codes(found)[0] == "machine_busy"
        assert "wanted its processors, which are 2; verify again" in found.notice().detail
        idle = verdict_on(PIPELINE, MESSAGE, runs, load=(2.5, 2), **more)
        assert codes(idle) == codes(found)[1:]
        assert not verdict_on(PIPELINE, MESSAGE, runs_of(PIPELINE), load=(13.5, 2), **more).reasons

    def test_buffers_that_hold_more_than_a_fragment(self) -> None:
        """The overhead of the slow stage is hidden behind the fragment before."""
        found = verdict_of(runs_of(PIPELINE, lambda j, took, size: took - 280.0 * (j == 2)))
        assert found.verdict is ModelVerdict.DOES_NOT_HOLD
        assert codes(found) == ["faster_in_flow"]
        assert found.reasons[0].stage == "file"
        assert found.reasons[0].value("each_us") == pytest.approx(-280.0, rel=0.05)

    def test_bursts_in_the_samples(self) -> None:
        found = verdict_of(runs_of(PIPELINE, lambda j, took, size: took + 400.0 * (j == 1)))
        assert found.verdict is ModelVerdict.DOES_NOT_HOLD
        assert codes(found) == ["bursts_in_samples"]
        assert found.reasons[0].stage == "link"

    def test_a_stage_that_is_slower_in_company(self) -> None:
        found = verdict_of(runs_of(PIPELINE, lambda j, took, size: took * (1.0 + 0.6 * (j == 1))))
        assert found.verdict is ModelVerdict.DOES_NOT_HOLD
        assert codes(found) == ["slower_in_company"]
        assert found.reasons[0].value("ratio") == pytest.approx(1.6, rel=0.01)

    def test_handing_on_costs(self) -> None:
        """Stages take what they should, and something takes time between fragments."""
        runs = runs_of(PIPELINE)
        for size, taken in runs.items():
            waited = 150.0 * len(repeated_cut(MESSAGE, size))
            taken[:] = [Run(r.latency_us + waited, r.occupied_us, r.processor_us) for r in taken]
        found = verdict_of(runs)
        assert found.verdict is ModelVerdict.DOES_NOT_HOLD
        assert codes(found) == ["handing_on_costs"]
        assert found.reasons[0].value("each_us") == pytest.approx(150.0, rel=0.1)

    def test_a_little_slower_stage_is_not_why_all_takes_much_longer(self) -> None:
        """What explains the most is said first."""
        runs = runs_of(PIPELINE, lambda j, took, size: took * (1.0 + 0.06 * (j == 1)))
        for size, taken in runs.items():
            waited = 150.0 * len(repeated_cut(MESSAGE, size))
            taken[:] = [Run(r.latency_us + waited, r.occupied_us, r.processor_us) for r in taken]
        found = verdict_of(runs)
        assert codes(found) == ["handing_on_costs", "slower_in_company"]
        assert 0.0 < found.reasons[0].value("each_us") <= 150.0

    def test_noise_decides_nothing(self) -> None:
        runs = runs_of(PIPELINE)
        random = Random(1)
        for taken in runs.values():
            taken[:] = [
                Run(r.latency_us * random.choice((0.6, 1.4)), r.occupied_us, r.processor_us)
                for r in taken
            ]
        found = verdict_of(runs)
        assert found.verdict is ModelVerdict.NOT_DECIDED
        assert codes(found) == ["runs_disagree"]

    def test_other_stages_than_the_models_give_no_reason_of_one(self) -> None:
        two = pipeline_of_lines([("copy", 5.0, 0.1), ("link", 900.0, 10.0)])
        assert codes(verdict_of(runs_of(PIPELINE), two)) == []

    def test_a_model_of_no_time_is_compared_with_nothing(self) -> None:
        with pytest.raises(NotMeasurable, match="take no time"):
            verdict_of(runs_of(PIPELINE), pipeline_of_lines([("copy", 0.0, 0.0)]))

    def test_few_runs_are_left_out(self) -> None:
        runs = runs_of(PIPELINE)
        runs[SIZES[0]] = runs[SIZES[0]][: MIN_RUNS - 1]
        assert SIZES[0] not in [size.fragment_bytes for size in verdict_of(runs).sizes]
        with pytest.raises(NotMeasurable):
            verdict_of({SIZES[0]: runs[SIZES[0]]})

    def test_one_constant_for_two_sizes_says_nothing(self) -> None:
        runs = runs_of(PIPELINE, added_us=30_000.0)
        found = verdict_of({size: runs[size] for size in SIZES[:2]})
        assert found.verdict is ModelVerdict.DOES_NOT_HOLD
        assert found.offset_us is None


@given(
    st.lists(
        st.tuples(st.floats(0.7, 1.5), st.floats(0.0, 0.2), st.floats(0.0, 3000.0)),
        min_size=3,
        max_size=5,
    )
)
def test_the_verdict_is_that_of_a_search_over_offsets(
    cases: list[tuple[float, float, float]],
) -> None:
    """Over a fine grid of constants; what lies between two of its points is not decided by it."""
    sizes = SIZES[: len(cases)]
    runs = {}
    for size, (share, width, added) in zip(sizes, cases, strict=True):
        middle = share * PIPELINE.latency_us(repeated_cut(MESSAGE, size)) + added
        times = [middle * (1 + width * at / 5) for at in range(-5, 6)]
        runs[size] = [Run(time, (1.0,) * 3, (1.0,) * 3) for time in times]
    found = verdict_of(runs)
    assert all(size.low_us <= size.measured_us <= size.high_us for size in found.sizes)

    def inside(offset_us: float, slack: float) -> bool:
        low, high = 1 - TOLERANCE - slack, 1 + TOLERANCE + slack
        return all(
            low * (s.predicted_us + offset_us) <= s.low_us
            and s.high_us <= high * (s.predicted_us + offset_us)
            for s in found.sizes
        )

    def reaches(offset_us: float, slack: float) -> bool:
        low, high = 1 - TOLERANCE - slack, 1 + TOLERANCE + slack
        return all(
            low * (s.predicted_us + offset_us) <= s.high_us
            and s.low_us <= high * (s.predicted_us + offset_us)
            for s in found.sizes
        )

    limit = MAX_OFFSET * min(size.predicted_us for size in found.sizes)
    grid = [limit * step / 1000 for step in range(-1000, 1001)]
    if found.verdict is ModelVerdict.HOLDS:
        assert inside(0.0, 1e-9)
    else:
        assert not inside(0.0, -1e-9)
    if found.verdict is ModelVerdict.HOLDS_OFFSET:
        assert found.offset_us is not None
        assert inside(found.offset_us, 1e-9)
        assert 0.0 < abs(found.offset_us) <= limit
    if found.verdict is ModelVerdict.DOES_NOT_HOLD:
        assert not any(reaches(offset, -1e-9) for offset in grid)
    if found.verdict is ModelVerdict.NOT_DECIDED:
        assert not any(inside(offset, -1e-9) for offset in grid)


class TestMedianInterval:
    """By order statistics, against all ranks and against draws."""

    @pytest.mark.parametrize("runs", range(1, 40))
    def test_it_is_the_narrowest_that_keeps_95_of_100(self, runs: int) -> None:
        found = median_interval(list(range(runs)))
        outside = [sum(comb(runs, i) for i in range(r + 1)) * 2 / 2**runs for r in range(runs)]
        ranks = [rank for rank, share in enumerate(outside) if share <= 0.05]
        assert found == ((ranks[-1], runs - 1 - ranks[-1]) if ranks else None)
        assert (found is None) == (runs < MIN_RUNS)

    def test_it_has_the_median_of_skewed_times(self) -> None:
        noise, inside, rounds = Random(2), 0, count(20_000)
        for _ in range(rounds):
            low, high = median_interval([noise.lognormvariate(0.0, 0.5) for _ in range(9)]) or (
                0.0,
                0.0,
            )
            inside += low <= 1.0 <= high
        assert inside / rounds >= 0.95 - 3 * (0.05 * 0.95 / rounds) ** 0.5


@given(st.integers(1, 10**7), st.integers(1, 10**4))
def test_a_repeated_size_makes_the_whole_message(message: int, parts: int) -> None:
    size = -(-message // parts)
    cut = repeated_cut(message, size)
    assert sum(cut) == message
    assert len(cut) == -(-message // size)
    assert set(cut[:-1]) <= {size}
    assert 0 < cut[-1] <= size


def test_a_verdict_does_not_depend_on_the_order_of_runs() -> None:
    runs = runs_of(PIPELINE, noise=0.03)
    mixed = {size: sorted(runs[size], key=lambda r: r.latency_us) for size in reversed(SIZES)}
    assert verdict_of(mixed) == verdict_of(runs)
    assert verdict_of(runs).sizes[0].measured_us == median(r.latency_us for r in runs[SIZES[-1]])
