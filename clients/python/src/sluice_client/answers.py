"""What the service answers. Times in µs, sizes in whole bytes, times of day as RFC 3339 in UTC.

Names that may grow (strategies, states, codes) are strings. docs/service.md of Sluice says what
each field means.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from sluice_client.errors import Problem
from sluice_client.export_answers import Audit, Exported
from sluice_client.fit_answers import Fit, Notice, ProfileRevision
from sluice_client.hide_answers import Hidden
from sluice_client.layer_answers import LayerCosts
from sluice_client.profile_answers import CompiledTable
from sluice_client.shapes import Aggregate, Constraints, Pipeline
from sluice_client.threshold_answers import Thresholds
from sluice_client.uncertainty import Sensitivities, Uncertainty

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A page of a list; `next_cursor` asks for the next one and is None at the end."""

    items: tuple[T, ...]
    next_cursor: str | None

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


# --- answers of solvers ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BestFixed:
    """The best single size for a library that repeats one size."""

    size_bytes: int
    fragments: int
    latency_us: float


@dataclass(frozen=True, slots=True)
class Baseline:
    """One other setting by `name`; `declined` says why where the limits forbid its cut.

    `default_bytes` is what the system of this name comes with, as `source` says, and `parameter`
    what it is set by; `static_bytes` is that, rounded up to the alignment. Where the message goes
    in one piece and was timed so, `measured_us` is what it took, and `latency_us` no more than
    that. They and `name` are None in answers of earlier versions.
    """

    strategy: str
    static_bytes: int | None
    latency_us: float | None
    fragments: int | None
    declined: str | None
    name: str | None = None
    default_bytes: int | None = None
    parameter: str | None = None
    source: str | None = None
    measured_us: float | None = None


@dataclass(frozen=True, slots=True)
class StageDelivery:
    """What to set in one stage, how many pulses that makes, and what they take of it, µs."""

    stage: int
    rule: str
    threshold_bytes: int | None
    pulse_bytes: int | None
    max_pulse_bytes: int | None
    pulses: int
    busy_us: float


@dataclass(frozen=True, slots=True)
class RangeSize:
    """The power of two that is best as the one size of messages of a range; `sentence` says it."""

    min_message_bytes: int
    max_message_bytes: int
    size_bytes: int
    sentence: str


@dataclass(frozen=True, slots=True)
class SetThis:
    """The size to set where a library repeats one, with its latency in µs; `sentence` says it.

    `keeps_current`: it is the one that is repeated today, which nothing gains enough over. `over`
    is what would be set for shorter messages too, None where costs were not measured.
    `by_transfers`: measured transfers say so, or have contradicted the model.
    """

    size_bytes: int
    fragments: int
    latency_us: float
    keeps_current: bool
    sentence: str
    over: RangeSize | None = None
    by_transfers: bool = False


@dataclass(frozen=True, slots=True)
class Optimization:
    """A schedule with a proof of how good it is. One of `pipeline` and `aggregate` is None.

    The last four are of answers whose stages choose their pulses (`eager`, `pulses`), else None:
    what each stage does, the limit of cut-through, store and forward, and the most that
    back-to-back messages reach. `uncertainty` is None where nothing is known of the costs' errors,
    `sensitivities` of an aggregate and of very many fragments, `set_this` where no size can be
    repeated, and all three in answers of earlier versions.
    """

    id: str
    created_at: str
    strategy: str
    message_bytes: int
    fragment_bytes: tuple[int, ...]
    fragments: int
    latency_us: float
    unrounded_latency_us: float | None
    lower_bound_us: float
    relative_gap: float
    rounding_gap: float | None
    status: str
    limited_by: str | None
    bottleneck_stage: int | None
    best_fixed: BestFixed | None
    baselines: tuple[Baseline, ...]
    levels: tuple[tuple[int, ...], ...] | None
    latency_paper_us: float | None
    constraints: Constraints
    allow_refragmentation: bool
    pipeline: Pipeline | None
    aggregate: Aggregate | None
    fit: Fit | None
    profile: ProfileRevision | None
    solve_ms: float
    warnings: tuple[Notice, ...]
    uncertainty: Uncertainty | None = None
    sensitivities: Sensitivities | None = None
    set_this: SetThis | None = None
    delivery: tuple[StageDelivery, ...] | None = None
    ideal_us: float | None = None
    store_and_forward_us: float | None = None
    sustained_mb_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class PathShare:
    """What one stage contributes to the critical path; `share` is of the time in stages."""

    stage: int
    name: str
    fragments: int
    overhead_us: float
    bytes_us: float
    share: float
    is_binding: bool


