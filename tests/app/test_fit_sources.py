"""A fit in the place of stages, through HTTP: as a document, or by where it is stored."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.app.access_support import Guarded, bearer
from tests.app.serving import Live, wait_for_end
from tests.app.test_fit_documents import FILES, changed, fitted, of_line
from tests.support.outside_traces import BOTH_CSV

STAGES = FILES["stages"]
MESSAGE = 65_536
SETTING = {"static_bytes": 4096}
# The requests that take costs, but for where these come from.
REQUESTS: dict[str, dict[str, Any]] = {
    "/optimize": {"message_bytes": MESSAGE},
    "/compare": {"message_bytes": [MESSAGE], "strategies": ["single", "fixed"]},
    "/audit": {"setting": SETTING, "max_message_bytes": MESSAGE},
    "/simulate": {"fragment_bytes": [4096, 4096]},
    "/thresholds": {"message_bytes": [MESSAGE], "sizes": [4096]},
    "/hide": {"message_bytes": MESSAGE, "calculation_us": 50.0},
}
TIMES = {"id", "created_at", "solve_ms", "audit_ms"}


def document(name: str = "stages") -> Any:
    return json.loads(fitted(name)[1])


def stored(client: httpx.Client, name: str, content: bytes = STAGES) -> str:
    """The identifier of a fit that is stored under a profile's name."""
    headers = {"content-type": "text/csv"}
    sent = client.post(f"/fit?save_as={name}", content=content, headers=headers)
    assert sent.status_code == 200, sent.text
    return str(sent.json()["fit_id"])


def without(answer: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: part for name, part in answer.items() if name not in {*TIMES, *names}}


@pytest.mark.parametrize("path", REQUESTS)
def test_every_request_takes_it_and_answers_alike(client: httpx.Client, path: str) -> None:
    """By measurements, by the document, and by where it is stored."""
    ways: dict[str, Any] = {
        "measurements": {"content": STAGES.decode()},
        "fit": document(),
        "fit_id": stored(client, "a-source"),
    }
    answers = []
    for name, given in ways.items():
        sent = client.post(path, json={**REQUESTS[path], name: given})
        assert sent.status_code in (200, 201), sent.text
        answers.append(without(sent.json(), "fit"))
    assert answers[0] == answers[1] == answers[2]


def test_an_answer_shows_the_fit_that_it_is_of(client: httpx.Client) -> None:
    fit_id = stored(client, "shown-source")
    asked = {"message_bytes": MESSAGE}
    by_document = client.post("/optimize", json={**asked, "fit": document()}).json()
    by_id = client.post("/optimize", json={**asked, "fit_id": fit_id}).json()
    assert by_document["fit"] == document()
    assert by_id["fit"] == client.get(f"/fits/{fit_id}").json()
    assert by_id["uncertainty"]["source"] == "fit"


def test_a_profile_says_what_its_fit_warns_of(client: httpx.Client) -> None:
    fit_id = stored(client, "warned-source", BOTH_CSV.encode())
    answers = [
        client.post("/optimize", json={"message_bytes": MESSAGE, **source}).json()
        for source in ({"profile": "warned-source"}, {"fit_id": fit_id})
    ]
    assert answers[0]["warnings"] == answers[1]["warnings"]
    codes = [one["code"] for one in answers[0]["warnings"]]
    assert codes.count("total_may_be_pipelined") == 1
    assert answers[0]["uncertainty"] == answers[1]["uncertainty"]
    assert answers[0]["uncertainty"]["reason"] == "premise"


def test_other_errors_of_the_same_costs_are_another_question(client: httpx.Client) -> None:
    line = document()["pipeline"]["stages"][0]["ranges"][0]
    wider = [100.0 * one for one in line["covariance"]]
    other = json.loads(changed("stages", of_line(covariance=wider)))
    sent = [
        client.post("/optimize", json={"message_bytes": MESSAGE, "fit": one}).json()
        for one in (document(), other, document())
    ]
    assert sent[0]["id"] == sent[2]["id"] != sent[1]["id"]
    assert sent[0]["pipeline"] == sent[1]["pipeline"]
    assert sent[0]["uncertainty"]["latency_us"] != sent[1]["uncertainty"]["latency_us"]


