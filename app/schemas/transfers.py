"""A user's own transfers in a request, and the answer that they give."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field

from app.questions.transfers import MAX_ASKED_ROWS, DecidedTransfers, TransfersQuestion
from app.schemas.base import Bytes, Input, Output, whole
from app.text.numbers import format_percent
from app.text.units import format_time
from domain.errors import InconsistentInput, InvalidInput
from domain.measurement import MAX_TIME_US
from domain.own_transfers import (
    MIN_US,
    GainInterval,
    OwnTransfer,
    OwnTransfers,
    SizeDecision,
    SizeVerdict,
    TransferredSize,
    TransferStatus,
)
from domain.units import format_bytes

_MAX_BLOCK, _MAX_CHALLENGE, _MAX_BEGAN_S = 2**48, 256, 1e12
_MAX_CHOICES = 64

Block = Annotated[int, Field(ge=0, le=_MAX_BLOCK), BeforeValidator(whole)]
Challenge = Annotated[int, Field(ge=1, le=_MAX_CHALLENGE), BeforeValidator(whole)]


class TransferIn(Input):
    """One transfer of the message, cut by one repeated size; without a time it was refused, or
    ended because it took too long. `block` numbers transfers made close together in time.
    """

    fragment_bytes: Bytes
    latency_us: Annotated[float, Field(ge=MIN_US, le=MAX_TIME_US)] | None = None
    block: Block | None = None
    began_s: Annotated[float, Field(ge=-_MAX_BEGAN_S, le=_MAX_BEGAN_S)] | None = None
    status: TransferStatus = TransferStatus.OK
    challenge: Challenge | None = None
    reason: Annotated[str, Field(max_length=300)] = ""

    def to_domain(self, message_bytes: int) -> OwnTransfer:
        """Return it; a fragment larger than the message is the message. Raises InvalidInput."""
        return OwnTransfer(
            min(self.fragment_bytes, message_bytes),
            self.latency_us,
            block=self.block,
            began_s=self.began_s,
            status=self.status,
            challenge=self.challenge,
            reason=self.reason,
        )


TransferRows = Annotated[tuple[TransferIn, ...], Field(min_length=1, max_length=MAX_ASKED_ROWS)]


class TransfersIn(Input):
    """Whole times of the message by fragment size, in the order in which they were made: the text
    of a file (docs/own-transfers.md), or rows. `where` chooses values of the file's conditions.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": ["content"], "properties": {"rows": {"type": "null"}}},
                {"required": ["rows"], "properties": {"content": {"type": "null"}}},
            ]
        }
    )

    content: str | None = None
    rows: TransferRows | None = None
    where: Annotated[dict[str, str], Field(max_length=_MAX_CHOICES)] | None = None

    def to_domain(
        self, message_bytes: int, *, current_bytes: int | None, sends_whole: bool
    ) -> TransfersQuestion:
        """Return what is asked of them. Raises InvalidInput."""
        if (self.content is None) == (self.rows is None):
            raise InconsistentInput("expected exactly one of content and rows", field="transfers")
        if self.rows is not None and self.where:
            raise InconsistentInput("expected where beside content alone", field="transfers.where")
        given: str | OwnTransfers = self.content or ""
        if self.rows is not None:
            given = self._transfers(message_bytes)
        return TransfersQuestion(
            given, message_bytes, current_bytes, sends_whole, tuple((self.where or {}).items())
        )

    def _transfers(self, message_bytes: int) -> OwnTransfers:
        rows = []
        for at, row in enumerate(self.rows or ()):
            try:
                rows.append(row.to_domain(message_bytes))
            except InvalidInput as refusal:
                place = f"transfers.rows.{at}.{refusal.field}"
                raise InconsistentInput(refusal.detail, field=place) from None
        try:
            return OwnTransfers(message_bytes, tuple(rows))
        except InvalidInput as refusal:
            raise InconsistentInput(refusal.detail, field="transfers.rows") from None


# --- the answer -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class GainOut(Output):
    """The 90 % interval of a gain, 1 - T/T_current; below 0 it is slower."""

    low: float
    high: float

    @classmethod
    def of(cls, gain: GainInterval | None) -> GainOut | None:
        """Return the interval, None where there is none."""
        return None if gain is None else cls(gain.low, gain.high)


@dataclass(frozen=True)
class SetByTransfersOut(Output):
    """The size to set, to keep or to try, with the centre of its times in µs, their 90 % interval,
    and what it gains over the size in use, each null where it was not transferred.

    `verdict` is set, keep, not_decided or try; `keeps_current` in all but the first. `sentence`
    says it.
    """

    verdict: SizeVerdict
    size_bytes: int
    fragments: int
    latency_us: float | None
    latency_us_interval: tuple[float, float] | None
    gain: GainOut | None
    keeps_current: bool
    sentence: str


