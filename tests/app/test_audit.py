"""POST /audit, and the flow behind it: intervals, verdicts, what to change."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache, partial
from typing import Any

import httpx
import pytest

import solvers
from analysis import best_known
from analysis.audit import (
    Audit,
    AuditQuestion,
    AuditScope,
    Reference,
    RegretVerdict,
    audit,
    verdict,
)
from analysis.setting_price import Averages, Priced, Span
from app.schemas.base import dump_json, read_output
from app.text.numbers import format_regret
from app.text.regrets import format_change
from app.verbs.audit.answer import audited as audit_out
from app.verbs.audit.answer import priced_out
from contract.audit import AuditOut, PricedOut, SpanOut
from domain.errors import InvalidInput
from domain.fragment_setting import (
    MAX_BREAKPOINTS,
    FragmentSetting,
    SettingStep,
    breakpoints,
)
from domain.pipeline import FitRange, Pipeline, Stage, pipeline_of_lines
from domain.problem import Problem
from domain.regret import BestKnown, Objective, Regret, SizeRule
from domain.schedule import latency_us
from domain.solution import Solution, Strategy
from domain.workload import Workload, powers_of_two
from exports.targets.registry import TARGETS
from tests.app.serving import MYRINET
from tests.support.counts import count

PIPELINE = pipeline_of_lines([("a", 7.0, 7.0), ("b", 5.0, 24.0), ("c", 3.0, 8.0)])
SWITCHING = Pipeline(
    (Stage("switch", (FitRange(1.0, 1.0, 5000), FitRange(90.0, 1.0))), *PIPELINE.stages)
)
SMALL = {"min_message_bytes": 2**12, "max_message_bytes": 2**15}


def scope(setting: FragmentSetting | int | None = 2**14, **more: Any) -> AuditScope:
    """An audit of a small range."""
    given = setting if isinstance(setting, FragmentSetting) else FragmentSetting.always(setting)
    return AuditScope(setting=given, **{**SMALL, **more})


def audited(asked: AuditScope, model: Pipeline = PIPELINE) -> Audit:
    """In this process."""
    return audit(AuditQuestion(model, asked, fragment_cap=100_000))


@cache
def _solved_once(problem: Problem, strategy: Strategy) -> Solution:
    return solvers.solve(problem, strategy, relative_gap=best_known.SOLVED_GAP, time_limit_s=10.0)


def _solved_without_haste(problem: Problem, strategy: Strategy, _: float) -> Solution:
    """In place of the audit's own: its limit cuts nothing off, and audits share what is solved."""
    return _solved_once(problem, strategy)


def request(**more: Any) -> dict[str, Any]:
    return {"pipeline": MYRINET, "setting": {"static_bytes": 16384}, **SMALL, **more}