@dataclass(frozen=True, slots=True)
class Saving:
    """What a cost of a stage, made cheaper, would take off: with this schedule, with the best."""

    stage: int
    name: str
    cost: str
    same_cut_us: float
    best_cut_us: float | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an answer takes as long as it does, and what would make it faster."""

    id: str
    latency_us: float
    delay_us: float
    path: tuple[PathShare, ...]
    cheaper_by: float
    savings: tuple[Saving, ...]


@dataclass(frozen=True, slots=True)
class OptimizationSummary:
    """What a page shows of a stored answer."""

    id: str
    created_at: str
    strategy: str
    message_bytes: int
    fragments: int
    latency_us: float
    lower_bound_us: float
    relative_gap: float
    status: str
    profile: ProfileRevision | None
    name: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Schedule:
    """The answer of a lookup: `table` is the digest of the table that it is read from.

    Where no table answers, it was solved: `table` is None, and `id` names the stored answer.
    """

    strategy: str
    message_bytes: int
    fragment_bytes: tuple[int, ...]
    fragments: int
    latency_us: float
    lower_bound_us: float
    relative_gap: float
    status: str
    best_fixed: BestFixed | None
    constraints: Constraints
    profile: ProfileRevision | None
    warnings: tuple[Notice, ...]
    table: str | None = None
    id: str | None = None


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """One strategy on one message size; `declined` says why there is no answer.

    It takes `excess_at_least` to `excess_at_most` longer than the best of the message, as shares;
    `serial_us` is what its cut takes if stages work one after another, None where that is known.
    """

    message_bytes: int
    strategy: str
    chosen: str | None
    latency_us: float | None
    lower_bound_us: float | None
    relative_gap: float | None
    fragments: int | None
    largest_fragment_bytes: int | None
    status: str | None
    declined: str | None
    excess_at_least: float | None = None
    excess_at_most: float | None = None
    serial_us: float | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Rows by message size, then in the order of the strategies asked for.

    `warnings` has what transfers said of the profile, where it was verified.
    """

    pipeline: Pipeline | None
    aggregate: Aggregate | None
    profile: ProfileRevision | None
    rows: tuple[ComparisonRow, ...]
    warnings: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class Interval:
    """One fragment in one stage; µs from the start of the message, without the delay."""

    fragment: int
    stage: int
    fragment_bytes: int
    start_us: float
    exit_us: float


@dataclass(frozen=True, slots=True)
class PathStep:
    """One step of the critical path."""

    fragment: int
    stage: int


@dataclass(frozen=True, slots=True)
class Simulation:
    """A run of a cut. `critical_path` is None where stages cut differently.

    `levels` to `lower_bound_us` are there where the stages chose their pulses by `delivery`. The
    last three are there of an aggregate, whose `latency_us` is the most that the cut takes, and of
    whose stages nothing is known: neither intervals nor a pipeline.
    """

    message_bytes: int
    latency_us: float
    profile: ProfileRevision | None
    intervals: tuple[Interval, ...] = ()
    critical_path: tuple[PathStep, ...] | None = None
    bottleneck_stage: int | None = None
    busy_us: tuple[float, ...] = ()
    pipeline: Pipeline | None = None
    levels: tuple[tuple[int, ...], ...] | None = None
    store_and_forward_us: float | None = None
    lower_bound_us: float | None = None
    warnings: tuple[Notice, ...] = ()
    fragment_bytes: tuple[int, ...] | None = None
    one_piece_us: float | None = None
    aggregate: Aggregate | None = None


