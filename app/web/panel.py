"""Pages that show the input panel."""

from __future__ import annotations

from typing import Any

from fastapi import Request, Response

from app.web.audits.form import MAX_ADDRESS, AuditForm
from app.web.pages import page
from app.web.workbench.state import InputSource, InputState


def panel_page(
    request: Request, template: str, entry: InputState, *, status: int = 200, **values: Any
) -> Response:
    """Return a page with the panel as it is filled in. `values` are for the rest of the page."""
    address = audit_address(entry)
    return page(request, template, status=status, entry=entry, audit_address=address, **values)


def audit_address(entry: InputState) -> str:
    """Return where a setting is audited on the panel's costs.

    "" where they are too long for an address.
    """
    if entry.source is InputSource.TRACE:
        return ""
    is_stored = entry.source is InputSource.PROFILE
    form = AuditForm({"profile": entry.profile}) if is_stored else AuditForm(stages=entry)
    query = form.query()
    return f"/ui/audit?{query}" if query and len(query) <= MAX_ADDRESS else ""
