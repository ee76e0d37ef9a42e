"""Caps in MiB, and where the time of a cut goes."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from analysis.items import MIB, ItemLimit, cap_mib, critical_steps, item_path
from domain.items import ItemProblem, ItemSequence
from domain.pipeline import FitRange, Pipeline, Stage


@given(st.integers(1, 2**40), st.integers(0, 2**30))
def test_a_cap_in_mib_is_one_of_the_caps(from_bytes: int, span: int) -> None:
    """Cut off to whole bytes, as programs do."""
    assert from_bytes <= int(cap_mib(from_bytes, from_bytes + span) * MIB) <= from_bytes + span


def test_a_cap_in_mib_has_the_fewest_decimals() -> None:
    assert cap_mib(26_000_000, 26_300_000) == 25.0
    assert cap_mib(26_214_401, 26_500_000) == 25.1
    assert cap_mib(25 * MIB + 1, None) == 26.0


@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(0, 60)), min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), min_size=1, max_size=4),
    st.data(),
)
def test_the_parts_of_a_path_sum_to_the_latency(
    items: list[tuple[int, int]], costs: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Of any cut; its steps wait for each other."""
    stages = tuple(
        Stage(f"s{place}", (FitRange(float(overhead_us), 1e3 * us),))
        for place, (overhead_us, us) in enumerate(costs)
    )
    sequence = ItemSequence.of([size for size, _ in items], [us for _, us in items])
    problem = ItemProblem(Pipeline(stages, 2.0), sequence)
    inner = data.draw(st.sets(st.integers(1, len(items))))
    cut = sorted({*inner, len(items)})
    path = item_path(problem, cut)
    total_us = path.calculation_us + path.bytes_us + path.overheads_us + 2.0
    assert abs(total_us - problem.latency_us(cut)) < 1e-6
    assert (path.stage is None) == (path.limit is ItemLimit.CALCULATION)
    times = problem.simulate(cut)
    steps, _, _ = critical_steps(problem, times)
    for (fragment, stage), (later, further) in pairwise(steps):
        end_us = times.in_stages.exit_us[fragment][stage]
        assert end_us == times.in_stages.start_us[later][further]
