"""GET /profiles/{name}/schedule from a compiled table, beside a bare ASGI application."""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import orjson
import psutil

from app.http.fastpath.fast_path import LoadedTable
from app.http.fastpath.responses import SEEN_ONCE
from bench.client import Connection, get, post
from bench.inline import application
from bench.machine import CHECKOUT
from bench.questions import pipeline_question
from bench.service import RunningService, serving
from bench.spec import BenchSpec, CaseResult, Cell, Check, Effort, Table
from bench.workloads import MIB, random_pipeline
from bench.wrk import CONNECTIONS, Figures, Scattered, run, write_numbered, write_script

_PROFILE = "myrinet-gam"
_MAX_MESSAGE_BYTES = MIB  # at most 64 fragments each
_REPEATED = 10_000
_ALL_NEW = _MAX_MESSAGE_BYTES - _REPEATED
_SIZES = Scattered(_MAX_MESSAGE_BYTES)  # the first of them are repeated, the others are new
_HEAVY = 8
_NEW, _AGAIN, _BARE = "new sizes", "repeated sizes", "bare application"
_NEW_RATIO, _AGAIN_RATIO, _P99_MS = 0.60, 0.85, 25.0


@dataclass(frozen=True, slots=True)
class _Side:
    """One run: what wrk saw, and the server's processor time for a request, in µs."""

    figures: Figures
    cpu_us: float


@dataclass(frozen=True, slots=True)
class _Servers:
    """Both servers, the table, and the folder for scripts."""

    service: RunningService
    bare: RunningService
    table: LoadedTable
    folder: Path


@dataclass(frozen=True, slots=True)
class _Turns:
    """How often each side runs, and how long."""

    rounds: int
    seconds: int


def _run(effort: Effort) -> CaseResult:
    rounds, seconds = effort.pick(5, quick=1), effort.pick(3, quick=1)
    with _servers() as servers:
        _check_range(servers.table)
        again, fresh = [_SIZES[at] for at in range(_REPEATED)], _Fresh()
        _warm_up(servers, again, seconds)
        turns = _Turns(rounds, seconds)
        alone = _rounds(servers, fresh, again, turns)
        with _heavy_solves(servers.service):
            busy = _rounds(servers, fresh, again, turns)
    return CaseResult(
        (_table("Nothing else to do", alone), _table(f"While {_HEAVY} heavy solves run", busy)),
        checks=_checks(alone, busy),
        notes=_NOTES,
    )


_NOTES = (
    f"wrk, one thread, {CONNECTIONS} connections, against one process each. New sizes: all "
    "messages of 1 B to 1 MiB one after the other, in a scattered order, on Table 1, at most 64 "
    "fragments; when all were asked for they begin again, long after the service has forgotten "
    f"them. Repeated sizes: {_REPEATED:,} of them in random order, over "
    "and over.",
    "The bare application runs on the same server with the same options, parses nothing, and "
    "returns bodies of the same lengths with a type and a length. The lookup's answer has ETag, "
    "Cache-Control and a security header besides.",
    "Runs alternate, and a ratio is the median of the ratios within rounds. Client and server "
    "share the machine's cores; `server CPU` is the server's processor time for a request.",
    f"Heavy solves: 64 stages, from 16 MiB on, {_HEAVY} at once in as many workers, and more "
    "waiting.",
)

_Rounds = dict[str, list[_Side]]


@dataclass(slots=True)
class _Fresh:
    """Where in the order the next new size is."""

    at: int = _REPEATED

    def go_on(self, asked: int) -> None:
        """Pass over so many, and over those that were under way when the run ended."""
        self.at = _REPEATED + (self.at - _REPEATED + asked + CONNECTIONS) % _ALL_NEW


