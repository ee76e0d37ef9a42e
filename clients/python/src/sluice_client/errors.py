"""Every error that this package raises, in one tree; none of them repeats the input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class SluiceClientError(Exception):
    """Anything that this package raises of its own.

    `request_id` is what the request was sent with as X-Request-ID, for the service's log and those
    of proxies; empty where nothing was sent.
    """

    request_id = ""


class InvalidTable(SluiceClientError, ValueError):
    """The bytes are not a whole and valid table file; says which rule they break."""


class OutOfRange(SluiceClientError, ValueError):
    """The table has no answer for a message of this size."""


class InvalidRequest(SluiceClientError, ValueError):
    """The request cannot be written at all: a number that is not finite, a name that is none."""


class Unreachable(SluiceClientError):
    """No answer came: the connection failed, also when tried again."""


class DeadlineExceeded(SluiceClientError, TimeoutError):
    """No answer came within the time that the call may take."""


class UnexpectedAnswer(SluiceClientError):
    """The answer is not what this operation is known to give; `status` is that of HTTP."""

    def __init__(self, detail: str, *, status: int = 0) -> None:
        super().__init__(detail)
        self.status = status


@dataclass(frozen=True)
class FieldProblem:
    """Where in the request (JSON pointer; query parameters by name) and which rule it breaks."""

    pointer: str
    detail: str


@dataclass(frozen=True)
class Problem:
    """A problem document (RFC 9457): `type` and `code` are stable, `errors` lists fields."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    errors: tuple[FieldProblem, ...] = ()

    def as_error(self) -> ProblemError:
        """Return the error to raise for it."""
        return _class_of(self.code, self.status)(self)


class ProblemError(SluiceClientError):
    """The service refused or failed, and says why: `problem` holds all that it said."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(f"{problem.code}: {problem.detail}")
        self.problem = problem

    @property
    def status(self) -> int:
        """The status of HTTP."""
        return self.problem.status

    @property
    def code(self) -> str:
        """The stable code, as in the service's table of errors."""
        return self.problem.code

    @property
    def detail(self) -> str:
        """What is wrong, in a sentence."""
        return self.problem.detail

    @property
    def errors(self) -> tuple[FieldProblem, ...]:
        """The fields at fault."""
        return self.problem.errors


class InputRefused(ProblemError):
    """The request breaks a rule; `errors` names the fields."""


class Declined(ProblemError):
    """A valid request that has no answer: no cut satisfies the limits, a strategy cannot run."""


class Stopped(ProblemError):
    """Time, memory or a cancel ended it before there was an answer."""


class NotFound(ProblemError):
    """Nothing is stored under this name, or there is no such path."""


class Conflict(ProblemError):
    """What is stored contradicts the request."""


class Unavailable(ProblemError):
    """The service is busy, starting or stopping; also when asked again."""


class ServiceFailed(ProblemError):
    """A defect of the service."""


_BY_CODE: Mapping[str, type[ProblemError]] = {
    "infeasible": Declined,
    "strategy_declined": Declined,
    "poor_fit": Declined,
    "measurement_missing": Declined,
    "not_measurable": Declined,
    "cannot_run": Unavailable,
    "limit_reached": Stopped,
    "time_limit": Stopped,
    "memory_limit": Stopped,
    "cancelled": Stopped,
}
_BY_STATUS: Mapping[int, type[ProblemError]] = {
    404: NotFound,
    409: Conflict,
    412: Conflict,
    429: Unavailable,
    503: Unavailable,
}


def _class_of(code: str, status: int) -> type[ProblemError]:
    fallback = ServiceFailed if status >= 500 else InputRefused
    return _BY_CODE.get(code) or _BY_STATUS.get(status, fallback)


def problem_of(document: Any, *, status: int) -> Problem:
    """Return the problem of a body, as far as it is one; what it lacks follows from the status."""
    fields = document if isinstance(document, dict) else {}
    listed = fields.get("errors")
    return Problem(
        type=_text(fields, "type", "about:blank"),
        title=_text(fields, "title", ""),
        status=status,
        code=_text(fields, "code", f"http_{status}"),
        detail=_text(fields, "detail", f"the service answered {status}"),
        errors=tuple(
            FieldProblem(_text(one, "pointer", ""), _text(one, "detail", ""))
            for one in (listed if isinstance(listed, list) else [])
            if isinstance(one, dict)
        ),
    )


def _text(fields: Mapping[str, Any], name: str, default: str) -> str:
    value = fields.get(name, default)
    return value if isinstance(value, str) else default
