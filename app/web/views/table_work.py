"""A compilation on its profile's page: while it runs, and what look-ups do once it is there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.flows.build_table import list_tables
from app.jobs.ledger import get_job, running_jobs
from app.operations.operation import OperationKind
from app.schemas.base import read_output, read_request
from app.schemas.job_requests import TableJobIn
from app.schemas.jobs import elapsed_s, problem_of
from app.schemas.tables import GapRangeOut, TableIn, TableOut
from app.text.numbers import format_count, format_gap, format_percent
from app.web.views.listed import in_path
from app.web.views.table_form import TableForm
from app.web.views.work_view import WorkPlace, WorkView, seconds_words
from domain.errors import NotFound, UnreadableRecord
from domain.units import format_bytes
from models.records import JobRecord, JobState, TableSummary

if TYPE_CHECKING:
    from models.session import Store

PLACE = "/ui/profiles"
INTO = "#tables"
FORM = "compile-form"


@dataclass(frozen=True, slots=True)
class Compiled:
    """What is said of a table that was just compiled; `missed` where it misses its tolerance."""

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
class Running:
    """A compilation that runs, and where it is shown."""

    id: str
    words: str
    address: str


def work_address(reference: str, identifier: str) -> str:
    """The page of a profile with this compilation."""
    return f"{PLACE}/{in_path(reference)}?work={identifier}{INTO}"


def table_work(store: Store, name: str, identifier: str) -> TableWork | None:
    """The compilation for this profile; None where there is none of this identifier. Blocks."""
    try:
        job = get_job(store, identifier)
    except NotFound:
        return None
    if job.kind != OperationKind.TABLE:
        return None
    asked = read_request(TableJobIn, job.request)
    if asked.reference.name != name:
        return None
    form = TableForm.of_request(asked)
    if job.state is JobState.DONE and job.best is not None:
        try:
            table = read_output(TableOut, job.best)
        except UnreadableRecord as refusal:
            return TableWork(form.refused(refusal), None, None)
        tables = list_tables(store, name, revision=asked.reference.revision, limit=50)
        return TableWork(TableForm(), None, _compiled(job, table, tables.summaries))
    if problem := problem_of(job):
        form = form.failed(problem)
    place = WorkPlace(
        title=f"Compiling {range_words(asked)}",
        here=work_address(asked.profile, job.id),
        part=work_address(asked.profile, job.id).removesuffix(INTO),
        into=INTO,
        again_form=FORM,
    )
    return TableWork(form, WorkView.of(job, place), None)


def running_tables(store: Store, name: str, shown: str) -> tuple[Running, ...]:
    """The compilations for this profile that run, besides the one that is shown. Blocks."""
    found = []
    for job in running_jobs(store, OperationKind.TABLE):
        asked = read_request(TableJobIn, job.request)
        if job.id != shown and asked.reference.name == name:
            words = f"{range_words(asked)} for revision {asked.reference.revision}"
            found.append(Running(job.id, words, work_address(asked.profile, job.id)))
    return tuple(found)


def range_words(range: TableIn | TableOut) -> str:
    """The messages of a table."""
    return f"{format_bytes(range.least_bytes)} to {format_bytes(range.greatest_bytes)}"


def missed_words(table: TableOut) -> str:
    """By how much a table misses its tolerance; "" where it keeps it."""
    if not table.missed_total:
        return ""
    worst, asked = table.worst, format_percent(table.relative_gap)
    return (
        f"It misses its tolerance of {asked} for {format_count(table.missed_bytes)} message "
        f"sizes: proven is {format_gap(worst.relative_gap)} at worst, at {range_text(worst)}."
    )


def range_text(one: GapRangeOut) -> str:
    """Message sizes, inclusive."""
    least, greatest = one.from_bytes, one.to_bytes
    return (
        format_bytes(least)
        if least == greatest
        else f"{format_bytes(least)} to {format_bytes(greatest)}"
    )


def _compiled(job: JobRecord, table: TableOut, tables: tuple[TableSummary, ...]) -> Compiled:
    revision = table.profile.revision if table.profile else 0
    active = next((one.digest for one in tables if one.is_active), "")
    if active == table.digest:
        words = f"Look-ups of revision {revision} answer from it now."
        if len(tables) == 1:
            words = f"It is the first of revision {revision}, so look-ups answer from it now."
    else:
        words = f"Look-ups of revision {revision} still answer from the active one."
    took = seconds_words(elapsed_s(job))
    title = f"{range_words(table)} is compiled, in {took}."
    return Compiled(title, words, table.digest, missed_words(table))
