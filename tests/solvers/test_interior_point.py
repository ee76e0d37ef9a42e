"""The contract of the two interior-point methods: native and NumPy, one problem after another."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from solvers.exact.chain import Chain, ChainMethod, ChainOptions, Iterate
from solvers.exact.chain_bounds import bound_distance
from solvers.exact.dual import repaired, value_us, weights
from solvers.exact.interior_native import NativeMethod
from solvers.exact.interior_point import iterate
from solvers.kernels.native import Choice
from solvers.line_problem import LineProblem
from tests.support.compiler import require_native_kernels
from tests.support.counts import count
from tests.support.kernels import computed_by, native_kernels

CLOSE = 1e-9
OPTIONS = ChainOptions(close=CLOSE, time_limit_s=60.0)
TAPERING = Chain(
    overhead=np.array([7.2, 5.2, 7.5, 7.4]),
    G=np.array([7.2, 24.9, 24.9, 7.9]) / 1024.0,
    free_bytes=4096.0,
    spread_bytes=4096.0,
    k=6,
)
WAITING = Chain(
    overhead=np.array([0.0, 0.0, 1.0, 1.0]),
    G=np.ones(4),
    free_bytes=40.0,
    spread_bytes=40.0,
    k=13,
    boundaries=(0, 1, 2),
)
DISORDERED = Chain(  # without waits its p is out of order behind the second stage
    overhead=np.array([4.0, 4.0, 0.0]),
    G=np.array([4.0, 3.0, 4.0]),
    free_bytes=20.0,
    spread_bytes=20.0,
    k=8,
)
CAPPED = replace(TAPERING, spread_bytes=800.0)
REPEATED = Chain(
    overhead=np.array([3.0, 9.0, 2.0]),
    G=np.array([0.004, 0.02, 0.006]),
    free_bytes=2e6,
    spread_bytes=2e6,
    k=60,
    repeat_step=29,
    repeats=400,
)
KINDS = {
    "tapering": TAPERING,
    "waiting": WAITING,
    "disordered and waiting": replace(DISORDERED, boundaries=(1,)),
    "capped": CAPPED,
    "capped and waiting": replace(WAITING, spread_bytes=4.0),
    "repeated": REPEATED,
    "repeated under a cap": replace(REPEATED, spread_bytes=4600.0),
    "repeated and waiting": replace(REPEATED, boundaries=(0, 1)),
    "some of them waiting": replace(WAITING, waits=np.tri(11, 3, dtype=np.bool_)),
}


@pytest.fixture
def method(kernels: Choice) -> ChainMethod:
    """Each method, by an object of its own."""
    return iterate if kernels == "numpy" else loaded()


@pytest.fixture(scope="module")
def native_method() -> NativeMethod:
    """The native method alone."""
    require_native_kernels()
    return loaded()


def loaded() -> NativeMethod:
    """A method that calls into the build of the kernels."""
    return NativeMethod(native_kernels().library)


def found_by(method: ChainMethod, chain: Chain, options: ChainOptions = OPTIONS) -> Iterate:
    """The iterate, in the shapes that are promised."""
    got = method(chain, options)
    assert got is not None
    assert got.y.shape == (chain.k,)
    assert got.p.shape == (chain.k - 1, len(chain.G))
    assert got.violation.shape == (len(chain.G) - 1,)
    assert got.all_y(chain).shape == (chain.fragments,)
    assert chain.all_steps(got.p).shape == (chain.fragments - 1, len(chain.G))
    return got


def lines_of(chain: Chain) -> LineProblem:
    """The problem without a least size that the chain stands for."""
    return LineProblem(
        g=chain.overhead,
        G=chain.G,
        B=chain.free_bytes,
        m=0.0,
        M=chain.spread_bytes,
        k_min=1,
        k_max=chain.fragments,
    )


def bounds_us(chain: Chain, got: Iterate) -> tuple[float, float]:
    """Value of the repaired p and latency of the sizes, brought to their sum and below the cap."""
    lines, y = lines_of(chain), np.maximum(got.all_y(chain), 0.0)
    x = np.minimum(y * (chain.free_bytes / y.sum()), chain.spread_bytes)
    with computed_by("numpy"):
        latency_us = lines.latency_us(x)
    return value_us(lines, repaired(chain.all_steps(got.p))), latency_us


def random_chain(rng: np.random.Generator) -> Chain:
    """Two to eight stages, zeros among them; with and without waits and a cap."""
    n, k = int(rng.integers(2, 9)), int(rng.integers(2, 40))
    overhead = np.where(rng.random(n) < 0.2, 0.0, 10.0 ** rng.uniform(-1.0, 1.5, n))
    G = np.where(rng.random(n) < 0.1, 0.0, 10.0 ** rng.uniform(-1.0, 1.0, n))
    G[int(rng.integers(n))] += 0.5
    free = 10.0 ** rng.uniform(1.0, 4.0)
    spread = free if rng.random() < 0.6 else free / k * rng.uniform(1.2, 3.0)
    waits = tuple(range(n - 1)) if k > 2 and rng.random() < 0.7 else ()
    return Chain(overhead, G, free, spread, k, waits)


@pytest.mark.parametrize("kind", KINDS)
def test_both_bounds_meet(method: ChainMethod, kind: str) -> None:
    """As the method says, and as they are computed apart from it."""
    chain = KINDS[kind]
    got = found_by(method, chain)
    lower, upper = bounds_us(chain, got)
    assert got.apart <= CLOSE
    assert got.complementarity <= 2.0 * CLOSE
    assert -1e-12 * upper <= upper - lower <= 2.0 * CLOSE * upper
    assert bound_distance(chain, got, CLOSE) <= 2.0 * CLOSE


@pytest.mark.parametrize("kind", KINDS)
def test_the_iterate_is_inside(method: ChainMethod, kind: str) -> None:
    """Sizes are positive, below the cap and sum to the free bytes; the rows of p sum to 1."""
    chain = KINDS[kind]
    got = found_by(method, chain)
    y, p = got.all_y(chain), chain.all_steps(got.p)
    assert y.sum() == pytest.approx(chain.free_bytes, rel=1e-8)
    assert (y > 0.0).all()
    assert (y <= chain.spread_bytes * (1.0 + 1e-9)).all()
    assert (p > 0.0).all()
    assert p.sum(axis=1) == pytest.approx(np.ones(len(p)), rel=1e-8)


@pytest.mark.parametrize("close", [1e-2, 1e-4, 1e-6, 1e-9])
def test_complementarity_is_the_distance_of_the_two_objectives(
    method: ChainMethod, close: float
) -> None:
    """Of the iterate's own: lambda and p on one side, the longest of its paths on the other."""
    rng = np.random.default_rng(8)
    for _ in range(40):
        chain = replace(random_chain(rng), boundaries=())
        chain = replace(chain, spread_bytes=chain.free_bytes)
        got = found_by(method, chain, replace(OPTIONS, close=close))
        w = weights(lines_of(chain), got.p)
        dual = float(chain.overhead.sum() + (got.p @ chain.overhead).sum())
        dual += float(w.min()) * chain.free_bytes
        distance = no_wait_us(chain, got.y) - dual
        assert distance >= -1e-11 * dual
        assert distance <= (got.complementarity + 1e-9) * (distance + dual)


