"""Servers: one for all tests that leave it as it was, and one on each database in turn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from tests.app.access_support import Guarded, guarded_server
from tests.app.serving import Live, scripted_engine, serving, settings_for
from tests.conftest import DIALECTS
from tests.support.long_work import long_here_engine
from tests.support.postgres import PostgresServer


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A server on SQLite that tests share: names that they store are their own.

    Its long work runs in threads of this process, where tests may replace it.
    """
    url = f"sqlite:///{tmp_path_factory.mktemp('service') / 'sluice.db'}"
    with serving(settings_for(url), open_engine=long_here_engine) as running:
        yield running


@pytest.fixture
def client(live: Live) -> httpx.Client:
    """A client of the shared server."""
    return live.client


@pytest.fixture
def own(database_url: str) -> Iterator[Live]:
    """A server of one test, on each database in turn; its long work runs in this process too."""
    with serving(settings_for(database_url), open_engine=long_here_engine) as running:
        yield running


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A server that asks who asks, shared by tests; names that they store are their own."""
    url = f"sqlite:///{tmp_path_factory.mktemp('guarded') / 'sluice.db'}"
    with guarded_server(url) as running:
        yield running


@pytest.fixture(scope="session", params=DIALECTS)
def scripted(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    postgres: PostgresServer,
) -> Iterator[Live]:
    """A server whose engine's solvers follow a script, on each database in turn.

    Tests share it, and leave no solve and no job behind.
    """
    with ExitStack() as stack:
        if request.param == "sqlite":
            url = f"sqlite:///{tmp_path_factory.mktemp('scripted') / 'sluice.db'}"
        else:
            url = stack.enter_context(postgres.database())
        yield stack.enter_context(serving(settings_for(url), open_engine=scripted_engine))
