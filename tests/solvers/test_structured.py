"""The production path for stages of lines: certified on both sides, whatever its method does."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import NoReturn

import numpy as np
import pytest

from bench.pipelines import stored
from domain.pipeline import Pipeline
from domain.problem import FragmentLimits, Problem
from solvers.contract import Deadline
from solvers.exact import structured
from solvers.exact.chain import Chain, ChainMethod, ChainOptions, Iterate
from solvers.exact.dual import capped_value_us, repaired, value_us
from solvers.exact.interior_native import NativeMethod
from solvers.exact.interior_point import iterate
from solvers.exact.lp.lines import CountResult, equal_sizes
from solvers.exact.lp.never_idle import never_idle
from solvers.exact.structured import CLOSE, solve_count
from solvers.kernels import active
from solvers.line_problem import LineProblem
from tests.paper.test_tables import GMS, MYRINET
from tests.solvers.pipelines import Case, random_cases
from tests.solvers.reference_lp import optimum_us
from tests.support.compiler import ROOT, require_native_kernels
from tests.support.counts import count
from tests.support.kernels import native_kernels

ROUNDING = 1e-12


@pytest.fixture(params=["native", "numpy", "small ones in one call"])
def method(request: pytest.FixtureRequest) -> ChainMethod | None:
    """Each method, by an object of its own; None is the choice that is made where none is given."""
    if request.param == "numpy":
        return iterate
    require_native_kernels()
    if request.param != "native":
        return None
    return NativeMethod(native_kernels().library)


def some_cases(full: int, method: ChainMethod | None, *, seed: int) -> Iterator[Case]:
    """Random pipelines: fewer without a campaign for the method in NumPy, which takes ten times as
    long.
    """
    return random_cases(count(full, share=30 if method is iterate else 20), seed=seed)


def lines_of(pipeline: Pipeline, size: float, *, m: float = 0.0, M: float = np.inf) -> LineProblem:
    """A relaxation without the whole byte."""
    lines = LineProblem.of(Problem(pipeline, max(1, int(size)), FragmentLimits()))
    assert lines is not None
    return replace(lines, B=float(size), m=m, M=min(M, float(size)))


def solved(lines: LineProblem, k: int, method: ChainMethod | None = None) -> CountResult:
    """Solved, with what every result must satisfy."""
    result = solve_count(lines, k, Deadline.after(60.0), method=method)
    assert_certified(lines, result)
    assert result.upper_us - result.lower_us <= CLOSE * result.upper_us
    return result


def assert_certified(lines: LineProblem, result: CountResult) -> None:
    """Sizes and p are those that the two bounds are of."""
    k = result.k
    assert result.x.shape == (k,)
    assert result.p.shape == (k - 1, lines.n)
    assert result.x.sum() == pytest.approx(lines.B, rel=1e-11)
    assert result.x.min() >= lines.m * (1.0 - ROUNDING) - 1e-300
    assert result.x.max() <= lines.M * (1.0 + 1e-9)
    assert result.upper_us == pytest.approx(lines.latency_us(result.x), rel=1e-15, abs=0.0)
    assert result.lower_us <= result.upper_us * (1.0 + ROUNDING)
    if k > 1:
        of_p = value_us(lines, repaired(result.p))
        if result.lower_us > of_p * (1.0 + 1e-12):  # where that is not close: by the cap of sizes
            of_p = capped_value_us(lines, repaired(result.p), result.upper_us)
        assert result.lower_us == pytest.approx(of_p, rel=1e-12)


def test_it_agrees_with_an_independent_program(method: ChainMethod | None) -> None:
    """One to sixty fragments, least and greatest sizes, to 1e-7."""
    rng = np.random.default_rng(31)
    for case in some_cases(600, method, seed=17):
        k, size = int(rng.integers(1, 61)), float(case.message_bytes)
        m = float(rng.choice([0.0, 1.0, size / k / 3.0])) if k > 1 else 0.0
        M = float(rng.choice([size, size / k * 1.01, size / k * 1.6]))
        lines = lines_of(case.pipeline, size, m=m, M=M)
        result = solved(lines, k, method)
        expected = optimum_us(case.pipeline, size, k, minimum=m, maximum=lines.M)
        assert result.upper_us == pytest.approx(expected, rel=1e-7)
        assert result.lower_us == pytest.approx(expected, rel=1e-7)


def exact_value(lines: LineProblem, p: np.ndarray) -> Fraction:
    """What the repaired p proves, without any rounding (no greatest size)."""
    g, G = [Fraction(v) for v in lines.g], [Fraction(v) for v in lines.G]
    Q = [sum(G[: c + 1], Fraction(0)) for c in range(len(G))]
    highest, rows = [Fraction(1)] * len(G), []
    for row in p.tolist():
        total, running = sum(map(Fraction, row), Fraction(0)), Fraction(0)
        for c, value in enumerate(row):
            running += Fraction(value) / total
            highest[c] = min(highest[c], running)
        before = [Fraction(0), *highest[:-1]]
        rows.append([here - there for here, there in zip(highest, before, strict=True)])
    rows = [[Fraction(int(c == 0)) for c in range(len(G))], *rows]
    rows.append([Fraction(int(c == len(G) - 1)) for c in range(len(G))])
    Q_minus = [q - c for q, c in zip(Q, G, strict=True)]
    trails = [Fraction(0), *(dot(row, Q_minus) for row in rows[1:-1])]
    weights = [dot(row, Q) - trail for row, trail in zip(rows[1:], trails, strict=True)]
    overheads = sum(g, Fraction(0)) + sum((dot(row, g) for row in rows[1:-1]), Fraction(0))
    minimum = Fraction(lines.m)
    free = Fraction(lines.B) - len(weights) * minimum
    return overheads + minimum * sum(weights, Fraction(0)) + min(weights) * free


def dot(row: list[Fraction], values: list[Fraction]) -> Fraction:
    """Their product."""
    return sum((a * b for a, b in zip(row, values, strict=True)), Fraction(0))


def test_the_lower_bound_is_one_without_any_rounding(method: ChainMethod | None) -> None:
    """In fractions: the value of the same p is above the bound that is told, and hardly above."""
    rng = np.random.default_rng(2)
    for case in some_cases(200, method, seed=23):
        k, spread = int(rng.integers(2, 12)), 10.0 ** rng.uniform(-9.0, 9.0)
        plain = lines_of(case.pipeline, case.message_bytes, m=float(rng.choice([0.0, 1.0])))
        skew = spread ** rng.uniform(0.0, 1.0, plain.n)
        lines = replace(plain, g=plain.g * skew, G=plain.G * skew[::-1])
        result = solve_count(lines, k, Deadline.after(60.0), method=method)
        value = exact_value(lines, result.p)
        assert Fraction(result.lower_us) <= value
        assert float(value) <= result.upper_us * (1.0 + ROUNDING)
        assert result.lower_us >= float(value) * (1.0 - 1e-11)


def test_reversal_scaling_and_units_change_nothing(method: ChainMethod | None) -> None:
    """Wang98 sec. 4.1.1; times and bytes in other units."""
    rng = np.random.default_rng(3)
    for case in some_cases(300, method, seed=29):
        k = int(rng.integers(2, 50))
        lines = lines_of(case.pipeline, case.message_bytes)
        value = solved(lines, k, method).upper_us
        back = replace(lines, g=lines.g[::-1].copy(), G=lines.G[::-1].copy())
        assert solved(back, k, method).upper_us == pytest.approx(value, rel=2.0 * CLOSE)
        for factor in (1e-7, 3.0, 1e9):
            slower = replace(lines, g=lines.g * factor, G=lines.G * factor)
            found = solved(slower, k, method).upper_us
            assert found == pytest.approx(value * factor, rel=2.0 * CLOSE)
            other = replace(lines, G=lines.G / factor, B=lines.B * factor, M=lines.M * factor)
            assert solved(other, k, method).upper_us == pytest.approx(value, rel=2.0 * CLOSE)


def test_a_stage_split_in_two_saves_no_more_than_the_halves_overlap(
    method: ChainMethod | None,
) -> None:
    """Two halves in a row take at most the whole; a stage of 0 adds nothing."""
    rng = np.random.default_rng(4)
    for case in some_cases(300, method, seed=37):
        k, j = int(rng.integers(2, 40)), int(rng.integers(len(case.pipeline.stages)))
        lines = lines_of(case.pipeline, case.message_bytes)
        value = solved(lines, k, method).upper_us
        share = np.ones(lines.n)
        share[j] = 0.5
        halves = [np.insert(of * share, j, 0.5 * of[j]) for of in (lines.g, lines.G)]
        split = solved(replace(lines, g=halves[0], G=halves[1]), k, method).upper_us
        halved = solved(replace(lines, g=lines.g * share, G=lines.G * share), k, method).upper_us
        assert halved * (1.0 - CLOSE) <= split <= value * (1.0 + CLOSE)
        more = replace(lines, g=np.insert(lines.g, j, 0.0), G=np.insert(lines.G, j, 0.0))
        assert solved(more, k, method).upper_us == pytest.approx(value, rel=2.0 * CLOSE)
    alone = replace(lines, g=np.array([6.0]), G=np.array([2.0]))
    halves = [np.full(2, 3.0), np.ones(2)]
    assert solved(replace(lines, g=halves[0], G=halves[1]), 1).upper_us == solved(alone, 1).upper_us


def test_no_cost_that_rises_lowers_the_optimum(method: ChainMethod | None) -> None:
    """In overheads, costs, the message, and the limits of sizes."""
    rng = np.random.default_rng(5)
    for case in some_cases(300, method, seed=41):
        k = int(rng.integers(2, 40))
        lines = lines_of(case.pipeline, case.message_bytes)
        value, j = solved(lines, k, method).upper_us, int(rng.integers(lines.n))
        more = np.ones(lines.n)
        more[j] = 1.0 + rng.uniform(0.0, 3.0)
        for dearer in (
            replace(lines, g=lines.g * more),
            replace(lines, G=lines.G * more),
            replace(lines, B=lines.B * more[j], M=lines.B * more[j]),
            replace(lines, m=lines.B / k * 0.5),
            replace(lines, M=lines.B / k * 1.2),
        ):
            assert solved(dearer, k, method).upper_us >= value * (1.0 - CLOSE)


def test_the_optimum_is_convex_in_the_count(method: ChainMethod | None) -> None:
    """docs/theory.md sec. 5, with and without limits of sizes."""
    rng = np.random.default_rng(6)
    for case in some_cases(100, method, seed=43):
        size = float(case.message_bytes)
        m, M = [(0.0, size), (size / 60.0, size), (0.0, size / 3.0)][rng.integers(3)]
        lines = lines_of(case.pipeline, size, m=m, M=M)
        values = np.array([solved(lines, k, method).upper_us for k in range(3, 15)])
        assert (np.diff(values, 2) >= -4.0 * CLOSE * values[1:-1]).all()


def test_published_pipelines(method: ChainMethod | None) -> None:
    """Wang98 Table 1 at 4 KiB and Table 3 at 8 KiB, without a least size."""
    for pipeline, size, k, value, digits in (
        (MYRINET, 4096, 6, 184.3483, 4),
        (MYRINET, 4096, 5, 184.4293, 4),
        (GMS, 8192, 5, 731.222, 3),
        (GMS, 8192, 4, 745.507, 3),
    ):
        found = solved(lines_of(pipeline, size), k, method)
        assert round(found.upper_us, digits) == value
        assert round(found.lower_us, digits) == value


@pytest.mark.parametrize(
    ("n", "size", "k", "value"),
    [(4, 40, 13, 59.385), (6, 40, 18, 63.403), (8, 60, 27, 92.481), (12, 80, 40, 125.315)],
)
def test_pipelines_whose_optimum_starves_the_bottleneck(
    method: ChainMethod | None, n: int, size: int, k: int, value: float
) -> None:
    """All costs 1, the last two overheads 1: every ramp is above this, by 6 % to 12 %."""
    lines = starving(n, size)
    found = {near: solved(lines, near, method).upper_us for near in (k - 1, k, k + 1)}
    assert min(found, key=lambda near: found[near]) == k
    assert found[k] == pytest.approx(value, abs=5e-4)


def starving(n: int, size: float) -> LineProblem:
    """g = (0, .., 0, 1, 1) and G = 1."""
    g = np.zeros(n)
    g[-2:] = 1.0
    return LineProblem(g=g, G=np.ones(n), B=size, m=0.0, M=size, k_min=1, k_max=1000)


SLOWEST = LineProblem(
    g=np.array([1.0, 3.0, 9.0, 2.0, 4.0, 1.0, 0.5, 2.0]),
    G=np.array([0.002, 0.004, 0.02, 0.005, 0.008, 0.003, 0.001, 0.006]),
    B=3e6,
    m=0.0,
    M=3e6,
    k_min=1,
    k_max=100_000,
)


class _Watched:
    """A method, and the chains that it was asked about."""

    def __init__(self, method: ChainMethod) -> None:
        self._method = method
        self.chains: list[Chain] = []

    def __call__(self, chain: Chain, options: ChainOptions) -> Iterate | None:
        self.chains.append(chain)
        return self._method(chain, options)


@pytest.mark.parametrize(("k", "m"), [(5000, 0.0), (5000, 100.0), (800, 0.0)])
def test_the_ends_alone_have_the_optimum_of_the_whole_chain(
    method: ChainMethod | None, k: int, m: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One stage slowest at every size: some hundred fragments are iterated on instead of all."""
    lines = replace(SLOWEST, m=m)
    short = _Watched(method or structured.default_method())
    long = _Watched(method or structured.default_method())
    ends = solved(lines, k, short)
    monkeypatch.setattr(structured, "_MIN_SHORTENED", k + 1)
    whole = solved(lines, k, long)
    assert ends.upper_us == pytest.approx(whole.upper_us, rel=2.0 * CLOSE)
    assert ends.lower_us == pytest.approx(whole.lower_us, rel=2.0 * CLOSE)
    assert short.chains
    assert max(chain.k for chain in short.chains) < 0.6 * k
    assert {chain.fragments for chain in short.chains} == {k}
    assert {chain.k for chain in long.chains} == {k}


