"""What measured times say beside lines, in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis.uncertainty import UncertaintyQuestion, assess
from app.text.notices import decision_sentence
from domain.default_sizes import CURRENT
from domain.uncertain_answer import (
    DecisionCode,
    FileVote,
    Measurement,
    MeasurementKind,
    Quantiles,
    Reason,
    Thresholds,
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


def said(
    found: Uncertainty,
    reason: Reason,
    *,
    code: DecisionCode = DecisionCode.SET_IT,
    gains: tuple[float, float] = (0.2, 0.2),
    off: tuple[float, float] = (0.0, 0.0),
    margin: float = 0.01,
    measure: Measurement | None = None,
) -> str:
    """The sentence of 4 KiB against 32 KiB, which lines call 5 to 7 % faster."""
    decision = replace(
        found.decision,
        code=code,
        reason=reason,
        advised=NamedCut("advised", 4096),
        against=CURRENT,
        gain=Quantiles(0.05, 0.06, 0.07),
        thresholds=Thresholds(margin=margin),
        measure=measure,
    )
    file = FileVote((1.0 - gains[0], 1.0 - gains[1]), (1.0, 1.0), *off)
    return decision_sentence(replace(found, decision=decision, file=file, rests_on=()), QUESTION)


def test_a_refusal_says_both_gains(found: Uncertainty) -> None:
    """By the lines and by the measured times, in their medians and means where these differ."""
    first, *_ = said(
        found, Reason.FILE_NOT_FASTER, code=DecisionCode.MEASURE_FIRST, gains=(-0.23, -0.23)
    ).split("For costs")
    assert first == (
        "Measure first: by the fitted lines 4 KiB is 5 to 7 % faster than your 32 KiB, by the "
        "measured times 23 % slower. "
    )
    both = said(found, Reason.FILE_NOT_FASTER, code=DecisionCode.MEASURE_FIRST, gains=(0.04, -0.1))
    assert "by the measured times 4 % faster in their medians and 10 % slower in their" in both


def test_a_size_that_is_missing_is_named_once(found: Uncertainty) -> None:
    """With all stages, since none was measured there."""
    one = Measurement(MeasurementKind.STAGE, 20, 1.0, "stage 0", 4096)
    question = replace(QUESTION, measured_bytes=(8192, 65_536))
    decision = replace(
        found.decision,
        code=DecisionCode.MEASURE_FIRST,
        reason=Reason.NOT_MEASURED,
        advised=NamedCut("advised", 4096),
        against=CURRENT,
        measure=one,
    )
    text = decision_sentence(replace(found, decision=decision, rests_on=()), question)
    assert "4 KiB is outside the sizes that were measured." in text
    assert "Timing every stage at 4 KiB, 20 times, would tell." in text


def test_bursts_are_named(found: Uncertainty) -> None:
    text = said(found, Reason.ONLY_IN_BURSTS, code=DecisionCode.MEASURE_FIRST)
    assert "they may be fast in bursts alone." in text


def test_times_of_whole_messages_are_named(found: Uncertainty) -> None:
    text = said(found, Reason.FALLS_WITH_SIZE, code=DecisionCode.MEASURE_FIRST)
    assert "the measured times fall from the least size on, as those of whole messages" in text


def test_what_the_file_sets_says_so(found: Uncertainty) -> None:
    """And nothing of sizes that are near by the lines."""
    text = said(found, Reason.FILE_FASTER)
    assert text.startswith(
        "Set 4 KiB. By the measured times 6 % faster than your 32 KiB (between 5 and 7 %)."
    )
    assert "within about 2 %" not in text


def test_what_is_never_slower_says_so(found: Uncertainty) -> None:
    text = said(found, Reason.NEVER_SLOWER)
    assert "Slower than your 32 KiB in no draw, up to 7 % faster." in text


@pytest.mark.parametrize(
    ("off", "gains", "words"),
    [
        ((0.05, 0.0), (0.2, 0.2), ""),
        (
            (0.15, 0.0),
            (0.2, 0.2),
            "The lines and the measured times differ by 15 % about that gain: by these it is 20 % "
            "faster.",
        ),
        (
            (-0.4, 0.0),
            (0.2, 0.2),
            "The lines are 40 % beside the measured times, so that these are told.",
        ),
    ],
)
def test_how_far_lines_and_file_differ(
    found: Uncertainty, off: tuple[float, float], gains: tuple[float, float], words: str
) -> None:
    """From 10 % on a gain, and from 25 % on a latency."""
    text = said(found, Reason.FASTER, off=off, gains=gains)
    assert words in text
    assert bool(words) is ("measured times" in text)


@pytest.mark.parametrize("reason", [Reason.NEAR_BEST, Reason.UNDECIDED, Reason.DOES_NOT_MATTER])
def test_a_margin_is_in_every_sentence(found: Uncertainty, reason: Reason) -> None:
    """That no gain below it counts, or that this one is above it."""
    kept = said(found, reason, code=DecisionCode.KEEP_YOURS, margin=0.99)
    assert "Whole messages differ from this model by 99 %: no gain below that counts." in kept
    set_it = said(found, Reason.FASTER, margin=0.12)
    assert "Whole messages differ from this model by 12 %: the gain is above that." in set_it
    assert "Whole messages" not in said(found, reason, code=DecisionCode.KEEP_YOURS, margin=0.1)
