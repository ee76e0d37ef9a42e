"""Latencies of machines: C gives the evaluator's bits, and in draws those of each drawn machine."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from domain.errors import Infeasible
from domain.machine import Machine, StageRules, Window
from domain.pipeline import FitRange, Pipeline, Stage, pipeline_of_lines
from solvers.kernels.native import Choice
from solvers.kernels.native_recurrence import DrawnCosts
from solvers.machine.costs import Costs
from tests.support.compiler import require_native_kernels
from tests.support.counts import count
from tests.support.kernels import computed_by, native_kernels
from tests.support.machines import machine_of, machines, some_machine

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

numbers = st.integers(0, 2**32 - 1).map(np.random.default_rng)
any_machine = machines(ranges=True, bytes_too=True)


def both(machine: Machine, ask: str, *asked: object) -> tuple[list[list[float]], ...]:
    """The answers of C and of Python."""
    found, choices = [], get_args(Choice)[1:]
    for choice in choices:
        with computed_by(choice):
            answer = getattr(Costs(machine), ask)(*asked)
        parts = answer if isinstance(answer, tuple) else (answer,)
        found.append([np.ravel(part).tolist() for part in parts])
    return tuple(found)


@pytest.fixture(autouse=True)
def _built() -> None:
    require_native_kernels()


class TestBits:
    """C against Python on any machine: ranges, windows of bytes, shared parts, processors."""

    def test_a_campaign(self) -> None:
        rng = np.random.default_rng(1)
        for _ in range(count(10_000, share=80)):
            machine = some_machine(rng, ranges=True, bytes_too=True)
            self._hold(machine, rng)

    @given(any_machine, numbers)
    def test_any(self, machine: Machine, rng: np.random.Generator) -> None:
        self._hold(machine, rng)

    def _hold(self, machine: Machine, rng: np.random.Generator) -> None:
        q, s = rng.integers(1, 20, 4), rng.integers(1, 600, 4)
        ours, theirs = both(machine, "repeated_us", q, s, rng.integers(0, s) * [0, 1, 1, 0])
        assert ours == theirs
        ours, theirs = both(machine, "cut_us", rng.uniform(1, 600, rng.integers(1, 20)).tolist())
        assert ours == theirs
        total, lags = int(rng.integers(1, 3000)), rng.integers(0, 4, (4, len(machine.processors)))
        s = rng.integers(1 + total // 20, total + 1, 4)
        ours, theirs = both(machine, "repeated_slopes", total // s, s, total, lags)
        assert ours == theirs
        with computed_by("native"):
            path_us, slope = Costs(machine).repeated_paths(total // s, s, total, lags)
        assert (path_us <= np.array(ours[0]) * (1.0 + 1e-12)).all()
        assert (np.isinf(path_us) == np.isinf(ours[0])).all()
        assert np.isfinite(slope).all()
        x, k = rng.uniform(1, 600, (2, 2)), rng.integers(1, 25, (2, 2))
        ours, theirs = both(machine, "equal_us", x, k)
        assert ours == [pytest.approx(row, rel=1e-12) for row in theirs]

    def test_arrays_of_any_layout(self) -> None:
        machine = machine_of([(1, 2), (3, 4)], lanes=[1, 2])
        q, s = np.arange(1, 13).reshape(3, 4).T, np.arange(13, 25).reshape(3, 4).T
        with computed_by("native"):
            costs = Costs(machine)
            found = costs.repeated_us(q, s, np.zeros_like(s))
            assert found.shape == (4, 3)
            assert found.tolist() == [
                [costs.cut_us((size,) * full) for full, size in zip(*rows, strict=True)]
                for rows in zip(q.tolist(), s.tolist(), strict=True)
            ]
            assert costs.equal_us(s.astype(float), q).shape == (4, 3)
            assert costs.equal_us(np.empty(0), np.empty(0, np.int64)).shape == (0,)


class TestValues:
    def test_what_does_not_fit(self, kernels: Choice) -> None:
        """A fragment above a window's bytes takes for ever."""
        machine = Machine(
            pipeline_of_lines([("a", 1, 1000)]), (StageRules(),), (Window(0, 0, 3, 7, 0.0),)
        )
        one = np.array([1])
        with computed_by(kernels):
            costs = Costs(machine)
            assert costs.cut_us([7, 7]) == 16.0
            assert costs.cut_us([7, 8]) == inf
            assert costs.equal_us(np.array([7.0, 7.5]), np.array([2, 2])).tolist() == [16.0, inf]
            assert costs.repeated_us(one, one * 8, one).tolist() == [inf]
            found = costs.repeated_slopes(one, np.array([8]), 9, np.empty((1, 0), np.int64))
            assert [part.tolist() for part in found] == [[inf], [0.0]]

    def test_lags_that_deadlock(self, kernels: Choice) -> None:
        machine = machine_of([(1, 1), (2, 1)], [(1, 2, 2, 0)], together=(1, 2))
        q, s = np.array([3]), np.array([4])
        with computed_by(kernels):
            costs = Costs(machine)
            found = costs.repeated_slopes(q.repeat(3), s.repeat(3), 13, np.arange(3)[:, None])[0]
            assert found[2] == inf
            assert costs.cut_us((4, 4, 4, 1)) == min(found) == machine.latency_us((4, 4, 4, 1))

    def test_places_are_whole_quotients(self, kernels: Choice) -> None:
        """Of real sizes as Python's `//` gives them, on both sides of a whole number."""
        machine = Machine(
            pipeline_of_lines([("a", 1, 0)]), (StageRules(8),), (Window(0, 0, None, 7, 0.0),)
        )
        with computed_by(kernels):
            for x in (1.0, np.nextafter(1.0, 0.0), np.nextafter(1.0, 2.0), 7 / 3, 0.7):
                assert Costs(machine).cut_us([x] * 9) == machine.latency_us([x] * 9)

    def test_messages_of_any_length(self, kernels: Choice) -> None:
        """Sizes and windows of 2^48 bytes."""
        most = 2**48
        machine = Machine(
            pipeline_of_lines([("a", 1, 2), ("b", 1, 1)]),
            (StageRules(1024), StageRules()),
            (Window(0, 1, 2**20, most, 1.0),),
        )
        with computed_by(kernels):
            costs = Costs(machine)
            assert costs.cut_us([most]) == machine.latency_us([most])
            q, s = np.array([3]), np.array([most // 4])
            found = costs.repeated_us(q, s, np.array([most - 3 * (most // 4)]))
            assert found.tolist() == [machine.latency_us([most // 4] * 4)]

    @pytest.mark.parametrize("ask", ["repeated_slopes", "repeated_paths"])
    @given(
        machine=any_machine,
        total=st.integers(2, 3000),
        size=st.integers(1, 3000),
        lag=st.integers(0, 3),
    )
    def test_lines_lie_below(
        self, machine: Machine, total: int, size: int, lag: int, ask: str
    ) -> None:
        """Where a fragment's ranges, the places and the count are the same."""
        q = total // min(size, total)
        low, high = total // (q + 1) + 1, (total - 1) // q
        sizes = np.arange(low, high + 1)[:40]
        lags = np.full((len(sizes), len(machine.processors)), lag)
        costs, asked = Costs(machine), (np.full_like(sizes, q), sizes, total, lags)
        us, slope = getattr(costs, ask)(*asked)
        latency_us = costs.repeated_slopes(*asked)[0]
        kinds = [kind_of(machine, one, total - q * one) for one in sizes.tolist()]
        for at, kind in enumerate(kinds):
            for other, same in enumerate(kinds):
                if kind == same and us[at] < inf:
                    line_us = us[at] + slope[at] * (sizes[other] - sizes[at])
                    assert line_us <= latency_us[other] * (1.0 + 1e-9) + 1e-9

    def test_paths_of_plain_stages_are_the_longest(self) -> None:
        """Of a machine whose stages are plain they are the latency itself."""
        rng = np.random.default_rng(3)
        for _ in range(count(2000)):
            plain = some_machine(rng, processors=False).pipeline
            machine = Machine(plain, (StageRules(),) * len(plain))
            total = int(rng.integers(1, 3000))
            s = rng.integers(1, total + 1, 4)
            asked = total // s, s, total, np.empty((4, 0), np.int64)
            costs = Costs(machine)
            assert costs.repeated_paths(*asked)[0].tolist() == pytest.approx(
                costs.repeated_slopes(*asked)[0].tolist(), rel=1e-12
            )

    def test_a_message_that_no_memory_holds(self) -> None:
        """What C has no memory for is an error, and no wrong number."""
        machine = Machine(
            pipeline_of_lines([("a", 1, 0)]), (StageRules(),), (Window(0, 0, None, 2**46, 0.0),)
        )
        huge = np.array([2**47])
        with computed_by("native"), pytest.raises(MemoryError):
            Costs(machine).repeated_us(huge, np.array([1]), np.array([0]))


def kind_of(machine: Machine, size: int, rest: int) -> tuple[object, ...]:
    """What a line is the same for: ranges and places."""
    ranges = [stage.range_at(x) for stage in machine.stages for x in (size, rest)]
    try:
        return (*ranges, *machine.places(size))
    except Infeasible:
        return (size,)


# --- draws ----------------------------------------------------------------------------------------


def drawn(
    machine: Machine, rng: np.random.Generator, draws: int
) -> tuple[DrawnCosts, list[Machine]]:
    """Costs in draws, the first as they stand, and the machine of each: what lanes share is no more
    than the stage costs there.
    """
    most = max(len(stage.ranges) for stage in machine.stages)
    lines = np.zeros((2, len(machine), most, draws))
    ends = np.full((len(machine), most - 1, draws), inf)
    models = []
    for d in range(draws):
        stages, rules = [], []
        for j, (stage, old) in enumerate(zip(machine.stages, machine.rules, strict=True)):
            parts = []
            for place, part in enumerate(stage.ranges):
                factors = rng.choice([0.0, 0.5, 1.0, 1.3], 2) if d else (1.0, 1.0)
                found = part.overhead_us * factors[0], part.ns_per_byte * factors[1]
                parts.append(FitRange(*found, part.up_to_bytes))
                lines[:, j, place, d] = found
                if part.up_to_bytes is not None:
                    ends[j, place, d] = part.up_to_bytes
            stages.append(Stage(stage.name, tuple(parts)))
            shared = min(old.shared_ns_per_byte, *(part.ns_per_byte for part in parts))
            rules.append(StageRules(old.lanes, shared, old.delay_us, old.processor))
        models.append(Machine(Pipeline(tuple(stages), 7.5), tuple(rules), machine.windows))
    return DrawnCosts.of(lines[0], lines[1], ends, 7.5), models


def latency_us(machine: Machine, cut: Sequence[int]) -> float:
    try:
        return machine.latency_us(cut)
    except Infeasible:
        return inf


def test_a_cut_at_each_order_of_processors() -> None:
    """By C, by Python and by the evaluator; the best lags are those that the evaluator takes."""
    rng = np.random.default_rng(5)
    for _ in range(count(1000, share=60)):
        machine = some_machine(rng, ranges=True, bytes_too=True)
        cut = rng.integers(1, 600, rng.integers(1, 12)).tolist()
        try:
            times = machine.node_times(cut)
        except Infeasible:
            continue
        for choice in get_args(Choice)[1:]:
            with computed_by(choice):
                found = list(Costs(machine).by_lags(cut))
                assert Costs(machine).best_lags(cut) == times.lags
            assert min(us for _, us in found) == times.latency_us
            for lags, us in found:
                at_these = machine.node_times(cut, lags)
                assert at_these.latency_us == us
                with computed_by(choice):
                    start_us, end_us = Costs(machine).node_times_us(cut, lags)
                assert start_us.tolist() == at_these.start_us
                assert end_us.tolist() == at_these.end_us


def test_draws_are_their_machines() -> None:
    """Cuts to the bit; of repeated sizes rounds that are alike are added at once. A draw in which
    lanes share nothing has one node less.
    """
    rng, native = np.random.default_rng(2), native_kernels().machine
    for _ in range(count(2000, share=50)):
        machine = some_machine(rng, ranges=True, bytes_too=True)
        costs, models = drawn(machine, rng, int(rng.integers(1, 19)))
        total = int(rng.integers(1, 3000))
        sizes = rng.integers(1 + total // 20, total + 1, 3)
        cuts = [repeated(total, size) for size in sizes.tolist()]
        found = native.repeated_in_draws_us(machine, costs, total, sizes)
        expected = [[latency_us(one, cut) for one in models] for cut in cuts]
        np.testing.assert_allclose(found, expected, rtol=1e-11)
        cut = rng.integers(1, 600, rng.integers(1, 20))
        found = native.cut_in_draws_us(machine, costs, cut)
        assert found.tolist() == [latency_us(one, cut.tolist()) for one in models]


def repeated(total: int, size: int) -> tuple[int, ...]:
    full, rest = divmod(total, size)
    return (size,) * full + ((rest,) if rest else ())
