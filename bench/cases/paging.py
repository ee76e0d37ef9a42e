"""Pages of GET /optimizations with many stored answers, on SQLite and on PostgreSQL."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import orjson

from app.questions.answers import AnswerFilter, AnswerPage, list_answers
from bench.client import Connection, get
from bench.postgres import VARIABLE, postgres_url
from bench.service import serving
from bench.spec import BenchSpec, CaseResult, Cell, Check, Effort, Table
from bench.timing import Timed, interleaved
from domain.solution import Status, Strategy
from models.identifiers import new_id
from models.records import AnswerRecord
from models.session import Store, create_store

STORED = 50_000
TARGET_MS = 50.0
PAGE = 50  # answers on a page, the service's default
_BATCH = 1000
_PROFILE = "myrinet-gam"
_RARE = 1000  # one answer in so many is `fixed`
_BODY = orjson.dumps({"fragment_bytes": [500] * 100, "filler": "x" * 1500})  # a usual answer's size


@dataclass(frozen=True, slots=True)
class _Page:
    """A page to ask for; `place` says where in the list it lies."""

    place: str
    wanted: AnswerFilter
    after: str | None

    @property
    def path(self) -> str:
        """The same as a request."""
        parts = {
            "profile": self.wanted.profile,
            "message_bytes": self.wanted.message_bytes,
            "strategy": self.wanted.strategy,
            "cursor": self.after,
        }
        given = "&".join(f"{name}={value}" for name, value in parts.items() if value is not None)
        return f"/optimizations?limit={PAGE}&{given}".rstrip("&")


def _run(effort: Effort) -> CaseResult:
    rows: list[tuple[Cell, ...]] = []
    notes: list[str] = []
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder:
        rows += _rows("SQLite", f"sqlite:///{Path(folder, 'bench.db')}", effort)
    with postgres_url() as url:
        if url is None:
            notes.append(f"PostgreSQL was not measured: set {VARIABLE} to an empty database")
        else:
            rows += _rows("PostgreSQL", url, effort)
    columns = (
        "database, page",
        "HTTP / repository",
        "repository ms",
        "max ms",
        "HTTP ms",
        "max ms ",
    )
    title = f"One page of {PAGE} out of {_stored(effort):,} answers"
    table = Table(title, columns, tuple(rows), is_detail=True)
    slowest = max(float(row[4] or 0.0) for row in rows)
    check = Check(
        "a page of stored answers over HTTP, slowest place by its median", slowest, TARGET_MS, "ms"
    )
    return CaseResult((table,), (check,), tuple(notes))


def _stored(effort: Effort) -> int:
    return effort.pick(STORED, quick=STORED // 10)


def _rows(name: str, url: str, effort: Effort) -> list[tuple[Cell, ...]]:
    store = create_store(url)
    store.upgrade()
    identifiers = _fill(store, _stored(effort))
    pages = list(_pages(identifiers))
    rounds = effort.pick(21, quick=5)
    direct = interleaved(
        {page.place: partial(_direct, store, page) for page in pages}, rounds=rounds
    )
    store.dispose()
    with serving(url) as service:
        connection = Connection(service.port)
        sides = {page.place: partial(_over_http, connection, page) for page in pages}
        remote = interleaved(sides, rounds=rounds)
        connection.close()
    for page in pages:
        if direct[page.place].result != remote[page.place].result:
            raise AssertionError(f"{page.path} lists other answers than the repository")
    return [_row(f"{name}, {p.place}", direct[p.place], remote[p.place]) for p in pages]


def _row(label: str, direct: Timed[list[str]], remote: Timed[list[str]]) -> tuple[Cell, ...]:
    return (
        label,
        remote.timing.ratio_to(direct.timing),
        direct.timing.median_ms,
        direct.timing.max_ms,
        remote.timing.median_ms,
        remote.timing.max_ms,
    )


def _direct(store: Store, page: _Page) -> list[str]:
    found: AnswerPage = list_answers(store, page.wanted, after=page.after, limit=PAGE)
    return [summary.id for summary in found.summaries]


def _over_http(connection: Connection, page: _Page) -> list[str]:
    status, body = connection.ask(get(page.path))
    if status != 200:
        raise AssertionError(f"{page.path} gave {status}")
    return [entry["id"] for entry in orjson.loads(body)["items"]]


def _pages(identifiers: list[str]) -> Iterator[_Page]:
    """First, middle and last page, of all answers and of those that filters leave over."""
    everything = AnswerFilter()
    middle, late = identifiers[len(identifiers) // 2], identifiers[PAGE]
    yield _Page("first", everything, None)
    yield _Page("middle", everything, middle)
    yield _Page("last", everything, late)
    profile = AnswerFilter(profile=_PROFILE)
    yield _Page("first of a profile", profile, None)
    yield _Page("middle of a profile", profile, middle)
    yield _Page("first of one size", AnswerFilter(message_bytes=4096), None)
    rare = AnswerFilter(strategy=Strategy.FIXED)
    yield _Page("first of a rare strategy", rare, None)
    yield _Page("middle of a rare strategy", rare, middle)
    both = AnswerFilter(profile=_PROFILE, message_bytes=4097, strategy=Strategy.EXACT)
    yield _Page("first of three filters", both, None)
    yield _Page("nothing matches", AnswerFilter(profile="no-such-profile"), None)
    yield _Page("nothing matches two filters", AnswerFilter(_PROFILE, message_bytes=1), None)


def _fill(store: Store, number: int) -> list[str]:
    """Store answers; their identifiers in order of time."""
    identifiers: list[str] = []
    for start in range(0, number, _BATCH):
        with store.unit_of_work() as unit:
            for serial in range(start, start + _BATCH):
                record = _record(serial)
                unit.answers.add(record)
                identifiers.append(record.id)
    return identifiers


def _record(serial: int) -> AnswerRecord:
    of_profile = serial % 5 == 0
    return AnswerRecord(
        id=new_id(),
        created_at=datetime.now(UTC),
        question_digest=f"{serial:064x}",
        strategy=Strategy.FIXED if serial % _RARE == 0 else Strategy.EXACT,
        message_bytes=4096 + serial % 500,
        fragments=6,
        latency_us=184.36,
        lower_bound_us=184.35,
        relative_gap=6e-5,
        status=Status.OPTIMAL_BEFORE_ROUNDING,
        profile_name=_PROFILE if of_profile else None,
        profile_revision=1 if of_profile else None,
        body=_BODY,
    )


@contextmanager
def _listing() -> Iterator[Callable[[], object]]:
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder:
        store = create_store(f"sqlite:///{Path(folder, 'bench.db')}")
        store.upgrade()
        identifiers = _fill(store, STORED // 10)
        middle = _Page("middle", AnswerFilter(), identifiers[len(identifiers) // 2])
        yield partial(_direct, store, middle)
        store.dispose()


SPEC = BenchSpec(
    name="paging",
    title="Pages of stored answers",
    about=(
        "Through `list_answers` inside the process, and over HTTP; both must list the "
        "same answers. One answer in five belongs to a profile, one in a thousand is `fixed`, and "
        "there are 500 message sizes."
    ),
    run=_run,
    workloads={"middle page": _listing},
)
