"""Responses: bytes that are already JSON, problem documents, accepted jobs."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from fastapi import Request, Response

from app.http.fastpath.responses import REVALIDATED, CachedResponse, holds
from app.schemas.base import ProblemOut, dump_json
from app.schemas.jobs import JobOut
from domain.errors import Overloaded, SluiceError
from models.records import JobRecord

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
    document = ProblemOut.of(error)
    document = replace(document, detail=error.detail[:_MAX_DETAIL])
    if document.status == 503:
        headers = {**(headers or {}), "Retry-After": str(Overloaded.retry_after_s)}
    return Response(dump_json(document), document.status, headers, media_type=PROBLEM)


def accepted(job: JobRecord) -> Response:
    """Return 202 with the address of a job that is stored already."""
    headers = {
        "Location": f"/jobs/{job.id}",
        "Preference-Applied": "respond-async",
        "Retry-After": "1",
    }
    return json_document(JobOut.of(job), status=202, headers=headers)


def tagged(
    request: Request, body: bytes, *, media_type: str = JSON, file_name: str | None = None
) -> Response:
    """Return a response with a strong ETag, or 304 where the client holds these very bytes.

    `file_name` is what it is saved as; it has to be safe in a header.
    """
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
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