def dominated(rng: np.random.Generator) -> tuple[LineProblem, int]:
    """One stage is slowest at every size, by 5 % to 500 %; some least and greatest sizes."""
    n, k = int(rng.integers(2, 9)), int(rng.integers(40, 900))
    g, G = 10.0 ** rng.uniform(-1.0, 2.0, n), 10.0 ** rng.uniform(-3.0, 1.0, n)
    b, factor = int(rng.integers(n)), 1.0 + 10.0 ** rng.uniform(-1.3, 0.7)
    g[b], G[b] = g.max() * factor, G.max() * factor
    mean = 10.0 ** rng.uniform(1.0, 6.0)
    m = float(rng.choice([0.0, 1.0, 0.1 * mean]))
    return LineProblem(g, G, k * mean, m, float(rng.choice([k, 1.5])) * mean, k, k), k


def test_sizes_that_keep_the_slowest_stage_busy_are_optimal() -> None:
    """Where there are such sizes, their latency is that stage's bound; C has the same ones."""
    rng, cases, found = np.random.default_rng(11), count(2000), 0
    for _ in range(cases):
        lines, k = dominated(rng)
        busy = never_idle(lines, k)
        if busy is None:
            continue
        found += 1
        assert_certified(lines, busy)
        assert busy.upper_us - busy.lower_us <= 1e-11 * busy.upper_us
        if k * lines.n <= structured._ONE_CALL_CELLS and active.NATIVE is not None:
            in_c = solve_count(lines, k, Deadline.after(60.0))
            np.testing.assert_allclose(in_c.x, busy.x, rtol=1e-9)
            np.testing.assert_array_equal(in_c.p, busy.p)
    assert found > 0.5 * cases


