"""Fits of stored traces."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import cast

from sqlalchemy import Table, bindparam, select
from sqlalchemy.orm import Session

from domain.errors import NotFound
from domain.fit import TraceFit
from models.base import utc_now
from models.fit_documents import dump_fit, dump_request, load_fit, load_request
from models.identifiers import new_id
from models.records import FitRecord, FitRequest
from models.repositories.statements import flush, is_storable
from models.rows.fit import FitRow
from models.rows.further_trace import FurtherTraceRow
from models.rows.trace import TraceRow

_FITS = cast(Table, FitRow.__table__)
_DOCUMENT = select(_FITS.c.document).where(_FITS.c.id == bindparam("id"))  # built once
_KEPT = 32  # fits that were read last, so that answers about one need not decode it each time


class FitRepository:
    """Fits by identifier, each with the digests of its traces."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(
        self, trace_digests: Sequence[str], fit: TraceFit, request: FitRequest | None = None
    ) -> str:
        """Store a fit of these traces, in this order, and return its identifier.

        Raises NotFound where a trace is not stored.
        """
        for digest in trace_digests:
            self._check_stored(digest)
        row = FitRow(
            id=new_id(),
            trace_digest=trace_digests[0],
            document=dump_fit(fit),
            created_at=utc_now(),
            request=dump_request(request or FitRequest()),
        )
        self._session.add(row)
        flush(self._session, conflict="the fit contradicts what is stored")
        self._session.add_all(
            FurtherTraceRow(fit_id=row.id, place=place, trace_digest=digest)
            for place, digest in enumerate(trace_digests[1:], 1)
        )
        flush(self._session, conflict="the fit contradicts what is stored")
        return row.id

    def get(self, fit_id: str) -> FitRecord:
        """The fit, and what it was made from. Raises NotFound."""
        row = self._session.get(FitRow, fit_id) if is_storable(fit_id) else None
        if row is None:
            raise NotFound("there is no fit", field="fit", subject=fit_id)
        further = self._session.scalars(
            select(FurtherTraceRow.trace_digest)
            .where(FurtherTraceRow.fit_id == fit_id)
            .order_by(FurtherTraceRow.place)
        )
        return FitRecord(
            id=fit_id,
            created_at=row.created_at,
            trace_digests=(row.trace_digest, *further),
            fit=load_fit(row.document),
            request=load_request(row.request),
        )

    def fit(self, fit_id: str) -> TraceFit:
        """The fit alone. Raises NotFound."""
        found = None
        if is_storable(fit_id):
            found = self._session.connection().execute(_DOCUMENT, {"id": fit_id}).first()
        if found is None:
            raise NotFound("there is no fit", field="fit", subject=fit_id)
        return _load_again(found.document)

    def _check_stored(self, digest: str) -> None:
        found = None
        if is_storable(digest):
            # Its key alone: the row holds the whole file.
            found = self._session.scalar(select(TraceRow.digest).where(TraceRow.digest == digest))
        if found is None:
            raise NotFound("there is no trace", field="trace", subject=digest)


_load_again = lru_cache(_KEPT)(load_fit)
