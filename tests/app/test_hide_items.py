"""POST /hide of items: the run time, what is hidden, stored answers, and what is refused."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from app.schemas.base import read_output
from contract.hide import ItemsHideOut
from tests.app.serving import MYRINET, wait_for_end
from tests.support.item_bodies import ORACLES, Body, question, small, stages

ITEMS = {"bytes": [4, 1, 1, 2, 4]}


def hidden(client: httpx.Client, body: Body) -> ItemsHideOut:
    """The answer that is stored."""
    answer = client.post("/hide", json=body)
    assert answer.status_code in (200, 201), answer.text
    return read_output(ItemsHideOut, answer.content)


def asked(**more: Any) -> Body:
    """Five items and one wire, beside what is said."""
    return question(stages((2, 1000)), ITEMS, **more)


@pytest.mark.parametrize("case", [0, 1, 3, 4])
def test_ready_times_are_the_calculation(client: httpx.Client, case: int) -> None:
    """The answer is that of optimize with them."""
    body, latency_us, _, caps = ORACLES[case]
    body = {name: value for name, value in body.items() if name != "uncertainty"}
    found = hidden(client, {**body, "cap_bytes": 4})
    best = client.post("/optimize", json={**body, "uncertainty": {"current": {"repeat": 4}}})
    expected = best.json()
    assert (found.with_us, found.status) == (latency_us, "optimal")
    assert [*found.fragment_items] == expected["fragment_items"]
    assert found.set_items.sentence == expected["set_items"]["sentence"]
    assert found.best_cap is not None
    assert found.best_cap.latency_us == caps["until"][0]
    assert found.current is not None
    assert found.current.latency_us == expected["current"]["latency_us"]
    assert found.limit.kind == expected["limit"]["kind"]
    assert (found.streamed, found.loading, found.hideable_fraction) == (True, False, 0.0)


def test_what_is_hidden_is_said(client: httpx.Client) -> None:
    """9 µs of calculation, 14 of communication in one fragment; T = 18."""
    found = hidden(client, small())
    assert (found.calculation_us, found.communication_us, found.without_us) == (9.0, 14.0, 23.0)
    assert (found.with_us, found.exposed_us) == (18.0, 9.0)
    assert found.hidden_share == pytest.approx(5 / 14)
    assert found.gain == pytest.approx(23 / 18)
    assert found.regime == "communication_bound"
    assert found.latency_optimal is not None
    assert (found.latency_optimal.fragments, found.latency_optimal.with_us) == (1, 23.0)


def test_three_ways_to_say_one_calculation_agree(client: httpx.Client) -> None:
    """Times by bytes: as a whole, by item, and as ready times."""
    by_item = [4.0, 1.0, 1.0, 2.0, 4.0]
    ways = (
        asked(calculation_us=12),
        asked(instructions=120, instructions_per_us=10),
        question(stages((2, 1000)), {**ITEMS, "stage_us": {"calculation": by_item}}),
        question(stages((2, 1000)), {**ITEMS, "ready_us": [4, 5, 6, 8, 12]}),
    )
    found = [hidden(client, body) for body in ways]
    assert len({(one.with_us, one.without_us, one.fragment_items) for one in found}) == 1
    assert found[0].calculation_us == 12.0


def test_each_fragment_costs_the_processor(client: httpx.Client) -> None:
    """The dearer a fragment, the fewer there are; the run of the cut has a stage in front."""
    found = hidden(client, small(fragment_overhead_us=1))
    cut = [sum(found.fragment_items[: place + 1]) for place in range(len(found.fragment_items))]
    front = {"name": "calculation", "overhead_us": 1, "ns_per_byte": 0}
    wire = {"name": "wire", "overhead_us": 2, "ns_per_byte": 1000}
    items = {**ITEMS, "stage_us": {"calculation": [1, 1, 1, 2, 4]}}
    run = question({"stages": [front, wire]}, items, cut=cut)
    assert client.post("/simulate", json=run).json()["latency_us"] == found.with_us
    assert found.host_us == 9.0 + len(found.fragment_items)
    assert found.pipeline is not None
    assert len(found.pipeline.stages) == 1
    dear = hidden(client, small(fragment_overhead_us=100))
    assert (dear.fragments, dear.regime) == (1, "communication_bound")


def test_loading_has_the_calculation_last(client: httpx.Client) -> None:
    """The mirror of the items that are made takes as long."""
    body = question(
        stages((2, 1000)),
        {"bytes": [4, 2, 1, 1, 4], "stage_us": {"calculation": [4, 2, 1, 1, 1]}},
        loading=True,
    )
    found = hidden(client, body)
    assert (found.with_us, found.calculation_us, found.loading) == (18.0, 9.0, True)
    waiting = {**body, "items": {**body["items"], "ready_us": [50, 50, 50, 50, 50]}}
    assert (hidden(client, waiting).with_us or 0.0) > 60.0
    limited = hidden(client, {**body, "fragment_overhead_us": 0, "calculation_us": None})
    assert limited.with_us == 18.0
    long = question(stages((2, 1)), ITEMS, loading=True, calculation_us=500)
    assert hidden(client, long).limit.sentence.startswith("The calculation limits it: 500.0 µs of")


def test_an_answer_is_stored(client: httpx.Client) -> None:
    first = client.post("/hide", json=small(cap_bytes=6))
    assert first.status_code == 201
    again = client.post("/hide", json=small(cap_bytes=6))
    assert (again.status_code, again.content) == (200, first.content)
    assert client.get(first.headers["location"]).content == first.content
    for more in ({"cap_bytes": 5}, {"fill": {"rule": "before"}}, {"fragment_overhead_us": 2}):
        assert client.post("/hide", json=small(**more)).json()["id"] != first.json()["id"]


def test_a_job_has_the_same_fields(client: httpx.Client) -> None:
    body = small(relative_gap=1e-4)
    begun = client.post("/hide", json=body, headers={"prefer": "respond-async"})
    job = wait_for_end(client, begun.headers["location"])
    assert job["state"] == "done"
    assert client.get(f"/ui/jobs/{job['id']}", follow_redirects=True).status_code == 200


def test_limits_are_kept(client: httpx.Client) -> None:
    found = hidden(client, small(constraints={"max_fragments": 1}))
    assert (found.fragments, found.with_us) == (1, 23.0)
    assert found.constraints is not None
    assert found.constraints.max_fragments == 1


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"message_bytes": 12}, "/message_bytes"),
        ({"messages": 2}, "/messages"),
        ({"messages_are": "train"}, "/messages_are"),
        ({"hideable_fraction": 0.5}, "/hideable_fraction"),
        ({"hiding_overhead_us": 1}, "/hiding_overhead_us"),
        ({"host_stages": {"sender": [0]}}, "/host_stages"),
        ({"exchange": "both_ways"}, "/exchange"),
        ({"min_gain": 1.2}, "/min_gain"),
        ({"processes": {"max_processes": 4}}, "/processes"),
        ({"constraints": {"alignment_bytes": 4}}, "/constraints/alignment_bytes"),
    ],
)
def test_what_items_do_not_go_with_is_declined_by_name(
    client: httpx.Client, more: Body, field: str
) -> None:
    answer = client.post("/hide", json=small(**more))
    assert (answer.status_code, answer.json()["code"]) == (422, "items_declined"), answer.text
    assert answer.json()["errors"][0]["pointer"] == field


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (asked(), "/calculation_us"),
        (small(calculation_us=9), "/items/ready_us"),
        (asked(calculation_us=9, instructions=9), "/calculation_us"),
        (asked(instructions=9), "/instructions_per_us"),
        (
            question(
                stages((2, 1)), {**ITEMS, "stage_us": {"calculation": [1] * 5}}, calculation_us=9
            ),
            "/items/stage_us/calculation",
        ),
        (asked(loading=True), "/calculation_us"),
        (
            question(stages((2, 1)), {"bytes": [1, 1], "stage_us": {"calculation": [9e11] * 2}}),
            "/items/stage_us/calculation",
        ),
        (
            question(stages((2, 1)), {"bytes": [1], "stage_us": {"none": [1]}}, calculation_us=1),
            "/items/stage_us/none",
        ),
    ],
)
def test_a_calculation_is_said_once(client: httpx.Client, body: Body, field: str) -> None:
    answer = client.post("/hide", json=body).json()
    assert (answer["code"], answer["errors"][0]["pointer"]) == ("inconsistent_input", field)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fill", {"rule": "until"}),
        ("cap_bytes", 4),
        ("fragment_overhead_us", 1),
        ("loading", True),
    ],
)
def test_what_goes_with_items_needs_them(client: httpx.Client, name: str, value: Any) -> None:
    body = {"pipeline": MYRINET, "message_bytes": 64, "calculation_us": 9, name: value}
    answer = client.post("/hide", json=body).json()
    assert (answer["code"], answer["errors"][0]["pointer"]) == ("inconsistent_input", f"/{name}")


def test_ratios_have_no_items(client: httpx.Client) -> None:
    body = {"granularity": {"software": 5, "hardware": 5}, "items": ITEMS}
    answer = client.post("/hide", json=body).json()
    assert (answer["code"], answer["errors"][0]["pointer"]) == ("inconsistent_input", "/items")
