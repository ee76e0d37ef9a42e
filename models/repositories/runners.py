"""The processes that run jobs. Whether one is alive is shown by its beats, not by any clock.

A runner counts up its beats. Who sees no change for long enough by its own clock removes it, and
what it ran goes back into the queue. A runner that was wrongly removed, since it was stopped for a
while, learns so at its next beat; what it still writes is fenced.
"""

from __future__ import annotations

from sqlalchemy import CursorResult, Delete, Update, delete, select, update
from sqlalchemy.orm import Session

from models.base import utc_now
from models.records import RunnerRecord
from models.repositories.jobs import JobRepository
from models.repositories.statements import check_text, flush
from models.rows.runner import RunnerRow


class RunnerRepository:
    """Runners by name."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def register(self, name: str, *, process: str = "") -> None:
        """Add a runner. Raises Conflict where the name is taken."""
        check_text("name", name)
        row = RunnerRow(name=name, beats=0, process=process, started_at=utc_now())
        self._session.add(row)
        flush(self._session, conflict=f"there is a runner {name!r} already")
        self._session.expunge(row)

    def beat(self, name: str) -> bool:
        """Count up its beats; False where it was removed, and all it ran taken from it."""
        beats = update(RunnerRow).where(RunnerRow.name == name).values(beats=RunnerRow.beats + 1)
        return bool(_rowcount(self._session, beats))

    def all(self) -> tuple[RunnerRecord, ...]:
        """Return every runner."""
        found = select(RunnerRow.name, RunnerRow.beats, RunnerRow.process).order_by(RunnerRow.name)
        return tuple(RunnerRecord(*row) for row in self._session.execute(found))

    def remove(self, name: str, *, beats: int | None = None, error: bytes = b"") -> int | None:
        """Remove a runner and give back what it ran as a loss; return how many jobs that is.

        With `beats` only where it has not beaten since: None where it has, or is gone already.
        `error` is of jobs that are lost too often.
        """
        found = select(RunnerRow.name).where(RunnerRow.name == name).with_for_update()
        if beats is not None:
            found = found.where(RunnerRow.beats == beats)
        if self._session.scalars(found).first() is None:
            return None
        recovered = JobRepository(self._session).recover(name, error=error)
        _rowcount(self._session, delete(RunnerRow).where(RunnerRow.name == name))
        return recovered


def _rowcount(session: Session, statement: Update | Delete) -> int:
    result = session.execute(statement.execution_options(synchronize_session=False))
    assert isinstance(result, CursorResult)
    return result.rowcount
