"""Published numbers of Strumpen94, and those that follow from its model by closed form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.hiding import Exchange, HideQuestion, HostStages, hide
from domain.hiding import (
    CountRange,
    Granularity,
    Overlap,
    Regime,
    Scaling,
    conjugate_gradients,
    gains,
)
from domain.pipeline import pipeline_of_lines
from domain.problem import Problem
from domain.schedule import latency_us
from tests.paper.test_tables import MYRINET

# --- the model ------------------------------------------------------------------------------------


def test_example_1() -> None:
    """γ_s = 5 and f = 1: gains 3/5, 5/3 and 3/2."""
    found = [
        Overlap(1.0, overhead).gain(Granularity(5.0, hardware).ratio)
        for hardware, overhead in ((1.0, 1.0), (5.0, 0.2), (10.0, 0.0))
    ]
    assert found == pytest.approx([3 / 5, 5 / 3, 3 / 2], abs=1e-12)


@pytest.mark.parametrize(
    ("hardware", "overhead", "least"), [(5.0, 0.0, 1.4), (1.0, 0.2, 11 / 12), (10.0, 1.0, 1.0)]
)
def test_example_2_with_its_end_as_it_is(hardware: float, overhead: float, least: float) -> None:
    """Least gains over γ_s in [2, 10]; of the third it is exactly 1 at the end, not more."""
    places = [2.0 + 8.0 * step / 1000 for step in range(1001)]
    assert min(gains(places, hardware=hardware, overlap=Overlap(1.0, overhead))) == pytest.approx(
        least, abs=1e-9
    )


def test_gains_of_one_and_a_half() -> None:
    """f = 1 and no overhead: γ_s in [.5, 2] for γ_h = 1, [5, 20] for 10."""
    window = Overlap().window(1.5)
    assert window is not None
    for hardware, ends in ((1.0, (0.5, 2.0)), (10.0, (5.0, 20.0))):
        assert (hardware / window.high, hardware / window.low) == pytest.approx(ends, abs=1e-12)


@pytest.mark.parametrize(
    ("fraction", "overhead", "peak"), [(0.5, 0.0, 1.5), (1.0, 0.2, 11 / 6), (1.0, 1.0, 1.5)]
)
def test_the_max_gain(fraction: float, overhead: float, peak: float) -> None:
    """1 + f / (1 + Ω), where r = f + Ω."""
    overlap = Overlap(fraction, overhead)
    assert overlap.peak_gain == pytest.approx(peak, abs=1e-12)
    assert overlap.gain(fraction + overhead) == pytest.approx(peak, abs=1e-12)
    assert overlap.gain(1.1 * overlap.full_at) < peak
    assert overlap.gain(0.9 * overlap.full_at) < peak


@given(st.floats(0.0, 1.0), st.floats(0.0, 100.0), st.floats(0.0, 1e6))
def test_hiding_loses_exactly_where_r_is_below_the_overhead(
    fraction: float, overhead: float, ratio: float
) -> None:
    overlap = Overlap(fraction, overhead)
    assert (overlap.regime(ratio) is Regime.LOSS) == (ratio < overhead)
    assert overlap.gain(ratio) <= 1.0 if ratio < overhead else overlap.gain(ratio) >= 1.0 - 1e-15


def test_all_to_all_at_its_corner() -> None:
    """q = p, f = 1, Ω = 0 and λ = p²: gain 2, S_lh = p, S = p / 2."""
    scaling = Scaling(1e-4, 1.0)
    assert scaling.gain(100) == pytest.approx(2.0, abs=1e-12)
    assert scaling.hidden_speedup(100) == pytest.approx(100.0, rel=1e-12)
    assert scaling.speedup(100) == pytest.approx(50.0, rel=1e-12)


MESH = {
    0.0: (158.74, 52.913),
    0.25: (131.04, 58.239),
    0.5: (100.0, 66.667),
    2 / 3: (76.31, 76.314),
    0.75: (82.55, 82.548),
    0.9: (93.22, 93.217),
    1.0: (100.0, 100.0),
}
ALL_TO_ALL = {
    0.0: (31.62, 15.811),
    0.25: (27.39, 18.257),
    0.5: (22.36, 22.361),
    0.75: (27.39, 27.386),
    1.0: (31.62, 31.623),
}


@pytest.mark.parametrize(
    ("exponent", "fraction", "wanted"),
    [
        *((0.5, fraction, wanted) for fraction, wanted in MESH.items()),
        *((1.0, fraction, wanted) for fraction, wanted in ALL_TO_ALL.items()),
    ],
)
def test_best_numbers_of_processes(
    exponent: float, fraction: float, wanted: tuple[float, float]
) -> None:
    """λ = 1000 and Ω = 0. They fall with f to 2/3 on a mesh and rise again beyond it."""
    scaling = Scaling(1e-3, exponent, Overlap(fraction))
    places = [10.0 ** (step / 20_000.0) for step in range(70_000)]
    best = max(places, key=scaling.hidden_speedup)
    assert best == pytest.approx(wanted[0], rel=3e-4)
    assert scaling.hidden_speedup(best) == pytest.approx(wanted[1], rel=1e-4)
    chosen = scaling.best(CountRange(1, 10**6)).hidden
    assert abs(chosen - best) <= 1.0


def test_two_messages_each() -> None:
    """q = 2, f = 1, λ = 1000: S_lh = p up to 500, then constant; S tends to 500."""
    scaling = Scaling(2.0 / 1000.0, 0.0)
    for processes in (1, 10, 499, 500):
        assert scaling.hidden_speedup(processes) == pytest.approx(processes, rel=1e-12)
    assert scaling.hidden_speedup(10**6) == pytest.approx(500.0, rel=1e-12)
    assert scaling.speedup(10**9) == pytest.approx(500.0, rel=1e-5)
    assert scaling.speedup(10**9) < 500.0


@given(st.floats(1e-3, 1e12), st.floats(0.0, 1e3), st.integers(1, 1000))
def test_conjugate_gradients_lose_below_sixteen_processes(
    parallelism: float, nonzeros: float, processes: int
) -> None:
    scaling = conjugate_gradients(parallelism, nonzeros)
    overhead, ratio = 4.0 * processes, float(processes) ** 1.5  # both times λ
    assert (ratio < overhead) == (processes < 16)
    gain = scaling.gain(processes)
    if processes < 16:
        assert gain <= 1.0
    elif processes == 16:
        assert gain == pytest.approx(1.0, abs=1e-12)
    else:
        assert gain >= 1.0


@given(st.floats(10.0, 1e7), st.floats(0.0, 100.0))
def test_conjugate_gradients_have_their_optima_by_closed_form(
    parallelism: float, nonzeros: float
) -> None:
    """(2λ)^(2/3) without hiding; (2 (1-f) λ)^(2/3) with it where that is beyond the corner."""
    scaling = conjugate_gradients(parallelism, nonzeros)
    best = scaling.best(CountRange())
    assert abs(best.without - (2.0 * parallelism) ** (2 / 3)) <= 1.0
    rest = scaling.overlap.rest
    optimum = (2.0 * rest * parallelism) ** (2 / 3)
    if 2.0 * rest >= scaling.overlap.hideable_fraction + 4.0 * optimum / parallelism:
        assert abs(best.hidden - optimum) <= 1.0
    else:
        assert best.hidden >= optimum - 1.0


# --- tables 1 and 2, and the buffers of sec. 3.1.1, as published ----------------------------------

PIPE_MS = {"RS6000": 0.05, "SPARC1+": 0.38, "SPARC10": 0.11}
MESSAGE_MS = {  # overhead, direct, with hiding
    "RS6000": (0.2, 0.596, 0.977),
    "SPARC1+": (1.52, 0.962, 2.489),
    "SPARC10": (0.44, 0.442, 0.996),
}


def test_table_2_is_four_pipe_messages_and_the_direct_one() -> None:
    off = []
    for name, (overhead, direct, hidden) in MESSAGE_MS.items():
        assert overhead == pytest.approx(4.0 * PIPE_MS[name], abs=1e-12)
        off.append(100.0 * ((overhead + direct) / hidden - 1.0))
    assert off == pytest.approx([-18.5, -0.3, -11.4], abs=0.06)


def test_penalties_of_table_2() -> None:
    found = [hidden / direct for _, direct, hidden in MESSAGE_MS.values()]
    assert found == pytest.approx([1.639, 2.587, 2.253], abs=1e-3)


SYNCHRONISATION_MS = {  # by semaphore, by an 8-byte message through a pipe
    "HP9000": (0.09, 0.18),
    "RS6000": (0.053, 0.05),
    "Crimson": (0.222, 0.222),
    "SPARC1+": (0.5, 0.38),
    "SPARC10": (0.19, 0.11),
}


def test_table_1_agrees_with_table_2() -> None:
    """The pipe's times are those of which Table 2 has four; a pipe is faster on three machines."""
    assert {name: SYNCHRONISATION_MS[name][1] for name in PIPE_MS} == PIPE_MS
    faster = {name for name, (semaphore, pipe) in SYNCHRONISATION_MS.items() if pipe < semaphore}
    assert faster == set(PIPE_MS)