@pytest.mark.parametrize("way", ["fit", "fit_id"])
@pytest.mark.parametrize("path", ["/optimize", "/compare", "/audit", "/thresholds", "/hide"])
def test_a_job_keeps_it(client: httpx.Client, path: str, way: str) -> None:
    """Its request is read again by whichever runner takes it."""
    given = document("ranges") if way == "fit" else stored(client, "job-source", FILES["ranges"])
    headers = {"prefer": "respond-async"}
    accepted = client.post(path, json={**REQUESTS[path], way: given}, headers=headers)
    assert accepted.status_code == 202, accepted.text
    job = wait_for_end(client, accepted.headers["location"])
    assert job["state"] == "done", job["error"]


def test_save_as_stores_the_fit(client: httpx.Client) -> None:
    """What is saved with an answer about a document knows its errors, as the answer did."""
    asked = {"message_bytes": MESSAGE, "fit": document("ranges"), "save_as": "saved-source"}
    first = client.post("/optimize", json=asked).json()
    profile = client.get("/profiles/saved-source").json()
    assert profile["provenance"]["origin"] == "fit"
    assert profile["provenance"]["detail"] == "robust of a fit's document (direct)"
    fit_id = profile["provenance"]["fit_id"]
    kept = client.get(f"/fits/{fit_id}").json()
    sent = document("ranges")
    assert kept["pipeline"] == sent["pipeline"]
    trace = client.get(f"/traces/{kept['trace_digests'][0]}")
    assert trace.json() == sent
    again = client.post("/optimize", json={"message_bytes": MESSAGE, "profile": "saved-source"})
    assert again.json()["uncertainty"] == first["uncertainty"]
    assert client.get(f"/fits/{fit_id}/plot").json()["stages"][0]["shows_medians"]


@pytest.mark.parametrize("way", ["fit", "fit_id"])
def test_a_profile_is_made_of_it(client: httpx.Client, way: str) -> None:
    given = document() if way == "fit" else stored(client, "origin-source")
    name = f"made-of-{way.replace('_', '-')}"
    made = client.post("/profiles", json={"name": name, way: given})
    assert made.status_code == 201, made.text
    assert made.json()["provenance"]["origin"] == "fit"
    revised = client.put(f"/profiles/{name}", json={way: given, "detail": "once more"})
    assert revised.json()["revision"] == 2
    assert revised.json()["provenance"]["detail"] == "once more"
    answer = client.post("/optimize", json={"message_bytes": MESSAGE, "profile": f"{name}@2"})
    assert answer.json()["uncertainty"]["source"] == "fit"


@pytest.mark.parametrize("path", [*REQUESTS, "/profiles"])
def test_what_is_wrong_with_it_is_named(live: Live, path: str) -> None:
    """In every request by the same pointer; nothing is stored."""
    before = live.stored()
    body = {**REQUESTS.get(path, {"name": "no-source"})}
    wrong = json.loads(changed("stages", of_line(covariance=[1.0, 9.0, 1.0])))
    refused = live.client.post(path, json={**body, "fit": wrong})
    assert refused.status_code == 422
    assert [one["pointer"] for one in refused.json()["errors"]] == [
        "/fit/pipeline/stages/0/ranges/0/covariance"
    ]
    unknown = live.client.post(path, json={**body, "fit_id": "0" * 32})
    assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")
    malformed = live.client.post(path, json={**body, "fit_id": "../../etc"})
    assert [one["pointer"] for one in malformed.json()["errors"]] == ["/fit_id"]
    two = live.client.post(path, json={**body, "fit_id": "0" * 32, "fit": document()})
    assert "exactly one of" in two.json()["detail"]
    assert live.stored() == before


def test_fit_options_go_with_measurements_alone(client: httpx.Client) -> None:
    body = {"message_bytes": MESSAGE, "fit": document(), "fit_options": {"shape": "line"}}
    refused = client.post("/optimize", json=body)
    assert [one["pointer"] for one in refused.json()["errors"]] == ["/fit_options"]


def test_a_fit_of_another_owner_is_not_there(guarded: Guarded) -> None:
    client = guarded.live.client
    mine, theirs = bearer(guarded.mine["write"]), bearer(guarded.theirs)
    kind = {"content-type": "text/csv"}
    fit = client.post("/fit?save_as=of-a-team", content=STAGES, headers={**kind, **mine}).json()
    body = {"message_bytes": MESSAGE, "fit_id": fit["fit_id"]}
    assert client.post("/optimize", json=body, headers=mine).status_code == 200
    assert client.post("/optimize", json=body, headers=theirs).status_code == 404
