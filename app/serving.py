"""The listening socket, the server on it, and a runner without a server."""

from __future__ import annotations

import argparse
import errno
import gc
import json
import logging
import os
import signal
import socket
import sys
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from app.console.running import ticking_line
from app.console.screen import Column, Grid, Output
from app.execution.processes import keep_freed_memory
from app.settings import KEPT_KINDS, Settings, keeps_of
from app.telemetry import logging_as, open_tracing
from domain.errors import Conflict, InvalidInput, NotReady

if TYPE_CHECKING:
    import uvicorn

    from app.http.connections import Door
    from models.records import Keep


_PORTS_TRIED = 50
GRACE_S = 20  # for answers under way when the service has to stop
_BACKLOG = 2048
_TURN_S = 0.0002  # of a thread, where others wait; a change of threads takes some 10 µs


@dataclass(frozen=True, slots=True)
class Listener:
    """A bound socket, its address for clients, and the default port where that was taken."""

    socket: socket.socket
    address: str
    taken_port: int | None

    def notice(self) -> str | None:
        """Return what to print where it is not the default port."""
        if self.taken_port is None:
            return None
        return f"port {self.taken_port} is taken; using the next free one"


def serve(arguments: argparse.Namespace, output: Output) -> int:
    """Serve until Ctrl-C."""
    settings = _with_arguments(checked_settings(), arguments)
    is_explicit = arguments.port is not None or names_port(os.environ)
    check_kernels()
    running = server(settings)
    prepare_store(settings)
    listener = listen(settings, may_move=not is_explicit)
    try:
        check_access(settings, listener.socket.getsockname()[0])
        first_key = make_first_key(settings)
    except BaseException:
        listener.socket.close()
        raise
    if notice := listener.notice():
        output.note(notice)
    if output.wants_json:
        started = {"address": listener.address, **({"first_key": first_key} if first_key else {})}
        output.document(json.dumps(started).encode())
    else:
        output.parts(
            [
                f"Sluice serves on {listener.address}",
                f"  the page       {listener.address}/",
                f"  the interface  {listener.address}/docs",
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
        listener.socket.close()
    if not running.started:
        raise NotReady("the service did not start; see the messages above")
    return 0


def server(settings: Settings, *, log_level: str = "info") -> uvicorn.Server:
    """Return the HTTP server of the service with these settings."""
    from app.http.connections import DrainingServer
    from app.main import create_app

    app = create_app(settings, when_ready=_settle)
    door = door_of(settings)

    def begin_to_drain() -> None:
        app.state.is_draining = door.is_closing = True

    config = configured(app, settings, door=door, log_level=log_level)
    return DrainingServer(config, settings.drain_s, begin_to_drain)


def door_of(settings: Settings) -> Door:
    """Return what counts the connections of each address."""
    from app.http.connections import Door

    return Door(settings.max_connections_per_address, exempt=settings.trusted_networks)


def configured(
    app: Any,
    settings: Settings | None = None,
    *,
    door: Door | None = None,
    log_level: str,
) -> uvicorn.Config:
    """Return the server's options, which are the same for every application."""
    import uvicorn
    from uvicorn.config import LOGGING_CONFIG

    from app.http.connections import guarded_by

    settings = settings or Settings()
    believes = bool(settings.trusted_proxies)
    if settings.auth == "proxy":  # who a connection is from counts, whatever its headers say
        from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

        from app.http.access import with_peer

        app = with_peer(ProxyHeadersMiddleware(app, settings.trusted_proxies))
        believes = False
    return uvicorn.Config(
        app,
        http=guarded_by(door or door_of(settings)),
        # Nobody may say who a client is unless the settings name him; the environment does not.
        proxy_headers=believes,
        forwarded_allow_ips=settings.trusted_proxies,
        ws="none",  # nothing here speaks it, and a connection that changes over has no guard
        log_level=log_level,
        # As JSON all lines take one way, which logging_as lays.
        log_config=LOGGING_CONFIG if settings.log == "text" else None,
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


def checked_settings() -> Settings:
    """Return the settings. Raises InvalidInput, which names all that break a rule.

    Also what only others read: SLUICE_KERNELS, and the form of the database's address.
    """
    from models.engines import parse_url
    from solvers.kernels.native import asked

    def check_engine(settings: Settings) -> None:
        if settings.engine != "local":
            from app.operations.tasks import cluster_options

            cluster_options(settings)

    checks = (
        lambda settings: parse_url(settings.database_url),
        lambda _: asked(),
        check_engine,
    )
    return Settings.from_environment(also=checks)


def check_kernels() -> None:
    """Load what solves: a wrong SLUICE_KERNELS ends the start. Raises InvalidInput."""
    from solvers.kernels.native import asked, load_library

    load_library(asked())


def check_access(settings: Settings, address: str) -> None:
    """Refuse to let in everybody who reaches this address of the machine. Raises InvalidInput.

    What listens on loopback is asked by who is on this machine already.
    """
    if settings.auth == "proxy" and not settings.trusted_proxies:
        raise InvalidInput(
            "SLUICE_AUTH=proxy takes SLUICE_TRUSTED_PROXIES: who may say who a client is",
            field="SLUICE_AUTH",
        )
    if settings.auth == "off" and not ip_address(address.partition("%")[0]).is_loopback:
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


def _with_arguments(settings: Settings, arguments: argparse.Namespace) -> Settings:
    if arguments.port is not None and not 0 <= arguments.port <= 65_535:
        raise InvalidInput("expected 0 <= port <= 65535", field="port")
    if arguments.workers is not None and not 0 <= arguments.workers <= 1024:
        raise InvalidInput(
            "expected 0 <= workers <= 1024 (0: one fewer than cores)", field="workers"
        )
    return replace(
        settings,
        host=settings.host if arguments.host is None else arguments.host,
        port=settings.port if arguments.port is None else arguments.port,
        workers=settings.workers if arguments.workers is None else arguments.workers,
    )


# --- a runner without a server --------------------------------------------------------------------


def work(arguments: argparse.Namespace, output: Output) -> int:
    """Run jobs until Ctrl-C or SIGTERM; a second one does not wait for those that run."""
    from app.http.metrics import RunnerMetrics, runner_gauges
    from app.jobs.ledger import tell_ends
    from app.jobs.runner import open_runner
    from app.operations.tasks import open_engine
    from models.session import create_store

    settings = _runner_settings(checked_settings(), arguments)
    if settings.log == "text":
        logging.basicConfig(level=logging.INFO, format="%(levelname)s:     %(message)s")
    check_kernels()
    stop, stop_at_once = threading.Event(), threading.Event()
    _on_signals(stop, stop_at_once)
    store = create_store(settings.database_url)
    with ExitStack() as stack:
        stack.callback(store.dispose)
        stack.enter_context(logging_as(settings.log))
        store.upgrade()
        engine = open_engine(settings, has_clients=False)
        runner = open_runner(store, engine, settings)
        store.watch_job_ends(tell_ends)
        metrics = RunnerMetrics(lambda: runner_gauges(store, engine, runner))
        store.watch_job_ends(metrics.jobs_ended)
        if traced := open_tracing(settings.traces):
            stack.callback(traced.close)
            store.watch_job_ends(traced.jobs_ended)
        try:
            if settings.work_metrics_port:
                stack.enter_context(metrics.served(settings.host, settings.work_metrics_port))
            runner.start()
            if output.wants_json:
                output.document(json.dumps({"runner": runner.name}).encode())
            else:
                output.parts(["Sluice runs jobs", "Ctrl-C stops it"])
            stop.wait()
            runner.close(drain_s=settings.work_drain_s, at_once=stop_at_once)
        finally:
            engine.close()
    return 0


def _on_signals(stop: threading.Event, stop_at_once: threading.Event) -> None:
    def take(_signal: int, _frame: FrameType | None) -> None:
        (stop_at_once if stop.is_set() else stop).set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, take)


def _runner_settings(settings: Settings, arguments: argparse.Namespace) -> Settings:
    if arguments.workers is None:
        return settings
    if not 0 <= arguments.workers <= 1024:
        raise InvalidInput(
            "expected 0 <= workers <= 1024 (0: one fewer than cores)", field="workers"
        )
    return replace(settings, workers=arguments.workers)


# --- upkeep of the database -----------------------------------------------------------------------


def changes(arguments: argparse.Namespace, output: Output) -> int:
    """Show who changed what."""
    from app.console.commands import opened_store
    from app.questions.keys import check_owner, list_changes
    from app.schemas.base import dump_json
    from app.schemas.queries import MAX_PAGE_SIZE, ChangesOut

    owner, limit = check_owner(arguments.owner), arguments.limit
    if not 1 <= limit <= MAX_PAGE_SIZE:
        raise InvalidInput(f"expected 1 <= limit <= {MAX_PAGE_SIZE}", field="limit")
    with opened_store(checked_settings()) as store:
        page = list_changes(store.of(owner), subject=arguments.subject, limit=limit)
    shown = ChangesOut.of(page)
    if output.wants_json:
        output.document(dump_json(shown))
        return 0
    names = ("when", "who", "what", "of", "before", "after")
    rows = tuple(
        (
            one.created_at[:16].replace("T", " "),
            one.made_by or "anybody",
            one.action,
            one.subject,
            one.before or "",
            one.after or "",
        )
        for one in shown.items
    )
    output.parts([Grid(tuple(Column(name, is_number=False) for name in names), rows)])
    return 0


def collect(arguments: argparse.Namespace, output: Output) -> int:
    """Delete what is kept no longer, or say how much that is."""
    from models import collection
    from models.session import create_store

    settings, keeps = checked_settings(), _keeps(arguments.keep)
    keeps = settings.keeps if keeps is None else keeps
    if not keeps:
        raise InvalidInput(
            "nothing says what is kept: give --keep, or set SLUICE_RETENTION", field="keep"
        )
    store = create_store(settings.database_url)
    try:
        with ticking_line(output.err, "looking" if arguments.dry_run else "deleting"):
            store.upgrade()
            if arguments.dry_run:
                found = Counter(collection.collectable(store, keeps))
            else:
                found = Counter(dict.fromkeys(keeps, 0))
                for kind, number in collection.collect(store, keeps):
                    found[kind] += number
    finally:
        store.dispose()
    if output.wants_json:
        output.document(json.dumps({"dry_run": arguments.dry_run, "rows": found}).encode())
    else:
        verb = "would go" if arguments.dry_run else "are gone"
        output.parts([f"{number} rows of {kind} {verb}" for kind, number in found.items()])
    return 0


def _keeps(rules: str | None) -> Mapping[str, Keep] | None:
    if rules is None:
        return None
    try:
        return keeps_of(rules)
    except ValueError:
        raise InvalidInput(
            f"expected rules such as answers=90d,jobs=30d/10000 of {', '.join(KEPT_KINDS)}",
            field="keep",
        ) from None


def back_up(arguments: argparse.Namespace, output: Output) -> int:
    """Write a backup."""
    from models.backup import backup

    url = checked_settings().database_url
    with ticking_line(output.err, "writing the backup"):
        rows = backup(url, Path(arguments.file))
    return _say_rows(output, rows, "saved")


def restore(arguments: argparse.Namespace, output: Output) -> int:
    """Put a backup into the database."""
    from models import backup

    url, file = checked_settings().database_url, Path(arguments.file)
    with ticking_line(output.err, "restoring"):
        rows = backup.restore(
            file, url, replace=arguments.replace, with_keys=not arguments.without_keys
        )
    return _say_rows(output, rows, "restored")


def _say_rows(output: Output, counts: Mapping[str, int], done: str) -> int:
    if output.wants_json:
        output.document(json.dumps({"rows": counts}).encode())
    else:
        rows = ", ".join(f"{number} of {name}" for name, number in counts.items() if number)
        output.parts([f"{done} {sum(counts.values())} rows: {rows or 'none'}"])
    return 0
