"""fitting/preemption.py: stages that others slow down keep the line of what they take alone."""

from __future__ import annotations

import numpy as np
import pytest

from domain.fit import TraceFit
from fitting import fit, plot, read
from tests.support.counts import count

SIZES = [2**k for k in range(12, 23)]
SLICE_US = 3000.0


def busy_us(random: np.random.Generator, alone_us: float, wait_us: float) -> float:
    """A stage that takes so long alone, on a processor that others want: after every slice it
    waits; in three of ten cases it begins with a part of one.
    """
    left = SLICE_US * (1.0 if random.random() < 0.7 else random.random())
    took_us = 0.0
    while alone_us > left:
        took_us += left + wait_us * random.lognormal(0.0, 0.25)
        alone_us, left = alone_us - left, SLICE_US
    return took_us + alone_us


def traced(seed: int, stages: list[tuple[float, float]], wait_us: float = 9000.0) -> TraceFit:
    return fit([read(content(seed, stages, wait_us))])


def content(seed: int, stages: list[tuple[float, float]], wait_us: float) -> bytes:
    random = np.random.default_rng(seed)
    head = "message_bytes,repetition," + ",".join(f"s{j}_us" for j in range(len(stages)))
    rows = [
        ",".join([f"{size},{at}", *(f"{busy_us(random, us, wait_us):.2f}" for us in alone)])
        for at in range(12)
        for size in SIZES
        for alone in [[(a + b * size / 1000.0) * random.lognormal(0.0, 0.03) for a, b in stages]]
    ]
    return "\n".join([head, *rows]).encode()


def codes(found: TraceFit) -> list[str]:
    return [notice.code for notice in found.notices]


@pytest.mark.parametrize("seed", range(count(100)))
def test_stages_that_jump_at_one_duration(seed: int) -> None:
    """Each at a size of its own; the lines are those of an idle machine."""
    random = np.random.default_rng(seed)
    slices = random.permutation([120.0, 400.0, 1500.0])  # KiB of a slice
    stages = [(float(random.uniform(5.0, 100.0)), 2900.0 / (kib * 1.024)) for kib in slices]
    found = traced(seed, stages)
    (said,) = [notice for notice in found.notices if notice.code == "preempted"]
    assert "others wanted the processor" in said.detail
    assert 1500.0 <= float(said.value("slice_us") or 0.0) <= 6000.0
    for stage, (overhead_us, ns_per_byte) in zip(found.stages, stages, strict=True):
        (line,) = stage.lines
        assert line.overhead_us == pytest.approx(overhead_us, rel=0.2, abs=3.0)
        assert line.ns_per_byte == pytest.approx(ns_per_byte, rel=0.03)
        assert [size.message_bytes for size in stage.sizes] == SIZES
        slowed = [size for size in stage.sizes if size.message_bytes > line.to_bytes]
        assert all(size.outliers == size.num_samples == 12 for size in slowed)
        assert stage.num_samples == line.num_samples == 12 * len(SIZES)
        assert stage.outliers == sum(size.outliers for size in stage.sizes)
        assert stage.misfit is not None
        assert stage.misfit > 1.0


def test_on_an_idle_machine_nothing_is_said() -> None:
    assert "preempted" not in codes(traced(1, [(20.0, 20.0), (40.0, 5.0)], wait_us=0.0))


def test_stages_that_switch_at_one_size_are_no_slice() -> None:
    """Nor are those that jump at durations of their own."""
    x = np.tile(SIZES, 12)
    random = np.random.default_rng(2)
    for ends, costs in (((2**17, 2**17), (20.0, 20.0)), ((2**17, 2**19), (20.0, 40.0))):
        columns = [
            (cost * x / 1000.0 + np.where(x > end, 9000.0, 0.0))
            * random.lognormal(0.0, 0.02, len(x))
            for end, cost in zip(ends, costs, strict=True)
        ]
        rows = [
            f"{size},{at},{a:.2f},{b:.2f}"
            for at, (size, a, b) in enumerate(zip(x, *columns, strict=True))
        ]
        found = fit([read("\n".join(["message_bytes,repetition,a_us,b_us", *rows]).encode())])
        assert "preempted" not in codes(found)
        assert [len(stage.lines) for stage in found.stages] == [2, 2]


def test_the_plot_shows_what_was_not_used() -> None:
    stages = [(20.0, 20.0), (40.0, 5.0)]
    reading = read(content(3, stages, 9000.0))
    found = fit([reading])
    assert "preempted" in codes(found)
    points = plot(found, [reading]).stages[0].points
    assert not all(points.is_used)
