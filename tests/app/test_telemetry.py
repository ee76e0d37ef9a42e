"""Logs, as text and as JSON with one object a line; whatever reads them or does not."""

from __future__ import annotations

import io
import json
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.http.service import Service
from app.telemetry import (
    FORMS,
    REQUEST,
    QueuedLines,
    dropped_lines,
    events,
    logging_as,
)
from tests.app.serving import Live, serving, settings_for, wait_for_end, wait_until
from tests.support.long_work import long_here_engine

FIELDS = ("time", "level", "logger", "message", "request", "job", "owner")


class Lines(io.StringIO):
    """What was logged."""

    def objects(self) -> list[dict[str, Any]]:
        """Each line as an object; the last one may not be whole yet."""
        return [json.loads(line) for line in self.getvalue().split("\n")[:-1]]

    def of(self, message: str) -> list[dict[str, Any]]:
        """Those with this message."""
        return [one for one in self.objects() if one["message"] == message]


@pytest.fixture
def lines() -> Iterator[Lines]:
    """What this process logs as JSON meanwhile."""
    stream = Lines()
    with logging_as("json", stream):
        yield stream


def test_requests_and_jobs_are_told_by_their_identifiers(lines: Lines, database_url: str) -> None:
    """Also by what is logged in a thread; a path that a client writes is in no line."""
    asked = {"message_bytes": 4096, "profile": "gms"}
    named = {"X-Request-ID": "mine-1", "Prefer": "respond-async"}
    settings = settings_for(database_url, log="json")
    with serving(settings, open_engine=long_here_engine) as live:
        job = live.client.post("/optimize", json=asked, headers=named).headers["location"]
        wait_for_end(live.client, job)
        assert live.client.get("/secret-of-a-client?x=secret").status_code == 404
        wait_until(lambda: bool(lines.of("job ended")))
        wait_until(lambda: any(one["route"] == "unmatched" for one in lines.of("request")))
    (accepted,), (begun,), (ended,) = map(lines.of, ("job accepted", "job begun", "job ended"))
    job_id = job.rpartition("/")[2]
    assert {one["job"] for one in (accepted, begun, ended)} == {job_id}
    assert (accepted["request"], begun["request"], begun["attempts"]) == ("mine-1", "", 1)
    assert (ended["kind"], ended["state"], ended["code"]) == ("optimize", "done", "")
    assert ended["seconds"] >= 0.0
    (request,) = [one for one in lines.of("request") if one["request"] == "mine-1"]
    assert (request["method"], request["route"], request["status"]) == ("POST", "/optimize", 202)
    for one in lines.objects():
        assert tuple(one)[: len(FIELDS)] == FIELDS
        assert one["owner"] in ("", "local")
    told = [one for one in lines.objects() if one["logger"] != "httpx"]  # the client's own
    assert "secret" not in json.dumps(told)


def test_an_unexpected_error_is_found_by_the_identifier_in_its_answer(
    lines: Lines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(Service, "exposition", broken)
    settings = settings_for(f"sqlite:///{tmp_path / 'sluice.db'}", log="json")
    with serving(settings, open_engine=long_here_engine) as live:
        answer = live.client.get("/metrics")
    assert answer.status_code == 500
    wait_until(lambda: any("error" in one for one in lines.objects()))
    (found,) = [one for one in lines.objects() if "error" in one]
    assert found["request"] == answer.headers["x-request-id"]
    assert found["level"] == "error"
    assert "ZeroDivisionError: a defect" in found["error"]


def test_text_stays_as_it_was(live: Live, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is told of requests, whatever the level of others."""
    with caplog.at_level(logging.INFO), logging_as("text"):
        live.client.get("/limits")
        assert not events.isEnabledFor(logging.INFO)
    assert [one for one in caplog.records if one.name == "sluice.events"] == []


def test_a_stream_that_nobody_reads_stops_nothing() -> None:
    """What has no place is counted, and said once there is room."""
    may_write = threading.Event()

    class Stuck(Lines):
        def write(self, text: str) -> int:
            may_write.wait()
            return super().write(text)

    stream = Stuck()
    handler = QueuedLines(stream, max_lines=2)
    log = logging.Logger("stuck")
    log.addHandler(handler)
    for number in range(50):
        log.warning("line %d", number)
    may_write.set()
    wait_until(lambda: len(stream.objects()) in (2, 3))  # one may have left the queue by then
    wait_until(handler._lines.empty)
    kept = len(stream.objects())
    log.warning("the next")
    handler.close()
    assert stream.objects()[-1]["message"] == "the next"
    assert stream.objects()[-1]["dropped"] == 50 - kept


@pytest.mark.parametrize("form", FORMS)
def test_a_pipe_that_nobody_reads_stops_nothing(form: str) -> None:
    """Nor does it hold up the end: what was not written is given up after two seconds."""
    reading, writing = os.pipe()
    with open(writing, "w") as stream:
        handler = QueuedLines(stream, form, max_lines=100)
        log = logging.Logger("unread")
        log.addHandler(handler)
        for _ in range(3000):  # a pipe takes 64 KiB
            log.warning("x" * 50)
        assert 0 < handler.dropped < 2900
        handler.close()
        os.close(reading)  # the thread that waits to write ends


def test_lines_of_the_whole_process_that_were_dropped_are_counted() -> None:
    with logging_as("text", io.StringIO()):
        (handler,) = (one for one in logging.getLogger().handlers if isinstance(one, QueuedLines))
        handler.dropped = 3
        assert dropped_lines() == 3
    assert dropped_lines() == 0


def test_text_says_what_was_dropped_and_shows_tracebacks() -> None:
    stream = io.StringIO()
    handler = QueuedLines(stream, "text")
    log = logging.Logger("text")
    log.addHandler(handler)
    handler._unsaid = 7
    try:
        raise ZeroDivisionError("a defect")
    except ZeroDivisionError:
        log.exception("failed")
    log.info("next")
    handler.close()
    lines = stream.getvalue().splitlines()
    assert lines[:3] == [
        "WARNING:  7 lines before this one were dropped",
        "ERROR:    failed",
        "Traceback (most recent call last):",
    ]
    assert lines[-2:] == ["ZeroDivisionError: a defect", "INFO:     next"]


def test_what_a_file_cannot_hold_is_written_escaped(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as stream:
        handler = QueuedLines(stream, "text")
        log = logging.Logger("file")
        log.addHandler(handler)
        log.warning("\ud800 \u00e4")
        handler.close()
    assert (tmp_path / "log").read_bytes() == b"WARNING:  \\ud800 \xc3\xa4\n"


def test_a_stream_that_is_closed_stops_nothing() -> None:
    stream = io.StringIO()
    handler = QueuedLines(stream)
    log = logging.Logger("closed")
    log.addHandler(handler)
    stream.close()
    log.warning("lost")
    log.warning("lost too")
    handler.close()
    assert not handler._thread.is_alive()


def test_what_a_line_holds_is_one_line_and_json_whatever_it_is() -> None:
    stream = Lines()
    handler = QueuedLines(stream)
    log = logging.Logger("odd")
    log.addHandler(handler)
    token = REQUEST.set("r")
    odd = 'two\nlines \u2028 \ud800 \x00 "quoted"'
    log.warning("%s", odd, extra={"fields": {"value": object()}})
    REQUEST.reset(token)
    handler.close()
    (line,) = stream.objects()
    assert (line["message"], line["request"]) == (odd, "r")
    assert line["value"].startswith("<object")
