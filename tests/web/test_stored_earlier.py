"""What was stored by another version: its bytes are sent, and its page asks the question again."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import create_engine, update
from sqlalchemy.orm import DeclarativeBase

from app.errors import UnreadableRecord
from app.schemas.audit import AuditOut
from app.schemas.base import dump_json, read_output, read_part
from app.schemas.exports import ExportedOut
from app.schemas.optimize import OptimizeOut
from app.schemas.stages import PipelineOut
from app.schemas.tables import TableOut
from models.rows.answer_body import AnswerBodyRow
from models.rows.job import JobRow
from tests.app.serving import MYRINET, Live, wait_until
from tests.web.conftest import Ask

Change = Callable[[dict[str, Any]], Any]


def without_levels(document: dict[str, Any]) -> None:
    """As a version wrote it that knew no levels."""
    del document["levels"]


def with_more(document: dict[str, Any]) -> None:
    """As a version wrote it that said more."""
    document["phase_of_the_moon"] = "waning"


def otherwise(document: dict[str, Any]) -> None:
    """As a version wrote it whose pipelines were lists."""
    document["pipeline"] = document["pipeline"]["stages"]


CHANGES = (without_levels, with_more, otherwise)


def rewrite(live: Live, row: type[DeclarativeBase], key: str, column: str, body: bytes) -> None:
    """Put these bytes in the place of what is stored."""
    engine = create_engine(live.service.context.settings.database_url)
    with engine.begin() as connection:
        changed = connection.execute(
            update(row).where(row.__table__.primary_key.columns[0] == key).values({column: body})
        )
    engine.dispose()
    assert changed.rowcount == 1


def earlier(live: Live, answer: OptimizeOut, change: Change) -> bytes:
    """Rewrite a stored answer as another version would have stored it."""
    document = json.loads(live.client.get(f"/optimizations/{answer.id}").content)
    change(document)
    body = json.dumps(document).encode()
    rewrite(live, AnswerBodyRow, answer.id, "body", body)
    return body


@pytest.mark.parametrize("change", CHANGES, ids=lambda one: one.__name__)
def test_an_answer_is_sent_as_its_bytes_and_its_page_asks_again(
    live: Live, ask: Ask, change: Change
) -> None:
    """With the message, the limits and the stages in the panel, as far as they can be read."""
    answer = ask(message_bytes=5000 + CHANGES.index(change), constraints={"alignment_bytes": 8})
    body = earlier(live, answer, change)
    assert live.client.get(f"/optimizations/{answer.id}").content == body
    assert live.client.get(f"/ui/answers/{answer.id}/schedule.json").content == body
    page = live.client.get(f"/ui/answers/{answer.id}")
    text = html.unescape(page.text)
    assert page.status_code == 409
    assert "stored by an earlier version" in text
    assert 'action="/ui/optimize"' in text
    assert f'value="{answer.message_bytes} B"' in text
    assert 'value="8 B"' in text
    assert (MYRINET["stages"][0]["name"] in text) == (change is not otherwise)


def test_everything_made_of_an_answer_refuses(live: Live, ask: Ask) -> None:
    """As a problem document and as a part of a page; a list of answers has it all the same."""
    answer = ask(message_bytes=5100)
    earlier(live, answer, without_levels)
    place = f"/ui/answers/{answer.id}"
    explained = live.client.get(f"/optimizations/{answer.id}/explanation")
    assert (explained.status_code, explained.json()["code"]) == (409, "unreadable_record")
    for path in ("/schedule.csv", "/schedule.svg", "/report.html", "/parts/counts", "/parts/cut"):
        refused = live.client.get(place + path)
        assert refused.status_code == 409, path
        assert "stored by an earlier version" in refused.text
    beside = live.client.get(f"/ui/compare?id={answer.id}&id={ask(message_bytes=5101).id}")
    assert beside.status_code == 409
    assert answer.id in live.client.get("/ui/answers?message=5100").text


def test_a_comparison_asks_again(live: Live) -> None:
    """The page of its job says why nothing is shown, and has the question."""
    question = {
        "pipeline": MYRINET,
        "message_bytes": [5200],
        "strategies": ["single"],
    }
    accepted = live.client.post("/compare", json=question, headers={"prefer": "respond-async"})
    id = accepted.json()["id"]
    wait_until(lambda: live.client.get(f"/jobs/{id}").json()["state"] == "done")
    rewrite(live, JobRow, id, "best", b'{"rows":[]}')
    assert live.client.get(f"/jobs/{id}").json()["comparison"] == {"rows": []}
    shown = live.client.get(f"/ui/jobs/{id}")
    assert shown.status_code == 200
    assert "stored by an earlier version" in html.unescape(shown.text)
    assert 'value="5200 B"' in html.unescape(shown.text)


def test_an_audit_asks_again(live: Live) -> None:
    """Its form is filled, and the button that asks again is there."""
    question = {
        "pipeline": MYRINET,
        "setting": {"static_bytes": 4096},
        "least_bytes": 1024,
        "greatest_bytes": 2048,
    }
    accepted = live.client.post("/audit", json=question, headers={"prefer": "respond-async"})
    id = accepted.json()["id"]
    wait_until(lambda: live.client.get(f"/jobs/{id}").json()["state"] == "done")
    document = live.client.get(f"/jobs/{id}").json()["audit"]
    del document["worst_of"]  # which the first audits did not have
    rewrite(live, JobRow, id, "best", dump_json(document))
    text = html.unescape(live.client.get(f"/ui/audits/{id}").text)
    assert "It could not be audited" in text
    assert "stored by an earlier version" in text
    assert 'value="4 KiB"' in text


def test_a_compilation_asks_again(live: Live) -> None:
    """The form of its profile's page is filled, and says why."""
    question = {"least_bytes": 1024, "greatest_bytes": 1100, "activate": False}
    place = "/profiles/gms/tables"
    accepted = live.client.post(place, json=question, headers={"prefer": "respond-async"})
    id = accepted.json()["id"]
    wait_until(lambda: live.client.get(f"/jobs/{id}").json()["state"] == "done")
    rewrite(live, JobRow, id, "best", b'{"digest":"0"}')
    text = html.unescape(live.client.get(f"/ui/profiles/gms?work={id}").text)
    assert "stored by an earlier version" in text
    assert 'value="1100 B"' in text


@pytest.mark.parametrize("kind", [OptimizeOut, AuditOut, TableOut, ExportedOut])
@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"id":1}', b"\xff", b"null"])
def test_what_no_version_wrote_is_refused_in_the_same_way(kind: Any, body: bytes) -> None:
    """By one error."""
    with pytest.raises(UnreadableRecord):
        read_output(kind, body)
    assert read_part(PipelineOut, body, "pipeline") is None