@dataclass(frozen=True)
class TransferredSizeOut(Output):
    """One size: how often it was transferred, the centre of its times without drift, and the 90 %
    interval of that. `regret` is what it costs at most over the best round size, with 90 %.
    """

    fragment_bytes: int
    fragments: int
    runs: int
    latency_us: float
    latency_us_interval: tuple[float, float]
    regret: float
    is_near_best: bool

    @classmethod
    def of(cls, size: TransferredSize, message_bytes: int) -> TransferredSizeOut:
        """Return what was found of a size."""
        count = -(-message_bytes // size.fragment_bytes)
        return cls(
            size.fragment_bytes,
            count,
            size.runs,
            size.centre_us,
            size.interval_us,
            size.regret,
            size.is_near_best,
        )


@dataclass(frozen=True)
class RefusedSizeOut(Output):
    """A size that the program cannot use, and the reason that it gave."""

    fragment_bytes: int
    reason: str


@dataclass(frozen=True)
class ConditionOut(Output):
    """What was the same in all transfers: a column of the file, and its value."""

    name: str
    value: str


@dataclass(frozen=True)
class TransfersOut(Output):
    """What transfers of this message decide about its size, without a model of stages.

    `current_bytes` is the size in use where `is_current_known`, else the largest transferred.
    `noise` is the relative spread of one transfer, `curve_us` the constants c0, c1, c2 of
    T = c0 + c1 b/B + c2 ceil(B/b), null where no such curve holds around the best size. `seconds`
    are those of all transfers, `more_runs` about how many more would decide. `condition` completes
    a verdict that rests on one. Nothing is stored: there is no id.
    """

    message_bytes: int
    current_bytes: int
    is_current_known: bool
    set_this: SetByTransfersOut
    best_bytes: int | None
    best_gain: GainOut | None
    sizes: tuple[TransferredSizeOut, ...]
    near_best_bytes: tuple[int, ...]
    refused: tuple[RefusedSizeOut, ...]
    conditions: tuple[ConditionOut, ...]
    unused_columns: tuple[str, ...]
    noise: float
    runs: int
    seconds: float
    curve_us: tuple[float, float, float] | None
    hardly_depends: bool
    condition: str
    more_runs: int | None

    @classmethod
    def of(cls, decided: DecidedTransfers) -> TransfersOut:
        """Return a decision as it is sent."""
        found, message = decided.decision, decided.decision.message_bytes
        return cls(
            message_bytes=message,
            current_bytes=found.current_bytes,
            is_current_known=found.is_current_known,
            set_this=_set_this(found),
            best_bytes=found.leader_bytes,
            best_gain=GainOut.of(found.gain),
            sizes=tuple(TransferredSizeOut.of(size, message) for size in found.sizes),
            near_best_bytes=found.near_best_bytes,
            refused=tuple(RefusedSizeOut(size, why) for size, why in found.refused),
            conditions=tuple(ConditionOut(*one) for one in decided.transfers.conditions),
            unused_columns=decided.unused,
            noise=found.noise,
            runs=found.runs,
            seconds=found.seconds,
            curve_us=found.curve,
            hardly_depends=found.hardly_depends,
            condition=found.condition,
            more_runs=found.more_runs,
        )

    @property
    def is_decided(self) -> bool:
        """Whether a size is set, or the one in use kept."""
        return self.set_this.verdict in (SizeVerdict.SET, SizeVerdict.KEEP)

    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield what the decision rests on, in words: names and figures; only what there is."""
        yield "message", format_bytes(self.message_bytes)
        for one in self.conditions:
            yield one.name, one.value
        if self.unused_columns:
            yield "not used", ", ".join(self.unused_columns)
        if self.near_best_bytes:
            sizes = ", ".join(map(format_bytes, self.near_best_bytes))
            yield "within 2 % of the best", f"{sizes}, with 90 %"
        if sum(size.runs for size in self.sizes) > len(self.sizes):
            yield "noise", f"{format_percent(self.noise)} of one transfer"
        if self.curve_us is not None:
            fixed, share, each = map(format_time, self.curve_us)
            yield "curve", f"{fixed} + {share} × size/message + {each} × fragments"
        for size in self.refused:
            why = f": {size.reason}" if size.reason else ""
            yield "refused", f"{format_bytes(size.fragment_bytes)}{why}"
        if self.hardly_depends:
            yield (
                "all sizes",
                "within 5 % of each other: the time hardly depends on the size, or what is the "
                "same for all hides it",
            )


def _set_this(found: SizeDecision) -> SetByTransfersOut:
    size = found.current_bytes if found.size_bytes is None else found.size_bytes
    known = found.of_size(size)
    is_leader = size == found.leader_bytes
    return SetByTransfersOut(
        verdict=found.verdict,
        size_bytes=size,
        fragments=-(-found.message_bytes // size),
        latency_us=None if known is None else known.centre_us,
        latency_us_interval=None if known is None else known.interval_us,
        gain=GainOut.of(found.gain) if is_leader else None,
        keeps_current=found.verdict is not SizeVerdict.SET,
        sentence=found.sentence(),
    )
