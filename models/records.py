"""Frozen records of what is stored and is not a type of the domain: answers, compiled tables, fits
and jobs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TypedDict

from domain.fit import FitOptions, TraceFit
from domain.measurement import TraceKind
from domain.problem import FragmentLimits
from domain.solution import Status, Strategy
from domain.verification import Verification

EVERYBODY = "*"  # in the place of an owner: all of them; no owner can be called so
OWNER = "local"  # of all that is stored where nobody has to say who he is


@dataclass(frozen=True, slots=True)
class AnswerSummary:
    """What a page of stored answers shows of each; times in µs, sizes in bytes."""

    id: str
    created_at: datetime
    strategy: Strategy
    message_bytes: int
    fragments: int
    latency_us: float
    lower_bound_us: float
    relative_gap: float
    status: Status
    profile_name: str | None
    profile_revision: int | None
    name: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRecord:
    """A stored answer. `body` is the very JSON that the client was sent, byte for byte.

    The profile is a name and a number, not a reference: an answer outlives its profile. `name` and
    `note` are what its owner calls it and says of it, None where that is nothing.
    """

    id: str
    created_at: datetime
    question_digest: str
    strategy: Strategy
    message_bytes: int
    fragments: int
    latency_us: float
    lower_bound_us: float
    relative_gap: float
    status: Status
    profile_name: str | None = None
    profile_revision: int | None = None
    name: str | None = None
    note: str | None = None
    body: bytes

    def summary(self) -> AnswerSummary:
        """The same answer without its question and body."""
        return AnswerSummary(**{name: getattr(self, name) for name in AnswerSummary.__slots__})


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenAnswerRecord:
    """A stored answer about a message behind a calculation; `body` is the JSON that was sent.

    `cut_off`: time ended its search, so that it does not answer the same question again.
    """

    id: str
    created_at: datetime
    question_digest: str
    cut_off: bool
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSummary:
    """What a page shows of each compiled plan table; sizes in bytes.

    `worst_gap` is the greatest relative gap that it certifies. `profile_name` is None once the
    profile is deleted. `is_active`: its revision's lookups are answered from it.
    """

    digest: str
    id: str
    created_at: datetime
    profile_name: str | None
    profile_revision: int | None
    min_message_bytes: int
    max_message_bytes: int
    relative_gap: float
    limits: FragmentLimits
    fragment_cap: int
    worst_gap: float
    file_bytes: int
    is_active: bool = False

    def covers(self, message_bytes: int) -> bool:
        """Whether the message is in its range."""
        return self.min_message_bytes <= message_bytes <= self.max_message_bytes


@dataclass(frozen=True, slots=True)
class ActiveTable:
    """The choice of one revision, and which revision of its profile is the current one.

    `verification` is what transfers said of the revision last, None where there were none.
    """

    profile_name: str
    current_revision: int
    revision: int
    digest: str
    verification: Verification | None = None
    owner: str = OWNER


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRecord:
    """A compiled plan table: `file` by the digest of its bytes, `document` what described it.

    `question_digest` is equal exactly for questions that the same table answers.
    """

    digest: str
    id: str
    created_at: datetime
    profile_name: str | None
    profile_revision: int | None
    min_message_bytes: int
    max_message_bytes: int
    relative_gap: float
    limits: FragmentLimits
    fragment_cap: int
    worst_gap: float
    file_bytes: int
    question_digest: str
    file: bytes
    document: bytes

    def summary(self) -> TableSummary:
        """The same table without its question, file and document; active or not is not said."""
        names = (name for name in TableSummary.__slots__ if name != "is_active")
        return TableSummary(**{name: getattr(self, name) for name in names})


@dataclass(frozen=True, slots=True)
class FitRequest:
    """How a fit was asked for: enough to make it again from its traces.

    `kinds` are what the user said of each trace, in their order, None where nothing was said.
    `message_bytes` goes with the shape `narrowed`. With `is_document` the fit was given as one,
    which is then in the place of its traces: it cannot be made again.
    """

    options: FitOptions = field(default_factory=FitOptions)
    message_bytes: int | None = None
    kinds: tuple[TraceKind | None, ...] = ()
    is_document: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FitRecord:
    """A stored fit, the digests of its traces in their order, and how it was asked for.

    `request` is None for a fit of a version that did not keep it.
    """

    id: str
    created_at: datetime
    trace_digests: tuple[str, ...]
    fit: TraceFit
    request: FitRequest | None


class JobState(StrEnum):
    """Where a job stands. There is no way out of done, failed and cancelled."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_terminal(self) -> bool:
        """Whether the job has ended."""
        return self in (JobState.DONE, JobState.FAILED, JobState.CANCELLED)


