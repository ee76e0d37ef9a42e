"""Compiled tables of a profile: the form, a compilation while it runs, and a table's own page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from app.jobs.ledger import get_job, running_jobs
from app.operations.operation import OperationKind
from app.questions.tables import TableScope, list_tables
from app.schemas.base import read_output, read_request
from app.schemas.jobs import elapsed_s, problem_of, revision_asked
from app.text.numbers import format_count, format_gap, format_percent, format_size
from app.text.units import OF_MODEL
from app.ui.addresses import in_path
from app.ui.fields import FieldReader
from app.web.jobs.work import WorkPlace, WorkView, format_seconds
from contract.jobs import TableJobIn
from contract.limits import DEFAULT_TABLE_GAP, DEFAULT_TABLE_MESSAGE_BYTES
from contract.problem import ProblemOut
from contract.table import GapRangeOut, TableIn, TableOut
from domain.errors import NotFound, SluiceError, UnreadableRecord
from domain.units import format_byte_range, format_bytes, parse_share
from domain.verification import Against, said_of
from models.records import JobRecord, JobState, TableSummary

if TYPE_CHECKING:
    from models.session import Store


_FIELDS = {
    "min_message_bytes": "min_message",
    "max_message_bytes": "max_message",
    "relative_gap": "tolerance",
    "min_fragment_bytes": "min",
    "max_fragment_bytes": "max",
    "alignment_bytes": "align",
    "max_fragments": "max_fragments",
}


@dataclass(frozen=True, slots=True)
class TableForm:
    """What to compile, as typed. `mistakes` is by the field's name, "" for what fits none."""

    min_message: str = "1 B"
    max_message: str = format_bytes(DEFAULT_TABLE_MESSAGE_BYTES)
    tolerance: str = f"{100.0 * DEFAULT_TABLE_GAP:g} %"
    min: str = ""
    max: str = ""
    align: str = ""
    max_fragments: str = ""
    activate: str = ""
    mistakes: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_limits(self) -> bool:
        """Whether a limit was given, so that they are shown open."""
        return any((self.min, self.max, self.align, self.max_fragments))

    @classmethod
    def of(cls, given: Mapping[str, str]) -> TableForm:
        """Return the form as it was sent."""
        texts = {name: given.get(name, "").strip() for name in (*_FIELDS.values(), "activate")}
        return cls(mistakes={}, **texts)

    def scope(self) -> tuple[TableScope | None, TableForm]:
        """Return what is to be compiled, or None and the form with its mistakes."""
        reader = FieldReader({one: getattr(self, one) for one in _FIELDS.values()})
        min_message, max_message = reader.size("min_message") or 1, reader.size("max_message")
        tolerance = reader.read("tolerance", parse_share)
        limits = reader.limits()
        if reader.mistakes:
            return None, replace(self, mistakes=reader.mistakes)
        gap = DEFAULT_TABLE_GAP if tolerance is None else tolerance
        try:
            return TableScope(
                limits, min_message, max_message or DEFAULT_TABLE_MESSAGE_BYTES, gap
            ), self
        except SluiceError as refusal:
            return None, self.refused(refusal)

    @classmethod
    def of_request(cls, asked: TableIn) -> TableForm:
        """Return the form as a job was asked."""
        given = {**vars(asked), **vars(asked.constraints)}
        texts = {name: _text(given[key], name) for key, name in _FIELDS.items()}
        return cls(activate="yes" if asked.activate else "", mistakes={}, **texts)

    def failed(self, problem: ProblemOut) -> TableForm:
        """Return the form with why a job failed."""
        found = {
            _FIELDS.get(one.pointer.rpartition("/")[2], ""): one.detail for one in problem.errors
        }
        return replace(self, mistakes={name: words for name, words in found.items() if name})

    def refused(self, refusal: SluiceError) -> TableForm:
        """Return the form with what was refused."""
        name = _FIELDS.get((refusal.field or "").rpartition(".")[2], "")
        return replace(self, mistakes={name: refusal.detail})


def _text(value: float | None, name: str) -> str:
    """Return a field's text; what excludes nothing is left empty."""
    if value is None or (name in ("min", "align") and value == 1):
        return ""
    if name == "tolerance":
        return f"{100.0 * value:.12g} %"
    return str(value) if name == "max_fragments" else format_bytes(int(value))


# --- a compilation while it runs and once it is done ----------------------------------------------


PLACE = "/ui/profiles"
INTO = "#tables"
FORM = "compile-form"


@dataclass(frozen=True, slots=True)
class Compiled:
    """The notice about a table that was just compiled; `missed` where it misses its tolerance."""

    title: str
    words: str
    digest: str
    missed: str


@dataclass(frozen=True, slots=True)
class TableWork:
    """The compilation that an address names: `work` unless it is done, and `compiled` if it is."""

    form: TableForm
    work: WorkView | None
    compiled: Compiled | None


@dataclass(frozen=True, slots=True)
class RunningCompilation:
    """A compilation that runs, and where it is shown."""

    id: str
    words: str
    address: str


