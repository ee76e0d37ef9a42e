"""A full `auto` in the solver on published and measured pipelines, and one question over HTTP."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

import solvers
from app.questions.profiles import paper_profiles
from bench.client import Load, get, post, send_all
from bench.questions import pipeline_question
from bench.service import serving
from bench.spec import BenchSpec, CaseResult, Cell, Check, Effort, Table
from bench.timing import Timing, interleaved
from bench.workloads import KIB, MIB, example_trace, myrinet
from domain.pipeline import Pipeline, pipeline_of_lines
from domain.problem import Problem

_HTTP_MAX_BYTES = 64 * KIB
_HTTP_TARGET_MS = 5.0
_WARM_UPS = 3
_MIN_ROUNDS, _ENOUGH_MS = 20, 2000.0


@dataclass(frozen=True, slots=True)
class _Instance:
    """A named pipeline and message, and its target where one was set."""

    name: str
    pipeline: Pipeline
    message_bytes: int
    target_ms: float | None = None

    @property
    def label(self) -> str:
        """Name and size."""
        return f"{self.name}, {self.message_bytes // KIB:,} KiB"


def _instances() -> Iterator[_Instance]:
    papers = {paper.name: paper.pipeline for paper in paper_profiles()}
    yield _Instance("myrinet-gam", papers["myrinet-gam"], 4 * KIB, 1.0)
    yield _Instance("myrinet-gam", papers["myrinet-gam"], MIB, 10.0)
    yield _Instance("gms", papers["gms"], 8 * KIB)
    yield _Instance("gms", papers["gms"], MIB)
    for name in ("disk-study", "disk-study-two-networks"):
        yield _Instance(name, papers[name], 64 * KIB)
        yield _Instance(name, papers[name], MIB)
    for overhead_us, target_ms in ((1e-4, 1000.0), (0.0, 10.0)):
        costs = [("stage", overhead_us, 10.0 + 0.01 * j) for j in range(8)]
        name = f"eight stages nearly alike, overheads {overhead_us:g} µs"
        yield _Instance(name, pipeline_of_lines(costs), 4 * MIB, target_ms)
    trace = example_trace()
    yield _Instance("example trace", trace, 64 * KIB)
    yield _Instance("example trace", trace, MIB)


def _run(effort: Effort) -> CaseResult:
    solvers.warm_up()
    rounds = effort.pick(200, quick=20)
    found = [_measure(instance, rounds) for instance in _instances()]
    table = Table(
        "auto after the warm-up, proof over all k included",
        (
            "problem",
            "rounds",
            "median ms",
            "90 % ms",
            "slowest ms",
            "strategy",
            "k",
            "status",
            "relative gap",
        ),
        tuple(row for row, _ in found),
    )
    load_table, load_check = _over_http(effort.pick(1000, quick=100))
    checks = [check for _, check in found if check is not None]
    return CaseResult((table, load_table), (*checks, load_check))


def _measure(instance: _Instance, rounds: int) -> tuple[tuple[Cell, ...], Check | None]:
    problem = Problem(instance.pipeline, instance.message_bytes)
    call = partial(solvers.solve, problem)
    first_ms = interleaved({"auto": call}, rounds=1, warm_ups=_WARM_UPS)["auto"].timing.median_ms
    rounds = min(rounds, max(_MIN_ROUNDS, int(_ENOUGH_MS / first_ms)))
    timed = interleaved({"auto": call}, rounds=rounds, warm_ups=0)["auto"]
    timing, answer = timed.timing, timed.result
    row = (
        instance.label,
        rounds,
        timing.median_ms,
        timing.quantile_ms(0.9),
        timing.max_ms,
        str(answer.strategy),
        answer.schedule.fragments,
        str(answer.status),
        answer.relative_gap,
    )
    if instance.target_ms is None:
        return row, None
    what = f"auto in the solver, {instance.label}, median"
    return row, Check(what, timing.median_ms, instance.target_ms, "ms")


# ---- end to end ----------------------------------------------------------------------------------


def _over_http(number: int) -> tuple[Table, Check]:
    """Different sizes of one pipeline in any order, asked by one client of a new database."""
    sizes = np.random.default_rng(4).permutation(np.arange(64, _HTTP_MAX_BYTES + 1))[:number]
    asked = [_request(size) for size in sizes.tolist()]
    warm_up = [_request(size) for size in range(1, 33)]
    load = _load(warm_up, asked)
    p50_ms = load.timing.quantile_ms(0.5)
    table = Table(
        f"POST /optimize end to end, Table 1, {number} sizes up to 64 KiB, none stored, one client",
        ("request", "p50 ms", "p90 ms", "p99 ms", "max ms", "per second", "failures"),
        (_load_row("new question", load.timing, load),),
    )
    what = f"POST /optimize, {number} different sizes up to 64 KiB, p50"
    return table, Check(what, p50_ms, _HTTP_TARGET_MS, "ms")


def _request(message_bytes: int) -> bytes:
    return post("/optimize", pipeline_question(myrinet(), message_bytes))


def _load(warm_up: list[bytes], asked: list[bytes]) -> Load:
    with (
        tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder,
        serving(f"sqlite:///{Path(folder, 'bench.db')}") as service,
    ):
        send_all(service.port, [get("/healthz")] * 100, concurrency=1)
        send_all(service.port, warm_up, concurrency=1)
        return send_all(service.port, asked, concurrency=1)


def _load_row(label: str, timing: Timing, load: Load) -> tuple[Cell, ...]:
    quantiles = (timing.quantile_ms(share) for share in (0.5, 0.9, 0.99))
    return (label, *quantiles, timing.max_ms, load.per_second, load.failures)


def _workload(instance: _Instance) -> AbstractContextManager[Callable[[], object]]:
    solvers.warm_up()
    problem = Problem(instance.pipeline, instance.message_bytes)
    return nullcontext(partial(solvers.solve, problem))


def _myrinet(message_bytes: int) -> AbstractContextManager[Callable[[], object]]:
    return _workload(_Instance("myrinet-gam", myrinet(), message_bytes))


def _trace(message_bytes: int) -> AbstractContextManager[Callable[[], object]]:
    return _workload(_Instance("example trace", example_trace(), message_bytes))


SPEC = BenchSpec(
    name="auto",
    title="auto on published and measured pipelines",
    about=(
        "`solvers.solve` with `auto` inside one process: every strategy, the search over k with "
        "its proof, and the best whole-byte cut. Then whole questions over HTTP, as the service "
        "is started by `sluice serve`, on a new SQLite file: reading, solving, storing, answering."
    ),
    run=_run,
    workloads={
        "myrinet 4 KiB": partial(_myrinet, 4 * KIB),
        "myrinet 1 MiB": partial(_myrinet, MIB),
        "example trace 64 KiB": partial(_trace, 64 * KIB),
        "example trace 1 MiB": partial(_trace, MIB),
    },
)
