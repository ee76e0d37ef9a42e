"""Why a stored answer takes as long as it does, and what it is called, through HTTP."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from analysis import explain as explain_answer
from app.schemas.base import read_output
from contract.answers import ExplanationOut
from domain.pipeline import pipeline_of_lines
from domain.problem import Problem
from domain.schedule import latency_us
from solvers import solve
from tests.app.serving import MYRINET

AGGREGATE = {
    "total": {"name": "all", "overhead_us": 20.0, "ns_per_byte": 60.0},
    "bottleneck": {"name": "slowest", "overhead_us": 7.0, "ns_per_byte": 24.0},
}


def answered(client: httpx.Client, **asked: Any) -> dict[str, Any]:
    """A stored answer."""
    response = client.post("/optimize", json={"message_bytes": 4096, **asked})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def explained(client: httpx.Client, answer: dict[str, Any], query: str = "") -> dict[str, Any]:
    """Its explanation."""
    response = client.get(f"/optimizations/{answer['id']}/explanation{query}")
    assert response.status_code == 200, response.text
    read_output(ExplanationOut, response.content)
    reported: dict[str, Any] = response.json()
    return reported


def test_the_path_sums_to_the_latency(client: httpx.Client) -> None:
    """And the two stages of equal per-byte cost hold the message up."""
    answer = answered(client, pipeline={**MYRINET, "delay_us": 2.0})
    reported = explained(client, answer)
    assert reported["id"] == answer["id"]
    assert reported["latency_us"] == answer["latency_us"]
    spent_us = sum(one["overhead_us"] + one["bytes_us"] for one in reported["path"])
    assert spent_us + reported["delay_us"] == pytest.approx(answer["latency_us"], rel=1e-12)
    assert [one["name"] for one in reported["path"]] == [one["name"] for one in MYRINET["stages"]]
    assert sum(one["fragments"] for one in reported["path"]) == answer["fragments"] + 3
    assert any(one["is_binding"] for one in reported["path"])


def test_savings_are_what_the_evaluator_and_the_solver_say(
    client: httpx.Client, explained_in_full: None
) -> None:
    """For one cost, made a fifth cheaper: the same cut priced anew, the best cut solved anew."""
    answer = answered(client, pipeline=MYRINET)
    reported = explained(client, answer, "?cheaper_by=0.2")
    assert reported["cheaper_by"] == 0.2
    assert len(reported["savings"]) == 8
    lines = [(one["name"], one["overhead_us"], one["ns_per_byte"]) for one in MYRINET["stages"]]
    lines[2] = (lines[2][0], lines[2][1] * 0.8, lines[2][2])
    variant = pipeline_of_lines(lines)
    saving = next(
        one for one in reported["savings"] if (one["stage"], one["cost"]) == (2, "overhead")
    )
    kept_us = latency_us(variant, tuple(answer["fragment_bytes"]))
    assert saving["same_cut_us"] == pytest.approx(answer["latency_us"] - kept_us, abs=1e-9)
    best_us = solve(Problem(variant, 4096)).latency_us
    assert saving["best_cut_us"] == pytest.approx(answer["latency_us"] - best_us, abs=1e-9)
    for one in reported["savings"]:
        assert 0.0 <= one["same_cut_us"] <= one["best_cut_us"]


def test_cuts_that_differ_are_priced_as_they_are(client: httpx.Client) -> None:
    """A nested answer's stages keep their own cuts; nothing is solved anew."""
    answer = answered(client, pipeline=MYRINET, strategy="hierarchical", message_bytes=65536)
    reported = explained(client, answer)
    assert reported["latency_us"] == answer["latency_us"]
    assert all(one["best_cut_us"] is None for one in reported["savings"])
    assert any(one["same_cut_us"] > 0.0 for one in reported["savings"])


def test_an_aggregate_has_no_stages_to_explain(client: httpx.Client) -> None:
    """Only the total and the bottleneck are known of it."""
    answer = answered(client, aggregate=AGGREGATE)
    response = client.get(f"/optimizations/{answer['id']}/explanation")
    assert (response.status_code, response.json()["code"]) == (422, "strategy_declined")


