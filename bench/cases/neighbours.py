"""What an owner waits for while another one asks ten times as often as he may, and alone."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from app.http.access import BURST_S
from app.questions.keys import create_key
from bench.client import Connection, get, post
from bench.machine import CHECKOUT
from bench.neighbour import asked_by, question
from bench.service import RunningService, serving
from bench.spec import BenchSpec, CaseResult, Check, Effort, Table
from bench.timing import Timing
from models.records import KeyScope
from models.session import create_store

QUOTA_PER_S = 20
TIMES = 10  # the quota
INTERVAL_S = 0.05  # between two of the requests that are measured
_START_S = 1.0  # of the neighbour's process, and what he has left of his burst
_KINDS = ("lookup", "optimisation")


@dataclass
class _Seen:
    """What the owner who keeps to his rate has met, by kind of request."""

    samples_ms: dict[str, list[float]] = field(default_factory=lambda: {one: [] for one in _KINDS})
    failures: int = 0
    asked: int = 0


def _run(effort: Effort) -> CaseResult:
    rounds, seconds = effort.pick((5, 20.0), quick=(1, 6.0))
    alone, beside, statuses = _Seen(), _Seen(), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder:
        url = f"sqlite:///{Path(folder, 'bench.db')}"
        quiet, noisy = _keys(url)
        settings = {"SLUICE_AUTH": "keys", "SLUICE_OWNER_REQUESTS_PER_S": str(QUOTA_PER_S * 2)}
        with serving(url, settings) as service:
            _ask(service, quiet, _Seen(), _until(2.0))  # what is loaded once
            for _ in range(rounds):
                _ask(service, quiet, alone, _until(seconds))
                statuses += _beside(service, quiet, noisy, seconds, beside)
    rows = []
    checks = []
    for kind in _KINDS:
        both = [Timing(tuple(seen.samples_ms[kind])) for seen in (alone, beside)]
        p99_alone = both[0].quantile_ms(0.99)
        for what, timing in zip(("alone", "beside a neighbour"), both, strict=True):
            p50, p95, p99 = (timing.quantile_ms(share) for share in (0.5, 0.95, 0.99))
            rows.append((f"{kind}, {what}", p99 / p99_alone, p50, p95, p99))
        checks.append(
            Check(f"p99 of every {kind}", both[1].quantile_ms(0.99) / p99_alone, 2, "of it alone")
        )
    may_s = rounds * (seconds + BURST_S)  # a key that has rested may ask for so long at once
    table = Table(
        f"{1 / INTERVAL_S:g} requests a second, and {TIMES * QUOTA_PER_S} of a neighbour who may "
        f"ask {QUOTA_PER_S}",
        ("request", "p99 / alone", "p50 ms", "p95 ms", "p99 ms"),
        tuple(rows),
    )
    answered = Table(
        "What the neighbour was answered",
        ("status", "answers"),
        tuple(sorted(statuses.items())),
        is_detail=True,
    )
    checks += [
        Check("refused requests of the other", beside.failures, 0, "requests"),
        Check(
            "answers of the neighbour", statuses["200"] / (may_s * QUOTA_PER_S), 1.02, "of his rate"
        ),
    ]
    return CaseResult((table, answered), tuple(checks))


def _keys(url: str) -> tuple[str, str]:
    store = create_store(url)
    store.upgrade()
    quiet = create_key(store.of("quiet"), "quiet", KeyScope.WRITE)
    noisy = create_key(store.of("noisy"), "noisy", KeyScope.WRITE, requests_per_s=QUOTA_PER_S)
    store.dispose()
    return quiet.secret, noisy.secret


def _until(seconds: float) -> Callable[[], bool]:
    end_s = time.monotonic() + seconds
    return lambda: time.monotonic() < end_s


def _beside(
    service: RunningService, quiet: str, noisy: str, seconds: float, seen: _Seen
) -> Counter[str]:
    """What the neighbour was answered, while the other one asks."""
    arguments = [str(service.port), noisy, str(TIMES * QUOTA_PER_S), str(seconds)]
    with subprocess.Popen(
        [sys.executable, "-m", "bench.neighbour", *arguments],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        text=True,
    ) as neighbour:
        time.sleep(_START_S)
        _ask(service, quiet, seen, lambda: neighbour.poll() is None)
        return Counter(json.loads(neighbour.communicate()[0]))


def _ask(service: RunningService, key: str, seen: _Seen, goes_on: Callable[[], bool]) -> None:
    """Look up and optimise in turn; every optimisation is another question."""
    connection = Connection(service.port)
    while goes_on():
        for kind in _KINDS:
            seen.asked += 1
            size = 100_000 + seen.asked
            request = (
                get(f"/profiles/gms/schedule?bytes={65536 + seen.asked}")
                if kind == "lookup"
                else post("/optimize", question(size * 7 + id(seen) % 1009))
            )
            started_s = time.perf_counter()
            status, _ = connection.ask(asked_by(key, request))
            elapsed_s = time.perf_counter() - started_s
            seen.samples_ms[kind].append(elapsed_s * 1e3)
            seen.failures += status != 200
            time.sleep(max(0.0, INTERVAL_S - elapsed_s))
    connection.close()


SPEC = BenchSpec(
    name="neighbours",
    title="A neighbour who asks ten times as often as he may",
    about=(
        "The service as `sluice serve` starts it with keys. One owner looks up and optimises; "
        "another one, in a process of its own, sends optimisations at ten times the rate of his "
        "key, each another question. Alone and beside each other take turns."
    ),
    run=_run,
    workloads={},
)
