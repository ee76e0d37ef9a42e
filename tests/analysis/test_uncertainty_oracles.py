"""Figures of deterministic scenarios, computed independently: every size of the grid enumerated.

The Myrinet pipeline of Wang et al. 1998, Table 1; a scenario is the pipeline with one parameter
20 % up or down, or as published: 17 in all, each as a draw.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from analysis.draw_costs import PricedSizes, regrets_over, repeated_us
from analysis.draws import Draws
from analysis.measure_next import perfect_information_us
from analysis.repeated_sizes import GOOD_WITHIN, good_sizes
from domain.pipeline import pipeline_of_lines
from domain.problem import Problem
from tests.support.uncertain import MYRINET

Lines = Sequence[tuple[float, float]]


def scenarios(found: Sequence[Lines]) -> Draws:
    """Draws of pipelines of lines, one each."""
    costs = np.array(found).transpose(1, 2, 0)[:, :, None, :]  # stages, parameters, 1, draws
    names = tuple(f"stage {j}" for j in range(len(costs)))
    no_ends = np.empty((len(costs), 0, costs.shape[-1]))
    return Draws("stages", names, costs[:, 0].copy(), costs[:, 1].copy(), no_ends, 0.0)


def changed(stage: int, parameter: int, factor: float) -> Lines:
    """The published lines with one parameter times a factor."""
    lines = [list(line) for line in MYRINET]
    lines[stage][parameter] *= factor
    return [(overhead, per_byte) for overhead, per_byte in lines]


@pytest.fixture(scope="module")
def seventeen() -> Draws:
    """The published lines, and each parameter alone up and down by 20 %."""
    varied = [changed(j, one, factor) for j in range(4) for one in (0, 1) for factor in (0.8, 1.2)]
    return scenarios([MYRINET, *varied])


@pytest.fixture(scope="module")
def priced(seventeen: Draws) -> PricedSizes:
    """Every repeated size from 64 B of 4096 B."""
    sizes = np.arange(64, 4097)
    return PricedSizes(sizes, repeated_us(seventeen, 4096, sizes))


def test_the_sizes_of_smallest_worst_and_mean_regret(priced: PricedSizes) -> None:
    """Of 17 scenarios."""
    worst = regrets_over(priced.latency_us, priced.best_us).max(axis=1)
    mean = priced.mean_regret
    assert priced.sizes[worst.argmin()] == 825
    assert worst.min() == pytest.approx(0.005132, abs=5e-7)
    assert priced.sizes[mean.argmin()] == 834
    assert mean.min() == pytest.approx(0.000743, abs=5e-7)


def test_the_value_of_perfect_information(priced: PricedSizes) -> None:
    """In µs a message, and the size it is against."""
    chosen, evpi_us = perfect_information_us(priced.latency_us)
    assert priced.sizes[chosen] == 834
    assert evpi_us == pytest.approx(0.141841, abs=5e-7)


def test_the_good_sizes_are_three_intervals(seventeen: Draws, priced: PricedSizes) -> None:
    """Within 2 % of the best in 90 % of the scenarios: 396 sizes."""
    problem = Problem(pipeline_of_lines([("s", *line) for line in MYRINET]), 4096)
    found = good_sizes(problem, seventeen, priced)[GOOD_WITHIN.index(0.02)]
    assert found.intervals == ((683, 773), (820, 962), (1024, 1185))
    assert sum(high - low + 1 for low, high in found.intervals) == 396


@pytest.mark.parametrize(
    ("lines", "regret", "best"),
    [
        (changed(2, 0, 4.0), 0.062915, 7991),
        (changed(1, 0, 4.0), 0.028773, 6352),
        (changed(1, 1, 2.0), 0.003855, None),
        ([(2.0 * overhead, per_byte) for overhead, per_byte in MYRINET], 0.011527, 5321),
    ],
)
def test_the_regret_of_a_setting_under_other_costs(
    lines: Lines, regret: float, best: int | None
) -> None:
    """3784 B at 64 KiB, against every size of 64 B to 64 KiB."""
    sizes = np.arange(64, 65537)
    latency_us = repeated_us(scenarios([MYRINET, lines]), 65536, sizes)
    own_us = latency_us[3784 - 64]
    assert own_us[0] == pytest.approx(1876.3390625, abs=1e-7)
    assert own_us[0] == latency_us[:, 0].min()
    assert own_us[1] / latency_us[:, 1].min() - 1.0 == pytest.approx(regret, abs=5e-7)
    if best is not None:
        assert sizes[latency_us[:, 1].argmin()] == best
