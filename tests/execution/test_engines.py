"""The contract of engines, on each of them."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator

import pytest

from app.execution.cluster import ClusterEngine
from app.execution.engine import Engine, Pool
from app.execution.local import LocalEngine
from tests.contracts.engine import EngineContract, NewEngine
from tests.contracts.process_engine import ProcessEngineContract
from tests.execution.support import MARKER, marked, open_file, pool_options, submit, wait_until
from tests.support.cluster import cluster, wait_for_slots
from tests.support.in_process_engine import InProcessEngine


class TestLocalEngine(ProcessEngineContract):
    @pytest.fixture(scope="class")
    @classmethod
    def new_engine(cls) -> Iterator[NewEngine]:
        marker = f"engine-{uuid.uuid4().hex}"
        os.environ[MARKER] = marker
        engines: list[LocalEngine] = []

        def make(slots: int = 1, **admission: int) -> Engine:
            options = pool_options(slots, **admission)
            engine = LocalEngine({Pool.SOLVE: options})
            engines.append(engine)
            wait_until(lambda: engine.capacity(Pool.SOLVE).ready == slots)
            return engine

        yield make
        for engine in engines:
            engine.close()
        del os.environ[MARKER]
        assert marked(marker) == set()


class TestClusterEngine(ProcessEngineContract):
    """Two workers with a slot each; an engine fills no more of it than it was made for."""

    @pytest.fixture(scope="class")
    @classmethod
    def new_engine(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewEngine]:
        marker = f"engine-{uuid.uuid4().hex}"
        os.environ[MARKER] = marker
        engines: list[ClusterEngine] = []
        file = tmp_path_factory.mktemp("engine") / "file"
        file.write_bytes(b"beside")
        with cluster(2) as made:

            def make(slots: int = 1, **admission: int) -> Engine:
                engine = ClusterEngine(
                    made.options(), {Pool.SOLVE: pool_options(slots, **admission)}
                )
                engines.append(engine)
                wait_for_slots(engine, slots)
                with open_file(file) as descriptor:  # what runs beside it is there from now on
                    submit(engine, "reads_files", files=(descriptor,)).result()
                return engine

            yield make
            for engine in engines:
                engine.close()
        del os.environ[MARKER]
        assert marked(marker) == set()

    def test_a_warm_worker_is_used_again(self, engine: Engine) -> None:
        """Each machine has one; tasks go to the next machine with a free slot."""
        found = {submit(engine, "process_id").result() for _ in range(6)}
        assert len(found) <= 2


class TestInProcessEngine(EngineContract):
    @pytest.fixture(scope="class")
    @classmethod
    def new_engine(cls) -> Iterator[NewEngine]:
        engines: list[InProcessEngine] = []

        def make(slots: int = 1, **admission: int) -> Engine:
            engines.append(InProcessEngine(slots, **admission))
            return engines[-1]

        yield make
        for engine in engines:
            engine.close()