@pytest.mark.parametrize("query", ["cheaper_by=0", "cheaper_by=1.5", "cheaper_by=nan", "other=1"])
def test_a_share_that_is_none_is_refused(client: httpx.Client, query: str) -> None:
    """With the name of the parameter."""
    answer = answered(client, pipeline=MYRINET)
    response = client.get(f"/optimizations/{answer['id']}/explanation?{query}")
    assert response.status_code == 422
    assert response.json()["errors"][0]["pointer"] == f"/{query.split('=')[0]}"


def test_an_unknown_answer_is_not_found(client: httpx.Client) -> None:
    """As everywhere."""
    response = client.get(f"/optimizations/{'0' * 32}/explanation")
    assert (response.status_code, response.json()["code"]) == (404, "not_found")


def test_many_fragments_are_explained_as_few_are(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the kernel, and at their turn, with what the evaluator says of each cheaper pipeline."""
    answer = answered(
        client, pipeline=MYRINET, strategy="static", static_bytes=16, message_bytes=2**20 + 5
    )
    found = client.get(f"/optimizations/{answer['id']}/explanation").json()
    monkeypatch.setattr(explain_answer, "_MANY_FRAGMENTS", 10**9)
    slowly = client.get(f"/optimizations/{answer['id']}/explanation").json()
    assert found["path"] == slowly["path"]
    for one, other in zip(found["savings"], slowly["savings"], strict=True):
        assert one["same_cut_us"] == pytest.approx(other["same_cut_us"], abs=1e-9 * 1e6)


def test_an_answer_of_too_many_fragments_is_refused(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is computed."""
    monkeypatch.setattr(explain_answer, "MAX_CELLS", 200_000)
    answer = answered(
        client, pipeline=MYRINET, strategy="static", static_bytes=16, message_bytes=2**20
    )
    response = client.get(f"/optimizations/{answer['id']}/explanation")
    assert (response.status_code, response.json()["code"]) == (422, "invalid_input")


def test_an_answer_is_named_and_described(client: httpx.Client) -> None:
    """What is left out stays, what is empty goes; the answer's bytes are those of before."""
    sent = client.post("/optimize", json={"message_bytes": 9002, "pipeline": MYRINET})
    path = f"/optimizations/{sent.json()['id']}"
    for body, described in (
        ({"name": " NIC ×2 ", "note": "two\nlines"}, ["NIC ×2", "two\nlines"]),
        ({"name": "card"}, ["card", "two\nlines"]),
        ({"note": "two\r\nlines\r"}, ["card", "two\nlines"]),
        ({"note": ""}, ["card", None]),
        ({}, ["card", None]),
    ):
        shown = client.patch(path, json=body).json()
        assert [shown["name"], shown["note"]] == described
        assert client.get("/optimizations?limit=1&message_bytes=9002").json()["items"] == [shown]
    assert client.get(path).content == sent.content
    again = client.post("/optimize", json={"message_bytes": 9002, "pipeline": MYRINET})
    assert again.content == sent.content


def test_a_form_sends_each_line_end_as_two_characters(client: httpx.Client) -> None:
    """A note that its field takes is kept, and a name of several lines is not."""
    id, note = (
        answered(client, pipeline=MYRINET, message_bytes=9003)["id"],
        "a" * 999 + "\n" + "b" * 1000,
    )
    form = {"name": "", "note": note.replace("\n", "\r\n")}
    for place, data, status in (
        (f"/ui/answers/{id}", form, 303),
        (f"/ui/answers/{id}", {"name": "a\rb"}, 422),
        ("/ui/answers", {"id": id, "name": "a\rb"}, 422),
    ):
        assert client.post(place, data=data).status_code == status
    (shown,) = client.get("/optimizations?limit=1&message_bytes=9003").json()["items"]
    assert (shown["name"], shown["note"]) == (None, note)


@pytest.mark.parametrize(
    "body",
    [
        {"name": "a" * 101},
        {"name": "a\nb"},
        {"name": "a\u2028b"},
        {"note": "a" * 2001},
        {"names": "a"},
    ],
)
def test_names_are_short_and_of_one_line(client: httpx.Client, body: dict[str, str]) -> None:
    """The field is named."""
    answer = answered(client, pipeline=MYRINET)
    refused = client.patch(f"/optimizations/{answer['id']}", json=body)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/" + next(iter(body))
