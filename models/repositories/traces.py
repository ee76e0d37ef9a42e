"""Measurement files, each stored once."""

from __future__ import annotations

import hashlib
import zlib

from sqlalchemy.orm import Session

from domain.errors import NotFound
from models.base import utc_now
from models.repositories.statements import check_text, insert_if_absent, is_storable
from models.rows.trace import TraceRow


class TraceRepository:
    """Files under the SHA-256 of their raw content."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, content: bytes, *, kind: str) -> str:
        """Store the file and return its digest. A file that is there already stays as it is.

        Compresses before the first statement: as the first call of a unit of work it keeps no
        other writer waiting meanwhile.
        """
        check_text("kind", kind)
        digest = hashlib.sha256(content).hexdigest()
        values = {
            "digest": digest,
            "kind": kind,
            "content_bytes": len(content),
            "compressed": zlib.compress(content),
            "created_at": utc_now(),
        }
        insert_if_absent(self._session, TraceRow, values)
        return digest

    def get(self, digest: str) -> bytes:
        """The raw content. Raises NotFound."""
        row = self._session.get(TraceRow, digest) if is_storable(digest) else None
        if row is None:
            raise NotFound(f"there is no trace {digest!r}", field="trace")
        return zlib.decompress(row.compressed, bufsize=max(row.content_bytes, 1))
