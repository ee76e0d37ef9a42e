"""Measurement files, each stored once."""

from __future__ import annotations

from sqlalchemy.orm import Session

from domain.errors import NotFound
from models.base import utc_now
from models.packing import PackedTrace, pack
from models.records import OWNER
from models.repositories.changes import note_change
from models.repositories.statements import check_text, insert_if_absent, is_storable
from models.repositories.stored_bytes import tally_of
from models.rows.trace import TraceRow


class TraceRepository:
    """An owner's files under the SHA-256 of their raw content."""

    def __init__(self, session: Session, owner: str = OWNER) -> None:
        self._session = session
        self._owner = owner

    def add(self, content: bytes, *, kind: str) -> str:
        """Store the file and return its digest. A file that is there already stays as it is.

        Compresses before the first statement: as the first call of a unit of work it keeps no
        other writer waiting meanwhile.
        """
        return self.add_packed(pack((content,)), kind=kind)

    def add_packed(self, packed: PackedTrace, *, kind: str) -> str:
        """Store a file that is compressed already and return its digest."""
        check_text("kind", kind)
        values = {
            "owner": self._owner,
            "digest": packed.digest,
            "kind": kind,
            "content_bytes": packed.content_bytes,
            "compressed": packed.compressed,
            "created_at": utc_now(),
        }
        if insert_if_absent(self._session, TraceRow, values):
            note_change(self._session, self._owner, "trace.store", packed.digest)
            tally_of(self._session).store(self._owner, packed.compressed)
        return packed.digest

    def get(self, digest: str) -> bytes:
        """The raw content. Raises NotFound."""
        return self.packed(digest).content()

    def packed(self, digest: str) -> PackedTrace:
        """The file in its stored form. Raises NotFound."""
        key = (self._owner, digest)
        row = self._session.get(TraceRow, key) if is_storable(digest) else None
        if row is None:
            raise NotFound("there is no trace", field="trace", subject=digest)
        return PackedTrace(digest, row.content_bytes, row.compressed)
