"""Jobs that run in a process of their own: compilations, exports and audits.

A `Work` is such a job's question, looked up in the store. Who accepts a job makes one, to refuse at
once what cannot be done and to find a job of the same question; who runs it makes one again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from app import table_desk
from app.apart import Watch
from app.audit_apart import AuditApart
from app.child_places import ChildPlaces
from app.export_apart import ExportApart
from app.flows import build_table, export_setting
from app.flows import solve_message as solving
from app.flows.audit_setting import audit_question
from app.flows.context import Context
from app.flows.durable_jobs import JobKind
from app.flows.export_setting import Exported, ExportQuestion, ExportScope
from app.open_job import OpenJob
from app.progress_file import Steps
from app.schemas.audit import AuditIn, render_audit
from app.schemas.base import parse_json
from app.schemas.exports import render_exported
from app.schemas.job_requests import ExportJobIn, TableJobIn, export_request, table_request
from app.schemas.tables import render_table
from app.table_apart import TableApart
from app.version import VERSION
from domain.profile import ProfileReference
from models.records import JobChanges, JobState

if TYPE_CHECKING:
    from models.session import UnitOfWork

Keep: TypeAlias = Callable[["UnitOfWork"], bytes]


@dataclass(frozen=True, slots=True)
class Work:
    """What a job is to do.

    `request` is what the job keeps. `digest` is equal exactly for jobs of one result. `document`
    is the result where it is at hand; else `run` works on it in a process of its own, and what it
    gives stores what is to be stored in a unit of work and has the document.
    """

    kind: JobKind
    request: bytes
    digest: str
    document: bytes | None
    run: Callable[[Watch], Keep]


def run_work(job: OpenJob, context: Context, places: ChildPlaces) -> None:
    """See the job to its end, in a place for a process of its own. Raises what its work does."""
    work = _WORK[JobKind(job.record.kind)](context, job.record.request)
    if work.digest != job.record.request_digest:
        job.show(request_digest=work.digest)  # accepted under another limit or version
    if work.document is not None:
        last_document: JobChanges = {"best": work.document}
        job.settle(lambda unit: job.end(unit, JobState.DONE, last_document))
        return
    last = _Last()

    def watch(steps: Steps | None) -> None:
        last.steps = steps or last.steps
        job.step(steps)
        job.check()

    with places.for_job(lambda: watch(None)):
        keep = work.run(watch)
    total = last.steps.total if last.steps else None

    def end(unit: UnitOfWork) -> None:
        best = keep(unit)
        job.end(unit, JobState.DONE, {"best": best, "steps_done": total, "steps_total": total})

    job.settle(end)


@dataclass(slots=True)
class _Last:
    """How far it was when it was last heard of."""

    steps: Steps | None = None


# --- compilations ---------------------------------------------------------------------------------


def table_work(
    context: Context,
    reference: ProfileReference,
    scope: build_table.TableScope,
    *,
    activate: bool | None,
) -> Work:
    """A compilation. A table that is stored is activated here, where that is wanted.

    Raises NotFound and StrategyDeclined.
    """
    question = table_desk.ask(context, reference, scope)
    stored = table_desk.find(context, question, activate=activate)

    def run(watch: Watch) -> Keep:
        child = TableApart(question, memory_bytes=context.settings.worker_memory_bytes)
        compiled = child.run(watch)

        def keep(unit: UnitOfWork) -> bytes:
            kept = build_table.keep_table(unit, compiled, render_table, activate=activate)
            return kept.document

        return keep

    return Work(
        JobKind.TABLE,
        table_request(question, activate=activate),
        _digest(JobKind.TABLE, question.digest(), activate),
        stored.document if stored else None,
        run,
    )


def _table(context: Context, request: bytes) -> Work:
    asked = parse_json(TableJobIn, request)
    return table_work(context, asked.reference, asked.to_domain(), activate=asked.activate)


# --- exports --------------------------------------------------------------------------------------


def export_work(
    context: Context, reference: ProfileReference, scope: ExportScope, table: str | None
) -> Work:
    """An export by the table of this digest, or by the revision's active one.

    Raises NotFound, Conflict, StrategyDeclined, and what a short export does.
    """
    question = export_setting.find_question(
        context, reference, scope, lambda unit, of: export_setting.stored_table(unit, of, table)
    )
    return _export_work(context, question)


def _export(context: Context, request: bytes) -> Work:
    asked = parse_json(ExportJobIn, request)
    table = asked.table
    question = export_setting.find_question(
        context,
        asked.reference,
        asked.to_domain(),
        lambda unit, of: export_setting.stored_table(unit, of, table) if table else None,
    )
    return _export_work(context, question)


def _export_work(context: Context, question: ExportQuestion) -> Work:
    def document(made: Exported) -> bytes:
        return render_exported(question, made)

    def run(watch: Watch) -> Keep:
        child = ExportApart(question, memory_bytes=context.settings.worker_memory_bytes)
        found = document(child.run(watch))
        return lambda unit: found

    return Work(
        JobKind.EXPORT,
        export_request(question),
        _digest(JobKind.EXPORT, question.digest()),
        None if question.takes_long else document(export_setting.export(question)),
        run,
    )


# --- audits ---------------------------------------------------------------------------------------


def audit_work(context: Context, asked: AuditIn) -> Work:
    """An audit. Raises what its check raises: NotFound, InvalidInput, and what a fit does."""
    scope = asked.to_domain()
    cap = context.settings.max_fragments
    with context.store.reading() as unit:
        prepared = solving.prepare(
            asked.to_question(), solving.stored_revision(unit), fragment_cap=cap
        )
    question = audit_question(prepared, scope, fragment_cap=cap)

    def run(watch: Watch) -> Keep:
        child = AuditApart(question, memory_bytes=context.settings.worker_memory_bytes)
        found = render_audit(child.run(watch))
        return lambda unit: found

    request = asked.as_job(prepared.profile)
    return Work(JobKind.AUDIT, request, _digest(JobKind.AUDIT, question.digest()), None, run)


def _audit(context: Context, request: bytes) -> Work:
    return audit_work(context, parse_json(AuditIn, request))


def _digest(*parts: object) -> str:
    """Of the kind, the question, and the version of the program that answers it."""
    return hashlib.sha256("\n".join(map(repr, (VERSION, *parts))).encode()).hexdigest()


_WORK: dict[JobKind, Callable[[Context, bytes], Work]] = {
    JobKind.TABLE: _table,
    JobKind.EXPORT: _export,
    JobKind.AUDIT: _audit,
}
