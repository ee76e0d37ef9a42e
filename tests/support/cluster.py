"""A cluster of this machine for tests: a scheduler and workers as processes, by their commands."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from app.execution.cluster import ClusterEngine
from app.execution.engine import Pool
from app.execution.node import ClusterOptions
from tests.execution.support import wait_until
from tests.support.chaos import Member


@dataclass
class TestCluster:
    """One scheduler and its workers; `environment` is what they are started with."""

    __test__ = False

    address: str = "tls://127.0.0.1:0"
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    slots: int = 1
    workers: list[Member] = field(default_factory=list)
    scheduler: Member | None = None

    def start_scheduler(self) -> None:
        """Start it; again at the same port where it was started before."""
        self.scheduler = Member.start(_command("scheduler"), self._environment())
        self.address = self.scheduler.ready["address"]

    def start_worker(self) -> Member:
        """Start one more."""
        command = _command("worker", "--workers", str(self.slots))
        self.workers.append(Member.start(command, self._environment()))
        return self.workers[-1]

    def heal(self) -> None:
        """Start what is not there any more."""
        if self.scheduler is None or not self.scheduler.lives:
            self.start_scheduler()
        self.workers = [one for one in self.workers if one.lives]
        if not self.workers:
            self.start_worker()

    def options(self) -> ClusterOptions:
        """How its engines reach it."""
        names = ("SLUICE_DASK_TLS_CA", "SLUICE_DASK_TLS_CERT", "SLUICE_DASK_TLS_KEY")
        return ClusterOptions(self.address, *(self.environment.get(name, "") for name in names))

    def close(self) -> None:
        """End all of it as an operator does."""
        for member in (*self.workers, *filter(None, [self.scheduler])):
            member.stop()

    def _environment(self) -> dict[str, str]:
        return {**self.environment, "SLUICE_DASK_ADDRESS": self.address}


def _command(*words: str) -> Sequence[str]:
    return ("-m", "app.cli", "admin", "engine", *words, "--json")


@contextmanager
def cluster(
    workers: int, environment: Mapping[str, str] | None = None, *, address: str | None = None
) -> Iterator[TestCluster]:
    """A cluster of so many workers with a slot each."""
    made = TestCluster(environment={**os.environ, **(environment or {})})
    made.address = address or made.address
    try:
        made.start_scheduler()
        for _ in range(workers):
            made.start_worker()
        yield made
    finally:
        made.close()


def wait_for_slots(engine: ClusterEngine, slots: int) -> None:
    """Wait until so many tasks can run at a time."""
    wait_until(lambda: engine.capacity(Pool.SOLVE).slots == slots)
