"""Long work as durable jobs: a job of the same question is found again, or a new one is started."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from app.flows.build_table import TableScope
from app.flows.durable_jobs import accept_once, get_job
from app.flows.export_setting import ExportScope
from app.job_work import Work, audit_work, export_work, table_work
from app.schemas.audit import AuditIn
from domain.profile import ProfileReference
from models.records import JobRecord, JobState

if TYPE_CHECKING:
    from app.service import Service

_LOOK_S = 0.05  # between looks at a job that may end soon


class WorkDesk:
    """One per service, for the event loop's thread.

    Each of `table`, `audit` and `export` checks the question, and gives a job of the very same one
    where there is one that is open or done; failed and cancelled ones are not taken again. The same
    question means the same revision, compiled table, limits and version of this program.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        # Within this process of two who ask at once the second finds the job of the first. Two
        # processes may both start one, which costs time and nothing else.
        self._accepting = threading.Lock()

    async def table(
        self, reference: ProfileReference, scope: TableScope, *, activate: bool | None = None
    ) -> JobRecord:
        """Compile a table; done at once where it is stored.

        Raises NotFound, StrategyDeclined and Overloaded.
        """
        context = self._service.context
        return await self._job(lambda: table_work(context, reference, scope, activate=activate))

    async def audit(self, asked: AuditIn) -> JobRecord:
        """Audit a setting. Raises NotFound, InvalidInput, what a fit does, and Overloaded."""
        context = self._service.context
        return await self._job(lambda: audit_work(context, asked))

    async def export(
        self, reference: ProfileReference, scope: ExportScope, table: str | None = None
    ) -> JobRecord:
        """Export by the table of this digest or the active one; done at once where it is short.

        Raises NotFound, Conflict, StrategyDeclined, Overloaded, and what a short export does.
        """
        context = self._service.context
        return await self._job(lambda: export_work(context, reference, scope, table))

    async def settled(self, job: JobRecord, within_s: float = 0.4) -> JobRecord:
        """The job as it is at its end, or after this time."""
        end_s = time.monotonic() + within_s
        while not job.state.is_terminal and (left_s := end_s - time.monotonic()) > 0.0:
            await asyncio.sleep(min(_LOOK_S, left_s))
            job = await self._service.call(partial(get_job, self._service.context.store, job.id))
        return job

    async def _job(self, make: Callable[[], Work]) -> JobRecord:
        self._service.runner.check_room()
        job, is_new = await self._service.call(lambda: self._accepted(make()))
        if is_new and job.state is JobState.QUEUED:
            self._service.runner.submit(job)
        return job

    def _accepted(self, work: Work) -> tuple[JobRecord, bool]:
        with self._accepting:
            return accept_once(
                self._service.context.store,
                work.kind,
                work.request,
                work.digest,
                document=work.document,
            )
