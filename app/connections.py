"""Connections that never come to a request: closed, so that slow clients cannot pile them up.

The server itself closes a connection that is silent between two requests. One on which bytes
trickle in, of a head that does not end or of a body that was refused long ago, it keeps for ever.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

HEAD_LIMIT_S = 20.0  # after each, a look; a connection without progress does not see the second


class WatchedConnection(HttpToolsProtocol):
    """A connection that is closed where between two looks at it nothing was asked or answered.

    A request under way is progress: how long its body may take and how long its answer is the
    application's to say.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to watch."""
        super().connection_made(transport)
        self._seen: RequestResponseCycle | None = None
        self._next_look = self.loop.call_later(HEAD_LIMIT_S, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """Watch no longer."""
        self._next_look.cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        latest: RequestResponseCycle | None = self.cycle
        if latest is self._seen and (latest is None or latest.response_complete):
            self.transport.close()
            return
        self._seen = latest
        self._next_look = self.loop.call_later(HEAD_LIMIT_S, self._look)
