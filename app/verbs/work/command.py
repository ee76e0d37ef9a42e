"""sluice admin work: a runner of durable jobs, without a server."""

from __future__ import annotations

import json
import logging
import signal
import threading
from contextlib import ExitStack
from types import FrameType
from typing import TYPE_CHECKING

from app.ui.grammar import Arguments, Command

if TYPE_CHECKING:
    from app.ui.terminal import Output


def add_arguments(command: Command) -> None:
    """Add how many workers it has."""
    from app.console.argument_parts import add_workers

    add_workers(command)


def run(arguments: Arguments, output: Output) -> int:
    """Run jobs until Ctrl-C or SIGTERM; a second one does not wait for those that run."""
    from app.console.checked import check_kernels, checked_settings, with_workers
    from app.jobs.ledger import remember_retention, tell_ends
    from app.jobs.metrics import RunnerMetrics, runner_gauges
    from app.jobs.runner import open_runner
    from app.operations.tasks import open_engine
    from app.telemetry import logging_as, open_tracing
    from models.session import create_store

    settings = with_workers(checked_settings(), arguments)
    check_kernels()
    stop, stop_at_once = threading.Event(), threading.Event()
    _on_signals(stop, stop_at_once)
    store = create_store(settings.database_url)
    with ExitStack() as stack:
        stack.callback(store.dispose)
        stack.enter_context(logging_as(settings.log, text_level=logging.INFO))
        store.upgrade()
        remember_retention(store, settings)
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
