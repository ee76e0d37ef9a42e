"""What the service says of itself, and any request that has no function of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sluice_client.answers import Limits, Readiness
from sluice_client.calls import Answer, Call, get, reads, send

_SAFE = ("GET", "HEAD", "OPTIONS")


def limits() -> Call[Limits]:
    """Return everything that a request is measured against."""
    return get("/limits", reads(Limits))


def is_alive() -> Call[bool]:
    """Return whether the process answers; raises where it does not."""
    return get("/healthz", lambda answer: answer.status == 200)


def readiness() -> Call[Readiness]:
    """Check that the database and the workers answer. Raises Unavailable while they do not."""
    return get("/readyz", reads(Readiness))


def metrics() -> Call[str]:
    """Return the counters, in Prometheus' text format."""
    return get("/metrics", lambda answer: answer.body.decode())


def request(
    method: str,
    path: str,
    *,
    json: Mapping[str, Any] | None = None,
    query: Mapping[str, object] | None = None,
    may_repeat: bool | None = None,
) -> Call[Any]:
    """Call any operation by its path; the answer as JSON, None for an empty one.

    It is sent again after a failure if it is a GET or a POST, which then has a key under which the
    service does it once, or if `may_repeat` says that it may be.
    """
    repeats = method.upper() in _SAFE if may_repeat is None else may_repeat
    if json is None:
        return Call(method.upper(), path, _any, dict(query or {}), may_repeat=repeats)
    call = send(method.upper(), path, _any, json, may_repeat=repeats)
    return Call(
        call.method,
        call.path,
        _any,
        dict(query or {}),
        call.content,
        call.headers,
        may_repeat=repeats,
    )


def _any(answer: Answer) -> Any:
    return answer.json() if answer.body else None
