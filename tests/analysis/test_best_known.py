"""The best known of many messages: out of a table, or solved, always with a proof."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import solvers
from analysis.best_known import SOLVED_GAP, each_known
from contract.limits import MAX_MESSAGE_BYTES
from domain.aggregate import Aggregate
from domain.errors import Infeasible
from domain.pipeline import FitRange, Pipeline, Stage, pipeline_of_lines
from domain.problem import FragmentLimits, Problem
from domain.regret import BestKnown
from domain.schedule import latency_us

PIPELINE = pipeline_of_lines([("a", 7.0, 7.0), ("b", 5.0, 24.0), ("c", 3.0, 8.0)], delay_us=2.0)
SIZES = (1, 4096, 5000, 65536)
CAP = 1000


def known(model: Pipeline | Aggregate, sizes: tuple[int, ...], **more: Any) -> list[BestKnown]:
    asked = {
        "table": None,
        "limits": FragmentLimits(),
        "fragment_cap": CAP,
        "time_limit_s": 60.0,
        **more,
    }
    return list(each_known(model, sizes, **asked))


def repeated_us(best: BestKnown) -> float:
    """The evaluator's latency of the repeated size that is stated."""
    assert best.repeat_bytes is not None
    full, rest = divmod(best.message_bytes, best.repeat_bytes)
    return latency_us(PIPELINE, [best.repeat_bytes] * full + [rest] * (rest > 0))


def test_solved_ones_are_in_order_proven_and_near_their_bounds() -> None:
    """Delay included; the repeated size is the best one, at the evaluator's latency."""
    found = known(PIPELINE, SIZES)
    assert tuple(one.message_bytes for one in found) == SIZES
    for one in found:
        assert one.lower_bound_us <= one.latency_us
        assert one.latency_us <= one.lower_bound_us * (1 + 20 * SOLVED_GAP)
        assert one.repeat_us == pytest.approx(repeated_us(one), rel=1e-12)
        repeat = solvers.solve(Problem(PIPELINE, one.message_bytes), "repeat")
        assert one.repeat_us == pytest.approx(repeat.latency_us, rel=1e-12)


