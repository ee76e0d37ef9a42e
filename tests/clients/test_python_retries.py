"""The Python clients against servers that fail, stall and lie, as a script says."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import partial
from typing import Any

import pytest

from sluice_client import (
    NO_RETRY,
    Conflict,
    DeadlineExceeded,
    InputRefused,
    InvalidRequest,
    NotFound,
    ProblemError,
    Retry,
    ServiceFailed,
    Unavailable,
    UnexpectedAnswer,
    Unreachable,
    pipeline_of_lines,
)
from sluice_client.calls import Answer, Call
from sluice_client.retries import Failure, Pauses, RetryState
from tests.clients.python_clients import KINDS, opened
from tests.clients.scripted_http import (
    Step,
    answer,
    break_off,
    close,
    problem,
    reset,
    scripted,
)

QUICK = Retry(first_wait_s=0.0, max_wait_s=0.0)
PIPELINE = pipeline_of_lines([("copy", 1.0, 2.0)])
READY = {"status": "ready", "database": "sqlite", "workers": 1}
KEY = "idempotency-key"
Opened = Callable[..., AbstractContextManager[Any]]


@pytest.fixture(params=KINDS)
def client_of(request: pytest.FixtureRequest) -> Opened:
    """Opens a client of each kind in turn."""
    return partial(opened, request.param)


# --- what is sent again ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "failure",
    [
        close,
        reset,
        break_off,
        problem(503, "overloaded"),
        problem(503, "store_unavailable"),
        problem(429, "too_many"),
        answer(body=b"<html>", status=502),
        answer(body=b"", status=504),
    ],
)
def test_what_may_be_repeated_is_sent_again(client_of: Opened, failure: Step) -> None:
    """Whatever became of it: twice in vain, then the answer."""
    with (
        scripted(lambda _: [failure, failure, answer(READY)]) as server,
        client_of(server.address, retry=QUICK) as client,
    ):
        assert client.readiness().workers == 1
        assert [request.target for request in server.requests] == ["/readyz"] * 3


UNCERTAIN = [close, reset, break_off, problem(503, "store_unavailable")]


@pytest.mark.parametrize("failure", UNCERTAIN)
def test_what_may_have_had_an_effect_is_not_sent_again(client_of: Opened, failure: Step) -> None:
    """A second request would store a second revision, or remove what is new."""
    calls: list[Callable[[Any], Any]] = [
        lambda client: client.revise_profile("a", pipeline=PIPELINE),
        lambda client: client.delete_profile("a"),
        lambda client: client.request("PUT", "/something", json={}),
        lambda client: client.options(retry=NO_RETRY).create_profile(name="a", pipeline=PIPELINE),
    ]
    for call in calls:
        with (
            scripted(lambda _: [failure]) as server,
            client_of(server.address, retry=QUICK) as client,
        ):
            with pytest.raises((Unreachable, Unavailable)):
                call(client)
            assert len(server.requests) == 1
            assert KEY not in server.requests[0].headers


@pytest.mark.parametrize("code", ["overloaded", "not_ready"])
def test_what_was_not_taken_on_is_sent_again(client_of: Opened, code: str) -> None:
    """The service says so itself."""
    done = answer({"error": "none"}, status=201)
    with (
        scripted(lambda _: [problem(503, code), done]) as server,
        client_of(server.address, retry=QUICK) as client,
    ):
        assert client.request("POST", "/profiles", json={"a": 1}) == {"error": "none"}
        assert [request.body for request in server.requests] == [b'{"a":1}'] * 2


def test_what_never_left_is_sent_again(client_of: Opened) -> None:
    """Nobody listened: no effect, so it may be tried as often as any other."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with (
        client_of(f"http://127.0.0.1:{port}", retry=QUICK) as client,
        pytest.raises(Unreachable, match=r"\(4 times\)"),
    ):
        client.create_profile(name="a", pipeline=PIPELINE)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "not_json", InputRefused),
        (404, "not_found", NotFound),
        (408, "body_too_slow", InputRefused),
        (409, "conflict", Conflict),
        (413, "body_too_large", InputRefused),
        (422, "invalid_input", InputRefused),
        (500, "internal_error", ServiceFailed),
    ],
)
def test_a_refusal_is_final(
    client_of: Opened, status: int, code: str, kind: type[ProblemError]
) -> None:
    """Sent again it would be refused again."""
    with (
        scripted(lambda _: [problem(status, code)]) as server,
        client_of(server.address, retry=QUICK) as client,
    ):
        with pytest.raises(kind) as refusal:
            client.readiness()
        assert (refusal.value.status, refusal.value.code) == (status, code)
        assert len(server.requests) == 1


def test_it_ends_after_so_many_attempts(client_of: Opened) -> None:
    """With the last answer, or the last failure."""
    busy = [problem(503, "overloaded")] * 9
    with (
        scripted(lambda _: busy) as server,
        client_of(server.address, retry=QUICK) as client,
    ):
        with pytest.raises(Unavailable):
            client.limits()
        assert len(server.requests) == 4
        with pytest.raises(Unavailable):
            client.options(retry=NO_RETRY).limits()
        assert len(server.requests) == 5


