"""What measured sizes leave of a decision: refused, proposed, never slower; and what they say."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.file_rules import file_vote
from analysis.held_up import held_up
from analysis.measured import Measured
from analysis.repeated_sizes import admits
from analysis.size_curve import choose_size
from analysis.uncertainty import UncertaintyQuestion, assess
from domain.errors import Infeasible, StrategyDeclined
from domain.measured_times import MeasuredTimes
from domain.nested import NestedSchedule
from domain.pipeline import FitRange
from domain.problem import FragmentLimits, MessageProblem, problem_of
from domain.uncertain_answer import (
    REFUSED,
    DecisionCode,
    FileVote,
    MeasurementKind,
    Reason,
    Uncertainty,
)
from domain.uncertainty import (
    NamedCut,
    UncertainAggregate,
    UncertainLine,
    UncertainPipeline,
    UncertainStage,
)
from tests.support.measured import measured_times, times_of

SIZES = tuple(2**power for power in range(10, 21))
NO_ERROR = (0.0, 0.0, 0.0)


def stage(*ranges: FitRange, ratio: float = 1.0) -> UncertainStage:
    """A stage known exactly, measured at SIZES."""
    lines = tuple(UncertainLine(one, one.overhead_us, one.ns_per_byte, NO_ERROR) for one in ranges)
    return UncertainStage("link", lines, 20, 0.0, 0.02, SIZES, ratio)


LINES = (FitRange(20.0, 2.0), FitRange(30.0, 3.0))
MODEL = UncertainPipeline(tuple(stage(one) for one in LINES))


def on_the_lines(*, error: float = 0.005) -> MeasuredTimes:
    """Times that are the model's own."""
    return times_of(
        *([(size, one.line.time_us(size)) for size in SIZES] for one in LINES), error=error
    )


def changed(low: int, high: int, factor: float, *, means: float = 1.0) -> MeasuredTimes:
    """The same, but for the second stage from one size to another: its medians times a factor, and
    its means times another one besides.
    """
    times = on_the_lines()
    second = times.stages[1]
    sizes = tuple(
        replace(
            one,
            median_us=one.median_us * factor,
            mean_us=one.median_us * factor * means,
            is_own=True,
        )
        if low <= one.message_bytes <= high
        else one
        for one in second.sizes
    )
    return replace(times, stages=(times.stages[0], replace(second, sizes=sizes)))


def bent(above: int, factor: float) -> MeasuredTimes:
    """The same, but for sizes above one, where the second stage takes so many times as long."""
    return changed(above + 1, SIZES[-1], factor)


def asked(
    times: MeasuredTimes | None, current: int | None, total: int = 2**20, **more: object
) -> UncertaintyQuestion:
    """A message of 1 MiB, by default, that is repeated in this size today."""
    return UncertaintyQuestion(
        MODEL,
        total,
        current=None if current is None else NamedCut("current", current),
        times=times,
        measured_bytes=(SIZES[0], SIZES[-1]),
        **more,  # type: ignore[arg-type]
    )


