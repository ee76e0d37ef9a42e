"""Searches over regions in C: trees below every cut of their count, random moves that only gain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from domain.problem import FragmentLimits, Problem
from domain.schedule import latency_us
from solvers.kernels import active
from solvers.kernels.native_dual import NativeRegions
from solvers.ranges.regions import Region
from tests.solvers.ranged_pipelines import (
    Rule,
    best_of_every_cut,
    random_cut,
    random_problems,
)
from tests.support.compiler import require_native_kernels
from tests.support.counts import count

SMALL = Rule(stages=(2, 5), message_bytes=(4, 13))
LARGE = Rule(stages=(2, 5), message_bytes=(20, 100_000))
WORK = 1e7


def native_of(problem: Problem) -> NativeRegions:
    """The kernels' searches over all admitted sizes."""
    require_native_kernels()
    assert active.NATIVE is not None
    found = Region.of(problem, float(problem.largest_fragment_bytes)).in_native(problem)
    assert found is not None
    return found


def test_a_tree_ends_at_the_optimum_of_its_count_in_real_sizes() -> None:
    """All compositions of short messages: the bound never above, the cut met near it."""
    ended = 0
    for problem in random_problems(count(1200), seed=211, rule=SMALL):
        native = native_of(problem)
        for k, best_us in best_of_every_cut(problem).items():
            if k < 2 or best_us <= 0.0:
                continue
            tree = native.tree((k, k), best_us * 1.5)
            if tree is None:  # one size alone
                continue
            target = best_us * (1.0 + 1e-6)
            tree.advance(target, WORK)
            assert min(tree.bound_us, target) <= target
            assert tree.bound_us <= best_us * (1.0 + 1e-9)
            found_us, sizes = tree.best
            if np.isfinite(found_us):
                cut = tuple(int(size) for size in sizes)
                assert problem.admits(cut)
                assert latency_us(problem.pipeline, cut) >= best_us * (1.0 - 1e-12)
            closed_us, real = tree.real
            ended += closed_us <= tree.bound_us
            if closed_us <= tree.bound_us and len(real):
                assert abs(real.sum() - problem.message_bytes) < 1e-6 * problem.message_bytes
                assert latency_us(problem.pipeline, tuple(real)) >= tree.bound_us * (1.0 - 1e-9)
    assert ended > 0


def test_a_tree_cut_off_anywhere_has_a_bound_below_every_cut() -> None:
    """Little work in each turn, and cuts at the ends of ranges."""
    rng = np.random.default_rng(5)
    for problem in random_problems(count(400), seed=213, rule=LARGE):
        cut = random_cut(problem, rng)
        if cut is None or len(cut) < 2 or len(problem.pipeline) < 2:
            continue
        latency, before = latency_us(problem.pipeline, cut), 0.0
        tree = native_of(problem).tree((len(cut), len(cut)), latency or 1.0)
        for _ in range(6 if tree is not None else 0):
            assert tree is not None
            tree.advance(latency * 1.01, float(10.0 ** rng.uniform(2.0, 6.0)))
            assert before * (1.0 - 1e-12) <= tree.bound_us <= latency * (1.0 + 1e-9)
            before = tree.bound_us


def test_a_tree_of_several_counts_ends_at_the_best_of_them() -> None:
    """All compositions of short messages: fragments that may be absent lose no cut and add none."""
    rng, reached = np.random.default_rng(9), 0
    for problem in random_problems(count(800), seed=219, rule=SMALL):
        best, native = best_of_every_cut(problem), native_of(problem)
        counts = sorted(k for k in best if k >= 2 and best[k] > 0.0)
        if not counts:
            continue
        fewest = int(rng.choice(counts))
        most = int(rng.choice([k for k in counts if k >= fewest]))
        best_us = min(best[k] for k in range(fewest, most + 1))
        tree = native.tree((fewest, most), best_us * 1.5)
        if tree is None:  # one size alone
            continue
        tree.advance(best_us * (1.0 + 1e-6), float(10.0 ** rng.uniform(2.0, 7.0)))
        assert tree.bound_us <= best_us * (1.0 + 1e-9)
        found_us, sizes = tree.best
        if np.isfinite(found_us):
            cut = tuple(int(size) for size in sizes)
            assert problem.admits(cut)
            assert latency_us(problem.pipeline, cut) == pytest.approx(found_us, rel=1e-9)
        closed_us, real = tree.real
        reached += closed_us <= tree.bound_us and most > fewest
        if closed_us <= tree.bound_us and len(real):
            assert fewest <= len(real) <= most
            assert latency_us(problem.pipeline, tuple(real)) >= tree.bound_us * (1.0 - 1e-9)
    assert reached > 0


def test_a_tree_of_several_counts_is_below_a_cut_of_any_of_them() -> None:
    """Cut off anywhere; the cut has some count of the interval."""
    rng = np.random.default_rng(11)
    for problem in random_problems(count(300), seed=223, rule=LARGE):
        cut = random_cut(problem, rng)
        if cut is None or len(cut) < 2 or len(problem.pipeline) < 2:
            continue
        latency = latency_us(problem.pipeline, cut)
        counts = int(rng.integers(2, len(cut) + 1)), len(cut) + int(rng.integers(0, 5))
        tree = native_of(problem).tree(counts, latency or 1.0)
        for _ in range(4 if tree is not None else 0):
            assert tree is not None
            tree.advance(latency * 1.01, float(10.0 ** rng.uniform(3.0, 6.5)))
            assert tree.bound_us <= latency * (1.0 + 1e-9)