# --- the fragments, beyond the paper --------------------------------------------------------------


@pytest.mark.parametrize(
    ("calculation_us", "fragments", "hidden_us", "latency_optimal_us", "without_us"),
    [
        (0.0, 6, 184.357, 184.357, 184.357),
        (50.0, 5, 184.436, 198.0, 234.357),
        (100.0, 3, 204.2, 248.0, 284.357),
        (120.0, 2, 213.289, 268.0, 304.357),
        (150.0, 2, 239.6, 298.0, 334.357),
        (200.0, 1, 286.9, 348.0, 384.357),
        (300.0, 1, 375.0, 448.0, 484.357),
    ],
)
def test_hidden_fragments_on_myrinet(
    calculation_us: float,
    fragments: int,
    hidden_us: float,
    latency_optimal_us: float,
    without_us: float,
) -> None:
    """4096 bytes both ways, both copies on the processor that calculates."""
    question = HideQuestion(
        Problem(MYRINET, 4096),
        calculation_us,
        hosts=HostStages((0,), (3,)),
        exchange=Exchange.BOTH_WAYS,
    )
    found = hide(question)
    assert len(found.cut.fragment_bytes) == fragments
    assert found.with_us == pytest.approx(hidden_us, rel=1e-5)
    assert found.latency_optimal.with_us == pytest.approx(latency_optimal_us, rel=1e-5)
    assert found.without_us == pytest.approx(without_us, rel=1e-5)
    assert found.lower_bound_us <= found.with_us <= found.lower_bound_us * 1.0001


