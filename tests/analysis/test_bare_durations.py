"""Advice from durations without begins, on simulated movers of all kinds but those with lanes.

A campaign asks about 500 movers, each fitted from a file of stage times.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from analysis.both_ways import serial_us
from analysis.draw_costs import repeated_us
from analysis.draws import draw
from analysis.settings_in_draws import SettingsQuestion, repeated_by, settings_in_draws
from analysis.uncertainty import UncertaintyQuestion, assess
from bench.traced_movers import (
    COUNTS_TRACED,
    KINDS,
    TracedMover,
    bare_rows,
    cut_sizes,
    drawn,
)
from domain.fragment_setting import FragmentSetting
from domain.measured_times import measured_times
from domain.structure import Evidence, KnownOverlap, Structure, StructureKind
from domain.uncertain_answer import DecisionCode, Reason, Uncertainty
from domain.uncertain_fit import uncertain_model
from domain.uncertainty import KnownErrors, NamedCut, seed_of
from domain.workload import Workload, WorkloadSize
from tests.support.counts import count
from tests.support.measured import fitted

BARE = KnownOverlap(is_bare=True, several_at_once=False)
WITHOUT_LANES = tuple(kind for kind in KINDS if kind != "lanes")


@dataclass(frozen=True, slots=True)
class Asked:
    """A mover, and what is asked of a file of its stage times."""

    mover: TracedMover
    question: UncertaintyQuestion

    def took_us(self, size: int) -> float:
        return self.mover.takes_us(cut_sizes(self.question.message_bytes, size))


def asked(kind: str, seed: int, overlap: KnownOverlap = BARE) -> Asked:
    rng = np.random.default_rng([seed, KINDS.index(kind), 77])
    mover, size, fragments = drawn(kind, rng)
    total = size * fragments // 64 * 64
    fit = fitted(bare_rows(mover, total, seed))
    model = uncertain_model(fit)
    assert model is not None
    current = total // int(rng.choice(COUNTS_TRACED))
    question = UncertaintyQuestion(
        model,
        total,
        current=NamedCut("current", current),
        measured_bytes=fit.measured_bytes,
        times=measured_times(fit),
        overlap=overlap,
    )
    return Asked(mover, question)


@pytest.mark.parametrize("kind", WITHOUT_LANES)
def test_what_is_set_from_bare_durations_is_never_slower(kind: str) -> None:
    slower = []
    for seed in range(50_000, 50_000 + count(46, share=23)):
        one = asked(kind, seed)
        decision = assess(one.question).decision
        if decision.code is not DecisionCode.SET_IT:
            continue
        assert decision.reason is Reason.EITHER_WAY
        assert decision.advised.size_bytes is not None
        assert one.question.current is not None
        now = one.took_us(one.question.current.size_bytes or 1)
        if one.took_us(decision.advised.size_bytes) > 1.01 * now:
            slower.append(seed)
    assert slower == []


@pytest.mark.parametrize("kind", WITHOUT_LANES)
def test_what_is_set_for_many_messages_is_slower_for_none(kind: str) -> None:
    """Of three messages with one setting, instead of another that is set both ways."""
    slower = []
    for seed in range(60_000, 60_000 + count(40, share=8)):
        one = asked(kind, seed)
        total, current = one.question.message_bytes, one.question.current
        assert current is not None
        now = current.size_bytes or 1
        workload = Workload(tuple(WorkloadSize(total // by, 1 / 3) for by in (4, 2, 1)), "three")
        errors = KnownErrors(
            one.question.model,
            draws=one.question.draws,
            times=one.question.times,
            overlap=BARE,
        )
        for times in (2, 4):
            sizes = (now, times * now)
            cuts = tuple((str(one), repeated_by(FragmentSetting.always(one))) for one in sizes)
            found = settings_in_draws(SettingsQuestion(errors, workload, cuts))
            if found.code is not DecisionCode.SET_IT:
                continue
            assert found.reason is Reason.EITHER_WAY
            for sent in workload.sizes:
                message_bytes = sent.message_bytes
                took = [one.mover.takes_us(cut_sizes(message_bytes, size)) for size in sizes]
                slower += [(seed, times, message_bytes)] * (took[1] > 1.01 * took[0])
    assert slower == []


def found_for(current_count: int, overlap: KnownOverlap, *, kind: str = "chain") -> Uncertainty:
    one = asked(kind, 3, overlap)
    size = one.question.message_bytes // current_count
    return assess(replace(one.question, current=NamedCut("current", size)))


def test_a_larger_size_may_be_faster_either_way() -> None:
    found = found_for(64, BARE)
    both = found.both_ways
    assert (found.decision.code, found.decision.reason) == (
        DecisionCode.SET_IT,
        Reason.EITHER_WAY,
    )
    assert both is not None
    assert both.size_bytes == both.serial_bytes == found.decision.advised.size_bytes
    assert min(both.gain, both.serial_gain) >= 0.05
    assert both.latency_us < both.serial_us


def test_whether_a_stage_handles_several_at_once_is_asked() -> None:
    unknown = found_for(64, replace(BARE, several_at_once=None))
    assert (unknown.decision.code, unknown.decision.reason) == (
        DecisionCode.MEASURE_FIRST,
        Reason.ONE_AT_A_TIME,
    )
    several = found_for(64, replace(BARE, several_at_once=True))
    assert several.decision.reason is Reason.SEVERAL_AT_ONCE
    assert several.decision.code is DecisionCode.MEASURE_FIRST
    assert several.both_ways is None


def test_what_only_a_pipeline_gains_is_said_with_its_condition() -> None:
    found = found_for(1, BARE)
    assert found.decision.reason is Reason.IF_OVERLAPPING
    assert found.decision.code is DecisionCode.MEASURE_FIRST
    both = found.both_ways
    assert both is not None
    assert both.gain > 0.0 > both.serial_gain


def test_a_pipeline_is_advised_as_before() -> None:
    as_pipeline = found_for(1, KnownOverlap())
    assert as_pipeline.decision.code is DecisionCode.SET_IT
    assert as_pipeline.both_ways is None
    names = tuple(stage.name for stage in asked("chain", 3).question.model.stages)
    evidence = Evidence(50, 800, 0.4, 0.0, 0.0, 0.0)
    chain = Structure(StructureKind.CHAIN, names, evidence)
    assert found_for(1, KnownOverlap(chain)).decision == as_pipeline.decision
    window = replace(chain, kind=StructureKind.SWEEP)
    other = found_for(1, KnownOverlap(window)).decision
    assert (other.code, other.reason) == (DecisionCode.MEASURE_FIRST, Reason.STRUCTURE)


def test_one_after_another_a_message_takes_the_sum() -> None:
    question = asked("serial", 5).question
    draws = draw(question.model, 16, seed_of(question.model))
    total = question.message_bytes
    cut = NamedCut("cut", total // 8)
    chain = repeated_us(draws, total, np.array([total // 8]))[0]
    whole = serial_us(draws, total, NamedCut("whole", total))
    np.testing.assert_allclose(whole, repeated_us(draws, total, np.array([total]))[0])
    assert (serial_us(draws, total, cut) > chain).all()
