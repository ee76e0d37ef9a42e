"""Draws of costs: repeatable, around the estimates, never below 0, ends between measured sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.draw_costs import stage_times_us
from analysis.draws import Draws, draw, normals, project, uniforms
from domain.errors import InvalidInput
from domain.pipeline import FitRange, Pipeline, Stage
from domain.uncertainty import (
    StatedInterval,
    StatedStage,
    UncertainAggregate,
    UncertainLine,
    UncertainPipeline,
    UncertainStage,
    stated_model,
)
from tests.support.uncertain import MYRINET, aggregates, model_of, pipelines, stated

WORDS = [15357568266549655283, 6523984625352291713, 1580810879357656745]
seeds = st.integers(0, 2**64 - 1)
deviations = st.floats(1e-3, 1e3)
estimates = st.floats(-1e3, 1e3)


def a_stage(
    covariance: tuple[float, float, float], *, degrees: int = 1000, free: tuple[float, float]
) -> UncertainStage:
    """One line, its estimate clipped."""
    estimate = FitRange(max(0.0, free[0]), max(0.0, free[1]))
    return UncertainStage("one", (UncertainLine(estimate, *free, covariance),), degrees, 0.0, 0.05)


class TestStatedIntervals:
    def test_nineteen_draws_in_twenty_are_inside(self) -> None:
        """The cost is the median; what has no interval is known by the deviation, or exactly."""
        pipeline = Pipeline((Stage("one", (FitRange(5.0, 2.0, 100), FitRange(9.0, 1.0))),))
        given = StatedInterval("one", 1, overhead_us=(8.0, 15.0))
        draws = draw(stated_model(pipeline, 0.0, [given]), 10_000, 7)
        overhead = draws.overhead_us[0, 1]
        assert np.mean(overhead < 8.0) == pytest.approx(0.025, abs=0.005)
        assert np.mean(overhead > 15.0) == pytest.approx(0.025, abs=0.005)
        assert np.median(overhead) == pytest.approx(9.0, rel=0.02)
        assert (draws.overhead_us[0, 0] == 5.0).all()
        assert (draws.ns_per_byte[0, 1] == 1.0).all()
        wide = draw(stated_model(pipeline, 0.1, [given]), 400, 7)
        assert wide.ns_per_byte[0, 1].std() == pytest.approx(0.1, rel=0.15)
        assert (wide.overhead_us[0, 1] == overhead[:400]).all()

    def test_equal_intervals_are_the_deviation(self) -> None:
        pipeline = Pipeline((Stage("one", (FitRange(5.0, 2.0),)),))
        within = np.exp(1.959963984540054 * 0.1)
        given = StatedInterval("one", 0, (5.0 / within, 5.0 * within), (2.0 / within, 2.0 * within))
        ours = draw(stated_model(pipeline, 0.0, [given]), 50, 7)
        alike = draw(stated_model(pipeline, 0.1), 50, 7)
        assert ours.overhead_us == pytest.approx(alike.overhead_us, rel=1e-9)
        assert ours.ns_per_byte == pytest.approx(alike.ns_per_byte, rel=1e-9)


class TestProjection:
    """The nearest costs >= 0 in the metric of the covariance."""

    def test_the_oracle(self) -> None:
        """An overhead of -2 µs passes what it loses on to the per-byte cost."""
        found = project(np.array([-2.0]), np.array([0.10]), np.array([4.0, -0.03, 0.0004]))
        assert found[0][0] == 0.0
        assert found[1][0] == pytest.approx(0.085, rel=1e-12)

    @given(estimates, estimates, deviations, deviations, st.floats(-0.99, 0.99))
    def test_nothing_that_is_admitted_is_nearer(
        self, overhead: float, per_byte: float, sd: float, other: float, correlation: float
    ) -> None:
        """Against a fine grid of both edges, and what is inside stays."""
        covariance = np.array([sd**2, correlation * sd * other, other**2])
        found = project(np.array([overhead]), np.array([per_byte]), covariance)
        at = np.array([found[0][0], found[1][0]])
        assert (at >= 0.0).all()
        if overhead >= 0.0 and per_byte >= 0.0:
            assert at.tolist() == [overhead, per_byte]
        metric = np.linalg.inv(
            [[1.0, correlation], [correlation, 1.0]]
        )  # of costs in units of their deviations
        scale = np.array([sd, other])
        edge = np.linspace(0.0, 4e3, 4001)
        zeros = np.zeros_like(edge)
        points = np.concatenate([np.stack([edge, zeros]), np.stack([zeros, edge])], axis=1)

        def distances(where: np.ndarray) -> np.ndarray:
            off = (where - np.array([[overhead], [per_byte]])) / scale[:, None]
            return np.einsum("ij,ik,kj->j", off, metric, off)

        own = distances(at[:, None])[0]
        assert own <= distances(points).min() * (1.0 + 1e-6) + 1e-9

    def test_a_known_cost_stays(self) -> None:
        """Without variance there is nothing to move."""
        found = project(np.array([3.0, -1.0]), np.array([-1.0, 2.0]), np.zeros(3))
        assert found[0].tolist() == [3.0, 0.0]
        assert found[1].tolist() == [0.0, 2.0]


class TestNumbers:
    """Philox's words, and what is made of them."""

    def test_the_words_are_fixed(self) -> None:
        """The same on every platform and with every NumPy: written down once."""
        words = np.random.Philox(counter=[0, 0, 0, 1], key=7).random_raw(3)
        assert words.tolist() == WORDS

    def test_a_longer_run_begins_with_the_shorter(self) -> None:
        """Number d does not depend on how many there are."""
        assert (uniforms(3, 1, 50, 5)[:, :20] == uniforms(3, 1, 20, 5)).all()

    def test_streams_and_seeds_differ(self) -> None:
        """Of every stage its own."""
        first = uniforms(3, 0, 50, 5)
        assert not (first == uniforms(3, 1, 50, 5)).any()
        assert not (first == uniforms(4, 0, 50, 5)).any()

    def test_normal_numbers_are_normal(self) -> None:
        """Moments of 40 000, within five standard errors."""
        found = normals(uniforms(5, 0, 20_000, 2)).ravel()
        for power, moment, error in ((1, 0.0, 1.0), (2, 1.0, 1.42), (3, 0.0, 3.9), (4, 3.0, 9.8)):
            assert (found**power).mean() == pytest.approx(moment, abs=5 * error / 200.0)


