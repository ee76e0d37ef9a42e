"""Decisions in words: what each says, and what none may say."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from analysis.uncertainty import UncertaintyQuestion, assess
from app.text.notices import decision_sentence, format_probability
from app.text.numbers import format_gain
from domain.default_sizes import CURRENT
from domain.uncertain_answer import (
    DecisionCode,
    Measurement,
    MeasurementKind,
    Quantiles,
    Reason,
    Uncertainty,
)
from domain.uncertainty import NamedCut
from tests.support.uncertain import MYRINET, stated

QUESTION = UncertaintyQuestion(
    stated(MYRINET, 0.1), 65_536, current=NamedCut(CURRENT, 32_768), draws=50
)


@pytest.fixture(scope="module")
def found() -> Uncertainty:
    return assess(QUESTION)


def _said(found: Uncertainty, code: DecisionCode, reason: Reason) -> str:
    cuts = (NamedCut("one piece", 65_536), NamedCut("advised", 825))
    measure = Measurement(MeasurementKind.WHOLE_MESSAGES, 20, 1.0, cuts=cuts)
    decision = replace(
        found.decision,
        code=code,
        reason=reason,
        cut=NamedCut("advised", 4096),
        cut_gain=Quantiles(-0.021, 0.033, 0.081),
        gain=Quantiles(-0.021, 0.033, 0.081),
        measure=measure,
    )
    return decision_sentence(replace(found, decision=decision), QUESTION)


def test_a_size_to_set(found: Uncertainty) -> None:
    said = decision_sentence(found, QUESTION)
    assert re.match(
        r"Set \d+ \w+\. \d+ % faster than your 32 KiB \(between \d+ and \d+ %\)\.", said
    )
    assert said.endswith("For costs that are known to ±10 %.")


def test_what_rests_on_a_premise_names_the_command(found: Uncertainty) -> None:
    decision = replace(
        found.decision, code=DecisionCode.MEASURE_FIRST, reason=Reason.PREMISE, measure=None
    )
    said = decision_sentence(replace(found, decision=decision), QUESTION)
    command = "sluice sweep --bytes 64KiB --current 32KiB -- PROGRAM … {bytes}"
    assert said.endswith(f" {command} would tell too.")


def test_no_provable_gain(found: Uncertainty) -> None:
    whole = replace(found.decision, advised=NamedCut("one piece", 65_536))
    said = _said(
        replace(found, decision=whole), DecisionCode.NO_GAIN_PROVABLE, Reason.CUT_NOT_FASTER
    )
    assert said.startswith(
        "Do not cut: a cut of 4 KiB may be 8.1 % faster or 2.1 % slower; such costs cannot tell."
    )
    assert said.endswith("sluice sweep --bytes 64KiB --current 32KiB -- PROGRAM … {bytes} would.")
    said = _said(
        replace(found, decision=whole), DecisionCode.NO_GAIN_PROVABLE, Reason.ONE_PIECE_IS_BEST
    )
    assert said.endswith(
        "sluice sweep --bytes 64KiB --current 32KiB -- PROGRAM … {bytes} may find a gain."
    )


def test_what_is_kept_though_a_measurement_may_gain(found: Uncertainty) -> None:
    said = _said(found, DecisionCode.KEEP_YOURS, Reason.UNDECIDED)
    assert said.startswith("Keep your 32 KiB: no other size is certain to be faster. For costs")
    assert said.endswith(
        "sluice sweep --bytes 64KiB --current 32KiB -- PROGRAM … {bytes} may gain more."
    )


@pytest.mark.parametrize("code", DecisionCode)
@pytest.mark.parametrize("reason", Reason)
def test_no_sentence_promises_more_than_is_known(
    found: Uncertainty, code: DecisionCode, reason: Reason
) -> None:
    said = _said(found, code, reason)
    assert said.endswith(".")
    for word in ("guarantee", "optimal", "proven", "100 %", "None", "nan", "inf "):
        assert word not in said
    assert re.search(r"\d[.]?\d{2,} %", said) is None  # two digits at most


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (1.0, "in all draws"),
        (0.9999, "in about 99 % of the draws"),
        (0.8675, "in about 87 % of the draws"),
        (0.0001, "in about 1 % of the draws"),
        (0.0, "in no draw"),
    ],
)
def test_probabilities_have_two_digits(share: float, said: str) -> None:
    assert format_probability(share) == said


@pytest.mark.parametrize(
    ("gain", "said"),
    [
        ((-0.019, 0.079), "7.9 % faster or 1.9 % slower"),
        ((0.21, 0.27), "21 to 27 % faster"),
        ((-0.2, -0.1), "up to 20 % slower"),
        ((0.0, 0.0), "as fast"),
        ((-0.0004, 0.0002), "as fast"),
        ((-0.0004, 0.003), "up to 0.3 % faster"),
        ((-0.003, 0.0002), "up to 0.3 % slower"),
        ((None, 0.1), "0 to 10 % faster"),
    ],
)
def test_gains_in_words(gain: tuple[float | None, float | None], said: str) -> None:
    assert format_gain(gain) == said
