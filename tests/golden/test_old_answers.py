"""A database of release 0007 under the service of today: every answer as it was, to the byte."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.app.serving import serving, settings_for
from tests.golden.comparing import are_equal, renamed

FOLDER = Path(__file__).parents[1] / "data" / "db"
DATABASE, ANSWERS, INDEX = FOLDER / "0007.db", FOLDER / "0007", FOLDER / "0007.json"
KEPT = [(one["path"], one["file"]) for one in json.loads(INDEX.read_text(encoding="utf-8"))]
# What is stored as bytes, and immutable; other documents are made anew from rows.
STORED = ("/optimizations/", "/tables/")
# Members of fits that the release did not have: null, false or empty in its fits today.
NOT_YET = frozenset(
    {
        "common_error",
        "covariance",
        "degrees_of_freedom",
        "free_ns_per_byte",
        "free_overhead_us",
        "mean_error_us",
        "mean_us",
        "median_error_us",
        "misfit",
        "name",
        "note",
        "overlap",
        "size_deviation",
        "timed_whole",
        "total_is_uncut",
        "up_to_bytes_interval",
        "warnings",
    }
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a service that has opened, and so migrated, a copy of the database."""
    database = tmp_path_factory.mktemp("old") / "sluice.db"
    shutil.copyfile(DATABASE, database)
    with serving(settings_for(f"sqlite:///{database}")) as live:
        yield live.client


@pytest.mark.parametrize(("path", "file"), KEPT, ids=[path for path, _ in KEPT])
def test_it_is_answered_as_before(path: str, file: str, client: httpx.Client) -> None:
    """A job's result stands in its document; documents made anew have the words of today."""
    response = client.get(path)
    assert response.status_code == 200, response.text
    before, today = (ANSWERS / file).read_bytes(), response.content
    if path.startswith("/jobs/"):
        assert before in today
    elif path.startswith(STORED) or path.endswith("/table"):
        assert today == before
    elif path == "/profiles?limit=100":
        # Profiles of papers that came later are there as well.
        known = {one["name"]: one for one in json.loads(today)["items"]}
        for one in json.loads(_in_words_of_today(before, path))["items"]:
            assert are_equal(one, _as_then(known[one["name"]]))
    else:
        expected = _in_words_of_today(before, path)
        assert expected == today or are_equal(json.loads(expected), _as_then(json.loads(today)))


def test_what_was_asked_again_is_found(client: httpx.Client) -> None:
    """The page of an old answer opens, and lists have it."""
    path = next(path for path, _ in KEPT if path.startswith("/optimizations/"))
    page = client.get(path.replace("/optimizations/", "/ui/answers/"))
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")


def test_the_files_are_small() -> None:
    """They are in every checkout."""
    assert DATABASE.stat().st_size < 300_000
    assert sum(Path(file).stat().st_size for file in ANSWERS.iterdir()) < 300_000


def _as_then(document: Any) -> Any:
    """Without the members that fits and answers did not have, where they say nothing."""
    if isinstance(document, list):
        return [_as_then(part) for part in document]
    if not isinstance(document, dict):
        return document
    kept = {
        name: part
        for name, part in document.items()
        if name not in NOT_YET or part not in (None, False, [])
    }
    return {name: _as_then(part) for name, part in kept.items()}


def _in_words_of_today(before: bytes, path: str) -> bytes:
    return renamed(before.decode(), f"old{path}").encode()
