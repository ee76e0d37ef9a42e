"""A user's own transfers of a message in a request, and the answer that they give."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from .declare import Input, Output, asked, output, rule, sent
from .limits import (
    MAX_ASKED_ROWS,
    MAX_BEGAN_S,
    MAX_BLOCK,
    MAX_CHALLENGE,
    MAX_CONDITIONS,
    MAX_REASON,
    MAX_TIME_US,
    MIN_TRANSFER_US,
)
from .rules import Bytes

TransferStatus: TypeAlias = Literal["ok", "warm_up", "refused", "ended"]
SizeVerdict: TypeAlias = Literal["set", "keep", "not_decided", "try"]
TransferUs = Annotated[float, rule(ge=MIN_TRANSFER_US, le=MAX_TIME_US)]
Block = Annotated[int, rule(ge=0, le=MAX_BLOCK, is_whole=True)]
Challenge = Annotated[int, rule(ge=1, le=MAX_CHALLENGE, is_whole=True)]
BeganS = Annotated[float, rule(ge=-MAX_BEGAN_S, le=MAX_BEGAN_S)]


class TransferIn(Input):
    """One transfer of the message, cut by one repeated size; without a time it was refused, or
    ended because it took too long. `block` numbers transfers made close together in time.
    """

    fragment_bytes: Bytes = asked("the size that is repeated, bytes")
    latency_us: TransferUs | None = asked(
        "what it took, µs; null: it was refused, or ended", default=None
    )
    block: Block | None = asked(
        "the number of a group of transfers that were made close together in time; null: not known",
        default=None,
    )
    began_s: BeganS | None = asked(
        "when it began, in s from any origin; null: not known", default=None
    )
    status: TransferStatus = asked(
        "ok, it took `latency_us`; warm_up, it did, and is used for nothing; refused, the program "
        "failed at this size; ended, it took too long and was ended",
        default="ok",
    )
    challenge: Challenge | None = asked(
        "n where it is one of a pair that compares the n-th size chosen for that with the one in "
        "use; null: it is none",
        default=None,
    )
    reason: Annotated[str, rule(max_length=MAX_REASON)] = asked("why there is no time", default="")


TransferRows = Annotated[tuple[TransferIn, ...], rule(min_length=1, max_length=MAX_ASKED_ROWS)]


class TransfersIn(Input):
    """Whole times of the message by fragment size, in the order in which they were made: the text
    of a file (docs/own-transfers.md), or rows. `where` chooses values of the file's conditions.
    """

    schema_rules: ClassVar = {
        "oneOf": [
            {"required": ["content"], "properties": {"rows": {"type": "null"}}},
            {"required": ["rows"], "properties": {"content": {"type": "null"}}},
        ]
    }

    content: str | None = asked(
        "the text of a file of transfers",
        help="own transfers of this message, which decide",
        default=None,
        unit="file",
        option="--transfers",
        metavar="FILE",
    )
    rows: TransferRows | None = asked("the transfers, in place of a file's text", default=None)
    where: Annotated[dict[str, str], rule(max_length=MAX_CONDITIONS)] | None = asked(
        "values of the file's conditions by name: its transfers under these are taken",
        help="of own transfers: those under this condition; may be repeated",
        default=None,
        unit="condition",
        option="--where",
        metavar="NAME=VALUE",
        is_repeated=True,
    )


# --- the answer -----------------------------------------------------------------------------------


@output
class GainOut(Output):
    """The 90 % interval of a gain, 1 - T/T_current; below 0 it is slower."""

    low: float = sent("its lower end, a share")
    high: float = sent("its upper end, a share")


@output
class SetByTransfersOut(Output):
    """The size to set, to keep or to try, with the centre of its times in µs, their 90 % interval,
    and what it gains over the size in use, each null where it was not transferred.

    `verdict` is set, keep, not_decided or try; `keeps_current` in all but the first. `sentence`
    says it.
    """

    verdict: SizeVerdict = sent(
        "set, this size has shown to be faster; keep, no round size between those transferred is "
        "more than 2 % faster, with 90 %; not_decided, the times are too few or too noisy; try, "
        "this size is worth a comparison"
    )
    size_bytes: int = sent("the size, bytes")
    fragments: int = sent("number of fragments that it makes")
    latency_us: float | None = sent("the centre of its times, µs; null: not transferred")
    latency_us_interval: tuple[float, float] | None = sent(
        "the 90 % interval of that, µs; null: not transferred"
    )
    gain: GainOut | None = sent("what it gains over the size in use; null: not known")
    keeps_current: bool = sent("whether the size in use stays")
    sentence: str = sent("what to do, in words")


@output
class TransferredSizeOut(Output):
    """One size: how often it was transferred, the centre of its times without drift, and the 90 %
    interval of that. `regret` is what it costs at most over the best round size, with 90 %.
    """

    fragment_bytes: int = sent("the size, bytes")
    fragments: int = sent("number of fragments that it makes")
    runs: int = sent("how often it was transferred")
    latency_us: float = sent("the centre of its times without drift, µs")
    latency_us_interval: tuple[float, float] = sent("the 90 % interval of that, µs")
    regret: float = sent("what it costs at most over the best round size, with 90 %, a share")
    is_near_best: bool = sent("whether that is 2 % at most")


@output
class RefusedSizeOut(Output):
    """A size that the program cannot use, and the reason that it gave."""

    fragment_bytes: int = sent("the size, bytes")
    reason: str = sent("the reason that the program gave")


@output
class ConditionOut(Output):
    """What was the same in all transfers: a column of the file, and its value."""

    name: str = sent("the column of the file")
    value: str = sent("its value in all transfers")


@output
class TransfersOut(Output):
    """What transfers of this message decide about its size, without a model of stages.

    `current_bytes` is the size in use where `is_current_known`, else the largest transferred.
    `noise` is the relative spread of one transfer, `curve_us` the constants c0, c1, c2 of
    T = c0 + c1 b/B + c2 ceil(B/b), null where no such curve holds around the best size. `seconds`
    are those of all transfers, `more_runs` about how many more would decide. `condition` completes
    a verdict that rests on one. Nothing is stored: there is no id.
    """

    message_bytes: int = sent("size of the message, bytes")
    current_bytes: int = sent("the size in use, or where it is not known the largest one, bytes")
    is_current_known: bool = sent("whether the size in use was given")
    set_this: SetByTransfersOut = sent("the size to set, to keep or to try")
    best_bytes: int | None = sent("the size that was fastest, bytes; null: none is known to be")
    best_gain: GainOut | None = sent("what that gains over the size in use; null: not known")
    sizes: tuple[TransferredSizeOut, ...] = sent("each size that was transferred, ascending")
    near_best_bytes: tuple[int, ...] = sent("sizes within 2 % of the best, with 90 %, bytes")
    refused: tuple[RefusedSizeOut, ...] = sent("sizes that the program cannot use")
    conditions: tuple[ConditionOut, ...] = sent("what was the same in all transfers")
    unused_columns: tuple[str, ...] = sent("columns of the file that nothing was read from")
    noise: float = sent("the relative spread of one transfer, a share")
    runs: int = sent("how many transfers were used")
    seconds: float = sent("what all transfers took, s")
    curve_us: tuple[float, float, float] | None = sent(
        "c0, c1, c2 of T = c0 + c1 b/B + c2 ceil(B/b), µs; null: no such curve holds"
    )
    hardly_depends: bool = sent("whether all sizes are within 5 % of each other")
    condition: str = sent("what completes a verdict that rests on a condition; else empty")
    more_runs: int | None = sent("about how many more transfers would decide; null: not known")

    @property
    def is_decided(self) -> bool:
        """Whether a size is set, or the one in use kept."""
        return self.set_this.verdict in ("set", "keep")
