"""sluice serve: the listening socket, and the server on it."""

from __future__ import annotations

import errno
import fcntl
import gc
import json
import os
import shlex
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.console.checked import check_kernels, checked_settings, with_workers
from app.execution.processes import keep_freed_memory
from app.settings import Settings, check_own_folder
from app.telemetry import logging_as
from app.ui.grammar import Arguments
from app.ui.terminal import Output
from domain.errors import Conflict, InvalidInput, NotReady

if TYPE_CHECKING:
    import uvicorn

    from app.http.connections import Door, DrainingServer


_PORTS_TRIED = 50
GRACE_S = 20  # for answers under way when the service has to stop
_BACKLOG = 2048
_TURN_S = 0.0002  # of a thread, where others wait; a change of threads takes some 10 µs


@dataclass(frozen=True, slots=True)
class Listener:
    """A bound socket, and its address for clients: `http://HOST:PORT`, with the default port where
    that was taken; or `unix:PATH`, with the file's device and number.
    """

    socket: socket.socket
    address: str
    taken_port: int | None = None
    file: tuple[Path, int, int] | None = None

    def close(self) -> None:
        """Listen no more."""
        self.remove_file()
        self.socket.close()

    def remove_file(self) -> None:
        """Remove the socket's file, unless another one has taken its place."""
        if self.file is not None:
            path, *number = self.file
            with suppress(OSError):
                found = path.lstat()
                if [found.st_dev, found.st_ino] == number:
                    path.unlink()

    def shown(self) -> Sequence[str]:
        """Return the lines that say where it is reached."""
        if self.file is not None:
            ask = shlex.join(("curl", "--unix-socket", str(self.file[0])))
            return (f"Sluice serves on {self.address}", f"  ask by  {ask} http://localhost/healthz")
        return (
            f"Sluice serves on {self.address}",
            f"  the page       {self.address}/",
            f"  the interface  {self.address}/docs",
        )

    def notice(self) -> str | None:
        """Return what to print where it is not the default port."""
        if self.taken_port is None:
            return None
        return f"port {self.taken_port} is taken; using the next free one"


def serve(arguments: Arguments, output: Output) -> int:
    """Serve until Ctrl-C."""
    settings = _with_arguments(checked_settings(), arguments)
    is_explicit = arguments.port is not None or names_port(os.environ)
    check_kernels()
    running = server(settings)
    prepare_store(settings)
    if arguments.socket is None:
        listener = listen(settings, may_move=not is_explicit)
    else:
        listener = listen_at_file(Path(arguments.socket))
    try:
        is_file = listener.file is not None
        check_access(settings, None if is_file else listener.socket.getsockname()[0])
        first_key = make_first_key(settings)
    except BaseException:
        listener.close()
        raise
    running.at_end = listener.remove_file
    if notice := listener.notice():
        output.note(notice)
    if output.wants_json:
        started = {"address": listener.address, **({"first_key": first_key} if first_key else {})}
        output.document(json.dumps(started).encode())
    else:
        output.parts(
            [
                *listener.shown(),
                *([f"  the first key  {first_key}  (admin; shown this once)"] if first_key else []),
                "Ctrl-C stops it",
            ]
        )
    try:
        with logging_as(settings.log):
            running.run(sockets=[listener.socket])
    except KeyboardInterrupt:
        pass  # how a service is ended; uvicorn hands the signal on after it has closed everything
    finally:
        listener.close()
    if not running.started:
        raise NotReady("the service did not start; see the messages above")
    return 0


def server(settings: Settings, *, log_level: str = "info") -> DrainingServer:
    """Return the HTTP server of the service with these settings."""
    from app.http.connections import DrainingServer
    from app.main import create_app

    app = create_app(settings, when_ready=_settle)
    door: Door = app.state.door

    def begin_to_drain() -> None:
        app.state.is_draining = door.is_closing = True

    config = configured(app, settings, door=door, log_level=log_level)
    return DrainingServer(config, settings.drain_s, begin_to_drain)


def configured(
    app: Any,
    settings: Settings | None = None,
    *,
    door: Door | None = None,
    log_level: str,
) -> uvicorn.Config:
    """Return the server's options, which are the same for every application.

    Connections are counted by this door, by the application's own, or by a new one.
    """
    import uvicorn

    from app.http.connections import Door, guarded_by

    settings = settings or Settings()
    door = door or getattr(getattr(app, "state", None), "door", None) or Door.of(settings)
    believes = bool(settings.trusted_proxies)
    if settings.auth == "proxy":  # who a connection is from counts, whatever its headers say
        from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

        from app.http.access import with_peer

        app = with_peer(ProxyHeadersMiddleware(app, settings.trusted_proxies))
        believes = False
    return uvicorn.Config(
        app,
        http=guarded_by(door),
        # Nobody may say who a client is unless the settings name him; the environment does not.
        proxy_headers=believes,
        forwarded_allow_ips=settings.trusted_proxies,
        ws="none",  # nothing here speaks it, and a connection that changes over has no guard
        log_level=log_level,
        log_config=None,  # all lines take one way, which logging_as lays
        # A log on the event loop that nobody drains would stop the service; /metrics counts.
        access_log=False,
        timeout_graceful_shutdown=GRACE_S,
        server_header=False,
    )


def _settle() -> None:
    """Have nothing in this process hold up the event loop for long, from now on.

    What has been loaded by now, and is kept, is left out of every later garbage collection: a full
    one would look through all of it, for tens of milliseconds. And a thread that computes hands on
    the interpreter's lock where another waits for it; Python's own 5 ms are 20 lookups.
    What one answer has freed is kept for the next.
    """
    gc.collect()
    gc.freeze()
    sys.setswitchinterval(_TURN_S)
    keep_freed_memory()