def test_no_sizes_keep_a_stage_busy_that_is_slowest_only_in_the_mean() -> None:
    """What is returned is not taken for the optimum there: its two bounds say so."""
    for one in stored():
        busy = never_idle(one.lines, one.k)
        best = solve_count(one.lines, one.k, Deadline.after(60.0))
        if busy is not None:
            assert busy.lower_us <= best.upper_us * (1.0 + ROUNDING)
            assert busy.upper_us >= best.lower_us * (1.0 - ROUNDING)


def none(_chain: Chain, _options: ChainOptions) -> None:
    """As where memory is refused."""


def garbage(value_p: float, value_y: float) -> ChainMethod:
    """A method that returns these for every p and y, and says that all is well."""

    def method(chain: Chain, _options: ChainOptions) -> Iterate:
        n = len(chain.G)
        return Iterate(
            y=np.full(chain.k, value_y),
            repeated_y=value_y,
            p=np.full((chain.k - 1, n), value_p),
            violation=np.zeros(n - 1),
            complementarity=0.0,
            apart=0.0,
            iterations=1,
        )

    return method


FAILING = {
    "none": none,
    "not a number": garbage(np.nan, np.nan),
    "zeros": garbage(0.0, 0.0),
    "infinite": garbage(np.inf, 1.0),
    "negative": garbage(-1.0, -5.0),
    "huge": garbage(1e300, 1e300),
}


