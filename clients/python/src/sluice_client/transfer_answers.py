"""What a user's own transfers decide: which size to set, keep or try. Times in µs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gain:
    """The 90 % interval of a gain, 1 - T/T_current; below 0 it is slower."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class SetByTransfers:
    """The size to set, to keep or to try; `verdict` is set, keep, not_decided or try.

    Its times are None where it was not transferred, `gain` where the size in use was not.
    """

    verdict: str
    size_bytes: int
    fragments: int
    latency_us: float | None
    latency_us_interval: tuple[float, float] | None
    gain: Gain | None
    keeps_current: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class TransferredSize:
    """One size; `regret` is what it costs at most over the best round size, with 90 %."""

    fragment_bytes: int
    fragments: int
    runs: int
    latency_us: float
    latency_us_interval: tuple[float, float]
    regret: float
    is_near_best: bool


@dataclass(frozen=True, slots=True)
class RefusedSize:
    """A size that the program cannot use, and the reason that it gave."""

    fragment_bytes: int
    reason: str


@dataclass(frozen=True, slots=True)
class Condition:
    """What was the same in all transfers: a column of the file, and its value."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class DecidedTransfers:
    """What transfers of a message decide about its size, without a model of stages.

    Sizes are compared with `current_bytes`: the one in use where `is_current_known`, else the
    largest transferred. Nothing is stored: there is no id.
    """

    message_bytes: int
    current_bytes: int
    is_current_known: bool
    set_this: SetByTransfers
    best_bytes: int | None
    best_gain: Gain | None
    sizes: tuple[TransferredSize, ...]
    near_best_bytes: tuple[int, ...]
    refused: tuple[RefusedSize, ...]
    conditions: tuple[Condition, ...]
    unused_columns: tuple[str, ...]
    noise: float
    runs: int
    seconds: float
    curve_us: tuple[float, float, float] | None
    hardly_depends: bool
    condition: str
    more_runs: int | None
