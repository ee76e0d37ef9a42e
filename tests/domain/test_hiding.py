"""Closed forms of hiding against a grid, and the properties of gain, window and whole counts."""

from __future__ import annotations

import random
from math import exp, inf, isfinite, log, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.limits import MAX_OVERHEAD, MAX_PROCESSES
from domain.errors import InvalidInput
from domain.hiding import (
    CountRange,
    Granularity,
    Overlap,
    Regime,
    Scaling,
    SpeedupReference,
    conjugate_gradients,
    gains,
)
from tests.support.counts import count

FRACTIONS = st.floats(0.0, 1.0)
OVERHEADS = st.floats(0.0, 1e3)
RATIOS = st.floats(0.0, 1e9)


def scalings(cases: int) -> list[Scaling]:
    """Random scalings; the simple values among them more often than a draw has them."""
    rng = random.Random(7)
    made = []
    for _ in range(cases):
        fraction = rng.choice([0.0, 1.0, 0.5, rng.random(), rng.random()])
        overhead = rng.choice([0.0, 0.2, 1.0, rng.random() * 2.0])
        exponent = rng.choice([0.0, 0.5, 1.0, 4.0 * rng.random()])
        ratio = 10.0 ** rng.uniform(-6.0, 1.0)
        grows = rng.random() < 0.4
        overlap = Overlap(fraction, overhead * (ratio if grows else 1.0))
        made.append(Scaling(ratio, exponent, overlap, overhead_grows=grows))
    return made


@given(FRACTIONS, OVERHEADS, RATIOS)
def test_gain_is_below_one_exactly_where_communication_is_less_than_the_overhead(
    fraction: float, overhead: float, ratio: float
) -> None:
    overlap = Overlap(fraction, overhead)
    assert (overlap.regime(ratio) is Regime.LOSS) == (ratio < overhead)
    gain = overlap.gain(ratio)
    if ratio < overhead:
        assert gain <= 1.0
    else:
        assert gain >= 1.0 - 1e-15
    assert gain <= overlap.peak_gain * (1.0 + 1e-15)
    assert gain == pytest.approx(
        (1.0 + ratio) / ((1.0 - fraction) + max(fraction + overhead, ratio)), rel=1e-12
    )


@given(FRACTIONS, OVERHEADS, st.floats(0.0, 1.0))
def test_window_holds_exactly_the_ratios_of_that_gain(
    fraction: float, overhead: float, share: float
) -> None:
    overlap = Overlap(fraction, overhead)
    wanted = 1.0 + share * (overlap.peak_gain - 1.0)
    window = overlap.window(wanted)
    if window is None:
        assert not 1.0 < wanted <= overlap.peak_gain
        return
    assert window.low <= overlap.full_at <= window.high
    # A gain as near to 1 as rounding decides the far end of its window by rounding too.
    if wanted - 1.0 > 1e-6:
        assert overlap.gain(window.low) == pytest.approx(wanted, rel=1e-9)
        assert overlap.gain(window.high) == pytest.approx(wanted, rel=1e-9)
        assert overlap.gain(window.low * 0.99 - 1e-9) < wanted
        assert overlap.gain(window.high * 1.01 + 1e-9) < wanted


@pytest.mark.parametrize("min_gain", [1.0, 0.5, 0.0, -1.0, 2.0 + 1e-9, inf, nan])
def test_window_of_a_gain_that_is_not_reached_is_empty(min_gain: float) -> None:
    assert Overlap().window(min_gain) is None


def test_limits_of_the_gain() -> None:
    overlap = Overlap(0.7, 0.3)
    assert overlap.gain(inf) == 1.0
    assert overlap.gain(0.0) == 1.0 / 1.3
    assert overlap.gain(1e300) == 1.0
    assert overlap.gain(overlap.full_at) == pytest.approx(overlap.peak_gain, rel=1e-15)


def test_gains_are_those_of_the_ratio() -> None:
    assert gains([0.5, 1.0, 2.0], hardware=1.0, overlap=Overlap()) == (1.5, 2.0, 1.5)


def grid(scaling: Scaling) -> list[float]:
    """Counts of processes, as real numbers, that hold every optimum between two neighbours."""
    return [exp(log(10.0) * place / 40.0) for place in range(-400, 801)]


def test_closed_forms_equal_a_grid() -> None:
    for scaling in scalings(count(4000)):
        places = grid(scaling)
        for value, optimum in (
            (scaling.speedup, scaling._best_without()),
            (scaling.hidden_speedup, scaling._best_hidden()),
            (scaling.gain, scaling.corner()),
        ):
            best = max(map(value, places))
            reached = value(min(1e20, max(1e-10, optimum)))
            if value == scaling.gain:  # falls and rises before the corner where Omega grows
                reached = max(reached, value(places[0]))
            assert reached >= best * (1.0 - 1e-12), (scaling, optimum)
            if isfinite(optimum) and places[0] < optimum < places[-1] and value != scaling.gain:
                # The optimum lies within a step of the grid, where its value is within 2 %.
                assert best >= reached * 0.8


