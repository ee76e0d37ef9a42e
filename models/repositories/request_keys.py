"""Keys of requests: each is answered once, and again with the same bytes.

Who claims a key holds it by a token. Another one may take it over from a process that is not heard
of any more; what the first one then still writes is fenced, and rolled back with all that was to
be stored with it.
"""

from __future__ import annotations

import zlib
from datetime import datetime

from sqlalchemy import ColumnElement, CursorResult, Delete, Update, delete, update
from sqlalchemy.orm import Session

from models.base import utc_now
from models.errors import Fenced
from models.records import KeyClaim, KeyedAnswer, KeyRecord
from models.repositories.statements import check_text, insert_or_find
from models.repositories.stored_bytes import bytes_of, table_of, tally_of
from models.rows.request_key import RequestKeyRow

_LEVEL = 1  # answers are mostly numbers: more costs time and saves little


class RequestKeyRepository:
    """Keys by owner and name."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def claim(self, claim: KeyClaim) -> KeyRecord:
        """Return the key's row, which is the claim's own where nobody had the key."""
        check_text("Idempotency-Key", claim.key)
        now = utc_now()
        values = {
            "owner": claim.owner,
            "key": claim.key,
            "token": claim.token,
            "process": claim.process,
            "created_at": now,
            "touched_at": now,
        }
        return _record(insert_or_find(self._session, RequestKeyRow, values))

    def take_over(self, claim: KeyClaim, token: str) -> bool:
        """Claim a key that somebody else has under way by this token; False where he has not."""
        now = utc_now()
        taken = (
            update(RequestKeyRow)
            .where(*_named(claim), RequestKeyRow.token == token, RequestKeyRow.status.is_(None))
            .values(token=claim.token, process=claim.process, touched_at=now)
        )
        return bool(self._rows(taken))

    def touch(self, claim: KeyClaim) -> bool:
        """Say that the request is still under way; False where the key was taken over."""
        touched = update(RequestKeyRow).where(*_held(claim)).values(touched_at=utc_now())
        return bool(self._rows(touched))

    def complete(self, claim: KeyClaim, answer: KeyedAnswer) -> None:
        """Keep the answer. Raises Fenced where the key is not the claim's any more."""
        body = zlib.compress(answer.body, _LEVEL)
        kept = (
            update(RequestKeyRow)
            .where(*_held(claim))
            .values(
                fingerprint=answer.fingerprint,
                body_bytes=answer.body_bytes,
                status=answer.status,
                headers=answer.headers,
                body=body,
            )
        )
        if not self._rows(kept):
            raise Fenced
        tally_of(self._session).store(claim.owner, answer.headers, body)

    def release(self, claim: KeyClaim) -> None:
        """Forget a key under which nothing was done; nothing happens where it is another's."""
        self._rows(delete(RequestKeyRow).where(*_held(claim)))

    def sweep(self, before: datetime) -> int:
        """Forget the keys from before this time; return how many there were."""
        old = delete(RequestKeyRow).where(RequestKeyRow.created_at < before)
        table = table_of(RequestKeyRow)
        counted = old.returning(RequestKeyRow.owner, bytes_of(table, table.name))
        gone = self._session.execute(counted.execution_options(synchronize_session=False)).all()
        for owner, stored in gone:
            tally_of(self._session).change(owner, -stored)
        return len(gone)

    def _rows(self, statement: Update | Delete) -> int:
        result = self._session.execute(statement.execution_options(synchronize_session=False))
        assert isinstance(result, CursorResult)
        return result.rowcount


def _named(claim: KeyClaim) -> tuple[ColumnElement[bool], ...]:
    return RequestKeyRow.owner == claim.owner, RequestKeyRow.key == claim.key


def _held(claim: KeyClaim) -> tuple[ColumnElement[bool], ...]:
    return *_named(claim), RequestKeyRow.token == claim.token, RequestKeyRow.status.is_(None)


def _record(row: RequestKeyRow) -> KeyRecord:
    answer = None
    if row.status is not None:
        answer = KeyedAnswer(
            fingerprint=row.fingerprint or "",
            body_bytes=row.body_bytes or 0,
            status=row.status,
            headers=row.headers or b"",
            body=zlib.decompress(row.body or b""),
        )
    return KeyRecord(
        token=row.token,
        process=row.process,
        created_at=row.created_at,
        touched_at=row.touched_at,
        answer=answer,
    )
