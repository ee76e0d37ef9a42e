"""What forms and lists share: bodies of forms, and times."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import parse_qsl

from fastapi import Request

from app.http.bodies import ARRIVAL_LIMIT_S, held_body, media_type
from app.http.dependencies import body_rules, service_of
from app.ui.panel.state import MAX_ROWS
from domain.errors import InvalidInput, UnsupportedMediaType

FORM = "application/x-www-form-urlencoded"
_MAX_FIELDS = 4 * MAX_ROWS + 64


async def read_form(request: Request, limit: int | None = None) -> list[tuple[str, str]]:
    """Return the fields of a form of this page, of at most `limit` bytes, else of what bodies have.

    Raises UnsupportedMediaType, InvalidInput, and what `held_body` does.
    """
    if media_type(request)[0] != FORM:
        raise UnsupportedMediaType(f"expected Content-Type: {FORM}")
    rules = body_rules(request)
    if limit is not None:
        rules["limit"] = min(limit, rules["limit"])
    async with held_body(request, **rules, within_s=ARRIVAL_LIMIT_S) as body:
        if len(body) < 2**16:
            return form_fields(body)
        return await service_of(request).call(lambda: form_fields(body))


def form_fields(body: bytes) -> list[tuple[str, str]]:
    """Return the fields of a form. Raises InvalidInput."""
    try:
        return parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_MAX_FIELDS,
        )
    except ValueError:
        raise InvalidInput(
            f"expected a form of at most {_MAX_FIELDS} fields of text in UTF-8"
        ) from None


def format_timestamp(time: datetime) -> str:
    """Return a time in UTC, to the minute."""
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M")


async def sent_fields(request: Request, limit: int | None = None) -> dict[str, str]:
    """Return the fields of a form, the last of each name. Raises what `read_form` does."""
    return dict(await read_form(request, limit))