def work_address(reference: str, identifier: str) -> str:
    """Return the page of a profile with this compilation."""
    return f"{PLACE}/{in_path(reference)}?work={identifier}{INTO}"


def table_work(store: Store, name: str, identifier: str) -> TableWork | None:
    """Return the compilation of this identifier for this profile, or None. Blocks."""
    try:
        job = get_job(store, identifier)
    except NotFound:
        return None
    if job.kind != OperationKind.TABLE:
        return None
    asked = read_request(TableJobIn, job.request)
    if revision_asked(asked).name != name:
        return None
    form = TableForm.of_request(asked)
    if job.state is JobState.DONE and job.best is not None:
        try:
            table = read_output(TableOut, job.best)
        except UnreadableRecord as refusal:
            return TableWork(form.refused(refusal), None, None)
        tables = list_tables(store, name, revision=revision_asked(asked).revision, limit=50)
        return TableWork(TableForm(), None, _compiled(job, table, tables.summaries))
    if problem := problem_of(job):
        form = form.failed(problem)
    place = WorkPlace(
        title=f"Compiling {format_table_range(asked)}",
        here=work_address(asked.profile, job.id),
        part=work_address(asked.profile, job.id).removesuffix(INTO),
        into=INTO,
        again_form=FORM,
    )
    return TableWork(form, WorkView.of(job, place), None)


def running_tables(store: Store, name: str, shown: str) -> tuple[RunningCompilation, ...]:
    """Return the running compilations for this profile, but for the one shown. Blocks."""
    found = []
    for job in running_jobs(store, OperationKind.TABLE):
        asked = read_request(TableJobIn, job.request)
        if job.id != shown and revision_asked(asked).name == name:
            words = f"{format_table_range(asked)} for revision {revision_asked(asked).revision}"
            found.append(RunningCompilation(job.id, words, work_address(asked.profile, job.id)))
    return tuple(found)


def format_table_range(range: TableIn | TableOut) -> str:
    """Return the messages of a table."""
    return format_byte_range(range.min_message_bytes, range.max_message_bytes)


def format_missed(table: TableOut) -> str:
    """Return by how much a table misses its tolerance; "" where it keeps it."""
    if not table.missed_total:
        return ""
    worst, asked = table.worst, format_percent(table.relative_gap)
    return (
        f"It misses its tolerance of {asked} for {format_count(table.missed_bytes)} message "
        f"sizes: proven {OF_MODEL} is {format_gap(worst.relative_gap)} at worst, at "
        f"{format_gap_range(worst)}."
    )


def format_gap_range(one: GapRangeOut) -> str:
    """Return message sizes, inclusive."""
    first, last = one.from_bytes, one.to_bytes
    return format_bytes(first) if first == last else format_byte_range(first, last)


def _compiled(job: JobRecord, table: TableOut, tables: tuple[TableSummary, ...]) -> Compiled:
    revision = table.profile.revision if table.profile else 0
    active = next((one.digest for one in tables if one.is_active), "")
    if active == table.digest:
        words = f"Lookups of revision {revision} answer from it now."
        if len(tables) == 1:
            words = f"It is the first of revision {revision}, so lookups answer from it now."
    else:
        words = f"Lookups of revision {revision} still answer from the active one."
    took = format_seconds(elapsed_s(job))
    title = f"{format_table_range(table)} is compiled, in {took}."
    return Compiled(title, words, table.digest, format_missed(table))


# --- a compiled table on a page of its own --------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MissedLine:
    """Message sizes whose schedules are not proven to the tolerance."""

    range: str
    proven: str


@dataclass(frozen=True, slots=True)
class TableView:
    """What templates/profile_table.html is given. `more` is how many ranges are not listed."""

    reference: str
    digest: str
    range: str
    tolerance: str
    worst: str
    worst_repeat: str
    entries: str
    file: str
    missed: str
    lines: tuple[MissedLine, ...]
    more: str
    warnings: tuple[str, ...]
    is_active: bool
    said: str
    has_failed: bool

    @classmethod
    def of(cls, table: TableOut, against: Against | None, *, is_active: bool) -> TableView:
        said = said_of(against)
        lines = table.missed
        more = table.missed_total - len(lines)
        return cls(
            reference=table.profile.reference if table.profile else "",
            digest=table.digest,
            range=format_table_range(table),
            tolerance=format_percent(table.relative_gap),
            worst=_worst(table.worst),
            worst_repeat=_worst(table.worst_repeat),
            entries=f"{format_count(table.cut_entries)} cuts, "
            f"{format_count(table.repeat_entries)} repeated sizes",
            file=format_size(table.file_bytes),
            missed=format_missed(table),
            lines=tuple(_missed(one) for one in lines),
            more=format_count(more) if more else "",
            warnings=tuple(one.detail for one in table.warnings),
            is_active=is_active,
            said=said.detail if said else "",
            has_failed=against is not None and against.has_failed,
        )


def _missed(one: GapRangeOut) -> MissedLine:
    return MissedLine(format_gap_range(one), format_gap(one.relative_gap))


def _worst(one: GapRangeOut) -> str:
    return f"{format_gap(one.relative_gap)}, at {format_gap_range(one)}"