# --- jobs -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BestSoFar:
    """The best schedule that a job has found, with the bound proven so far."""

    strategy: str
    message_bytes: int
    fragment_bytes: tuple[int, ...]
    fragments: int
    latency_us: float
    unrounded_latency_us: float | None
    lower_bound_us: float
    relative_gap: float
    rounding_gap: float | None
    status: str
    limited_by: str | None
    levels: tuple[tuple[int, ...], ...] | None
    latency_paper_us: float | None


@dataclass(frozen=True, slots=True)
class JobPoint:
    """What an optimisation knew from this time on."""

    elapsed_s: float
    best_latency_us: float
    lower_bound_us: float


@dataclass(frozen=True, slots=True)
class JobProgress:
    """How long a job has run, how good its best answer is, and how it came there.

    Steps are cells of a comparison, thousandths of a compilation, messages of an audit or export.
    """

    elapsed_s: float
    best_latency_us: float | None
    lower_bound_us: float | None
    relative_gap: float | None
    history: tuple[JobPoint, ...] = ()
    steps_done: int | None = None
    steps_total: int | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """A durable job: `answer_id` names the stored answer; `comparison`, `table`, `audit`,
    `export`, `layer_costs`, `hidden` and `thresholds` are what jobs of these kinds came to.
    """

    id: str
    kind: str
    state: str
    created_at: str
    started_at: str | None
    finished_at: str | None
    attempts: int
    cancel_requested: bool
    progress: JobProgress
    best: BestSoFar | None
    answer_id: str | None
    comparison: Comparison | None
    error: Problem | None
    table: CompiledTable | None = None
    audit: Audit | None = None
    export: Exported | None = None
    layer_costs: LayerCosts | None = None
    hidden: Hidden | None = None
    thresholds: Thresholds | None = None

    @property
    def has_ended(self) -> bool:
        """Whether nothing about it will change."""
        return self.state in ("done", "failed", "cancelled")

    def check(self) -> Job:
        """Return the job itself. Raises the ProblemError that it ended with."""
        if self.error is not None:
            raise self.error.as_error()
        return self


@dataclass(frozen=True, slots=True)
class JobEvent:
    """One event of a job's stream: `progress`, or the state that it ended in, and all of it."""

    name: str
    job: Job


# --- the service itself ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Limits:
    """Everything that a request is measured against."""

    max_stages: int
    max_ranges_per_stage: int
    max_name_length: int
    max_overhead_us: float
    max_ns_per_byte: float
    min_message_bytes: int
    max_message_bytes: int
    max_fragments: int
    max_body_bytes: int
    max_trace_bytes: int
    max_measurements: int
    max_simulation_intervals: int
    max_comparison_rows: int
    default_relative_gap: float
    default_time_limit_s: float
    max_time_limit_s: float
    max_page_size: int
    strategies: tuple[str, ...]
    workers: int
    worker_memory_bytes: int


@dataclass(frozen=True, slots=True)
class Key:
    """A key of an owner, without its secret; times are in ISO 8601, null where there is none."""

    id: str
    owner: str
    name: str
    scope: str
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    requests_per_s: int | None


@dataclass(frozen=True, slots=True)
class NewKey(Key):
    """A new key; its `secret` is sent this once."""

    secret: str


@dataclass(frozen=True, slots=True)
class Keys:
    """Every key of an owner, the newest first, revoked ones as well."""

    items: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """Who changed what: `made_by` is the name of a key, or what else acted; `before` and `after`
    are a revision, a digest or a state.
    """

    id: str
    created_at: str
    owner: str
    made_by: str
    key_id: str | None
    request: str | None
    action: str
    subject: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Readiness:
    """The database and the workers answer; `database` is null where the service wants keys."""

    status: str
    database: str | None
    workers: int
