"""Hardware profiles: find, create, revise, roll back, verify, delete; and the published ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from app.questions.fits import (
    FitReference,
    GivenFit,
    contradicts,
    keep_given,
    provenance_of,
    with_contradiction,
)
from app.questions.source import Stored
from domain.errors import Conflict, InvalidInput, NotFound
from domain.machine import check_plain
from domain.pipeline import Pipeline, pipeline_of_lines
from domain.profile import (
    HardwareProfile,
    Origin,
    ProfileReference,
    Provenance,
    Revision,
    check_profile_name,
)
from domain.units import ns_per_byte_from_mb_per_s, ns_per_byte_from_us_per_kb

if TYPE_CHECKING:
    from domain.fit import TraceFit
    from domain.model import CostModel
    from domain.verification import Against, Verification
    from measuring.transfers import RecordedTransfers
    from models.session import Store, UnitOfWork


# What a revision holds: costs that were typed, or a fit.
Costs: TypeAlias = "CostModel | FitReference | GivenFit"
# What is checked of a profile before it is changed, and what is stored with the change.
Expected: TypeAlias = Callable[[HardwareProfile], None]
Then: TypeAlias = Callable[["UnitOfWork", HardwareProfile], None]


def nothing(*_: object) -> None:
    """Check nothing, store nothing more."""


@dataclass(frozen=True, slots=True)
class ProfilePage:
    """One page of profiles by name; `after` is where the next one starts, None at the end."""

    profiles: tuple[HardwareProfile, ...]
    after: str | None


def list_profiles(
    store: Store, *, containing: str = "", after: str | None = None, limit: int = 50
) -> ProfilePage:
    """Return profiles in the order of their names; those whose names contain a text, if given."""
    with store.reading() as unit:
        found = tuple(unit.profiles.list(containing=containing, after=after, limit=limit + 1))
    return ProfilePage(found[:limit], found[limit - 1].name if len(found) > limit else None)


def get_profile(store: Store, name: str) -> HardwareProfile:
    """Return the profile of this name. Raises NotFound."""
    with store.reading() as unit:
        return unit.profiles.get(known_name(name))


def get_revision(store: Store, reference: ProfileReference) -> Revision:
    """Return the revision that a reference names. Raises NotFound."""
    with store.reading() as unit:
        return unit.profiles.revision(reference.name, reference.revision)


def create_profile(
    store: Store, name: str, costs: Costs, *, detail: str = "", then: Then = nothing
) -> HardwareProfile:
    """Return a new profile with revision 1. Raises InvalidInput for the name, Conflict, and
    NotFound for a fit that is not stored.
    """
    check_profile_name(name)
    with store.unit_of_work() as unit:
        profile = unit.profiles.create(name, *_with_origin(unit, costs, detail))
        then(unit, profile)
        return profile


def revise_profile(
    store: Store, name: str, costs: Costs, *, detail: str = "", expected: Expected = nothing
) -> HardwareProfile:
    """Add a revision, which becomes current. Raises NotFound, and what `expected` raises for the
    profile as it is.
    """
    with store.unit_of_work() as unit:
        expected(unit.profiles.lock(known_name(name)))
        model, provenance = _with_origin(unit, costs, detail)
        if provenance.fit_id is not None:
            found = contradicts(unit, name, unit.fits.fit(provenance.fit_id))
            provenance = with_contradiction(provenance, found)
        return unit.profiles.add_revision(known_name(name), model, provenance)


def _with_origin(unit: UnitOfWork, costs: Costs, detail: str) -> tuple[CostModel, Provenance]:
    """The model, and where it came from: a fit, which is stored with it, or whoever typed it."""
    if not isinstance(costs, FitReference | GivenFit):
        return costs, Provenance(Origin.GIVEN, detail)
    fit_id = keep_given(unit, costs) if isinstance(costs, GivenFit) else costs.fit_id
    record = Stored.of_unit(unit).fit(fit_id)
    found = provenance_of(record)
    return record.fit.to_model(), replace(found, detail=detail or found.detail)


def list_revisions(store: Store, name: str) -> tuple[HardwareProfile, tuple[Revision, ...]]:
    """Return the profile and every revision of it. Raises NotFound."""
    with store.reading() as unit:
        profile = unit.profiles.get(known_name(name))
        return profile, tuple(unit.profiles.revisions(name))


def set_current(
    store: Store, name: str, revision: int, *, expected: Expected = nothing, then: Then = nothing
) -> HardwareProfile:
    """Make an existing revision the current one. Raises NotFound, and what `expected` raises."""
    with store.unit_of_work() as unit:
        expected(unit.profiles.lock(known_name(name)))
        profile = unit.profiles.set_current(name, revision)
        then(unit, profile)
        return profile


def delete_profile(store: Store, name: str, *, expected: Expected = nothing) -> None:
    """Delete a profile and its revisions; answers that name it stay. Raises NotFound, and what
    `expected` raises.
    """
    with store.unit_of_work() as unit:
        expected(unit.profiles.lock(known_name(name)))
        unit.profiles.delete(known_name(name))


def known_name(name: str) -> str:
    """Return the name, if a profile may have it. Raises NotFound for any other."""
    try:
        check_profile_name(name)
    except InvalidInput:
        raise NotFound("there is no profile of this name", field="profile") from None
    return name


def known_reference(text: str) -> ProfileReference:
    """Return the profile or revision that this can name. Raises NotFound."""
    try:
        return ProfileReference.parse(text)
    except InvalidInput:
        raise NotFound("there is no profile of this name", field="profile") from None


# --- verifications: transfers over the stages of a model, recorded where they are -----------------


MAX_BLOCKS = 1_000_000  # fragments x stages of all sizes: 0.1 s of processor time
_MIN_LATENCY_US = 0.001  # below it transfers are not written down
_HEADER_BYTES = 4096  # of a file, with its first lines
_HEAD_CHARACTERS = 65_536  # with its columns, behind lines as long as they may be


def recorded_verification(
    store: Store, reference: ProfileReference, recorded: RecordedTransfers
) -> tuple[Revision, Verification]:
    """Return what recorded transfers say of a revision's model; nothing is stored.

    Raises NotFound, InvalidInput and NotMeasurable.
    """
    revision = get_revision(store, reference)
    blocks = sum(-(-recorded.message_bytes // size) for size in recorded.runs)
    if blocks * max(len(recorded.stages), len(revision.model.stages or ())) > MAX_BLOCKS:
        raise InvalidInput(
            f"expected at most {MAX_BLOCKS} fragments through all stages, of all sizes together",
            field="recorded",
        )
    with store.reading() as unit:
        stages = stages_measured(unit, revision)
    return revision, verification_by(revision.model, recorded, stages=stages)


@dataclass(frozen=True, slots=True)
class VerifiedRevision:
    """A revision with its new verification, the number of the current one, and what was measured
    for or against it until now.
    """

    revision: Revision
    current: int
    against: Against | None


@dataclass(frozen=True, slots=True)
class RecordedWork:
    """The text of a file that `sluice verify` writes, or of one of own transfers."""

    text: str

    def read(self) -> RecordedTransfers:
        """Read. Raises as `recorded_transfers`."""
        return recorded_transfers(self.text)


def recorded_transfers(text: str) -> RecordedTransfers:
    """Return the transfers in a file that `sluice verify` has written, or in one of a user's own,
    of which no stage is known. Raises UnreadableTrace.
    """
    from fitting.own_transfers import is_own_transfers, read_own_file
    from measuring.transfers import read_transfers, recorded_of

    facts = first_lines(text[:_HEADER_BYTES].encode())
    has_stages = "stages" in facts or "_occupied_us" in text[:_HEAD_CHARACTERS]
    if has_stages or not is_own_transfers(text):
        return read_transfers(text)
    transfers = read_own_file(text).transfers
    times = ((row.fragment_bytes, row.latency_us or 0.0) for row in transfers.usable)
    return recorded_of(transfers.message_bytes, times, facts)


def keep_verification(
    store: Store,
    revision: Revision,
    found: Verification,
    *,
    then: Callable[[UnitOfWork, VerifiedRevision], None] = nothing,
) -> VerifiedRevision:
    """Store a verification with its revision, in the place of an earlier one. Raises NotFound."""
    with store.unit_of_work() as unit:
        kept = unit.profiles.verify(revision.profile, revision.number, found)
        current = unit.profiles.get(kept.profile).current.number
        verified = VerifiedRevision(kept, current, Stored.of_unit(unit).against(kept))
        then(unit, verified)
        return verified


def verification_by(
    model: CostModel, recorded: RecordedTransfers, *, stages: Sequence[str] = ()
) -> Verification:
    """Return what transfers say of a model, whose stages were measured as these where it is known.

    Raises InvalidInput and NotMeasurable.
    """
    from measuring.verdict import verdict_on

    check_plain(model, "source")
    if not isinstance(model, Pipeline):
        raise InvalidInput(
            "expected a pipeline: of an aggregate no stage is known that could be run",
            field="source",
        )
    if recorded.stages and len(recorded.stages) < len(model):
        raise InvalidInput(
            f"the model has {len(model)} stages, and {len(recorded.stages)} were run",
            field="recorded",
        )
    # Where a stage runs follows a colon: that may differ.
    if stages and recorded.stages and [*map(_kind, stages)] != [*map(_kind, recorded.stages)]:
        raise InvalidInput(
            f"the model was measured by {', '.join(stages)}, and the transfers are of "
            f"{', '.join(recorded.stages)}",
            field="recorded",
        )
    processors = _processors_of(recorded)
    if model.latency_us((recorded.message_bytes,)) < _MIN_LATENCY_US:
        raise InvalidInput("of this model a transfer takes no time", field="source")
    return verdict_on(
        model,
        recorded.message_bytes,
        recorded.runs,
        stages=recorded.stages,
        processors=processors,
        load=recorded.load,
    )


def _processors_of(recorded: RecordedTransfers) -> int | None:
    """How many processors the stages had; None where none was timed. Raises InvalidInput."""
    if not recorded.stages:
        return None
    processors = recorded.facts.get("processors", "")
    if not re.fullmatch("[1-9][0-9]{0,5}|1000000", processors, re.ASCII):
        raise InvalidInput("the file does not say how many processors there were", field="recorded")
    return int(processors)


def _kind(stage: str) -> str:
    return stage.partition(":")[0]


def stages_measured(unit: UnitOfWork, revision: Revision) -> tuple[str, ...]:
    """Return what the files of a revision's fit say that they time; none where one does not."""
    fit_id = revision.provenance.fit_id
    if fit_id is None:
        return ()
    record = unit.fits.get(fit_id)
    digests = list(record.trace_digests)
    composed = record.request.options.composed if record.request else ()
    counts = [stage.files for stage in composed] or [1] * len(digests)
    firsts = [digests[sum(counts[:place])] for place in range(len(counts))]
    found = [
        first_lines(next(iter(unit.traces.packed(digest).pieces()), b"")).get("stage", "")
        for digest in firsts
    ]
    return tuple(found) if all(found) else ()


