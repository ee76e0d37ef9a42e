"""Request bodies within limits: JSON, and files of measurements."""

from __future__ import annotations

import asyncio
import hashlib
import io
import re
import tempfile
import threading
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeVar
from weakref import WeakValueDictionary

from fastapi import Request

from app.questions.fits import loaded_measurements
from app.questions.traces import LoadedTrace
from app.schemas.base import load_json, parse_json
from app.schemas.fit_requests import fit_measurements, left_out
from app.text.gzipped import MAGIC, Expander
from contract.declare import Input
from contract.fit import FitIn
from domain.errors import (
    BodyTooLarge,
    BodyTooSlow,
    InconsistentInput,
    Overloaded,
    UnsupportedMediaType,
)
from models.records import FitRequest

# Held at once, in full bodies' worth of bytes.
BODIES_HELD = 32
TRACES_HELD = 2


# --- JSON: media type, length and time are checked before anything is parsed ----------------------


ARRIVAL_LIMIT_S = 30.0
PARSED_AT_ONCE_BYTES = 2**12  # in less time than a hop to a thread; the event loop never takes more

T = TypeVar("T", bound=Input)


class BodyBudget:
    """Bytes of bodies that may be held at once, and those that are.

    Each owner has a share, half of it all: bodies that one sends slowly leave room for others'.
    """

    def __init__(self, max_bytes: int, whole: BodyBudget | None = None) -> None:
        self.max_bytes = max_bytes
        self.held_bytes = 0
        self._whole = whole
        self._lock = threading.Lock()
        self._shares = WeakValueDictionary[str, BodyBudget]()

    def of(self, owner: str) -> BodyBudget:
        """Return the owner's share, which all have who hold bodies of his at this moment."""
        with self._lock:
            share = self._shares.get(owner)
            if share is None:
                share = self._shares[owner] = BodyBudget(self.max_bytes // 2, self)
            return share

    def take(self, count: int) -> None:
        """Count bytes as held. Raises Overloaded where they do not fit."""
        with self._lock:
            if self.held_bytes + count > self.max_bytes:
                raise Overloaded("too many large bodies are arriving at once")
            if self._whole is not None:
                self._whole.take(count)
            self.held_bytes += count

    def give_back(self, count: int) -> None:
        """Count bytes as held no more."""
        with self._lock:
            self.held_bytes -= count
        if self._whole is not None:
            self._whole.give_back(count)


async def read_json(request: Request, model: type[T], *, limit: int, budget: BodyBudget) -> T:
    """Return the body as this model. Raises as `parse_json` and `held_body` do."""
    _check_json_type(request)
    async with held_body(request, limit, budget, within_s=ARRIVAL_LIMIT_S) as body:
        if len(body) <= PARSED_AT_ONCE_BYTES:
            return parse_json(model, body)
        return await asyncio.to_thread(parse_json, model, body)


@asynccontextmanager
async def held_body(
    request: Request, limit: int, budget: BodyBudget, *, within_s: float
) -> AsyncIterator[bytes]:
    """Hold the body, counted against the budget, for as long as the block lasts.

    Raises BodyTooLarge, BodyTooSlow and Overloaded; ClientDisconnect where the client is gone.
    """
    check_declared_length(request, limit)
    chunks: list[bytes] = []
    held = 0
    try:
        try:
            async with asyncio.timeout(within_s):
                async for chunk in request.stream():
                    budget.take(len(chunk))
                    held += len(chunk)
                    if held > limit:
                        raise too_large(limit)
                    chunks.append(chunk)
        except TimeoutError:
            raise BodyTooSlow(f"the body did not arrive within {within_s:g} s") from None
        yield chunks[0] if len(chunks) == 1 else b"".join(chunks)
    finally:
        budget.give_back(held)


def check_declared_length(request: Request, limit: int) -> None:
    """Raise BodyTooLarge for a body that is announced as longer than the limit."""
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and int(declared[:20]) > limit:
        raise too_large(limit)


def too_large(limit: int) -> BodyTooLarge:
    """Return the refusal of a body over the limit."""
    return BodyTooLarge(f"expected a body of at most {limit} bytes")


def media_type(request: Request) -> tuple[str, str]:
    """Return the type without parameters, and the charset, in lower case; empty where not given."""
    kind, *parameters = request.headers.get("content-type", "").lower().split(";")
    charset = ""
    for parameter in parameters:
        name, _, value = parameter.strip().partition("=")
        if name == "charset":
            charset = value.strip().strip('"')
    return kind.strip(), charset


def _check_json_type(request: Request) -> None:
    kind, charset = media_type(request)
    if kind not in ("application/json", ""):
        raise UnsupportedMediaType("expected Content-Type: application/json")
    if charset not in ("", "utf-8", "utf8"):
        raise UnsupportedMediaType("expected JSON in UTF-8")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise UnsupportedMediaType("expected JSON without Content-Encoding")


# --- files of measurements, in a file without a name while they are read --------------------------


TRACE_ARRIVAL_LIMIT_S = 300.0
# Many small files come slowly without harm; what comes more slowly than this later on never ends.
AT_ANY_RATE_S = 30.0
MIN_BYTES_PER_S = 2**14
_BATCH_BYTES = 2**19  # handed to a thread at once: a hop costs as much as hashing a few kilobytes
_JSON_TYPES = ("application/json",)
_TEXT_TYPES = ("text/csv", "text/plain", "application/csv", "application/octet-stream")
_GZIP_TYPES = ("application/gzip", "application/x-gzip")
_TRACE_TYPES = (*_TEXT_TYPES, *_GZIP_TYPES)


@asynccontextmanager
async def arriving_trace(
    request: Request, *, limit: int, budget: BodyBudget
) -> AsyncIterator[LoadedTrace]:
    """The body, expanded if it came as gzip, for as long as the block lasts.

    Raises BodyTooLarge, BodyTooSlow, UnsupportedMediaType and Overloaded; ClientDisconnect where
    the client is gone.
    """
    spool = _Spool(limit, budget, must_expand=_is_packed(request))
    try:
        check_declared_length(request, limit)
        rest = await _fill(spool, request)
        yield await asyncio.to_thread(spool.finished, rest)
    finally:
        if spool.is_long:  # a disk takes milliseconds to give back its room
            await asyncio.shield(asyncio.to_thread(spool.close))
        else:
            spool.close()


def is_json(request: Request) -> bool:
    """Return whether the client says that the body is JSON."""
    return media_type(request)[0] in _JSON_TYPES


async def _fill(spool: _Spool, request: Request) -> bytes:
    """Return what has arrived last, which the spool is still to take."""
    batch: list[bytes] = []
    held = 0
    try:
        async with asyncio.timeout(AT_ANY_RATE_S) as patience:
            async for chunk in _in_time(request.stream(), patience):
                batch.append(chunk)
                held += len(chunk)
                if held >= _BATCH_BYTES:
                    await asyncio.to_thread(spool.take, b"".join(batch))
                    batch, held = [], 0
    except TimeoutError:
        raise BodyTooSlow(
            f"expected the body within {TRACE_ARRIVAL_LIMIT_S:g} s, and after {AT_ANY_RATE_S:g} s "
            f"at least {MIN_BYTES_PER_S} bytes of it a second"
        ) from None
    return b"".join(batch)


async def _in_time(chunks: AsyncIterator[bytes], patience: asyncio.Timeout) -> AsyncIterator[bytes]:
    """Yield the chunks; each is given time by what has arrived, up to the limit."""
    began_s, arrived = asyncio.get_running_loop().time(), 0
    async for chunk in chunks:
        arrived += len(chunk)
        allowed_s = AT_ANY_RATE_S + arrived / MIN_BYTES_PER_S
        patience.reschedule(began_s + min(TRACE_ARRIVAL_LIMIT_S, allowed_s))
        yield chunk


def _is_packed(request: Request) -> bool:
    """Return whether the headers say that the body is gzip. Raises UnsupportedMediaType."""
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
        self._file: io.FileIO | None = None  # opened by the thread that first needs it
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

    @property
    def is_long(self) -> bool:
        """Whether its file takes more room than a batch."""
        return self._length > _BATCH_BYTES

    def finished(self, rest: bytes) -> LoadedTrace:
        """Return the file with the rest of what has arrived. Raises as `take` does."""
        self.take(rest)
        if self._expander is not None:
            self._expander.finish()
        return LoadedTrace.in_file(
            self._keep(b"").fileno(), content_bytes=self._length, digest=self._digest.hexdigest()
        )

    def close(self) -> None:
        """Give back what it holds."""
        self._is_closing = True
        with self._lock:
            if self._file is not None:
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

    def _keep(self, piece: bytes) -> io.FileIO:
        """Return the file, with this piece in it."""
        rest = memoryview(piece)
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - `close` does
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError:  # the disk, or a quota, is full
            raise Overloaded("there is no room to hold this body at the moment") from None
        return self._file


# --- a body of measurements as the files in it ----------------------------------------------------


_SEVERAL = re.compile(rb'\s*\{\s*"measurements"\s*:')
_HEAD_BYTES = 1024


def asked_traces(
    request: Request, body: LoadedTrace, asked: FitRequest
) -> tuple[Sequence[LoadedTrace], FitRequest]:
    """Return the files in the body, and the request with the kinds that it names. Blocks.

    Raises BodyTooLarge, NotJson and InvalidInput.
    """
    if not is_json(request):
        return (body,), asked
    limit = request.app.state.settings.max_body_bytes
    if body.content_bytes > limit:
        if _SEVERAL.match(next(iter(body.pieces()))[:_HEAD_BYTES]):
            raise BodyTooLarge(f"expected JSON with several files of at most {limit} bytes")
        return (body,), asked
    content = body.content()
    document = load_json(content)
    if not isinstance(document, dict) or "measurements" not in document:
        return (body,), asked
    if asked.kinds != (None,):
        raise InconsistentInput("each of several files says its own kind", field="kind")
    given = parse_json(FitIn, content)
    traces, kinds = loaded_measurements(fit_measurements(given))
    excluded = (*asked.options.excluded, *left_out(given.excluded))
    return traces, replace(asked, kinds=kinds, options=replace(asked.options, excluded=excluded))
