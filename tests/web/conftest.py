"""One server for the tests of the page that need no browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from app.schemas.base import read_output
from contract.optimize import OptimizeOut
from tests.app.serving import MYRINET, Live, serving, settings_for

Ask = Callable[..., OptimizeOut]


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A server on SQLite that tests share: names that they store are their own."""
    folder = tmp_path_factory.mktemp("web")
    with serving(settings_for(f"sqlite:///{folder / 'sluice.db'}")) as running:
        yield running


@pytest.fixture
def ask(live: Live) -> Ask:
    """The stored answer to a question: Myrinet, 4 KiB, unless it says otherwise."""

    def answer(**question: Any) -> OptimizeOut:
        body = {"message_bytes": 4096, **question}
        if not {"profile", "aggregate", "pipeline"} & body.keys():
            body["pipeline"] = MYRINET
        response = live.client.post("/optimize", json=body)
        assert response.status_code == 200, response.text
        return read_output(OptimizeOut, response.content)

    return answer