class TestDraws:
    """Of whole models."""

    @given(pipelines | aggregates, seeds)
    def test_the_first_draw_is_the_estimate(
        self, model: UncertainPipeline | UncertainAggregate, seed: int
    ) -> None:
        """To the last bit, and all others are models that the domain admits."""
        draws = draw(model, 5, seed)
        assert model_of(draws, 0) == model.model
        for at in range(1, 5):
            model_of(draws, at)  # raises for costs and ends that no stage may have

    @given(pipelines | aggregates, seeds)
    def test_the_same_seed_the_same_draws(
        self, model: UncertainPipeline | UncertainAggregate, seed: int
    ) -> None:
        """However often, and however many."""
        one, other = draw(model, 5, seed), draw(model, 9, seed)
        for name in ("overhead_us", "ns_per_byte", "ends_bytes"):
            assert (getattr(one, name) == getattr(other, name)[..., :5]).all()

    def test_the_covariance_is_that_of_the_fit(self) -> None:
        """With many degrees of freedom and nothing to clip; correlation included."""
        stage = a_stage((4.0, -0.9, 0.25), free=(100.0, 50.0))
        draws = draw(UncertainPipeline((stage,)), 10_000, 1)
        found = np.cov(draws.overhead_us[0, 0], draws.ns_per_byte[0, 0])
        assert found.ravel() == pytest.approx([4.0, -0.9, -0.9, 0.25], rel=0.08)
        assert draws.overhead_us[0, 0].mean() == pytest.approx(100.0, abs=0.1)

    @pytest.mark.parametrize("degrees", [3, 4, 9])
    def test_few_degrees_of_freedom_spread_wider(self, degrees: int) -> None:
        """A Student t: its 95 % quantile, in deviations."""
        expected = {3: 2.353, 4: 2.132, 9: 1.833}
        stage = a_stage((1.0, 0.0, 0.0), degrees=degrees, free=(1000.0, 1.0))
        draws = draw(UncertainPipeline((stage,)), 10_000, 2)
        found = np.quantile(draws.overhead_us[0, 0] - 1000.0, 0.95)
        assert found == pytest.approx(expected[degrees], rel=0.06)

    def test_one_scale_a_stage(self) -> None:
        """The ranges of a stage share it: large errors come together."""
        lines = tuple(
            UncertainLine(FitRange(1000.0, 1.0, end), 1000.0, 1.0, (1.0, 0.0, 0.0))
            for end in (100, None)
        )
        draws = draw(UncertainPipeline((UncertainStage("two", lines, 3, 0.0, 0.0),)), 10_000, 3)
        errors = np.abs(draws.overhead_us[0] - 1000.0)
        ranks = np.argsort(np.argsort(errors, axis=1), axis=1)
        assert np.corrcoef(ranks)[0, 1] > 0.1
        signs = np.sign(draws.overhead_us[0] - 1000.0)
        assert abs((signs[0] * signs[1]).mean()) < 0.05

    def test_typed_costs_are_lognormal(self) -> None:
        """Around what was typed, its median; zero stays zero."""
        stage = StatedStage(Stage.of_line("typed", overhead_us=8.0, ns_per_byte=0.0), 0.1)
        draws = draw(UncertainPipeline((stage,)), 10_000, 4)
        logs = np.log(draws.overhead_us[0, 0] / 8.0)
        assert logs.mean() == pytest.approx(0.0, abs=0.005)
        assert logs.std() == pytest.approx(0.1, rel=0.04)
        assert not draws.ns_per_byte.any()

    def test_ends_lie_between_the_measured_sizes(self) -> None:
        """Log-uniform: half of them below the geometric mean."""
        lines = (
            UncertainLine(FitRange(1.0, 1.0, 2000), 1.0, 1.0, (0.0, 0.0, 0.0), (1024, 4096)),
            UncertainLine(FitRange(2.0, 1.0), 2.0, 1.0, (0.0, 0.0, 0.0)),
        )
        draws = draw(UncertainPipeline((UncertainStage("two", lines, 5, 0.0, 0.0),)), 4000, 5)
        ends = draws.ends_bytes[0, 0]
        assert ends[0] == 2000
        assert ends.min() >= 1024
        assert ends.max() <= 4095
        assert (ends < 2048).mean() == pytest.approx(0.5, abs=0.04)

    def test_ends_are_where_steeper_lines_meet(self) -> None:
        """A bend between two measured sizes jumps nowhere: beyond it a size would look cheap that
        nobody measured. The lines are those of a rate of messages and of one of bytes.
        """
        errors = (1e-4, 0.0, 1e-6)
        lines = (
            UncertainLine(FitRange(0.183, 0.0087, 646), 0.183, 0.0087, errors, (512, 1024)),
            UncertainLine(FitRange(0.02, 0.2604), 0.02, 0.2604, errors),
        )
        draws = draw(UncertainPipeline((UncertainStage("rate", lines, 40, 0.0, 0.0),)), 400, 5)
        (g, other_g), (G, other_G) = draws.overhead_us[0], draws.ns_per_byte[0]
        met = 1000.0 * (g - other_g) / (other_G - G)
        inside = (met > 512) & (met < 1024)
        inside[0] = False  # the estimate
        assert inside.mean() > 0.9
        assert np.array_equal(draws.ends_bytes[0, 0][inside], np.floor(met[inside]))
        sizes = np.arange(512, 1024)
        dearer = np.maximum(
            g + G * sizes[:, None] / 1000, other_g + other_G * sizes[:, None] / 1000
        )
        assert stage_times_us(draws, 0, sizes)[:, inside] == pytest.approx(dearer[:, inside])

    def test_the_bottleneck_is_drawn_together_with_the_total(self) -> None:
        """Two lines that are close: without the projection a third of the draws would contradict
        itself.
        """
        total = a_stage((1.0, -0.0, 0.01), free=(20.0, 10.0))
        bottleneck = a_stage((1.0, 0.0, 0.01), free=(19.5, 9.95))
        draws = draw(UncertainAggregate(total, bottleneck), 2000, 6)
        small, large = (
            draws.overhead_us[:, 0] + draws.ns_per_byte[:, 0] * size / 1e3 for size in (1, 1e6)
        )
        assert (small[1] <= small[0] + 1e-9).all()
        assert (large[1] <= large[0] + 1e-6).all()
        # Where nothing had to move, the errors of the two do not know each other.
        far = a_stage((1.0, 0.0, 0.01), free=(5.0, 2.0))
        free = draw(UncertainAggregate(total, far), 2000, 6).overhead_us[:, 0]
        assert abs(np.corrcoef(free)[0, 1]) < 0.1

    @pytest.mark.parametrize(("count", "seed"), [(0, 1), (10_001, 1), (5, -1), (5, 2**64)])
    def test_what_cannot_be_drawn_is_refused(self, count: int, seed: int) -> None:
        """Counts and seeds outside their limits."""
        with pytest.raises(InvalidInput):
            draw(stated(MYRINET, 0.1), count, seed)

    def test_they_cannot_be_changed(self) -> None:
        """A frozen value, its arrays included."""
        draws: Draws = draw(stated(MYRINET, 0.1), 3, 1)
        with pytest.raises(ValueError, match="read-only"):
            draws.overhead_us[0, 0, 0] = 1.0

    def test_costs_next_to_nothing(self) -> None:
        """Variances that are no normal numbers move nothing, and break nothing."""
        tiny = StatedStage(Stage.of_line("tiny", overhead_us=1e-155, ns_per_byte=1e-160), 0.5)
        other = StatedStage(Stage.of_line("other", overhead_us=2e-155, ns_per_byte=0.0), 0.5)
        for model in (UncertainAggregate(tiny, other), UncertainPipeline((tiny, other))):
            draws = draw(model, 50, 1)
            assert np.isfinite(draws.overhead_us).all()
            assert np.isfinite(draws.ns_per_byte).all()
