"""A hardware profile as its page shows it: stages, revisions with their changes, tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from shlex import quote

from app.schemas.stages import aggregate_or_none, pipeline_or_none
from app.schemas.verification import verification_out
from app.text.moments import format_minute
from app.text.numbers import format_count, format_figure, format_gap, format_percent
from app.text.units import format_time
from app.ui.html import as_html
from app.ui.parts import Column, Grid, Link, Part
from app.ui.verification import transfers_words, verified_sizes
from app.verbs.profiles import show
from app.verbs.profiles.page.revision_changes import changes_between
from app.web.forms import format_timestamp
from contract.profiles import ProfilesOut
from domain.errors import NeedsPlainStages
from domain.machine import check_plain
from domain.model import CostModel
from domain.pipeline import Pipeline
from domain.problem import FragmentLimits
from domain.profile import HardwareProfile, Revision
from domain.units import format_byte_range, format_bytes
from domain.verification import Against, ModelVerdict, Verification
from models.records import TableSummary

REVISIONS_SHOWN = 20


@dataclass(frozen=True, slots=True)
class RevisionRow:
    """One revision, where it came from, and what changed from the one before."""

    number: int
    is_current: bool
    is_shown: bool
    created: str
    origin: str
    detail: str
    fit_id: str
    changes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableRow:
    """A compiled table."""

    digest: str
    revision: int
    is_active: bool
    created: str
    range: str
    limits: str
    tolerance: str
    worst: str
    is_missed: bool
    bytes: str
    file_stem: str

    @classmethod
    def from_summary(cls, summary: TableSummary) -> TableRow:
        revision = summary.profile_revision or 0
        return cls(
            digest=summary.digest,
            revision=revision,
            is_active=summary.is_active,
            created=format_timestamp(summary.created_at),
            range=format_byte_range(summary.min_message_bytes, summary.max_message_bytes),
            limits=", ".join(format_limits(summary.limits)) or "none",
            tolerance=format_percent(summary.relative_gap),
            worst=format_gap(summary.worst_gap),
            is_missed=summary.worst_gap > summary.relative_gap,
            bytes=f"{format_count(summary.file_bytes)} B",
            file_stem=f"{summary.profile_name}-{revision}",
        )


_VERDICTS = {
    ModelVerdict.HOLDS: "The model holds: every size took what it says, within 5 %.",
    ModelVerdict.HOLDS_OFFSET: "The model holds, within 5 %, with {offset} added at every size.",
    ModelVerdict.NOT_DECIDED: "Whether the model holds was not decided.",
    ModelVerdict.DOES_NOT_HOLD: "The model does not hold here.",
}


@dataclass(frozen=True, slots=True)
class VerificationView:
    """A verification, what was transferred in words, and a table of its `sizes` as HTML; `also` are
    reasons beyond the one that its notice names.
    """

    verdict: str
    transfers: str
    stages: tuple[str, ...]
    sizes: str
    also: tuple[str, ...]

    @classmethod
    def from_verification(cls, found: Verification) -> VerificationView:
        offset = format_time(found.offset_us or 0.0)
        return cls(
            verdict=_VERDICTS[found.verdict].format(offset=offset),
            transfers=transfers_words(found.message_bytes, found.stages),
            stages=found.stages,
            sizes=as_html([verified_sizes(verification_out(found))]),
            also=tuple(reason.detail for reason in found.reasons[1:]),
        )


@dataclass(frozen=True, slots=True)
class VerifyForm:
    """How a revision is verified: the command, and the file that was sent, with what is wrong.

    `measured` are the stages that the profile was measured by; where they are not known the command
    has placeholders, `to_name`, in the place of what runs each stage.
    """

    command: str
    measured: tuple[str, ...]
    to_name: tuple[str, ...]
    sent: SentTransfers

    @classmethod
    def from_revision(
        cls,
        shown: Revision,
        measured: tuple[str, ...],
        *,
        base_url: str,
        current: int,
        sent: SentTransfers,
    ) -> VerifyForm | None:
        """Return the form of a revision; None of an aggregate, which has no stages to run, and of a
        machine, whose lanes, windows and processors no run has.
        """
        if not isinstance(shown.model, Pipeline):
            return None
        to_name = () if measured else tuple(f"STAGE_{at + 1}" for at in range(len(shown.model)))
        named = " ".join(f"--stage {quote(name)}" for name in measured or to_name)
        source, lines = f"{shown.profile}@{shown.number}", []
        if shown.number == current:  # only of this one an address has the document alone
            source = f"{shown.profile}.json"
            lines.append(f"curl -fsS {base_url}/profiles/{shown.profile} -o {source}")
        lines.append(f"sluice verify {source} {named} --bytes 1MiB --output transfers.csv")
        return cls("\n".join(lines), measured, to_name, sent)


@dataclass(frozen=True, slots=True)
class SentTransfers:
    """A file of transfers that was sent, and what is wrong with it."""

    text: str = ""
    mistake: str = ""


@dataclass(frozen=True, slots=True)
class ProfileView:
    """What profile.html is given of a profile and the revision that is looked at."""

    name: str
    number: int
    current: int
    latest: int
    created: str
    origin: str
    detail: str
    fit_id: str
    costs: str
    revisions: tuple[RevisionRow, ...]
    before: int
    verified: str
    has_failed: bool
    verification: VerificationView | None
    needs_plain: str  # why it has neither tables nor configurations, "" where it has

    @property
    def reference(self) -> str:
        """The revision that is looked at, as requests name it."""
        return f"{self.name}@{self.number}"

    @classmethod
    def from_profile(
        cls,
        profile: HardwareProfile,
        revisions: Sequence[Revision],
        shown: Revision,
        against: Against | None,
        before: int,
    ) -> ProfileView:
        """Show a profile and its revisions; those below number `before` are listed, newest first.

        `against` is what was measured for or against the one that is looked at.
        `before` 0 lists from the newest on. `ProfileView.before` is where the list goes on, or 0.
        """
        known = [revision for revision in revisions if not before or revision.number < before]
        cut = known[-REVISIONS_SHOWN:]
        rows = _rows(known[-REVISIONS_SHOWN - 1 :], current=profile.current.number, shown=shown)
        provenance = shown.provenance
        return cls(
            name=profile.name,
            number=shown.number,
            current=profile.current.number,
            latest=profile.latest,
            created=format_timestamp(shown.created_at),
            origin=show.ORIGINS[provenance.origin.value],
            detail=show.shortened(provenance.detail),
            fit_id=provenance.fit_id or "",
            costs=as_html(stage_costs(shown.model)),
            revisions=tuple(reversed(rows[-len(cut) :])) if cut else (),
            before=cut[0].number if len(known) > len(cut) else 0,
            verified=against.notice().detail if against else "",
            has_failed=against is not None and against.has_failed,
            verification=(
                VerificationView.from_verification(shown.verification)
                if shown.verification
                else None
            ),
            needs_plain=_needs_plain(shown.model),
        )


def _needs_plain(model: CostModel) -> str:
    """Why a model has neither tables nor configurations, "" where it has."""
    try:
        check_plain(model, "profile")
    except NeedsPlainStages as refusal:
        return refusal.detail
    return ""


def listed(profiles: ProfilesOut) -> Grid:
    """Return profiles with links to their pages, and to the workbench with each."""
    found = show.listing(profiles)
    name, revision, stages, origin = found.columns
    columns = (
        name,
        revision,
        stages,
        Column("revised", is_number=False),
        Column("use", is_number=False),
        replace(origin, is_list=True),
    )
    rows = (
        (
            Link(item.name, f"/ui/profiles/{item.name}"),
            *cells[1:3],
            format_minute(item.revised_at),
            Link(
                "Optimise",
                f"/?profile={item.name}@{item.revision}",
                f" a message with {item.name}",
            ),
            cells[3],
        )
        for item, cells in zip(profiles.items, found.rows, strict=True)
    )
    return Grid(columns, tuple(rows), "Hardware profiles by name")


def stage_costs(model: CostModel) -> Iterator[Part]:
    """Yield the costs of the stages with their rates, and what is said of them."""
    pipeline, aggregate = pipeline_or_none(model), aggregate_or_none(model)
    stages = pipeline.stages if pipeline else ()
    if aggregate:
        stages = (aggregate.total, aggregate.bottleneck)
    rates = tuple(
        format_figure(1.0 / line.ns_per_byte) if line.ns_per_byte else "∞"
        for stage in stages
        for line in stage.parts
    )
    for part in show.costs(pipeline, aggregate):
        yield _with_rates(part, rates) if isinstance(part, Grid) else part


def _with_rates(grid: Grid, rates: tuple[str, ...]) -> Grid:
    first, _, _, *ranges = grid.columns
    headings = (first, Column("overhead, µs"), Column("cost, ns/byte"), *ranges)
    rows = tuple((*cells, rate) for cells, rate in zip(grid.rows, rates, strict=True))
    return Grid((*headings, Column("rate, GB/s")), rows, _CAPTIONS[first.heading])


_CAPTIONS = {
    "stage": "Stages in the order that a fragment passes them",
    "seen from outside": "Stages, as far as they are known from outside",
}


def format_limits(limits: FragmentLimits) -> Iterator[str]:
    """Yield the limits that exclude anything."""
    if limits.min_fragment_bytes > 1:
        yield f"at least {format_bytes(limits.min_fragment_bytes)}"
    if limits.max_fragment_bytes is not None:
        yield f"at most {format_bytes(limits.max_fragment_bytes)}"
    if limits.alignment_bytes > 1:
        yield f"multiples of {format_bytes(limits.alignment_bytes)}"
    if limits.max_fragments is not None:
        yield f"at most {format_count(limits.max_fragments)} fragments"


def _rows(revisions: Sequence[Revision], *, current: int, shown: Revision) -> list[RevisionRow]:
    """Return the revisions, oldest first; the first one's changes are against none."""
    first = [_row(revision, (), current=current, shown=shown) for revision in revisions[:1]]
    return first + [
        _row(
            new, changes_between(old.model, new.model) or ("nothing",), current=current, shown=shown
        )
        for old, new in pairwise(revisions)
    ]


def _row(
    revision: Revision, changes: tuple[str, ...], *, current: int, shown: Revision
) -> RevisionRow:
    provenance = revision.provenance
    return RevisionRow(
        number=revision.number,
        is_current=revision.number == current,
        is_shown=revision.number == shown.number,
        created=format_timestamp(revision.created_at),
        origin=show.ORIGINS[provenance.origin.value],
        detail=show.shortened(provenance.detail),
        fit_id=provenance.fit_id or "",
        changes=changes,
    )
