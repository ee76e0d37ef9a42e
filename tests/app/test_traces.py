"""Traces: one a request, with the spans of the job that it asked for, whoever runs it."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from app import telemetry
from app.http.service import Service
from app.telemetry import Tracing, open_tracing
from domain.errors import InvalidInput
from models.records import JobState
from models.session import create_store
from tests.app.serving import Live, serving, settings_for, wait_for_end, wait_until
from tests.jobs.support import accepted, ended, running
from tests.support.long_work import long_here_engine

ROOT = Path(__file__).parents[2]
TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
PARENT = {"traceparent": f"00-{TRACE_ID}-b7ad6b7169203331-01"}
ASKED = {"message_bytes": 4096, "profile": "gms"}


class Spans(InMemorySpanExporter):
    """What was traced."""

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.get_finished_spans() if span.name == name]

    def tracing(self) -> Tracing:
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self))
        return Tracing(provider)


@contextmanager
def traced(url: str, spans: Spans, monkeypatch: pytest.MonkeyPatch, **more: bool) -> Iterator[Live]:
    """A service whose spans are kept."""
    monkeypatch.setattr("app.main.open_tracing", lambda endpoint: spans.tracing())
    with serving(settings_for(url, **more), open_engine=long_here_engine) as live:
        yield live


def trace_of(span: ReadableSpan) -> str:
    assert span.context is not None
    return f"{span.context.trace_id:032x}"


def is_child(span: ReadableSpan, of: ReadableSpan) -> bool:
    assert of.context is not None
    return span.parent is not None and span.parent.span_id == of.context.span_id


def test_a_job_is_in_the_trace_of_its_request(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which is in the one that the client names; the run is within the job."""
    spans = Spans()
    with traced(database_url, spans, monkeypatch) as live:
        headers = {"Prefer": "respond-async", **PARENT}
        job = live.client.post("/optimize", json=ASKED, headers=headers).headers["location"]
        assert wait_for_end(live.client, job)["state"] == "done"
        wait_until(lambda: bool(spans.named("job optimize")))
    (request,) = spans.named("POST /optimize")
    (job_span,), (run,) = spans.named("job optimize"), spans.named("run optimize")
    assert {trace_of(one) for one in (request, job_span, run)} == {TRACE_ID}
    assert is_child(job_span, request)
    assert is_child(run, job_span)
    assert request.kind is SpanKind.SERVER
    assert request.attributes is not None
    assert request.attributes["http.response.status_code"] == 202
    assert request.attributes["http.route"] == "/optimize"
    assert job_span.attributes == {
        "sluice.job": job.rpartition("/")[2],
        "sluice.kind": "optimize",
        "sluice.state": "done",
    }
    assert job_span.start_time is not None
    assert run.start_time is not None
    assert job_span.end_time is not None
    assert job_span.start_time <= run.start_time <= job_span.end_time
    assert run.end_time == job_span.end_time


def test_another_process_ends_it_in_the_same_trace(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job's row carries the trace: what runs it need not be what accepted it."""
    here, there = Spans(), Spans()
    with traced(database_url, here, monkeypatch, run_jobs=False) as live:
        headers = {"Prefer": "respond-async", **PARENT}
        live.client.post("/optimize", json=ASKED, headers=headers)
    store = create_store(database_url)
    store.watch_job_ends(there.tracing().jobs_ended)
    with store.unit_of_work() as unit:
        unit.runners.register("other")
        claimed = unit.jobs.claim("other")
        assert claimed is not None
        unit.jobs.finish(claimed, JobState.FAILED, error=b'{"code": "time_limit"}')
    store.dispose()
    (job,), (run,) = there.named("job optimize"), there.named("run optimize")
    assert {trace_of(job), trace_of(run)} == {TRACE_ID}
    assert is_child(job, here.named("POST /optimize")[0])
    assert (job.status.status_code, job.status.description) == (StatusCode.ERROR, "time_limit")


def test_a_request_without_a_trace_begins_one(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each its own; an unexpected error is one of the span's, and bad headers are none."""

    async def broken(*_: object) -> None:
        raise ZeroDivisionError("a defect")

    spans = Spans()
    with traced(database_url, spans, monkeypatch) as live:
        live.client.get("/limits", headers={"traceparent": "00-zz-1-01"})
        live.client.get("/limits")
        monkeypatch.setattr(Service, "exposition", broken)
        assert live.client.get("/metrics").status_code == 500
        wait_until(lambda: bool(spans.named("GET /metrics")))
    first, second = spans.named("GET /limits")
    assert trace_of(first) != trace_of(second)
    assert first.parent is None
    (failed,) = spans.named("GET /metrics")
    assert failed.status.status_code is StatusCode.ERROR


def test_jobs_of_no_trace_make_no_spans(database_url: str) -> None:
    spans, store = Spans(), create_store(database_url)
    store.watch_job_ends(spans.tracing().jobs_ended)
    with running(store):
        assert ended(store, accepted(store)).trace is None
    store.dispose()
    assert spans.get_finished_spans() == ()


def test_spans_are_sent_by_otlp_over_http() -> None:
    """To /v1/traces of the address; closing sends what waits, also to nobody."""
    got: list[tuple[str, int]] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            got.append((self.path, len(body)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Collector)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        sending = open_tracing(f"http://127.0.0.1:{server.server_port}/")
        assert sending is not None
        with sending.request(()):
            assert telemetry.TRACE.get().startswith("00-")
        assert telemetry.TRACE.get() == ""
        sending.close()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert [(path, size > 0) for path, size in got] == [("/v1/traces", True)]


def test_off_it_is_not_loaded_and_missing_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    program = "import sys; from app.main import create_app; from app.settings import Settings; "
    program += "create_app(Settings()); sys.exit('opentelemetry.sdk' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT).returncode == 0
    assert open_tracing("") is None
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(InvalidInput, match=r"pip install '\.\[traces\]'"):
        open_tracing("http://127.0.0.1:4318")
