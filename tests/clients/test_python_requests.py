"""What the Python clients say of their requests: identifiers on errors, the log, the address."""

from __future__ import annotations

import logging
from functools import partial

import pytest

from sluice_client import (
    AsyncClient,
    Client,
    InvalidRequest,
    NotFound,
    Retry,
    UnexpectedAnswer,
    Unreachable,
)
from tests.clients.python_clients import KINDS, opened
from tests.clients.scripted_http import Step, answer, close, problem, scripted
from tests.clients.test_python_retries import QUICK, Opened


@pytest.fixture(params=KINDS)
def client_of(request: pytest.FixtureRequest) -> Opened:
    """Opens a client of each kind in turn."""
    return partial(opened, request.param)


@pytest.mark.parametrize(
    ("steps", "kind"),
    [
        ([problem(503, "overloaded"), problem(404, "not_found")], NotFound),
        ([close, close], Unreachable),
        ([close, answer(body=b"<html>")], UnexpectedAnswer),
    ],
)
def test_an_error_has_the_identifier_that_was_sent(
    client_of: Opened, steps: list[Step], kind: type[Exception]
) -> None:
    """One a call, in all of its attempts; another call has another one."""
    with (
        scripted(lambda _: [*steps, *steps]) as server,
        client_of(server.address, retry=Retry(2, 0.0, 0.0)) as client,
    ):
        found = []
        for _ in range(2):
            with pytest.raises(kind) as caught:
                client.readiness()
            found.append(caught.value.request_id)  # type: ignore[attr-defined]
        sent = [request.headers["x-request-id"] for request in server.requests]
        assert sent == [found[0]] * 2 + [found[1]] * 2
        assert len(set(sent)) == 2
        assert all(one.isalnum() for one in sent)


def test_the_answers_identifier_and_the_callers_own_come_first(client_of: Opened) -> None:
    """A proxy may give another one; a caller may have one for all requests, sent once each."""
    replaced = problem(404, "not_found", headers={"X-Request-ID": "of-the-proxy"})
    with (
        scripted(lambda _: [replaced, problem(404, "not_found")]) as server,
        client_of(server.address, headers={"x-request-id": "mine"}) as client,
    ):
        for expected in ("of-the-proxy", "mine"):
            with pytest.raises(NotFound) as caught:
                client.readiness()
            assert caught.value.request_id == expected
        assert [one.headers["x-request-id"] for one in server.requests] == ["mine", "mine"]


def test_the_stream_of_a_job_says_its_identifier_too(client_of: Opened) -> None:
    """Where it is refused."""
    with (
        scripted(lambda _: [problem(404, "not_found")]) as server,
        client_of(server.address) as client,
    ):
        with pytest.raises(NotFound) as caught:
            list(client.job_events("a"))
        assert caught.value.request_id == server.requests[0].headers["x-request-id"]


def test_what_is_sent_again_is_logged(client_of: Opened, caplog: pytest.LogCaptureFixture) -> None:
    """With its reason and the attempt, and without the query or the body; one line each."""
    steps = [problem(503, "overloaded"), close, answer({"items": [], "next_cursor": None})]
    caplog.set_level(logging.INFO, logger="sluice_client")
    with scripted(lambda _: steps) as server, client_of(server.address, retry=QUICK) as client:
        client.profiles(cursor="secret")
    lines = [one.getMessage() for one in caplog.records if one.name == "sluice_client"]
    assert len(lines) == 2
    assert lines[0] == "GET /profiles: status 503; sent again in 0.00 s, attempt 2 of 4"
    assert lines[1].startswith("GET /profiles: ")
    assert lines[1].endswith("sent again in 0.00 s, attempt 3 of 4")
    assert "secret" not in caplog.text


def test_the_address_is_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where none is given; and a client says which one it has, without a password."""
    monkeypatch.delenv("SLUICE_URL", raising=False)
    assert repr(Client()) == "<Client http://localhost:8080>"
    monkeypatch.setenv("SLUICE_URL", "https://me:secret@sluice.example/below/")
    assert repr(Client()) == "<Client https://sluice.example/below>"
    assert repr(AsyncClient()) == "<AsyncClient https://sluice.example/below>"
    assert repr(Client("http://other")) == "<Client http://other>"
    monkeypatch.setenv("SLUICE_URL", "sluice.example")
    with pytest.raises(InvalidRequest, match="http:// or https:// in SLUICE_URL"):
        Client()
    monkeypatch.setenv("SLUICE_URL", "")
    assert repr(Client()) == "<Client http://localhost:8080>"
    with pytest.raises(InvalidRequest, match=r"https://$"):
        Client("")
    for no_host in ("http://[", "https://", "http://:8080"):
        with pytest.raises(InvalidRequest, match=r"with a host that is one$"):
            Client(no_host)
