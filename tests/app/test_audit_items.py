"""POST /audit of a cap of items: its regret, its buckets, the verdict, and what to set."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from app.schemas.base import read_output
from contract.audit import ItemsAuditOut
from tests.app.serving import MYRINET, wait_for_end
from tests.support.item_bodies import ORACLES, PI, PI_READY, Body, question, small, stages

FOUR = {"static_bytes": 4}


def audit(client: httpx.Client, body: Body) -> ItemsAuditOut:
    """The audit that is answered."""
    answer = client.post("/audit", json=body)
    assert answer.status_code == 200, answer.text
    return read_output(ItemsAuditOut, answer.content)


@pytest.mark.parametrize("case", range(4))
def test_a_cap_takes_what_a_run_of_it_does(client: httpx.Client, case: int) -> None:
    """And its buckets are those of the run; the best is the answer of optimize."""
    asked, latency_us, _, caps = ORACLES[case]
    found = audit(client, {**asked, "setting": FOUR})
    body = {"pipeline": asked["pipeline"], "items": asked["items"], "cap_bytes": 4}
    run = client.post("/simulate", json=body).json()
    (one,) = found.sequences
    assert one.latency_us == run["latency_us"]
    assert [bucket.ready_us for bucket in one.buckets] == run["ready_us"]
    last = len(asked["pipeline"]["stages"]) - 1
    done = [each["exit_us"] for each in run["intervals"] if each["stage"] == last]
    assert [bucket.done_us for bucket in one.buckets] == done
    assert sum(bucket.items for bucket in one.buckets) == len(one.items.bytes)
    assert (one.best_us, one.status) == (latency_us, "optimal")
    assert found.setting.time.at_least == pytest.approx(one.latency_us / latency_us - 1.0)
    assert found.best_cap is not None
    by_cap = caps["until"][0] / latency_us - 1.0
    assert found.best_cap.regret.time.at_least == pytest.approx(by_cap)
    assert one.limit.kind == run["limit"]["kind"]


def test_what_to_set_is_said_in_words(client: httpx.Client) -> None:
    found = audit(client, small(setting=FOUR, max_regret=0.05))
    assert (found.advice, found.verdict, found.is_kept) == ("set", "above", False)
    assert found.changes[0].startswith("set bucket_cap_mb=")
    assert (found.sequences[0].buckets[0].first_item, found.cap_bytes) == ("item 1", 4)
    found = audit(client, small(setting={"static_bytes": 5}, max_regret=0.05))
    assert (found.advice, found.verdict, found.is_kept) == ("keep", "within", True)
    assert found.changes == ("keep 5 B: no cut of these items gains 0.1 % or more",)
    found = audit(client, small(setting={"whole": True}, fill={"rule": "before"}))
    assert found.cap_bytes is None
    assert found.sequences[0].fragment_items == (2, 3)
    assert [bucket.items for bucket in found.sequences[0].buckets] == [5]
    assert found.changes[0].startswith("set one cap of ")
    assert found.changes[1].startswith("set a cap for each fragment, of 2")


def test_the_first_cap_is_the_rules_own(client: httpx.Client) -> None:
    body = small(setting={"static_bytes": 6}, fill={"rule": "until", "first_bytes": 4})
    found = audit(client, body)
    assert [bucket.items for bucket in found.sequences[0].buckets] == [1, 4]


def test_sequences_count_by_their_weights(client: httpx.Client) -> None:
    """One that is sent three times as often, and what each takes by itself."""
    other = {"bytes": PI, "ready_us": PI_READY}
    given = [{"items": small()["items"], "weight": 3}, {"items": other}]
    body: Body = {"pipeline": stages((2, 1000)), "sequences": given, "setting": FOUR}
    found = audit(client, body)
    alone = [
        audit(client, question(stages((2, 1000)), items, setting=FOUR)).sequences[0]
        for items in (small()["items"], other)
    ]
    for one, single in zip(found.sequences, alone, strict=True):
        assert (one.latency_us, one.best_us) == (single.latency_us, single.best_us)
    taken = 3 * alone[0].latency_us + alone[1].latency_us
    best = 3 * alone[0].best_us + alone[1].best_us
    assert found.setting.time.at_least == pytest.approx(taken / best - 1.0)
    assert (found.objective, [one.weight for one in found.sequences]) == ("time", [3.0, 1.0])
    assert audit(client, {**body, "objective": "worst"}).objective == "worst"


def test_a_job_shows_the_audit(client: httpx.Client) -> None:
    body = small(setting=FOUR)
    begun = client.post("/audit", json=body, headers={"prefer": "respond-async"})
    job = wait_for_end(client, begun.headers["location"])
    assert job["state"] == "done"
    page = client.get(f"/ui/audits/{job['id']}")
    assert page.status_code == 200
    assert "4 B, filled until" in page.text
    assert "set bucket_cap_mb=" in page.text
    assert "A program asked, with items." in page.text


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"min_message_bytes": 12}, "/min_message_bytes"),
        ({"max_message_bytes": 12}, "/max_message_bytes"),
        ({"workload": [{"message_bytes": 12}]}, "/workload"),
        ({"uncertainty": {"relative": 0.1}}, "/uncertainty"),
        ({"in_draws": 0.9, "max_regret": 0.1}, "/in_draws"),
        ({"setting": {"steps": [{"from_bytes": 1, "size_bytes": 4}]}}, "/setting/steps"),
        (
            {"setting": {"configuration": {"target": "ucx", "content": "UCX_RNDV_FRAG_SIZE=1k"}}},
            "/setting/configuration",
        ),
    ],
)
def test_what_items_do_not_go_with_is_declined_by_name(
    client: httpx.Client, more: Body, field: str
) -> None:
    answer = client.post("/audit", json={**small(setting=FOUR), **more})
    assert (answer.status_code, answer.json()["code"]) == (422, "items_declined"), answer.text
    assert answer.json()["errors"][0]["pointer"] == field


@pytest.mark.parametrize(
    ("more", "code", "field"),
    [
        ({"sequences": [{"items": {"bytes": [1]}}]}, "inconsistent_input", "/sequences"),
        ({"items": {"bytes": [1], "ready_us": [1, 2]}}, "inconsistent_input", "/items/ready_us"),
        ({"fill": {"first_bytes": 4}}, "invalid_input", "/fill/first_bytes"),
    ],
)
def test_bad_input_names_the_field(client: httpx.Client, more: Body, code: str, field: str) -> None:
    answer = client.post("/audit", json={**small(setting=FOUR), **more}).json()
    assert (answer["code"], answer["errors"][0]["pointer"]) == (code, field)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ([{"items": {"bytes": [1]}, "weight": 0}], "/sequences"),
        (
            [{"items": {"bytes": [1]}}, {"items": {"bytes": [1], "stage_us": {"none": [1]}}}],
            "/sequences/1/items/stage_us/none",
        ),
        (
            [{"items": {"bytes": [1]}}, {"items": {"bytes": [1], "names": ["a", "b"]}}],
            "/sequences/1/items/names",
        ),
    ],
)
def test_bad_sequences_name_their_place(client: httpx.Client, given: Any, field: str) -> None:
    body = {"pipeline": stages((2, 1000)), "sequences": given, "setting": FOUR}
    answer = client.post("/audit", json=body).json()
    assert (answer["code"], answer["errors"][0]["pointer"]) == ("inconsistent_input", field)


def test_a_fill_rule_needs_items(client: httpx.Client) -> None:
    body = {"pipeline": MYRINET, "setting": FOUR, "fill": {"rule": "until"}}
    answer = client.post("/audit", json=body).json()
    assert (answer["code"], answer["errors"][0]["pointer"]) == ("inconsistent_input", "/fill")
