"""Pages that show the input panel, with the address that audits a setting on its costs."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from fastapi import Request, Response

from app.ui.addresses import MAX_ADDRESS
from app.ui.pages import page
from app.ui.panel.state import InputSource, InputState


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
    named = {
        InputSource.PROFILE: [("profile", entry.profile)] if entry.profile else [],
        InputSource.FIT: [("fit", entry.fit)] if entry.fit else [],
    }.get(entry.source)
    query = urlencode(entry.stage_pairs() if named is None else named)
    return f"/ui/audit?{query}" if query and len(query) <= MAX_ADDRESS else ""
