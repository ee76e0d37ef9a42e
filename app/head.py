"""HEAD: what GET says, without its body (RFC 9110, section 9.3.2).

One layer around the application turns it into a GET, so that every path with a GET has it and no
route can be forgotten; and the headers are those of the GET because it is one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping, Set
from typing import Any, TypeAlias

Message: TypeAlias = MutableMapping[str, Any]
Scope: TypeAlias = MutableMapping[str, Any]
Send: TypeAlias = Callable[[Message], Awaitable[None]]


class HeadersSaid(Exception):
    """Ends an answer whose body goes on; nobody is going to read it."""


def as_get(scope: Scope) -> Scope:
    """The same request as a GET; the server keeps its own, and knows that no body is to follow."""
    return {**scope, "method": "GET"}


def headers_only(send: Send) -> Send:
    """Sends what it is given without the body.

    Raises HeadersSaid where more of the body would come: a stream would go on for nobody.
    """

    async def without_body(message: Message) -> None:
        if message["type"] != "http.response.body":
            await send(message)
            return
        await send({"type": "http.response.body", "body": b""})
        if message.get("more_body", False):
            raise HeadersSaid

    return without_body


def with_head(methods: Set[str]) -> Set[str]:
    """The methods of a path, with the one that comes with GET."""
    return methods | {"HEAD"} if "GET" in methods else methods
