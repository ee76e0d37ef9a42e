"""Query parameters, as strict as bodies: unknown ones are refused, numbers are plain digits."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from app.schemas.base import ProfileName
from domain.pipeline import MAX_MESSAGE_BYTES
from domain.solution import Strategy

MAX_PAGE_SIZE = 1_000
DEFAULT_PAGE_SIZE = 50


def _plain_digits(value: Any) -> Any:
    if isinstance(value, str) and not (value.isascii() and value.isdigit() and len(value) < 20):
        raise ValueError("expected a whole number in plain digits")
    return value


def _true_or_false(value: Any) -> Any:
    if isinstance(value, str) and value not in ("true", "false"):
        raise ValueError("expected true or false")
    return value


Flag = Annotated[bool, BeforeValidator(_true_or_false)]
Digits = BeforeValidator(_plain_digits)
Limit = Annotated[int, Field(ge=1, le=MAX_PAGE_SIZE), Digits]
Identifier = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]


class Query(BaseModel):
    """The parameters of one operation."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NoQuery(Query):
    """No parameters at all."""


class OptimizationsQuery(Query):
    """Which stored answers, and where the page begins."""

    profile: ProfileName | None = None
    revision: Annotated[int, Field(ge=1, le=999_999_999), Digits] | None = None
    message_bytes: Annotated[int, Field(ge=1, le=MAX_MESSAGE_BYTES), Digits] | None = None
    strategy: Strategy | None = None
    cursor: Identifier | None = None
    limit: Limit = DEFAULT_PAGE_SIZE


class ProfilesQuery(Query):
    """Where the page begins."""

    cursor: ProfileName | None = None
    limit: Limit = DEFAULT_PAGE_SIZE


class ScheduleQuery(Query):
    """The message to cut."""

    bytes: Annotated[int, Field(ge=1, le=MAX_MESSAGE_BYTES), Digits]


class FitQuery(Query):
    """What the trace is, the profile to save its fit as, and whether a plot is wanted."""

    kind: Literal["direct", "indirect", "end_to_end", "logp"] | None = None
    save_as: ProfileName | None = None
    plot: Flag = False
