"""Bodies that are files of measurements: kept in a file without a name while they arrive.

Such a body may be hundreds of megabytes. What has arrived is expanded where it is packed, hashed
and written in a worker thread, piece by piece, so that neither the event loop nor the memory
notices; the file is gone with its last descriptor, whatever ends the request.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import tempfile
import threading
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from fastapi import Request

from app.bodies import (
    BodyBudget,
    check_declared_length,
    media_type,
    too_large,
)
from app.flows.held_trace import HeldTrace
from app.gunzip import MAGIC, Expander
from domain.errors import BodyTooSlow, Overloaded, UnsupportedMediaType

ARRIVAL_LIMIT_S = 300.0
# Many small files come slowly without harm; what comes more slowly than this later on never ends.
AT_ANY_RATE_S = 30.0
LEAST_BYTES_PER_S = 2**14
_BATCH_BYTES = 2**19  # handed to a thread at once: a hop costs as much as hashing a few kilobytes
_JSON_TYPES = ("application/json",)
_TEXT_TYPES = ("text/csv", "text/plain", "application/csv", "application/octet-stream")
_GZIP_TYPES = ("application/gzip", "application/x-gzip")
_TRACE_TYPES = (*_TEXT_TYPES, *_GZIP_TYPES)


@asynccontextmanager
async def arriving_trace(
    request: Request, *, limit: int, budget: BodyBudget
) -> AsyncIterator[HeldTrace]:
    """The body, expanded if it came as gzip, for as long as the block lasts.

    Raises BodyTooLarge, BodyTooSlow, UnsupportedMediaType and Overloaded; ClientDisconnect where
    the client is gone.
    """
    spool = _Spool(limit, budget, must_expand=_is_packed(request))
    try:
        check_declared_length(request, limit)
        await _fill(spool, request)
        yield await asyncio.to_thread(spool.finished)
    finally:
        spool.close()


def is_json(request: Request) -> bool:
    """Whether the client says that the body is JSON."""
    return media_type(request)[0] in _JSON_TYPES


async def _fill(spool: _Spool, request: Request) -> None:
    try:
        async with asyncio.timeout(AT_ANY_RATE_S) as patience:
            async for batch in _batches(_in_time(request.stream(), patience)):
                await asyncio.to_thread(spool.take, batch)
    except TimeoutError:
        raise BodyTooSlow(
            f"expected the body within {ARRIVAL_LIMIT_S:g} s, and after {AT_ANY_RATE_S:g} s at "
            f"least {LEAST_BYTES_PER_S} bytes of it a second"
        ) from None


async def _in_time(chunks: AsyncIterator[bytes], patience: asyncio.Timeout) -> AsyncIterator[bytes]:
    """The chunks; each is given time by what has arrived, up to the limit."""
    began_s, arrived = asyncio.get_running_loop().time(), 0
    async for chunk in chunks:
        arrived += len(chunk)
        allowed_s = AT_ANY_RATE_S + arrived / LEAST_BYTES_PER_S
        patience.reschedule(began_s + min(ARRIVAL_LIMIT_S, allowed_s))
        yield chunk


async def _batches(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    batch: list[bytes] = []
    held = 0
    async for chunk in chunks:
        batch.append(chunk)
        held += len(chunk)
        if held >= _BATCH_BYTES:
            yield b"".join(batch)
            batch, held = [], 0
    yield b"".join(batch)


def _is_packed(request: Request) -> bool:
    """Whether the headers say that the body is gzip. Raises UnsupportedMediaType."""
    kind, charset = media_type(request)
    if kind not in ("", *_JSON_TYPES, *_TRACE_TYPES):
        raise UnsupportedMediaType(
            f"expected Content-Type: one of {', '.join((*_TRACE_TYPES, *_JSON_TYPES))}"
        )
    if charset not in ("", "utf-8", "utf8", "us-ascii", "ascii"):
        raise UnsupportedMediaType("expected text in UTF-8")
    encoding = request.headers.get("content-encoding", "identity").lower()
    if encoding not in ("identity", "gzip"):
        raise UnsupportedMediaType("expected Content-Encoding gzip or none")
    return encoding == "gzip" or kind in _GZIP_TYPES


class _Spool:
    """A body on its way into its file.

    A thread may still be taking a piece when the request has ended: `close` waits for that piece.
    """

    def __init__(self, limit: int, budget: BodyBudget, *, must_expand: bool) -> None:
        self._limit = limit
        self._budget = budget
        self._expander = Expander(limit) if must_expand else None
        self._lock = threading.Lock()
        self._is_closing = False
        self._file = _unnamed_file()
        self._digest = hashlib.sha256()
        self._arrived = 0
        self._length = 0

    def take(self, packed: bytes) -> None:
        """Take what has arrived. Raises BodyTooLarge, UnsupportedMediaType and Overloaded."""
        if not packed:
            return
        if not self._arrived and packed.startswith(MAGIC) and self._expander is None:
            self._expander = Expander(self._limit)
        self._arrived += len(packed)
        if self._arrived > self._limit:
            raise too_large(self._limit)
        self._write((packed,) if self._expander is None else self._expander.feed(packed))

    def finished(self) -> HeldTrace:
        """The file as it is now that all has arrived. Raises UnsupportedMediaType."""
        if self._expander is not None:
            self._expander.finish()
        return HeldTrace.in_file(
            self._file.fileno(), content_bytes=self._length, digest=self._digest.hexdigest()
        )

    def close(self) -> None:
        """Give back what it holds."""
        self._is_closing = True
        with self._lock:
            self._file.close()
            self._budget.give_back(self._length)

    def _write(self, pieces: Iterable[bytes]) -> None:
        for piece in pieces:
            with self._lock:
                if self._is_closing:
                    return
                self._budget.take(len(piece))
                self._length += len(piece)
                self._digest.update(piece)
                self._keep(piece)

    def _keep(self, piece: bytes) -> None:
        rest = memoryview(piece)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError:  # the disk, or a quota, is full
            raise _no_room() from None


def _unnamed_file() -> io.FileIO:
    try:
        return tempfile.TemporaryFile(buffering=0)
    except OSError:
        raise _no_room() from None


def _no_room() -> Overloaded:
    return Overloaded("there is no room to hold this body at the moment")
