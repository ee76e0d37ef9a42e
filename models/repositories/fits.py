"""Fits of stored traces."""

from __future__ import annotations

from sqlalchemy.orm import Session

from domain.errors import NotFound
from domain.fit import TraceFit
from models.base import utc_now
from models.fit_documents import dump_fit, load_fit
from models.identifiers import new_id
from models.repositories.statements import flush, is_storable
from models.rows.fit import FitRow
from models.rows.trace import TraceRow


class FitRepository:
    """Fits by identifier, each with the digest of its trace."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, trace_digest: str, fit: TraceFit) -> str:
        """Store a fit and return its identifier. Raises NotFound where the trace is not stored."""
        if not is_storable(trace_digest) or self._session.get(TraceRow, trace_digest) is None:
            raise NotFound(f"there is no trace {trace_digest!r}", field="trace")
        row = FitRow(
            id=new_id(),
            trace_digest=trace_digest,
            document=dump_fit(fit),
            created_at=utc_now(),
        )
        self._session.add(row)
        flush(self._session, conflict="the fit contradicts what is stored")
        return row.id

    def get(self, fit_id: str) -> tuple[str, TraceFit]:
        """The digest of the trace, and the fit. Raises NotFound."""
        row = self._session.get(FitRow, fit_id) if is_storable(fit_id) else None
        if row is None:
            raise NotFound(f"there is no fit {fit_id!r}", field="fit")
        return row.trace_digest, load_fit(row.document)
