"""Settings for many messages over draws of the costs: regrets, limits, and which to use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from analysis.decision import gains_over
from analysis.draw_costs import regrets_over, repeated_us
from analysis.draws import draw
from analysis.repeated_sizes import price_sizes
from analysis.settings_in_draws import (
    MAX_MESSAGES,
    CutOf,
    SettingsQuestion,
    repeated_by,
    settings_in_draws,
)
from domain.fragment_setting import FragmentSetting, SettingStep
from domain.pipeline import FitRange
from domain.problem import FragmentLimits, problem_of
from domain.regret import Objective
from domain.uncertain_answer import DecisionCode, Reason, SettingsInDraws
from domain.uncertainty import (
    KnownErrors,
    NamedCut,
    Source,
    UncertainLine,
    UncertainPipeline,
    UncertainStage,
    seed_of,
)
from domain.workload import Workload
from tests.support.measured import times_of
from tests.support.uncertain import MYRINET, model_of, stated

MODEL = stated(MYRINET, 0.1)
ERRORS = KnownErrors(MODEL, draws=100)
MESSAGES = Workload.weighted([(4096, 1.0), (65_536, 3.0)], "two sizes")


def repeat(size: int | None) -> CutOf:
    """One size for every message."""
    return repeated_by(FragmentSetting.always(size))


def question(*settings: tuple[str, CutOf], workload: Workload = MESSAGES) -> SettingsQuestion:
    return SettingsQuestion(ERRORS, workload, settings)


class TestFigures:
    def test_they_are_those_of_each_message_and_draw(self) -> None:
        """Regrets and gains once more, message by message."""
        found = settings_in_draws(question(("mine", repeat(16_384)), ("other", repeat(3784))))
        draws = draw(MODEL, 100, seed_of(MODEL))
        regrets, gains = np.zeros((2, 100)), np.zeros(100)
        for size, share in ((4096, 0.25), (65_536, 0.75)):
            rows = repeated_us(draws, size, np.array([min(16_384, size), 3784]))
            best_us = price_sizes(problem_of(MODEL.model, size, FragmentLimits()), draws).best_us
            regrets += share * regrets_over(rows, np.minimum(best_us, rows.min(axis=0)))
            gains += share * gains_over(rows[1], rows[0])
        for one, expected in zip(found.settings, regrets, strict=True):
            assert one.regret.mean == pytest.approx(expected.mean())
            assert one.regret.worst_drawn == pytest.approx(expected.max())
            assert one.regret.p95 == pytest.approx(np.quantile(expected, 0.95))
            assert one.good == pytest.approx((expected <= 0.02).mean())
        assert found.gain.p50 == pytest.approx(np.quantile(gains, 0.5))
        assert found.probability == pytest.approx((gains > 0.01).mean())

    def test_the_first_draw_is_the_estimate(self) -> None:
        """A setting's latency there is the evaluator's on whole bytes."""
        draws = draw(MODEL, 100, seed_of(MODEL))
        size = FragmentSetting((SettingStep(1, None), SettingStep(8192, 3000))).size_at(65_536)
        cut = (3000,) * 21 + (2536,)
        assert repeated_us(draws, 65_536, np.array([size]))[0, 0] == pytest.approx(
            model_of(draws, 0).latency_us(cut)
        )

    def test_a_limit_is_kept_in_a_share_of_the_draws(self) -> None:
        """By the mean, or by the worst message, which is never kept more often."""
        asked = question(("mine", repeat(8192)))
        settings = settings_in_draws(asked).settings
        assert settings[0].kept is None
        middle = settings[0].regret.mean
        mean = settings_in_draws(replace(asked, max_regret=middle)).settings[0].kept
        worst = replace(asked, max_regret=middle, objective=Objective.WORST)
        kept = settings_in_draws(worst).settings[0].kept
        assert mean is not None
        assert kept is not None
        assert 0.2 < mean < 0.8
        assert kept < mean

    def test_many_messages_are_represented_by_their_shares(self) -> None:
        """So many at most, and those that count much more often."""
        many = [(size, 1000.0 if size == 70_000 else 1.0) for size in range(69_000, 71_000)]
        found = settings_in_draws(
            question(("mine", repeat(16_384)), workload=Workload.weighted(many, "many"))
        )
        alone = settings_in_draws(
            question(("mine", repeat(16_384)), workload=Workload.weighted([(70_000, 1.0)], "one"))
        )
        assert found.messages == MAX_MESSAGES
        assert alone.messages == 1
        assert found.settings[0].regret.mean == pytest.approx(
            alone.settings[0].regret.mean, rel=0.05
        )

    def test_by_the_total_time_they_are_shares_of_sums(self) -> None:
        """Once more message by message; a message that takes little hardly counts."""
        settings = (("mine", repeat(16_384)), ("other", repeat(3784)))
        found = settings_in_draws(replace(question(*settings), objective=Objective.TIME))
        draws = draw(MODEL, 100, seed_of(MODEL))
        total_us, best_us = np.zeros((2, 100)), np.zeros(100)
        for size, share in ((4096, 0.25), (65_536, 0.75)):
            rows = repeated_us(draws, size, np.array([min(16_384, size), 3784]))
            priced = price_sizes(problem_of(MODEL.model, size, FragmentLimits()), draws)
            total_us += share * rows
            best_us += share * np.minimum(priced.best_us, rows.min(axis=0))
        for one, expected in zip(found.settings, total_us / best_us - 1.0, strict=True):
            assert one.regret.mean == pytest.approx(expected.mean())
            assert one.regret.p95 == pytest.approx(np.quantile(expected, 0.95))
            assert one.good == pytest.approx((expected <= 0.02).mean())
        gains = 1.0 - total_us[1] / total_us[0]
        assert found.gain.p50 == pytest.approx(np.quantile(gains, 0.5))
        assert found.is_of_time
        limit = found.settings[0].regret.mean
        limited = replace(question(*settings), objective=Objective.TIME, max_regret=limit)
        kept = settings_in_draws(limited).settings[0].kept
        assert kept == pytest.approx(((total_us[0] / best_us - 1.0) <= limit).mean())

    def test_of_many_messages_those_that_take_long_are_priced_where_time_counts(self) -> None:
        """A rare message that takes half of the time is priced; by the mean it is none of 24."""
        small = [(100 + at, 1.0) for at in range(200)]
        many = Workload.weighted([*small, (2**24, 0.01)], "many")
        settings = (("mine", repeat(1 << 24)), ("other", repeat(16_384)))
        asked = question(*settings, workload=many)
        mean, time = (
            settings_in_draws(replace(asked, objective=one))
            for one in (Objective.MEAN, Objective.TIME)
        )
        few = Workload.weighted([(200, 200.0), (2**24, 0.01)], "two")
        alone = settings_in_draws(
            replace(question(*settings, workload=few), objective=Objective.TIME)
        )
        assert mean.settings[0].regret.mean < 0.01 < alone.settings[0].regret.mean
        assert time.settings[0].regret.mean == pytest.approx(
            alone.settings[0].regret.mean, rel=0.05
        )
        assert (mean.code, time.code) == (DecisionCode.KEEP_YOURS, DecisionCode.SET_IT)

    def test_uneven_cuts_are_priced_too(self) -> None:
        """And count among the best."""
        cuts = {4096: (820,) * 4 + (816,), 65_536: (3000, *(3676,) * 17, 44)}
        found = settings_in_draws(
            question(
                ("mine", repeat(None)),
                ("cuts", lambda size: NamedCut.of_fragments("cut", cuts[size])),
            )
        )
        assert found.advised == "cuts"
        assert found.gain.p05 > 0.3

    def test_one_piece_takes_no_more_than_it_was_measured_to_take(self) -> None:
        """A message that was faster whole than any cut of it is left whole."""
        one_size = Workload.weighted([(65_536, 1.0)], "one size")
        asked = question(("mine", repeat(None)), ("cut", repeat(3784)), workload=one_size)
        assert settings_in_draws(asked).code is DecisionCode.SET_IT
        measured = replace(ERRORS, whole_us=((65_536, 1.0),))
        found = settings_in_draws(replace(asked, errors=measured))
        assert (found.code, found.advised) == (DecisionCode.KEEP_YOURS, "mine")
        assert found.settings[0].regret.worst_drawn == 0.0

    def test_limits_that_admit_no_repeated_size(self) -> None:
        """The best is then that of the settings."""
        limits = FragmentLimits(min_fragment_bytes=4000, max_fragment_bytes=4095)
        asked = SettingsQuestion(ERRORS, MESSAGES, (("mine", repeat(3784)),), limits)
        assert settings_in_draws(asked).settings[0].regret.worst_drawn == 0.0


class TestDecisions:
    def test_a_clear_gain_is_set(self) -> None:
        found = settings_in_draws(question(("mine", repeat(None)), ("other", repeat(3784))))
        assert (found.code, found.advised) == (DecisionCode.SET_IT, "other")
        assert found.source is Source.RELATIVE
        assert 0.3 < found.gain.p05 < found.gain.p50 < found.gain.p95 < 0.6

    def test_what_is_near_the_best_is_kept(self) -> None:
        """Whatever else there is."""
        one_size = Workload.weighted([(65_536, 1.0)], "one size")
        settings = (("mine", repeat(3784)), ("other", repeat(4096)))
        found = settings_in_draws(question(*settings, workload=one_size))
        assert (found.code, found.advised) == (DecisionCode.KEEP_YOURS, "mine")

    def test_without_a_certain_gain_nothing_is_advised(self) -> None:
        """Far from the best, and the only other size is no faster."""
        found = settings_in_draws(question(("mine", repeat(30_000)), ("other", repeat(30_001))))
        assert (found.code, found.advised) == (DecisionCode.NO_GAIN_PROVABLE, "mine")

    def test_a_misfit_raises_the_margin(self) -> None:
        """A gain of some 40 % is none where whole messages are 60 % off the model."""
        asked = question(("mine", repeat(None)), ("other", repeat(3784)))
        found = settings_in_draws(replace(asked, errors=replace(ERRORS, misfit=0.6)))
        assert found.code is DecisionCode.NO_GAIN_PROVABLE
        assert found.thresholds.margin == 0.6

    def test_one_setting_alone_is_not_decided_about(self) -> None:
        found = settings_in_draws(question(("mine", repeat(4096))))
        assert (found.code, found.advised) == (None, "mine")
        assert found.gain.p95 == 0.0


class TestMeasuredSizes:
    """Two stages alike, each known exactly from 1 KiB to 1 MiB: 20 µs and 2 ns a byte."""

    SIZES = tuple(2**power for power in range(10, 21))
    LINE = FitRange(20.0, 2.0)

    def errors(self, *times_us: float, line: FitRange = LINE) -> KnownErrors:
        """Costs with these times at SIZES, in both stages; the line's own where none are given."""
        known = UncertainLine(line, line.overhead_us, line.ns_per_byte, (0.0, 0.0, 0.0))
        stage = UncertainStage("link", (known,), 20, 0.0, 0.02, self.SIZES, 1.0)
        rows = times_us or [line.line.time_us(size) for size in self.SIZES]
        times = times_of(*2 * [list(zip(self.SIZES, rows, strict=True))], error=0.005)
        return KnownErrors(UncertainPipeline((stage, stage)), draws=50, times=times)

    def decided(
        self, errors: KnownErrors, *sizes: int | None, message_bytes: int = 2**20
    ) -> SettingsInDraws:
        """The first of these sizes is in use; what is decided about the others."""
        workload = Workload.weighted([(message_bytes, 1.0)], "one size")
        settings = [(str(size), repeat(size)) for size in sizes]
        asked = SettingsQuestion(errors, workload, tuple(settings), objective=Objective.TIME)
        return settings_in_draws(asked)

    def test_what_was_measured_is_set(self) -> None:
        found = self.decided(self.errors(), None, 2**16)
        assert (found.code, found.advised, found.reason) == (DecisionCode.SET_IT, "65536", None)

    def test_a_size_that_was_not_measured_is_measured_first(self) -> None:
        """One piece of 64 MiB, where 1 MiB is the greatest size; what is in use is not asked."""
        found = self.decided(self.errors(), 1024, None, message_bytes=2**26)
        assert (found.code, found.reason) == (DecisionCode.MEASURE_FIRST, Reason.NOT_MEASURED)
        assert found.unmeasured_bytes == 2**26
        found = self.decided(self.errors(), None, 2**18, message_bytes=2**26)
        assert (found.code, found.unmeasured_bytes) == (DecisionCode.SET_IT, None)

    def test_times_of_whole_messages_set_nothing(self) -> None:
        falling = (9300.0, 7000.0, 4800.0, 3700.0, 3600.0, *6 * [3600.0])
        errors = self.errors(*falling, line=FitRange(3600.0, 0.001))
        found = self.decided(errors, 1024, None)
        assert (found.code, found.reason) == (DecisionCode.MEASURE_FIRST, Reason.FALLS_WITH_SIZE)

    def test_the_file_speaks_against_it(self) -> None:
        """Above 8 KiB a message takes 40 µs and no more: sixteen pieces of 64 KiB cost more."""
        level = tuple(min(self.LINE.line.time_us(size), 40.0) for size in self.SIZES)
        found = self.decided(self.errors(*level), None, 2**16)
        assert (found.code, found.reason) == (DecisionCode.MEASURE_FIRST, Reason.FILE_NOT_FASTER)
        assert found.advised == "65536"

    def test_a_range_that_is_fast_in_bursts_alone_is_measured_first(self) -> None:
        """A bucket lets 16 KiB pass at once: 0.1 ns a byte, and 8 ns beyond."""
        ranges = FitRange(1.0, 0.1, 2**14), FitRange(0.0, 8.0)
        lines = tuple(
            UncertainLine(one, one.overhead_us, one.ns_per_byte, (0.0, 0.0, 0.0)) for one in ranges
        )
        stage = UncertainStage("bucket", lines, 20, 0.0, 0.02, self.SIZES, 1.0)
        rows = [(size, ranges[size > 2**14].line.time_us(size)) for size in self.SIZES]
        model = UncertainPipeline((stage,))
        errors = KnownErrors(model, draws=50, times=times_of(rows, error=0.005))
        found = self.decided(errors, None, 2**14)
        assert (found.code, found.reason) == (DecisionCode.MEASURE_FIRST, Reason.ONLY_IN_BURSTS)
