"""What both clients have in common in front of httpx: the address, the headers, its errors."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import httpx

from sluice_client._version import __version__
from sluice_client.calls import Answer, Call
from sluice_client.errors import InvalidRequest, SluiceClientError
from sluice_client.retries import Failure, Retry

DEFAULT_ADDRESS = "http://localhost:8080"
ADDRESS_VARIABLE = "SLUICE_URL"
KEY_VARIABLE = "SLUICE_KEY"
REQUEST_ID = "X-Request-ID"
KEY = "Idempotency-Key"
DEFAULT_TIMEOUT_S = 30.0
MAX_TIMEOUT_S = 86_400.0
DEFAULT_MEMORY_BYTES = 16 * 2**20
USER_AGENT = f"sluice-client/{__version__}"

# A connection that the service closes (after five idle seconds, by uvicorn's default) just when a
# request is sent leaves it open whether the request arrived. So idle ones are closed here, earlier.
LIMITS = httpx.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=2.0)

# Before the connection stands, nothing of the request has left.
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)


def address_of(address: str | None) -> str:
    """Return the address without a slash at its end; where there is none, that of SLUICE_URL or the
    default. Raises InvalidRequest.
    """
    named = address if address is not None else os.environ.get(ADDRESS_VARIABLE) or DEFAULT_ADDRESS
    where = "" if address is not None else f" in {ADDRESS_VARIABLE}"
    if not named.lower().startswith(("http://", "https://")):
        raise InvalidRequest(f"expected an address that begins with http:// or https://{where}")
    with suppress(ValueError):
        if urlsplit(named).hostname:
            return named.rstrip("/")
    raise InvalidRequest(f"expected an address with a host that is one{where}")


def own_headers(key: str | None, headers: Mapping[str, str] | None) -> dict[str, str]:
    """Return the headers of every request: those given, and the key, where there is none that of
    SLUICE_KEY. Raises InvalidRequest for what cannot be a key.
    """
    found = dict(headers or {})
    named = key if key is not None else os.environ.get(KEY_VARIABLE, "")
    where = "" if key is not None else f" in {KEY_VARIABLE}"
    if not all("!" <= letter <= "~" for letter in named):
        raise InvalidRequest(f"expected a key of visible ASCII characters{where}")
    if named and not any(name.lower() == "authorization" for name in found):
        found["Authorization"] = f"Bearer {named}"
    return found


def shown_address(address: str) -> str:
    """Return the address without the name and the password that it may hold."""
    parts = urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def key_of(call: Call[Any], retry: Retry, own: Mapping[str, str]) -> dict[str, str]:
    """Return the header by which the service does a call once however often it is sent: the same in
    all attempts, where there may be several. A client that was given a key keeps it.
    """
    if not call.is_keyed or retry.attempts == 1 or KEY.lower() in {name.lower() for name in own}:
        return {}
    return {KEY: uuid.uuid4().hex}


def new_request_id() -> str:
    """Return an identifier for one call, all of its attempts included."""
    return uuid.uuid4().hex


@contextmanager
def identified(request_id: str) -> Iterator[None]:
    """Give errors of this package that end the block the identifier of the request, unless the
    answer brought one.
    """
    try:
        yield
    except SluiceClientError as error:
        error.request_id = error.request_id or request_id
        raise


def checked_timeout_s(timeout_s: float) -> float:
    """Return the time-out itself. Raises InvalidRequest."""
    if not 0.0 < timeout_s <= MAX_TIMEOUT_S:
        raise InvalidRequest(f"expected 0 < timeout_s <= {MAX_TIMEOUT_S:g}")
    return timeout_s


def headers_of(*, own: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a request: the client's own, then the call's, then those of this
    attempt.
    """
    replaced = {name.lower() for name in more}
    kept = {name: value for name, value in own.items() if name.lower() not in replaced}
    headers = {"Accept": "*/*", "User-Agent": USER_AGENT, **kept, **more}
    return {name: value for name, value in headers.items() if value}


def timeout_of(call_s: float, timeout_s: float) -> httpx.Timeout:
    """Return how long to wait for an answer, and for everything else."""
    return httpx.Timeout(min(call_s, timeout_s), read=call_s)


def failure_of(error: httpx.RequestError) -> Failure:
    """Return what a failure of httpx means for sending again."""
    reason = type(error).__name__
    if text := str(error):
        reason = f"{reason}: {text}"
    return Failure(
        was_sent=not isinstance(error, _NOT_SENT),
        is_timeout=isinstance(error, httpx.TimeoutException),
        reason=reason,
    )


def answer_of(response: httpx.Response, body: bytes) -> Answer:
    """Return the answer, its headers as plain texts."""
    return Answer(response.status_code, dict(response.headers.items()), body)
