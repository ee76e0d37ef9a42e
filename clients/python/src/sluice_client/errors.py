"""Every error that this package raises, in one tree; none of them repeats the input."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sluice_client.contract.problem import FieldProblemOut, ProblemOut


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


class ProblemError(SluiceClientError):
    """The service refused or failed, and says why: `problem` holds all that it said."""

    def __init__(self, problem: ProblemOut) -> None:
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
    def errors(self) -> tuple[FieldProblemOut, ...]:
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
