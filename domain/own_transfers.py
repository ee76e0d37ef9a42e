"""A user's own transfers of one message by fragment size, and what they decide.

from domain.own_transfers import OwnTransfer, OwnTransfers
transfers = OwnTransfers(64 << 20, (OwnTransfer(4 << 20, 9.1e5), OwnTransfer(8 << 20, 6.4e5)))

Source    docs/decisions/0029-own-transfers-decide.md. Gains are 1 - T/T_other, as everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import exp, isfinite

from contract.limits import MAX_MESSAGE_BYTES, MAX_TIME_US, MIN_TRANSFER_US
from domain.errors import InvalidInput
from domain.units import format_bytes, format_seconds

MAX_TRANSFERS, MAX_SIZES = 100_000, 256  # of one message, as a file may have them
_ERRORS_90 = 1.645  # standard errors on each side of a 90 % interval
NEAR_BEST = 0.02  # a size that costs no more than this over the best is as good as the best


class TransferStatus(StrEnum):
    """How a transfer ended.

    ok        it took `latency_us`
    warm_up   it took `latency_us`, and is used for nothing
    refused   the program failed at this size
    ended     it was ended because it took too long
    """

    OK = "ok"
    WARM_UP = "warm_up"
    REFUSED = "refused"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class OwnTransfer:
    """One transfer of the message, cut by one repeated size.

    `block` numbers transfers that were made close together in time, `began_s` is when it began, in
    s from any origin; None where it is not known. `challenge` is n where the transfer is one of a
    pair that compares the n-th size chosen for it with the one in use. `reason` says why there is
    no time. Raises InvalidInput for a size or a time that no transfer has.
    """

    fragment_bytes: int
    latency_us: float | None
    block: int | None = None
    began_s: float | None = None
    status: TransferStatus = TransferStatus.OK
    challenge: int | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        if self.fragment_bytes < 1:
            raise InvalidInput("expected fragments of at least 1 byte", field="fragment_bytes")
        is_timed = self.status in (TransferStatus.OK, TransferStatus.WARM_UP)
        if is_timed != (self.latency_us is not None):
            raise InvalidInput(
                "expected a time of every transfer that is ok or a warm-up, and of no other",
                field="latency_us",
            )
        if self.latency_us is not None and not MIN_TRANSFER_US <= self.latency_us <= MAX_TIME_US:
            raise InvalidInput(
                f"expected a time of {MIN_TRANSFER_US:g} to {MAX_TIME_US:g} µs", field="latency_us"
            )
        if self.began_s is not None and not isfinite(self.began_s):
            raise InvalidInput("expected a finite time in s", field="began_s")
        if self.challenge is not None and self.challenge < 1:
            raise InvalidInput("expected challenges numbered from 1", field="challenge")


@dataclass(frozen=True, slots=True)
class OwnTransfers:
    """Transfers of one message, in the order in which they were made.

    `conditions` is what else was the same in all of them, by name: ("connections", "4"). Raises
    InvalidInput where a fragment is larger than the message, and for more than MAX_TRANSFERS
    transfers, or MAX_SIZES sizes.
    """

    message_bytes: int
    rows: tuple[OwnTransfer, ...]
    conditions: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.message_bytes <= MAX_MESSAGE_BYTES:
            raise InvalidInput(
                f"expected a message of 1 to {MAX_MESSAGE_BYTES} bytes", field="message_bytes"
            )
        if len(self.rows) > MAX_TRANSFERS:
            raise InvalidInput(
                f"expected at most {MAX_TRANSFERS} transfers, got {len(self.rows)}", field="rows"
            )
        sizes = {row.fragment_bytes for row in self.rows}
        if len(sizes) > MAX_SIZES:
            raise InvalidInput(
                f"expected at most {MAX_SIZES} fragment sizes, got {len(sizes)}",
                field="fragment_bytes",
            )
        if max(sizes, default=1) > self.message_bytes:
            raise InvalidInput(
                "expected no fragment larger than the message", field="fragment_bytes"
            )

    @property
    def refused(self) -> dict[int, str]:
        """The sizes that cannot be used, each with the reason that was given last.

        They took too long once, failed twice, or failed and never succeeded.
        """
        failed, ended, worked = dict[int, int](), set[int](), set[int]()
        reasons = dict[int, str]()
        for row in self.rows:
            if row.latency_us is not None:
                worked.add(row.fragment_bytes)
                continue
            reasons[row.fragment_bytes] = row.reason
            failed[row.fragment_bytes] = failed.get(row.fragment_bytes, 0) + 1
            if row.status is TransferStatus.ENDED:
                ended.add(row.fragment_bytes)
        return {
            size: reasons[size]
            for size, count in failed.items()
            if count > 1 or size in ended or size not in worked
        }

    @property
    def usable(self) -> tuple[OwnTransfer, ...]:
        """The transfers whose time counts: those that are ok, of sizes that are not refused."""
        refused = self.refused
        return tuple(
            row
            for row in self.rows
            if row.status is TransferStatus.OK and row.fragment_bytes not in refused
        )


class SizeVerdict(StrEnum):
    """What the transfers decide.

    set          another size than the current one is faster: it was transferred, and has shown it
    keep         no round size between those transferred is more than 2 % faster, with 90 %
    not_decided  the times are too few or too noisy for either
    try          each size was transferred once, or a few sizes: this one is worth a comparison
    """

    SET = "set"
    KEEP = "keep"
    NOT_DECIDED = "not_decided"
    TRY = "try"


@dataclass(frozen=True, slots=True)
class GainInterval:
    """The 90 % interval of a gain, 1 - T/T_current; below 0 the size is slower."""

    low: float
    high: float

    def words(self) -> str:
        """Return it in whole percent, as in "67 to 69 % faster" and "−2 to 9 % faster"; of what is
        more than twice as slow, as in "3.5 times as slow to 9 % faster".
        """
        low, high = round(100.0 * self.low), round(100.0 * self.high)
        if low < -100:
            times = _times(1.0 - self.low)
            if high < 0:
                return f"{_times(1.0 - self.high)} to {times} times as slow"
            return f"{times} times as slow to {high} % faster"
        if high < 0:
            return f"{_span(-high, -low)} % slower"
        return f"{_span(low, high)} % faster"


def _times(ratio: float) -> str:
    return f"{ratio:.2g}" if ratio < 99.5 else f"{ratio:,.0f}"


def _span(low: int, high: int) -> str:
    return f"{low}" if low == high else f"{low} to {high}".replace("-", "−")


@dataclass(frozen=True, slots=True)
class TransferredSize:
    """One size: how often it was transferred, and the centre of its times without drift, in µs.

    `error` is the centre's relative standard error. `regret` is what the size costs at most over
    the best round size, with 90 %: 0.05 is 5 %.
    """

    fragment_bytes: int
    runs: int
    centre_us: float
    error: float
    regret: float

    @property
    def is_near_best(self) -> bool:
        """Whether it is within 2 % of the best round size, with 90 %."""
        return self.regret <= NEAR_BEST

    @property
    def interval_us(self) -> tuple[float, float]:
        """The 90 % interval of the centre, in µs."""
        factor = exp(_ERRORS_90 * self.error)
        return self.centre_us / factor, self.centre_us * factor


@dataclass(frozen=True, slots=True)
class SizeDecision:
    """A verdict, and what it rests on.

    `current_bytes` is the size in use, `is_current_known` whether the user named it: else sizes are
    compared with the whole message, or the largest size there is. `size_bytes` is what to use, or
    for `try` what to try; None where nothing was transferred. `leader_bytes` is the best that was
    transferred, and `gain` the gain of `size_bytes` where that is set, else of `leader_bytes`; None
    where it, or the current size, was not transferred. `noise` is the relative spread of one
    transfer. `curve` are the constants c0, c1, c2 of T = c0 + c1 b/B + c2 ceil(B/b) in µs where
    that holds over the sizes around the best. `condition` completes a verdict that rests on one,
    `more_runs` is about how many more would decide. `seconds` are those of all transfers.
    """

    verdict: SizeVerdict
    message_bytes: int
    current_bytes: int
    is_current_known: bool
    size_bytes: int | None
    leader_bytes: int | None
    gain: GainInterval | None
    noise: float
    runs: int
    seconds: float
    sizes: tuple[TransferredSize, ...]
    refused: tuple[tuple[int, str], ...] = ()
    curve: tuple[float, float, float] | None = None
    condition: str = ""
    more_runs: int | None = None

    @property
    def is_near_best(self) -> bool:
        """Whether the size to use is within 2 % of the best round size, with 90 %."""
        found = self.of_size(self.size_bytes)
        return found is not None and found.is_near_best and len(self.sizes) > 1

    @property
    def is_current_refused(self) -> bool:
        """Whether the program fails at the size in use."""
        return any(size == self.current_bytes for size, _ in self.refused)

    @property
    def near_best_bytes(self) -> tuple[int, ...]:
        """The sizes that are within 2 % of the best round size, with 90 %, ascending."""
        return tuple(size.fragment_bytes for size in self.sizes if size.is_near_best)

    @property
    def hardly_depends(self) -> bool:
        """Whether the times of all sizes, three at least, are within 5 % of each other."""
        centres = [size.centre_us for size in self.sizes]
        return len(centres) >= 3 and max(centres) <= 1.05 * min(centres)

    def of_size(self, fragment_bytes: int | None) -> TransferredSize | None:
        """Return what was found of a size, None where it was not transferred."""
        return next((size for size in self.sizes if size.fragment_bytes == fragment_bytes), None)

    def sentence(self) -> str:
        """Return the verdict in words, with its interval and how many runs it took."""
        spent = f"{self.runs} {'run' if self.runs == 1 else 'runs'}, {format_seconds(self.seconds)}"
        current = format_bytes(self.current_bytes)
        yours = f"your {current}" if self.is_current_known else current
        condition = f", {self.condition}" if self.condition else ""
        if self.verdict is SizeVerdict.SET and self.size_bytes and self.gain:
            near = " Within 2 % of the best round size, with 90 %." if self.is_near_best else ""
            return (
                f"Set {format_bytes(self.size_bytes)}: {self.gain.words()} than {yours}"
                f"{condition} ({spent}).{near}"
            )
        if self.verdict is SizeVerdict.KEEP:
            low, high = (end(size.fragment_bytes for size in self.sizes) for end in (min, max))
            return (
                f"Keep {yours}: no round size from {format_bytes(low)} to {format_bytes(high)} is "
                f"more than 2 % faster, with 90 %{condition} ({spent})."
            )
        if self.verdict is SizeVerdict.TRY and self.size_bytes:
            return f"Try {format_bytes(self.size_bytes)} beside {yours}, in turns ({spent})."
        return self._undecided(yours, spent)

    def _undecided(self, yours: str, spent: str) -> str:
        if self.is_current_refused:
            reason = dict(self.refused)[self.current_bytes]
            return f"Not decided: the program fails at {yours}{f': {reason}' if reason else ''}."
        found = ""
        if self.leader_bytes is not None and self.leader_bytes != self.current_bytes and self.gain:
            found = f": {format_bytes(self.leader_bytes)} is {self.gain.words()}"
        more = f"; about {self.more_runs} runs more" if self.more_runs else ""
        return f"Not decided in {spent}{found}. Keep {yours}{more}."