def smallest_measured(unit: UnitOfWork, revision: Revision) -> int:
    """Return the least fragment in bytes that every stage of a revision was measured at, or 1."""
    fit_id = revision.provenance.fit_id
    return smallest_of(unit.fits.get(fit_id).fit) if fit_id is not None else 1


def smallest_of(fit: TraceFit) -> int:
    """Return the least size in bytes that every stage of a fit was measured at; 1 without any."""
    return (fit.measured_bytes or (1, 1))[0]


def first_lines(content: bytes) -> dict[str, str]:
    """Return the first lines of a measurement, `# name: value`."""
    found = {}
    for line in content[:_HEADER_BYTES].decode(errors="replace").splitlines():
        name, colon, value = line.removeprefix("# ").partition(": ")
        if not line.startswith("# ") or not colon:
            break
        found[name] = value
    return found


# --- the published pipelines, which a store holds from its first start ----------------------------


# (stage, overhead in µs, per-byte cost in µs per KB)
TABLE_1 = (
    ("sender copy", 7.2, 7.2),
    ("sender host DMA", 5.2, 24.9),
    ("network DMAs and receiver host DMA", 7.5, 24.9),
    ("receiver copy", 7.4, 7.9),
)
TABLE_3 = (
    ("server DMA", 2.1, 25.6),
    ("wire", 4.0, 60.1),
    ("requester DMA", 2.1, 25.6),
    ("requester CPU", 92.8, 26.2),
)
# Name, overhead (µs), cost (ns per byte) of Trapeze's stages: the two that hand bytes on, the last.
TRAPEZE = (
    ("bus read", 4.4, 7.8125),
    ("link", 1.0, 9.7),
    ("bus write", 2.35, 15.625),
)
TRAPEZE_RATES = (
    ("bus read", 0.0, 7.8125),
    ("link", 0.0, 7.8125),
    ("bus write", 0.0, 15.625),
)
TRAPEZE_DELAY_US = 27.0
DISK_OVERHEAD_US = 4000.0
DISK_MB_PER_S = 5.0
SLOWER_NETWORK = 5.0


