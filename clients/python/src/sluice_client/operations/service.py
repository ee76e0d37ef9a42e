"""What the service says of itself, and any request that has no function of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sluice_client.answers import Change, Keys, Limits, NewKey, Page, Readiness
from sluice_client.calls import Answer, Call, get, reads, reads_page, segment, send

_SAFE = ("GET", "HEAD", "OPTIONS")


def limits() -> Call[Limits]:
    """Return everything that a request is measured against."""
    return get("/limits", reads(Limits))


def keys() -> Call[Keys]:
    """Return every key of the owner who asks; takes the scope `admin`, as the next three do."""
    return get("/keys", reads(Keys))


def create_key(
    name: str,
    *,
    scope: str,
    expires_in_s: int | None = None,
    requests_per_s: int | None = None,
) -> Call[NewKey]:
    """Make a key of the scope `read`, `write`, `admin` or `metrics`; its secret is sent once."""
    document = {
        "name": name,
        "scope": scope,
        "expires_in_s": expires_in_s,
        "requests_per_s": requests_per_s,
    }
    return send("POST", "/keys", reads(NewKey), document, may_repeat=False, is_kept=False)


def rotate_key(id: str, *, kept_s: int | None = None) -> Call[NewKey]:
    """Make a key like this one, which goes on for `kept_s`, an hour without it."""
    path, document = f"/keys/{segment(id)}/rotation", {"kept_s": kept_s}
    return send("POST", path, reads(NewKey), document, may_repeat=False, is_kept=False)


def revoke_key(id: str) -> Call[None]:
    """End a key, and the browsers that signed in by it, at once."""
    return Call("DELETE", f"/keys/{segment(id)}", _nothing)


def changes(
    *, subject: str | None = None, cursor: str | None = None, limit: int | None = None
) -> Call[Page[Change]]:
    """Return a page of who changed what, the newest first; takes the scope `admin`."""
    return get("/changes", reads_page(Change), subject=subject, cursor=cursor, limit=limit)


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


def _nothing(answer: Answer) -> None:
    return None


def _any(answer: Answer) -> Any:
    return answer.json() if answer.body else None
