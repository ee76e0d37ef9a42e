"""What fragments that vary hold each other up, beside messages that are simulated one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.held_up import held_up
from domain.aggregate import Aggregate
from domain.measured_times import MeasuredTimes
from domain.nested import NestedSchedule
from domain.uncertainty import NamedCut
from tests.support.measured import times_of

SIZES = (1024, 65536)


def varying(*stages: tuple[float, float, float]) -> MeasuredTimes:
    """Stages of overhead in us, ns a byte, and deviation of single times."""
    times = times_of(*([(size, us + ns * size / 1e3) for size in SIZES] for us, ns, _ in stages))
    found = tuple(
        replace(known, sizes=tuple(replace(size, deviation=deviation) for size in known.sizes))
        for known, (_, _, deviation) in zip(times.stages, stages, strict=True)
    )
    return replace(times, stages=found)


def simulated(stages: tuple[tuple[float, float, float], ...], cut: tuple[int, ...]) -> float:
    """The same by the recurrence, over 20 000 messages of gamma-distributed times."""
    rng = np.random.default_rng(7)
    ends, plain = np.zeros((len(stages), 20_000)), np.zeros(len(stages))
    for size in cut:
        before, at = np.zeros(20_000), 0.0
        for place, (overhead_us, ns_per_byte, deviation) in enumerate(stages):
            mean_us, shape = overhead_us + ns_per_byte * size / 1e3, deviation**-2
            drawn = rng.gamma(shape, mean_us / shape, 20_000)
            before = ends[place] = np.maximum(ends[place], before) + drawn
            at = plain[place] = max(plain[place], at) + mean_us
    return float(ends[-1].mean() / plain[-1])


@pytest.mark.parametrize("count", [2, 5, 30, 200])
@pytest.mark.parametrize(
    "stages",
    [
        ((10.0, 1.0, 0.1), (10.0, 1.0, 0.1)),
        ((10.0, 1.0, 0.3), (12.0, 1.0, 0.3), (5.0, 1.1, 0.3)),
        ((10.0, 1.0, 0.5), (2.0, 0.2, 0.5)),
    ],
)
def test_it_is_what_simulated_messages_take(
    stages: tuple[tuple[float, float, float], ...], count: int
) -> None:
    """Whatever the form of the distribution: mean and deviation tell it to a percent or so."""
    found = held_up(varying(*stages), 4096 * count, NamedCut("cut", 4096))
    told = simulated(stages, (4096,) * count)
    assert found == pytest.approx(told, abs=0.01 + 0.2 * (told - 1.0))


def test_nothing_holds_up_one_fragment_one_stage_or_equal_times() -> None:
    equal, noisy = (10.0, 1.0, 0.0), (10.0, 1.0, 0.4)
    cut = NamedCut("cut", 4096)
    assert held_up(varying(noisy, noisy), 4096, cut) == 1.0
    assert held_up(varying(noisy), 65536, cut) == 1.0
    assert held_up(varying(equal, equal), 65536, cut) == pytest.approx(1.0, abs=1e-12)


def test_it_is_not_told_of_what_is_not_known() -> None:
    """Stages of an aggregate; fragments that a stage divides further."""
    noisy = (10.0, 1.0, 0.4)
    times = varying(noisy, noisy)
    cut = NamedCut("cut", 4096)
    assert held_up(times, 65536, cut) > 1.01
    assert held_up(replace(times, kind=Aggregate.kind), 65536, cut) == 1.0
    divided = NestedSchedule(((8192,) * 8, (4096,) * 16))
    assert held_up(times, 65536, NamedCut("cut", schedule=divided)) == 1.0


def test_an_uneven_cut_of_equal_fragments_is_the_repeated_one() -> None:
    times = varying((10.0, 1.0, 0.4), (12.0, 0.9, 0.2))
    repeated = held_up(times, 65536, NamedCut("cut", 4096))
    listed = NamedCut.of_fragments("cut", [4096] * 16)
    assert held_up(times, 65536, listed) == pytest.approx(repeated, rel=1e-12)
    rest = held_up(times, 65536 + 100, NamedCut("cut", 4096))
    assert rest == pytest.approx(
        held_up(times, 65536 + 100, NamedCut.of_fragments("cut", [4096] * 16 + [100])), rel=1e-12
    )


@given(
    st.lists(
        st.tuples(st.floats(0.0, 100.0), st.floats(0.0, 10.0), st.floats(0.0, 3.0)),
        min_size=1,
        max_size=5,
    ),
    st.integers(1, 2**24),
    st.integers(1, 2**20),
)
def test_it_is_never_below_one(
    stages: list[tuple[float, float, float]], message_bytes: int, size: int
) -> None:
    """Also where nothing takes any time."""
    found = held_up(varying(*stages), message_bytes, NamedCut("cut", size))
    assert 1.0 <= found < 10.0
