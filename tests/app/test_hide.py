"""POST /hide: figures by brute force and by the model, warnings, and every refusal."""

from __future__ import annotations

import html
import json
import random
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from analysis.hiding import Hidden, HideQuestion, hide
from app.execution.engine import Limit, LimitExceeded, Limits
from app.operations.tasks import result_of
from app.schemas.base import dump_json, parse_json, read_output
from app.schemas.source import as_job
from app.text.notices import capitalised
from app.text.numbers import format_figure
from app.verbs.hide.operation import Hide
from app.verbs.hide.request import model_question, pipeline_question
from contract.hide import HideIn, StoredHideOut
from domain.errors import TimeLimitReached
from domain.pipeline import pipeline_of_lines
from domain.problem import FragmentLimits, Problem
from domain.schedule import latency_us
from domain.solution import Status
from tests.app.serving import MYRINET, Live, wait_for_end

PIPELINE = pipeline_of_lines(
    [(one["name"], one["overhead_us"], one["ns_per_byte"]) for one in MYRINET["stages"]]
)
ASYNC = {"Prefer": "respond-async"}
COPIES = {"sender": ["sender copy"], "receiver": [3]}
TERMS = {"granularity": {"software": 5.0, "hardware": 5.0, "overhead": 0.2}}
TRACE = Path("examples/local-path-direct.csv")


def ask(**more: Any) -> dict[str, Any]:
    return {"pipeline": MYRINET, "message_bytes": 4096, "calculation_us": 120.0, **more}


def answer(client: httpx.Client, body: dict[str, Any]) -> dict[str, Any]:
    response = client.post("/hide", json=body)
    assert response.status_code in (200, 201), response.text
    read_output(StoredHideOut, response.content)
    found: dict[str, Any] = response.json()
    return found


def codes(found: dict[str, Any]) -> set[str]:
    return {warning["code"] for warning in found["warnings"]}