class TestVeto:
    """What the draws set, and the file speaks against."""

    def test_a_gain_that_the_file_has_too_is_set(self) -> None:
        found = assess(asked(on_the_lines(), 2**18))
        assert (found.decision.code, found.decision.reason) == (
            DecisionCode.SET_IT,
            Reason.FASTER,
        )
        assert found.file is not None
        assert found.file.off == pytest.approx(0.0, abs=0.01)
        assert not found.tells_file

    def test_a_size_that_is_slower_in_the_file_is_measured_first(self) -> None:
        """All sizes but the message's take twice as long as the lines say."""
        whole, slow = 2**20, changed(0, 2**19, 2.0)
        before = assess(asked(None, whole))
        assert before.decision.code is DecisionCode.SET_IT
        found = assess(asked(slow, whole))
        assert found.decision.code is DecisionCode.MEASURE_FIRST
        assert found.decision.reason is Reason.FILE_NOT_FASTER
        measure = found.decision.measure
        assert measure is not None
        assert measure.kind is MeasurementKind.WHOLE_MESSAGES
        assert measure.cuts == (before.decision.advised, NamedCut("current", whole))
        assert found.measure_next[0] == measure
        choice = choose_size(_problem(asked(slow, whole)), found, current_bytes=whole)
        assert choice is not None
        assert choice.chosen.size_bytes == whole  # until it is measured
        assert choice.recommended.size_bytes == before.decision.advised.size_bytes

    def test_means_speak_against_it_as_well(self) -> None:
        """Medians that are the lines', and means that are twice that."""
        found = assess(asked(changed(0, 2**19, 1.0, means=2.0), 2**20))
        assert found.decision.reason is Reason.FILE_NOT_FASTER
        assert found.file is not None
        assert found.file.gains[0] > 0.0 >= found.file.gains[1]

    def test_means_alone_are_asked_where_they_are_above_medians(self) -> None:
        """Sizes below the message have twice their medians, and their means as the lines say."""
        times = changed(0, 2**19, 2.0, means=0.5)
        assert assess(asked(times, 2**20)).decision.reason is Reason.FILE_NOT_FASTER
        model = UncertainPipeline(tuple(stage(one, ratio=1.1) for one in LINES))
        found = assess(replace(asked(times, 2**20), model=model))
        assert found.decision.code is DecisionCode.SET_IT

    @pytest.mark.parametrize(
        ("current", "error", "code"),
        [
            (90_000, 0.0005, DecisionCode.SET_IT),
            (90_000, 0.03, DecisionCode.KEEP_YOURS),
            (200_000, 0.01, DecisionCode.SET_IT),
            (200_000, 0.1, DecisionCode.KEEP_YOURS),
        ],
    )
    def test_a_small_gain_is_borne_out_by_redrawn_files(
        self, current: int, error: float, code: DecisionCode
    ) -> None:
        """By the lines, which are known exactly, 128 KiB gain 1.02 % over 90 KB and 2.1 % over 200
        KB: redrawn files gain as well, or do not lose much.
        """
        assert assess(asked(None, current)).decision.code is DecisionCode.SET_IT
        found = assess(asked(on_the_lines(error=error), current)).decision
        assert found.code is code
        if code is DecisionCode.KEEP_YOURS:
            assert found.reason is Reason.DOES_NOT_MATTER
            assert found.advised.size_bytes == current

    def test_an_uneven_cut_is_held_against_it_too(self) -> None:
        """Fragments of sizes between measured ones are priced as well."""
        cut = NamedCut("answer", schedule=NestedSchedule(((2**16,) * 15 + (2**15,) * 2,)))
        measured = Measured(_problem(asked(None, 2**16)), MODEL, bent(2**14, 3.0), None, None)
        vote = file_vote(measured, cut, NamedCut("current", 2**14))
        assert vote is not None
        assert vote.off > 1.5
        assert max(vote.gains) < 0.0


class TestProposal:
    """What the file sets where the draws set nothing, or are refused."""

    def test_the_best_measured_size_is_set(self) -> None:
        """The lines know nothing of a switch above 64 KiB, where today's size is."""
        current = 2**17
        assert assess(asked(None, current)).decision.reason is Reason.NEAR_BEST
        found = assess(asked(bent(2**16, 1.5), current))
        assert found.decision.code is DecisionCode.SET_IT
        assert found.decision.reason is Reason.FILE_FASTER
        assert found.decision.advised.size_bytes == 2**16
        assert found.decision.gain.p05 > 0.2
        assert found.decision.thresholds.margin == 0.02
        assert found.tells_file
        choice = choose_size(_problem(asked(None, current)), found, current_bytes=current)
        assert choice is not None
        assert choice.chosen.size_bytes == 2**16
        assert choice.current is not None
        assert choice.chosen.latency_us < choice.current.latency_us  # of the file, not the lines

    def test_it_has_to_be_sure(self) -> None:
        """Not with errors as large as the gain."""
        times = bent(2**16, 1.1)
        sure = assess(asked(times, 2**17))
        assert sure.decision.reason is Reason.FILE_FASTER
        noisy = tuple(
            replace(
                one,
                sizes=tuple(
                    replace(size, median_error_us=0.2 * size.median_us) for size in one.sizes
                ),
            )
            for one in times.stages
        )
        unsure = assess(asked(replace(times, stages=noisy), 2**17))
        assert unsure.decision.code is not DecisionCode.SET_IT

    def test_a_known_misfit_is_its_margin_too(self) -> None:
        """Whole messages that contradict the model contradict its stages' times."""
        times = bent(2**16, 1.3)
        assert assess(asked(times, 2**17)).decision.reason is Reason.FILE_FASTER
        found = assess(asked(times, 2**17, misfit=0.5))
        assert found.decision.code is not DecisionCode.SET_IT

    def test_one_piece_is_proposed_where_it_was_measured(self) -> None:
        """As a size of the stages, or as a message that was timed whole."""
        flat = times_of(*([(size, 50.0) for size in SIZES] for _ in LINES), error=0.01)
        question = asked(flat, 2**15)
        question = replace(question, model=UncertainPipeline((stage(FitRange(0.0, 3.0)),) * 2))
        found = assess(question)
        assert found.decision.reason is Reason.FILE_FASTER
        assert found.decision.advised.size_bytes == 2**20
        larger = replace(question, message_bytes=2**22)
        advised = assess(larger).decision.advised.size_bytes
        assert advised == 2**20
        timed = assess(replace(larger, measured_us=90.0))
        assert timed.decision.advised.size_bytes == 2**22

    def test_it_takes_the_place_of_a_cut_that_the_lines_set(self) -> None:
        """Where these are beside it, and it gains more: sizes between two that switched are not
        what the lines say.
        """
        current = 2**20
        by_lines = assess(asked(on_the_lines(), current)).decision
        assert by_lines.reason is Reason.FASTER
        size = by_lines.advised.size_bytes
        assert size is not None
        assert size > 2**15
        found = assess(asked(changed(2**16, 2**19, 1.4), current))
        assert found.decision.code is DecisionCode.SET_IT
        assert found.decision.reason is Reason.FILE_FASTER
        assert found.decision.advised.size_bytes == 2**15
        near = assess(asked(changed(2**16, 2**19, 1.04), current))
        assert near.decision.advised == by_lines.advised


