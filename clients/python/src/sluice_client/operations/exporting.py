"""Exports: a profile as the configuration of a messaging library."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from sluice_client.answers import ExportedFile, ExportTarget
from sluice_client.calls import Answer, Call, get, reads_page, segment
from sluice_client.shapes import Constraints

_EXPORT_LIMIT_S = 120.0  # the service's own, where sizes have to be chosen by solving
_FILE_NAME = re.compile(r'filename="([^"/\\]+)"')


def export_targets() -> Call[tuple[ExportTarget, ...]]:
    """Every target: what it takes, its options, and what verifies it."""
    page = reads_page(ExportTarget)
    return get("/exports", lambda answer: page(answer).items, remembers=True)


def export(
    name: str,
    target: str,
    *,
    least_bytes: int | None = None,
    greatest_bytes: int | None = None,
    objective: str | None = None,
    constraints: Constraints | None = None,
    options: Mapping[str, str] | None = None,
    table: str | None = None,
) -> Call[ExportedFile]:
    """A profile as a library's configuration; `name@2` pins a revision.

    Sizes are chosen for messages of `least_bytes` to `greatest_bytes`, for the least mean regret
    or, with `objective` "worst", for the least worst one. `options` are the target's own; `table`
    is the digest of a compiled table in place of the active one.
    """
    call = get(
        f"/profiles/{segment(name)}/exports/{segment(target)}",
        _exported,
        remembers=True,
        least_bytes=least_bytes,
        greatest_bytes=greatest_bytes,
        objective=objective,
        **_limits(constraints),
        option=[f"{option}:{value}" for option, value in (options or {}).items()],
        table=table,
    )
    return replace(call, takes_s=_EXPORT_LIMIT_S)


def _limits(constraints: Constraints | None) -> dict[str, object]:
    if constraints is None:
        return {}
    return {name: value for name, value in constraints.as_json().items() if value is not None}


def _exported(answer: Answer) -> ExportedFile:
    named = _FILE_NAME.search(answer.headers.get("content-disposition", ""))
    kind = answer.headers.get("content-type", "").partition(";")[0]
    return ExportedFile(named[1] if named else "", kind, answer.body)
