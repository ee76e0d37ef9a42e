"""Compilations of a profile's tables on its page: one while it runs, or once it is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.jobs.ledger import get_job, running_jobs
from app.operations.operation import OperationKind
from app.questions.tables import list_tables
from app.schemas.base import read_output, read_request
from app.schemas.jobs import elapsed_s, problem_of
from app.ui.addresses import in_path
from app.ui.work import WorkPlace, WorkView, format_seconds
from app.verbs.table.page.form import TableForm
from app.verbs.table.request import format_table_range
from app.verbs.table.show import format_missed
from contract.jobs import TableJobIn
from contract.table import TableOut
from domain.errors import NotFound, UnreadableRecord
from domain.profile import ProfileReference
from models.records import JobRecord, JobState, TableSummary

if TYPE_CHECKING:
    from models.session import Store


PLACE = "/ui/profiles"
INTO = "#tables"
FORM = "compile-form"


@dataclass(frozen=True, slots=True)
class Compiled:
    """The notice about a table that was just compiled, and the command that compiles the same;
    `missed` where it misses its tolerance.
    """

    title: str
    words: str
    digest: str
    missed: str
    command: str


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
    reference = ProfileReference.parse(asked.profile)
    if reference.name != name:
        return None
    form = TableForm.of_request(asked)
    if job.state is JobState.DONE and job.best is not None:
        try:
            table = read_output(TableOut, job.best)
        except UnreadableRecord as refusal:
            return TableWork(form.refused(refusal), None, None)
        tables = list_tables(store, name, revision=reference.revision, limit=50)
        command = form.command(asked.profile)
        return TableWork(TableForm(), None, _compiled(job, table, tables.summaries, command))
    if problem := problem_of(job):
        form = form.failed(problem)
    place = WorkPlace(
        title=f"Compiling {format_table_range(asked)}",
        here=work_address(asked.profile, job.id),
        part=work_address(asked.profile, job.id).removesuffix(INTO),
        into=INTO,
        again_form=FORM,
    )
    return TableWork(form, WorkView.from_job(job, place), None)


def running_tables(store: Store, name: str, shown: str) -> tuple[RunningCompilation, ...]:
    """Return the running compilations for this profile, but for the one shown. Blocks."""
    found = []
    for job in running_jobs(store, OperationKind.TABLE):
        asked = read_request(TableJobIn, job.request)
        reference = ProfileReference.parse(asked.profile)
        if job.id != shown and reference.name == name:
            words = f"{format_table_range(asked)} for revision {reference.revision}"
            found.append(RunningCompilation(job.id, words, work_address(asked.profile, job.id)))
    return tuple(found)


def _compiled(
    job: JobRecord, table: TableOut, tables: tuple[TableSummary, ...], command: str
) -> Compiled:
    revision = table.profile.revision if table.profile else 0
    active = next((table.digest for table in tables if table.is_active), "")
    if active == table.digest:
        words = f"Lookups of revision {revision} answer from it now."
        if len(tables) == 1:
            words = f"It is the first of revision {revision}, so lookups answer from it now."
    else:
        words = f"Lookups of revision {revision} still answer from the active one."
    took = format_seconds(elapsed_s(job))
    title = f"{format_table_range(table)} is compiled, in {took}."
    return Compiled(title, words, table.digest, format_missed(table), command)
