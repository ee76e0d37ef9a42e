"""Keys by which programs say who they are: a new one, one in exchange, and those there are."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias, get_args

from .declare import Input, Output, asked, output, rule, sent
from .limits import (
    DEFAULT_KEY_KEPT_S,
    MAX_KEY_AGE_S,
    MAX_KEY_KEPT_S,
    MAX_KEY_NAME,
    MAX_KEY_REQUESTS_PER_S,
)

KeyScope: TypeAlias = Literal["read", "write", "admin", "metrics"]
SCOPE_MEANS = (
    "what the key may do: read; write, which reads too; admin, all, and the keys of its owner; "
    "metrics, the service's counters alone"
)


class KeyIn(Input):
    """A new key of who asks for it; without `expires_in_s` it does not expire.

    `requests_per_s` limits it further than its owner is.
    """

    name: Annotated[str, rule(min_length=1, max_length=MAX_KEY_NAME, pattern=r"^[^\u0000]*$")] = (
        asked("what the key is for", help="what it is for", metavar="NAME")
    )
    scope: KeyScope = asked(
        SCOPE_MEANS,
        help="what it may do",
        option="--scope",
        choices=tuple((scope, scope) for scope in get_args(KeyScope)),
        is_required=True,
    )
    expires_in_s: Annotated[int, rule(ge=1, le=MAX_KEY_AGE_S, is_whole=True)] | None = asked(
        "how long it is valid, s; null: it does not expire",
        help="until it expires",
        default=None,
        unit="days",
        option="--days",
        metavar="DAYS",
    )
    requests_per_s: Annotated[int, rule(ge=1, le=MAX_KEY_REQUESTS_PER_S, is_whole=True)] | None = (
        asked(
            "requests that it may make in a second; null: as many as its owner",
            help="fewer than its owner may ask",
            default=None,
            unit="whole",
            option="--requests-per-s",
            metavar="COUNT",
        )
    )


class RotationIn(Input):
    """How long the key that is exchanged goes on."""

    kept_s: Annotated[int, rule(ge=0, le=MAX_KEY_KEPT_S, is_whole=True)] = asked(
        "how long the key that is exchanged goes on, s",
        help="of the other one (3600)",
        default=DEFAULT_KEY_KEPT_S,
        unit="number",
        option="--keep",
        metavar="SECONDS",
    )


@output
class KeyOut(Output):
    """A key, without its secret, which is not stored."""

    id: str = sent("the key's identifier")
    owner: str = sent("whose it is")
    name: str = sent("what it is for")
    scope: KeyScope = sent(SCOPE_MEANS)
    created_at: str = sent("when it was made, RFC 3339 in UTC")
    expires_at: str | None = sent("when it expires, RFC 3339 in UTC; null: never")
    revoked_at: str | None = sent("when it was ended, RFC 3339 in UTC; null: it was not")
    requests_per_s: int | None = sent(
        "requests that it may make in a second; null: as many as its owner"
    )


@output
class NewKeyOut(KeyOut):
    """A new key; its `secret` is sent this once."""

    secret: str = sent("what requests send as `Authorization: Bearer`; it is stored nowhere")


@output
class KeysOut(Output):
    """Every key of an owner, the newest first, revoked ones as well."""

    items: tuple[KeyOut, ...] = sent("the keys, the newest first")
