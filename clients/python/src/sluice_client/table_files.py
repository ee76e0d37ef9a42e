"""A table file on disk, kept fresh: a reader reads the old file or the new one, whole."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
from dataclasses import dataclass

from sluice_client.calls import Answer, Call, segment
from sluice_client.errors import InvalidTable
from sluice_client.table import Table
from sluice_client.table_paths import opened

_TYPE = "application/vnd.sluice.table"
_DIGEST_TAG = re.compile(r'"([0-9a-f]{64})"')


@dataclass(frozen=True, slots=True)
class TableFile:
    """The file at a path, and the digest of what lies there; empty where nothing does."""

    path: str
    digest: str

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> TableFile:
        """Return what lies at this path now; a link is followed. Raises InvalidTable, OSError."""
        place = os.path.realpath(path)
        try:
            with opened(place) as file:
                return cls(place, hashlib.file_digest(file, "sha256").hexdigest())
        except FileNotFoundError:
            return cls(place, "")

    def request(self, name: str) -> Call[Answer]:
        """Return the request for the active table of a profile, unless it is this one."""
        headers = {"Accept": _TYPE}
        if self.digest:
            headers["If-None-Match"] = f'"{self.digest}"'
        return Call(
            "GET",
            f"/profiles/{segment(name)}/table",
            lambda answer: answer,
            {"format": "slt"},
            headers=headers,
            may_repeat=True,
        )

    def take(self, answer: Answer) -> bool:
        """Replace the file by what came; whether it is another one than before.

        Raises InvalidTable, and leaves the file as it is, for bytes that are no whole table file;
        OSError where they cannot be written.
        """
        if answer.status == 304 and self.digest:
            return False
        data = answer.check().body
        digest = hashlib.sha256(data).hexdigest()
        tag = _DIGEST_TAG.fullmatch(answer.headers.get("etag", ""))
        if tag is not None and tag[1] != digest:
            raise InvalidTable("the file that came is not the one that was announced")
        Table.from_bytes(data)
        if digest == self.digest:
            return False
        replace_file(self.path, data)
        return True


def replace_file(path: str, data: bytes) -> None:
    """Write beside, to the disk, and rename: no reader ever sees a part. Raises OSError."""
    beside = f"{path}.{secrets.token_hex(8)}.part"
    try:
        with open(beside, "xb") as file:
            _keep_mode(path, file.fileno())
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise
    _sync_folder(os.path.dirname(path))


def _keep_mode(path: str, descriptor: int) -> None:
    """Give the new file the permissions of the old one."""
    with contextlib.suppress(OSError, AttributeError):
        os.fchmod(descriptor, os.stat(path).st_mode & 0o777)


def _sync_folder(folder: str) -> None:
    """The rename itself is on the disk; some systems cannot say so of a folder."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