def test_a_tree_over_a_span_is_below_every_cut_of_every_message_of_it() -> None:
    """All compositions of some short messages, in units of up to three bytes; where only real sizes
    are left, no better than they are.
    """
    rng, reached = np.random.default_rng(13), 0
    for problem in random_problems(count(800), seed=227, rule=SMALL):
        span, unit = int(rng.integers(1, 5)), int(rng.choice([1, 1, 2, 3]))
        limits = FragmentLimits(max_fragments=6, alignment_bytes=unit)
        largest = problem.message_bytes + span
        problems = [
            replace(problem, message_bytes=size, limits=limits)
            for size in range(problem.message_bytes, largest + 1)
        ]
        k, slope = int(rng.integers(2, 5)), float(rng.choice([0.0, 1.0])) * rng.exponential(0.02)
        slope *= latency_us(problem.pipeline, (problem.message_bytes,))
        values = [
            best[k] + slope * (largest - one.message_bytes)
            for one in problems
            for best in [best_of_every_cut(one)]
            if k in best
        ]
        if not values or min(values) <= 0.0:
            continue
        counts = int(rng.integers(2, k + 1)), k
        tree = native_of(problems[-1]).tree(counts, min(values), span=(span, slope))
        if tree is None:
            continue
        target = min(values) * (1.0 + 1e-6)
        tree.advance(target, float(10.0 ** rng.uniform(2.0, 7.0)))
        assert tree.bound_us <= min(values) * (1.0 + 1e-9)
        found_us, sizes = tree.best
        if np.isfinite(found_us):
            own = latency_us(problem.pipeline, tuple(sizes)) + slope * (largest - sizes.sum())
            assert problem.message_bytes <= sizes.sum() <= largest
            assert not (sizes[:-1] % unit).any()
            assert own == pytest.approx(found_us, rel=1e-9)
        closed_us, real = tree.real
        if closed_us <= tree.bound_us and len(real):
            own = latency_us(problem.pipeline, tuple(real)) + slope * (largest - real.sum())
            assert own >= tree.bound_us * (1.0 - 1e-9)
            reached += own <= tree.bound_us * (1.0 + 1e-6)
    assert reached > 0


def test_random_moves_are_of_their_seed_alone_and_lose_nothing() -> None:
    """Every byte is there, limits hold, the latency is no greater, twice the same."""
    rng, better = np.random.default_rng(7), 0
    for problem in random_problems(count(400), seed=217, rule=LARGE):
        cut = random_cut(problem, rng)
        if cut is None:
            continue
        counts, native = problem.count_range(), native_of(problem)
        pair = [
            native.annealed(
                np.array(cut),
                counts=(counts.minimum, counts.maximum),
                first=0.03,
                cells=2_000 * len(problem.pipeline),
                seed=3,
            )
            for _ in range(2)
        ]
        assert np.array_equal(*pair)
        found = tuple(int(size) for size in pair[0])
        assert problem.admits(found)
        before, after = latency_us(problem.pipeline, cut), latency_us(problem.pipeline, found)
        assert after <= before * (1.0 + 1e-12)
        better += after < before
    assert better > 0


def test_nodes_of_many_counts_are_below_the_best_cut_of_each() -> None:
    """All compositions of short messages, from any counts, cut off anywhere; what is known of some
    counts from elsewhere leaves these out and no others.
    """
    rng, reached, offered = np.random.default_rng(17), 0, 0
    for problem in random_problems(count(1200), seed=229, rule=SMALL):
        best, native = best_of_every_cut(problem), native_of(problem)
        counts = sorted(k for k in best if k >= 2 and best[k] > 0.0)
        if not counts:
            continue
        low = int(rng.choice(counts))
        high = int(rng.choice([k for k in counts if k >= low]))
        here = np.array([best[k] for k in range(low, high + 1)])
        groups = native.groups((low, high), float(here.min()) * 1.5)
        if groups is None:  # one size alone
            continue
        known = here * np.where(rng.random(len(here)) < 0.2, rng.random(len(here)), 0.0)
        target = float(here.min()) * float(rng.choice([0.99, 1.0, 1.0 + 1e-6, 1.2]))
        groups.advance(target, known, float(10.0 ** rng.uniform(2.0, 7.0)))
        bounds = np.minimum(np.minimum(*groups.bounds_us), target)
        assert (bounds <= here * (1.0 + 1e-9)).all()
        reached += bool((bounds >= target).all())
        found_us, sizes = groups.best()
        if len(sizes):
            cut, offered = tuple(int(size) for size in sizes), offered + 1
            assert low <= len(cut) <= high
            assert problem.admits(cut)
            assert latency_us(problem.pipeline, cut) == pytest.approx(found_us, rel=1e-9)
            assert groups.best()[0] == np.inf
    assert reached > 0
    assert offered > 0


def test_nodes_of_many_counts_cut_off_anywhere_are_below_a_cut() -> None:
    """Hundreds of fragments; the bound of its count never falls and is never above the cut."""
    rng = np.random.default_rng(19)
    for problem in random_problems(count(300), seed=233, rule=LARGE):
        cut = random_cut(problem, rng)
        if cut is None or len(cut) < 2 or len(problem.pipeline) < 2:
            continue
        latency, before = latency_us(problem.pipeline, cut), 0.0
        low = int(rng.integers(2, len(cut) + 1))
        high = min(len(cut) + int(rng.integers(0, 50)), problem.count_range().maximum)
        groups = native_of(problem).groups((low, high), latency or 1.0)
        for _ in range(4 if groups is not None else 0):
            assert groups is not None
            work = float(10.0 ** rng.uniform(3.0, 6.5))
            groups.advance(latency * 1.01, np.zeros(high - low + 1), work)
            bounds = np.minimum(*groups.bounds_us)
            assert bounds[len(cut) - low] <= latency * (1.0 + 1e-9)
            assert before * (1.0 - 1e-12) <= bounds.min()
            before = float(bounds.min())
