"""Wiring: settings, store, engine, service, routes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Set
from contextlib import asynccontextmanager, suppress
from typing import TypeAlias

from fastapi import FastAPI

import solvers
from app.api import service
from app.api.openapi import publish
from app.execution.engine import Engine
from app.http.access import Gate, Guarded
from app.http.app import FastPathApp, Outermost
from app.http.bodies import BODIES_HELD, TRACES_HELD, BodyBudget
from app.http.connections import Door
from app.http.fastpath.fast_path import FastPath, TableCache
from app.http.metrics import OBJECTIVES, Metrics
from app.http.service import Context, Service
from app.jobs.ledger import remember_retention, sweep_keys, tell_ends
from app.jobs.runner import open_runner
from app.operations.tasks import JOB_KINDS, open_engine
from app.questions.profiles import seed_paper_profiles
from app.registry import modules
from app.settings import VERSION, Settings
from app.telemetry import open_tracing
from app.ui.pages import failure_page
from app.web.routes import attach_pages, warm_up
from models.records import JobEnd
from models.session import create_store

log = logging.getLogger("sluice")

DESCRIPTION = (
    "Fragment schedules for messages that cross a pipeline of stages, each with a proof, of the "
    "model, of how good it is. Times are in µs, sizes in bytes, per-byte costs in ns. Every path "
    "with GET answers HEAD as well: the same status and headers, without the body."
)
OpenEngine: TypeAlias = Callable[[Settings], Engine]

_ROUTERS = (
    *(module.router for module in modules("routes")),
    service.router,
)


def create_app(
    settings: Settings | None = None,
    *,
    open_engine: OpenEngine = open_engine,
    when_ready: Callable[[], None] = lambda: None,
) -> FastAPI:
    """Return the application; nothing is opened before it starts, then `when_ready` is called."""
    chosen = Settings.from_environment() if settings is None else settings
    metrics = Metrics(OBJECTIVES, JOB_KINDS)
    fast_path = FastPath(TableCache(chosen.lookup_memory_bytes))
    gate = Gate(chosen, fast_path) if chosen.asks_who else None

    traced = open_tracing(chosen.traces)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        running = await asyncio.to_thread(
            open_service, chosen, metrics, fast_path, open_engine=open_engine, gate=gate
        )
        loop = asyncio.get_running_loop()

        def count(ends: tuple[JobEnd, ...]) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody asks any more
                loop.call_soon_threadsafe(metrics.jobs_ended, ends)

        running.context.store.watch_job_ends(count)
        running.context.store.watch_job_ends(tell_ends)
        app.state.tracing = traced
        if traced is not None:
            running.context.store.watch_job_ends(traced.jobs_ended)
        await asyncio.to_thread(warm_up)
        await running.lookups.start()
        app.state.service = running
        metrics.lag.start(loop)
        try:
            when_ready()
            yield
        finally:
            app.state.service = None
            metrics.lag.stop()
            await running.lookups.close()
            await asyncio.to_thread(close_service, running)
            if traced is not None:
                await asyncio.to_thread(traced.close)

    app = FastPathApp(
        title="Sluice",
        version=VERSION,
        description=DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False},  # Outermost has its own
    )
    app.state.settings = chosen
    app.state.is_draining = False
    app.state.metrics = metrics
    app.state.door = Door.of(chosen)
    app.state.gate = gate
    app.state.bodies = BodyBudget(BODIES_HELD * chosen.max_body_bytes)
    app.state.traces = BodyBudget(TRACES_HELD * chosen.max_trace_bytes)
    if gate is not None:
        app.add_middleware(Guarded, gate=gate)
    app.add_middleware(Outermost, metrics=metrics, as_page=failure_page)
    service.register(app)
    for router in _ROUTERS:
        app.router.routes.extend(router.routes)
    attach_pages(app)
    app.state.methods = _methods_by_path(app.state.page_methods)
    app.below(chosen.root_path, app.state.methods)
    publish(app)
    app.use_fast_path(fast_path.answer if gate is None else gate.answer, metrics)
    return app


def _methods_by_path(pages: Mapping[str, Set[str]]) -> Mapping[str, Set[str]]:
    """Return the methods of each path, of those of pages and all others."""
    found = {"/openapi.json": {"GET"}, **{path: set(methods) for path, methods in pages.items()}}
    for router in _ROUTERS:
        for route in router.routes:
            methods = found.setdefault(getattr(route, "path", ""), set())
            methods.update(getattr(route, "methods", ()))
    return found


def open_service(
    settings: Settings,
    metrics: Metrics,
    fast_path: FastPath,
    *,
    open_engine: OpenEngine,
    gate: Gate | None = None,
) -> Service:
    """Bring the schema up to date, start the workers, begin to run jobs. Blocks."""
    store = create_store(settings.database_url)
    try:
        store.upgrade()
        remember_retention(store, settings)
        sweep_keys(store)
        seeded = seed_paper_profiles(store)
        engine = open_engine(settings)
    except BaseException:
        store.dispose()
        raise
    runner = open_runner(store, engine, settings) if settings.run_jobs else None
    bounded = store.bounded(settings.stored_bytes_quota)
    running = Service(Context(bounded, engine, settings), metrics, fast_path, runner, gate)
    solvers.warm_up()
    if runner is not None:
        runner.start()
    log.info("ready: %d profiles added", len(seeded))
    return running


def close_service(running: Service) -> None:
    """End the work under way, the workers and the threads. Blocks."""
    if running.runner is not None:
        running.runner.close()
    running.context.engine.close()
    running.close()
    running.context.store.dispose()
