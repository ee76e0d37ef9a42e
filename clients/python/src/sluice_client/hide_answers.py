"""What the service answers about messages that are hidden behind a calculation."""

from __future__ import annotations

from dataclasses import dataclass

from sluice_client.fit_answers import Notice, ProfileRevision
from sluice_client.shapes import Constraints, Pipeline


@dataclass(frozen=True, slots=True)
class LatencyOptimal:
    """The cut of least latency, µs, its run time behind the calculation, and by what share more."""

    fragments: int
    latency_us: float
    with_us: float
    more_by: float


@dataclass(frozen=True, slots=True)
class HiddenCount:
    """One number of fragments that was tried, µs; `bound_us` is below every such cut."""

    fragments: int
    latency_us: float
    host_us: float
    with_us: float
    bound_us: float


@dataclass(frozen=True, slots=True)
class GammaWindow:
    """Ratios of calculation to communication; `high` is None where it has no end."""

    low: float
    high: float | None


@dataclass(frozen=True, slots=True)
class BestProcesses:
    """The numbers of processes with the greatest speed-up without and with hiding, and gain."""

    without: int
    hidden: int
    gain: int


@dataclass(frozen=True, slots=True)
class ProcessPoint:
    """One number of processes: speed-ups without and with hiding, and the gain."""

    processes: int
    speedup: float
    hidden_speedup: float
    gain: float


@dataclass(frozen=True, slots=True)
class Hidden:
    """Run times without and with hiding, and the best fragments behind the calculation.

    Times in µs. Of a `granularity` all that needs a pipeline is None. `gamma` is the calculation
    over the communication. `id` is that under which the answer is stored.
    """

    gain: float
    gain_at_most: float | None
    max_gain: float | None
    regime: str
    gamma: float | None
    window: GammaWindow | None
    min_gain: float | None
    hideable_fraction: float
    overhead: float | None
    best_processes: BestProcesses | None
    curve: tuple[ProcessPoint, ...]
    warnings: tuple[Notice, ...]
    message_bytes: int | None
    messages: int | None
    messages_are: str | None
    calculation_us: float | None
    hiding_overhead_us: float | None
    streamed: bool | None
    exchange: str | None
    without_us: float | None
    with_us: float | None
    lower_bound_us: float | None
    relative_gap: float | None
    status: str | None
    fragment_bytes: tuple[int, ...] | None
    fragments: int | None
    latency_us: float | None
    host_us: float | None
    latency_optimal: LatencyOptimal | None
    calculation_for_full_hiding_us: float | None
    counts: tuple[HiddenCount, ...]
    constraints: Constraints | None
    pipeline: Pipeline | None
    profile: ProfileRevision | None
    id: str
    created_at: str
