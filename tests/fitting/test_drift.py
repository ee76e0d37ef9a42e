"""fitting/drift.py: levels that move while a file is written, told and allowed for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.fit import FitOptions, StageFit
from fitting.drift import UNMOVED, Drift
from fitting.samples import sort_samples
from fitting.stage import fit_stage
from tests.support.counts import count
from tests.support.stage_samples import Floats

SIZES = 2.0 ** np.arange(10, 20)
ORDERS = ("turns", "random", "sizes")


def file_of(
    seed: int, order: str, level: str = "", repetitions: int = 20
) -> tuple[list[int], list[float]]:
    """Rows with 3 % of noise whose level moves as `level` says: a change, "walk" or "pause"."""
    random = np.random.default_rng(seed)
    x = np.tile(SIZES, repetitions)
    if order == "sizes":
        x = np.sort(x)
    if order == "random":
        random.shuffle(x)
    q = np.arange(len(x)) / len(x) - 0.5
    y = (20.0 + x / 1000.0) * random.lognormal(0.0, 0.03, len(x)) * _levels(random, level, q)
    return x.astype(np.int64).tolist(), y.tolist()


def _levels(random: np.random.Generator, level: str, q: Floats) -> Floats:
    if level == "walk":
        steps, at = np.empty(len(q)), 0.0
        for place, step in enumerate(random.normal(0.0, 0.02, len(q))):
            at = 0.97 * at + step
            steps[place] = at
        out: Floats = np.exp(steps)
        return out
    if level == "pause":
        return np.where((q > 0.0) & (q < 0.15), 1.5, 1.0)
    if level == "two kinds":
        return np.where(random.random(len(q)) < 0.3, 2.0, 1.0)
    return 1.0 + float(level or 0.0) * q


def drift_in(seed: int, order: str, level: str = "", repetitions: int = 20) -> Drift:
    return sort_samples(*file_of(seed, order, level, repetitions)).drift


class TestChange:
    @pytest.mark.parametrize("order", ["turns", "random"])
    @pytest.mark.parametrize("change", [-0.3, 0.1, 0.4])
    def test_it_is_found(self, order: str, change: float) -> None:
        """Within 30 %, in the middle of 40 files, from 10 repetitions on."""
        found = [drift_in(seed, order, str(change), 10).change for seed in range(count(800))]
        assert np.median(found) == pytest.approx(change, rel=0.3)

    @pytest.mark.parametrize("order", ORDERS)
    @pytest.mark.parametrize("level", ["", "two kinds"])
    @pytest.mark.parametrize("repetitions", [5, 30])
    def test_none_is_invented(self, order: str, level: str, repetitions: int) -> None:
        """In 40 files one at most, in many one of a hundred."""
        files = range(count(800))
        moved = [drift_in(seed, order, level, repetitions) != UNMOVED for seed in files]
        assert sum(moved) <= max(1, len(files) // 100)

    def test_a_disturbance_of_some_turns_is_none(self) -> None:
        found = [drift_in(seed, "turns", "pause").change for seed in range(count(400))]
        assert np.mean(np.array(found) == 0.0) >= 0.9

    def test_a_slow_first_repetition_is_none(self) -> None:
        sizes, times = file_of(3, "turns")
        times = [1.5 * time if at < len(SIZES) else time for at, time in enumerate(times)]
        assert sort_samples(sizes, times).drift == UNMOVED

    def test_sizes_one_after_the_other_say_what_changed_within_each(self) -> None:
        """A drift of 40 % over 10 sizes is 4 % within one."""
        found = [drift_in(seed, "sizes", "0.4", 30).change for seed in range(count(400))]
        assert 0.0 < np.max(found) <= 0.08

    def test_times_that_differ_by_their_last_digits_say_nothing(self) -> None:
        """Their weights would be infinite."""
        times = [1.0 + 1e-200 * (at % 3) for at in range(100)]
        assert sort_samples([1024 * (at % 5 + 1) for at in range(100)], times).drift == UNMOVED
        times = [1e9 if at % 5 else 1e-310 * (at % 3 + 1) for at in range(100)]
        assert sort_samples([1024 * (at % 5 + 1) for at in range(100)], times).drift == UNMOVED

    @pytest.mark.parametrize("repetitions", [1, 4])
    def test_few_repetitions_say_nothing(self, repetitions: int) -> None:
        assert drift_in(1, "turns", "0.4", repetitions) == UNMOVED


def is_said(seed: int, order: str, change: float) -> bool:
    """Whether a fit warns: 4 to 14 sizes, 5 to 50 repetitions, 1 to 20 % of noise."""
    random = np.random.default_rng(seed)
    repetitions, sizes = int(random.integers(5, 51)), int(random.integers(4, 15))
    x = np.tile(2.0 ** np.arange(8, 8 + sizes), repetitions)
    if order == "sizes":
        x = np.sort(x)
    if order == "random":
        random.shuffle(x)
    level = 1.0 + change * (np.arange(len(x)) / len(x) - 0.5)
    noise = random.lognormal(0.0, random.uniform(0.01, 0.2), len(x))
    y = (random.uniform(0.5, 50.0) + x * random.uniform(0.05, 2.0) / 1000.0) * noise * level
    _, notices = fit_stage("copy", x.astype(np.int64).tolist(), y.tolist(), FitOptions())
    return "drift_found" in [notice.code for notice in notices]


class TestWarnings:
    def test_files_that_did_not_move(self) -> None:
        """One of a hundred says so at most."""
        said = [is_said(seed, ORDERS[seed % 3], 0.0) for seed in range(count(4000))]
        assert np.mean(said) <= 0.01

    @pytest.mark.parametrize("order", ["turns", "random"])
    def test_files_that_moved_by_10_to_50_percent(self, order: str) -> None:
        """Four of five say so, at 10 % where noise is up to 20 % about half."""
        changes = np.random.default_rng(7).uniform(0.1, 0.5, count(800))
        said = [is_said(seed, order, change) for seed, change in enumerate(changes)]
        assert np.mean(said) >= 0.8


class TestFits:
    def test_it_is_said_and_the_lines_stay(self) -> None:
        """Errors allow for the level at the end, the estimates are those of the middle."""
        still, moved = (
            fit_stage("copy", *file_of(5, "turns", by), FitOptions()) for by in ("", "0.3")
        )
        notice = next(notice for notice in moved[1] if notice.code == "drift_found")
        assert "times rise by" in notice.detail
        assert notice.value("relative_change") == pytest.approx(0.3, abs=0.06)
        assert "drift_found" not in [notice.code for notice in still[1]]
        (line,) = moved[0].lines
        assert line.ns_per_byte == pytest.approx(1.0, rel=0.03)
        assert line.ns_per_byte_std_error == pytest.approx(0.15, rel=0.3)
        assert line.covariance is not None
        assert line.covariance[2] ** 0.5 == pytest.approx(line.ns_per_byte_std_error)

    def test_what_moves_together_without_a_trend(self) -> None:
        """The 90 % interval of a cost holds the truth in 2 of 3 files and more."""
        held = []
        for seed in range(count(600)):
            stage: StageFit = fit_stage("copy", *file_of(seed, "turns", "walk"), FitOptions())[0]
            line = stage.lines[-1]
            held.append(abs(line.ns_per_byte - 1.0) <= 1.645 * line.ns_per_byte_std_error)
        assert np.mean(held) >= 0.66

    @given(
        st.lists(st.floats(0.0, 1e9) | st.sampled_from([0.0, 1.0]), min_size=12, max_size=80),
        st.integers(1, 6),
        st.booleans(),
    )
    def test_any_times(self, times: list[float], sizes: int, are_sorted: bool) -> None:
        x = [1024 * (at % sizes + 1) for at in range(len(times))]
        found = sort_samples(sorted(x) if are_sorted else x, times).drift
        assert np.isfinite([found.change, found.deviation]).all()
        assert found.deviation >= 0.0