# --- how long it waits ----------------------------------------------------------------------------


def test_a_service_that_says_nothing_is_given_up(client_of: Opened) -> None:
    """In time, and with the error that says so."""
    with (
        scripted(lambda server: [server.stay_silent]) as server,
        client_of(server.address, timeout_s=0.05, retry=NO_RETRY) as client,
    ):
        with pytest.raises(DeadlineExceeded) as refusal:
            client.readiness()
        assert isinstance(refusal.value, TimeoutError)


def test_the_deadline_is_of_all_attempts(client_of: Opened) -> None:
    """Not of each; what the service asks to wait for longer is not waited for."""
    later = problem(503, "overloaded", headers={"Retry-After": "3600"})
    patience = Retry(attempts=1000, first_wait_s=0.0, max_wait_s=0.0, deadline_s=30.0)
    with (
        scripted(lambda _: [later]) as server,
        client_of(server.address, retry=patience) as client,
    ):
        with pytest.raises(Unavailable):
            client.readiness()
        assert len(server.requests) == 1


def test_an_answer_that_drips_is_given_up(client_of: Opened) -> None:
    """Each piece comes in time, and the whole never."""

    def drip(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 Said\r\nContent-Length: 100000\r\n\r\n")
        for _ in range(1000):
            connection.sendall(b"x")
            time.sleep(0.01)

    with (
        scripted(lambda _: [drip]) as server,
        client_of(server.address, retry=Retry(attempts=1, deadline_s=0.2)) as client,
        pytest.raises(DeadlineExceeded, match=r"within 0\.2 s"),
    ):
        client.readiness()


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def retry_state(
    retry: Retry, clock: Clock, *, chance: float = 1.0, takes_s: float = 0.0
) -> RetryState:
    """A course of a call that may be repeated."""
    call: Call[Any] = Call("GET", "/", lambda answer: answer, may_repeat=True, takes_s=takes_s)
    return RetryState(call, retry, 30.0, clock=clock, chance=lambda: chance)


@pytest.fixture
def clock() -> Clock:
    """A clock that stands."""
    return Clock()


LOST = Failure(was_sent=True, is_timeout=False, reason="lost")


@pytest.mark.parametrize("chance", [0.0, 0.5, 1.0])
def test_waits_double_up_to_the_longest_and_vary(clock: Clock, chance: float) -> None:
    """Between half and all of what is doubled."""
    going = retry_state(Retry(attempts=6, first_wait_s=0.1, max_wait_s=1.0), clock, chance=chance)
    waits = []
    for _ in range(5):
        going.begin_attempt()
        waits.append(going.after_failure(LOST))
    assert waits == pytest.approx([(0.5 + 0.5 * chance) * s for s in (0.1, 0.2, 0.4, 0.8, 1.0)])
    going.begin_attempt()
    with pytest.raises(Unreachable):
        going.after_failure(LOST)


@pytest.mark.parametrize(
    ("reported", "min_s", "max_s"),
    [
        ("7", 7.0, 7.1),
        ("0", 0.0, 0.1),
        (format_datetime(datetime.now(UTC) - timedelta(hours=1)), 0.0, 0.1),
        (format_datetime(datetime.now(UTC) + timedelta(days=1)), 75_600.0, 86_400.1),
        ("soon", 0.0, 0.1),
        ("-3", 0.0, 0.1),
        ("9" * 400, 0.0, 1e9 + 1),
        ("", 0.0, 0.1),
    ],
    # The dates are those of this run, which may take hours: as names of tests, every process
    # would have its own.
    ids=["seconds", "none", "past", "future", "word", "negative", "huge", "empty"],
)
def test_retry_after_is_the_least_that_is_waited(
    clock: Clock, reported: str, min_s: float, max_s: float
) -> None:
    """Seconds or a date; what is neither counts as nothing said."""
    going = retry_state(Retry(first_wait_s=0.1, deadline_s=1e12), clock)
    going.begin_attempt()
    wait_s = going.after_answer(Answer(503, {"retry-after": reported}, b""))
    assert wait_s is not None
    assert min_s <= wait_s <= max_s


def test_an_operation_that_takes_long_has_its_time(clock: Clock) -> None:
    """A table is compiled for two minutes; the deadline of the client is one."""
    going = retry_state(Retry(deadline_s=60.0), clock, takes_s=120.0)
    assert going.begin_attempt() == 150.0
    clock.now_s += 149.0
    assert going.begin_attempt() == pytest.approx(1.0)
    clock.now_s += 1.0
    with pytest.raises(DeadlineExceeded):
        going.begin_attempt()


def test_pauses_grow_and_end(clock: Clock) -> None:
    """Up to a second, the last one no longer than is left."""
    pauses = Pauses(10.0, clock=clock)
    seen = [pauses.next_s() for _ in range(30)]
    assert seen[0] == 0.05
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    clock.now_s += 9.9
    assert pauses.next_s() == pytest.approx(0.1)
    clock.now_s += 0.1
    with pytest.raises(DeadlineExceeded, match="within 10 s"):
        pauses.next_s()


@pytest.mark.parametrize(
    "settings",
    [
        {"attempts": 0},
        {"first_wait_s": -1.0},
        {"first_wait_s": 2.0, "max_wait_s": 1.0},
        {"deadline_s": 0.0},
        {"deadline_s": float("nan")},
    ],
)
def test_a_patience_that_is_none_is_refused(settings: dict[str, Any]) -> None:
    """When it is made."""
    with pytest.raises(InvalidRequest):
        Retry(**settings)


# --- answers that are none ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "step",
    [
        answer(body=b"not json"),
        answer(body=b""),
        answer([]),
        answer({}),
        answer({"status": "ready", "database": "sqlite", "workers": "1"}),
        answer({"status": "ready", "database": "sqlite", "workers": True}),
        answer(body=b"[" * 100_000),
        answer(READY, status=302, headers={"Location": "/elsewhere"}),
        answer(READY, status=304),
    ],
)
def test_an_answer_of_another_kind_is_an_error(client_of: Opened, step: Step) -> None:
    """Which names the place, and is no other exception."""
    with (
        scripted(lambda _: [step]) as server,
        client_of(server.address, retry=QUICK) as client,
        pytest.raises(UnexpectedAnswer),
    ):
        client.readiness()


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b'{"code": 7, "errors": {}}', b'{"errors": [1, {"pointer": 2}]}'],
)
def test_a_refusal_without_a_problem_document_is_one_all_the_same(
    client_of: Opened, body: bytes
) -> None:
    """As a proxy sends it: the status decides."""
    with (
        scripted(lambda _: [answer(body=body, status=404)]) as server,
        client_of(server.address) as client,
    ):
        with pytest.raises(NotFound) as refusal:
            client.readiness()
        assert refusal.value.code == "http_404"


