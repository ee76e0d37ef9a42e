"""Whole assessments: what is certain, what is admitted, what is repeatable, what is named."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.draw_costs import cut_us, repeated_us
from analysis.draws import draw
from analysis.repeated_sizes import (
    GOOD_WITHIN,
    admits,
    good_sizes,
    is_admitted,
    price_sizes,
    round_sizes,
)
from analysis.uncertainty import UncertaintyQuestion, assess
from domain.errors import Infeasible, InvalidInput, StrategyDeclined
from domain.nested import NestedSchedule
from domain.pipeline import FitRange, Pipeline, Stage, pipeline_of_lines
from domain.problem import DEFAULT_FRAGMENT_CAP, FragmentLimits, Problem, problem_of
from domain.uncertain_answer import DecisionCode, MeasurementKind, Reason, RoundRule
from domain.uncertainty import (
    NamedCut,
    Parameter,
    Source,
    StatedStage,
    UncertainAggregate,
    UncertainLine,
    UncertainPipeline,
    UncertainStage,
    seed_of,
    stated_model,
)
from solvers import solve
from solvers.heuristics.constant import repeated_cut
from solvers.heuristics.repeat import best_repeat
from solvers.kernels import active
from tests.support.uncertain import MYRINET, aggregates, pipelines, stated

messages = st.integers(1, 20_000)
limits = st.builds(
    FragmentLimits,
    min_fragment_bytes=st.integers(1, 300),
    max_fragment_bytes=st.none() | st.integers(200, 9000),
    alignment_bytes=st.sampled_from([1, 1, 8, 64, 100]),
    max_fragments=st.none() | st.integers(1, 40),
)


def fitted(
    overhead_us: float,
    ns_per_byte: float,
    deviation: float,
    *,
    unsupported: tuple[Parameter, ...] = (),
) -> UncertainStage:
    """A stage of one line, both costs off by this share."""
    variances = ((deviation * overhead_us) ** 2, 0.0, (deviation * ns_per_byte) ** 2)
    estimate = FitRange(overhead_us, ns_per_byte)
    line = UncertainLine(estimate, overhead_us, ns_per_byte, variances, None, unsupported)
    return UncertainStage("copy", (line,), 20, 0.01, 0.05, (64, 1024, 16384))


class TestCertainty:
    """Costs without errors."""

    @pytest.mark.parametrize("size", [1, 100, 4096, 65536, 2**40])
    def test_every_figure_is_the_point_s(self, size: int) -> None:
        """Probabilities are 0 or 1, intervals are points, nothing is worth measuring."""
        found = assess(
            UncertaintyQuestion(stated(MYRINET, 0.0), size, current=NamedCut("current", 8192))
        )
        assert found.latency_us.p05 == pytest.approx(found.latency_us.p95, rel=1e-12)
        assert found.evpi_us == pytest.approx(0.0, abs=1e-9 * found.latency_us.p50)
        assert {one.probability_faster for one in found.against} <= {0.0, 1.0}
        assert found.decision.probability in (0.0, 1.0)
        assert found.decision.code is not DecisionCode.MEASURE_FIRST
        assert found.regret.worst_drawn == pytest.approx(found.regret.mean, abs=1e-12)

    @pytest.mark.parametrize("size", [700, 4096, 50_000])
    def test_the_best_size_is_the_exact_search_s(self, size: int) -> None:
        """To a third of a per cent, as a grid without rounding error would have it."""
        model = stated(MYRINET, 0.0)
        found = assess(UncertaintyQuestion(model, size))
        problem = Problem(model.model, size)
        best_us = model.model.latency_us(best_repeat(problem)[1])
        own_us = model.model.latency_us(repeated_cut(problem, found.best_size_bytes))
        assert best_us <= own_us <= best_us * 1.0034

    def test_one_stage_is_never_cut(self) -> None:
        """Each fragment more is an overhead more."""
        found = assess(UncertaintyQuestion(stated(MYRINET[:1], 0.3), 4096))
        assert found.decision.code is DecisionCode.NO_GAIN_PROVABLE
        assert found.decision.reason is Reason.ONE_PIECE_IS_BEST
        assert found.decision.advised.size_bytes == 4096
        assert found.good_sizes[0].intervals[-1][1] == 4096


class TestSizes:
    """Which are tried, good and round."""

    @given(messages, limits, st.integers(0, 99))
    def test_what_is_admitted_is_what_the_limits_admit(
        self, size: int, found: FragmentLimits, seed: int
    ) -> None:
        """As the strategy `static` has it, one size at a time."""
        problem = Problem(stated(MYRINET, 0.1).model, size, found)
        tried = np.random.default_rng(seed).integers(1, size + 1, 20)
        try:
            flags = is_admitted(problem, tried)
        except Infeasible:
            return
        for one, flag in zip(tried.tolist(), flags.tolist(), strict=True):
            assert admits(problem, one) == flag
            try:
                cut = repeated_cut(problem, one)
            except StrategyDeclined:
                assert not flag
            else:
                assert flag == problem.admits(cut)

    @given(pipelines | aggregates, messages, limits)
    def test_whatever_is_asked_the_advice_keeps_the_limits(
        self, model: UncertainPipeline | UncertainAggregate, size: int, found: FragmentLimits
    ) -> None:
        """Or it is refused; good sizes and round sizes keep them too."""
        problem = problem_of(model.model, size, found, fragment_cap=DEFAULT_FRAGMENT_CAP)
        question = UncertaintyQuestion(model, size, found, draws=20, mtu_bytes=1460)
        try:
            answer = assess(question)
        except (Infeasible, StrategyDeclined):
            return
        named = [answer.best_size_bytes, *(one.size_bytes for one in answer.round_sizes)]
        named += [answer.decision.advised.size_bytes or 0]
        named += [end for good in answer.good_sizes for pair in good.intervals for end in pair]
        assert is_admitted(problem, np.array(named)).all()

    @given(pipelines, messages)
    def test_ends_of_good_sizes_are_good(self, model: UncertainPipeline, size: int) -> None:
        """Priced again, against the best that was tried; more within more."""
        problem, draws = Problem(model.model, size), draw(model, 30, 1)
        priced = price_sizes(problem, draws)
        found = good_sizes(problem, draws, priced)
        for one in found:
            ends = np.array([end for pair in one.intervals for end in pair], dtype=np.int64)
            limit_us = priced.best_us * (1.0 + one.within)
            assert ((repeated_us(draws, size, ends) <= limit_us).mean(axis=1) > 0.9 - 1e-9).all()
        widths = [sum(high - low + 1 for low, high in one.intervals) for one in found]
        assert widths == sorted(widths)

    @given(pipelines, messages, limits, st.none() | st.tuples(messages, messages).map(sorted))
    def test_kernels_and_numpy_find_the_same(
        self, model: UncertainPipeline, size: int, found: FragmentLimits, known: list[int] | None
    ) -> None:
        """The same sizes, prices and intervals, to the bit; nothing to compare without a build."""
        problem = problem_of(model.model, size, found, fragment_cap=DEFAULT_FRAGMENT_CAP)
        draws = draw(model, 30, 1)

        measured_bytes = None if known is None else (known[0], known[1])

        def both() -> tuple[object, ...]:
            priced = price_sizes(problem, draws, mtu_bytes=1460, measured_bytes=measured_bytes)
            rounded = round_sizes(problem, priced, mtu_bytes=1460)
            priced_us = priced.latency_us.tolist()
            figures = priced.best_us, priced.mean_us, priced.mean_regret
            good = good_sizes(problem, draws, priced)
            sizes = priced.sizes.tolist(), priced.between, rounded, good
            return sizes, priced_us, [one.tolist() for one in figures]

        with pytest.MonkeyPatch.context() as patch, suppress(Infeasible, StrategyDeclined):
            ours = both()
            patch.setattr(active, "NATIVE", None)
            assert both() == ours

    def test_good_sizes_are_those_of_every_size(self) -> None:
        """Intervals found by halving, against all sizes of a message priced one by one."""
        problem, draws = (
            Problem(stated(MYRINET, 0.1).model, 4096),
            draw(stated(MYRINET, 0.1), 200, 1),
        )
        priced = price_sizes(problem, draws)
        sizes = np.arange(64, 4097)
        latency_us = repeated_us(draws, 4096, sizes)
        for place, one in enumerate(good_sizes(problem, draws, priced)):
            limit_us = priced.best_us * (1.0 + GOOD_WITHIN[place])
            every = set(sizes[(latency_us <= limit_us).mean(axis=1) >= 0.9].tolist())
            found = {size for low, high in one.intervals for size in range(low, high + 1)}
            assert len(found - every) <= 0.01 * len(every)
            assert len(every - found) <= 0.06 * len(every)

    @pytest.mark.parametrize("limits", [FragmentLimits(), FragmentLimits(16)], ids=["any", "16"])
    def test_no_size_between_good_ones_is_bad(self, limits: FragmentLimits) -> None:
        """Of lines, and where some sizes cost more than those around; all of them are priced."""
        rng = np.random.default_rng(5)
        between = bad = 0
        for has_ranges in [False, True] * 15:
            stages = list(pipeline_of_lines([("stage", *line) for line in MYRINET]).stages)
            for place in range(2 * has_ranges):
                end, us = int(rng.integers(40, 3000)), float(rng.uniform(5.0, 50.0))
                dear = FitRange(5.0 + us, 9.0, end + end // 20)
                stages[place] = Stage("jumps", (FitRange(5.0, 9.0, end), dear, FitRange(5.0, 9.0)))
            message = int(rng.integers(500, 6000))
            problem = Problem(Pipeline(tuple(stages)), message, limits)
            draws = draw(stated_model(problem.pipeline, 0.05), 64, 1)
            priced = price_sizes(problem, draws)
            sizes = np.arange(1, message + 1)
            sizes = sizes[is_admitted(problem, sizes)]
            latency_us = repeated_us(draws, message, sizes)
            for one in good_sizes(problem, draws, priced):
                limit_us = priced.best_us * (1.0 + one.within)
                is_good = (latency_us <= limit_us * (1.0 + 1e-9)).mean(axis=1) >= 0.85
                for low, high in one.intervals:
                    inside = (sizes >= low) & (sizes <= high)
                    between += int(inside.sum())
                    bad += int((inside & ~is_good).sum())
        assert between > 10_000
        assert bad == 0

    def test_tiny_last_fragments_do_not_hide_among_good_sizes(self) -> None:
        """33 and more fragments: just below B/k one more fragment, with its overhead."""
        costs = ((2.1, 25.0), (4.0, 58.69140625), (2.1, 25.0), (92.8, 25.5859375))
        model, total = stated(costs, 0.1), 131072
        problem, draws = Problem(model.model, total), draw(model, 100, 1)
        priced = price_sizes(problem, draws)
        for place, one in enumerate(good_sizes(problem, draws, priced)):
            sizes = np.concatenate([np.arange(low, high + 1) for low, high in one.intervals])
            latency_us = repeated_us(draws, total, sizes[:: 1 + place])
            limit_us = priced.best_us * (1.0 + GOOD_WITHIN[place])
            assert ((latency_us <= limit_us).mean(axis=1) >= 0.88).mean() >= 0.999

    def test_round_sizes_keep_their_rules(self) -> None:
        """Each listed under the roundest rule, the recommended one first."""
        question = UncertaintyQuestion(stated(MYRINET, 0.1), 65536, mtu_bytes=1460)
        found = {one.rule: one for one in assess(question).round_sizes}
        assert found[RoundRule.POWER_OF_TWO].size_bytes == 4096
        assert found[RoundRule.THREE_POWERS].size_bytes == 3072
        assert found[RoundRule.WHOLE].size_bytes == 65536
        assert found[RoundRule.MTU].size_bytes % 1460 == 0
        assert found[RoundRule.THREE_POWERS].regret_mean == pytest.approx(0.0022, abs=0.001)
        assert assess(question).decision.advised.size_bytes in (2920, 3072, 4380)
        aligned = replace(question, limits=FragmentLimits(alignment_bytes=100))
        rules = {one.rule: one for one in assess(aligned).round_sizes}
        assert rules[RoundRule.ALIGNMENT].size_bytes % 100 == 0
        assert RoundRule.POWER_OF_TWO not in rules


class TestAnswers:
    """What the caller gives and gets."""

    def test_an_uneven_answer_is_advised_where_it_beats_every_repeated_size(self) -> None:
        """By 1 % in 95 % of the draws; else the round size is."""
        model = stated(MYRINET, 0.01)
        cut = solve(Problem(model.model, 4096)).schedule.fragment_bytes
        answer = NamedCut.of_fragments("answer", cut)
        found = assess(UncertaintyQuestion(model, 4096, answer=answer))
        assert found.decision.advised.schedule == NestedSchedule((cut,))
        assert found.subject == answer
        assert found.regret.p95 < 0.0
        loose = assess(UncertaintyQuestion(stated(MYRINET, 0.1), 4096, answer=answer))
        assert loose.decision.advised.size_bytes is not None
        assert loose.subject == answer

    def test_the_same_question_has_the_same_answer(self) -> None:
        """By the seed of the costs, whatever the message, or a given one."""
        question = UncertaintyQuestion(stated(MYRINET, 0.1), 4096, draws=50)
        assert assess(question) == assess(question)
        assert assess(replace(question, message_bytes=4097)).seed == assess(question).seed
        assert assess(replace(question, seed=7)).seed == 7
        assert assess(replace(question, seed=7)).latency_us != assess(question).latency_us

    def test_all_others_are_compared_with(self) -> None:
        """One piece, the user's setting and the defaults, in this order; the source is named."""
        defaults = (NamedCut("a", 64), NamedCut("b", 128))
        current = NamedCut.of_fragments("current", (4000, 96))
        found = assess(
            UncertaintyQuestion(stated(MYRINET, 0.1), 4096, current=current, defaults=defaults)
        )
        assert [one.name for one in found.against] == ["one piece", "current", "a", "b"]
        assert all(one.probability_faster == 1.0 for one in found.against)
        assert found.source is Source.RELATIVE
        assert found.decision.against == "current"

    def test_limits_that_forbid_one_piece(self) -> None:
        """It is then no alternative, and the largest size is compared with."""
        limit = FragmentLimits(max_fragment_bytes=1024)
        found = assess(UncertaintyQuestion(stated(MYRINET, 0.1), 4096, limit))
        assert found.against == ()
        assert found.decision.against == "largest"
        assert found.decision.cut_gain is None

    def test_parameters_that_are_not_determined_and_matter_are_named(self) -> None:
        """An overhead that the latency rests on; not the same of a stage that hardly counts."""
        stages = (
            fitted(1e-4, 1e-4, 0.1, unsupported=(Parameter.OVERHEAD, Parameter.PER_BYTE)),
            fitted(8.0, 20.0, 0.1, unsupported=(Parameter.OVERHEAD,)),
            fitted(10.0, 5.0, 0.1),
        )
        found = assess(UncertaintyQuestion(UncertainPipeline(stages), 65536))
        assert [(one.range_index, one.parameter) for one in found.rests_on] == [
            (0, Parameter.OVERHEAD)
        ]
        assert found.rests_on[0].share_of_draws == 1.0

    @given(pipelines, st.lists(st.integers(1, 3000), min_size=1, max_size=12), st.data())
    def test_a_parameter_counts_once_a_fragment_or_byte(
        self, model: UncertainPipeline, fragments: list[int], data: st.DataObject
    ) -> None:
        """What a latency may gain by raising a cost: why few parameters are priced again."""
        draws, size = draw(model, 5, 1), sum(fragments)
        cut = NamedCut.of_fragments("cut", fragments)
        j = data.draw(st.integers(0, draws.stages - 1))
        r = data.draw(st.integers(0, draws.overhead_us.shape[1] - 1))
        by_byte = data.draw(st.booleans())
        costs = draws.ns_per_byte if by_byte else draws.overhead_us
        raised_costs = costs.copy()
        raised_costs[j, r] *= 1.5
        name = "ns_per_byte" if by_byte else "overhead_us"
        raised = cut_us(replace(draws, **{name: raised_costs}), size, cut)
        latency_us = cut_us(draws, size, cut)
        most = size / 1000.0 if by_byte else len(fragments)
        assert (raised - latency_us <= 0.5 * costs[j, r] * most + 1e-9 * raised).all()

    def test_whole_messages_are_always_among_what_to_measure(self) -> None:
        """They alone do not rest on the model; and no saving exceeds that of knowing all."""
        model = UncertainPipeline((fitted(10.0, 5.0, 0.5), fitted(10.0, 5.0, 0.5)))
        found = assess(UncertaintyQuestion(model, 3000))
        kinds = {one.kind for one in found.measure_next}
        assert MeasurementKind.WHOLE_MESSAGES in kinds
        saved = [one.saves_us for one in found.measure_next]
        assert saved == sorted(saved, reverse=True)
        assert 0.0 <= saved[-1] <= saved[0] <= found.evpi_us

    @pytest.mark.parametrize(
        "change",
        [
            {"misfit": -0.1},
            {"mtu_bytes": 0},
            {"draws": 0},
            {"seed": -1},
            {"current": NamedCut.of_fragments("current", (1, 2))},
        ],
    )
    def test_what_makes_no_sense_is_refused(self, change: dict[str, object]) -> None:
        """With the name of the field."""
        question = UncertaintyQuestion(stated(MYRINET, 0.1), 4096)
        with pytest.raises(InvalidInput):
            assess(replace(question, **change))  # type: ignore[arg-type]