def _rounds(servers: _Servers, fresh: _Fresh, again: list[int], turns: _Turns) -> _Rounds:
    """Every side once in each round; each round begins with another one."""
    repeated = write_script(servers.folder / "again.lua", [_path(one) for one in again])
    sides: dict[str, Callable[[], _Side]] = {
        _BARE: lambda: _measured(servers.bare, repeated, turns.seconds),
        _NEW: lambda: _measured_new(servers, fresh, turns),
        _AGAIN: lambda: _measured(servers.service, repeated, turns.seconds),
    }
    names, found = list(sides), {name: list[_Side]() for name in sides}
    for turn in range(turns.rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            found[name].append(sides[name]())
    return found


def _measured_new(servers: _Servers, fresh: _Fresh, turns: _Turns) -> _Side:
    """A run in which no message is one that the service still knows."""
    script = write_numbered(
        servers.folder / "new.lua", _path(""), _SIZES, first=_REPEATED, at=fresh.at
    )
    side = _measured(servers.service, script, turns.seconds)
    fresh.go_on(side.figures.requests)
    return side


def _measured(server: RunningService, script: Path, seconds: int) -> _Side:
    before_s = _cpu_s(server)
    figures = run(script, server.port, seconds=seconds)
    if figures.failures:
        raise RuntimeError(f"{figures.failures} requests were refused")
    return _Side(figures, (_cpu_s(server) - before_s) / figures.requests * 1e6)


def _cpu_s(server: RunningService) -> float:
    """Of the process that answers alone, without the workers."""
    times = server.process.cpu_times()
    return times.user + times.system


def _path(message_bytes: int | str) -> str:
    return f"/profiles/{_PROFILE}/schedule?bytes={message_bytes}"


def _check_range(table: LoadedTable) -> None:
    """The service remembers the last `SEEN_ONCE` that were asked for once: a small part of all."""
    if (table.min_message_bytes, table.max_message_bytes) != (1, _MAX_MESSAGE_BYTES):
        raise RuntimeError("the table is not of all messages")
    if 2 * SEEN_ONCE > _ALL_NEW:
        raise RuntimeError("the table has too few messages to be new after all were asked for")


def _warm_up(servers: _Servers, again: list[int], seconds: int) -> None:
    """The repeated sizes, often enough that all were asked for twice, and the bare application."""
    script = write_script(servers.folder / "again.lua", [_path(one) for one in again])
    asked = 0
    while asked < 3 * len(again):
        asked += _measured(servers.service, script, seconds).figures.requests
    _measured(servers.bare, script, seconds)


# --- what is reported -----------------------------------------------------------------------------


def _checks(alone: _Rounds, busy: _Rounds) -> tuple[Check, ...]:
    p99_ms = max(_median(busy[name], lambda side: side.figures.p99_ms) for name in (_NEW, _AGAIN))
    return (
        Check(
            "lookups of new sizes over a bare ASGI application",
            _ratio(alone, _NEW),
            _NEW_RATIO,
            "of its requests per second",
            "at least",
        ),
        Check(
            "lookups of repeated sizes over a bare ASGI application",
            _ratio(alone, _AGAIN),
            _AGAIN_RATIO,
            "of its requests per second",
            "at least",
        ),
        Check(f"p99 of lookups while {_HEAVY} heavy solves run", p99_ms, _P99_MS, "ms"),
    )


def _ratio(found: _Rounds, name: str) -> float:
    pairs = zip(found[name], found[_BARE], strict=True)
    return statistics.median(
        one.figures.per_second / bare.figures.per_second for one, bare in pairs
    )


def _median(sides: list[_Side], value: Callable[[_Side], float]) -> float:
    return statistics.median(value(side) for side in sides)


def _table(title: str, found: _Rounds) -> Table:
    columns = (
        "what",
        "rate / bare",
        "CPU / bare",
        "per second",
        "min-max per second",
        "p50 ms",
        "p99 ms",
        "server CPU µs",
    )
    return Table(title, columns, tuple(_row(name, found) for name in (_BARE, _NEW, _AGAIN)))


def _row(name: str, found: _Rounds) -> tuple[Cell, ...]:
    sides = found[name]
    rates = [side.figures.per_second for side in sides]
    pairs = zip(sides, found[_BARE], strict=True)
    return (
        name,
        _ratio(found, name),
        statistics.median(one.cpu_us / bare.cpu_us for one, bare in pairs),
        statistics.median(rates),
        f"{min(rates):,.0f}-{max(rates):,.0f}",
        _median(sides, lambda side: side.figures.p50_ms),
        _median(sides, lambda side: side.figures.p99_ms),
        _median(sides, lambda side: side.cpu_us),
    )


# --- servers and load -----------------------------------------------------------------------------


@contextmanager
def _servers() -> Iterator[_Servers]:
    """The service with an active table, and the bare application with its answers' lengths."""
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as name:
        folder = Path(name)
        url = f"sqlite:///{folder / 'bench.db'}"
        with serving(url, {"SLUICE_WORKERS": str(_HEAVY)}) as service:
            table = _compiled(service.port)
            lengths = _lengths(table)
            (folder / "lengths.json").write_text(json.dumps(lengths))
            with _bare(folder / "lengths.json") as bare:
                yield _Servers(service, bare, table, folder)


def _compiled(port: int) -> LoadedTable:
    """The active table of the profile, compiled now."""
    with _connected(port) as connection:
        body = orjson.dumps({"max_message_bytes": _MAX_MESSAGE_BYTES})
        _, reported = connection.ask(post(f"/profiles/{_PROFILE}/tables", body))
        digest = orjson.loads(reported)["digest"]
        _, file = connection.ask(get(f"/tables/{digest}?format=slt"))
    return LoadedTable.of(digest, file)


def _lengths(table: LoadedTable) -> list[int]:
    """The lengths of the answers about some messages."""
    rng = random.Random(2)
    some = rng.sample(range(table.min_message_bytes, table.max_message_bytes + 1), _REPEATED)
    bodies = [table.schedule("", message).body for message in some]
    if max(len(orjson.loads(body)["fragment_bytes"]) for body in bodies) > 64:
        raise RuntimeError("a schedule has more than 64 fragments")
    return [len(body) for body in bodies]


@contextmanager
def _bare(lengths: Path) -> Iterator[RunningService]:
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.bare_server", str(lengths)],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield RunningService(int(process.stdout.readline()), psutil.Process(process.pid))
    finally:
        process.terminate()
        process.wait()


@contextmanager
def _heavy_solves(service: RunningService) -> Iterator[None]:
    """Eight solves at a time in the service's workers, as durable jobs, until the block ends."""
    with _connected(service.port) as connection:
        jobs = [_start(connection, 16 * MIB + number) for number in range(8 * _HEAVY)]
        while sum(_is_running(connection, job) for job in jobs[: 2 * _HEAVY]) < _HEAVY:
            time.sleep(0.1)
    yield
    with _connected(service.port) as connection:
        if sum(_is_running(connection, job) for job in jobs) < _HEAVY:
            raise RuntimeError("the heavy solves ended before the measurement")


@contextmanager
def _connected(port: int) -> Iterator[Connection]:
    connection = Connection(port)
    try:
        yield connection
    finally:
        connection.close()


def _start(connection: Connection, message_bytes: int) -> str:
    question = orjson.loads(pipeline_question(random_pipeline(64, seed=1), message_bytes))
    body = orjson.dumps({**question, "time_limit_s": 600})
    head, rest = post("/optimize", body).split(b"\r\n", 1)
    status, reported = connection.ask(head + b"\r\nPrefer: respond-async\r\n" + rest)
    if status != 202:
        raise RuntimeError(reported.decode())
    return f"/jobs/{orjson.loads(reported)['id']}"


def _is_running(connection: Connection, job: str) -> bool:
    _, reported = connection.ask(get(job))
    document: dict[str, Any] = orjson.loads(reported)
    return bool(document["state"] == "running")


# --- what is profiled -----------------------------------------------------------------------------


@contextmanager
def _asking(sizes: Iterator[int]) -> Iterator[Callable[[], object]]:
    with application() as ask:
        body = orjson.dumps({"max_message_bytes": _MAX_MESSAGE_BYTES})
        ask("POST", f"/profiles/{_PROFILE}/tables", body)

        def work() -> None:
            status, answer = ask("GET", _path(next(sizes)), b"")
            if status != 200:
                raise RuntimeError(answer.decode())

        yield work


SPEC = BenchSpec(
    name="lookup_http",
    title="Lookups over HTTP",
    about=(
        "`GET /profiles/{name}/schedule` from the active compiled table, on the service as `sluice "
        "serve` starts it, beside a bare ASGI application in the same run."
    ),
    run=_run,
    workloads={"new": lambda: _asking(count(1))},
)