class TestRefusals:
    """Sizes that nobody measured, and sizes that are cheap in bursts alone."""

    def test_one_piece_beyond_the_measured_sizes_is_measured_first(self) -> None:
        """Unless the message was timed whole; keeping it is no change."""
        model = UncertainPipeline((stage(FitRange(100.0, 2.0)),))
        times = times_of([(size, 100.0 + 0.002 * size) for size in SIZES], error=0.005)
        question = replace(asked(times, 2**20, 2**21), model=model)
        alike = replace(question, current=NamedCut("current", 2**19), message_bytes=2**20)
        assert assess(alike).decision.code is DecisionCode.SET_IT  # 1 MiB was measured
        found = assess(question)
        assert found.decision.reason is Reason.NOT_MEASURED
        assert found.decision.code is DecisionCode.MEASURE_FIRST
        assert found.decision.measure is not None
        assert found.decision.measure.fragment_bytes == 2**21
        assert found.decision.measure.stage == "stage 0"
        timed = assess(replace(question, measured_us=4300.0))
        assert timed.decision.code is DecisionCode.SET_IT
        kept = assess(replace(question, current=NamedCut("current", 2**21)))
        assert kept.decision.code is DecisionCode.KEEP_YOURS

    def test_of_an_aggregate_too(self) -> None:
        """The total and the bottleneck are its stages."""
        line = FitRange(300.0, 3.0)
        rows = [(size, line.line.time_us(size)) for size in SIZES]
        times = times_of(rows, rows, error=0.005, kind="aggregate")
        model = UncertainAggregate(stage(line), stage(line))
        question = replace(asked(times, 2**20, 2**21), model=model)
        found = assess(question)
        assert found.decision.reason is Reason.NOT_MEASURED

    def test_limits_that_admit_no_measured_size_set_nothing(self) -> None:
        """All sizes are tried then, and none was measured."""
        limits = FragmentLimits(max_fragment_bytes=512)
        found = assess(asked(on_the_lines(), 64, 2**14, limits=limits))
        assert found.decision.code is DecisionCode.MEASURE_FIRST
        assert found.decision.reason is Reason.NOT_MEASURED

    def falling(self, *sizes_us: float, error: float = 0.01) -> Uncertainty:
        """One stage with these times from 1 KiB on, each four times as large, and lines that set
        one piece.
        """
        rows = [(1024 * 4**at, us) for at, us in enumerate(sizes_us)]
        model = UncertainPipeline((stage(FitRange(3000.0, 1.0)),))
        question = replace(asked(times_of(rows, error=error), 2**16), model=model)
        return assess(replace(question, measured_bytes=(rows[0][0], rows[-1][0])))

    def test_times_that_fall_with_the_size_are_no_stage(self) -> None:
        """They are whole messages' in such fragments: 9.3, 4.8, 3.7 ms; by less or later they may
        be a stage's.
        """
        found = self.falling(9300.0, 4800.0, 3700.0, 3600.0, 4500.0, 5900.0)
        assert found.decision.code is DecisionCode.MEASURE_FIRST
        assert found.decision.reason is Reason.FALLS_WITH_SIZE
        assert found.decision.measure is not None
        assert found.decision.measure.kind is MeasurementKind.WHOLE_MESSAGES
        for sizes_us, error in (
            ((4800.0, 4750.0, 4700.0, 4600.0, 4650.0, 5900.0), 0.01),  # less than 5 %
            ((9300.0, 4800.0, 5200.0, 3600.0, 4500.0, 5900.0), 0.01),  # one step
            ((3000.0, 4800.0, 3700.0, 3600.0, 3500.0, 3400.0), 0.01),  # not from the least on
            ((9300.0, 6800.0, 5700.0, 5600.0, 5500.0, 5900.0), 0.4),  # within the errors
        ):
            assert (
                self.falling(*sizes_us, error=error).decision.reason is not Reason.FALLS_WITH_SIZE
            )

    def test_a_stage_that_grows_with_the_size_speaks_against_it(self) -> None:
        """Whole messages' times grow in none: 13 % of noise may let overheads fall."""
        fall = [(9300.0, 7000.0, 3700.0)[min(at, 2)] for at in range(len(SIZES))]
        grown = [(size, 3.0 + 0.1 * size) for size in SIZES]
        model = UncertainPipeline((stage(FitRange(3700.0, 0.0)), stage(FitRange(3.0, 100.0))))
        times = times_of(list(zip(SIZES, fall, strict=True)), grown, error=0.01)
        found = assess(replace(asked(times, 2**12), model=model))
        assert found.decision.reason is not Reason.FALLS_WITH_SIZE

    def bucket(self, per_byte: float) -> UncertaintyQuestion:
        """A second stage that lets 16 KiB pass at once."""
        ranges = FitRange(40.0, 3.0, 2**14), FitRange(0.0, per_byte)
        times = times_of(
            [(size, LINES[0].line.time_us(size)) for size in SIZES],
            [(size, ranges[size > 2**14].line.time_us(size)) for size in SIZES],
            error=0.005,
        )
        model = UncertainPipeline((stage(LINES[0]), stage(*ranges)))
        return replace(asked(times, 2**17), model=model)

    def test_what_is_cheap_in_bursts_is_measured_first(self) -> None:
        """A byte costs more than four times as much beyond it; the file has the same cliff."""
        found = assess(self.bucket(40.0))
        assert found.decision.code is DecisionCode.MEASURE_FIRST
        assert found.decision.reason is Reason.ONLY_IN_BURSTS
        assert found.decision.measure is not None
        assert found.decision.measure.cuts is not None
        low, high = (one.size_bytes or 0 for one in found.decision.measure.cuts)
        assert low <= 2**14 < high
        assert assess(self.bucket(11.0)).decision.reason is Reason.FASTER

    def test_small_fragments_that_cost_as_much_however_small_are_no_burst(self) -> None:
        """They pass more slowly a byte than what is beyond."""
        ranges = FitRange(40.0, 0.0, 2**12), FitRange(30.0, 3.0)
        model = UncertainPipeline((stage(ranges[0], ranges[1]), stage(LINES[1])))
        measured = Measured(_problem(asked(None, 2**12)), model, None, None, None)
        assert measured.burst_end(NamedCut("cut", 2**12)) is None


