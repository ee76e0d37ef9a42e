"""Loaded by the command line of Schemathesis: valid time limits become short ones."""

from __future__ import annotations

from typing import Any

import schemathesis

TIME_LIMIT_S = 0.5


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Called for each case before it is sent."""
    keep_short(case)


def keep_short(case: Any) -> None:
    """A solve may take as long as the case says, which the tests do not wait for."""
    if isinstance(case.body, dict) and isinstance(case.body.get("time_limit_s"), int | float):
        case.body["time_limit_s"] = min(case.body["time_limit_s"], TIME_LIMIT_S)
