"""Loaded by the command line of Schemathesis: valid time limits become short ones."""

from __future__ import annotations

import re
import uuid
from typing import Any

import schemathesis

from contract.limits import MAX_AUDIT_LIMIT_S, MAX_MESSAGE_BYTES, MAX_TIME_LIMIT_S

TIME_LIMIT_S = 0.5
TABLE_BYTES = 4096
EXPORTED_BYTES = 4096
MAX_WORKLOAD_SIZES, AUDITED_SIZES = 512, 3


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Called for each case before it is sent."""
    keep_short(case)


def keep_short(case: Any) -> None:
    """A solve may take as long as the case says, which the tests do not wait for.

    Only what is valid is exchanged: what is not has to be refused as it is.
    """
    _free_of_others(case.headers)
    if isinstance(case.body, dict):
        is_audit = case.path == "/audit"
        _shorten_time(case.body, MAX_AUDIT_LIMIT_S if is_audit else MAX_TIME_LIMIT_S)
    if case.path.endswith("/tables") and isinstance(case.body, dict):
        _shorten_table(case.body)
    if case.path == "/audit" and isinstance(case.body, dict):
        _shorten_audit(case.body)
    if case.path.startswith("/profiles/{name}/exports/") and isinstance(case.query, dict):
        _shorten_export(case.query)


def _free_of_others(headers: Any) -> None:
    """What depends on other requests is a matter of other tests: each key is a new one, and nothing
    is said of the state that was seen. A key that is none is left to be refused.
    """
    for name in list(headers or ()):
        given = headers[name]
        if name.lower() == "idempotency-key" and re.fullmatch(r"[!-~]{1,255}", str(given)):
            headers[name] = uuid.uuid4().hex
        elif name.lower() == "if-match":
            del headers[name]


def _shorten_time(body: dict[str, Any], maximum_s: float) -> None:
    given = body.get("time_limit_s")
    if _is_number(given) and TIME_LIMIT_S < given <= maximum_s:
        body["time_limit_s"] = TIME_LIMIT_S


def _is_number(given: Any) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool)


def _is_size(given: Any) -> bool:
    return _is_number(given) and 1 <= given <= MAX_MESSAGE_BYTES


def _shorten_export(query: dict[str, Any]) -> None:
    """Sizes are chosen for one message; what is no whole number is left to be refused."""
    for name in ("min_message_bytes", "max_message_bytes"):
        given = query.get(name, 1)
        if isinstance(given, int) and _is_size(given):
            query[name] = EXPORTED_BYTES


def _shorten_audit(body: dict[str, Any]) -> None:
    """A few messages instead of some hundred, where the workload is one."""
    body.setdefault("time_limit_s", TIME_LIMIT_S)
    if body.get("workload") is None:
        body["workload"] = [{"message_bytes": 4096}]
    workload = body["workload"]
    if isinstance(workload, list) and len(workload) <= MAX_WORKLOAD_SIZES:
        del workload[AUDITED_SIZES:]
    for name in ("min_message_bytes", "max_message_bytes"):
        if isinstance(body.get(name), int) and _is_size(body[name]):
            body[name] = 4096


def _shorten_table(body: dict[str, Any]) -> None:
    """A valid range begins where it began, and ends soon after."""
    minimum, maximum = (
        body.get("min_message_bytes", 1),
        body.setdefault("max_message_bytes", TABLE_BYTES),
    )
    if _is_size(minimum) and _is_size(maximum):
        body["max_message_bytes"] = min(maximum, minimum + TABLE_BYTES)
