"""Costs of real fits with their errors: the model they stand for, decisions, and coverage."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from pathlib import Path

import numpy as np
import pytest

from analysis.draw_costs import cut_us, repeated_us
from analysis.draws import Draws, draw
from analysis.uncertainty import UncertaintyQuestion, assess
from domain.fit import FitOptions, TraceFit
from domain.pipeline import Pipeline, Stage
from domain.uncertain_answer import DecisionCode
from domain.uncertain_fit import measured_whole_us, misfit_at, uncertain_model
from domain.uncertainty import (
    NamedCut,
    UncertainAggregate,
    UncertainModel,
    UncertainPipeline,
    UncertainStage,
)
from fitting import fit, read
from tests.support.counts import count
from tests.support.uncertain import MYRINET, stated

ROOT = Path(__file__).parents[2]
TRACE = ROOT / "examples" / "local-path-direct.csv"
OSU = ROOT / "tests" / "data" / "traces" / "osu-latency-and-bw.txt"
OSU_FILES = (ROOT / "examples" / "osu-latency.txt", ROOT / "examples" / "osu-bw.txt")
SIGNATURE = ROOT / "tests" / "data" / "traces" / "netgauge-loggp.out"
SIZES = (64, 4096, 50_001, 131_072, 1 << 20)


def _fitted(*paths: Path) -> TraceFit:
    return fit(tuple(read(path.read_bytes()) for path in paths), FitOptions())


@pytest.fixture(scope="module")
def traced() -> TraceFit:
    return _fitted(TRACE)


def _known(found: TraceFit) -> UncertainModel:
    model = uncertain_model(found)
    assert model is not None
    return model


def _of_medians(draws: Draws) -> Draws:
    """The same costs as lines are fitted to, where they are those of mean times."""
    if draws.mean_factors is None:
        return draws
    factors = draws.mean_factors[:, None, :]
    return replace(
        draws,
        overhead_us=draws.overhead_us / factors,
        ns_per_byte=draws.ns_per_byte / factors,
        mean_factors=None,
    )


def _same_at_the_estimates(found: TraceFit) -> None:
    model = _known(found)
    assert model.model == found.to_model()
    draws = _of_medians(draw(model, 3, seed=1))
    for size in SIZES:
        for cut in ([size], [size // 2] * 2):
            expected = found.to_model().latency_us(cut)
            got = cut_us(draws, sum(cut), NamedCut.of_fragments("cut", cut))
            assert got[0] == pytest.approx(expected, rel=1e-12)


def test_the_first_draw_of_a_trace_is_its_model(traced: TraceFit) -> None:
    assert isinstance(_known(traced), UncertainPipeline)
    _same_at_the_estimates(traced)


@pytest.mark.parametrize("paths", [(OSU,), OSU_FILES])
def test_the_first_draw_of_outside_measurements_is_their_aggregate(paths: tuple[Path, ...]) -> None:
    found = _fitted(*paths)
    assert isinstance(_known(found), UncertainAggregate)
    _same_at_the_estimates(found)


def test_a_bottleneck_that_was_fitted_above_the_total_has_the_errors_of_the_total() -> None:
    found = _fitted(*OSU_FILES)
    assert found.aggregate is not None
    total, bottleneck = found.aggregate.total, found.aggregate.bottleneck
    raised = tuple(
        replace(line, overhead_us=line.overhead_us + 1e5, free_overhead_us=1e5)
        for line in bottleneck.lines
    )
    above = replace(
        found, aggregate=replace(found.aggregate, bottleneck=replace(bottleneck, lines=raised))
    )
    model = _known(above)
    assert model.model == above.to_model()
    assert isinstance(model, UncertainAggregate)
    assert isinstance(model.bottleneck, UncertainStage)
    assert model.bottleneck.lines[0].covariance == total.lines[0].covariance


def test_a_fit_of_an_earlier_version_gives_none(traced: TraceFit) -> None:
    first = traced.stages[0]
    lines = (replace(first.lines[0], covariance=None), *first.lines[1:])
    old = replace(traced, stages=(replace(first, lines=lines), *traced.stages[1:]))
    assert uncertain_model(old) is None
    unknown = replace(traced, stages=(replace(first, size_deviation=None), *traced.stages[1:]))
    assert uncertain_model(unknown) is None


def test_one_piece_is_left_at_128_KiB_of_the_readmes_trace(traced: TraceFit) -> None:
    found = assess(UncertaintyQuestion(_known(traced), 131_072))
    assert found.decision.code is DecisionCode.NO_GAIN_PROVABLE
    assert found.decision.advised.size_bytes == 131_072


def test_256_KiB_are_set_at_1_MiB_of_the_readmes_trace(traced: TraceFit) -> None:
    found = assess(UncertaintyQuestion(_known(traced), 1 << 20))
    assert found.decision.code is DecisionCode.SET_IT
    assert found.round_sizes[0].size_bytes in (262_144, 352_256)
    assert found.decision.gain.p05 > 0.15  # the specification has 21 to 27 %


def test_whole_messages_tell_how_far_the_model_is_off(traced: TraceFit) -> None:
    """Of an aggregate the total: of one size the larger of both sides, of a range the mean."""
    assert misfit_at(traced, 131_072, 131_072) == 0.0
    assert measured_whole_us(traced, 131_072) is None
    found = _fitted(OSU)
    assert found.aggregate is not None
    sizes = found.aggregate.total.sizes
    last = abs(sizes[-1].relative_residual)
    assert misfit_at(found, 1 << 40, 1 << 40) == pytest.approx(last)
    between = (sizes[-1].message_bytes + sizes[-2].message_bytes) // 2
    before = abs(sizes[-2].relative_residual)
    assert misfit_at(found, between, between) == pytest.approx(max(last, before))
    two = (sizes[-2].message_bytes, sizes[-1].message_bytes)
    assert misfit_at(found, *two) == pytest.approx((last + before) / 2.0)
    assert measured_whole_us(found, sizes[-1].message_bytes) == sizes[-1].median_us


def test_times_of_whole_messages_beside_stages_tell_it_too() -> None:
    """A trace whose messages take a tenth longer than their stages: what gains less is not set."""
    rows = "".join(
        f"{size},{0},{10 + 0.01 * size},{10 + 0.01 * size},{1.1 * (20 + 0.02 * size)}\n"
        for size in (256, 1024, 4096, 16_384, 65_536)
    )
    trace = "message_bytes,repetition,a_us,b_us,total_us\n" + rows
    found = fit((read(trace.encode()),), FitOptions())
    assert misfit_at(found, 4096, 4096) == pytest.approx(0.1, rel=1e-3)
    assert measured_whole_us(found, 4096) == pytest.approx(1.1 * (20 + 0.02 * 4096))
    assert [one.message_bytes for one in found.whole_messages] == [256, 1024, 4096, 16_384, 65_536]
    asked = UncertaintyQuestion(_known(found), 4096)
    assert assess(asked).decision.code is DecisionCode.SET_IT
    gain = assess(asked).decision.gain.p05
    held = assess(replace(asked, misfit=gain + 0.01)).decision
    assert held.code is not DecisionCode.SET_IT


def test_one_piece_is_never_priced_above_its_measurement() -> None:
    """A cut that the model finds faster than one piece, and the measurement does not."""
    asked = UncertaintyQuestion(stated(MYRINET, 0.02), 65_536)
    free = assess(asked)
    assert free.decision.code is DecisionCode.SET_IT
    held = assess(replace(asked, measured_us=0.99 * free.latency_us.p05))
    assert held.decision.code is DecisionCode.NO_GAIN_PROVABLE
    assert held.decision.advised.size_bytes == 65_536
    assert held.latency_us.p95 > held.latency_us.p05  # of the model, beside what was measured
    unchanged = assess(replace(asked, measured_us=1e9))
    assert unchanged == free


def test_half_round_trips_of_a_signature_are_whole_messages() -> None:
    found = _fitted(SIGNATURE)
    assert found.stages
    assert found.whole_messages
    assert all(one.misfit <= 0.2 for one in found.whole_messages)


TRUTH = Pipeline(
    tuple(
        Stage.of_line(f"s{j}", overhead_us=overhead, ns_per_byte=per_byte)
        for j, (overhead, per_byte) in enumerate(((7.2, 7.0), (5.2, 24.3), (7.5, 12.0)))
    )
)
MEASURED = tuple(2**k for k in range(6, 18))


def _simulated(seed: int, *, deviation: float, noise: float) -> TraceFit:
    """A trace of the truth, each stage and size off by a share of its own, and noise on top."""
    random = np.random.default_rng(seed)
    rows = ["message_bytes,repetition," + ",".join(f"{one.name}_us" for one in TRUTH.stages)]
    off = 1.0 + deviation * random.standard_normal((len(MEASURED), len(TRUTH.stages)))
    for place, size in enumerate(MEASURED):
        exact = np.array([one.time_us(size) for one in TRUTH.stages]) * off[place]
        for repetition in range(10):
            times = exact * (1.0 + noise * random.standard_normal(len(exact)))
            rows.append(f"{size},{repetition}," + ",".join(f"{time:.6f}" for time in times))
    return fit((read("\n".join(rows).encode()),), FitOptions())


@pytest.mark.parametrize("deviation", [0.0, 0.03])
def test_the_interval_of_a_latency_holds_the_truth(deviation: float) -> None:
    """90 % of intervals hold it; of so few numbered cases somewhat fewer, by three deviations."""
    cases, size = count(200), 4096
    held = 0
    for case in range(cases):
        model = _known(_simulated(case, deviation=deviation, noise=0.05))
        latency_us = repeated_us(draw(model, 400, seed=case), 65_536, np.array([size]))[0]
        low, high = np.quantile(latency_us, (0.05, 0.95))
        held += bool(low <= TRUTH.latency_us([size] * 16) <= high)
    share = held / cases
    assert share >= 0.84 - 3.0 * sqrt(0.84 * 0.16 / cases), f"{held} of {cases}"


def test_no_interval_is_a_hundred_times_the_max_time_measured(traced: TraceFit) -> None:
    """A fit that an earlier version stored may say so; its errors keep their correlation."""
    first, *rest = traced.stages
    line = replace(first.lines[-1], covariance=(1e20, -1e17, 4e14))
    wide = replace(traced, stages=(replace(first, lines=(*first.lines[:-1], line)), *rest))
    overhead, both, per_byte = _covariances(wide)[0][-1]
    max_us = max(size.median_us for size in first.sizes)
    assert max(overhead**0.5, per_byte**0.5 * line.to_bytes / 1000.0) == pytest.approx(50 * max_us)
    assert both / (overhead * per_byte) ** 0.5 == pytest.approx(-1e17 / (1e20 * 4e14) ** 0.5)
    assert _covariances(traced) == [
        [line.covariance for line in one.lines] for one in traced.stages
    ]


def _covariances(found: TraceFit) -> list[list[tuple[float, float, float]]]:
    stages = [stage for stage in _known(found).stages if isinstance(stage, UncertainStage)]
    return [[line.covariance for line in stage.lines] for stage in stages]
