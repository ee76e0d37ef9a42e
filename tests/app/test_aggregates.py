"""Pipelines known from outside, through HTTP: solved, compared, stored, looked up, refused."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from app.schemas.base import dump_json, read_output
from contract.compare import CompareOut
from contract.optimize import OptimizeOut
from contract.profiles import ProfileOut, RevisionsOut
from domain.aggregate import Aggregate
from domain.pipeline import Stage
from tests.app.serving import MYRINET, Live, wait_for_end
from tests.support.outside_traces import BOTH_CSV, INTERARRIVAL_CSV, LATENCY_CSV

# The total and the bottleneck of Table 1 of Wang et al. 1998.
TOTAL = {"name": "all", "overhead_us": 27.3, "ns_per_byte": 63.37890625}
BOTTLENECK = {"name": "slowest", "overhead_us": 7.5, "ns_per_byte": 24.31640625}
OUTSIDE: dict[str, Any] = {"total": TOTAL, "bottleneck": BOTTLENECK}
SWITCHING = {
    "name": "slowest",
    "ranges": [
        {"up_to_bytes": 2048, "overhead_us": 7.5, "ns_per_byte": 24.0},
        {"up_to_bytes": None, "overhead_us": 30.0, "ns_per_byte": 20.0},
    ],
}
NEED_THE_STAGES = ["exact", "ramp", "ramp_up_down", "hierarchical", "hierarchical_ramp"]


def ask(message_bytes: int = 4096, **more: Any) -> dict[str, Any]:
    return {"message_bytes": message_bytes, "aggregate": OUTSIDE, **more}


def codes(answer: dict[str, Any]) -> set[str]:
    return {warning["code"] for warning in answer["warnings"]}


class TestOptimize:
    def test_fixed_is_that_of_the_pipeline_behind_it(self, client: httpx.Client) -> None:
        answer = client.post("/optimize", json=ask(strategy="fixed")).json()
        read_output(OptimizeOut, dump_json(answer))
        there = client.post(
            "/optimize", json={"message_bytes": 4096, "pipeline": MYRINET, "strategy": "fixed"}
        ).json()
        assert answer["fragments"] == there["fragments"] == 5
        assert round(answer["unrounded_latency_us"], 1) == 188.9
        assert answer["lower_bound_us"] <= there["lower_bound_us"] <= there["latency_us"]
        assert there["latency_us"] <= answer["latency_us"]
        assert answer["pipeline"] is None
        assert answer["bottleneck_stage"] is None
        assert answer["aggregate"] == {
            **OUTSIDE,
            "sum_overhead_us": 27.3,
            "sum_ns_per_byte": 63.37890625,
            "delay_us": 0.0,
            "total_is_uncut": False,
        }

    def test_auto_is_the_best_of_those_that_can(self, client: httpx.Client) -> None:
        found = {}
        for strategy in ("auto", "single", "repeat", "fixed"):
            answer = client.post("/optimize", json=ask(65536, strategy=strategy)).json()
            assert answer["status"] in ("optimal", "optimal_before_rounding", "proven_gap")
            assert answer["lower_bound_us"] <= answer["latency_us"]
            found[strategy] = answer["latency_us"]
        assert found["auto"] == min(found.values()) < found["single"]
        one = client.post("/optimize", json=ask(strategy="static", static_bytes=1024)).json()
        assert one["fragment_bytes"] == [1024] * 4

    def test_a_latency_that_is_the_most_says_so(self, client: httpx.Client) -> None:
        equal = client.post("/optimize", json=ask(strategy="static", static_bytes=1024)).json()
        other = client.post("/optimize", json=ask(strategy="static", static_bytes=1000)).json()
        assert codes(equal) == {"total_may_be_pipelined"}
        assert codes(other) == {"latency_is_upper_bound", "total_may_be_pipelined"}

    def test_a_total_that_is_said_to_be_uncut_has_no_premise(self, client: httpx.Client) -> None:
        """It is another question, whose answer sets a size."""
        said = {**OUTSIDE, "total_is_uncut": True}
        known = {"relative": 0.02, "current": "whole"}
        uncut = client.post("/optimize", json=ask(aggregate=said, uncertainty=known)).json()
        asked = client.post("/optimize", json=ask(uncertainty=known)).json()
        assert codes(asked) - codes(uncut) == {"total_may_be_pipelined"}
        assert (asked["uncertainty"]["decision"], asked["uncertainty"]["reason"]) == (
            "measure_first",
            "premise",
        )
        assert uncut["uncertainty"]["decision"] == "set_it"
        assert uncut["aggregate"]["total_is_uncut"]
        assert asked["uncertainty"]["gain"] == uncut["uncertainty"]["gain"]
        assert asked["uncertainty"]["advised_bytes"] == uncut["uncertainty"]["advised_bytes"]
        assert asked["set_this"]["sentence"].startswith("Measure first: ")
        assert "if the latency was measured of uncut messages" in asked["uncertainty"]["sentence"]

    def test_ranges_and_delay(self, client: httpx.Client) -> None:
        ranged = {"total": TOTAL, "bottleneck": SWITCHING, "delay_us": 100.0}
        answer = client.post("/optimize", json=ask(65536, aggregate=ranged)).json()
        assert answer["aggregate"]["bottleneck"] == SWITCHING
        assert "bound_assumes_one_bottleneck" in codes(answer)
        assert answer["lower_bound_us"] > 100.0
        total = {"name": "t", "ranges": SWITCHING["ranges"]}
        both = {"total": total, "bottleneck": SWITCHING}
        answer = client.post("/optimize", json=ask(aggregate=both)).json()
        assert answer["aggregate"]["sum_overhead_us"] is None
        assert answer["aggregate"]["sum_ns_per_byte"] is None

    @pytest.mark.parametrize("strategy", NEED_THE_STAGES)
    def test_strategies_that_need_the_stages(self, client: httpx.Client, strategy: str) -> None:
        response = client.post("/optimize", json=ask(strategy=strategy))
        assert response.status_code == 422
        problem = response.json()
        assert problem["code"] == "strategy_declined"
        assert "time of every stage" in problem["detail"]
        assert "missing" in problem["detail"]

    @pytest.mark.parametrize(
        ("aggregate", "pointer"),
        [
            ({"total": TOTAL}, "/aggregate/bottleneck"),
            ({"bottleneck": BOTTLENECK}, "/aggregate/total"),
            ({**OUTSIDE, "delay_us": -1.0}, "/aggregate/delay_us"),
            ({**OUTSIDE, "stages": []}, "/aggregate/stages"),
            ({**OUTSIDE, "total": {**TOTAL, "overhead_us": -1.0}}, "/aggregate/total/overhead_us"),
            (
                {**OUTSIDE, "bottleneck": {**SWITCHING, "ranges": SWITCHING["ranges"][:1]}},
                "/aggregate/bottleneck/ranges",
            ),
            ([], "/aggregate"),
        ],
    )
    def test_what_breaks_a_rule_is_named(self, live: Live, aggregate: object, pointer: str) -> None:
        before = live.stored()
        response = live.client.post("/optimize", json=ask(aggregate=aggregate))
        assert response.status_code == 422
        assert [error["pointer"] for error in response.json()["errors"]] == [pointer]
        assert live.stored() == before

    def test_one_source_only(self, client: httpx.Client) -> None:
        response = client.post("/optimize", json=ask(pipeline=MYRINET))
        assert response.status_code == 422
        assert "exactly one of pipeline, aggregate" in response.json()["detail"]

    def test_an_identical_question_is_served_from_the_store(self, client: httpx.Client) -> None:
        dear = {**OUTSIDE, "bottleneck": {**BOTTLENECK, "overhead_us": 27.3}}
        first = client.post("/optimize", json=ask(3, aggregate=dear))
        assert first.json()["status"] == "optimal"
        assert client.post("/optimize", json=ask(3, aggregate=dear)).content == first.content
        stored = client.get(f"/optimizations/{first.json()['id']}")
        assert stored.content == first.content

    def test_as_a_job(self, client: httpx.Client) -> None:
        accepted = client.post("/optimize", json=ask(), headers={"prefer": "respond-async"})
        assert accepted.status_code == 202
        job = wait_for_end(client, accepted.headers["location"])
        assert job["state"] == "done"
        answer = client.get(f"/optimizations/{job['answer_id']}").json()
        assert answer["aggregate"]["total"] == TOTAL

    def test_a_large_one_goes_to_the_engine(self, client: httpx.Client) -> None:
        answer = client.post("/optimize", json=ask(2**40, time_limit_s=30.0)).json()
        assert sum(answer["fragment_bytes"]) == 2**40


class TestMeasurements:
    def test_latencies_and_interarrival_times_together(self, client: httpx.Client) -> None:
        both = [{"content": LATENCY_CSV}, {"content": INTERARRIVAL_CSV}]
        body = {"message_bytes": 4096, "measurements": both, "strategy": "fixed"}
        answer = client.post("/optimize", json=body).json()
        assert answer["fragments"] == 5
        assert answer["pipeline"] is None
        assert answer["aggregate"]["sum_overhead_us"] == pytest.approx(27.3, rel=0.02)
        assert answer["aggregate"]["sum_ns_per_byte"] == pytest.approx(63.379, rel=0.01)
        assert answer["fit"]["kind"] == "indirect"
        fitted = answer["fit"]["aggregate"]
        assert fitted["sum_overhead_us"] == answer["aggregate"]["sum_overhead_us"]
        low, high = fitted["sum_overhead_us_interval"]
        assert low < 27.3 < high
        one_file = {**body, "measurements": {"content": BOTH_CSV}}
        together = client.post("/optimize", json=one_file).json()
        assert together["fragment_bytes"] == answer["fragment_bytes"]

    @pytest.mark.parametrize(
        ("content", "missing"),
        [(LATENCY_CSV, "inter-arrival times"), (INTERARRIVAL_CSV, "latencies of unpipelined")],
        ids=["latencies alone", "inter-arrival times alone"],
    )
    @pytest.mark.parametrize("more", [{}, {"save_as": "half-known"}], ids=["", "save_as"])
    def test_one_half_alone_names_the_other(
        self, live: Live, content: str, missing: str, more: dict[str, Any]
    ) -> None:
        before = live.stored()
        body = {"message_bytes": 4096, "measurements": {"content": content}, **more}
        response = live.client.post("/optimize", json=body)
        assert response.status_code == 422
        assert response.json()["code"] == "measurement_missing"
        assert missing in response.json()["detail"]
        assert response.json()["errors"][0]["pointer"] == "/measurements"
        assert live.stored() == before

    def test_they_can_be_saved(self, own: Live) -> None:
        both = [{"content": LATENCY_CSV}, {"content": INTERARRIVAL_CSV}]
        body = {"message_bytes": 4096, "measurements": both, "save_as": "seen"}
        answer = own.client.post("/optimize", json=body).json()
        assert answer["profile"] == {"name": "seen", "revision": 1}
        profile = own.client.get("/profiles/seen").json()
        assert profile["provenance"]["origin"] == "fit"
        assert profile["aggregate"] == answer["aggregate"]


class TestFit:
    def test_half_of_it_is_shown_and_not_saved(self, live: Live) -> None:
        """A fit of latencies is an answer; a profile of them is not."""
        before, text = live.stored(), {"content-type": "text/csv"}
        shown = live.client.post("/fit", content=LATENCY_CSV, headers=text)
        assert shown.status_code == 200
        assert [stage["name"] for stage in shown.json()["pipeline"]["stages"]] == ["end to end"]
        saved = live.client.post("/fit?save_as=half", content=LATENCY_CSV, headers=text)
        assert saved.status_code == 422
        assert saved.json()["code"] == "measurement_missing"
        assert live.stored() == before

    def test_all_of_it_is_saved(self, own: Live) -> None:
        """One file that holds both kinds of times."""
        fitted = own.client.post(
            "/fit?save_as=seen", content=BOTH_CSV, headers={"content-type": "text/csv"}
        ).json()
        assert fitted["profile"] == {"name": "seen", "revision": 1}
        assert fitted["aggregate"]["sum_overhead_us"] == pytest.approx(27.3, rel=0.02)
        profile = own.client.get("/profiles/seen").json()
        assert profile["provenance"]["fit_id"] == fitted["fit_id"]
        assert profile["aggregate"]["sum_ns_per_byte"] == fitted["aggregate"]["sum_ns_per_byte"]
        answer = own.client.get("/profiles/seen/schedule?bytes=4096").json()
        assert answer["aggregate"] == profile["aggregate"]


class TestProfiles:
    def test_created_revised_rolled_back(self, own: Live) -> None:
        """A profile may pass from one to the other; every revision keeps its own."""
        client = own.client
        created = client.post("/profiles", json={"name": "seen", "aggregate": OUTSIDE})
        assert created.status_code == 201
        read_output(ProfileOut, dump_json(created.json()))
        assert created.json()["pipeline"] is None
        assert created.json()["aggregate"]["total"] == TOTAL
        revised = client.put("/profiles/seen", json={"pipeline": MYRINET}).json()
        assert (revised["revision"], revised["aggregate"]) == (2, None)
        revisions = client.get("/profiles/seen/revisions").json()
        read_output(RevisionsOut, dump_json(revisions))
        assert [one["aggregate"] is None for one in revisions["revisions"]] == [False, True]
        back = client.post("/profiles/seen/current", json={"revision": 1}).json()
        assert back["aggregate"]["bottleneck"] == BOTTLENECK

    def test_save_as(self, client: httpx.Client) -> None:
        answer = client.post("/optimize", json=ask(save_as="seen-with-answer")).json()
        profile = client.get("/profiles/seen-with-answer").json()
        assert profile["aggregate"] == answer["aggregate"]

    @pytest.mark.parametrize("body", [{}, {"aggregate": OUTSIDE, "pipeline": MYRINET}])
    def test_exactly_one(self, client: httpx.Client, body: dict[str, Any]) -> None:
        response = client.post("/profiles", json={"name": "both-or-none", **body})
        assert response.status_code == 422
        assert "exactly one of pipeline, aggregate" in response.json()["detail"]
        assert client.get("/profiles/both-or-none").status_code == 404
        assert client.put("/profiles/gms", json=body).status_code == 422

    def test_the_lookup(self, client: httpx.Client) -> None:
        client.post("/profiles", json={"name": "looked-up", "aggregate": OUTSIDE})
        found = client.get("/profiles/looked-up/schedule?bytes=4096")
        assert found.status_code == 200
        assert found.json()["profile"] == {"name": "looked-up", "revision": 1}
        assert found.json()["latency_us"] == pytest.approx(188.9, abs=0.05)
        proven = client.get("/profiles/looked-up/schedule?bytes=1")
        assert proven.json()["status"] == "optimal"
        tag = {"if-none-match": proven.headers["etag"]}
        again = client.get("/profiles/looked-up/schedule?bytes=1", headers=tag)
        assert again.status_code == 304

    def test_a_cut_is_priced_by_name(self, client: httpx.Client) -> None:
        """By its total and its bottleneck; cuts of each stage need the stages."""
        client.post("/profiles", json={"name": "priced", "aggregate": OUTSIDE})
        body = {"profile": "priced", "fragment_bytes": [2048, 2048]}
        named = client.post("/simulate", json=body).raise_for_status().json()
        typed = client.post(
            "/simulate", json={"aggregate": OUTSIDE, "fragment_bytes": [2048, 2048]}
        )
        assert named["latency_us"] == typed.json()["latency_us"]
        levels = {"profile": "priced", "levels": [[4096], [2048, 2048]]}
        response = client.post("/simulate", json=levels)
        assert response.status_code == 422
        assert response.json()["code"] == "strategy_declined"


class TestCompare:
    def test_rows_and_refusals(self, client: httpx.Client) -> None:
        strategies = ["auto", "single", "static", "repeat", "fixed", *NEED_THE_STAGES]
        body = {
            "aggregate": OUTSIDE,
            "message_bytes": [64, 4096, 65536],
            "strategies": strategies,
            "static_bytes": 4096,
        }
        table = client.post("/compare", json=body).json()
        read_output(CompareOut, dump_json(table))
        assert table["pipeline"] is None
        assert table["aggregate"]["total"] == TOTAL
        declined = {row["strategy"] for row in table["rows"] if row["latency_us"] is None}
        assert declined == set(NEED_THE_STAGES)
        for row in table["rows"]:
            if row["latency_us"] is None:
                assert "time of every stage" in row["declined"]
        evaluator = Aggregate(
            Stage.of_line("all", overhead_us=27.3, ns_per_byte=63.37890625),
            Stage.of_line("slowest", overhead_us=7.5, ns_per_byte=24.31640625),
        )
        static = next(
            r for r in table["rows"] if (r["strategy"], r["message_bytes"]) == ("static", 65536)
        )
        assert static["latency_us"] == evaluator.latency_us([4096] * 16)

    def test_of_a_profile_and_as_a_job(self, client: httpx.Client) -> None:
        client.post("/profiles", json={"name": "compared", "aggregate": OUTSIDE})
        body = {"profile": "compared", "message_bytes": [4096], "strategies": ["fixed"]}
        table = client.post("/compare", json=body).json()
        assert table["profile"] == {"name": "compared", "revision": 1}
        accepted = client.post("/compare", json=body, headers={"prefer": "respond-async"})
        job = wait_for_end(client, accepted.headers["location"])
        assert job["comparison"]["rows"] == table["rows"]