class TestFlow:
    def test_regrets_are_the_evaluators_over_the_solvers_best(self) -> None:
        """At each power of two of the range, by hand."""
        found = audited(scope(5000))
        assert [one.message_bytes for one in found.at_powers] == [2**12, 2**13, 2**14, 2**15]
        for one in found.at_powers:
            full, rest = divmod(one.message_bytes, min(5000, one.message_bytes))
            cut = [min(5000, one.message_bytes)] * full + [rest] * (rest > 0)
            taken_us = latency_us(PIPELINE, cut)
            solved = solvers.solve(Problem(PIPELINE, one.message_bytes), relative_gap=1e-6)
            assert one.latency_us == pytest.approx(taken_us, rel=1e-12)
            exact = taken_us / solved.latency_us - 1
            assert one.over_best == pytest.approx(exact, abs=3e-4)
            assert one.over_best <= exact + 1e-9
            assert one.over_bound >= taken_us / solved.latency_us - 1 - 1e-9

    def test_the_mean_is_over_the_mix_and_the_worst_is_in_it(self) -> None:
        """Weights of 3 and 1; a size without a weight counts for neither."""
        workload = Workload.weighted([(5000, 3.0), (30_000, 1.0), (2**15, 0.0)], "two")
        found = audited(scope(None, workload=workload))
        alone = [Workload.weighted([(size, 1.0)], "one") for size in (5000, 30_000)]
        one, other = (audited(scope(None, workload=single)).priced.mean for single in alone)
        assert found.priced.mean.at_least == pytest.approx(
            0.75 * one.at_least + 0.25 * other.at_least, abs=1e-9
        )
        assert found.priced.worst.message_bytes == 30_000
        assert found.priced.worst_span.at_least == pytest.approx(other.at_least, abs=1e-9)
        assert found.priced.mean.at_least <= found.priced.mean.at_most

    def test_the_worst_of_a_range_is_not_below_any_message_that_is_shown(self) -> None:
        """Nor below what the messages beside the setting's sizes cost; the workload has none of
        them.
        """
        found = audited(scope(2**14))
        beside = Workload.weighted([(2**14, 1.0), (2**14 + 1, 1.0)], "both")
        worst = found.priced.worst.over_best
        assert worst >= max(one.over_best for one in found.at_powers)
        assert worst >= audited(scope(2**14, workload=beside)).priced.worst.over_best - 1e-9
        assert found.worst_of > len(found.workload.sizes)
        assert found.single.worst.over_best <= worst

    def test_the_worst_of_a_given_mix_is_in_it(self) -> None:
        """Nothing else is sent."""
        workload = Workload.weighted([(5000, 1.0), (30_000, 1.0)], "two")
        found = audited(scope(2**14, workload=workload))
        assert found.worst_of == 2
        assert found.priced.worst.message_bytes in (5000, 30_000)

    def test_the_best_size_and_the_ladder_are_better_than_the_setting(self) -> None:
        """And the lookup is better than both."""
        found = audited(scope())
        means = [
            found.priced.mean,
            found.single.mean,
            found.size_steps.mean if found.size_steps else None,
        ]
        values = [mean.at_least for mean in means if mean is not None] + [
            found.repeats.mean.at_least if found.repeats else 0.0
        ]
        assert values == sorted(values, reverse=True)
        assert len(found.changes) == 4
        assert format_change(found, found.changes[0]).startswith("repeat ")

    def test_an_audit_of_what_was_advised_advises_no_other_size(self) -> None:
        """The best single size has no better one."""
        advised = audited(scope()).single.setting
        again = audited(scope(advised))
        assert again.priced.mean == again.single.mean
        stated = format_change(again, again.changes[0])
        assert stated == "no other single size for all messages gains 0.1 % or more"

    @pytest.mark.parametrize("time_limit_s", [1e-3, 0.2])
    @pytest.mark.parametrize("grace_s", [0.0, best_known.GRACE_S])
    def test_what_time_cuts_off_holds_what_more_time_finds(
        self, monkeypatch: pytest.MonkeyPatch, time_limit_s: float, grace_s: float
    ) -> None:
        """Of the setting and of what is advised: in the mean, and at every message looked at."""
        points = count(128, share=6)  # what is left open of a message is nothing to the others
        monkeypatch.setattr(Workload, "log_uniform", partial(Workload.log_uniform, points=points))
        with monkeypatch.context() as patch:
            patch.setattr(best_known, "GRACE_S", grace_s)
            short = audited(scope(time_limit_s=time_limit_s), SWITCHING)
        assert len(short.workload.sizes) == points
        monkeypatch.setattr(best_known, "_solve", _solved_without_haste)
        low, high = SMALL.values()
        for priced in (short.priced, short.single, short.size_steps):
            assert priced is not None
            more = audited(scope(priced.setting), SWITCHING).priced
            assert priced.mean.at_least <= more.mean.at_most * (1 + 1e-9)
            assert more.mean.at_least <= priced.mean.at_most * (1 + 1e-9)
            assert 0.0 <= priced.worst_span.at_least <= priced.worst_span.at_most
            if more.worst.message_bytes in {
                *powers_of_two(low, high),
                *(one.message_bytes for one in short.workload.sizes),
                *breakpoints(priced.setting, low, high),
            }:
                assert more.worst.over_best <= priced.worst_span.at_most * (1 + 1e-9)

    def test_a_setting_that_is_optimal_has_nothing_to_change(self) -> None:
        """One stage without an overhead: every cut takes the same."""
        found = audited(scope(None), pipeline_of_lines([("only", 0.0, 1.0)]))
        assert 0.0 <= found.priced.mean.at_least <= found.priced.mean.at_most < 1e-12
        assert len(found.changes) == 1

    @pytest.mark.parametrize("mine", [*Objective])
    def test_by_each_objective_another_size_is_advised(self, mine: Objective) -> None:
        """None has less of it than its own; the steps are the better by it too."""
        found = {objective: audited(scope(objective=objective)) for objective in Objective}
        own = found[mine]
        least = own.single.value(mine).at_least
        assert least <= min(one.single.value(mine).at_least for one in found.values())
        assert own.size_steps is not None
        assert own.size_steps.value(mine).at_least <= least
        assert len({one.single.setting for one in found.values()}) == len(Objective)

    def test_a_size_outside_what_the_library_takes_is_not_advised(self) -> None:
        """Powers of two, and no size steps."""
        found = audited(scope(rule=SizeRule(is_power_of_two=True), takes_size_steps=False))
        size = found.single.setting.steps[0].size_bytes
        assert size is not None
        assert size.bit_count() == 1
        assert found.size_steps is None
        assert not any("steps" in change for change in found.changes)

    def test_more_fragments_than_are_planned_are_priced_and_said(self) -> None:
        """A byte at a time: 32 768 fragments where the schedules have 100 at most."""
        question = AuditQuestion(PIPELINE, scope(1), fragment_cap=100)
        found = audit(question)
        assert [notice.code for notice in found.notices] == ["more_fragments_than_planned"]
        last = found.at_powers[-1]
        times = [stage.time_us(1) for stage in PIPELINE.stages]
        assert last.latency_us == pytest.approx(sum(times) + (2**15 - 1) * max(times), rel=1e-12)

    def test_a_setting_better_than_the_cap_allows_is_its_own_best(self) -> None:
        """Without overheads a byte at a time beats the four fragments that may be planned."""
        pipeline = pipeline_of_lines([("a", 0.0, 9.0), ("b", 0.0, 9.0)])
        found = audit(AuditQuestion(pipeline, scope(1), fragment_cap=4))
        assert found.priced.mean == Span(0.0, 0.0)
        assert all(one.over_best == 0.0 == one.over_bound for one in found.at_powers)

    def test_fragments_beyond_what_was_measured_are_said(self) -> None:
        """Of a model that was fitted."""
        question = replace(
            AuditQuestion(PIPELINE, scope(2**13), fragment_cap=1000), measured_bytes=(1, 2**12)
        )
        assert [notice.code for notice in audit(question).notices] == ["beyond_measured_sizes"]
        within = replace(question, measured_bytes=(1, 2**13))
        assert audit(within).notices == ()

    def test_ranges_are_priced_with_their_jumps(self) -> None:
        """A protocol switch at 5000 bytes: the size that ends there is the best."""
        switch = Stage("switch", (FitRange(1.0, 1.0, 5000), FitRange(900.0, 1.0)))
        found = audited(scope(), Pipeline((switch, PIPELINE.stages[0])))
        assert found.single.setting.steps[0].size_bytes is not None
        assert found.single.setting.steps[0].size_bytes <= 5000


