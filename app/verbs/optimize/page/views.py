"""The pages of optimize: the workbench, an answer, and its files."""

from __future__ import annotations

from app.http.dependencies import own_router
from app.verbs.optimize.page import answer, files, workbench

router = own_router(include_in_schema=False)
for pages in (workbench, answer, files):
    router.routes.extend(pages.router.routes)