def test_what_an_answer_has_more_is_passed_over(client_of: Opened) -> None:
    """A service may grow."""
    with (
        scripted(lambda _: [answer({**READY, "since": "yesterday"})]) as server,
        client_of(server.address) as client,
    ):
        assert client.readiness().database == "sqlite"


# --- requests that are none -----------------------------------------------------------------------


@pytest.mark.parametrize("address", ["", "localhost:8080", "ftp://a", "/a"])
def test_an_address_without_http_is_refused(client_of: Opened, address: str) -> None:
    """At once."""
    with pytest.raises(InvalidRequest), client_of(address):
        pass


@pytest.mark.parametrize("timeout_s", [0.0, -1.0, float("nan"), float("inf")])
def test_a_time_out_that_is_none_is_refused(client_of: Opened, timeout_s: float) -> None:
    """At once, for a client and for its like with other patience."""
    with (
        pytest.raises(InvalidRequest, match="timeout_s"),
        client_of("http://a", timeout_s=timeout_s),
    ):
        pass
    with client_of("http://a") as client, pytest.raises(InvalidRequest, match="timeout_s"):
        client.options(timeout_s=timeout_s)


@pytest.mark.parametrize("time_limit_s", [-1e300, 0.0, 1e300])
def test_a_time_limit_is_the_services_to_decide(client_of: Opened, time_limit_s: float) -> None:
    """It is sent as it is."""
    with (
        scripted(lambda _: [problem(422, "invalid_input")]) as server,
        client_of(server.address) as client,
    ):
        with pytest.raises(InputRefused):
            client.optimize(message_bytes=4096, profile="gms", time_limit_s=time_limit_s)
        assert json.loads(server.requests[0].body)["time_limit_s"] == time_limit_s


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_that_would_be_another_path_is_refused(client_of: Opened, name: str) -> None:
    """`DELETE /profiles/` is no way to delete a profile."""
    with client_of("http://127.0.0.1:9") as client, pytest.raises(InvalidRequest):
        client.delete_profile(name)


@pytest.mark.parametrize(
    ("name", "sent"),
    [("a/b", "a%2Fb"), ("a?b#c", "a%3Fb%23c"), ("a@2", "a@2"), ("é\n", "%C3%A9%0A")],
)
def test_a_name_stays_inside_its_segment(client_of: Opened, name: str, sent: str) -> None:
    """Whatever it holds."""
    with (
        scripted(lambda _: [problem(404, "not_found")]) as server,
        client_of(server.address) as client,
    ):
        with pytest.raises(NotFound):
            client.profile(name)
        assert server.requests[0].target == f"/profiles/{sent}"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object()])
def test_what_is_no_json_is_refused(client_of: Opened, value: Any) -> None:
    """Before anything is sent."""
    with client_of("http://127.0.0.1:9") as client, pytest.raises(InvalidRequest, match="expected"):
        client.optimize(message_bytes=4096, profile="gms", relative_gap=value)


def test_headers_and_a_path_before_the_operations_are_kept(client_of: Opened) -> None:
    """Behind a proxy that wants both."""
    with (
        scripted(lambda _: [answer(READY)]) as server,
        client_of(server.address + "/sluice/", headers={"Authorization": "secret"}) as client,
    ):
        client.readiness()
        (request,) = server.requests
        assert request.target == "/sluice/readyz"
        assert request.headers["authorization"] == "secret"
        assert request.headers["user-agent"].startswith("sluice-client/")
