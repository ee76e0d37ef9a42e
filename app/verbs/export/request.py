"""What contract/jobs.py keeps of an export: what a job of it is called."""

from __future__ import annotations

from app.schemas.base import read_request
from contract.jobs import ExportJobIn


def title(request: bytes) -> str:
    """Return what a job of this request is called."""
    asked = read_request(ExportJobIn, request)
    return f"Exporting {asked.profile} to {asked.target}"