class TestHidden:
    def test_the_cut_of_least_latency_is_not_the_one_to_use(self, client: httpx.Client) -> None:
        found = answer(client, ask(host_stages=COPIES, exchange="both_ways"))
        assert found["fragments"] == 2
        assert found["with_us"] == pytest.approx(213.289, rel=1e-5)
        assert found["without_us"] == pytest.approx(304.357, rel=1e-5)
        assert found["latency_optimal"]["fragments"] == 6
        assert found["latency_optimal"]["with_us"] == pytest.approx(268.0)
        assert found["latency_optimal"]["more_by"] == pytest.approx(0.25651, rel=1e-4)
        assert found["latency_us"] == latency_us(PIPELINE, found["fragment_bytes"])
        assert found["lower_bound_us"] <= found["with_us"]
        assert found["status"] == "optimal_before_rounding"
        assert found["gain"] == found["without_us"] / found["with_us"]
        assert found["gain_at_most"] == found["without_us"] / found["lower_bound_us"]
        assert codes(found) == {
            "latency_cut_is_not_best",
            "not_hidden_by",
            "exchange_is_bound",
            "assumes_preemption",
        }

    def test_counts_have_bounds_below_and_cuts_above_the_best(self, client: httpx.Client) -> None:
        found = answer(client, ask(host_stages=COPIES, exchange="both_ways"))
        counts = found["counts"]
        assert [row["fragments"] for row in counts][:6] == [1, 2, 3, 4, 5, 6]
        assert min(row["with_us"] for row in counts) == found["with_us"]
        for row in counts:
            assert row["bound_us"] <= row["with_us"]
            assert row["with_us"] == max(row["latency_us"], row["host_us"])

    def test_one_way_the_busier_end_counts(self, client: httpx.Client) -> None:
        found = answer(client, ask(host_stages=COPIES))
        both = answer(client, ask(host_stages=COPIES, exchange="both_ways"))
        assert found["with_us"] <= both["with_us"]
        assert "exchange_is_bound" not in codes(found)

    def test_a_calculation_that_hides_nothing_is_before_the_message(
        self, client: httpx.Client
    ) -> None:
        found = answer(client, ask(hideable_fraction=0.0))
        assert found["with_us"] == found["without_us"] == pytest.approx(304.357328125)
        assert found["gain"] == 1.0
        assert found["calculation_for_full_hiding_us"] is None

    def test_streamed_fragments_leave_during_the_calculation(self, client: httpx.Client) -> None:
        found = answer(client, ask(calculation_us=100.0, hideable_fraction=0.0, streamed=True))
        assert found["with_us"] == pytest.approx(192.861, rel=1e-4)
        assert found["pipeline"]["stages"][0]["name"] == "sender copy"

    def test_the_calculation_that_is_enough_hides_the_cut(self, client: httpx.Client) -> None:
        found = answer(client, ask(calculation_us=50.0))
        enough_us = found["calculation_for_full_hiding_us"]
        again = answer(client, ask(calculation_us=enough_us + 1e-6))
        assert again["regime"] == "fully_hidden"
        assert again["with_us"] == pytest.approx(enough_us)

    def test_limits_hold(self, client: httpx.Client) -> None:
        limits = {"min_fragment_bytes": 600, "max_fragment_bytes": 1400, "alignment_bytes": 64}
        found = answer(client, ask(constraints=limits, host_stages=COPIES))
        sizes = found["fragment_bytes"]
        assert sum(sizes) == 4096
        assert all(600 <= size <= 1400 for size in sizes)
        assert all(size % 64 == 0 for size in sizes[:-1])

    def test_instructions_are_another_way_to_say_the_calculation(
        self, client: httpx.Client
    ) -> None:
        said = ask(instructions=240.0, instructions_per_us=2.0)
        del said["calculation_us"]
        assert answer(client, said) == answer(client, ask())

    def test_overhead_can_lose(self, client: httpx.Client) -> None:
        found = answer(client, ask(hiding_overhead_us=500.0))
        assert found["regime"] == "loss"
        assert found["gain"] < 1.0
        assert "hiding_loses" in codes(found)

    def test_several_messages_are_sent_one_after_the_other(self, client: httpx.Client) -> None:
        found = answer(client, ask(messages=4, calculation_us=0.0))
        assert found["without_us"] == pytest.approx(4 * 184.3572265625)
        assert "serial_messages" in codes(found)

    def test_a_train_is_sooner_than_messages_one_after_the_other(
        self, client: httpx.Client
    ) -> None:
        """Its run time is that of all fragments in a row; constraints say how many there may be."""
        given = {"messages": 4, "calculation_us": 50.0, "host_stages": COPIES}
        found = answer(client, ask(**given, messages_are="train"))
        in_turn = answer(client, ask(**given))
        assert found["messages_are"] == "train"
        assert in_turn["messages_are"] == "serial"
        assert found["with_us"] < in_turn["with_us"]
        assert found["without_us"] < in_turn["without_us"]
        assert "serial_messages" not in codes(found)
        assert found["latency_us"] == latency_us(PIPELINE, found["fragment_bytes"] * 4)
        assert found["lower_bound_us"] <= found["with_us"]
        many = answer(client, ask(messages=20_000, messages_are="train"))
        assert many["constraints"]["max_fragments"] == 5
        assert many["fragments"] <= 5

    def test_nothing_that_takes_time_gains_nothing(self, client: httpx.Client) -> None:
        free = {"stages": [{"overhead_us": 0.0, "ns_per_byte": 0.0}]}
        found = answer(client, ask(pipeline=free, calculation_us=0.0, min_gain=1.5))
        assert (found["gain"], found["gamma"], found["window"]) == (1.0, None, None)
        assert found["gain_at_most"] == 1.0
        assert "fragments_overlap_nothing" in codes(found)

    def test_windows_hold_the_gain_asked_for(self, client: httpx.Client) -> None:
        found = answer(client, ask(min_gain=1.5))
        assert found["window"] == pytest.approx({"low": 0.5, "high": 2.0})
        assert answer(client, ask(min_gain=2.5))["window"] is None
        assert answer(client, ask(min_gain=0.5))["window"] is None

    def test_processes_have_a_curve_with_its_optima(self, client: httpx.Client) -> None:
        processes = {"max_processes": 5000, "communication": "sqrt"}
        found = answer(client, ask(calculation_us=1e5, processes=processes))
        best, curve = found["best_processes"], found["curve"]
        by_count = {point["processes"]: point for point in curve}
        assert max(curve, key=lambda point: point["speedup"])["processes"] == best["without"]
        assert by_count[best["hidden"]]["hidden_speedup"] == max(
            point["hidden_speedup"] for point in curve
        )
        assert len(curve) <= 400

    def test_a_profile_is_found(self, client: httpx.Client) -> None:
        client.post("/profiles", json={"name": "hidden-myrinet", "pipeline": MYRINET})
        body = {**ask(), "profile": "hidden-myrinet"}
        del body["pipeline"]
        found = answer(client, body)
        assert found["profile"]["name"] == "hidden-myrinet"
        assert found["with_us"] == answer(client, ask())["with_us"]

    def test_stages_of_a_file_may_not_overlap(self, client: httpx.Client) -> None:
        """Durations alone do not tell, and the gain is that of stages that do."""
        body = {**ask(), "measurements": {"content": TRACE.read_text()}}
        del body["pipeline"]
        assert "overlap_not_known" in codes(answer(client, body))
        body["fit_options"] = {"stages_overlap": True}
        assert "overlap_not_known" not in codes(answer(client, body))


