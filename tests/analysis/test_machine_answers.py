"""What is decided of machines, and one latency of one size wherever it is asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis.audit import AuditQuestion, AuditScope, audit
from analysis.best_known import each_known
from analysis.compare import CompareQuestion, compare
from analysis.explore import Surroundings, alternatives, counts
from analysis.settings_in_draws import SettingsQuestion, repeated_by, settings_in_draws
from analysis.size_curve import choose_size
from analysis.solve import MessageQuestion, solve
from analysis.uncertainty import UncertaintyQuestion, assess
from app.schemas.stages import sensitivities_out, sensitivity_facts
from app.text.notices import decision_sentence
from domain.fragment_setting import FragmentSetting
from domain.machine import Machine, StageRules, Window
from domain.pipeline import Pipeline
from domain.problem import FragmentLimits, MachineProblem
from domain.solution import Strategy
from domain.structure import KnownOverlap
from domain.uncertain_answer import DecisionCode, MeasurementKind
from domain.uncertainty import KnownErrors, NamedCut, stated_model
from domain.workload import Workload, WorkloadSize
from tests.support.uncertain_machines import MIB, line, s3_connections

KIB = 2**10
STAGING = Machine(
    Pipeline((line("copy", 8.0, 0.02), line("send", 20.0, 0.08))),
    (StageRules(), StageRules(lanes=4, shared_ns_per_byte=0.02)),
    (Window(0, 1, fragments=6),),
)


def test_one_latency_of_one_size_wherever_it_is_asked() -> None:
    """By the answer's strategy, in the table of a comparison, in an audit, and in the draws."""
    total, size = 4 * MIB + 12_345, 128 * KIB
    expected = STAGING.latency_us((size,) * (total // size) + (total % size,))
    asked = MessageQuestion(
        MachineProblem(STAGING, total), Strategy.STATIC, 1e-6, 1.0, static_bytes=size
    )
    found = solve(asked, lambda _: None)
    assert found.solution.latency_us == pytest.approx(expected, rel=1e-12)
    table = compare(
        CompareQuestion(
            model=STAGING,
            message_bytes=(total,),
            strategies=(Strategy.STATIC,),
            static_bytes=size,
        ),
        lambda *_: None,
        lambda _: None,
    )
    assert table[0].solution is not None
    assert table[0].solution.latency_us == pytest.approx(expected, rel=1e-12)
    (line_of,) = [
        one
        for one in alternatives(
            Surroundings(STAGING, total, FragmentLimits(), 1000, False, 9, 1.0, 2.0, size),
            time_limit_s=0.5,
        )
        if one.is_current
    ]
    assert line_of.points[0].latency_us == pytest.approx(expected, rel=1e-12)
    scope = AuditScope(
        setting=FragmentSetting.always(size),
        min_message_bytes=total,
        max_message_bytes=total,
        workload=Workload((WorkloadSize(total, 1.0),), "one"),
        time_limit_s=0.5,
    )
    audited = audit(AuditQuestion(STAGING, scope, fragment_cap=1000))
    assert audited.priced.worst.latency_us == pytest.approx(expected, rel=1e-12)
    known = assess(
        UncertaintyQuestion(
            stated_model(STAGING, 0.0), total, current=NamedCut("current", size), draws=2
        )
    )
    (current,) = [one for one in known.against if one.name == "current"]
    saved = 1.0 - known.latency_us.p50 / expected
    assert current.saves.p50 == pytest.approx(saved, abs=1e-9)


def test_an_audit_says_nothing_of_bounds_from_outside_and_what_draws_take_as_known() -> None:
    scope = AuditScope(
        setting=FragmentSetting.always(64 * KIB),
        min_message_bytes=256 * KIB,
        max_message_bytes=512 * KIB,
        time_limit_s=0.5,
    )
    question = AuditQuestion(
        STAGING, scope, fragment_cap=1000, errors=KnownErrors(stated_model(STAGING, 0.1), draws=32)
    )
    found = audit(question)
    assert [one.code for one in found.notices if one.code != "time_limit"] == [
        "words_taken_as_known"
    ]
    assert found.over_draws is not None


def test_two_sizes_within_noise_are_to_be_measured() -> None:
    """Costs that are hardly known: which size is best is worth timing both."""
    machine = Machine(
        Pipeline((line("copy", 30.0, 0.06), line("send", 30.0, 0.06))),
        (StageRules(), StageRules(lanes=2, shared_ns_per_byte=0.03)),
        (Window(0, 1, fragments=3, return_us=40.0),),
    )
    question = UncertaintyQuestion(
        stated_model(machine, 0.9),
        2 * MIB,
        current=NamedCut("current", 192 * KIB),
        draws=256,
    )
    found = assess(question)
    assert found.decision.code is DecisionCode.KEEP_YOURS
    measure = found.decision.measure
    assert measure is not None
    assert measure.kind is MeasurementKind.WHOLE_MESSAGES
    one, other = (cut.size_bytes for cut in measure.cuts or ())
    assert one != other
    said = decision_sentence(found, question)
    assert said.startswith("Keep your 192 KiB: no other size is certain to be faster.")
    assert said.endswith(
        "sluice sweep --bytes 2MiB --current 192KiB -- PROGRAM … {bytes} may gain more."
    )


def test_the_decision_is_that_of_the_machine_and_not_of_its_stages() -> None:
    """Ten connections: the size to set is a part of what one alone would be best with."""
    machine, total = s3_connections(), 1024 * MIB
    question = UncertaintyQuestion(
        stated_model(machine, 0.05), total, current=NamedCut("current", 8 * MIB), draws=64
    )
    found = assess(question)
    assert found.decision.code is DecisionCode.SET_IT
    assert 16 * MIB < (found.decision.advised.size_bytes or 0) < 24 * MIB
    assert 0.15 < found.decision.gain.p50 < 0.25
    chosen = choose_size(MachineProblem(machine, total), found, current_bytes=8 * MIB)
    assert chosen is not None
    assert chosen.chosen.size_bytes == found.decision.advised.size_bytes
    alone = assess(replace(question, model=stated_model(machine.pipeline, 0.05)))
    assert (alone.decision.advised.size_bytes or 0) > 64 * MIB


def test_a_machine_says_itself_what_overlaps() -> None:
    """Nothing that is known of a pipeline's durations changes what is decided of it."""
    machine = s3_connections()
    errors = KnownErrors(stated_model(machine, 0.05), draws=64, overlap=KnownOverlap(is_bare=True))
    cut = (
        repeated_by(FragmentSetting.always(8 * MIB)),
        repeated_by(FragmentSetting.always(21 * MIB)),
    )
    question = SettingsQuestion(
        errors,
        Workload((WorkloadSize(1024 * MIB, 1.0),), "one"),
        (("setting", cut[0]), ("best_size", cut[1])),
    )
    found = settings_in_draws(question)
    assert (found.code, found.reason) == (DecisionCode.SET_IT, None)
    asked = UncertaintyQuestion(
        errors.model,
        1024 * MIB,
        current=NamedCut("current", 8 * MIB),
        draws=64,
        overlap=errors.overlap,
    )
    assert assess(asked).decision == assess(replace(asked, overlap=KnownOverlap())).decision


def test_surroundings_of_a_machines_answer() -> None:
    """Equal fragments and bounds by count, and the strategies that machines have."""
    total = 2 * MIB
    asked = Surroundings(STAGING, total, FragmentLimits(), 1000, False, 8, 1.0, 500.0)
    for point in counts(asked, time_limit_s=0.5):
        equal_us = STAGING.latency_us([total / point.fragments] * point.fragments)
        assert point.equal_us == pytest.approx(equal_us, rel=1e-12)
        assert 1.0 <= point.bound_us <= equal_us
    lines = alternatives(asked, time_limit_s=1.0)
    strategies = [one.strategy for one in lines if one.default is None]
    assert strategies == [
        Strategy.SINGLE,
        Strategy.REPEAT,
        Strategy.FIXED,
        Strategy.RAMP_REPEAT,
        Strategy.EXACT,
    ]


def test_messages_that_time_leaves_are_between_simple_limits() -> None:
    """Without time: one piece, or equal ones where a window forbids it, and a bound below."""
    known = each_known(
        s3_connections(),
        [64 * MIB, 1024 * MIB],
        table=None,
        limits=FragmentLimits(),
        fragment_cap=1000,
        time_limit_s=0.0,
        grace_s=0.0,
    )
    first, second = known
    assert first.latency_us == pytest.approx(s3_connections().latency_us((64 * MIB,)))
    for one in (first, second):
        assert one.is_partial
        assert 0.0 < one.lower_bound_us <= one.latency_us


def test_sensitivities_in_words() -> None:
    """Lanes and places by what they take, windows by the stages that they are over."""
    machine = replace(STAGING, windows=(Window(0, 1, fragments=3, return_us=5.0),))
    asked = MessageQuestion(MachineProblem(machine, 2 * MIB), Strategy.REPEAT, 1e-6, 1.0)
    found = solve(asked, lambda _: None)
    out = sensitivities_out(found.sensitivities, machine)
    assert out is not None
    facts = dict(sensitivity_facts(out))
    assert list(facts) == ["what decides", "copy", "send", "lanes of send", "window copy to send"]
    assert facts["what decides"].startswith("Stage ")
    assert " with 3, " in facts["lanes of send"] or "changes nothing" in facts["lanes of send"]
    assert "per µs until a place is free" in facts["window copy to send"]
    assert out.repeated_bytes == found.solution.schedule.fragment_bytes[0]
    assert out.stages[0].lanes is None
