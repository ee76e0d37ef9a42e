"""Two answers that misled where whole items were meant, beside those of items, over HTTP.

A plain message may be cut at any byte: of layers and tensors that are sent whole it says what
docs/items.md shows. Asked with items the service says what these cost.
"""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from bench.item_cases import MIB, Gradients, at_any_byte, gradients, kv_pushes, llama3_8b
from domain.bucket_setting import BucketSetting
from domain.items import ItemProblem
from domain.pipeline import Pipeline
from tests.support.item_bodies import Body

DEFAULT_BYTES = 25 * MIB


def stages_of(pipeline: Pipeline) -> Body:
    """The stages as a request has them."""
    lines = [(stage.name, stage.ranges[0].line) for stage in pipeline.stages]
    return {
        "stages": [
            {"name": name, "overhead_us": line.overhead_us, "ns_per_byte": line.ns_per_byte}
            for name, line in lines
        ]
    }


def answered(client: httpx.Client, body: Body) -> dict[str, Any]:
    """What POST /optimize says."""
    found = client.post("/optimize", json=body)
    assert found.status_code == 200, found.text
    document: dict[str, Any] = found.json()
    return document


def of_items(client: httpx.Client, problem: ItemProblem, cap_bytes: int, **fill: Any) -> Any:
    """The answer about whole items, beside this cap."""
    sequence = problem.sequence
    items = {"bytes": sequence.item_bytes, "ready_us": sequence.ready_us}
    body = {"pipeline": stages_of(problem.pipeline), "items": items, "fill": fill}
    return answered(client, {**body, "uncertainty": {"current": {"repeat": cap_bytes}}})


def of_bytes(client: httpx.Client, problem: ItemProblem, **more: Any) -> Any:
    """The answer about the same bytes."""
    body = {"pipeline": stages_of(at_any_byte(problem)), **more}
    return answered(client, {**body, "message_bytes": problem.sequence.total_bytes})


def llama_case() -> Gradients:
    """Llama 3 8B over 40 GB/s, 1.5 ms an all-reduce."""
    (found,) = (
        case
        for case in gradients(llama3_8b())
        if (case.overhead_us, case.bytes_per_us, case.backward) == (1500.0, 40e3, 1.0)
    )
    return found


def test_layers_of_32_mebibytes(client: httpx.Client) -> None:
    """Bytes: 48.3 MiB, and less time than any cut of layers has. Layers: two of them, and what
    that size costs as a cap, one layer a push.
    """
    problem = kv_pushes(8192, 100.0, 2000.0)
    plain = of_bytes(client, problem, strategy="repeat")
    size = plain["fragment_bytes"][0]
    assert size / MIB == pytest.approx(48.3, abs=0.05)
    found = of_items(client, problem, size, rule="before")
    assert found["status"] == "optimal"
    assert plain["latency_us"] / found["lower_bound_us"] - 1.0 == pytest.approx(-0.004, abs=5e-4)
    assert found["current"]["fragments"] == 80
    assert found["current"]["loss"] == pytest.approx(0.139, abs=5e-4)
    best = found["best_cap"]
    assert best["loss"] == pytest.approx(0.0, abs=1e-6)
    assert best["from_bytes"] == 64 * MIB
    assert best["to_bytes"] == 96 * MIB - 1


def test_buckets_of_25_mebibytes(client: httpx.Client) -> None:
    """Bytes: they cost 98 %. Whole tensors: 24 % over the best cut, 23 % over the best cap."""
    case = llama_case()
    current = {"current": {"repeat": DEFAULT_BYTES}}
    plain = of_bytes(client, case.problem, strategy="repeat", uncertainty=current)
    (said,) = (each for each in plain["baselines"] if each["static_bytes"] == DEFAULT_BYTES)
    assert said["latency_us"] / plain["latency_us"] - 1.0 == pytest.approx(0.976, abs=5e-4)
    found = of_items(client, case.problem, DEFAULT_BYTES, rule="until")
    assert found["status"] == "optimal"
    default_us = case.problem.latency_us(BucketSetting().cut(case.problem.sequence))
    assert default_us / found["latency_us"] - 1.0 == pytest.approx(0.240, abs=5e-4)
    assert default_us / found["best_cap"]["latency_us"] - 1.0 == pytest.approx(0.233, abs=5e-4)
    assert found["current"]["loss"] == pytest.approx(0.238, abs=0.01)