class TestNeverSlower:
    """A setting that is kept because nothing is certain gives way to what cannot lose."""

    def drawn(self, deviation: float, current: int) -> Uncertainty:
        """One stage: the whole message is never slower, by as much as an overhead nobody knows."""
        line = FitRange(1.0, 3.0)
        variances = (deviation**2, 0.0, 0.0)
        one = UncertainLine(line, line.overhead_us, line.ns_per_byte, variances)
        known = UncertainStage("link", (one,), 20, 0.0, 0.02, SIZES)
        times = times_of([(size, line.line.time_us(size)) for size in SIZES])
        model = UncertainPipeline((known,))
        return assess(replace(asked(times, current), model=model))

    def test_it_is_set(self) -> None:
        found = self.drawn(30.0, 2**15)
        assert found.decision.code is DecisionCode.SET_IT
        assert found.decision.reason is Reason.NEVER_SLOWER
        assert found.decision.advised.size_bytes == 2**20
        assert found.decision.probability < 0.9
        assert found.decision.gain.p05 >= -1e-9

    def test_a_setting_near_the_best_stays(self) -> None:
        found = self.drawn(1.0, 2**18)
        assert found.decision.reason is Reason.NEAR_BEST


class TestWhatIsTold:
    """Latencies of means, and of the file where the lines are far off."""

    def test_the_interval_holds_file_and_lines(self) -> None:
        """Where they differ by less than 25 %."""
        plain = assess(asked(on_the_lines(), 2**18))
        found = assess(asked(bent(0, 1.2), 2**18))
        assert not found.tells_file
        assert found.latency_us.p05 == pytest.approx(plain.latency_us.p05, rel=0.01)
        assert found.latency_us.p95 > 1.1 * plain.latency_us.p95

    def test_beyond_that_the_file_is_told(self) -> None:
        plain = assess(asked(on_the_lines(), 2**18))
        found = assess(asked(bent(0, 2.0), 2**18))
        assert found.tells_file
        assert found.latency_us.p05 > 1.5 * plain.latency_us.p95

    def test_lines_beside_a_file_of_no_time_bear_on_all_of_the_gain(self) -> None:
        """A coarse clock may read 0 at every size in use."""
        assert FileVote((1.0, 1.0), (0.0, 0.0), 0.0, -1.0).bears_on_gain == 1.0
        assert FileVote((1.0, 1.0), (2.0, 2.0), 0.5, 0.25).bears_on_gain == pytest.approx(0.2)

    def test_what_fragments_hold_each_other_up_is_in_it(self) -> None:
        """In the upper half of the interval; a message in one piece holds up nothing."""
        steady = on_the_lines()
        varying = replace(
            steady,
            stages=tuple(
                replace(one, sizes=tuple(replace(size, deviation=0.5) for size in one.sizes))
                for one in steady.stages
            ),
        )
        cut, whole = NamedCut("answer", 2**16), NamedCut("answer", 2**20)
        found, plain = (assess(asked(one, 2**18, answer=cut)) for one in (varying, steady))
        longer = held_up(varying, 2**20, cut)
        assert longer > 1.01
        assert found.latency_us.p05 < 1.01 * plain.latency_us.p05
        assert found.latency_us.p50 == pytest.approx(longer * plain.latency_us.p50)
        assert found.latency_us.p95 > 1.01 * plain.latency_us.p95
        in_one, in_one_plain = (
            assess(asked(one, 2**18, answer=whole)) for one in (varying, steady)
        )
        assert in_one.latency_us == in_one_plain.latency_us

    def test_means_are_drawn_where_they_are_above_medians(self) -> None:
        """By more than 5 %; by less in every second draw, but of many fragments."""
        for ratio, total, many in ((1.3, 2**16, True), (1.03, 2**16, False), (1.03, 2**22, True)):
            model = UncertainPipeline(tuple(stage(one, ratio=ratio) for one in LINES))
            plain = asked(None, 2**16, total)
            found = assess(replace(plain, model=model))
            before = assess(plain)
            assert found.are_means is many
            low = ratio if many else 1.0
            assert found.latency_us.p05 == pytest.approx(low * before.latency_us.p05, rel=1e-6)
            assert found.latency_us.p95 == pytest.approx(ratio * before.latency_us.p95, rel=1e-6)


