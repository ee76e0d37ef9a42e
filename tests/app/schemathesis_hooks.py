"""Loaded by the command line of Schemathesis: valid time limits become short ones."""

from __future__ import annotations

from typing import Any

import schemathesis

TIME_LIMIT_S = 0.5
TABLE_BYTES = 4096
EXPORTED_BYTES = 4096
MOST_MIX_SIZES, AUDITED_SIZES = 512, 3


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Called for each case before it is sent."""
    keep_short(case)


def keep_short(case: Any) -> None:
    """A solve may take as long as the case says, which the tests do not wait for."""
    if isinstance(case.body, dict) and isinstance(case.body.get("time_limit_s"), int | float):
        case.body["time_limit_s"] = min(case.body["time_limit_s"], TIME_LIMIT_S)
    if case.path.endswith("/tables") and isinstance(case.body, dict):
        _shorten_table(case.body)
    if case.path == "/audit" and isinstance(case.body, dict):
        _shorten_audit(case.body)
    if "/exports/" in case.path and isinstance(case.query, dict):
        _shorten_export(case.query)


def _shorten_export(query: dict[str, Any]) -> None:
    """Sizes are chosen for one message; what is no whole number is left to be refused."""
    for name in ("least_bytes", "greatest_bytes"):
        given = query.get(name, 1)
        if isinstance(given, int) and not isinstance(given, bool) and given >= 1:
            query[name] = EXPORTED_BYTES


def _shorten_audit(body: dict[str, Any]) -> None:
    """A few messages instead of some hundred, where the mix is one."""
    body.setdefault("time_limit_s", TIME_LIMIT_S)
    if body.get("mix") is None:
        body["mix"] = [{"message_bytes": 4096}]
    mix = body["mix"]
    if isinstance(mix, list) and len(mix) <= MOST_MIX_SIZES:
        del mix[AUDITED_SIZES:]
    for name in ("least_bytes", "greatest_bytes"):
        if isinstance(body.get(name), int) and body[name] >= 1:
            body[name] = 4096


def _shorten_table(body: dict[str, Any]) -> None:
    """A valid range begins where it began, and ends soon after."""
    least, greatest = body.get("least_bytes", 1), body.setdefault("greatest_bytes", TABLE_BYTES)
    if all(isinstance(size, int | float) and size >= 1 for size in (least, greatest)):
        body["greatest_bytes"] = min(greatest, least + TABLE_BYTES)