@pytest.mark.parametrize(
    ("span", "limit", "expected"),
    [
        (Span(0.049, 0.053), 0.06, RegretVerdict.WITHIN),
        (Span(0.049, 0.053), 0.053, RegretVerdict.WITHIN),
        (Span(0.049, 0.053), 0.05, RegretVerdict.BETWEEN),
        (Span(0.049, 0.053), 0.049, RegretVerdict.BETWEEN),
        (Span(0.049, 0.053), 0.04, RegretVerdict.ABOVE),
        (Span(0.0, 0.0), 0.0, RegretVerdict.WITHIN),
        (Span(float("inf"), float("inf")), 1e6, RegretVerdict.ABOVE),
        (Span(0.5, 0.6), None, None),
    ],
)
def test_a_verdict_says_what_is_proven(
    span: Span, limit: float | None, expected: RegretVerdict | None
) -> None:
    """Within and above are proven; between is for the reference."""
    assert verdict(span, limit) == expected


def test_the_yardstick_decides_only_between() -> None:
    """The best found lets pass what the bound does not."""
    base = audited(scope(max_regret=0.5))
    for found, over, kept in (
        (RegretVerdict.BETWEEN, Reference.BEST, True),
        (RegretVerdict.BETWEEN, Reference.BOUND, False),
        (RegretVerdict.WITHIN, Reference.BOUND, True),
        (RegretVerdict.ABOVE, Reference.BEST, False),
        (None, Reference.BOUND, True),
    ):
        question = replace(base.question, scope=scope(max_regret=0.5, reference=over))
        assert replace(base, question=question, verdict=found).is_kept is kept


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"min_message_bytes": 0}, "min_message_bytes"),
        ({"max_message_bytes": 2**48 + 1}, "max_message_bytes"),
        ({"min_message_bytes": 9, "max_message_bytes": 8}, "max_message_bytes"),
        ({"max_regret": -0.1}, "max_regret"),
        ({"max_regret": float("nan")}, "max_regret"),
        ({"time_limit_s": 0.0}, "time_limit_s"),
        ({"workload": Workload.weighted([(8 + i, 1.0) for i in range(513)], "many")}, "workload"),
    ],
)
def test_a_scope_that_is_none_is_refused(more: dict[str, Any], field: str) -> None:
    """Naming the field."""
    with pytest.raises(InvalidInput) as refusal:
        scope(**more)
    assert refusal.value.field == field


