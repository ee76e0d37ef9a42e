"""Fits of stored traces."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import cast

from sqlalchemy import Connection, Table, bindparam, select
from sqlalchemy.orm import Session

from domain.errors import NotFound
from domain.fit import TraceFit
from models.base import utc_now
from models.fit_documents import dump_fit, dump_request, load_fit, load_request
from models.identifiers import new_id
from models.records import OWNER, FitRecord, FitRequest
from models.repositories.changes import note_change
from models.repositories.statements import flush, is_storable
from models.repositories.stored_bytes import tally_of
from models.rows.fit import FitRow
from models.rows.further_trace import FurtherTraceRow
from models.rows.trace import TraceRow

_FITS = cast(Table, FitRow.__table__)
_DOCUMENT = select(_FITS.c.document).where(  # built once
    _FITS.c.id == bindparam("id"), _FITS.c.owner == bindparam("owner")
)
_KEPT = 32  # fits


class KeptFits:
    """The fits of one database that were read last: a fit that is stored never changes nor goes.

    Thread-safe. Every answer about a profile reads what the profile was fitted from.
    """

    def __init__(self) -> None:
        self._fits = OrderedDict[tuple[str, str], TraceFit]()
        self._lock = threading.Lock()

    def find(self, owner: str, fit_id: str) -> TraceFit | None:
        """Return the owner's fit where it is kept."""
        with self._lock:
            found = self._fits.get((owner, fit_id))
            if found is not None:
                self._fits.move_to_end((owner, fit_id))
            return found

    def add(self, owner: str, fit_id: str, fit: TraceFit) -> None:
        """Keep it in the place of the one that was not asked for longest."""
        with self._lock:
            self._fits[owner, fit_id] = fit
            if len(self._fits) > _KEPT:
                self._fits.popitem(last=False)


class FitRepository:
    """An owner's fits by identifier, each with the digests of its traces."""

    def __init__(
        self,
        connection: Connection,
        opened: Callable[[], Session],
        kept: KeptFits,
        owner: str = OWNER,
    ) -> None:
        self._connection = connection
        self._opened = opened
        self._kept = kept
        self._owner = owner

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
            owner=self._owner,
            trace_digest=trace_digests[0],
            document=dump_fit(fit),
            created_at=utc_now(),
            request=dump_request(request or FitRequest()),
        )
        self._session.add(row)
        flush(self._session, conflict="the fit contradicts what is stored")
        self._session.add_all(
            FurtherTraceRow(fit_id=row.id, owner=self._owner, place=place, trace_digest=digest)
            for place, digest in enumerate(trace_digests[1:], 1)
        )
        flush(self._session, conflict="the fit contradicts what is stored")
        note_change(self._session, self._owner, "fit.store", row.id, after=" ".join(trace_digests))
        tally_of(self._session).store(self._owner, row.document, row.request)
        return row.id

    def get(self, fit_id: str) -> FitRecord:
        """The fit, and what it was made from. Raises NotFound."""
        row = self._session.get(FitRow, fit_id) if is_storable(fit_id) else None
        if row is None or row.owner != self._owner:
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
        kept = self._kept.find(self._owner, fit_id)
        if kept is not None:
            return kept
        document = None
        if is_storable(fit_id):
            asked = {"id": fit_id, "owner": self._owner}
            document = self._connection.scalar(_DOCUMENT, asked)
        if document is None:
            raise NotFound("there is no fit", field="fit", subject=fit_id)
        fit = load_fit(document)
        self._kept.add(self._owner, fit_id, fit)
        return fit

    @property
    def _session(self) -> Session:
        return self._opened()

    def _check_stored(self, digest: str) -> None:
        found = None
        if is_storable(digest):
            # Its key alone: the row holds the whole file.
            found = self._session.scalar(
                select(TraceRow.digest).where(
                    TraceRow.owner == self._owner, TraceRow.digest == digest
                )
            )
        if found is None:
            raise NotFound("there is no trace", field="trace", subject=digest)