class TestStored:
    def test_the_same_question_has_the_stored_answer(self, client: httpx.Client) -> None:
        """Byte for byte, also under its address and whatever the time limit."""
        body = ask(calculation_us=121.5)
        first = client.post("/hide", json=body)
        again = client.post("/hide", json={**body, "time_limit_s": 7.5})
        assert (first.status_code, again.status_code) == (201, 200)
        place = first.headers["location"]
        assert place == again.headers["location"] == f"/hide/{first.json()['id']}"
        assert first.content == again.content == client.get(place).content
        other = client.post("/hide", json={**body, "hideable_fraction": 0.5})
        assert other.status_code == 201
        assert other.json()["id"] != first.json()["id"]

    def test_the_papers_terms_are_stored_too(self, client: httpx.Client) -> None:
        body = {**TERMS, "hideable_fraction": 0.625}
        answers = [client.post("/hide", json=body) for _ in range(2)]
        assert [one.status_code for one in answers] == [201, 200]
        assert answers[0].content == answers[1].content

    def test_an_answer_that_time_ended_is_not_given_again(self, client: httpx.Client) -> None:
        rng = random.Random(4)
        stages = [
            {"overhead_us": rng.uniform(0.01, 5.0), "ns_per_byte": rng.uniform(0.5, 1.5)}
            for _ in range(24)
        ]
        body = ask(pipeline={"stages": stages}, message_bytes=2**26, time_limit_s=1e-3)
        answers = [client.post("/hide", json=body) for _ in range(2)]
        assert [one.status_code for one in answers] == [201, 201]
        assert {one.json()["status"] for one in answers} == {"time_limit"}
        assert all(one.json()["lower_bound_us"] <= one.json()["with_us"] for one in answers)

    @pytest.mark.parametrize("id", ["absent", "0" * 32, "%00"])
    def test_what_is_not_stored_is_not_found(self, client: httpx.Client, id: str) -> None:
        assert client.get(f"/hide/{id}").status_code == 404

    @pytest.mark.parametrize(
        "body",
        [ask(calculation_us=33.25, exchange="both_ways"), {**TERMS, "hideable_fraction": 0.125}],
    )
    def test_a_job_stores_the_same_answer(self, own: Live, body: dict[str, Any]) -> None:
        """And a job of what is stored is done at once."""
        response = own.client.post("/hide", json=body, headers=ASYNC)
        assert response.status_code == 202
        job = wait_for_end(own.client, response.headers["location"])
        assert (job["kind"], job["state"]) == ("hide", "done")
        direct = own.client.post("/hide", json=body)
        assert direct.status_code == 200
        assert direct.json() == job["hidden"]
        again = own.client.post("/hide", json=body, headers=ASYNC).json()
        assert (again["id"], again["state"]) == (job["id"], "done")
        page = own.client.get(f"/ui/jobs/{job['id']}")
        assert page.status_code == 200
        assert "behind a calculation" in page.text


def test_thresholds_as_a_job(own: Live) -> None:
    """Have the same result, and are priced once for the same question."""
    body = {"profile": "trapeze", "message_bytes": [8192], "stages": [1, 2], "sizes": [64, 128]}
    response = own.client.post("/thresholds", json=body, headers=ASYNC)
    assert response.status_code == 202
    job = wait_for_end(own.client, response.headers["location"])
    assert (job["kind"], job["state"]) == ("thresholds", "done")
    assert job["thresholds"] == own.client.post("/thresholds", json=body).json()
    assert own.client.post("/thresholds", json=body, headers=ASYNC).json()["id"] == job["id"]
    page = own.client.get(f"/ui/jobs/{job['id']}")
    assert page.status_code == 200
    assert "Thresholds of 8 KiB" in page.text


class TestTerms:
    def test_the_papers_terms_need_no_pipeline(self, client: httpx.Client) -> None:
        found = answer(client, {**TERMS, "min_gain": 1.5, "processes": {"max_processes": 64}})
        assert found["gain"] == pytest.approx(5 / 3, abs=1e-12)
        assert found["max_gain"] == pytest.approx(11 / 6, abs=1e-12)
        assert found["gamma"] == 1.0
        assert found["fragments"] is None
        assert len(found["curve"]) == 64

    def test_they_can_lose(self, client: httpx.Client) -> None:
        terms = {"software": 5.0, "hardware": 1.0, "overhead": 1.0}
        found = answer(client, {"granularity": terms})
        assert found["gain"] == pytest.approx(0.6, abs=1e-12)
        assert codes(found) == {"hiding_loses"}