@dataclass(frozen=True, slots=True)
class PaperProfile:
    """A profile's name, its pipeline, and where it was published."""

    name: str
    pipeline: Pipeline
    source: str

    @property
    def hands_on(self) -> bool:
        """Whether stages hand bytes on as they move, which a cut of all stages alike never sees."""
        return any(stage.handoff_bytes is not None for stage in self.pipeline.stages)


def paper_profiles() -> tuple[PaperProfile, ...]:
    """Return all of them."""
    network = _lines(TABLE_1, bytes_per_kb=1000, scale=SLOWER_NETWORK)
    back = _lines(TABLE_1, bytes_per_kb=1000, scale=SLOWER_NETWORK, suffix=" (second network)")
    disk_ns = ns_per_byte_from_mb_per_s(DISK_MB_PER_S, bytes_per_mb=10**6)
    disk = ("disk", DISK_OVERHEAD_US, disk_ns)
    study = "Wang et al. 1998, section 5.5 and Figure 14"
    return (
        PaperProfile(
            "myrinet-gam",
            pipeline_of_lines(_lines(TABLE_1, bytes_per_kb=1024)),
            "Wang et al. 1998, Table 1; 1 KB = 1024 bytes",
        ),
        PaperProfile(
            "gms",
            pipeline_of_lines(_lines(TABLE_3, bytes_per_kb=1024)),
            "Wang et al. 1998, Table 3; 1 KB = 1024 bytes",
        ),
        PaperProfile(
            "disk-study",
            pipeline_of_lines([*network, disk]),
            f"{study}; network 5 x Table 1, then a disk; 1 KB = 1000 bytes, 1 MB = 10^6 bytes",
        ),
        PaperProfile(
            "disk-study-two-networks",
            pipeline_of_lines([*network, disk, *back]),
            f"{study}; the disk between two networks; 1 KB = 1000 bytes, 1 MB = 10^6 bytes",
        ),
        PaperProfile(
            "trapeze",
            _handing_on(TRAPEZE, delay_us=TRAPEZE_DELAY_US),
            "Yocum et al. 1997, sections 4.1 and 4.2: bus rates and delay as published; set-ups "
            "and the link's rate fitted to the latencies there, not measured",
        ),
        PaperProfile(
            "trapeze-rates",
            _handing_on(TRAPEZE_RATES, delay_us=0.0),
            "Yocum et al. 1997, section 4.4: the published rates alone, without set-ups",
        ),
    )


