"""What a service tells of single requests and jobs: logs, as text or JSON, and traces.

Lines are written by a thread of their own, out of a bounded queue: standard error that nobody reads
must not stop what writes to it. Spans go the same way, in a thread of OpenTelemetry's, which is
imported only where traces are asked for.
"""

from __future__ import annotations

import json
import logging
import queue
import select
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TextIO

from domain.errors import InvalidInput

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, Tracer

    from models.records import JobEnd

MAX_LINES = 10_000  # that wait to be written; what is more is counted

# What a line is about where it does not say so itself; each thread and task has its own.
REQUEST: ContextVar[str] = ContextVar("sluice_request", default="")
OWNER: ContextVar[str] = ContextVar("sluice_owner", default="")
TRACE: ContextVar[str] = ContextVar("sluice_trace", default="")  # as a `traceparent`

# What only a log for programs tells: each request, and how jobs begin and end.
events = logging.getLogger("sluice.events")

_OWN = ("request", "job", "owner")
_END = None


class JsonLines(logging.Formatter):
    """Lines of JSON: time, level, logger, message, request, job, owner, then what a line adds.

    A line adds `extra={"job": id, "owner": name, "fields": {...}}`; `error` is a traceback.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line without its end."""
        when = datetime.fromtimestamp(record.created, UTC)
        about = {name: getattr(record, name, "") for name in _OWN}
        line = {
            "time": when.isoformat(timespec="microseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **about,
            **getattr(record, "fields", {}),
        }
        if dropped := getattr(record, "dropped", 0):
            line["dropped"] = dropped
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class TextLines(logging.Formatter):
    """Lines for people: the level and the message, a traceback below it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text without the end of its last line."""
        line = f"{record.levelname + ':':<9} {super().format(record)}"
        if dropped := getattr(record, "dropped", 0):
            line = f"{'WARNING:':<9} {dropped} lines before this one were dropped\n{line}"
        return line


FORMS: Mapping[str, type[logging.Formatter]] = {"text": TextLines, "json": JsonLines}


class QueuedLines(logging.Handler):
    """Writes lines in a thread; who logs never waits. What has no place in the queue is counted,
    and the next line that has says how many there were.

    `form` is one of FORMS. `dropped` is how many lines had no place so far.
    """

    def __init__(self, stream: TextIO, form: str = "json", *, max_lines: int = MAX_LINES) -> None:
        super().__init__()
        self.setFormatter(FORMS[form]())
        self.dropped = 0
        self._put = _writing_to(stream)
        self._lines: queue.Queue[str | None] = queue.Queue(max_lines)
        self._unsaid = 0
        self._thread = threading.Thread(target=self._write, name="sluice-log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Have it written, or count it."""
        for name, current in (("request", REQUEST), ("owner", OWNER)):
            if not getattr(record, name, ""):
                setattr(record, name, current.get())
        if self._unsaid:
            record.dropped = self._unsaid
        try:
            self._lines.put_nowait(self.format(record))
            self._unsaid = 0
        except queue.Full:
            self._unsaid += 1
            self.dropped += 1

    def close(self) -> None:
        """Write what waits, for a second at most, and end the thread."""
        try:
            self._lines.put(_END, timeout=1.0)
            self._thread.join(1.0)
        except queue.Full:
            pass
        super().close()

    def _write(self) -> None:
        while (line := self._lines.get()) is not _END:
            try:
                self._put(line + "\n")
            except (OSError, ValueError):  # nobody reads any more: nothing else is to end for it
                continue


def _writing_to(stream: TextIO) -> Callable[[str], object]:
    """Return what writes to a stream, below its buffer where it is a file.

    A thread that waits within the buffer would hold its lock, which the end of the process takes.
    """
    try:
        file = open(stream.fileno(), "wb", buffering=0, closefd=False)  # noqa: SIM115
    except (OSError, ValueError):  # in memory
        return stream.write

    def write(text: str) -> None:
        left = memoryview(text.encode("utf-8", "backslashreplace"))
        while left:
            written = file.write(left)
            if written is None:  # it does not block, and takes nothing for now
                select.select((), (file,), ())
            left = left[written or 0 :]

    return write


@contextmanager
def logging_as(
    form: str, stream: TextIO | None = None, *, text_level: int | None = None
) -> Iterator[None]:
    """Have this process log in this form, "text" or "json", until the block ends.

    As JSON everything from INFO on is told, as text what the levels of loggers say, or what is of
    `text_level` at least. Whoever reads it or does not: nobody waits for a line to be written.
    """
    root = logging.getLogger()
    handler = QueuedLines(stream or sys.stderr, form)
    was = events.level, root.level
    level = logging.INFO if form == "json" else text_level
    if form != "json":
        events.setLevel(logging.WARNING)
    root.addHandler(handler)
    if level is not None:
        root.setLevel(level)
    try:
        yield
    finally:
        events.setLevel(was[0])
        root.setLevel(was[1])
        root.removeHandler(handler)
        handler.close()


def dropped_lines() -> int:
    """Return how many lines the log of this process had no place for."""
    handlers = logging.getLogger().handlers
    return sum(one.dropped for one in handlers if isinstance(one, QueuedLines))


# --- traces ---------------------------------------------------------------------------------------


_TRACEPARENT = "traceparent"  # W3C Trace Context, section 3.2
_CLOSE_S = 5.0  # for spans that were not sent yet


class Tracing:
    """Spans of requests and of jobs: a job's are in the trace of the request that asked for it.

    Spans of a job are made when it has ended, whichever process ended it, so that none is left
    open by a process that was killed.
    """

    def __init__(self, provider: TracerProvider) -> None:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._provider = provider
        self._tracer: Tracer = provider.get_tracer("sluice")
        self._propagator = TraceContextTextMapPropagator()

    @contextmanager
    def request(self, headers: Iterable[tuple[bytes, bytes]]) -> Iterator[Span]:
        """Yield the span of a request, within the trace that its headers name, if any.

        What this task and its threads store meanwhile is of the same trace.
        """
        from opentelemetry.trace import SpanKind

        named = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}
        parent = self._propagator.extract(named)
        span = self._tracer.start_span("request", context=parent, kind=SpanKind.SERVER)
        token = TRACE.set(self._traceparent(span))
        try:
            yield span
        finally:
            TRACE.reset(token)
            span.end()

    def jobs_ended(self, ends: Iterable[JobEnd]) -> None:
        """Make the spans of jobs: from being accepted to the end, and within it the last run."""
        for end in ends:
            if not end.trace or end.created_at is None:
                continue
            parent = self._propagator.extract({_TRACEPARENT: end.trace})
            about = {"sluice.job": end.id, "sluice.kind": end.kind, "sluice.state": end.state.value}
            now = datetime.now(UTC)
            job = self._span(f"job {end.kind}", parent, about, end.created_at)
            if end.run_s is not None:
                from opentelemetry.trace import set_span_in_context

                began = now - timedelta(seconds=end.run_s)
                run = self._span(f"run {end.kind}", set_span_in_context(job), about, began)
                self._end(run, end.code, now)
            self._end(job, end.code, now)

    def close(self) -> None:
        """Send what was not sent yet, for some seconds at most."""
        sending = threading.Thread(target=self._provider.shutdown, daemon=True)
        sending.start()
        sending.join(_CLOSE_S)

    def _span(self, name: str, parent: Any, about: Mapping[str, str], began: datetime) -> Span:
        return self._tracer.start_span(
            name, context=parent, attributes=about, start_time=_nanoseconds(began)
        )

    def _end(self, span: Span, code: str, ended: datetime) -> None:
        from opentelemetry.trace import StatusCode

        if code:
            span.set_status(StatusCode.ERROR, code)
        span.end(end_time=_nanoseconds(ended))

    def _traceparent(self, span: Span) -> str:
        from opentelemetry.trace import set_span_in_context

        carrier: dict[str, str] = {}
        self._propagator.inject(carrier, context=set_span_in_context(span))
        return carrier.get(_TRACEPARENT, "")


def end_request(span: Span, *, method: str, route: str, status: int) -> None:
    """Say of a request's span what it was."""
    from opentelemetry.trace import StatusCode

    span.update_name(f"{method} {route}")
    about = {"http.request.method": method, "http.route": route}
    span.set_attributes({**about, "http.response.status_code": status})
    span.set_attribute("sluice.request", REQUEST.get())
    if status >= 500 or status == 0:
        span.set_status(StatusCode.ERROR)


def open_tracing(endpoint: str) -> Tracing | None:
    """Return what sends spans to this address by OTLP over HTTP; None where there is no address.

    Raises InvalidInput where the extra `traces` is not installed.
    """
    if not endpoint:
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise InvalidInput(
            "SLUICE_TRACES needs OpenTelemetry: pip install '.[traces]' in the checkout",
            field="SLUICE_TRACES",
        ) from None
    exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces", timeout=_CLOSE_S)
    provider = TracerProvider(resource=Resource.create({"service.name": "sluice"}))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return Tracing(provider)


def _nanoseconds(when: datetime) -> int:
    return int(when.timestamp() * 1e9)
