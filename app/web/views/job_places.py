"""Where the page of a job leads: to what it was asked, and what it has found."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from app.operations.operation import OperationKind
from app.web.views.audit_form import AuditForm
from app.web.views.listed import address, in_path
from app.web.views.table_work import range_words, work_address
from app.web.views.work_view import WorkPlace
from domain.units import format_bytes
from models.records import JobRecord, JobState

Document = Mapping[str, Any]
SECTIONS = {
    OperationKind.AUDIT: "Audit",
    OperationKind.TABLE: "Profiles",
    OperationKind.EXPORT: "Profiles",
}
WORKS = frozenset(SECTIONS)
_LIMITS = {
    "min_fragment_bytes": "min",
    "max_fragment_bytes": "max",
    "alignment_bytes": "align",
    "max_fragments": "most",
}


def place_of(job: JobRecord) -> WorkPlace:
    """Of a table, an export or an audit: its own page."""
    asked = json.loads(job.request)
    title, result, words = _MAKERS[OperationKind(job.kind)](job, asked)
    if job.state is not JobState.DONE:
        words = "See what was asked"
    here = f"/ui/jobs/{job.id}"
    return WorkPlace(
        title=title, here=here, part=here, into="#main", result=result, result_words=words
    )


def _audit(job: JobRecord, asked: Document) -> tuple[str, str, str]:
    return AuditForm.of_request(asked).title, f"/ui/audits/{job.id}", "See the audit"


def _table(job: JobRecord, asked: Document) -> tuple[str, str, str]:
    title = f"Compiling {range_words(asked)} for {asked['profile']}"
    return title, work_address(asked["profile"], job.id), "See the table"


def _export(job: JobRecord, asked: Document) -> tuple[str, str, str]:
    reference, target = asked["profile"], asked["target"]
    pairs = [*_choices(asked), ("work", job.id)]
    result = address(f"/ui/profiles/{in_path(reference)}/exports/{target}", pairs)
    return f"Exporting {reference} to {target}", result, "See the text"


def _choices(asked: Document) -> Iterator[tuple[str, str]]:
    """As the page of an export has them in its address."""
    for name, value in asked["options"].items():
        yield f"option.{name}", value
    for key, name in (("least_bytes", "least"), ("greatest_bytes", "greatest")):
        if asked[key] is not None:
            yield name, format_bytes(asked[key])
    if asked["objective"] != "mean":
        yield "objective", asked["objective"]
    for key, name in _LIMITS.items():
        value = (asked["constraints"] or {}).get(key)
        if value is not None:
            yield name, str(value)


_MAKERS = {OperationKind.AUDIT: _audit, OperationKind.TABLE: _table, OperationKind.EXPORT: _export}
