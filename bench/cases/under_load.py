"""Lookups at a rate and among hostile clients, cancels, and more work than can be done."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.client import Connection, get, post
from bench.crowd import Crowd
from bench.machine import CHECKOUT
from bench.mixed import hard_question
from bench.service import RunningService, serving
from bench.spec import BenchSpec, CaseResult, Check, Effort, Table
from bench.timing import Timing

CLIENTS = 200
PER_S = 1000
LENGTH = "SLUICE_BENCH_S"  # seconds of each part, in the place of the case's own
MIB = 2**20
_CONNECTIONS = 4
_FIRST, _LAST = 65_536, 65_792  # messages of the table


@dataclass
class _Seen:
    """What clients met: times in ms of answers by status, and what never came."""

    samples_ms: dict[int, list[float]] = field(default_factory=dict)
    failures: int = 0

    def add(self, status: int, elapsed_s: float) -> None:
        self.samples_ms.setdefault(status, []).append(elapsed_s * 1e3)

    def count(self, *statuses: int) -> int:
        return sum(len(self.samples_ms.get(status, ())) for status in statuses)

    def quantile_ms(self, share: float, status: int = 200) -> float:
        samples = tuple(self.samples_ms.get(status, ()))
        return Timing(samples).quantile_ms(share) if samples else 0.0


def _run(effort: Effort) -> CaseResult:
    seconds = float(os.environ.get(LENGTH) or effort.pick(60.0, quick=4.0))
    jobs = effort.pick(200, quick=10)
    with (
        tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder,
        serving(f"sqlite:///{Path(folder, 'bench.db')}") as service,
    ):
        _compile(service)
        _paced(service, PER_S, _until(2.0))  # what is loaded once
        alone = _paced(service, PER_S, _until(seconds))
        cancelled_ms = _cancel(service, jobs)
        slow = _paced(service, 50, _until(seconds))
        warm_s = max(4.0, seconds / 4)
        with serving(f"sqlite:///{Path(folder, 'other.db')}") as other:
            _attacked(service, other, warm_s)
            beside, _ = _attacked(service, other, seconds)
        _attacked(service, service, warm_s)  # what the first of a kind loads, stays
        before, files = service.process.memory_info().rss, _files(service)
        among, met = _attacked(service, service, seconds)
        idle, met_idle = _attacked(service, service, seconds, idle=True)
        grown = (service.process.memory_info().rss - before) / MIB
        normal, beyond, recovery_s = _overload(service, seconds)
        left = _files(service) - files
    lookups = (alone, slow, beside, among, idle)
    rates = {"among": met.total() / seconds, "idle": met_idle.total() / seconds}
    return _result(
        lookups, met + met_idle, rates, grown, cancelled_ms, normal, beyond, recovery_s, left
    )


def _result(
    looked_up: tuple[_Seen, ...],
    met: Counter[str],
    rates: Mapping[str, float],
    grown: float,
    cancelled_ms: Timing,
    normal: _Seen,
    beyond: _Seen,
    recovery_s: float,
    left: int,
) -> CaseResult:
    alone, slow, beside, among, idle = looked_up
    named = (
        (f"{PER_S} a second", alone),
        ("50 a second", slow),
        (f"50 beside {CLIENTS} of another service", beside),
        (f"50 among {CLIENTS}, which ask {rates['among']:.0f} times a second", among),
        (f"the same, on processors that are idle, {rates['idle']:.0f} times a second", idle),
    )
    lookups = Table(
        "Lookups: from when they were due",
        ("clients", "p99 / 50 a second", "p50 ms", "p99 ms", "p99.9 ms", "answers", "others"),
        tuple(
            (
                what,
                seen.quantile_ms(0.99) / slow.quantile_ms(0.99),
                *(seen.quantile_ms(share) for share in (0.5, 0.99, 0.999)),
                seen.count(200),
                sum(map(len, seen.samples_ms.values())) - seen.count(200) + seen.failures,
            )
            for what, seen in named
        ),
    )
    hostile = Table(
        "What hostile clients were answered",
        ("what: answer", "times"),
        tuple(sorted(met.items())),
        is_detail=True,
    )
    overload = Table(
        "Comparisons that take a worker, each another question",
        ("asked", "p50 ms", "p99 ms", "answered", "refused", "p99 ms of refusals"),
        tuple(
            (
                what,
                seen.quantile_ms(0.5),
                seen.quantile_ms(0.99),
                seen.count(200),
                seen.count(503),
                seen.quantile_ms(0.99, 503),
            )
            for what, seen in (("one at a time", normal), ("by 100 at once", beyond))
        ),
    )
    broken = sum(
        number
        for what, number in met.items()
        if (status := what.rpartition(": ")[2]).startswith("5") and status != "503"
    )
    checks = (
        Check("p50 of lookups at a rate", alone.quantile_ms(0.5), 2, "ms"),
        Check("p99 of lookups at a rate", alone.quantile_ms(0.99), 10, "ms"),
        Check("p99.9 of lookups at a rate", alone.quantile_ms(0.999), 50, "ms"),
        Check(
            "p99 of lookups among hostile clients",
            among.quantile_ms(0.99) / beside.quantile_ms(0.99),
            3,
            "of it beside them",
        ),
        Check(
            "the same, where those take idle processors alone",
            idle.quantile_ms(0.99) / slow.quantile_ms(0.99),
            3,
            "of it undisturbed",
        ),
        Check(
            "what those ask",
            rates["idle"] / rates["among"],
            0.8,
            "of what they ask else",
            "at least",
        ),
        Check("memory that hostile clients leave", grown, 16, "MiB"),
        Check("answers of 5xx but 503 to them", broken, 0, "answers"),
        Check("p99 from a cancel to the job's end", cancelled_ms.quantile_ms(0.99), 2000, "ms"),
        Check(
            "p99 of what is answered beyond what can be done",
            beyond.quantile_ms(0.99) / normal.quantile_ms(0.99),
            2,
            "of one at a time",
        ),
        Check("p99 of refusals", beyond.quantile_ms(0.99, 503), 50, "ms"),
        Check("answers beyond what can be done, 200 and 503 aside", _others(beyond), 0, "answers"),
        Check("from the flood's end to the normal time", recovery_s, 30, "s"),
        Check("open files that are left", left, 0, "files"),
    )
    return CaseResult((lookups, hostile, overload), checks)


def _others(seen: _Seen) -> int:
    return sum(map(len, seen.samples_ms.values())) - seen.count(200, 503) + seen.failures


def _until(seconds: float) -> Callable[[], bool]:
    end_s = time.monotonic() + seconds
    return lambda: time.monotonic() < end_s


def _compile(service: RunningService) -> None:
    connection = Connection(service.port)
    body = json.dumps({"min_message_bytes": _FIRST, "max_message_bytes": _LAST}).encode()
    status, _ = connection.ask(post("/profiles/gms/tables", body))
    assert status in (200, 201)
    connection.close()


def _files(service: RunningService) -> int:
    """Open files of the service itself, once connections that were closed are."""
    time.sleep(2.0)
    return service.open_files()


def _paced(service: RunningService, per_s: int, goes_on: Callable[[], bool]) -> _Seen:
    """Look up at this rate whatever is answered; late is what was due earlier."""
    seen = [_Seen() for _ in range(_CONNECTIONS)]
    begun_s = time.perf_counter()

    def work(number: int) -> None:
        connection = Connection(service.port)
        due_s, interval_s = begun_s + number / per_s, _CONNECTIONS / per_s
        size = number
        while goes_on():
            time.sleep(max(0.0, due_s - time.perf_counter()))
            path = f"/profiles/gms/schedule?bytes={_FIRST + size % (_LAST - _FIRST)}"
            status, _ = connection.ask(get(path))
            seen[number].add(status, time.perf_counter() - due_s)
            due_s, size = due_s + interval_s, size + _CONNECTIONS
        connection.close()

    _together(work, _CONNECTIONS)
    whole = _Seen()
    for one in seen:
        for status, samples in one.samples_ms.items():
            whole.samples_ms.setdefault(status, []).extend(samples)
    return whole


def _together(work: Callable[[int], None], count: int) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _attacked(
    service: RunningService, attacked: RunningService, seconds: float, *, idle: bool = False
) -> tuple[_Seen, Counter[str]]:
    """Lookups while hostile clients ask one of the services, and what those were answered.

    Clients that are `idle` run only where a processor has nothing else to do.
    """
    arguments = [str(attacked.port), str(CLIENTS), str(seconds), *(["idle"] if idle else [])]
    with subprocess.Popen(
        [sys.executable, "-m", "bench.mixed", *arguments],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        text=True,
    ) as clients:
        time.sleep(2.0)
        seen = _paced(service, 50, _until(seconds - 1.0))
        return seen, Counter(json.loads(clients.communicate()[0]))


def _cancel(service: RunningService, jobs: int) -> Timing:
    """How long cancelled jobs take to end: some wait, some run."""
    samples = []
    connection = Connection(service.port)
    for number in range(jobs):
        question = hard_question(10**6 + number, time_limit_s=60)
        request = post("/optimize", question).replace(b"\r\n", b"\r\nPrefer: respond-async\r\n", 1)
        status, body = connection.ask(request)
        assert status == 202, (status, body)
        path = f"/jobs/{json.loads(body)['id']}"
        time.sleep(0.05 * (number % 10))
        started_s = time.perf_counter()
        _, body = connection.ask(get(path).replace(b"GET", b"DELETE", 1))
        while json.loads(body)["state"] not in ("done", "failed", "cancelled"):
            time.sleep(0.02)
            _, body = connection.ask(get(path))
        samples.append((time.perf_counter() - started_s) * 1e3)
    connection.close()
    return Timing(tuple(samples))


def _comparison(digits: str) -> str:
    """Return the body of a comparison that no other number of eight digits asks."""
    stages = [{"name": "a", "overhead_us": 3.0, "ns_per_byte": "N"}] + [
        {"name": f"s{j}", "overhead_us": 5.0 + j, "ns_per_byte": 2.0 + j} for j in range(8)
    ]
    sizes = [2**20 + 4096 * place for place in range(10)]
    body = {"message_bytes": sizes, "strategies": ["exact"], "pipeline": {"stages": stages}}
    return json.dumps(body).replace('"N"', f"1.{digits}")


def _overload(service: RunningService, seconds: float) -> tuple[_Seen, _Seen, float]:
    """Comparisons one at a time, then by 100 at once; how long until one takes as long as before.

    Each of the 100 asks, rests for a tenth of the time that 100 take one after the other, half as
    long or up to half as long again, and asks again: where all are refused that is 10 times what is
    done one at a time. Rests differ since the times to try again that refusals name differ; clients
    in step are the bench of overload's.
    """
    counter = iter(range(10**7))  # below those of the crowd

    def ask(connection: Connection, seen: _Seen) -> float:
        request = post("/compare", _comparison(f"{next(counter):08}").encode())
        started_s = time.perf_counter()
        status, _ = connection.ask(request)
        elapsed_s = time.perf_counter() - started_s
        seen.add(status, elapsed_s)
        return elapsed_s

    normal, beyond = _Seen(), _Seen()
    first = Connection(service.port)
    goes_on = _until(seconds / 2)
    while goes_on():
        ask(first, normal)
    rest_s = 100 / 10 * normal.quantile_ms(0.5) / 1e3
    with Crowd.posting(service.port, "/compare", _comparison("NNNNNNNN")) as crowd:
        for answer in crowd.asking(100, 5 * seconds, rest_s=rest_s):
            if answer.status:
                beyond.add(answer.status, answer.took_ms / 1e3)
            else:
                beyond.failures += 1
    first.close()  # it rested for longer than the service waits
    first = Connection(service.port)
    ended_s = time.perf_counter()
    while ask(first, _Seen()) * 1e3 > 2 * normal.quantile_ms(0.99):
        pass
    first.close()
    return normal, beyond, time.perf_counter() - ended_s


SPEC = BenchSpec(
    name="under_load",
    title="Lookups among hostile clients, cancels, and more than can be done",
    about=(
        f"The service as `sluice serve` starts it. {PER_S} lookups a second by their due times; "
        f"jobs that are cancelled; {CLIENTS} hostile clients of many kinds, in a process of their "
        "own; and comparisons by 100 clients at once, which are a program in C. Lookups among "
        "hostile clients are compared with those beside them, while they ask another service as "
        "they do here: it and they take the same share of the cores, and what is left is what "
        "sharing a service costs. Clients on other machines take none of its cores: for them those "
        "here run again, only while a core has nothing else to do, and are compared with lookups "
        "alone. Each part "
        f"lasts a minute, or {LENGTH} seconds, the last one five times as long."
    ),
    run=_run,
    workloads={},
)