def _problem(question: UncertaintyQuestion) -> MessageProblem:
    return problem_of(question.model.model, question.message_bytes, question.limits)


limits = st.builds(
    FragmentLimits,
    max_fragment_bytes=st.none() | st.integers(2000, 2**20),
    alignment_bytes=st.sampled_from([1, 512, 3000]),
    max_fragments=st.none() | st.integers(1, 400),
)


@given(
    measured_times(stages=2, sizes=SIZES[::2]),
    st.integers(1, 2**22),
    st.none() | st.integers(1, 2**21),
    limits,
)
def test_nothing_is_set_that_the_file_speaks_against(
    times: MeasuredTimes, total: int, current: int | None, found: FragmentLimits
) -> None:
    """Whatever it is: what is set gains by medians and by means, was measured, keeps the limits."""
    question = asked(times, current, total, limits=found, draws=50)
    with suppress(Infeasible, StrategyDeclined):
        known = assess(question)
        decision, size = known.decision, known.decision.advised.size_bytes
        assert known.file is not None
        assert size is not None
        if decision.code is DecisionCode.SET_IT:
            assert min(known.file.gains) > 0.0
            assert SIZES[0] <= min(size, total) <= SIZES[-1]
            assert admits(_problem(question), size)
        if decision.reason is Reason.FILE_FASTER:
            assert size in SIZES[::2]
            assert np.isfinite(decision.gain.p50)
        if decision.reason in REFUSED:
            assert decision.code is DecisionCode.MEASURE_FIRST
            assert decision.measure is not None