class TestValues:
    """Inputs are checked, and seeds depend on all that the draws depend on."""

    def test_lines_and_stages_that_cannot_be(self) -> None:
        """Covariances, ends and deviations outside what there is."""
        estimate = FitRange(1.0, 1.0)
        for covariance in ((-1.0, 0.0, 1.0), (1.0, 2.0, 1.0), (float("nan"), 0.0, 1.0)):
            with pytest.raises(InvalidInput):
                UncertainLine(estimate, 1.0, 1.0, covariance)
        with pytest.raises(InvalidInput):
            UncertainLine(estimate, 1.0, 1.0, (1.0, 0.0, 1.0), (10, 20))
        with pytest.raises(InvalidInput):
            UncertainLine(FitRange(1.0, 1.0, 15), 1.0, 1.0, (1.0, 0.0, 1.0), (20, 10))
        crossing = tuple(
            UncertainLine(FitRange(1.0, 1.0, end), 1.0, 1.0, (0.0, 0.0, 0.0), between)
            for end, between in ((15, (10, 40)), (35, (30, 50)), (None, None))
        )
        with pytest.raises(InvalidInput, match="ends"):
            UncertainStage("copy", crossing, 5, 0.0, 0.0)
        line = UncertainLine(estimate, 1.0, 1.0, (0.0, 0.0, 0.0))
        for rest in ((0, 0.0, 0.0, ()), (5, -1.0, 0.0, ()), (5, 0.0, 0.0, (2, 1))):
            with pytest.raises(InvalidInput):
                UncertainStage("copy", (line,), *rest)
        with pytest.raises(InvalidInput):
            StatedStage(Stage("copy", (estimate,)), 1.5)
        with pytest.raises(InvalidInput):
            NamedCut("none")

    def test_seeds_depend_on_the_costs_and_their_errors(self) -> None:
        """And on nothing that draws do not depend on."""
        one = UncertainPipeline((fitted(10.0, 5.0, 0.5),))
        others = (fitted(10.0, 5.0, 0.4), fitted(11.0, 5.0, 0.5))
        assert len({seed_of(one), *(seed_of(UncertainPipeline((other,))) for other in others)}) == 3
        named = UncertainPipeline((fitted(10.0, 5.0, 0.5, unsupported=(Parameter.OVERHEAD,)),))
        assert seed_of(one) == seed_of(named)
        assert 0 <= seed_of(one) < 2**64


