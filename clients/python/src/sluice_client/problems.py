"""Problem documents (RFC 9457) of the service, as the errors to raise for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from sluice_client.contract.jobs import JobOut
from sluice_client.contract.problem import FieldProblemOut, ProblemOut
from sluice_client.errors import (
    Conflict,
    Declined,
    InputRefused,
    NotFound,
    ProblemError,
    ServiceFailed,
    Stopped,
    Unavailable,
)

JobT = TypeVar("JobT", bound=JobOut)

_BY_CODE: Mapping[str, type[ProblemError]] = {
    "infeasible": Declined,
    "strategy_declined": Declined,
    "needs_plain_stages": Declined,
    "items_declined": Declined,
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


def error_of(problem: ProblemOut) -> ProblemError:
    """Return the error to raise for a problem."""
    fallback = ServiceFailed if problem.status >= 500 else InputRefused
    kind = _BY_CODE.get(problem.code) or _BY_STATUS.get(problem.status, fallback)
    return kind(problem)


def check_job(job: JobT) -> JobT:
    """Return the job itself. Raises the ProblemError that it ended with."""
    if job.error is not None:
        raise error_of(job.error)
    return job


def problem_of(document: Any, *, status: int) -> ProblemOut:
    """Return the problem of a body, as far as it is one; what it lacks follows from the status."""
    given = document if isinstance(document, dict) else {}
    listed = given.get("errors")
    return ProblemOut(
        type=_text(given, "type", "about:blank"),
        title=_text(given, "title", ""),
        status=status,
        code=_text(given, "code", f"http_{status}"),
        detail=_text(given, "detail", f"the service answered {status}"),
        errors=tuple(
            FieldProblemOut(_text(one, "pointer", ""), _text(one, "detail", ""))
            for one in (listed if isinstance(listed, list) else [])
            if isinstance(one, dict)
        ),
    )


def _text(given: Mapping[str, Any], name: str, default: str) -> str:
    value = given.get(name, default)
    return value if isinstance(value, str) else default
