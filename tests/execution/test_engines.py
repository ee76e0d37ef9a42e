"""The contract of engines, on each of them."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator

import pytest

from app.execution.engine import Engine, Pool
from app.execution.local import LocalEngine
from tests.contracts.engine import EngineContract, NewEngine
from tests.contracts.process_engine import ProcessEngineContract
from tests.execution.support import MARKER, marked, pool_options, wait_until
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
