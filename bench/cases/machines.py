"""What cuts of data movers lose: by divided rates, and by each strategy for machines."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import orjson

import solvers
from analysis.in_flight import in_flight
from analysis.uncertainty import UncertaintyQuestion, assess
from app.schemas.base import parse_json
from app.schemas.stages import asked_pipeline
from bench.data_movers import data_mover, wide_chain
from bench.spec import BenchSpec, CaseResult, Cell, Check, Effort, Table
from bench.timing import interleaved
from bench.workloads import MIB
from contract.pipeline import PipelineIn
from domain.machine import Machine
from domain.pipeline import Pipeline, Stage
from domain.problem import MachineProblem, Problem
from domain.solution import Status
from domain.uncertainty import stated_model
from solvers.contract import Deadline
from solvers.machine.program import solve_region
from solvers.machine.regions import regions_of

_SEED = 2024
_LIMIT_S = 30.0
_STRATEGIES = ("repeat", "ramp_repeat", "exact")
_PROGRAMS = ((8, 100, 150.0), (8, 300, 600.0))  # stages, fragments, ms
_REPEAT_MS, _DRAWS_MS = 20.0, 100.0
_DRAWS, _DOCUMENTED = 256, 5
_ROOT = Path(__file__).parents[2]
_FRAGMENT_BYTES = 40_000
_ENDLESS = Deadline(float("inf"))


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What each way takes over the proven bound of one machine, in shares."""

    above: dict[str, float]
    is_proven: bool
    has_processor: bool


def divided(machine: Machine) -> Pipeline:
    """Return the chain with each stage's costs divided by its lanes; windows and processors are
    left out.
    """
    return Pipeline(
        tuple(
            Stage.of_line(
                stage.name,
                overhead_us=stage.ranges[0].overhead_us / rules.lanes,
                ns_per_byte=stage.ranges[0].ns_per_byte / rules.lanes,
            )
            for stage, rules in zip(machine.stages, machine.rules, strict=True)
        )
    )


def _outcome(machine: Machine, total: int) -> _Outcome:
    problem, chain = MachineProblem(machine, total), Problem(divided(machine), total)
    found = {name: solvers.solve(problem, name, time_limit_s=_LIMIT_S) for name in _STRATEGIES}
    best = found["exact"]
    of_chain = {
        "divided, repeat": solvers.solve(chain, "repeat"),
        "divided, exact": solvers.solve(chain, "exact"),
    }
    taken_us = {
        name: machine.latency_us(one.schedule.fragment_bytes)
        for name, one in (of_chain | found).items()
    }
    min_us = best.lower_bound_us
    return _Outcome(
        {name: us / min_us - 1.0 for name, us in taken_us.items()},
        best.status in (Status.OPTIMAL, Status.OPTIMAL_BEFORE_ROUNDING),
        bool(machine.processors),
    )


def _quantiles(name: str, above: np.ndarray) -> tuple[Cell, ...]:
    found = (np.median(above), above.mean(), np.quantile(above, 0.9), above.max())
    return (name, *(round(float(share), 4) for share in found))


def _movers(number: int) -> Iterator[tuple[Machine, int]]:
    for index in range(number):
        yield data_mover(random.Random(_SEED + index))


def _programs(effort: Effort) -> list[tuple[int, int, float, float]]:
    """Stages, fragments and processor ms of the linear program of one count, and its limit."""
    rows = []
    for stages, k, limit_ms in _PROGRAMS:
        machine = wide_chain(random.Random(_SEED), stages)
        problem = MachineProblem(machine, k * _FRAGMENT_BYTES)
        region = regions_of(problem, k)[0].region
        sides = {"program": partial(solve_region, problem, region, _ENDLESS)}
        timed = interleaved(sides, rounds=effort.pick(9, quick=1))["program"]
        rows.append((stages, k, timed.processor.median_ms, limit_ms))
    return rows


def _documented() -> Iterator[tuple[str, Machine]]:
    """The machines of docs/machines.md."""
    bodies = re.findall(r"```json\n(.*?)```", (_ROOT / "docs/machines.md").read_text(), re.S)
    bodies.insert(0, (_ROOT / "examples/s3-connections.json").read_text())
    for body in bodies:
        stages = orjson.loads(body)["pipeline"]
        machine = asked_pipeline(parse_json(PipelineIn, orjson.dumps(stages)))
        assert isinstance(machine, Machine)
        yield ", ".join(stage["name"] for stage in stages["stages"]), machine