HUGE = 10**400
REFUSED: list[tuple[dict[str, Any], str]] = [
    (ask(hideable_fraction=1.1), "/hideable_fraction"),
    (ask(hideable_fraction=-0.1), "/hideable_fraction"),
    (ask(hideable_fraction="NaN"), "/hideable_fraction"),
    (ask(calculation_us=-1.0), "/calculation_us"),
    (ask(calculation_us=1.1e12), "/calculation_us"),
    (ask(calculation_us=None), "/calculation_us"),
    (ask(instructions=1.0, instructions_per_us=1.0), "/calculation_us"),
    (ask(instructions_per_us=1.0), "/instructions_per_us"),
    (ask(calculation_us=None, instructions=1.0), "/instructions_per_us"),
    (ask(calculation_us=None, instructions=1e300, instructions_per_us=1e-9), "/instructions"),
    (ask(calculation_us=0.0, processes={"max_processes": 8}), "/calculation_us"),
    (ask(message_bytes=None), "/message_bytes"),
    (ask(message_bytes=0), "/message_bytes"),
    (ask(messages=0), "/messages"),
    (ask(messages=HUGE), "/messages"),
    (ask(messages=2, streamed=True), "/messages"),
    (ask(messages=100_001, messages_are="train"), "/messages"),
    (ask(messages=10**5, message_bytes=2**40, messages_are="train"), "/messages"),
    (ask(messages_are="flock"), "/messages_are"),
    ({**TERMS, "messages_are": "train"}, "/messages_are"),
    (ask(host_stages={"sender": ["nowhere"]}), "/host_stages/sender/0"),
    (ask(host_stages={"sender": [4]}), "/host_stages/sender/0"),
    (ask(host_stages={"receiver": [3, "receiver copy"]}), "/host_stages/receiver"),
    (ask(host_stages={"sender": [3], "receiver": [3]}), "/host_stages"),
    (ask(exchange="sideways"), "/exchange"),
    (ask(hiding_overhead_us=-1.0), "/hiding_overhead_us"),
    (ask(processes={"min_processes": 9, "max_processes": 8}), "/processes/min_processes"),
    (ask(processes={"max_processes": 10**9 + 1}), "/processes/max_processes"),
    (ask(processes={"max_processes": 8, "exponent": 1.0}), "/processes/exponent"),
    (ask(processes={"max_processes": 8, "communication": "exponent"}), "/processes/exponent"),
    (
        ask(processes={"max_processes": 8, "communication": "exponent", "exponent": -1}),
        "/processes/exponent",
    ),
    (
        ask(processes={"max_processes": 8, "communication": "exponent", "exponent": 4.1}),
        "/processes/exponent",
    ),
    (ask(constraints={"min_fragment_bytes": 9, "max_fragment_bytes": 3}), "/constraints"),
    ({**ask(), **TERMS}, "/pipeline"),
    ({"granularity": {"software": 0.0, "hardware": 1.0}}, "/granularity/software"),
    ({"granularity": {"software": 1.0, "hardware": -1.0}}, "/granularity/hardware"),
    ({**TERMS, "message_bytes": 8}, "/message_bytes"),
    ({**TERMS, "streamed": True}, "/streamed"),
    ({"message_bytes": 8, "calculation_us": 1.0}, "/pipeline"),
]


@pytest.mark.parametrize(("body", "field"), REFUSED)
def test_bad_input_names_the_field(client: httpx.Client, body: dict[str, Any], field: str) -> None:
    response = client.post("/hide", content=json.dumps(body))
    problem = response.json()
    assert response.status_code in (400, 422), problem
    named = [one["pointer"] for one in problem.get("errors", [])] or [problem.get("field")]
    assert field in named, problem


def test_numbers_that_json_has_not_are_refused(client: httpx.Client) -> None:
    for word in ("NaN", "Infinity", "1e999"):
        content = json.dumps(ask()).replace("120.0", word)
        assert client.post("/hide", content=content).status_code in (400, 422)


