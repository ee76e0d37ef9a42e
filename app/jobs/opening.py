"""The runner of a service or of `sluice work`, as its settings want it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.jobs.options import RunnerOptions
from app.jobs.runner import Runner
from app.operations.operation import Operation
from app.operations.registry import prepare_request

if TYPE_CHECKING:
    from app.execution.engine import Engine
    from app.settings import Settings
    from models.session import Store, UnitOfWork


def open_runner(store: Store, engine: Engine, settings: Settings) -> Runner:
    """Return the runner of a service or of a worker, which is still to be started."""

    def prepare(kind: str, request: bytes, unit: UnitOfWork) -> Operation[Any]:
        return prepare_request(kind, request, unit, settings)

    options = RunnerOptions.of_lease(settings.lease_s)
    return Runner(store, engine, prepare, options, memory_bytes=settings.worker_memory_bytes)
