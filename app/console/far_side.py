"""The other machine of a measurement: its address, and the token that its listener asks for."""

from __future__ import annotations

import os
import re

from app.ui.grammar import Arguments
from domain.errors import InvalidInput

_PORT = 7411
_PLACE = re.compile(r"(?:\[([^\[\]]{1,100})\]|([^:\[\]]{1,253}))(?::([0-9]{1,5}))?", re.ASCII)
_TOKEN = re.compile(r"[!-~]{32}", re.ASCII)


def place_of(text: str, *, field: str) -> tuple[str, int]:
    """Return host and port of HOST, HOST:PORT or [ADDRESS]:PORT. Raises InvalidInput."""
    found = _PLACE.fullmatch(text)
    port = int(found[3] or _PORT) if found else 0
    if found is None or not port <= 65_535 or (port == 0 and field == "host"):
        raise InvalidInput(
            f"expected a host and a port, as 10.0.0.2:{_PORT} or [fe80::1]:{_PORT}", field=field
        )
    return found[1] or found[2], port


def token_of(arguments: Arguments) -> str | None:
    """Return the token of --token or the environment. Raises InvalidInput where it is none."""
    from measuring.running import TOKEN

    found: str | None = arguments.token or os.environ.get(TOKEN)
    if found is not None and not _TOKEN.fullmatch(found):
        raise InvalidInput("expected 32 characters without spaces", field="token")
    return found


def far_side(arguments: Arguments) -> tuple[list[str], str | None]:
    """Return the probe's options for the other machine, and the token; nothing where there is none.

    Raises InvalidInput.
    """
    if arguments.host is None:
        return [], None
    host, port = place_of(arguments.host, field="host")
    token = token_of(arguments)
    if token is None:
        raise InvalidInput("expected the token that the listener printed", field="token")
    return ["--host", host, "--port", str(port)], token
