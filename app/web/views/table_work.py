"""A compilation on its profile's page: while it runs, and what look-ups do once it is there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.flows.build_table import list_tables
from app.jobs.ledger import get_job, running_jobs
from app.operations.operation import OperationKind
from app.text.numbers import format_count, format_gap, format_percent
from app.web.views.listed import in_path
from app.web.views.table_form import TableForm
from app.web.views.work_view import WorkPlace, WorkView, elapsed_s, seconds_words
from domain.errors import NotFound
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
    asked = json.loads(job.request)
    if job.kind != OperationKind.TABLE or _name(asked) != name:
        return None
    form = TableForm.of_request(asked)
    if job.state is JobState.DONE and job.best is not None:
        document = json.loads(job.best)
        tables = list_tables(store, name, revision=document["profile"]["revision"], limit=50)
        return TableWork(TableForm(), None, _compiled(job, document, tables.summaries))
    if job.state is JobState.FAILED and job.error is not None:
        form = form.failed(json.loads(job.error))
    place = WorkPlace(
        title=f"Compiling {range_words(asked)}",
        here=work_address(asked["profile"], job.id),
        part=work_address(asked["profile"], job.id).removesuffix(INTO),
        into=INTO,
        again_form=FORM,
    )
    return TableWork(form, WorkView.of(job, place), None)


def running_tables(store: Store, name: str, shown: str) -> tuple[Running, ...]:
    """The compilations for this profile that run, besides the one that is shown. Blocks."""
    found = []
    for job in running_jobs(store, OperationKind.TABLE):
        asked = json.loads(job.request)
        if job.id != shown and _name(asked) == name:
            words = f"{range_words(asked)} for revision {asked['profile'].partition('@')[2]}"
            found.append(Running(job.id, words, work_address(asked["profile"], job.id)))
    return tuple(found)


def range_words(asked: Mapping[str, Any]) -> str:
    """The messages of a table."""
    return f"{format_bytes(asked['least_bytes'])} to {format_bytes(asked['greatest_bytes'])}"


def missed_words(document: Mapping[str, Any]) -> str:
    """By how much a table misses its tolerance; "" where it keeps it. Of a TableOut."""
    if not document["missed_total"]:
        return ""
    worst, asked = document["worst"], format_percent(document["relative_gap"])
    return (
        f"It misses its tolerance of {asked} for {format_count(document['missed_bytes'])} message "
        f"sizes: proven is {format_gap(worst['relative_gap'])} at worst, at {range_text(worst)}."
    )


def range_text(one: Mapping[str, Any]) -> str:
    """Message sizes, inclusive."""
    least, greatest = one["from_bytes"], one["to_bytes"]
    return (
        format_bytes(least)
        if least == greatest
        else f"{format_bytes(least)} to {format_bytes(greatest)}"
    )


def _name(asked: Mapping[str, Any]) -> str:
    profile: str = asked["profile"]
    return profile.partition("@")[0]


def _compiled(
    job: JobRecord, document: Mapping[str, Any], tables: tuple[TableSummary, ...]
) -> Compiled:
    revision = document["profile"]["revision"]
    active = next((one.digest for one in tables if one.is_active), "")
    if active == document["digest"]:
        words = f"Look-ups of revision {revision} answer from it now."
        if len(tables) == 1:
            words = f"It is the first of revision {revision}, so look-ups answer from it now."
    else:
        words = f"Look-ups of revision {revision} still answer from the active one."
    took = seconds_words(elapsed_s(job))
    title = f"{range_words(document)} is compiled, in {took}."
    return Compiled(title, words, document["digest"], missed_words(document))
