"""What the service answers of profiles and of their compiled tables."""

from __future__ import annotations

from dataclasses import dataclass

from sluice_client.fit_answers import Notice, ProfileRevision
from sluice_client.shapes import Aggregate, Constraints, Pipeline
from sluice_client.uncertainty import SettingsInDraws


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where the stages of a revision came from."""

    origin: str
    detail: str
    fit_id: str | None


@dataclass(frozen=True, slots=True)
class VerifiedSize:
    """One fragment size: the latency predicted, and the median measured with its 95 % interval."""

    fragment_bytes: int
    fragments: int
    predicted_us: float
    measured_us: float
    measured_us_interval: tuple[float, float]
    ratio: float
    runs: int


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether a profile's model holds on the machine, by transfers over its stages.

    `verified_at` is when that was stored (RFC 3339), None where the service does not say it.
    """

    verdict: str
    detail: str
    offset_us: float | None
    message_bytes: int
    stages: tuple[str, ...]
    sizes: tuple[VerifiedSize, ...]
    reasons: tuple[Notice, ...]
    verified_at: str | None = None


@dataclass(frozen=True, slots=True)
class Revision:
    """One immutable revision of a profile; `warnings` are what was measured for or against it."""

    revision: int
    is_current: bool
    created_at: str
    pipeline: Pipeline | None
    aggregate: Aggregate | None
    provenance: Provenance
    verification: Verification | None = None
    warnings: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile at its current revision."""

    name: str
    revision: int
    latest_revision: int
    created_at: str
    revised_at: str
    pipeline: Pipeline | None
    aggregate: Aggregate | None
    provenance: Provenance
    verification: Verification | None = None


@dataclass(frozen=True, slots=True)
class Revisions:
    """Every revision of a profile, in order."""

    name: str
    revisions: tuple[Revision, ...]


# --- compiled tables ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProvenRange:
    """Message sizes, inclusive, and the greatest relative gap that is certified among them."""

    from_bytes: int
    to_bytes: int
    relative_gap: float


@dataclass(frozen=True, slots=True)
class CountRun:
    """Message sizes, inclusive, whose cut has this number of fragments."""

    from_bytes: int
    to_bytes: int
    fragments: int


@dataclass(frozen=True, slots=True)
class CompiledTable:
    """A description of a compiled table; of long lists the first, and how many there are.

    `uncertainty` is None where nothing is known of the costs' errors, and in tables of earlier
    versions.
    """

    digest: str
    created_at: str
    profile: ProfileRevision | None
    min_message_bytes: int
    max_message_bytes: int
    relative_gap: float
    constraints: Constraints
    fragment_cap: int
    pipeline: Pipeline
    file_bytes: int
    cut_entries: int
    repeat_entries: int
    worst: ProvenRange
    worst_repeat: ProvenRange
    missed: tuple[ProvenRange, ...]
    missed_total: int
    missed_bytes: int
    unrepeatable_bytes: int
    counts: tuple[CountRun, ...]
    counts_total: int
    compile_ms: float
    warnings: tuple[Notice, ...]
    uncertainty: SettingsInDraws | None = None


@dataclass(frozen=True, slots=True)
class TableSummary:
    """What a page shows of a compiled table; lookups are answered from it where it is `active`."""

    digest: str
    created_at: str
    profile: ProfileRevision
    min_message_bytes: int
    max_message_bytes: int
    relative_gap: float
    constraints: Constraints
    fragment_cap: int
    worst_relative_gap: float
    file_bytes: int
    active: bool = False
    warnings: tuple[Notice, ...] = ()