def no_wait_us(chain: Chain, y: np.ndarray) -> float:
    """Latency of sizes y where no fragment may wait: it starts late enough to pass unhindered."""
    y = y * (chain.free_bytes / y.sum())
    t = chain.overhead + np.outer(y, chain.G)
    leaves = np.cumsum(t, axis=1)
    later = (leaves[:-1] - (leaves[1:] - t[1:])).max(axis=1)
    return float(later.sum() + leaves[-1, -1])


def test_both_methods_agree(native_method: NativeMethod) -> None:
    """To 1e-6 in both bounds, on chains of every kind."""
    rng = np.random.default_rng(21)
    chains = [*KINDS.values(), *(random_chain(rng) for _ in range(60))]
    chains += [replace(chain, waits=some_waits(rng, chain)) for chain in chains]
    for chain in chains:
        ours, other = found_by(native_method, chain), found_by(iterate, chain)
        assert bounds_us(chain, ours) == pytest.approx(bounds_us(chain, other), rel=1e-6)
        assert ours.violation == pytest.approx(other.violation, abs=1e-5)


def some_waits(rng: np.random.Generator, chain: Chain) -> NDArray[np.bool_]:
    """Runs of fragments that may wait, behind some boundaries."""
    steps = rng.random((chain.k - 2, len(chain.G) - 1)) < 0.3
    waits: NDArray[np.bool_] = np.cumsum(steps, axis=0) % 2 == 1
    return waits


def test_waits_are_needed_only_where_the_order_is_violated(method: ChainMethod) -> None:
    """Let wait whoever is out of order until nobody is: the optimum with waits of all."""
    chain = replace(DISORDERED, k=40, free_bytes=100.0)
    some = replace(chain, waits=np.zeros((38, 2), dtype=np.bool_))
    got = found_by(method, some)
    while (risen := np.diff(np.cumsum(got.p, axis=1)[:, :-1], axis=0) > 1e-6).any():
        assert not (risen & some.may_wait).any()
        some = replace(some, waits=risen | some.may_wait)
        got = found_by(method, some)
    every = replace(chain, boundaries=(0, 1))
    optimum = bounds_us(every, found_by(method, every))
    assert bounds_us(some, got) == pytest.approx(optimum, rel=1e-6)
    assert 0 < some.may_wait.sum() < 38


def test_every_wait_at_once_is_solved_or_said_not_to_be(method: ChainMethod) -> None:
    """Waits that follow from one another leave rounding; then `apart` is what is left."""
    rng, solved, total = np.random.default_rng(5), 0, count(600)
    for _ in range(total):
        chain = random_chain(rng)
        if chain.k > 2:
            chain = replace(chain, boundaries=tuple(range(len(chain.G) - 1)))
        got = found_by(method, chain)
        lower, upper = bounds_us(chain, got)
        if not chain.is_capped:  # under a cap the method's own p, not the repaired one, is priced
            assert upper - lower <= (got.apart + CLOSE) * upper
        solved += upper - lower <= 2.0 * CLOSE * upper
    assert solved >= 0.97 * total