def test_whole_counts_equal_trying_all() -> None:
    rng = random.Random(11)
    for scaling in scalings(count(1000)):
        first = rng.choice([1, 1, rng.randint(1, 200)])
        counts = CountRange(first, first + rng.randint(0, 300))
        every = range(counts.first, counts.last + 1)
        best = scaling.best(counts)
        for value, chosen in (
            (scaling.speedup, best.without),
            (scaling.hidden_speedup, best.hidden),
            (scaling.gain, best.gain),
        ):
            assert value(chosen) >= max(map(value, every)) * (1.0 - 1e-14)


def test_equal_speedups_give_the_fewest_processes() -> None:
    plateau = Scaling(1.0 / 500.0, 0.0, Overlap(1.0, 0.0))
    assert plateau.best(CountRange(1, 10**6)).hidden == 500
    assert plateau.hidden_speedup(500) == plateau.hidden_speedup(10**6) == 500.0


@pytest.mark.parametrize("ratio", [5e-324, 1e-300, 1e-12, 1e12, 1e300])
@pytest.mark.parametrize("exponent", [0.0, 5e-324, 1e-9, 0.5, 4.0])
@pytest.mark.parametrize("grows", [False, True])
def test_extreme_scalings_overflow_nowhere(ratio: float, exponent: float, grows: bool) -> None:
    for overlap in (Overlap(), Overlap(0.0, 0.0), Overlap(0.3, MAX_OVERHEAD)):
        scaling = Scaling(ratio, exponent, overlap, overhead_grows=grows)
        counts = CountRange(1, MAX_PROCESSES)
        for reference in SpeedupReference:
            for point in scaling.curve(counts, 20, reference):
                assert 0.0 <= point.gain <= 2.0
                assert 0.0 <= point.speedup <= inf
                assert 0.0 <= point.hidden_speedup <= inf


def test_references_differ_in_scale_alone() -> None:
    scaling = Scaling(0.01, 0.5, Overlap(0.8, 0.1))
    for processes in (1, 10, 100):
        plain = scaling.point(processes)
        same = scaling.point(processes, SpeedupReference.SAME)
        own = scaling.point(processes, SpeedupReference.OWN)
        assert plain.hidden_speedup / plain.speedup == pytest.approx(plain.gain, rel=1e-12)
        assert same.hidden_speedup / same.speedup == pytest.approx(plain.gain, rel=1e-12)
        assert same.speedup == own.speedup
        if processes == 1:
            assert own.speedup == pytest.approx(1.0) == own.hidden_speedup


def test_curves_hold_their_ends_and_optima() -> None:
    scaling = Scaling(0.001, 0.5, Overlap(0.5, 0.0))
    counts = CountRange(1, 10_000)
    points = scaling.curve(counts, 400)
    best = scaling.best(counts)
    found = [point.processes for point in points]
    assert found == sorted(set(found))
    assert len(found) <= 400
    assert {1, 10_000, best.without, best.hidden, best.gain} <= set(found)


@given(st.floats(1e-3, 1e9), st.floats(0.0, 100.0), st.integers(1, 1000))
def test_conjugate_gradients_are_the_papers_formulas(
    parallelism: float, nonzeros: float, processes: int
) -> None:
    scaling = conjugate_gradients(parallelism, nonzeros)
    # In units of t_s + 3 t_w: the calculation of one process is 6 lambda.
    work = 6.0 * parallelism / (9.0 + 4.0 * nonzeros)
    sent = 6.0 * processes**0.5
    plain = (9.0 + 4.0 * nonzeros) * work / processes + sent
    hidden = (9.0 + 2.0 * nonzeros) * work / processes + max(
        2.0 * nonzeros * work / processes + 24.0, sent
    )
    assert scaling.gain(processes) == pytest.approx(plain / hidden, rel=1e-9)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Overlap(1.1), "hideable_fraction"),
        (lambda: Overlap(nan), "hideable_fraction"),
        (lambda: Overlap(-0.1), "hideable_fraction"),
        (lambda: Overlap(1.0, -1.0), "overhead"),
        (lambda: Overlap(1.0, inf), "overhead"),
        (lambda: Granularity(0.0, 1.0), "software"),
        (lambda: Granularity(1.0, nan), "hardware"),
        (lambda: CountRange(0, 1), "first"),
        (lambda: CountRange(2, 1), "first"),
        (lambda: CountRange(1, MAX_PROCESSES + 1), "last"),
        (lambda: Scaling(0.0), "ratio"),
        (lambda: Scaling(inf), "ratio"),
        (lambda: Scaling(1.0, 4.1), "exponent"),
        (lambda: Scaling(1.0, -0.1), "exponent"),
        (lambda: conjugate_gradients(0.0, 1.0), "parallelism"),
        (lambda: conjugate_gradients(1.0, nan), "nonzeros"),
    ],
)
def test_bad_values_are_refused(make: object, field: str) -> None:
    assert callable(make)
    with pytest.raises(InvalidInput) as refused:
        make()
    assert refused.value.field == field