def test_powers_of_two_of_a_range() -> None:
    """Inclusive at both ends; none where there is none."""
    assert powers_of_two(1, 1) == (1,)
    assert powers_of_two(3, 17) == (4, 8, 16)
    assert powers_of_two(5, 7) == ()
    assert powers_of_two(2**48, 2**48) == (2**48,)


class TestTurningPoints:
    """Where a setting's cut changes most."""

    def test_of_one_size_the_ends_the_size_and_the_byte_beyond(self) -> None:
        assert breakpoints(FragmentSetting.always(512), 100, 2000) == (100, 512, 513, 2000)
        assert breakpoints(FragmentSetting.always(None), 100, 2000) == (100, 2000)
        assert breakpoints(FragmentSetting.always(512), 600, 1000) == (600, 1000)

    def test_of_steps_also_both_sides_of_each(self) -> None:
        steps = FragmentSetting((SettingStep(1, None), SettingStep(1000, 300)))
        assert breakpoints(steps, 1, 4000) == (1, 999, 1000, 1200, 1201, 4000)
        assert breakpoints(steps, 2000, 4000) == (2000, 2100, 2101, 4000)

    def test_of_very_many_an_even_choice(self) -> None:
        steps = tuple(SettingStep(1 + 100 * i, 10) for i in range(1000))
        found = breakpoints(FragmentSetting(steps), 1, 10**6)
        assert len(found) == MAX_BREAKPOINTS
        assert (found[0], found[-1]) == (1, 10**6)
        assert list(found) == sorted(set(found))


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0 %"), (0.0449, "4.49 %"), (1.264, "126 %"), (float("inf"), "unbounded")],
)
def test_shares_in_words(share: float, text: str) -> None:
    """As a reader can use them."""
    assert format_regret(share) == text


