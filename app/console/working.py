"""A runner without HTTP: it shares the durable jobs of a database with every other one."""

from __future__ import annotations

import argparse
import json
import logging
import signal
import threading
from dataclasses import replace
from types import FrameType

from app.console.output import Output
from app.console.serving import check_kernels
from app.settings import Settings
from domain.errors import InvalidInput


def work(arguments: argparse.Namespace, output: Output) -> int:
    """Run jobs until Ctrl-C or SIGTERM; a second one does not wait for those that run."""
    from app.execution.limits import service_pools
    from app.execution.local import LocalEngine
    from app.jobs.opening import open_runner
    from app.operations.tasks import SOLVE_WARM_UP
    from models.session import create_store

    settings = _with_arguments(Settings.from_environment(), arguments)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s:     %(message)s")
    check_kernels()
    stop, stop_at_once = threading.Event(), threading.Event()
    _on_signals(stop, stop_at_once)
    store = create_store(settings.database_url)
    try:
        store.upgrade()
        pools = service_pools(solve_workers=settings.worker_count, solve_warm_up=SOLVE_WARM_UP)
        engine = LocalEngine(pools)
        runner = open_runner(store, engine, settings)
        try:
            runner.start()
            if output.wants_json:
                output.document(json.dumps({"runner": runner.name}).encode())
            else:
                output.parts(["Sluice runs jobs", "Ctrl-C stops it"])
            stop.wait()
            runner.close(drain_s=settings.drain_s, at_once=stop_at_once)
        finally:
            engine.close()
    finally:
        store.dispose()
    return 0


def _on_signals(stop: threading.Event, stop_at_once: threading.Event) -> None:
    def take(_signal: int, _frame: FrameType | None) -> None:
        (stop_at_once if stop.is_set() else stop).set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, take)


def _with_arguments(settings: Settings, arguments: argparse.Namespace) -> Settings:
    if arguments.workers is None:
        return settings
    if not 0 <= arguments.workers <= 1024:
        raise InvalidInput(
            "expected 0 <= workers <= 1024 (0: one fewer than cores)", field="workers"
        )
    return replace(settings, workers=arguments.workers)