def test_what_is_known_from_outside_alone_has_no_stages_to_hide(client: httpx.Client) -> None:
    aggregate = {
        "total": {"overhead_us": 9.0, "ns_per_byte": 9.0},
        "bottleneck": {"overhead_us": 3.0, "ns_per_byte": 3.0},
    }
    client.post("/profiles", json={"name": "hidden-aggregate", "aggregate": aggregate})
    body = {"profile": "hidden-aggregate", "message_bytes": 64, "calculation_us": 1.0}
    response = client.post("/hide", json=body)
    assert response.status_code == 422
    assert response.json()["code"] == "strategy_declined"


# --- the page -------------------------------------------------------------------------------------


def page(client: httpx.Client, status: int = 200, **query: str) -> str:
    response = client.get("/ui/hiding", params=query, headers={"Accept": "text/html"})
    assert response.status_code == status, response.text
    return html.unescape(response.text)


FORM = {"profile": "myrinet-gam", "message": "4 KiB", "calculation": "120"}


def test_the_page_has_the_service_s_figures(client: httpx.Client) -> None:
    text = page(client, **FORM, sender="0", receiver="3", both_ways="1", min_gain="1.2")
    found = answer(client, ask(host_stages=COPIES, exchange="both_ways", min_gain=1.2))
    assert "213.289 µs" in text
    assert f"Gain {format_figure(found['gain'])}" in text
    assert "6 fragments: 268.0 µs, 25.7 % more" in text
    assert text.count("data:image/svg+xml;base64,") == 2
    assert "--sender-stage 0 --receiver-stage 3 --both-ways" in text
    assert all(capitalised(one["detail"]) in text for one in found["warnings"])


def test_the_page_draws_speedups_where_processes_are_asked_for(client: httpx.Client) -> None:
    text = page(client, **FORM, processes="64", communication="sqrt")
    assert "Speed-up by number of processes" in text
    assert "--processes 64 --communication sqrt" in text
    assert "appears here" in page(client)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"calculation": "-1"}, ">= 0"),
        ({"calculation": "nan"}, "finite"),
        ({"message": ""}, "expected one"),
        ({"sender": "9"}, "stage"),
        ({"sender": "no such"}, "no such"),
        ({"hideable": "2"}, "1"),
        ({"processes": "1.5"}, "whole number"),
        ({"profile": "none-such"}, "there is no hardware profile"),
    ],
)
def test_mistakes_on_the_page(client: httpx.Client, more: dict[str, str], words: str) -> None:
    text = page(client, 422, **{**FORM, **more})
    assert words in text
    assert 'class="mistake"' in text or 'role="alert"' in text


def test_what_is_known_before_the_search_counts_where_time_ends_it() -> None:
    """The cut of least latency with the bounds of all counts, then the cut that was found."""
    asked = parse_json(HideIn, dump_json(ask(host_stages=COPIES, exchange="both_ways")))
    question = pipeline_question(asked, Problem(PIPELINE, 4096, FragmentLimits()))
    reported: list[Hidden] = []
    found = hide(question, reported.append)
    first, last = reported
    assert last is found
    assert len(first.cut.fragment_bytes) == 6
    assert first.lower_bound_us <= found.with_us < first.with_us
    assert first.cut.cut_off
    operation = Hide(question, None, partial(as_job, asked))
    assert operation.cut_off(first, TimeLimitReached("it took long")) is first
    assert first.status is Status.TIME_LIMIT


@pytest.mark.parametrize("more", [{}, {"streamed": True, "hideable_fraction": 0.5}])
def test_without_time_for_a_search_the_closed_forms_are_the_answer(more: dict[str, Any]) -> None:
    """Where nothing was reported in time; whatever a search finds lies between bound and cut."""
    asked = parse_json(HideIn, dump_json(ask(host_stages=COPIES, exchange="both_ways", **more)))
    question = pipeline_question(asked, Problem(PIPELINE, 4096, FragmentLimits()))
    operation = Hide(question, None, partial(as_job, asked))
    limits = Limits(operation.time_s, 1)
    known = result_of(operation, LimitExceeded(Limit.TIME), best=None, limits=limits)
    assert isinstance(known, Hidden)
    assert known.status is Status.TIME_LIMIT
    assert isinstance(operation.question, HideQuestion)
    found = hide(operation.question)
    assert known.lower_bound_us <= found.with_us <= known.with_us
    assert sum(known.cut.fragment_bytes) == 4096


def test_the_papers_terms_need_no_search_either() -> None:
    asked = parse_json(HideIn, dump_json(TERMS))
    question = model_question(asked)
    assert question is not None
    operation = Hide(question, None, partial(as_job, asked))
    limits = Limits(operation.time_s, 1)
    known = result_of(operation, LimitExceeded(Limit.TIME), best=None, limits=limits)
    assert known == operation.run_here()