class TestRoute:
    def test_an_audit_of_a_stored_profile(self, client: httpx.Client) -> None:
        body = {"profile": "myrinet-gam@1", "setting": {"static_bytes": 65536}, "max_regret": 0.05}
        response = client.post("/audit", json=body)
        assert response.status_code == 200
        read_output(AuditOut, response.content)
        reported = response.json()
        assert reported["profile"] == {"name": "myrinet-gam", "revision": 1}
        assert (reported["verdict"], reported["is_kept"]) == ("above", False)
        assert [row["message_bytes"] for row in reported["at_powers"]] == [
            2**bit for bit in range(10, 25)
        ]
        row = reported["at_powers"][6]
        assert (row["message_bytes"], row["fragments"]) == (65536, 1)
        assert row["latency_us"] == pytest.approx(4180.9)
        assert row["regret"]["at_least"] == pytest.approx(1.2696, abs=1e-3)
        assert reported["setting"]["mean"]["at_least"] == pytest.approx(0.442, abs=2e-3)
        assert reported["best_size"]["mean"]["at_least"] < 0.12
        assert "repeat" in reported["changes"][0]

    def test_nothing_is_stored(self, live: Any) -> None:
        before = live.stored()
        assert live.client.post("/audit", json=request()).status_code == 200
        assert live.stored() == before

    @pytest.mark.parametrize(
        ("setting", "steps"),
        [
            ({"whole": True}, [(1, None)]),
            ({"static_bytes": 4096.0}, [(1, 4096)]),
            (
                {
                    "steps": [
                        {"from_bytes": 1, "size_bytes": None},
                        {"from_bytes": 8192, "size_bytes": 2048},
                    ]
                },
                [(1, None), (8192, 2048)],
            ),
            (
                {"configuration": {"target": "ucx", "content": "UCX_RNDV_FRAG_SIZE=host:512K\n"}},
                [(1, 524288)],
            ),
        ],
    )
    def test_every_way_to_say_a_setting(
        self, client: httpx.Client, setting: dict[str, Any], steps: list[tuple[int, int | None]]
    ) -> None:
        reported = client.post("/audit", json=request(setting=setting)).json()
        shown = [(step["from_bytes"], step["size_bytes"]) for step in reported["setting"]["steps"]]
        assert shown == steps
        assert (reported["best_size_steps"] is None) == ("configuration" in setting)
        assert (reported["verdict"], reported["is_kept"], reported["max_regret"]) == (
            None,
            True,
            None,
        )

    def test_a_mix_and_its_range(self, client: httpx.Client) -> None:
        workload = [{"message_bytes": 9000, "weight": 2}, {"message_bytes": 3000}]
        body = {key: value for key, value in request(workload=workload).items() if key not in SMALL}
        reported = client.post("/audit", json=body).json()
        assert (reported["min_message_bytes"], reported["max_message_bytes"]) == (3000, 9000)
        assert reported["workload"] == {"words": "the given workload of 2 sizes", "sizes": 2}
        assert [row["message_bytes"] for row in reported["at_powers"]] == [4096, 8192]

    def test_measurements_are_fitted_and_their_warnings_told(self, client: httpx.Client) -> None:
        rows = [(size, repetition) for size in (64, 512, 4096) for repetition in range(4)]
        lines = [f"{size},{again},{5 + size / 100},{9 + size / 50}" for size, again in rows]
        content = "\n".join(["message_bytes,repetition,one_us,two_us", *lines, ""])
        body = request(pipeline=None, measurements={"content": content})
        reported = client.post("/audit", json=body).json()
        assert [stage["name"] for stage in reported["pipeline"]["stages"]] == ["one", "two"]
        assert [warning["code"] for warning in reported["warnings"]] == ["beyond_measured_sizes"]
        assert isinstance(reported["fit_warnings"], list)

    def test_an_aggregate_says_what_its_regrets_compare(self, client: httpx.Client) -> None:
        line = {"name": "t", "overhead_us": 9.0, "ns_per_byte": 40.0}
        slow = {"name": "b", "overhead_us": 4.0, "ns_per_byte": 25.0}
        body = request(pipeline=None, aggregate={"total": line, "bottleneck": slow})
        reported = client.post("/audit", json=body).json()
        assert reported["pipeline"] is None
        assert [warning["code"] for warning in reported["warnings"]] == ["regret_of_upper_bounds"]

    @pytest.mark.parametrize(
        ("more", "pointer"),
        [
            ({"setting": {}}, "/setting/static_bytes"),
            ({"setting": {"static_bytes": 0}}, "/setting/static_bytes"),
            ({"setting": {"static_bytes": -4}}, "/setting/static_bytes"),
            ({"setting": {"static_bytes": 2**48 + 1}}, "/setting/static_bytes"),
            ({"setting": {"static_bytes": 4, "whole": True}}, "/setting/whole"),
            ({"setting": [4]}, "/setting"),
            ({"setting": {"whole": False}}, "/setting/whole"),
            ({"setting": {"steps": []}}, "/setting/steps"),
            ({"setting": {"steps": [{"from_bytes": 2, "size_bytes": 4}]}}, "/setting/steps"),
            ({"setting": {"steps": [{"from_bytes": 1}]}}, "/setting/steps/0/size_bytes"),
            (
                {"setting": {"configuration": {"target": "none-such", "content": ""}}},
                "/setting/configuration/target",
            ),
            (
                {"setting": {"configuration": {"target": "simgrid", "content": ""}}},
                "/setting/configuration/target",
            ),
            (
                {"setting": {"configuration": {"target": "ucx", "content": "UCX_LOG_LEVEL=info"}}},
                "/setting/configuration/content",
            ),
            ({"max_message_bytes": 2**11}, "/max_message_bytes"),
            ({"max_regret": -1}, "/max_regret"),
            ({"over": "median"}, "/over"),
            ({"objective": "best"}, "/objective"),
            ({"workload": []}, "/workload"),
            ({"workload": [{"message_bytes": 8, "weight": -1}]}, "/workload/0/weight"),
            ({"workload": [{"message_bytes": 8, "weight": 0}]}, "/workload"),
            ({"workload": [{"message_bytes": 1 + i} for i in range(513)]}, "/workload"),
            ({"time_limit_s": 61}, "/time_limit_s"),
            ({"extra": 1}, "/extra"),
            ({"profile": "gms"}, "/pipeline"),
        ],
    )
    def test_what_is_wrong_is_named(
        self, client: httpx.Client, more: dict[str, Any], pointer: str
    ) -> None:
        response = client.post("/audit", json=request(**more))
        assert response.status_code == 422
        assert response.json()["errors"][0]["pointer"] == pointer

    def test_an_unknown_profile(self, client: httpx.Client) -> None:
        body = {"profile": "none-such", "setting": {"whole": True}}
        assert client.post("/audit", json=body).status_code == 404


