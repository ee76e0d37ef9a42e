"""One question through every door: the same cut, latency and bound, or time is named as the end."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np
import pytest

from app.schemas.stages import pipeline_or_none
from domain.pipeline import FitRange, Pipeline, Stage
from domain.problem import FragmentLimits, Problem
from tests.app.serving import Live, serving, settings_for
from tests.support.counts import count

LIMIT_S = 2.0
SAME = 1e-9  # of bounds: a table deducts what its readers' rounding may take
QUESTIONS = count(200)
UNITS = {"ns": 1e-3, "µs": 1.0, "ms": 1e3, "s": 1e6}  # of the page, in µs
CAP = 64  # fragments: no best cut has as many, and few searches are ended by time


@dataclass(frozen=True)
class Said:
    """What a door says; `is_late` where it says that time ended the search."""

    door: str
    latency_us: float
    lower_bound_us: float
    is_late: bool
    cut: tuple[int, ...] | None = None


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    url = f"sqlite:///{tmp_path_factory.mktemp('doors') / 'sluice.db'}"
    with serving(settings_for(url, max_fragments=CAP)) as running:
        yield running


def question(number: int) -> Problem:
    """Lines and stages with two ranges in turns, messages of 100 bytes to 1 MiB."""
    rng = np.random.default_rng([17, number])
    size = int(np.exp(rng.uniform(np.log(100), np.log(1 << (20 if number % 2 else 14)))))
    stages = []
    for place in range(int(rng.integers(2, 6))):
        costs = float(rng.exponential(20.0)), float(rng.exponential(10.0))
        first = FitRange(*costs, None if number % 2 else int(rng.integers(size // 20, size) + 1))
        second = FitRange(costs[0] * float(rng.uniform(1.0, 3.0)), costs[1])
        stages.append(Stage(f"s{place}", (first,) if number % 2 else (first, second)))
    return Problem(Pipeline(tuple(stages)), size, FragmentLimits(max_fragments=None), CAP)


def body_of(problem: Problem, prefix: str = "") -> dict[str, Any]:
    """The pipeline as requests have it; names do not count for an answer, and make it another."""
    model = pipeline_or_none(problem.pipeline)
    assert model is not None
    stages = [
        {
            "name": prefix + stage.name,
            "ranges": [
                {
                    "overhead_us": part.overhead_us,
                    "ns_per_byte": part.ns_per_byte,
                    "up_to_bytes": part.up_to_bytes,
                }
                for part in stage.ranges
            ],
        }
        for stage in problem.pipeline.stages
    ]
    return {"stages": stages, "delay_us": problem.pipeline.delay_us}


def answered(door: str, answer: dict[str, Any]) -> Said:
    return Said(
        door,
        answer["latency_us"],
        answer["lower_bound_us"],
        answer["status"] == "time_limit",
        tuple(answer["fragment_bytes"]),
    )


def strategies_on_the_page(client: httpx.Client, answer: dict[str, Any]) -> Said:
    """The row `exact` of the page's table of strategies, which is solved anew beside the answer;
    the answer's own where that search was no faster.

    Its texts are rounded, so what is the answer's own is told by the words and figures beside it.
    """
    text = client.get(f"/ui/answers/{answer['id']}/parts/alternatives").text
    rows = [
        re.findall(r"<t[dh][^>]*>(?:<code>)?(.*?)(?:</code>)?</t[dh]>", row, re.DOTALL)
        for row in re.findall(r"<tr.*?</tr>", text, re.DOTALL)
    ]
    heading, own, *others = rows
    assert [float(answer["latency_us"])] == pytest.approx([_us(own[1], heading[1])], rel=1e-3)
    row = next((row for row in others if row[0] == "exact"), own)
    if "time ended" in row[1]:
        return Said("page", float("inf"), 0.0, True)
    is_equal = row is own or (row[2] == "equal" and row[1] == own[1])
    return Said(
        "page",
        answer["latency_us"] if is_equal else _us(row[1], heading[1]),
        answer["lower_bound_us"] if row[3] == own[3] else 0.0,
        row[-1].endswith("*"),
    )


def _us(text: str, heading: str) -> float:
    return float(re.sub(r"[^0-9.]", "", text)) * UNITS[heading.split(", ")[1]]


def doors(client: httpx.Client, problem: Problem, number: int) -> Iterator[Said]:
    """Ask them one after the other; each solves by itself, for what it asks has other names."""
    size = problem.message_bytes

    def asked(prefix: str, **more: Any) -> dict[str, Any]:
        return {"pipeline": body_of(problem, prefix), "message_bytes": size, **more}

    one = client.post("/optimize", json=asked("", time_limit_s=LIMIT_S)).json()
    yield answered("optimize", one)
    yield strategies_on_the_page(client, one)

    job = client.post(
        "/optimize", json=asked("job ", time_limit_s=LIMIT_S), headers={"Prefer": "respond-async"}
    ).json()
    while job["state"] in ("queued", "running"):
        time.sleep(0.02)
        job = client.get(f"/jobs/{job['id']}").json()
    yield answered("job", client.get(f"/optimizations/{job['answer_id']}").json())

    compared = client.post(
        "/compare",
        json={
            **asked("compare "),
            "message_bytes": [size],
            "strategies": ["auto", "exact"],
            "time_limit_s": 2 * LIMIT_S,
        },
    ).json()
    for row in compared["rows"]:
        late = row["status"] == "time_limit"
        yield Said(f"compare {row['strategy']}", row["latency_us"], row["lower_bound_us"], late)

    name = f"doors-{number}"
    model = {"pipeline": body_of(problem, "table ")}
    assert client.post("/profiles", json={"name": name, **model}).status_code == 201
    scope = {"min_message_bytes": size, "max_message_bytes": size}
    table = client.post(f"/profiles/{name}/tables", json={**scope, "time_limit_s": LIMIT_S}).json()
    read = client.get(f"/profiles/{name}/schedule", params={"bytes": size}).json()
    late = bool(table["missed"])
    yield Said(
        "table", read["latency_us"], read["lower_bound_us"], late, tuple(read["fragment_bytes"])
    )

    audited = client.post(
        "/audit",
        json={
            "pipeline": body_of(problem, "audit "),
            "setting": {"static_bytes": -(-size // 2)},
            "min_message_bytes": size,
            "max_message_bytes": size,
            "time_limit_s": 2 * LIMIT_S,
        },
    ).json()
    worst = audited["setting"]["worst"]
    late = worst["best_us"] > worst["lower_bound_us"] * (1 + 1e-6)
    yield Said("audit", worst["best_us"], worst["lower_bound_us"], late)


@pytest.mark.parametrize("number", range(QUESTIONS))
def test_every_door_says_the_same(service: Live, number: int) -> None:
    """Wherever time ended neither; and no door knows better than another's bound."""
    problem = question(number)
    first, *others = doors(service.client, problem, number)
    for other in others:
        assert first.lower_bound_us <= other.latency_us * (1 + SAME), other
        assert other.lower_bound_us <= first.latency_us * (1 + SAME), other
        if first.is_late or other.is_late:
            continue
        assert other.latency_us == pytest.approx(first.latency_us, rel=1e-12), other
        assert other.lower_bound_us == pytest.approx(first.lower_bound_us, rel=SAME), other
        assert other.cut in (None, first.cut), other
