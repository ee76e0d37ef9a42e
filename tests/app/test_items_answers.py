"""Messages that are cut between items: asked by HTTP, stored, read again, and refused by name."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import httpx
import pytest

from app.schemas.answers import read_answer
from contract.optimize import ItemsOptimizeOut
from domain.errors import ItemsDeclined
from tests.app.serving import MYRINET, Live, wait_for_end
from tests.support.item_bodies import ORACLES, PI, PI_READY, Body, question, small, stages

ITEMS_ALONE = (*("items", "fill", "fragment_items", "set_items", "best_cap", "current", "limit"),)


def refused(client: httpx.Client, body: Body, code: str = "items_declined") -> str:
    """The field that a refusal of this code names."""
    answer = client.post("/optimize", json=body)
    document = answer.json()
    assert (answer.status_code, document["code"]) == (422, code), answer.text
    pointer: str = document["errors"][0]["pointer"]
    return pointer


@pytest.mark.parametrize("rule", ["until", "before"])
@pytest.mark.parametrize("case", range(len(ORACLES)))
def test_the_oracle_cases_are_answered(client: httpx.Client, case: int, rule: str) -> None:
    """Least latency, a cut of it, proven; and the best single cap by each rule."""
    asked, latency_us, ends, caps = ORACLES[case]
    answer = client.post("/optimize", json={**asked, "fill": {"rule": rule}}).json()
    assert answer["latency_us"] == latency_us
    assert answer["lower_bound_us"] == pytest.approx(latency_us, rel=1e-6)
    assert answer["status"] == "optimal"
    found = list(accumulate(answer["fragment_items"]))
    assert found[-1] == ends[-1]
    best = answer["best_cap"]
    assert (best["latency_us"], best["layouts"], best["is_complete"]) == (*caps[rule], True)
    assert best["rule"] == rule


def test_an_answer_says_what_to_set_and_what_the_cap_in_use_costs(client: httpx.Client) -> None:
    """The list makes the cut, the number the best layout; beside the cap in use."""
    mib = 2**20
    items = {"bytes": [4 * mib, mib, mib, 2 * mib, 4 * mib], "ready_us": [1e3, 2e3, 3e3, 5e3, 9e3]}
    current = {"current": {"repeat": 4 * mib}}
    body = question(stages((2000, 1000 / 1048.576)), items, uncertainty=current)
    answer = client.post("/optimize", json=body).json()
    assert answer["fragment_bytes"] == [5 * mib, 7 * mib]
    assert answer["set_items"]["caps_mb"] == [5.0, 7.0]
    assert answer["set_items"]["cap_mb"] == 5.0
    assert answer["set_items"]["sentence"] == (
        "Set bucket_cap_mb_list=[5.0, 7.0] (or bucket_cap_mb=5.0): 5.26 % faster than your 4 MiB."
    )
    assert answer["current"]["cap_bytes"] == 4 * mib
    assert answer["current"]["fragments"] == 3
    assert answer["current"]["loss"] == pytest.approx(1 / 18)
    limit = answer["limit"]
    assert limit["kind"] == "calculation"
    parts = limit["calculation_us"] + limit["bytes_us"] + limit["overheads_us"]
    assert parts == pytest.approx(answer["latency_us"])


def test_the_whole_message_is_a_cap(client: httpx.Client) -> None:
    body = small(uncertainty={"current": "whole"})
    current = client.post("/optimize", json=body).json()["current"]
    assert (current["cap_bytes"], current["fragments"], current["latency_us"]) == (12, 1, 23.0)


def test_a_first_cap_is_kept(client: httpx.Client) -> None:
    """Of the layouts of one cap, not of the best cut."""
    body = small(fill={"rule": "until", "first_bytes": 4}, uncertainty={"current": {"repeat": 6}})
    answer = client.post("/optimize", json=body).json()
    assert answer["fill"] == {"rule": "until", "first_bytes": 4}
    assert answer["latency_us"] == 18.0
    assert answer["current"]["fragments"] == 2  # 4, and 1 + 1 + 2 + 4
    assert answer["best_cap"]["latency_us"] > 18.0


def test_costs_of_items_in_a_stage_count(client: httpx.Client) -> None:
    """And the names of items stay with them."""
    items = {"bytes": [1, 1], "names": ["a", "b"], "stage_us": {"stage 2": [5, 7]}}
    body = question(stages((1, 1000), (0, 0)), items)
    answer = client.post("/optimize", json=body).json()
    assert answer["latency_us"] == 14.0  # 1 + 1, 5, 7: one by one
    assert answer["items"] == {
        "bytes": [1, 1],
        "ready_us": None,
        "names": ["a", "b"],
        "stage_us": {"stage 2": [5.0, 7.0]},
    }


def test_a_stored_answer_is_the_same_bytes(client: httpx.Client) -> None:
    """Asked again, by its identifier, and read; another question has another one."""
    first = client.post("/optimize", json=small())
    answer = first.json()
    assert client.post("/optimize", json=small()).content == first.content
    assert client.get(f"/optimizations/{answer['id']}").content == first.content
    read = read_answer(first.content, items=True)
    assert isinstance(read, ItemsOptimizeOut)
    assert read.fragment_items == (2, 3)
    with pytest.raises(ItemsDeclined):
        read_answer(first.content)
    others: tuple[dict[str, Any], ...] = (
        {"fill": {"rule": "before"}},
        {"uncertainty": {"current": {"repeat": 4}}},
        {"constraints": {"max_fragments": 1}},
    )
    for more in others:
        assert client.post("/optimize", json=small(**more)).json()["id"] != answer["id"]
    listed = client.get("/optimizations", params={"message_bytes": 12}).text
    assert answer["id"] in listed


def test_the_answer_repeats_the_question(client: httpx.Client) -> None:
    """Asked again with what it says, it is the same answer."""
    first = client.post("/optimize", json=ORACLES[3][0]).json()
    body = {name: first[name] for name in ("pipeline", "items", "fill", "constraints")}
    assert client.post("/optimize", json=body).json()["id"] == first["id"]


def test_a_job_has_the_same_fields(client: httpx.Client) -> None:
    """Its page shows them too."""
    body = small(relative_gap=1e-3)
    begun = client.post("/optimize", json=body, headers={"prefer": "respond-async"})
    job = wait_for_end(client, begun.headers["location"])
    answer = client.get(f"/optimizations/{job['answer_id']}").json()
    assert answer["fragment_items"] == [2, 3]
    page = client.get(f"/ui/jobs/{job['id']}", follow_redirects=True)
    assert page.status_code == 200


def test_what_takes_longer_is_solved_elsewhere(client: httpx.Client) -> None:
    body = question(
        stages((50, 1.0), (20, 0.5)), {"repeat": 400, "bytes": 1 << 16, "ready_every_us": 60}
    )
    answer = client.post("/optimize", json=body).json()
    assert sum(answer["fragment_items"]) == 400
    assert answer["lower_bound_us"] <= answer["latency_us"]


def test_a_profile_is_a_source_and_may_be_saved(live: Live) -> None:
    """The answer names the revision."""
    saved = live.client.post("/optimize", json=small(save_as="items-line")).json()
    assert saved["profile"]["name"] == "items-line"
    body = {name: value for name, value in small().items() if name != "pipeline"}
    found = live.client.post("/optimize", json={**body, "profile": "items-line"}).json()
    assert (found["latency_us"], found["profile"]["name"]) == (18.0, "items-line")


# --- what shows it --------------------------------------------------------------------------------


def test_a_page_shows_the_figures(live: Live) -> None:
    """And other views of the answer say what they need."""
    answer = live.client.post("/optimize", json=small(uncertainty={"current": {"repeat": 4}}))
    address = f"/ui/answers/{answer.json()['id']}"
    page = live.client.get(address)
    assert page.status_code == 200
    assert "Set bucket_cap_mb_list=" in page.text
    for view in ("/schedule.svg", "/parts/timeline", "/parts/caps"):
        assert live.client.get(f"{address}{view}").status_code == 200, view
    for view in ("/schedule.csv", "/report.html", "/parts/why", "/parts/fragments"):
        found = live.client.get(f"{address}{view}", headers={"accept": "application/json"})
        assert (found.status_code, found.json()["code"]) == (422, "items_declined"), view
    explained = live.client.get(f"/optimizations/{answer.json()['id']}/explanation")
    assert explained.json()["code"] == "items_declined"
    assert live.client.get(f"{address}/schedule.json").content == answer.content
    assert live.client.get("/ui/answers").status_code == 200


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"message_bytes": 12}, "/message_bytes"),
        ({"constraints": {"alignment_bytes": 4}}, "/constraints/alignment_bytes"),
        ({"constraints": {"min_fragment_bytes": 4}}, "/constraints/min_fragment_bytes"),
        ({"allow_refragmentation": True}, "/allow_refragmentation"),
        ({"strategy": "repeat"}, "/strategy"),
        ({"strategy": "static", "static_bytes": 4}, "/static_bytes"),
        ({"uncertainty": {"mtu_bytes": 4}}, "/uncertainty/mtu_bytes"),
        ({"uncertainty": {"robust": True}}, "/uncertainty/robust"),
        ({"transfers": {"content": "message_bytes\n"}}, "/transfers"),
    ],
)
def test_what_items_do_not_go_with_is_declined_by_name(
    client: httpx.Client, more: Body, field: str
) -> None:
    assert refused(client, small(**more)) == field


def test_costs_that_items_cannot_cross_are_declined_by_name(client: httpx.Client) -> None:
    """Bytes handed on as they move, aggregates, and words of machines."""
    stage = {"overhead_us": 2, "ns_per_byte": 1000}
    costs = {"total": stage, "bottleneck": stage}
    items = small()["items"]
    handing = {"stages": [stage, {**stage, "handoff_bytes": 1}]}
    assert refused(client, question(handing, items)) == "/pipeline/stages/1/handoff_bytes"
    assert refused(client, {"items": items, "aggregate": costs}) == "/aggregate"
    lanes = {"stages": [{**stage, "lanes": 2}]}
    field = refused(client, question(lanes, items), "needs_plain_stages")
    assert field == "/pipeline/stages/0/lanes"


def test_items_without_costs_or_with_two_are_refused(client: httpx.Client) -> None:
    body = small(profile="line")
    assert refused(client, body, "invalid_input") == "/pipeline"
    assert refused(client, {"items": body["items"]}, "invalid_input") == "/pipeline"


@pytest.mark.parametrize(
    ("items", "field"),
    [
        ({"bytes": []}, "/items/bytes"),
        ({"bytes": [0]}, "/items/bytes/0"),
        ({"bytes": [1, -1]}, "/items/bytes/1"),
        ({"bytes": [1.5]}, "/items/bytes/0"),
        ({"bytes": [1], "ready_us": [-1]}, "/items/ready_us/0"),
        ({"bytes": [1], "names": [""]}, "/items/names/0"),
        ({"bytes": [1], "ready_every_us": 1}, "/items/ready_every_us"),
        ({"repeat": 0, "bytes": 1}, "/items/repeat"),
        ({"repeat": 10**6 + 1, "bytes": 1}, "/items/repeat"),
        ({"repeat": 2, "bytes": [1, 2]}, "/items/bytes"),
        ({}, "/items/bytes"),
        ([1, 2], "/items"),
    ],
)
def test_items_that_break_a_rule_name_the_field(
    client: httpx.Client, items: Any, field: str
) -> None:
    assert refused(client, question(stages((1, 1)), items), "invalid_input") == field


@pytest.mark.parametrize(
    ("items", "field"),
    [
        ({"bytes": [2**48, 1]}, "/items/bytes"),
        ({"bytes": [1, 1], "ready_us": [1]}, "/items/ready_us"),
        ({"bytes": [1], "names": ["a", "b"]}, "/items/names"),
        ({"bytes": [1], "stage_us": {"none": [1]}}, "/items/stage_us/none"),
        ({"bytes": [1], "stage_us": {"stage 1": [1, 2]}}, "/items/stage_us/stage 1"),
        ({"repeat": 2, "bytes": 2**48}, "/items/bytes"),
        ({"repeat": 2, "bytes": 1, "ready_every_us": 1e12}, "/items/ready_every_us"),
    ],
)
def test_values_that_do_not_go_together_name_the_field(
    client: httpx.Client, items: Any, field: str
) -> None:
    """Each by itself is admitted."""
    assert refused(client, question(stages((1, 1)), items), "inconsistent_input") == field


def test_a_time_that_is_no_number_is_refused(client: httpx.Client) -> None:
    body = b'{"pipeline": {"stages": []}, "items": {"bytes": [1], "ready_us": [NaN]}}'
    answer = client.post("/optimize", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)


@pytest.mark.parametrize(
    ("fill", "field"),
    [
        ({"first_bytes": 4}, "/fill/first_bytes"),
        ({"rule": "after"}, "/fill/rule"),
        ({"rule": "until", "first_bytes": 0}, "/fill/first_bytes"),
    ],
)
def test_a_fill_rule_that_is_none_names_the_field(
    client: httpx.Client, fill: Body, field: str
) -> None:
    assert refused(client, small(fill=fill), "invalid_input") == field


def test_a_fill_rule_needs_items(client: httpx.Client) -> None:
    body = {"pipeline": MYRINET, "message_bytes": 64, "fill": {"rule": "until"}}
    assert refused(client, body, "invalid_input") == "/fill"


def test_neither_message_nor_items_is_refused_as_before(client: httpx.Client) -> None:
    answer = client.post("/optimize", json={"pipeline": MYRINET}).json()
    assert answer["code"] == "invalid_input"
    assert answer["detail"] == "/message_bytes: this field is required"
    assert answer["errors"] == [{"pointer": "/message_bytes", "detail": "this field is required"}]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/thresholds", {"message_bytes": [64], "pipeline": MYRINET}),
        ("/profiles/myrinet-gam/tables", {"max_message_bytes": 64}),
    ],
)
def test_other_questions_say_that_they_take_no_items(
    client: httpx.Client, path: str, body: Body
) -> None:
    answer = client.post(path, json={**body, "items": {"bytes": [1]}}).json()
    assert answer["errors"][0]["pointer"] == "/items"
    assert answer["errors"][0]["detail"].startswith(
        "only optimize, simulate, compare, audit and hide take items"
    )


def test_limits_that_clash_are_named(client: httpx.Client) -> None:
    limits = {"max_fragment_bytes": 4, "max_fragments": 2}
    body = small(constraints=limits)
    answer = client.post("/optimize", json=body).json()
    assert answer["code"] == "infeasible"
    assert "max_fragment_bytes 4" in answer["detail"]


def test_what_the_items_are_worth_knowing_is_said(client: httpx.Client) -> None:
    """An item above the cap, ready times that fall, and one fragment that is best."""
    items = {"bytes": PI, "ready_us": [*PI_READY[:-1], 0]}
    body = question(stages((1, 1000)), items, constraints={"max_fragment_bytes": 8})
    codes = [one["code"] for one in client.post("/optimize", json=body).json()["warnings"]]
    assert {"item_above_cap", "ready_not_in_order"} <= set(codes)
    one = client.post("/optimize", json=question(stages((1, 1)), {"bytes": PI})).json()
    assert [found["code"] for found in one["warnings"]] == ["one_fragment_is_best"]
    assert one["fragment_items"] == [8]


# --- runs of a cut --------------------------------------------------------------------------------


@pytest.mark.parametrize("case", range(len(ORACLES)))
def test_a_cut_takes_what_the_oracle_says(client: httpx.Client, case: int) -> None:
    """As its answer says, and by the intervals too."""
    asked, latency_us, ends, _ = ORACLES[case]
    body = {"pipeline": asked["pipeline"], "items": asked["items"], "cut": ends}
    run = client.post("/simulate", json=body).json()
    assert run["latency_us"] == latency_us == max(one["exit_us"] for one in run["intervals"])
    assert run["cut"] == ends
    last = len(ends) - 1, len(asked["pipeline"]["stages"]) - 1
    step = run["critical_path"][-1]
    assert (step["fragment"], step["stage"]) == last
    assert len(run["ready_us"]) == len(ends)
    limit = run["limit"]
    parts = limit["calculation_us"] + limit["bytes_us"] + limit["overheads_us"]
    assert parts == pytest.approx(latency_us)


def test_the_cut_of_an_answer_takes_its_latency(client: httpx.Client) -> None:
    """With every cap of the best range, too."""
    asked = ORACLES[3][0]
    answer = client.post("/optimize", json=asked).json()
    body = {"pipeline": asked["pipeline"], "items": asked["items"]}
    cut = list(accumulate(answer["fragment_items"]))
    run = client.post("/simulate", json={**body, "cut": cut}).json()
    assert run["latency_us"] == answer["latency_us"]
    best = answer["best_cap"]
    for cap in (best["from_bytes"], best["to_bytes"]):
        run = client.post("/simulate", json={**body, "cap_bytes": cap}).json()
        assert run["latency_us"] == best["latency_us"]


@pytest.mark.parametrize(
    ("more", "code", "field"),
    [
        ({}, "invalid_input", "/cut"),
        ({"cut": [2, 5], "cap_bytes": 4}, "invalid_input", "/cut"),
        ({"cut": [2, 4]}, "invalid_input", "/cut"),
        ({"cut": [0, 5]}, "invalid_input", "/cut/0"),
        ({"cut": [2, 5], "fill": {"rule": "until"}}, "inconsistent_input", "/fill"),
        ({"cut": [2, 5], "fragment_bytes": [12]}, "items_declined", "/fragment_bytes"),
        ({"cut": [2, 5], "levels": [[12]]}, "items_declined", "/levels"),
        ({"cut": [2, 5], "delivery": [{"rule": "same"}]}, "items_declined", "/delivery"),
        ({"cut": [2, 5], "message_bytes": 12}, "items_declined", "/message_bytes"),
    ],
)
def test_runs_that_items_do_not_have_are_refused(
    client: httpx.Client, more: Body, code: str, field: str
) -> None:
    answer = client.post("/simulate", json=small(**more)).json()
    assert (answer["code"], answer["errors"][0]["pointer"]) == (code, field)


def test_a_picture_of_items_is_declined(client: httpx.Client) -> None:
    body = small(cut=[2, 5])
    answer = client.post("/simulate", json=body, params={"format": "svg"}).json()
    assert answer["code"] == "items_declined"


def test_a_cut_between_items_needs_items(client: httpx.Client) -> None:
    body = {"pipeline": MYRINET, "fragment_bytes": [64], "cap_bytes": 4}
    answer = client.post("/simulate", json=body).json()
    assert answer["errors"][0]["pointer"] == "/cap_bytes"


@pytest.mark.parametrize(
    ("items", "sentence"),
    [
        ({"repeat": 4, "bytes": 8}, "Set 4 items a fragment."),
        ({"repeat": 4, "bytes": 8, "ready_every_us": 9}, "Set 1 item a fragment."),
        (
            {"bytes": [8] * 5, "ready_us": [0, 0, 0, 0, 1000]},
            "Set 4 items a fragment.",
        ),
        (
            {"bytes": [8] * 6, "ready_us": [0, 500, 500, 500, 500, 1000]},
            "Set fragments of [1, 4, 1] items (or 5 items a fragment).",
        ),
    ],
)
def test_alike_items_are_set_by_their_number(
    client: httpx.Client, items: Body, sentence: str
) -> None:
    """As programs that push layers count them; the last fragment may have fewer."""
    answer = client.post("/optimize", json=question(stages((2, 1000)), items)).json()
    assert answer["set_items"]["sentence"] == sentence
