"""Where the page of a job leads: to what it was asked, and what it has found."""

from __future__ import annotations

from collections.abc import Iterator

from app.operations.operation import OperationKind
from app.schemas.audit import AuditIn
from app.schemas.base import read_request
from app.schemas.job_requests import ExportJobIn, TableJobIn
from app.web.views.audit_form import AuditForm
from app.web.views.listed import address, in_path
from app.web.views.table_work import range_words, work_address
from app.web.views.work_view import WorkPlace
from domain.regret import Objective
from domain.units import format_bytes
from models.records import JobRecord, JobState

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
    title, result, words = _MAKERS[OperationKind(job.kind)](job)
    if job.state is not JobState.DONE:
        words = "See what was asked"
    here = f"/ui/jobs/{job.id}"
    return WorkPlace(
        title=title, here=here, part=here, into="#main", result=result, result_words=words
    )


def _audit(job: JobRecord) -> tuple[str, str, str]:
    asked = read_request(AuditIn, job.request)
    return AuditForm.of_request(asked).title, f"/ui/audits/{job.id}", "See the audit"


def _table(job: JobRecord) -> tuple[str, str, str]:
    asked = read_request(TableJobIn, job.request)
    title = f"Compiling {range_words(asked)} for {asked.profile}"
    return title, work_address(asked.profile, job.id), "See the table"


def _export(job: JobRecord) -> tuple[str, str, str]:
    asked = read_request(ExportJobIn, job.request)
    reference, target = asked.profile, asked.target
    pairs = [*_choices(asked), ("work", job.id)]
    result = address(f"/ui/profiles/{in_path(reference)}/exports/{target}", pairs)
    return f"Exporting {reference} to {target}", result, "See the text"


def _choices(asked: ExportJobIn) -> Iterator[tuple[str, str]]:
    """As the page of an export has them in its address."""
    for name, value in asked.options.items():
        yield f"option.{name}", value
    for name, bound in (("least", asked.least_bytes), ("greatest", asked.greatest_bytes)):
        if bound is not None:
            yield name, format_bytes(bound)
    if asked.objective is not Objective.MEAN:
        yield "objective", asked.objective
    limits = dict(asked.constraints) if asked.constraints else {}
    for key, name in _LIMITS.items():
        if limits.get(key) is not None:
            yield name, str(limits[key])


_MAKERS = {OperationKind.AUDIT: _audit, OperationKind.TABLE: _table, OperationKind.EXPORT: _export}