def test_a_repeated_step_is_that_many_steps(method: ChainMethod) -> None:
    """The short chain has the optimum of the long one."""
    long = replace(REPEATED, k=REPEATED.fragments, repeat_step=0, repeats=1)
    short, full = found_by(method, REPEATED), found_by(method, long)
    assert bounds_us(REPEATED, short) == pytest.approx(bounds_us(long, full), rel=3.0 * CLOSE)


@pytest.mark.parametrize("k", [2, 3])
def test_two_and_three_fragments_in_closed_form(method: ChainMethod, k: int) -> None:
    """Two equal stages without overheads: equal sizes, and one size more than the message."""
    chain = Chain(np.zeros(2), np.ones(2), 30.0, 30.0, k)
    got = found_by(method, chain)
    assert bounds_us(chain, got) == pytest.approx((30.0 + 30.0 / k,) * 2, rel=2.0 * CLOSE)
    assert got.y == pytest.approx(np.full(k, 30.0 / k), rel=1e-6)


def test_zeros_and_a_stage_that_outweighs_the_others(method: ChainMethod) -> None:
    """No overheads; costs that are 0; one stage a million times as slow."""
    base = np.array([1.0, 3.0, 2.0])
    for overhead, G in (
        (np.zeros(3), base),
        (base, np.array([0.0, 1.0, 0.0])),
        (base, np.array([1.0, 0.0, 2.0])),
        (base, base * np.array([1.0, 1e6, 1.0])),
        (base * np.array([1.0, 1e6, 1.0]), base),
        (base * np.array([1e6, 1.0, 1.0]), base * np.array([1.0, 1.0, 1e6])),
    ):
        for k in (2, 3, 17):
            waits = (0, 1) if k > 2 else ()
            chain = Chain(overhead, G, 1000.0, 1000.0, k, waits)
            lower, upper = bounds_us(chain, found_by(method, chain))
            assert upper - lower <= 2.0 * CLOSE * upper


@pytest.mark.parametrize("overhead_us", [0.0, 1e-300, 1e12])
@pytest.mark.parametrize("us_per_byte", [0.0, 1e-300, 1e12])
@pytest.mark.parametrize("free_bytes", [1e-300, 1.0, 1e12])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_numbers_at_the_limits_end_in_some_iterate(
    method: ChainMethod, overhead_us: float, us_per_byte: float, free_bytes: float, place: int
) -> None:
    """No exception; whatever the iterate is, the repaired dual is below its sizes' latency."""
    overhead, G = np.ones(3), np.ones(3)
    overhead[place], G[place] = overhead_us, us_per_byte
    for k, spread in ((2, free_bytes), (9, free_bytes), (9, free_bytes / 4.0)):
        chain = Chain(overhead, G, free_bytes, spread, k, (0, 1) if k > 2 else ())
        got = found_by(method, chain)
        lines, equal = lines_of(chain), np.full(k, free_bytes / k)
        lower = value_us(lines, repaired(got.p))
        assert np.isfinite(lower)
        assert lower <= lines.latency_us(equal) * (1.0 + 1e-12)
        assert got.iterations <= OPTIONS.max_iterations


def test_missing_waits_are_found_out_early(method: ChainMethod) -> None:
    """With `check_order_at` the method stops where p is out of order, and tells at which stage."""
    early = found_by(method, DISORDERED, replace(OPTIONS, check_order_at=1e-3))
    late = found_by(method, DISORDERED)
    assert early.iterations < late.iterations
    for got in (early, late):
        assert got.violation[1] >= 0.2
        assert got.violation[0] <= 1e-3
    lower, upper = bounds_us(DISORDERED, late)
    assert upper - lower > 0.01 * upper


def test_no_time_and_no_iterations_leave_the_start(method: ChainMethod) -> None:
    """Equal sizes."""
    for options in (
        replace(OPTIONS, time_limit_s=0.0, close=1e-15),
        replace(OPTIONS, max_iterations=0),
    ):
        got = found_by(method, TAPERING, options)
        assert got.iterations <= 1
        assert np.isfinite(got.p).all()
    assert got.y == pytest.approx(np.full(6, 4096.0 / 6))


def test_the_native_method_refuses_what_it_has_no_room_for(native_method: NativeMethod) -> None:
    """More than 64 stages, fewer than two fragments or stages: None, and nothing is computed."""
    n = 65
    for chain in (
        Chain(np.ones(n), np.ones(n), 100.0, 100.0, 3),
        Chain(np.ones(1), np.ones(1), 100.0, 100.0, 3),
        Chain(np.ones(2), np.ones(2), 100.0, 100.0, 1),
    ):
        assert native_method(chain, OPTIONS) is None