@pytest.mark.parametrize(
    ("calculation_us", "streamed_us"),
    [(20.0, 185.792), (50.0, 187.938), (100.0, 192.861), (200.0, 246.654), (400.0, 433.828)],
)
def test_streamed_myrinet(calculation_us: float, streamed_us: float) -> None:
    question = HideQuestion(
        Problem(MYRINET, 4096), calculation_us, hideable_fraction=0.0, streamed=True
    )
    found = hide(question)
    assert found.with_us == pytest.approx(streamed_us, rel=1e-4)
    assert found.relative_gap <= 1.1e-4
    assert found.without_us == pytest.approx(calculation_us + 184.357, rel=1e-5)


@pytest.mark.parametrize(
    ("overhead_us", "fragments", "ramp_us", "gain"),
    [(10.0, 14, 1146.429, 1.7533), (1.0, 45, 1045.222, 1.9144)],
)
def test_calculation_and_communication_as_two_stages(
    overhead_us: float, fragments: int, ramp_us: float, gain: float
) -> None:
    """c = B G = t = 1000 µs: k fragments take t + t/k + (k+1) g/2, growing by g each."""
    size = 10**7
    problem = Problem(pipeline_of_lines([("send", overhead_us, 1e6 / size)]), size)
    found = hide(HideQuestion(problem, 1000.0, hideable_fraction=0.0, streamed=True))
    assert len(found.cut.fragment_bytes) == fragments
    assert found.with_us == pytest.approx(ramp_us, rel=1e-5)
    assert found.gain == pytest.approx(gain, abs=1e-4)
    two = pipeline_of_lines([("calculation", 0.0, 1e6 / size), ("send", overhead_us, 1e6 / size)])
    for k in range(1, fragments + 1):
        first = size / k - (k - 1) / 2 * overhead_us * size / 1000.0
        ramp = [first + i * overhead_us * size / 1000.0 for i in range(k)]
        closed = 1000.0 + 1000.0 / k + (k + 1) * overhead_us / 2.0
        assert latency_us(two, ramp) == pytest.approx(closed, rel=1e-9)


def test_nothing_hideable_and_no_host_work_hide_nothing() -> None:
    problem = Problem(MYRINET, 4096)
    nothing = hide(HideQuestion(problem, 100.0, hideable_fraction=0.0))
    assert nothing.with_us == nothing.without_us
    long = hide(HideQuestion(problem, 1e12))
    assert long.gain == pytest.approx(1.0, abs=1e-9)
