"""What the times of measured sizes say beside the lines fitted to them, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from app.text.numbers import format_gain, format_signed_percent, two_digits
from domain.solution import Notice
from domain.uncertain_answer import (
    SAID_FROM,
    Decision,
    DecisionCode,
    FileVote,
    Reason,
    Uncertainty,
)
from domain.uncertainty import UncertainModel, UncertainPipeline, UncertainStage
from domain.units import format_bytes

_MEANS_SAID = 0.01  # of the medians: means that differ by less are not spoken of


IF_UNCUT = (
    "if the latency was measured of uncut messages. Many libraries cut them on their way. Measure "
    "it once more with the library's fragments as large as the message. If it takes as long, fit "
    "again and say so (total_is_uncut, --uncut)"
)


def refusal_words(decision: Decision, file: FileVote | None, cut: str, other: str) -> str:
    """Return what is measured before a cut is set, and why; `cut` and `other` say what it is and
    what it is compared with.
    """
    lines = f"by the fitted lines {cut} is {format_gain((decision.gain.p05, decision.gain.p95))}"
    if decision.reason is Reason.FILE_NOT_FASTER and file is not None:
        return f"Measure first: {lines} than {other}, by the measured times {_gains(file)}."
    if decision.reason is Reason.PREMISE:
        return f"Measure first: {lines} than {other}, {IF_UNCUT}."
    size = decision.measure.fragment_bytes if decision.measure else None
    return f"Measure first: {lines} than {other}, {doubt(decision.reason, size)}."


def doubt(reason: Reason, unmeasured_bytes: int | None) -> str:
    """Return what speaks against a gain by the lines, by the measured sizes; `unmeasured_bytes` is
    the size that was not measured, where that is why.
    """
    if reason is Reason.FILE_NOT_FASTER:
        return "but not by the measured times"
    if reason is Reason.NOT_MEASURED and unmeasured_bytes:
        return f"but {format_bytes(unmeasured_bytes)} is outside the sizes that were measured"
    if reason is Reason.FALLS_WITH_SIZE:
        return (
            "but the measured times fall from the least size on, as those of whole messages in "
            "such fragments do, not those of single fragments: with message_bytes, fragment_bytes "
            "and latency_us as columns, sluice optimize own.csv decides by them"
        )
    return (
        "but what is sent beyond such sizes costs more than four times as much a byte: they may be "
        "fast in bursts alone"
    )


def stages_to_time(model: UncertainModel, stage: str, *, is_new: bool) -> str:
    """Return what to time at a size: a stage, or all of them where none was measured near it."""
    if not is_new or len(model.stages) == 1:
        return f"stage {stage}"
    pipeline = isinstance(model, UncertainPipeline)
    return "every stage" if pipeline else "latency and inter-arrival time"


def gain_words(decision: Decision, other: str) -> str:
    """Return what a set cut gains over something else, where the lines alone do not say it."""
    gain = decision.gain
    if decision.reason is Reason.NEVER_SLOWER:
        return f"Slower than {other} in no draw, up to {two_digits(gain.p95)} % faster"
    low, high = two_digits(gain.p05), two_digits(gain.p95)
    between = f" (between {low} and {high} %)" if low != high else ""
    by = "By the measured times " if decision.reason is Reason.FILE_FASTER else ""
    return f"{by}{two_digits(gain.p50)} % faster than {other}{between}"


def remarks(found: Uncertainty) -> Iterator[str]:
    """Yield by how much the lines are beside the measured times, and whole messages beside the
    model, where that is above 10 %.
    """
    decision, file = found.decision, found.file
    is_set = decision.code is DecisionCode.SET_IT
    if file is not None and file.replaces_lines:
        off = two_digits(max(abs(file.off), abs(file.against_off)))
        yield f"The lines are {off} % beside the measured times, so that these are told."
    elif file is not None and is_set and file.bears_on_gain > SAID_FROM:
        off = two_digits(file.bears_on_gain)
        by_lines = decision.reason is not Reason.FILE_FASTER
        own = f": by these it is {_gains(file)}" if by_lines else ""
        yield f"The lines and the measured times differ by {off} % about that gain{own}."
    margin = decision.thresholds.margin
    if margin > SAID_FROM and decision.reason is not Reason.WITHIN_MISFIT:
        counts = "the gain is above that" if is_set else "no gain below that counts"
        yield f"Whole messages differ from this model by {two_digits(margin)} %: {counts}."


def mean_times(model: UncertainModel, found: Uncertainty) -> Iterator[Notice]:
    """Yield that the interval is of mean times, and by how much these are above the medians."""
    fitted = [stage for stage in model.stages if isinstance(stage, UncertainStage)]
    off = {stage.name: stage.mean_ratio - 1.0 for stage in fitted}
    said = {name: by for name, by in off.items() if abs(by) >= _MEANS_SAID}
    if not found.are_means or not said:
        return
    stages = ", ".join(f"{name} {format_signed_percent(by)}" for name, by in said.items())
    yield Notice(
        "mean_times",
        "how sure this is was computed for mean times, which many fragments take; lines are fitted "
        f"to medians, and beside these the means are: {stages}",
        values=tuple(said.items()),
    )


def _gains(file: FileVote) -> str:
    by_medians, by_means = map(_faster, file.gains)
    if by_medians == by_means:
        return by_means
    return f"{by_medians} in their medians and {by_means} in their means"


def _faster(gain: float) -> str:
    if two_digits(gain) in ("0", "−0"):
        return "as fast"
    return f"{two_digits(abs(gain))} % {'faster' if gain > 0.0 else 'slower'}"
