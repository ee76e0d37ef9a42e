"""The report of a stored answer as a file. It has no script and loads nothing, so its sheet is part
of it.
"""

from __future__ import annotations

from html import escape

from app.web.assets import FOLDER
from app.web.pages import Pages
from app.web.report import Report


def report_html(pages: Pages, report: Report, *, base_url: str, version: str) -> bytes:
    """The file. `base_url` is where the service is that has the answer."""
    body = pages.html(
        "report.html", report=report, view=report.view, base_url=base_url, version=version
    )
    sheet = (FOLDER / "report.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{escape(report.view.title)} · Sluice</title>\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<style>\n{sheet}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    ).encode()
