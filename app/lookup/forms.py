"""The forms of a compiled table: which one a request asks for, and how each is answered."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from app.lookup.answers import ACTIVE, IMMUTABLE, REVALIDATED, STORED, Ready, conditional

JSON = "application/json"
SLT = "application/vnd.sluice.table"
TWIN = "application/vnd.sluice.table+json"


class TableFormat(StrEnum):
    """A compiled table's file, the file's JSON twin, or what is told of it."""

    SLT = "slt"
    JSON = "json"
    SUMMARY = "summary"


MEDIA = {TableFormat.SLT: SLT, TableFormat.JSON: TWIN, TableFormat.SUMMARY: JSON}
_TAGS = {TableFormat.SLT: "", TableFormat.JSON: "-json", TableFormat.SUMMARY: "-summary"}


def accepted(values: Sequence[str]) -> TableFormat:
    """The first media type in the Accept headers that there is; else what is told."""
    for part in ",".join(values).split(","):
        named = part.split(";")[0].strip().lower()
        for wanted, media in MEDIA.items():
            if named == media:
                return wanted
        if named == "application/octet-stream":
            return TableFormat.SLT
    return TableFormat.SUMMARY


def immutable_form(wanted: str, digest: str, form: TableFormat, body: bytes) -> Ready:
    """A table under its digest, where it never changes. `wanted` is If-None-Match."""
    shared = [_tagged(digest, form), ("cache-control", IMMUTABLE), _VARY]
    return conditional(
        wanted, body, MEDIA[form], shared, route=STORED, disposition=_disposition(digest, form)
    )


def active_form(wanted: str, digest: str, form: TableFormat, body: bytes) -> Ready:
    """The active table of a profile, which another may follow."""
    where = "content-location", f"/tables/{digest}"
    shared = [_tagged(digest, form), ("cache-control", REVALIDATED), _VARY, where]
    return conditional(
        wanted, body, MEDIA[form], shared, route=ACTIVE, disposition=_disposition(digest, form)
    )


_VARY = "vary", "Accept"


def _tagged(digest: str, form: TableFormat) -> tuple[str, str]:
    return "etag", f'"{digest}{_TAGS[form]}"'


def _disposition(digest: str, form: TableFormat) -> str | None:
    return f'attachment; filename="{digest[:16]}.slt"' if form is TableFormat.SLT else None
