"""Fleet: the tables of many profiles, each by a job, whoever runs it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, TypeAlias

from app.execution.engine import Steps
from app.jobs.ledger import accept_job
from app.questions.source import Stored
from app.schemas.base import read_output
from app.verbs.table.operation import operation
from contract.problem import ProblemOut
from contract.table import FleetItemOut, TableOut
from domain.errors import Overloaded, QuotaExceeded, SluiceError, StoreUnavailable
from domain.profile import ProfileReference
from models.records import JobRecord

if TYPE_CHECKING:
    from app.questions.tables import TableScope
    from app.settings import Settings
    from models.session import Store

_AHEAD = 2000  # jobs that are open at a time
_LOOK_S, _RETRY_S = 0.2, 1.0
_AGAIN = (StoreUnavailable, Overloaded, QuotaExceeded)
Show: TypeAlias = Callable[[Steps, float], None]


class Fleet:
    """The tables of many profiles, each by a job; so many at a time as may wait.

    `show` hears of each look how many profiles have ended, of all, and after how many seconds.
    """

    def __init__(self, store: Store, scope: TableScope, settings: Settings, show: Show) -> None:
        self._store = store
        self._scope = scope
        self._settings = settings
        self._show = show
        self._open: dict[str, str] = {}
        self._items: list[FleetItemOut] = []

    def compiled(self, references: Iterable[ProfileReference]) -> Sequence[FleetItemOut]:
        """Return what became of each, once all have ended. Waits for a database that is away."""
        left, began_s = deque(references), time.monotonic()
        total = len(left)
        while left or self._open:
            pause_s = _LOOK_S
            try:
                while left and len(self._open) < _AHEAD:
                    self._begin(left[0])
                    left.popleft()
            except _AGAIN:
                pause_s = _RETRY_S
            with suppress(StoreUnavailable):
                self._look()
            self._show(Steps(len(self._items), total), time.monotonic() - began_s)
            time.sleep(pause_s if self._open or left else 0.0)
        return self._items

    def _begin(self, asked: ProfileReference) -> None:
        reference = f"{asked.name}@{asked.revision}" if asked.revision else asked.name
        try:
            with self._store.reading() as unit:
                made = operation(
                    asked, self._scope, Stored.of_unit(unit), self._settings, activate=None
                )
            job = accept_job(self._store, made)
        except SluiceError as error:
            if isinstance(error, _AGAIN):
                raise
            self._items.append(_failed(reference, error.detail))
            return
        if job.state.is_terminal:
            self._items.append(_item(reference, job, "stored"))
        else:
            self._open[job.id] = reference

    def _look(self) -> None:
        with self._store.reading() as unit:
            ended = unit.jobs.ended(tuple(self._open))
        for job in ended:
            self._items.append(_item(self._open.pop(job.id), job, "compiled"))


def _item(reference: str, job: JobRecord, outcome: Literal["compiled", "stored"]) -> FleetItemOut:
    if job.error is not None or job.best is None:
        detail = (
            read_output(ProblemOut, job.error).detail if job.error else f"the job is {job.state}"
        )
        return _failed(reference, detail)
    table = read_output(TableOut, job.best)
    name = table.profile.reference if table.profile else reference
    return FleetItemOut(name, outcome, table.digest, table.worst.relative_gap)


def _failed(reference: str, detail: str) -> FleetItemOut:
    return FleetItemOut(reference, "failed", error=detail)
