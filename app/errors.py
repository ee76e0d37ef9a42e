"""The one table from an error's code to its HTTP status, its exit code and its title.

Nothing here imports a web framework, so that the command line can use the table without loading
one.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from domain.errors import FieldProblem, InvalidFields, NotReady, SluiceError
from domain.trace_formats import UnreadableRows

RETRY_AFTER_S = (1, 2, 3)


def retry_after_s() -> int:
    """Return after how many seconds to try again what is refused for now: one of several by chance,
    so that those who are refused together do not come back together.
    """
    return random.choice(RETRY_AFTER_S)


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """What every problem of one code has in common."""

    status: int
    exit_code: int
    title: str


INTERRUPTED = 130  # the exit code of a command that Ctrl-C ended
INTERNAL = ErrorKind(500, 70, "Internal error")
_INPUT, _REFUSED, _MISSING, _CONFLICT, _LIMIT, _UNAVAILABLE = 2, 3, 4, 5, 6, 69

KINDS: dict[str, ErrorKind] = {
    "invalid_input": ErrorKind(422, _INPUT, "Invalid input"),
    "inconsistent_input": ErrorKind(422, _INPUT, "Fields that exclude each other"),
    "invalid_stage": ErrorKind(422, _INPUT, "Invalid stage"),
    "would_deadlock": ErrorKind(422, _INPUT, "Stages would wait for each other for ever"),
    "invalid_limits": ErrorKind(422, _INPUT, "Invalid limits"),
    "unreadable_trace": ErrorKind(422, _INPUT, "Unreadable trace"),
    "invalid_table": ErrorKind(422, _INPUT, "Invalid table file"),
    "unit_mismatch": ErrorKind(422, _INPUT, "Unit mismatch"),
    "missing_class_cost": ErrorKind(422, _INPUT, "A class of instructions without its cycles"),
    "not_published": ErrorKind(422, _INPUT, "A cost that was not published"),
    "infeasible": ErrorKind(422, _REFUSED, "No cut satisfies the limits"),
    "strategy_declined": ErrorKind(422, _REFUSED, "The strategy cannot run on this problem"),
    "needs_plain_stages": ErrorKind(
        422, _REFUSED, "This takes no lanes, windows, delays and processors"
    ),
    "items_declined": ErrorKind(422, _REFUSED, "Items do not go with this"),
    "poor_fit": ErrorKind(422, _REFUSED, "The data do not support an estimate"),
    "measurement_missing": ErrorKind(422, _REFUSED, "A measurement is missing"),
    "not_measurable": ErrorKind(422, _REFUSED, "Not measurable here"),
    "cannot_run": ErrorKind(422, _UNAVAILABLE, "The program cannot be run"),
    "limit_reached": ErrorKind(422, _LIMIT, "Stopped before there was an answer"),
    "time_limit": ErrorKind(422, _LIMIT, "Out of time before there was an answer"),
    "memory_limit": ErrorKind(422, _LIMIT, "Out of memory before there was an answer"),
    "cancelled": ErrorKind(409, _LIMIT, "Cancelled before there was an answer"),
    "not_json": ErrorKind(400, _INPUT, "Not JSON"),
    "malformed_request": ErrorKind(400, _INPUT, "Not HTTP"),
    "head_too_large": ErrorKind(431, _INPUT, "Head too large"),
    "body_too_slow": ErrorKind(408, _INPUT, "The body did not arrive in time"),
    "body_too_large": ErrorKind(413, _INPUT, "Body too large"),
    "unsupported_media_type": ErrorKind(415, _INPUT, "Unsupported media type"),
    "foreign_origin": ErrorKind(403, _INPUT, "A page of another host asks"),
    "unauthenticated": ErrorKind(401, _INPUT, "Who asks is not known"),
    "scope_missing": ErrorKind(403, _INPUT, "The key may not do this"),
    "rate_limited": ErrorKind(429, _UNAVAILABLE, "Too many requests by one key"),
    "quota_exceeded": ErrorKind(429, _UNAVAILABLE, "As much as one owner may have"),
    "route_not_found": ErrorKind(404, _MISSING, "No such path"),
    "not_found": ErrorKind(404, _MISSING, "Not found"),
    "method_not_allowed": ErrorKind(405, _INPUT, "Method not allowed"),
    "conflict": ErrorKind(409, _CONFLICT, "Conflict"),
    "malformed_idempotency_key": ErrorKind(400, _INPUT, "Malformed key of a request"),
    "idempotency_key_reused": ErrorKind(422, _INPUT, "Another request had this key"),
    "idempotency_key_in_flight": ErrorKind(409, _CONFLICT, "A request with this key is under way"),
    "precondition_failed": ErrorKind(412, _CONFLICT, "Changed meanwhile"),
    "unreadable_record": ErrorKind(409, _CONFLICT, "Stored by an earlier version"),
    "overloaded": ErrorKind(503, _UNAVAILABLE, "Too much work is waiting"),
    "store_unavailable": ErrorKind(503, _UNAVAILABLE, "The database is not available"),
    "not_ready": ErrorKind(503, _UNAVAILABLE, "Not ready"),
    "solver_failed": ErrorKind(500, 70, "A solver failed"),
    "internal_error": INTERNAL,
}


def kind_of(code: str) -> ErrorKind:
    """Return the table's row for this code; an unknown code is an internal error."""
    return KINDS.get(code, INTERNAL)


def exit_code(error: SluiceError) -> int:
    """Return what the command line exits with for this error."""
    return kind_of(error.code).exit_code


def problem_type(code: str) -> str:
    """Return the stable `type` of a problem document: a name, not an address."""
    return f"urn:sluice:problem:{code.replace('_', '-')}"


def field_problems(error: SluiceError) -> tuple[FieldProblem, ...]:
    """Return the fields at fault: those listed, or the one that the error names."""
    if isinstance(error, (InvalidFields, NotReady)):
        return error.problems
    if error.field is None or kind_of(error.code).status != 422:
        return ()
    pointer = pointer_of(error.field.split("."))
    details = error.rows if isinstance(error, UnreadableRows) else (error.detail,)
    return tuple(FieldProblem(pointer, words) for words in details)


def pointer_of(steps: list[str]) -> str:
    """Return a JSON pointer from keys and indexes; keys that the client invented are cut to 100."""
    return "".join("/" + step[:100].replace("~", "~0").replace("/", "~1") for step in steps)