class Blame(StrEnum):
    """Why a job that was running goes back into the queue, and what that counts against it.

    CRASH: its worker process ended by itself. LOSS: what ran it is gone, or was not heard of. NONE:
    stopped on purpose, or never begun.
    """

    CRASH = "crash"
    LOSS = "loss"
    NONE = "none"


MAX_CRASHES = 3  # a job whose worker process ended by itself so often has failed
MAX_LOSSES = 20  # more than crashes: a lost machine says little about the job that it ran


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """A durable job. `request` is the body that asked for it, `best` the best answer so far,
    `history` how latency and bound came about, `error` the problem document; all as JSON bytes.
    `request_digest` is equal for jobs of one question, of which an owner has one open at a time.
    `steps_done` of `steps_total` is how far it is, where that can be counted.

    `runner` is set exactly while it runs. `claim` counts how often it was taken to be run and never
    goes down: it guards each write of its runner. `pool` is where its task runs. `trace` is that of
    the request that it was accepted for, as a `traceparent` (W3C Trace Context); None without one.
    """

    id: str
    kind: str = "optimize"
    pool: str = "solve"
    owner: str = OWNER
    state: JobState = JobState.QUEUED
    request: bytes
    request_digest: str | None = None
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    not_before: datetime | None = None
    claim: int = 0
    crashes: int = 0
    losses: int = 0
    best_latency_us: float | None = None
    lower_bound_us: float | None = None
    best: bytes | None = None
    history: bytes | None = None
    steps_done: int | None = None
    steps_total: int | None = None
    answer_id: str | None = None
    error: bytes | None = None
    cancel_requested: bool = False
    runner: str | None = None
    trace: str | None = None


@dataclass(frozen=True, slots=True)
class JobEnd:
    """That a job has ended: `code` of its error or "", `run_s` since it was last begun, None where
    it was not; which one it was is no part of what is counted.
    """

    kind: str
    state: JobState
    code: str = ""
    run_s: float | None = None
    id: str = field(default="", compare=False)
    trace: str | None = field(default=None, compare=False)
    created_at: datetime | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Keep:
    """What of a kind is kept: what is younger than `age_s`, and of that the newest `count`; None
    where that does not matter.
    """

    age_s: float | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True)
class StoredBytes:
    """How many bytes all owners store together, and the one that stores the most."""

    total: int = 0
    most: int = 0


@dataclass(frozen=True, slots=True)
class Drift:
    """By how much an owner's figure is less than what is stored; `recounts` is how often it had
    been corrected by then.
    """

    owner: str
    off_bytes: int
    recounts: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """How many jobs of a kind wait, and since when the oldest of them does."""

    kind: str
    count: int
    since: datetime


class JobChanges(TypedDict, total=False):
    """What the runner of a job may write while it runs, and with its end."""

    best_latency_us: float | None
    lower_bound_us: float | None
    best: bytes | None
    history: bytes | None
    steps_done: int | None
    steps_total: int | None


@dataclass(frozen=True, slots=True)
class KeyClaim:
    """Who asks under a key; `token` is of this one request, `process` which runs it, as runners
    say it.
    """

    owner: str
    key: str
    token: str
    process: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedAnswer:
    """What was answered under a key. `fingerprint` is of the request, whose body has `body_bytes`;
    `headers` are the answer's, as JSON.
    """

    fingerprint: str
    body_bytes: int
    status: int
    headers: bytes
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecord:
    """A key: who has it and since when, when it was heard of last, and the answer once there is."""

    token: str
    process: str
    created_at: datetime
    touched_at: datetime
    answer: KeyedAnswer | None


class KeyScope(StrEnum):
    """What a key may do: `write` reads too, `admin` does all and manages the keys of its owner;
    `metrics` reads the service's counters alone.
    """

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"
    METRICS = "metrics"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKeyRecord:
    """A key of an owner: `digest` is the SHA-256 of its secret, in hexadecimal.

    `parent` is set of those that a browser was given for another key. `requests_per_s` None means
    that the service's own limit holds.
    """

    id: str
    owner: str
    name: str
    digest: str
    scope: KeyScope
    parent: str | None = None
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    requests_per_s: int | None = None


@dataclass(frozen=True, slots=True)
class ChangedBy:
    """Who acts on a store: the name of a key, or in words what else it is; empty where nobody is
    asked who he is. `key_id` and `request` are empty where there is none.
    """

    name: str = ""
    key_id: str = ""
    request: str = ""


NOBODY = ChangedBy()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRecord:
    """One change of what an owner has, and by whom: see `ChangedBy`.

    `before` and `after` are a revision, a digest or a state, None where there is none.
    """

    id: str
    created_at: datetime
    owner: str
    made_by: str
    key_id: str | None
    request: str | None
    action: str
    subject: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class RunnerRecord:
    """A process that runs jobs. `beats` goes up while it lives; `process` is which it is of its
    machine, or empty.
    """

    name: str
    beats: int
    process: str
