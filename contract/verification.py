"""Whether a model holds on the machine: recorded transfers in, a verdict by their times out."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from .declare import Input, Output, asked, output, rule, sent
from .notices import NoticeOut

Verdict: TypeAlias = Literal["holds", "holds_offset", "does_not_hold", "not_decided"]


class VerificationIn(Input):
    """Transfers over the stages of a profile, as text: the file that `sluice verify` writes, or own
    transfers by fragment size, of which no stage is known.
    """

    transfers: Annotated[str, rule(min_length=1)] = asked(
        "the text of the file: what `sluice verify` writes, or own transfers by fragment size",
        help="transfers of before, in place of new ones",
        option="--recorded",
        metavar="FILE",
        label="File of transfers",
    )


@output
class VerifiedSizeOut(Output):
    """One fragment size: the latency in µs that is predicted, and the median that was measured.

    `measured_us_interval` is the 95 % interval of the median; `ratio` is measured over predicted.
    """

    fragment_bytes: int = sent("size of the fragments, bytes")
    fragments: int = sent("how many fragments the message is cut into")
    predicted_us: float = sent("the latency that the model predicts, µs")
    measured_us: float = sent("median of the latencies that were measured, µs")
    measured_us_interval: tuple[float, float] = sent("95 % interval of that median, µs")
    ratio: float = sent("measured over predicted")
    runs: int = sent("how many transfers were measured")


@output
class VerificationOut(Output):
    """Whether a model holds on the machine, by transfers over the stages that it is of.

    `offset_us` is what every transfer takes more, of `holds_offset`, else null; `verified_at` is
    when it was stored, null before.
    """

    verdict: Verdict = sent(
        "holds: every interval is near the prediction; holds_offset: once one constant is added; "
        "does_not_hold: no constant brings them near; not_decided: the intervals are too wide"
    )
    detail: str = sent("the verdict in words")
    offset_us: float | None = sent("what every transfer takes more, µs, of holds_offset; else null")
    message_bytes: int = sent("size of the message, bytes")
    stages: tuple[str, ...] = sent("the stages that were transferred over, in their order")
    sizes: tuple[VerifiedSizeOut, ...] = sent("each fragment size")
    reasons: tuple[NoticeOut, ...] = sent("what the times speak for, where the model does not hold")
    verified_at: str | None = sent("when it was stored, RFC 3339 in UTC; null: it is not yet")