def test_a_worst_regret_without_a_bound_is_not_that_of_a_message_which_has_one() -> None:
    """And an audit that was kept before there was one for all messages says what it said."""
    best = BestKnown(4096, 100.0, 90.0, None, None)
    setting = FragmentSetting.always(4096)
    averages = Averages(Span(0.3, 0.4), Span(0.1, 0.2))
    priced = Priced(setting, averages, Regret(best, 4096, 120.0), float("inf"))
    sent = dump_json(priced_out(priced))
    read = read_output(PricedOut, sent)
    assert (read.worst_at_most, read.worst_span) == (None, SpanOut(0.2, None))
    assert read.time == SpanOut(0.3, 0.4)
    new = ("worst_at_most", "time")
    document = json.loads(sent)
    assert list(document)[1] == "time"
    kept = {name: one for name, one in document.items() if name not in new}
    earlier = read_output(PricedOut, dump_json(kept))
    assert (earlier.worst_span, earlier.time) == (read.worst.regret, None)


def test_no_time_is_told_as_no_number() -> None:
    """A regret without bounds is null, which JSON has, and not Infinity."""
    costly = Stage("s", (FitRange(0.0, 0.0, 2**12), FitRange(5.0, 0.0)))
    document = dump_json(audit_out(audited(scope(None), Pipeline((costly,)))))
    assert b'"at_least":null' in document
    assert b"Infinity" not in document
    read_output(AuditOut, document)


GARBAGE = ("", "\x00", "=", "[", "{}", "[1,2]", "9" * 5000, "a=b\n" * 50, "{" * 2000, "#\n", "é=1")


@pytest.mark.parametrize("name", [target.name for target in TARGETS if target.read is not None])
def test_garbage_is_refused_by_every_reader(name: str) -> None:
    """A configuration without any size: the field is named, nothing else is raised."""
    from app.verbs.audit.request import read_configuration

    for content in GARBAGE:
        with pytest.raises(InvalidInput) as refusal:
            read_configuration(name, content)
        assert refusal.value.field == "setting.configuration.content"
        assert len(refusal.value.detail) < 500
