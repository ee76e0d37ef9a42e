"""A bare ASGI application on the service's own server: what Python can do at most.

    python -m bench.bare_server LENGTHS

It parses nothing and looks nothing up: each request is answered with the next body out of a list,
made before the first one, of the lengths in this JSON file. Says its port in the first line.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Awaitable, Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import uvicorn

from app.serving import configured

_BACKLOG = 2048
_TYPE = (b"content-type", b"application/json")

Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]


def application(lengths: list[int]) -> Callable[..., Awaitable[None]]:
    """Answers with bodies of these lengths, one after the other and again."""
    answers = cycle(
        [([_TYPE, (b"content-length", b"%d" % length)], b"x" * length) for length in lengths]
    )

    async def bare(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await _live(receive, send)
            return
        headers, body = next(answers)
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return bare


async def _live(receive: Receive, send: Send) -> None:
    for phase in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{phase}.complete"})


def main(path: str) -> None:
    """Serve until the process is ended."""
    app = application(json.loads(Path(path).read_text()))
    listener = socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG)
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(configured(app, log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main(sys.argv[1])
