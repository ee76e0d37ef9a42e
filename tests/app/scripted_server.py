"""A server for tests that kill it: serves the database named by its argument, prints its port."""

from __future__ import annotations

import socket
import sys

import uvicorn

from app.main import create_app
from tests.app.serving import scripted_engine, settings_for


def main() -> None:
    """Serve until killed."""
    app = create_app(settings_for(sys.argv[1]), open_engine=scripted_engine)
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])


if __name__ == "__main__":
    main()
