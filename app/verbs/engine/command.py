"""sluice admin engine: the scheduler and the workers of a cluster."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

from app.ui.grammar import Arguments, Group

if TYPE_CHECKING:
    from app.ui.terminal import Output


def add_verbs(command: Group) -> None:
    """Add both, and how many workers one has."""
    from app.console.argument_parts import add_workers

    command.add("scheduler", "route work at SLUICE_DASK_ADDRESS until Ctrl-C", "")
    add_workers(command.add("worker", "run what its scheduler has to be done", "--workers 2"))


def run(arguments: Arguments, output: Output) -> int:
    """Be the scheduler or a worker of a cluster until Ctrl-C or SIGTERM."""
    from app.console.checked import with_workers
    from app.operations.tasks import SOLVE_WARM_UP, cluster_options
    from app.settings import Settings
    from app.telemetry import logging_as
    from solvers.kernels.native import asked, load_library

    settings = Settings.from_environment()
    options = cluster_options(settings)
    from app.execution import node

    def ready(address: str) -> None:
        if output.wants_json:
            output.document(json.dumps({"address": address}).encode())
        else:
            output.parts([f"Sluice's {arguments.verb} is at {address}", "Ctrl-C stops it"])

    with logging_as(settings.log, text_level=logging.INFO):
        if arguments.verb == "scheduler":
            node.run_scheduler(options, ready)
            return 0
        settings = with_workers(settings, arguments)
        load_library(asked())
        node.run_worker(
            options,
            ready,
            slots=settings.worker_count,
            warm_up=SOLVE_WARM_UP,
            drain_s=settings.work_drain_s,
        )
    return 0
