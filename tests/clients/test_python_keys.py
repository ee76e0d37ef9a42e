"""The Python clients and Idempotency-Key: what stores or starts is sent again and done once."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from sluice_client import Conflict, InputRefused, Retry, pipeline_of_lines
from tests.app.serving import serving, settings_for
from tests.clients.python_clients import KINDS, opened
from tests.clients.scripted_http import (
    Scripted,
    Step,
    answer,
    break_off,
    close,
    problem,
    reset,
    scripted,
)

KEY = "idempotency-key"
QUICK = Retry(first_wait_s=0.0, max_wait_s=0.0)
PIPELINE = pipeline_of_lines([("copy", 1.0, 2.0)])
FAILURES = [
    close,
    reset,
    break_off,
    problem(503, "store_unavailable"),
    problem(409, "idempotency_key_in_flight"),
]
Opened = Callable[..., AbstractContextManager[Any]]


@pytest.fixture(params=KINDS)
def client_of(request: pytest.FixtureRequest) -> Opened:
    """Opens a client of each kind in turn."""
    return partial(opened, request.param)


@pytest.mark.parametrize("failure", FAILURES)
def test_what_stores_or_starts_is_sent_again_under_its_key(
    client_of: Opened, failure: Step
) -> None:
    """The same in all attempts of a call and in no other, also while the first is under way."""
    calls: list[Callable[[Any], Any]] = [
        lambda client: client.create_profile(name="a", pipeline=PIPELINE),
        lambda client: client.start_optimize(message_bytes=4096, profile="a"),
        lambda client: client.optimize(message_bytes=4096, pipeline=PIPELINE, save_as="a"),
        lambda client: client.fit("x", save_as="a"),
        lambda client: client.request("POST", "/something", json={}),
    ]
    keys = set()
    for call in calls:
        with (
            scripted(lambda _: [failure, failure, problem(422, "invalid_input")]) as server,
            client_of(server.address, retry=QUICK) as client,
        ):
            with pytest.raises(InputRefused):
                call(client)
            assert [one.headers[KEY] for one in server.requests] == [
                server.requests[0].headers[KEY]
            ] * 3
            keys.add(server.requests[0].headers[KEY])
    assert len(keys) == len(calls)


def test_what_was_stored_before_the_connection_broke_is_stored_once(tmp_path: Path) -> None:
    """The service itself behind a connection that loses every first answer: one job, one
    profile.
    """
    with serving(settings_for(f"sqlite:///{tmp_path / 'once.db'}")) as live:

        def forwarded(server: Scripted) -> httpx.Response:
            came = server.requests[-1]
            return live.client.request(
                came.method, came.target, content=came.body, headers=came.headers
            )

        def lose(server: Scripted, connection: socket.socket) -> None:
            assert forwarded(server).is_success
            reset(connection)

        def pass_on(server: Scripted, connection: socket.socket) -> None:
            found = forwarded(server)
            assert found.headers["idempotent-replayed"] == "true"
            answer(body=found.content, status=found.status_code)(connection)

        def losing(server: Scripted) -> list[Step]:
            return [partial(lose, server), partial(pass_on, server)] * 2

        for kind in KINDS:
            before = live.stored()
            with (
                scripted(losing) as server,
                opened(kind, server.address, retry=QUICK) as client,
            ):
                job = client.start_optimize(message_bytes=4096 + len(kind), pipeline=PIPELINE)
                profile = client.create_profile(name=f"once-{kind}", pipeline=PIPELINE)
            assert live.client.get(f"/jobs/{job.id}").is_success
            assert profile.revision == 1
            assert live.stored()[1:] == (before[1] + 1, before[2] + 1)


def test_what_may_be_repeated_has_no_key(client_of: Opened) -> None:
    """It would be stored by the service for nothing; another conflict is final; a key is kept."""
    conflicts = [problem(409, "conflict")] * 2
    with scripted(lambda _: conflicts) as server:
        with client_of(server.address, retry=QUICK) as client, pytest.raises(Conflict):
            client.optimize(message_bytes=4096, pipeline=PIPELINE)
        own = {"Idempotency-Key": "mine"}
        with client_of(server.address, headers=own) as client, pytest.raises(Conflict):
            client.create_profile(name="a", pipeline=PIPELINE)
        assert [one.headers.get(KEY) for one in server.requests] == [None, "mine"]
