"""What was stored by another version: its bytes are sent, and its page asks the question again."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from typing import Any

import pytest

from app.operations.operation import OperationKind
from app.schemas.base import dump_json, parse_json, read_output, read_part
from app.schemas.source import as_job
from contract.audit import AuditIn, AuditOut
from contract.compare import CompareIn
from contract.constraints import ConstraintsOut
from contract.export import ExportedOut
from contract.optimize import OptimizeOut
from contract.pipeline import PipelineOut
from contract.table import TableOut
from domain.errors import UnreadableRecord
from domain.pipeline import pipeline_of_lines
from models.records import JobState
from tests.app.serving import MYRINET, Live
from tests.support.answers import solved
from tests.support.records import TIMESTAMP, a_job, an_answer

Change = Callable[[dict[str, Any]], Any]
PIPELINE = pipeline_of_lines([("copy in", 1.0, 2.0), ("wire", 3.0, 4.0)])


def without_levels(document: dict[str, Any]) -> None:
    """As a version wrote it that knew no levels."""
    del document["levels"]


def with_more(document: dict[str, Any]) -> None:
    """As a version wrote it that said more."""
    document["phase_of_the_moon"] = "waning"


def otherwise(document: dict[str, Any]) -> None:
    """As a version wrote it whose pipelines were lists."""
    document["pipeline"] = document["pipeline"]["stages"]


def stored(live: Live, change: Change, message_bytes: int = 5000) -> tuple[str, bytes]:
    """Store an answer as another version would have; its identifier and its body."""
    record = an_answer(message_bytes=message_bytes)
    document = json.loads(dump_json(solved(PIPELINE, message_bytes)))
    document |= {"id": record.id, "constraints": {**document["constraints"], "alignment_bytes": 8}}
    read_output(OptimizeOut, dump_json(document))
    change(document)
    body = dump_json(document)
    with live.service.context.store.unit_of_work() as unit:
        unit.answers.add(an_answer(id=record.id, message_bytes=message_bytes, body=body))
    return record.id, body


def done(live: Live, kind: OperationKind, request: bytes, best: bytes) -> str:
    """Store a job that has ended; its identifier."""
    job = a_job(
        kind=kind, state=JobState.DONE, finished_at=TIMESTAMP, claim=1, request=request, best=best
    )
    with live.service.context.store.unit_of_work() as unit:
        unit.jobs.add(job)
    return job.id


@pytest.mark.parametrize("change", [without_levels, with_more, otherwise])
def test_an_answer_is_sent_as_its_bytes_and_its_page_asks_again(live: Live, change: Change) -> None:
    """With the message, the limits and the stages in the panel, as far as they can be read."""
    id, body = stored(live, change)
    assert live.client.get(f"/optimizations/{id}").content == body
    assert live.client.get(f"/ui/answers/{id}/schedule.json").content == body
    page = live.client.get(f"/ui/answers/{id}")
    text = html.unescape(page.text)
    assert page.status_code == 409
    assert "stored by an earlier version" in text
    assert 'action="/ui/optimize"' in text
    assert 'value="5000 B"' in text
    assert 'value="8 B"' in text
    assert ('value="copy in"' in text) == (change is not otherwise)


def test_everything_made_of_an_answer_refuses(live: Live) -> None:
    """As a problem document and as a part of a page; a list of answers has it all the same."""
    id, _ = stored(live, without_levels, 5100)
    place = f"/ui/answers/{id}"
    explained = live.client.get(f"/optimizations/{id}/explanation")
    assert (explained.status_code, explained.json()["code"]) == (409, "unreadable_record")
    for path in ("/schedule.csv", "/schedule.svg", "/report.html", "/parts/counts", "/parts/cut"):
        refused = live.client.get(place + path)
        assert refused.status_code == 409, path
        assert "stored by an earlier version" in refused.text
    other, _ = stored(live, lambda document: None, 5100)
    assert live.client.get(f"/ui/answers/{other}").status_code == 200
    assert live.client.get(f"/ui/compare?id={id}&id={other}").status_code == 409
    listed = live.client.get("/ui/answers?message=5100").text
    assert id in listed
    assert other in listed


def test_a_comparison_asks_again(live: Live) -> None:
    """The page of its job says why nothing is shown, and has the question."""
    question = {"pipeline": MYRINET, "message_bytes": [5200], "strategies": ["single"]}
    request = as_job(parse_json(CompareIn, dump_json(question)), None)
    id = done(live, OperationKind.COMPARE, request, b'{"rows":[]}')
    assert live.client.get(f"/jobs/{id}").json()["comparison"] == {"rows": []}
    shown = live.client.get(f"/ui/jobs/{id}")
    assert shown.status_code == 200
    assert "stored by an earlier version" in html.unescape(shown.text)
    assert 'value="5200 B"' in html.unescape(shown.text)


def test_an_audit_asks_again(live: Live) -> None:
    """Its form is filled, and the button that asks again is there."""
    question = {"profile": "gms@1", "setting": {"static_bytes": 4096}}
    request = as_job(parse_json(AuditIn, dump_json(question)), None)
    id = done(live, OperationKind.AUDIT, request, b'{"setting":{"steps":[]}}')
    text = html.unescape(live.client.get(f"/ui/audits/{id}").text)
    assert "It could not be audited" in text
    assert "stored by an earlier version" in text
    assert "Try again" in text
    assert 'value="4 KiB"' in text


def test_a_compilation_asks_again(live: Live) -> None:
    """The form of its profile's page is filled, and says why."""
    request = {"profile": "gms@1", "min_message_bytes": 1024, "max_message_bytes": 1100}
    id = done(live, OperationKind.TABLE, dump_json(request), b'{"digest":"0"}')
    text = html.unescape(live.client.get(f"/ui/profiles/gms?work={id}").text)
    assert "stored by an earlier version" in text
    assert 'value="1100 B"' in text


def test_a_job_whose_question_cannot_be_read_says_so(live: Live) -> None:
    """On its page; its document is sent."""
    id = done(live, OperationKind.OPTIMIZE, b'{"message":1}', b"{}")
    assert live.client.get(f"/jobs/{id}").json()["best"] == {}
    shown = live.client.get(f"/ui/jobs/{id}")
    assert shown.status_code == 409
    assert "stored by an earlier version" in shown.text


@pytest.mark.parametrize("kind", [OptimizeOut, AuditOut, TableOut, ExportedOut])
@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"id":1}', b"\xff", b"null"])
def test_what_no_version_wrote_is_refused_in_the_same_way(kind: Any, body: bytes) -> None:
    """By one error."""
    with pytest.raises(UnreadableRecord):
        read_output(kind, body)
    assert read_part(PipelineOut, body, "pipeline") is None


def test_what_is_read_is_what_was_written() -> None:
    """The very object, and parts of it."""
    answer = solved(PIPELINE, 4096)
    body = dump_json(answer)
    assert read_output(OptimizeOut, body) == answer
    assert read_part(PipelineOut, body, "pipeline") == answer.pipeline
    assert read_part(ConstraintsOut, body, "constraints") == answer.constraints
    assert dump_json(read_output(OptimizeOut, body)) == body
