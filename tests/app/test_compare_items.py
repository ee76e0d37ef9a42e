"""POST /compare of items: every way to cut between them in one table."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from app.schemas.base import read_output
from contract.compare import ItemsCompareOut
from tests.app.serving import MYRINET, wait_for_end
from tests.support.item_bodies import ORACLES, Body, small

WAYS = ("exact", "best_cap_until", "best_cap_before", "one_fragment", "one_item_each")


def asked_of(oracle: Body) -> Body:
    """The question without what compare has no field for."""
    return {name: value for name, value in oracle.items() if name != "uncertainty"}


@pytest.mark.parametrize("case", range(len(ORACLES)))
def test_the_oracle_cases_are_compared(client: httpx.Client, case: int) -> None:
    """The optimum and the best caps, and how far the others are above it."""
    asked, latency_us, _, caps = ORACLES[case]
    answer = client.post("/compare", json=asked_of(asked))
    found = read_output(ItemsCompareOut, answer.content)
    rows = {row.way: row for row in found.rows}
    assert [row.way for row in found.rows] == [*WAYS, "pytorch_default"]
    assert (rows["exact"].latency_us, rows["exact"].status) == (latency_us, "optimal")
    assert rows["best_cap_until"].latency_us == caps["until"][0]
    assert rows["best_cap_before"].latency_us == caps["before"][0]
    for row in found.rows:
        if row.latency_us is not None:
            assert row.excess_at_least == pytest.approx(row.latency_us / latency_us - 1.0)
            assert row.excess_at_most == row.excess_at_least


def test_its_best_is_the_answer_of_optimize(client: httpx.Client) -> None:
    """And each given cap takes what a run of it does."""
    body = small(caps_bytes=[4, 6], fill={"rule": "until", "first_bytes": 4})
    rows = client.post("/compare", json=body).json()["rows"]
    best = client.post("/optimize", json=small()).json()
    assert rows[0]["latency_us"] == best["latency_us"]
    given = [row for row in rows if row["way"] == "cap"]
    assert [(row["rule"], row["first_bytes"]) for row in given] == [("until", 4)] * 2
    for row in given:
        run = small(cap_bytes=row["from_bytes"], fill=body["fill"])
        assert client.post("/simulate", json=run).json()["latency_us"] == row["latency_us"]


def test_what_breaks_a_limit_says_which(client: httpx.Client) -> None:
    body = small(constraints={"max_fragments": 2}, caps_bytes=[1])
    rows = client.post("/compare", json=body).json()["rows"]
    declined = {row["way"]: row["declined"] for row in rows}
    assert declined["one_item_each"] == "it makes 5 fragments, and max_fragments allows 2"
    assert declined["cap"] == "it makes 5 fragments, and max_fragments allows 2"
    assert declined["one_fragment"] is None
    body = small(constraints={"max_fragment_bytes": 8})
    rows = client.post("/compare", json=body).json()["rows"]
    declined = {row["way"]: row["declined"] for row in rows}
    assert declined["one_fragment"] == (
        "its fragment 1 has 12 bytes, and max_fragment_bytes allows 8"
    )


def test_a_job_shows_the_rows(client: httpx.Client) -> None:
    begun = client.post("/compare", json=small(), headers={"prefer": "respond-async"})
    job = wait_for_end(client, begun.headers["location"])
    assert job["state"] == "done"
    page = client.get(f"/ui/jobs/{job['id']}", follow_redirects=True)
    assert page.status_code == 200
    assert "one item each" in page.text
    assert "Comparing ways to cut between items" in page.text


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"message_bytes": [12]}, "/message_bytes"),
        ({"strategies": ["exact"]}, "/strategies"),
        ({"static_bytes": 4}, "/static_bytes"),
        ({"allow_refragmentation": True}, "/allow_refragmentation"),
        ({"constraints": {"alignment_bytes": 4}}, "/constraints/alignment_bytes"),
        ({"constraints": {"min_fragment_bytes": 4}}, "/constraints/min_fragment_bytes"),
    ],
)
def test_what_items_do_not_go_with_is_declined_by_name(
    client: httpx.Client, more: Body, field: str
) -> None:
    answer = client.post("/compare", json=small(**more))
    assert (answer.status_code, answer.json()["code"]) == (422, "items_declined")
    assert answer.json()["errors"][0]["pointer"] == field


@pytest.mark.parametrize("name", ["fill", "caps_bytes"])
def test_what_goes_with_items_needs_them(client: httpx.Client, name: str) -> None:
    given: dict[str, Any] = {"fill": {"rule": "until"}, "caps_bytes": [4]}
    body = {"pipeline": MYRINET, "message_bytes": [64], "strategies": ["fixed"]}
    answer = client.post("/compare", json={**body, name: given[name]}).json()
    assert (answer["code"], answer["errors"][0]["pointer"]) == ("inconsistent_input", f"/{name}")


def test_neither_messages_nor_items_is_refused_as_before(client: httpx.Client) -> None:
    """Both fields are required, but beside items."""
    answer = client.post("/compare", json={"pipeline": MYRINET}).json()
    assert [one["pointer"] for one in answer["errors"]] == ["/message_bytes", "/strategies"]
    assert {one["detail"] for one in answer["errors"]} == {"this field is required"}
    body = small(caps_bytes=[0])
    assert client.post("/compare", json=body).json()["errors"][0]["pointer"] == "/caps_bytes/0"