def seed_paper_profiles(store: Store) -> tuple[str, ...]:
    """Store those that are absent and return their names. What a user changed is left alone."""
    return tuple(profile.name for profile in _absent(store) if _added(store, profile))


def _absent(store: Store) -> Iterator[PaperProfile]:
    for profile in paper_profiles():
        with store.reading() as unit:
            try:
                unit.profiles.get(profile.name)
            except NotFound:
                missing = True
            else:
                missing = False
        if missing:
            yield profile


def _added(store: Store, profile: PaperProfile) -> bool:
    from models.records import ChangedBy

    provenance, seeding = Provenance(Origin.PAPER, profile.source), ChangedBy("start")
    try:
        with store.of(store.owner, seeding).bounded(None).unit_of_work() as unit:
            unit.profiles.create(profile.name, profile.pipeline, provenance)
    except Conflict:  # another process that starts at the same time was first
        return False
    return True


def _handing_on(rows: tuple[tuple[str, float, float], ...], *, delay_us: float) -> Pipeline:
    """Stages of which all but the last hand on each byte as it moves."""
    *before, last = pipeline_of_lines(rows).stages
    return Pipeline((*(replace(stage, handoff_bytes=1) for stage in before), last), delay_us)


def _lines(
    rows: tuple[tuple[str, float, float], ...],
    *,
    bytes_per_kb: int,
    scale: float = 1.0,
    suffix: str = "",
) -> list[tuple[str, float, float]]:
    return [
        (
            name + suffix,
            scale * overhead_us,
            ns_per_byte_from_us_per_kb(scale * us_per_kb, bytes_per_kb=bytes_per_kb),
        )
        for name, overhead_us, us_per_kb in rows
    ]