def _answers(effort: Effort) -> list[tuple[str, float, float]]:
    """Processor ms of the best repeated size of 64 MiB with what is enough, and of pricing it in
    256 draws.
    """
    movers = [(f"mover {index}", one) for index, (one, _) in enumerate(_movers(20))]
    asked = [*_documented(), *movers[: effort.pick(20, quick=2)]]
    rounds = effort.pick(9, quick=1)
    found = interleaved({name: partial(_repeated, one) for name, one in asked}, rounds=rounds)
    drawn = interleaved({name: partial(_drawn, one) for name, one in asked}, rounds=rounds)
    return [
        (name, found[name].processor.median_ms, drawn[name].processor.median_ms)
        for name, _ in asked
    ]


def _cost_checks(answers: list[tuple[str, float, float]]) -> Iterator[Check]:
    """The documented machines each, and the median of the random ones."""
    for kind, some, over in (
        ("documented machines, slowest", answers[:_DOCUMENTED], max),
        ("random ones, median", answers[_DOCUMENTED:], median),
    ):
        answer_ms, drawn_ms = over(ms for _, ms, _ in some), over(ms for _, _, ms in some)
        yield Check(f"repeat and what is enough, {kind}", answer_ms, _REPEAT_MS, "ms")
        yield Check(f"with {_DRAWS} draws, {kind}", answer_ms + drawn_ms, _DRAWS_MS, "ms")


def _repeated(machine: Machine) -> object:
    """Without what was derived of the problem before."""
    problem = MachineProblem(machine, 64 * MIB)
    found = solvers.solve(problem, "repeat")
    return in_flight(found, problem, max(found.schedule.fragment_bytes))


def _drawn(machine: Machine) -> object:
    return assess(UncertaintyQuestion(stated_model(machine, 0.1), 64 * MIB, draws=_DRAWS, seed=1))


def _run(effort: Effort) -> CaseResult:
    solvers.warm_up()
    outcomes = [_outcome(*mover) for mover in _movers(effort.pick(200, quick=8))]
    names = list(outcomes[0].above)
    above = {name: np.array([one.above[name] for one in outcomes]) for name in names}
    programs, answers = _programs(effort), _answers(effort)
    proven = sum(one.is_proven for one in outcomes)
    ramps, single = above["ramp_repeat"], above["repeat"]
    return CaseResult(
        (
            Table(
                f"{len(outcomes)} machines: latency above the bound",
                ("cut", "median", "mean", "ninth decile", "worst"),
                tuple(_quantiles(name, above[name]) for name in names),
            ),
            Table(
                "One count by the linear program, processor time",
                ("stages", "fragments", "ms"),
                tuple((stages, k, round(ms, 1)) for stages, k, ms, _ in programs),
            ),
            Table(
                "64 MiB, processor time",
                ("machine", "repeat and what is enough, ms", f"its {_DRAWS} draws, ms"),
                tuple((name, round(ms, 1), round(drawn, 1)) for name, ms, drawn in answers),
            ),
        ),
        (
            Check("machines proven", proven / len(outcomes), 0.95, "", "at least"),
            Check("ramp_repeat above the bound, median", float(np.median(ramps)), 0.015, "share"),
            Check(
                "ramp_repeat above the bound, ninth decile",
                float(np.quantile(ramps, 0.9)),
                0.04,
                "share",
            ),
            Check("exact above repeat", float((above["exact"] - single).max()), 1e-9, "share"),
            *_cost_checks(answers),
            *(
                Check(f"program of {stages} stages, {k} fragments", ms, limit_ms, "ms")
                for stages, k, ms, limit_ms in programs
            ),
        ),
        (
            f"divided, exact is worse than repeat on "
            f"{(above['divided, exact'] > single).mean():.0%} of these machines",
        ),
    )


def _workload(stages: int, k: int) -> AbstractContextManager[Callable[[], object]]:
    machine = wide_chain(random.Random(_SEED), stages)
    problem = MachineProblem(machine, k * _FRAGMENT_BYTES)
    region = regions_of(problem, k)[0].region
    return nullcontext(partial(solve_region, problem, region, _ENDLESS))


SPEC = BenchSpec(
    name="machines",
    title="Lanes, windows, delays and processors",
    about=(
        "Random machines like real data movers: 3 to 6 stages, lanes on one of them in half of "
        "the machines, slots between neighbours, delays, a window of credits, a processor of two "
        "stages. Each cut is priced by the machine's evaluator; above the bound that `exact` "
        "proves. Divided: a chain with each stage's costs divided by its lanes, without windows "
        "and processors."
    ),
    run=_run,
    workloads={f"{stages} x {k}": partial(_workload, stages, k) for stages, k, _ in _PROGRAMS},
)
