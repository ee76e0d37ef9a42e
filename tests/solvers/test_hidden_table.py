"""Tables of messages that are hidden behind a calculation, against the search at single sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import solvers
from bench.workloads import myrinet, random_pipeline
from domain.errors import InvalidInput, StrategyDeclined
from domain.hiding import HiddenBehind
from domain.pipeline import FitRange, Pipeline, Stage
from domain.plan_table import PlanTable
from domain.problem import FragmentLimits, Problem
from domain.solution import Strategy
from solvers.contract import Deadline
from solvers.hidden_cut import HostWork, hidden_cut
from tests.support.counts import count

FREE = FragmentLimits(max_fragments=None)
CAP = 5_000
ROUNDING = 1e-9


def compiled(
    pipeline: Pipeline, behind: HiddenBehind, last: int, gap: float, limits: FragmentLimits = FREE
) -> PlanTable:
    return solvers.compile_table(
        pipeline,
        limits,
        min_message_bytes=64,
        max_message_bytes=last,
        relative_gap=gap,
        fragment_cap=CAP,
        behind=behind,
    )


def host_of(behind: HiddenBehind, message_bytes: int) -> HostWork:
    fixed_us, us_per_byte = behind.meanwhile_us
    return HostWork(fixed_us + us_per_byte * message_bytes, behind.processors)


def repeated(size: int, message_bytes: int) -> tuple[int, ...]:
    full = (message_bytes - 1) // size
    return (size,) * full + (message_bytes - full * size,)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Pipeline, HiddenBehind, FragmentLimits]:
    stages = draw(st.integers(1, 5))
    on = draw(st.lists(st.integers(0, stages - 1), unique=True, max_size=3))
    ends = (tuple(on),) if draw(st.booleans()) else tuple((stage,) for stage in on[:2])
    behind = HiddenBehind(
        draw(st.floats(0.0, 2_000.0)),
        draw(st.sampled_from([0.0, 0.01, 0.05])),
        draw(st.sampled_from([0.3, 0.8, 1.0])),
        draw(st.sampled_from([0.0, 7.0])),
        tuple(one for one in ends if one),
    )
    limits = FragmentLimits(
        draw(st.sampled_from([1, 64])), draw(st.sampled_from([None, 20_000])), 1, None
    )
    pipeline = random_pipeline(stages, seed=draw(st.integers(0, 10_000)))
    delay = draw(st.sampled_from([0.0, 40.0]))
    return Pipeline(pipeline.stages, delay), behind, limits


@given(cases(), st.integers(0, 2**32 - 1))
@settings(max_examples=count(400))
def test_every_entry_is_within_its_gap_of_the_best_cut(
    case: tuple[Pipeline, HiddenBehind, FragmentLimits], seed: int
) -> None:
    """Between entries too: of the search for hidden cuts, and of repeated sizes around."""
    pipeline, behind, limits = case
    last = 1 << 16
    table = compiled(pipeline, behind, last, 5e-3, limits)
    rng = np.random.default_rng(seed)
    for size in (64, last, *np.exp(rng.uniform(np.log(64), np.log(last), 6)).astype(int).tolist()):
        problem, host = Problem(pipeline, size, limits, CAP), host_of(behind, size)
        known = solvers.solve(problem, Strategy.AUTO, relative_gap=1e-4)
        best = hidden_cut(
            problem, host, known, relative_gap=1e-5, deadline=Deadline.after(60.0)
        ).run_us
        run_us = host.run_us(problem, table.cut_at(size))
        assert run_us <= best * (1.0 + table.relative_gap_at(size)) * (1.0 + ROUNDING)
        own = table.repeated_size_at(size)
        if not own:
            continue
        tried = {size, *(-(-size // k) + more for k in range(1, 40) for more in (0, 1, 17))}
        cuts = [repeated(min(one, size), size) for one in tried]
        others = [host.run_us(problem, cut) for cut in cuts if problem.admits(cut)]
        found_us = host.run_us(problem, repeated(own, size))
        within = (1.0 + table.repeat_gap_at(size)) * (1.0 + ROUNDING)
        assert found_us <= min(others, default=np.inf) * within


def test_entries_state_run_times() -> None:
    """With what is over before a message leaves, which no cut changes."""
    behind = HiddenBehind(100.0, 0.02, 0.75, 5.0, ((0, 3),))
    table = compiled(myrinet(), behind, 1 << 18, 1e-3)
    for entry in table.cuts:
        problem = Problem(myrinet(), entry.message_bytes, FREE, CAP)
        whole = host_of(behind, entry.message_bytes).run_us(problem, entry.fragment_bytes)
        before_us = 0.25 * (100.0 + 0.02 * entry.message_bytes)
        assert entry.latency_us == pytest.approx(before_us + whole, rel=1e-12)


@pytest.mark.parametrize(
    ("calculation_us", "fragments", "run_us"),
    [(0, 6, 184.361), (50, 5, 184.436), (100, 3, 204.2), (120, 2, 213.289), (300, 1, 375.0)],
)
def test_the_published_pipeline_at_4096_bytes(
    calculation_us: float, fragments: int, run_us: float
) -> None:
    """Both copies on the calculating processor: docs/theory.md, "Hidden messages"."""
    behind = HiddenBehind(calculation_us, processors=((0, 3),))
    table = solvers.compile_table(
        myrinet(),
        FREE,
        min_message_bytes=4096,
        max_message_bytes=4096,
        relative_gap=1e-4,
        behind=behind,
    )
    assert table.cuts[0].fragments == fragments
    assert table.cuts[0].latency_us == pytest.approx(run_us, rel=2e-5)


def test_a_hidden_message_is_cut_less_often() -> None:
    behind = HiddenBehind(120.0, processors=((0, 3),))
    hidden, plain = (compiled(myrinet(), one, 1 << 16, 1e-3) for one in (behind, HiddenBehind(0.0)))
    assert len(hidden.cut_at(4096)) < len(plain.cut_at(4096))


@pytest.mark.parametrize("behind", [HiddenBehind(1.0, processors=((0, 4),))])
def test_stages_that_are_not_there(behind: HiddenBehind) -> None:
    with pytest.raises(InvalidInput, match="indices"):
        compiled(myrinet(), behind, 1 << 12, 1e-2)


def test_stages_with_ranges_have_no_such_table() -> None:
    ranges = (FitRange(1.0, 1.0, 1000), FitRange(5.0, 1.0))
    with pytest.raises(StrategyDeclined, match="one line"):
        compiled(Pipeline((Stage("a", ranges),)), HiddenBehind(1.0), 1 << 12, 1e-2)


@pytest.mark.parametrize(
    "wrong",
    [
        {"calculation_us": -1.0},
        {"calculation_us": float("nan")},
        {"calculation_us": 1.0, "calculation_us_per_byte": float("inf")},
        {"calculation_us": 1.0, "hideable_fraction": 1.5},
        {"calculation_us": 1.0, "overhead_us": -0.1},
    ],
)
def test_wrong_calculations(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidInput):
        HiddenBehind(**wrong)
