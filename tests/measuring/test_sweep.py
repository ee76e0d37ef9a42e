"""Times of one stage over sizes, on recorded and invented samples."""

from __future__ import annotations

from collections import Counter
from math import inf
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fitting import fit, read
from measuring import sweep as module
from measuring.sweep import FEWEST, MAX_SAMPLES, MIN_SAMPLES, WARM_UP, Sweep, SweepPlan, half_width

SIZES = (64, 1024, 65536)


class Machine:
    """A stage of 2 µs and 1 ns per byte whose samples vary by a share."""

    def __init__(self, share: float = 0.001, preempted: frozenset[int] = frozenset()) -> None:
        self.asked, self._share, self._preempted = list[int](), share, preempted
        self._noise = Random(7)

    def ask(self, line: str) -> str:
        """A sample of a size."""
        size = int(line)
        self.asked.append(size)
        ns = (2000.0 + size) * (1.0 + self._noise.gauss(0.0, self._share))
        return f"{size} {ns:.3f} {int(size in self._preempted)}"


class TestSweep:
    """Every size until it is known."""

    def test_blocks_have_every_size_once_in_an_order_of_their_own(self) -> None:
        machine, found = Machine(), Sweep(SweepPlan(SIZES))
        found.run(machine.ask)
        assert found.ended == "known"
        timed = machine.asked[WARM_UP * len(SIZES) :]
        blocks = [tuple(timed[at : at + 3]) for at in range(0, 3 * MIN_SAMPLES, 3)]
        assert all(sorted(block) == list(SIZES) for block in blocks)
        assert len(set(blocks)) > 1
        other = Machine()
        Sweep(SweepPlan(SIZES, seed=1)).run(other.ask)
        assert other.asked != machine.asked

    def test_long_samples_are_kept(self) -> None:
        """None of them is without a preemption, which takes little of it."""
        found = Sweep(SweepPlan((1024,)))
        found.run(lambda line: f"{line} {module.LONG_US * 1000} 1")
        assert found.left_out == ()
        assert found.preempted == {1024: 0}

    def test_samples_that_were_long_by_their_preemption_are_dropped(self) -> None:
        """Once one that was not says so."""
        answers = iter(["9e7 1"] * 7 + ["2e7 0", "4e6 1"] + ["4e6 0"] * 100)
        found = Sweep(SweepPlan((1024,)))
        found.run(lambda line: f"{line} {next(answers)}")
        assert found.times_us == {1024: [20e3] + [4e3] * (MIN_SAMPLES - 1)}
        assert found.preempted == {1024: 6}

    def test_noisy_sizes_are_measured_more(self) -> None:
        """Until the interval is narrow, or so often that it will not be."""
        quiet, noisy, hopeless = Machine(0.001), Machine(0.05), Machine(2.0)
        counts = []
        for machine in (quiet, noisy, hopeless):
            found = Sweep(SweepPlan((1024,)))
            found.run(machine.ask)
            counts.append(len(found.times_us[1024]))
        assert counts[0] == MIN_SAMPLES < counts[1] < counts[2] == MAX_SAMPLES
        assert found.ended == f"{MAX_SAMPLES} samples of a size"

    def test_preempted_samples_are_dropped_and_counted(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Where next to none is kept, as long as there is time: the machine may become idle."""
        clock = iter(range(100_000))
        monkeypatch.setattr(module.time, "monotonic", lambda: float(next(clock)))
        machine = Machine(preempted=frozenset({1024}))
        found = Sweep(SweepPlan(SIZES, time_limit_s=3.0 * MAX_SAMPLES))
        found.run(machine.ask)
        dropped = found.preempted[1024]
        assert found.preempted == {64: 0, 1024: dropped, 65536: 0}
        assert dropped > 2 * MAX_SAMPLES
        assert found.ended == "time"
        assert found.left_out == (1024,)
        text = found.to_csv("copy", {"stage": "copy"})
        assert f"# preempted: {dropped} of {dropped + 2 * MIN_SAMPLES}\n" in text
        assert "# left_out: 1024\n" in text
        assert "\n1024," not in text

    def test_what_is_written_is_read_and_fitted(self) -> None:
        found = Sweep(SweepPlan(tuple(64 << power for power in range(12))))
        found.run(Machine().ask)
        reading = read(found.to_csv("copy", {"machine": "x"}).encode())
        (stage,) = fit([reading]).stages
        assert stage.name == "copy"
        assert stage.lines[0].overhead_us == pytest.approx(2.0, rel=0.01)
        assert stage.lines[0].ns_per_byte == pytest.approx(1.0, rel=0.01)

    def test_time_ends_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Between two samples, with those that there are."""
        clock = iter(range(1000))
        monkeypatch.setattr(module.time, "monotonic", lambda: float(next(clock)))
        found = Sweep(SweepPlan(SIZES, time_limit_s=7.5))
        found.run(Machine().ask)
        assert found.ended == "time"
        assert sum(map(len, found.times_us.values())) == 7

    def test_what_was_measured_stays_after_an_interrupt(self) -> None:
        machine, left = Machine(), 20
        found = Sweep(SweepPlan(SIZES))

        def ask(line: str) -> str:
            if len(machine.asked) == left:
                raise KeyboardInterrupt
            return machine.ask(line)

        with pytest.raises(KeyboardInterrupt):
            found.run(ask)
        kept = Counter({size: len(times) for size, times in found.times_us.items()})
        assert kept.total() == left - WARM_UP * len(SIZES)
        assert found.ended == "interrupted"
        assert found.to_csv("x", {}).count("\n") > kept.total()

    def test_progress_is_told_after_each_block(self) -> None:
        told = list[tuple[int, int]]()
        Sweep(SweepPlan(SIZES)).run(Machine().ask, lambda *one: told.append(one))
        assert told[0] == (3, 3)
        assert told[-1][0] == 0


class TestHalfWidth:
    """The interval of a median by order statistics."""

    @pytest.mark.parametrize("times", [[], [1.0] * (MIN_SAMPLES - 1), [0.0] * MIN_SAMPLES])
    def test_few_times_or_none_that_count_tell_nothing(self, times: list[float]) -> None:
        assert half_width(times) == inf

    def test_equal_times_are_known(self) -> None:
        assert half_width([3.0] * MIN_SAMPLES) == 0.0

    @given(st.lists(st.floats(0.1, 1e6), min_size=MIN_SAMPLES, max_size=60), st.floats(0.01, 100.0))
    def test_it_has_no_unit_and_no_order(self, times: list[float], scale: float) -> None:
        width = half_width(times)
        assert half_width(times[::-1]) == width >= 0.0
        assert half_width([scale * one for one in times]) == pytest.approx(width, abs=1e-12)

    def test_it_holds_the_median_in_95_of_100(self) -> None:
        """Of 2000 samples of 40 lognormal times each; three standard errors of slack."""
        noise, inside = Random(3), 0
        for _ in range(2000):
            ordered = sorted(noise.lognormvariate(0.0, 0.3) for _ in range(40))
            rank = int(40 / 2 - 0.98 * 40**0.5)
            inside += ordered[rank] <= 1.0 <= ordered[-1 - rank]
        assert inside / 2000 >= 0.95 - 3 * (0.95 * 0.05 / 2000) ** 0.5


def test_a_size_needs_more_than_one_sample() -> None:
    assert 1 < FEWEST < MIN_SAMPLES