def test_a_table_of_the_question_is_read_and_nothing_solved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its cuts by the evaluator, its certificates, its repeated sizes."""
    table = solvers.compile_table(
        PIPELINE, FragmentLimits(), min_message_bytes=1, max_message_bytes=65536, fragment_cap=CAP
    )
    solved = known(PIPELINE, SIZES)
    monkeypatch.setattr(solvers, "solve", None)
    for one, other in zip(known(PIPELINE, SIZES, table=table), solved, strict=True):
        cut_us = latency_us(PIPELINE, table.cut_at(one.message_bytes))
        gap = table.relative_gap_at(one.message_bytes)
        assert one.lower_bound_us == pytest.approx(cut_us / (1 + gap), rel=1e-12)
        assert one.lower_bound_us <= other.latency_us * (1 + 1e-12)
        assert one.repeat_bytes == table.repeated_size_at(one.message_bytes)
        assert one.repeat_us == pytest.approx(repeated_us(one), rel=1e-12)
        assert one.latency_us == min(cut_us, repeated_us(one))
        assert one.latency_us == pytest.approx(other.latency_us, rel=2e-3)


@pytest.mark.parametrize("changed", ["range", "limits", "cap", "pipeline"])
def test_a_table_of_another_question_is_left_alone(changed: str) -> None:
    """A size outside its range, other limits, another cap, other costs."""
    table = solvers.compile_table(
        PIPELINE, FragmentLimits(), min_message_bytes=1000, max_message_bytes=9000, fragment_cap=CAP
    )
    sizes = (5000, 9001) if changed == "range" else (5000,)
    limits = FragmentLimits(alignment_bytes=64) if changed == "limits" else FragmentLimits()
    cap = 999 if changed == "cap" else CAP
    model = PIPELINE.reversed() if changed == "pipeline" else PIPELINE
    more: dict[str, Any] = {"limits": limits, "fragment_cap": cap}
    assert known(model, sizes, table=table, **more) == known(model, sizes, **more)


def test_limits_that_repeat_nothing_leave_no_repeated_size() -> None:
    """10 bytes in fragments of 4 to 6, all but the last multiples of 2: 6 + 4 and 4 + 6 alone."""
    limits = FragmentLimits(4, 5, 1)
    (one,) = known(PIPELINE, (9,), limits=limits)
    assert one.repeat_bytes == 5
    (none,) = known(PIPELINE, (11 * 4 - 1,), limits=FragmentLimits(4, 5, 1, 9))
    assert (none.repeat_bytes, none.repeat_us) == (None, None)
    assert none.latency_us >= none.lower_bound_us > 0.0


def test_no_cut_at_all_is_said() -> None:
    """The message that the limits do not let through."""
    with pytest.raises(Infeasible, match="min_fragment_bytes"):
        known(PIPELINE, (9,), limits=FragmentLimits(5, 8))


def test_an_aggregate_has_a_bound_of_its_own() -> None:
    """Proven over every pipeline with these costs."""
    aggregate = Aggregate(
        Stage.of_line("total", overhead_us=15.0, ns_per_byte=39.0),
        Stage.of_line("bottleneck", overhead_us=5.0, ns_per_byte=24.0),
    )
    for one in known(aggregate, (1, 4096, 65536)):
        assert 0.0 < one.lower_bound_us <= one.latency_us <= (one.repeat_us or 0.0)


def test_the_largest_message_and_no_time() -> None:
    """The cap bounds the work; what time does not allow widens the interval and breaks nothing."""
    for one in known(PIPELINE, (MAX_MESSAGE_BYTES, 1_000_003), time_limit_s=1e-9, grace_s=5.0):
        assert one.lower_bound_us <= one.latency_us
        assert one.repeat_bytes is not None
        assert -(-one.message_bytes // one.repeat_bytes) <= CAP


@pytest.mark.parametrize("limits", [FragmentLimits(), FragmentLimits(max_fragment_bytes=100)])
def test_when_solves_have_not_kept_their_time_the_rest_is_between_wide_limits(
    monkeypatch: pytest.MonkeyPatch, limits: FragmentLimits
) -> None:
    """No search far beyond the limit; the clock stands in for slow solves."""
    sizes = (64, 128, 256)
    clock = count(0.0, 4.0)
    slow = SimpleNamespace(monotonic=lambda: next(clock))
    with monkeypatch.context() as patch:
        patch.setattr("analysis.best_known.time", slow)
        first, *others = known(PIPELINE, sizes, time_limit_s=2.0, grace_s=5.0, limits=limits)
    solved = known(PIPELINE, sizes, limits=limits)
    assert first == solved[0]
    for wide, narrow in zip(others, solved[1:], strict=True):
        assert wide.repeat_us is None
        assert wide.lower_bound_us <= narrow.lower_bound_us * (1 + 1e-9)
        assert wide.lower_bound_us <= narrow.latency_us <= wide.latency_us


@given(
    st.lists(
        st.lists(st.tuples(st.floats(0.0, 1e3), st.floats(0.0, 1e3)), min_size=1, max_size=3),
        min_size=1,
        max_size=4,
    ),
    st.integers(1, 400),
    st.sampled_from([FragmentLimits(), FragmentLimits(5, 60), FragmentLimits(max_fragments=2)]),
)
def test_the_bound_without_a_search_is_below_every_answer(
    costs: list[list[tuple[float, float]]], size: int, limits: FragmentLimits
) -> None:
    """Stages whose costs jump at 17 and at 120 bytes, in either direction."""
    ends = {1: (None,), 2: (17, None), 3: (17, 120, None)}
    stages = tuple(
        Stage(
            str(number),
            tuple(
                FitRange(overhead_us, ns_per_byte, end)
                for (overhead_us, ns_per_byte), end in zip(parts, ends[len(parts)], strict=True)
            ),
        )
        for number, parts in enumerate(costs)
    )
    try:
        (solved,) = known(Pipeline(stages, 3.0), (size,), limits=limits, time_limit_s=1.0)
    except Infeasible:
        return
    (simple,) = known(Pipeline(stages, 3.0), (size,), limits=limits, time_limit_s=0.0, grace_s=0.0)
    assert simple.lower_bound_us <= solved.latency_us <= simple.latency_us * (1 + 1e-12)
    assert simple.repeat_us is None