@pytest.mark.parametrize("name", FAILING)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_method_that_fails_is_replaced_by_the_general_solver(name: str) -> None:
    """Nothing of the method is believed."""
    for case in random_cases(15, seed=47):
        lines = lines_of(case.pipeline, case.message_bytes)
        result = solved(lines, 9, FAILING[name])
        expected = optimum_us(case.pipeline, case.message_bytes, 9)
        assert result.upper_us == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("name", FAILING)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_where_both_fail_the_true_distance_is_told(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal sizes and the slowest stage's bound are there before any method."""

    def general(
        lines: LineProblem, k: int, deadline: Deadline, *, close: float = CLOSE
    ) -> CountResult:
        del deadline, close
        return equal_sizes(lines, k)

    monkeypatch.setattr(structured, "solve_by_glop", general)
    for case in random_cases(15, seed=47):
        lines = lines_of(case.pipeline, case.message_bytes)
        result = solve_count(lines, 9, Deadline.after(60.0), method=FAILING[name])
        assert_certified(lines, result)
        expected = optimum_us(case.pipeline, case.message_bytes, 9)
        assert result.lower_us <= expected * (1.0 + 1e-9)
        assert result.upper_us >= expected * (1.0 - 1e-9)
        assert result.upper_us <= lines.latency_us(np.full(9, lines.B / 9)) * (1.0 + ROUNDING)


def test_the_general_solver_is_not_asked_where_it_would_take_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Above 40 000 cells the distance stays as it is, and is told."""

    def refused(*_args: object, **_options: object) -> NoReturn:
        raise AssertionError("the general solver was asked")

    monkeypatch.setattr(structured, "solve_by_glop", refused)
    lines = replace(starving(4, 4e4), k_max=20_000)
    result = solve_count(lines, 10_001, Deadline.after(60.0), method=none)
    assert_certified(lines, result)
    assert result.upper_us - result.lower_us > CLOSE * result.upper_us


@pytest.mark.parametrize("k", [2, 9, 3000])
def test_a_deadline_that_has_passed_leaves_a_certified_pair(
    method: ChainMethod | None, k: int
) -> None:
    """At least equal sizes, and one stage's bound."""
    for lines in (SLOWEST, starving(8, 6000.0)):
        result = solve_count(lines, k, Deadline(0.0), method=method)
        assert_certified(lines, result)
        assert 0.0 < result.lower_us <= result.upper_us
        assert result.upper_us <= lines.latency_us(np.full(k, lines.B / k)) * (1.0 + ROUNDING)


IN_LITTLE_MEMORY = """
import resource
import numpy as np
from solvers.contract import Deadline
from solvers.exact.interior_native import NativeMethod
from solvers.kernels.native import load_library
from solvers.kernels import active
from solvers.line_problem import LineProblem
from solvers.exact.structured import solve_count

method, refused = NativeMethod(load_library("native")), []

def watched(chain, options):
    got = method(chain, options)
    refused.append(got is None)
    return got

g, G, k = np.ones(8), np.ones(8), 100_000
g[-1], G[-1] = 1.0 - 5e-5, 1.0 + 1e-5  # the bottleneck's neighbours are as slow: no middle settles
lines = LineProblem(g=g, G=G, B=1e6, m=0.0, M=1e6, k_min=1, k_max=k)
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + (48 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
result = solve_count(lines, k, Deadline.after(60.0), method=watched)
print(refused == [True], result.lower_us, result.upper_us, lines.latency_us(np.full(k, 1e6 / k)))
"""


def test_memory_that_is_refused_leaves_a_certified_pair() -> None:
    """In a process that may take no more: the native method says so, and nothing ends."""
    require_native_kernels()
    reported = subprocess.run(
        [sys.executable, "-c", IN_LITTLE_MEMORY],
        capture_output=True,
        text=True,
        timeout=120.0,
        check=False,
        cwd=ROOT,
    )
    assert reported.returncode == 0, reported.stderr
    refused, lower, upper, equal = reported.stdout.split()
    assert refused == "True"
    assert 0.0 < float(lower) <= float(upper) <= float(equal) * (1.0 + ROUNDING)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_smallest_questions(method: ChainMethod | None, k: int) -> None:
    """One fragment, one stage, nothing to distribute, no time at all."""
    lines = starving(4, 40.0)
    assert solved(lines, 1, method).upper_us == 2.0 + 4.0 * 40.0
    single = replace(lines, g=np.array([2.0]), G=np.array([3.0]))
    assert solved(single, k, method).upper_us == pytest.approx(120.0 + 2.0 * k)
    fixed = replace(lines, m=40.0 / k, M=40.0 / k)
    equal = lines.latency_us(np.full(k, 40.0 / k))
    result = solve_count(fixed, k, Deadline.after(60.0), method=method)
    assert result.upper_us == pytest.approx(equal)
    assert result.lower_us == pytest.approx(equal)
    nothing = replace(lines, g=np.zeros(4), G=np.zeros(4))
    result = solve_count(nothing, k, Deadline.after(60.0), method=method)
    assert result.upper_us == result.lower_us == 0.0


@pytest.mark.parametrize("name", ["a2", "b5", "c1", "d1"])
def test_certificates_close_without_a_general_solver(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """500 x 8: two bounds within 1e-9 from the method, the cap and the projection alone."""
    monkeypatch.setattr(structured, "_GENERAL_CELLS", 0)
    one = next(found for found in stored() if found.name == name)
    result = structured.solve_count(one.lines, one.k, Deadline.after(60.0))
    assert_certified(one.lines, result)
    assert result.upper_us - result.lower_us <= 1e-9 * result.upper_us


def test_the_certificate_of_4000_fragments_closes() -> None:
    """c1 of the benchmarks at eight times its size: it had stopped at 1e-6."""
    one = next(found for found in stored() if found.name == "c1")
    lines = replace(one.lines, B=8 * one.lines.B, M=8 * one.lines.M)
    result = structured.solve_count(lines, 4000, Deadline.after(60.0))
    assert_certified(lines, result)
    assert result.upper_us - result.lower_us <= 1e-9 * result.upper_us