class TestMeasuredSizes:
    """What nobody measured is not advised: no size below the least one, none above the greatest."""

    MODEL = stated([(0.2, 1.0), (0.3, 1.2)], 0.01)

    @pytest.mark.parametrize("measured_bytes", [(4096, 16_384), (100, 1000), (65_536, 131_072)])
    def test_sizes_are_of_those_that_were_measured(self, measured_bytes: tuple[int, int]) -> None:
        """Or one piece; so are the good and the round ones, beside an answer of other sizes."""
        found = assess(
            UncertaintyQuestion(
                self.MODEL,
                1 << 20,
                answer=NamedCut("answer", 17_773),
                current=NamedCut("current", 1024),
                measured_bytes=measured_bytes,
            )
        )
        low, high = measured_bytes
        named = [found.best_size_bytes, found.decision.advised.size_bytes]
        named += [one.size_bytes for one in found.round_sizes]
        named += [end for good in found.good_sizes for one in good.intervals for end in one]
        assert found.decision.cut is not None
        assert all(low <= (size or 0) <= high for size in {*named} - {1024, 1 << 20})
        assert low <= (found.decision.cut.size_bytes or 0) <= high

    def test_an_answer_of_other_fragments_is_not_sent(self) -> None:
        """However much its first fragment, which is small, gains."""
        cut = NamedCut.of_fragments(
            "answer", solve(Problem(self.MODEL.model, 65_536)).schedule.fragment_bytes
        )
        question = UncertaintyQuestion(self.MODEL, 65_536, answer=cut)
        assert assess(question).decision.advised.schedule is not None
        measured = assess(replace(question, measured_bytes=(4096, 65_536))).decision
        assert measured.advised.size_bytes is not None

    def test_where_the_limits_admit_no_measured_size_it_is_said(self) -> None:
        """Some size has to be sent."""
        limited = FragmentLimits(max_fragment_bytes=2048)
        question = UncertaintyQuestion(self.MODEL, 65_536, limited, measured_bytes=(4096, 65_536))
        advised = assess(question).decision.advised
        assert (advised.size_bytes or 0) <= 2048
        beyond = question.beyond(advised)
        assert beyond is not None
        assert "every stage was measured from 4 KiB to 64 KiB" in beyond.detail
