"""POST /optimize by more clients than can be answered: answers, refusals, and what both cost."""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from bench.crowd import Crowd
from bench.service import RunningService, serving
from bench.spec import BenchSpec, CaseResult, Check, Effort, Table
from bench.timing import Timing

FEW, MANY = 10, 300
WARM_UP_S = 3.0
IN_STEP_S = 1.0
# Connections of clients that have just ended do not keep out the next ones.
SETTINGS = {"SLUICE_WORKERS": "1", "SLUICE_MAX_CONNECTIONS_PER_ADDRESS": "4096"}
# A few milliseconds of a solver, beyond what the service tries in its own process at a time.
_STAGES = [
    {"name": f"stage {j}", "overhead_us": 5.0 + j, "ns_per_byte": 10.0 + 3 * j} for j in range(4)
]
_BODY = json.dumps({"message_bytes": "N", "pipeline": {"stages": _STAGES}})


@dataclass
class _Load:
    """What clients were answered over `seconds`, and the processor time of the service itself."""

    seconds: float = 0.0
    own_s: float = 0.0
    answered_ms: list[float] = field(default_factory=list)
    refused_ms: list[float] = field(default_factory=list)
    failures: int = 0

    def add(
        self, service: RunningService, crowd: Crowd, clients: int, seconds: float, retry_s: float
    ) -> None:
        """Have clients ask for so long; what came while they warmed up does not count."""
        own_s: list[float] = []

        def meanwhile() -> None:
            time.sleep(WARM_UP_S)
            own_s.append(_own_s(service))
            time.sleep(seconds)
            own_s.append(_own_s(service))

        answers = crowd.asking(clients, WARM_UP_S + seconds, meanwhile=meanwhile, retry_s=retry_s)
        self.seconds += seconds
        self.own_s += own_s[1] - own_s[0]
        for answer in answers:
            if answer.came_ms < WARM_UP_S * 1e3:
                continue
            if answer.status in (200, 201):
                self.answered_ms.append(answer.took_ms)
            elif answer.status == 503:
                self.refused_ms.append(answer.took_ms)
            else:
                self.failures += 1


def _run(effort: Effort) -> CaseResult:
    rounds, seconds, long_s = effort.pick((3, 10.0, 300.0), quick=(1, 6.0, 6.0))
    kinds = {"1": (1, 0.0), f"{FEW}": (FEW, 0.0), f"{MANY}": (MANY, 0.0)}
    kinds[f"{MANY}, in step"] = (MANY, IN_STEP_S)
    loads, lasting = {what: _Load() for what in kinds}, _Load()
    with (
        tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder,
        serving(f"sqlite:///{Path(folder, 'bench.db')}", SETTINGS) as service,
        Crowd.posting(service.port, "/optimize", _BODY.replace('"N"', "NNNNNNNN")) as crowd,
    ):
        for _ in range(rounds):
            for what, (clients, retry_s) in kinds.items():
                loads[what].add(service, crowd, clients, seconds, retry_s)
        lasting.add(service, crowd, MANY, long_s, 0.0)
    return _result(loads, lasting)


def _own_s(service: RunningService) -> float:
    """Return the processor time of the service's own process, in seconds."""
    times = service.process.cpu_times()
    return times.user + times.system


def _result(loads: dict[str, _Load], lasting: _Load) -> CaseResult:
    alone, few, many, in_step = loads.values()
    rows = []
    for what, load in {**loads, f"{MANY}, for {lasting.seconds:.0f} s": lasting}.items():
        answered, refused = Timing(tuple(load.answered_ms)), Timing(tuple(load.refused_ms or [0.0]))
        rows.append(
            (
                f"{what} clients" if what != "1" else "1 client",
                _per_cpu(load) / _per_cpu(few),
                len(load.answered_ms) / load.seconds,
                len(load.refused_ms) / load.seconds,
                answered.quantile_ms(0.5),
                answered.quantile_ms(0.99),
                refused.quantile_ms(0.99),
                load.own_s / load.seconds,
            )
        )
    p99, p99_alone = (
        Timing(tuple(load.answered_ms)).quantile_ms(0.99) for load in (lasting, alone)
    )
    refusals = Timing(tuple(many.refused_ms or [0.0]))
    # What an answer costs is that of the few: the rest of the processor time went into refusals.
    answers_s = len(many.answered_ms) * few.own_s / len(few.answered_ms)
    refusal_ms = (many.own_s - answers_s) / max(1, len(many.refused_ms)) * 1e3
    per_s = "answers per second of the service's own processor"
    checks = (
        Check(per_s, _per_cpu(many) / _per_cpu(few), 0.9, f"of {FEW} clients'", "at least"),
        Check("p99 of refusals", refusals.quantile_ms(0.99), 50, "ms"),
        Check("processor time of a refusal", max(0.0, refusal_ms), 0.4, "ms"),
        Check(
            f"p99 of answers over {lasting.seconds:.0f} s", p99 / p99_alone, 2, "of one client's"
        ),
        Check(
            "answers while all retry in step",
            len(in_step.answered_ms) / len(few.answered_ms),
            0.9,
            f"of {FEW} clients'",
            "at least",
        ),
        Check("failures", sum(load.failures for load in (*loads.values(), lasting)), 0, "answers"),
    )
    table = Table(
        "POST /optimize, each another question, one worker",
        (
            "clients",
            f"answers a CPU s / {FEW} clients",
            "answers/s",
            "refusals/s",
            "answers p50 ms",
            "p99 ms",
            "refusals p99 ms",
            "service CPU",
        ),
        tuple(rows),
    )
    return CaseResult((table,), checks)


def _per_cpu(load: _Load) -> float:
    return len(load.answered_ms) / load.own_s


SPEC = BenchSpec(
    name="overload",
    title="More clients than can be answered",
    about=(
        f"The service as `sluice serve` starts it, with one worker. {FEW} and {MANY} clients, a "
        "program in C, ask without a pause, each another question; who is refused asks again when "
        f"Retry-After says so, or all of them {IN_STEP_S:g} s later. They take turns."
    ),
    run=_run,
    workloads={},
)
