"""Responses: bytes that are already JSON, problem documents, accepted jobs, and what requests ask
for beside their body: to be answered once, and only in a known state.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import suppress
from dataclasses import replace
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from fastapi import Request, Response

from app.errors import retry_after_s
from app.http.dependencies import prefers_async, service_of
from app.http.fastpath.responses import REVALIDATED, CachedResponse, holds
from app.http.service import Service, nothing
from app.jobs.ledger import (
    KEY_BEAT_S,
    claim_key,
    complete_key,
    release_key,
    this_process,
    touch_key,
)
from app.schemas.base import dump_json, problem_out
from app.schemas.jobs import job_out
from domain.errors import (
    BodyTooSlow,
    IdempotencyKeyInFlight,
    IdempotencyKeyReused,
    MalformedIdempotencyKey,
    PreconditionFailed,
    QuotaExceeded,
    RateLimited,
    SluiceError,
    Unauthenticated,
)
from models.errors import Fenced
from models.identifiers import new_id
from models.records import AnswerRecord, JobRecord, KeyClaim, KeyedAnswer

if TYPE_CHECKING:
    from models.session import UnitOfWork

JSON = "application/json"
PROBLEM = "application/problem+json"
_MAX_DETAIL = 2_000


def json_bytes(
    body: bytes, *, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """Return a response of bytes that are JSON already."""
    return Response(body, status, headers, media_type=JSON)


def json_document(
    document: object, *, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """Return a document as a JSON response."""
    return json_bytes(dump_json(document), status=status, headers=headers)


def problem(error: SluiceError, *, headers: dict[str, str] | None = None) -> Response:
    """Return the problem document of an error, with the status of its code."""
    document = problem_out(error)
    document = replace(document, detail=error.detail[:_MAX_DETAIL])
    if document.status == 503:
        headers = {**(headers or {}), "Retry-After": str(retry_after_s())}
    elif isinstance(error, IdempotencyKeyInFlight | RateLimited | QuotaExceeded):
        headers = {**(headers or {}), "Retry-After": str(error.retry_after_s)}
    if isinstance(error, Unauthenticated):
        headers = {**(headers or {}), "WWW-Authenticate": 'Bearer realm="sluice"'}
    elif isinstance(error, RateLimited):
        headers = {**(headers or {}), **_rate_headers(error)}
    return Response(dump_json(document), document.status, headers, media_type=PROBLEM)


def _rate_headers(error: RateLimited) -> dict[str, str]:
    """Return the limit, and what is left of it, as draft-ietf-httpapi-ratelimit-headers has it."""
    return {
        "RateLimit-Policy": f'"key";q={error.requests_per_s};w=1',
        "RateLimit": f'"key";r=0;t={error.retry_after_s}',
    }


def accepted(job: JobRecord) -> Response:
    """Return 202 with the address of a job that is stored already."""
    headers = {
        "Location": f"/jobs/{job.id}",
        "Preference-Applied": "respond-async",
        "Retry-After": "1",
    }
    return json_document(job_out(job), status=202, headers=headers)


def tagged(
    request: Request,
    body: bytes,
    *,
    media_type: str = JSON,
    file_name: str | None = None,
    etag: str = "",
) -> Response:
    """Return a response with a strong ETag, or 304 where the client holds these very bytes.

    `file_name` is what it is saved as; it has to be safe in a header. `etag` is that of what has
    more of a state than its bytes.
    """
    etag = etag or tag_of(body)
    headers = {"ETag": etag, "Cache-Control": REVALIDATED}
    if holds(if_none_match(request), etag):
        return Response(status_code=304, headers=headers)
    if file_name is not None:
        headers["Content-Disposition"] = f'attachment; filename="{file_name}"'
    return Response(body, headers=headers, media_type=media_type)


def if_none_match(request: Request) -> str:
    """Return the tags that the client holds, "" where it names none."""
    return request.headers.get("if-none-match", "")


def sent(whole: CachedResponse) -> Response:
    """Return a whole response with its headers in their order."""
    response = Response(whole.body, whole.status)
    response.raw_headers = list(whole.headers)
    return response


# --- If-Match -------------------------------------------------------------------------------------


def table_expected(request: Request) -> Callable[[str | None], None]:
    """Return what raises PreconditionFailed where another table is active than If-Match names.

    What is checked is given the digest of the active one, None where there is none.
    """

    def check(digest: str | None) -> None:
        forms = ("", "-json", "-summary")  # of each form that GET gives
        tags = set() if digest is None else {f'"{digest}{form}"' for form in forms}
        tags.update(_since(request, digest))
        check_match(request, tags, "the active table")

    return check


def _since(request: Request, digest: str | None) -> Iterator[str]:
    """Tags of If-Match that are of what is told of this table, whatever was measured since."""
    for named in ",".join(request.headers.getlist("if-match")).split(","):
        if digest is not None and named.strip().startswith(f'"{digest}-summary-'):
            yield named.strip()


def answer_tag(record: AnswerRecord) -> str:
    """Return the ETag of a stored answer, which other names and notes change as well."""
    return tag_of(record.body + dump_json([record.name, record.note]))


def answer_expected(request: Request) -> Callable[[AnswerRecord], None]:
    """Return what raises PreconditionFailed for an answer in another state than is named."""

    def check(record: AnswerRecord) -> None:
        check_match(request, {answer_tag(record)}, "the answer, with its name and its note,")

    return check


def tag_of(body: bytes) -> str:
    """Return the strong ETag of these bytes."""
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def check_match(request: Request, tags: set[str], what: str) -> None:
    """Raise PreconditionFailed where If-Match names none of these tags of what is changed."""
    wanted = request.headers.getlist("if-match")
    named = {tag.strip() for tag in ",".join(wanted).split(",")}  # weak ones match nothing
    if wanted and not (named & tags or (named == {"*"} and tags)):
        raise PreconditionFailed(f"{what} is not the one that If-Match names")


# --- Idempotency-Key: a request that is repeated is answered once ---------------------------------


_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_ARRIVAL_LIMIT_S = 300.0  # of the body of a request that is repeated
_NOT_KEPT = ("content-length",)

Result = TypeVar("Result")
View: TypeAlias = Callable[..., Awaitable[Response]]
Message: TypeAlias = MutableMapping[str, Any]


class _Keyed:
    """A request under a key: what it is, told by its body as that arrives, and its answer."""

    def __init__(self, request: Request, claim: KeyClaim) -> None:
        self.claim = claim
        self.is_complete = False
        self.body_bytes = 0
        self._receive = request.receive
        self._digest = hashlib.sha256()
        query = request.scope.get("query_string", b"")
        named = (request.method, request.scope["path"], query, prefers_async(request))
        self._digest.update(repr(named).encode())

    @property
    def fingerprint(self) -> str:
        """Equal for requests of the same path, parameters, preference and body."""
        return self._digest.hexdigest()

    async def receive(self) -> Message:
        """Return what comes next of the request."""
        message: Message = await self._receive()
        body = message.get("body", b"")
        self._digest.update(body)
        self.body_bytes += len(body)
        return message

    def answered(self, response: Response) -> KeyedAnswer:
        """Return what is kept of the response; the body has arrived by now."""
        kept = [
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in response.raw_headers
            if name.decode("latin-1") not in _NOT_KEPT
        ]
        return KeyedAnswer(
            fingerprint=self.fingerprint,
            body_bytes=self.body_bytes,
            status=response.status_code,
            headers=json.dumps(kept).encode(),
            body=bytes(response.body),
        )


def once(
    request: Request, render: Callable[[Result], Response]
) -> Callable[[UnitOfWork, Result], None]:
    """Return what stores a result's response, where the request has a key: in the transaction that
    stores the result, so that there is one exactly where there is the other.
    """
    asked: _Keyed | None = getattr(request.state, "keyed", None)
    if asked is None:
        return nothing

    def complete(unit: UnitOfWork, result: Result) -> None:
        unit.request_keys.complete(asked.claim, asked.answered(render(result)))
        asked.is_complete = True

    return complete


def keyed(view: View) -> View:
    """Return a view that answers a request with an Idempotency-Key once.

    Repeated, it gets the same status, headers and body again for a day; what was refused is not
    kept. Raises MalformedIdempotencyKey, IdempotencyKeyReused and IdempotencyKeyInFlight.
    """

    @wraps(view)
    async def guarded(request: Request, *given: Any, **named: Any) -> Response:
        keys = request.headers.getlist("idempotency-key")
        if not keys:
            return await view(request, *given, **named)
        if len(keys) > 1 or not _KEY.fullmatch(keys[0]):
            raise MalformedIdempotencyKey(
                "expected one Idempotency-Key of 1 to 255 visible ASCII characters"
            )
        service = service_of(request)
        claim = KeyClaim(service.context.store.owner, keys[0], new_id(), this_process())
        asked = _Keyed(request, claim)
        found = await service.write(partial(claim_key, service.context.store, claim))
        watched = Request(request.scope, asked.receive)
        if found is not None:
            return await _replayed(watched, asked, found)
        watched.state.keyed = asked
        return await _first(service, asked, lambda: view(watched, *given, **named))

    return guarded


async def _first(
    service: Service, asked: _Keyed, answer: Callable[[], Awaitable[Response]]
) -> Response:
    store, claim = service.context.store, asked.claim
    touching = asyncio.create_task(_touch(service, claim))
    try:
        response = await answer()
        if not asked.is_complete:
            kept = asked.answered(response)
            await service.write(partial(complete_key, store, claim, kept))
    except Fenced:
        raise IdempotencyKeyInFlight("another request has taken this key over") from None
    except Exception:
        with suppress(SluiceError):  # else it is given up by the lease
            await service.write(partial(release_key, store, claim))
        raise
    finally:
        touching.cancel()
    return response


async def _touch(service: Service, claim: KeyClaim) -> None:
    is_held = True
    while is_held:
        await asyncio.sleep(KEY_BEAT_S)
        with suppress(SluiceError):
            is_held = await service.write(partial(touch_key, service.context.store, claim))


async def _replayed(request: Request, asked: _Keyed, found: KeyedAnswer) -> Response:
    try:
        async with asyncio.timeout(_ARRIVAL_LIMIT_S):
            async for _ in request.stream():
                if asked.body_bytes > found.body_bytes:
                    break
    except TimeoutError:
        raise BodyTooSlow(f"the body did not arrive within {_ARRIVAL_LIMIT_S:g} s") from None
    if asked.body_bytes != found.body_bytes or asked.fingerprint != found.fingerprint:
        raise IdempotencyKeyReused("expected a new Idempotency-Key: this one had another request")
    response = Response(found.body, found.status)
    for name, value in json.loads(found.headers):
        response.headers.append(name, value)
    response.headers["Idempotent-Replayed"] = "true"
    return response
