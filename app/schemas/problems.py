"""Problem documents (RFC 9457): what every refusal is sent as, and what a failed job keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from app.errors import field_problems, kind_of, problem_type
from app.schemas.base import Output, same_named
from domain.errors import MAX_REPORTED, SluiceError


@dataclass(frozen=True)
class FieldProblemOut(Output):
    """Where in the body (JSON pointer; query parameters by name) and which rule was broken."""

    pointer: str
    detail: str


@dataclass(frozen=True)
class ProblemOut(Output):
    """Why a request was not honoured. `type` and `code` are stable; the input is never repeated."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    errors: Annotated[tuple[FieldProblemOut, ...], Field(max_length=MAX_REPORTED)]

    @classmethod
    def of(cls, error: SluiceError) -> ProblemOut:
        """Return the document of an error."""
        kind = kind_of(error.code)
        return cls(
            type=problem_type(error.code),
            title=kind.title,
            status=kind.status,
            code=error.code,
            detail=error.detail,
            errors=tuple(same_named(FieldProblemOut, one) for one in field_problems(error)),
        )
