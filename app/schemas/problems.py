"""Problem documents (RFC 9457), as the OpenAPI document publishes them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from app.schemas.base import Output
from domain.errors import MAX_REPORTED


class FieldProblemOut(Output):
    """Where in the body (JSON pointer; query parameters by name) and which rule was broken."""

    pointer: str
    detail: str


class ProblemOut(Output):
    """Why a request was not honoured. `type` and `code` are stable; the input is never repeated."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    errors: Annotated[list[FieldProblemOut], Field(max_length=MAX_REPORTED)]