def check_access(settings: Settings, address: str | None) -> None:
    """Refuse to let in everybody who reaches this address of the machine. Raises InvalidInput.

    What listens on loopback is asked by who is on this machine already; what has no address, but a
    socket's file, by its user.
    """
    if settings.auth == "proxy" and address is None:
        raise InvalidInput(
            "SLUICE_AUTH=proxy knows proxies by their addresses; who comes by --socket has none",
            field="SLUICE_AUTH",
        )
    if settings.auth == "proxy" and not settings.trusted_proxies:
        raise InvalidInput(
            "SLUICE_AUTH=proxy takes SLUICE_TRUSTED_PROXIES: who may say who a client is",
            field="SLUICE_AUTH",
        )
    if address is None or settings.auth != "off":
        return
    if not ip_address(address.partition("%")[0]).is_loopback:
        raise InvalidInput(
            "expected SLUICE_AUTH=keys where the service listens beyond loopback: whoever reaches "
            "it could use it; SLUICE_AUTH=open lets everybody in all the same",
            field="SLUICE_AUTH",
        )


def make_first_key(settings: Settings) -> str | None:
    """Return the secret of a key for all, where everybody needs a key and there is none yet.

    Raises StoreUnavailable.
    """
    if settings.auth != "keys":
        return None
    from app.questions.keys import create_first_key
    from models.session import create_store

    store = create_store(settings.database_url)
    try:
        made = create_first_key(store)
    finally:
        store.dispose()
    return None if made is None else made.secret


def prepare_store(settings: Settings) -> None:
    """Bring the database up to date before anything is promised.

    The server does it too, but what it meets it can only log. Raises StoreUnavailable, Conflict.
    """
    from models.session import create_store

    store = create_store(settings.database_url)
    try:
        store.upgrade()
    finally:
        store.dispose()


def names_port(environment: Mapping[str, str]) -> bool:
    """Return whether the environment asks for a port, which is then not exchanged for another."""
    return bool(environment.get("SLUICE_PORT", "").strip())


def listen(settings: Settings, *, may_move: bool) -> Listener:
    """Return a socket on the settings' host and port, or where that may be, on the next free port.

    Raises Conflict for a taken port, InvalidInput for a host or port that cannot be had.
    """
    last = min(65_535, settings.port + (_PORTS_TRIED if may_move else 0))
    for port in range(settings.port, last + 1):
        try:
            bound = _bind(settings.host, port)
        except OSError as refusal:
            if refusal.errno != errno.EADDRINUSE:
                raise _refused(settings.host, port, refusal) from None
            continue
        taken = settings.port if port != settings.port else None
        return Listener(bound, _address(settings.host, bound.getsockname()[1]), taken)
    if may_move:
        raise Conflict(f"ports {settings.port} to {last} are all taken", field="port")
    raise Conflict(
        f"port {settings.port} is taken by another program; expected a free port", field="port"
    )


def listen_at_file(path: Path) -> Listener:
    """Return a socket at this path, for its user alone; a file whose service has ended goes.

    Raises Conflict where a service listens at it, InvalidInput for a folder that others may write
    to, what is there and no socket, and a path that no socket can have.
    """
    path = path.absolute()
    check_own_folder(path.parent, field="socket")
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        os.fchmod(bound.fileno(), 0o600)  # which the file gets; a mode set later would be too late
        with _locked(path.parent):
            _remove_unused(path)
            bound.bind(str(path))
            bound.listen(_BACKLOG)  # until then the file looks like one that is left
            made = path.lstat()
    except OSError as refusal:
        bound.close()
        why = refusal.strerror or refusal
        raise InvalidInput(f"no socket can be at {path}: {why}", field="socket") from None
    except BaseException:
        bound.close()
        raise
    return Listener(bound, f"unix:{path}", file=(path, made.st_dev, made.st_ino))


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a folder's lock, so that of two services none takes the other's file for a left one."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # not every file system has them
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _remove_unused(path: Path) -> None:
    """Remove a socket's file that nobody listens at. Raises Conflict, InvalidInput and OSError."""
    if not os.path.lexists(path):
        return
    if not path.is_socket() or path.is_symlink():
        raise InvalidInput(f"{path} is there, and no socket: it stays as it is", field="socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asks:
        asks.setblocking(False)
        found = asks.connect_ex(str(path))
    if found == errno.ECONNREFUSED:
        path.unlink()
    elif found in (0, errno.EAGAIN):  # where as many wait as may
        raise Conflict(f"another service listens at {path}", field="socket")
    else:
        raise OSError(found, os.strerror(found))


def _bind(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(_BACKLOG)
    except OSError:
        bound.close()
        raise
    return bound


def _refused(host: str, port: int, refusal: OSError) -> InvalidInput:
    if isinstance(refusal, PermissionError):
        return InvalidInput(f"port {port} needs privileges; use one from 1024", field="port")
    return InvalidInput(
        f"expected the name or address of this machine as host ({refusal.strerror})", field="host"
    )


def _address(host: str, port: int) -> str:
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{shown}:{port}"


def _with_arguments(settings: Settings, arguments: Arguments) -> Settings:
    if arguments.socket is not None and (arguments.host, arguments.port) != (None, None):
        raise InvalidInput("expected a socket, or a host and port", field="socket")
    if arguments.port is not None and not 0 <= arguments.port <= 65_535:
        raise InvalidInput("expected 0 <= port <= 65535", field="port")
    return replace(
        with_workers(settings, arguments),
        host=settings.host if arguments.host is None else arguments.host,
        port=settings.port if arguments.port is None else arguments.port,
    )
