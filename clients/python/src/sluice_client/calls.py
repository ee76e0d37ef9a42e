"""One operation on its way: what is sent, what may be done again, how its answer is read.

Nothing here touches the network, so that the blocking and the asynchronous client share all of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlencode

from sluice_client.dataclass_json import as_json, from_json
from sluice_client.errors import InvalidRequest, UnexpectedAnswer
from sluice_client.problems import error_of, problem_of

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of HTTP with its whole body; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the body as JSON. Raises UnexpectedAnswer."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            raise UnexpectedAnswer("the answer is not JSON", status=self.status) from None

    def check(self) -> Answer:
        """Return the answer itself. Raises ProblemError for a refusal, UnexpectedAnswer
        otherwise.
        """
        if 200 <= self.status < 300:
            return self
        if self.status < 400:
            raise UnexpectedAnswer(f"the service answered {self.status}", status=self.status)
        try:
            document = json.loads(self.body)
        except (ValueError, RecursionError):
            document = None
        error = error_of(problem_of(document, status=self.status))
        error.request_id = self.headers.get("x-request-id", "")
        raise error


@dataclass(frozen=True, slots=True)
class Call(Generic[T_co]):
    """A request and how its answer is read.

    `may_repeat`: sent twice it has the effect of once, so it may be sent again whatever became of
    it. `takes_s` is what the service may need for it. `remembers`: its answer has an ETag.
    A POST that may not be repeated `is_keyed`: sent again under the same Idempotency-Key it is done
    once. Not so where the service keeps no answer, which `is_kept` says.
    """

    method: str
    path: str
    read: Callable[[Answer], T_co]
    query: Mapping[str, object] = field(default_factory=dict)
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    may_repeat: bool = False
    takes_s: float = 0.0
    remembers: bool = False
    is_kept: bool = True

    @property
    def is_keyed(self) -> bool:
        """Whether it has to have a key to be sent again."""
        return self.method == "POST" and not self.may_repeat and self.is_kept

    @property
    def target(self) -> str:
        """Path and query, as the request has them."""
        given = [(name, _word(value)) for name, value in _flat(self.query)]
        return f"{self.path}?{urlencode(given, quote_via=quote)}" if given else self.path


def get(
    path: str,
    read: Callable[[Answer], T],
    *,
    remembers: bool = False,
    takes_s: float = 0.0,
    **query: object,
) -> Call[T]:
    """Return a GET; parameters that are None are left out."""
    return Call("GET", path, read, query, may_repeat=True, takes_s=takes_s, remembers=remembers)


def send(
    method: str,
    path: str,
    read: Callable[[Answer], T],
    body: object,
    *,
    query: Mapping[str, object] | None = None,
    may_repeat: bool,
    takes_s: float = 0.0,
    is_kept: bool = True,
) -> Call[T]:
    """Return a request with a JSON body: a dataclass, or a mapping. Raises InvalidRequest."""
    return Call(
        method,
        path,
        read,
        query or {},
        _dumped(body),
        {"Content-Type": JSON},
        may_repeat=may_repeat,
        takes_s=takes_s,
        is_kept=is_kept,
    )


def reads(kind: type[T]) -> Callable[[Answer], T]:
    """Return a reader of JSON answers as this class."""
    return lambda answer: from_json(kind, answer.json())


def segment(text: str) -> str:
    """Return a name as one segment of a path. Raises InvalidRequest for what cannot be one."""
    if text in ("", ".", ".."):
        raise InvalidRequest("expected the name or id of something that is stored")
    return quote(text, safe="@")


def _dumped(body: object) -> bytes:
    document = as_json(body)
    if isinstance(document.get("fit"), dict):
        document["fit"].pop("plot", None)  # what was drawn of a fit says nothing of its costs
    try:
        return json.dumps(document, allow_nan=False, separators=(",", ":")).encode()
    except ValueError:
        raise InvalidRequest("expected numbers that are finite") from None
    except TypeError:
        raise InvalidRequest("expected texts as the names of fields") from None


def _flat(query: Mapping[str, object]) -> list[tuple[str, object]]:
    flat: list[tuple[str, object]] = []
    for name, value in query.items():
        if isinstance(value, list | tuple):
            flat += [(name, one) for one in value]
        elif value is not None:
            flat.append((name, value))
    return flat


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
