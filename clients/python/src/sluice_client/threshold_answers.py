"""What the service answers about thresholds and pulse sizes."""

from __future__ import annotations

from dataclasses import dataclass

from sluice_client.fit_answers import Notice, ProfileRevision
from sluice_client.shapes import Pipeline


@dataclass(frozen=True, slots=True)
class MessageThresholds:
    """One message: µs of each choice in their order, None where it was not priced, and the best.

    `serial_us` is what the best takes if stages work one after another, None where that is known.
    """

    message_bytes: int
    latencies_us: tuple[float | None, ...]
    best_bytes: tuple[int, ...] | None
    best_us: float | None
    store_and_forward_us: float
    ideal_us: float
    lower_bound_us: float
    serial_us: float | None = None


@dataclass(frozen=True, slots=True)
class OneChoice:
    """The choice of least mean regret over all messages; regrets are shares above their best."""

    sizes_bytes: tuple[int, ...]
    mean_regret: float
    max_regret: float
    worst_message_bytes: int


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Latencies by threshold or pulse size. A choice has one size for each of `stages`, or where
    that is None one for all; `cut_off` says that time ended before all were priced.
    """

    rule: str
    stages: tuple[int, ...] | None
    choices: tuple[tuple[int, ...], ...]
    messages: tuple[MessageThresholds, ...]
    one: OneChoice | None
    cut_off: bool
    pipeline: Pipeline
    profile: ProfileRevision | None
    warnings: tuple[Notice, ...]
