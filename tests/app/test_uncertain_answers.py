"""How sure an answer is, through HTTP: on for fits, off for typed costs, always the same."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from app.schemas.base import read_output
from app.schemas.uncertainty import uncertainty_facts
from contract.optimize import OptimizeOut
from tests.app.serving import MYRINET

ROWS = "".join(
    f"{size},{repetition},{5 + size * 0.01 + repetition * 0.1},{9 + size * 0.03 + repetition % 2}\n"
    for size in (64, 512, 1024, 4096, 8192, 65536)
    for repetition in range(4)
)
TRACE = "message_bytes,repetition,copy_us,wire_us\n" + ROWS


def _ask(client: httpx.Client, **more: Any) -> dict[str, Any]:
    found = client.post("/optimize", json={"message_bytes": 65536, **more})
    assert found.status_code == 200, found.text
    answer: dict[str, Any] = found.json()
    return answer


def test_a_fit_says_how_sure_its_answer_is(client: httpx.Client) -> None:
    answer = _ask(client, measurements={"content": TRACE}, fit_options={"stages_overlap": True})
    known = answer["uncertainty"]
    assert known["source"] == "fit"
    assert known["draws"] == 400
    assert known["decision"] == "set_it"
    latency = known["latency_us"]
    assert latency["p05"] < answer["latency_us"] < latency["p95"]
    assert [one["name"] for one in known["against"]] == ["one piece", "Ethernet packet", "GAM"]
    assert known["against"][0]["probability_faster"] == 1.0
    assert "guaranteed" not in known["sentence"]


def test_a_profile_of_a_fit_has_it_too_and_the_same_draws_again(client: httpx.Client) -> None:
    _ask(
        client,
        measurements={"content": TRACE},
        fit_options={"stages_overlap": True},
        save_as="drawn",
    )
    first = _ask(client, profile="drawn")
    assert first["uncertainty"]["decision"] == "set_it"
    stored = client.get(f"/optimizations/{first['id']}").json()
    assert stored["uncertainty"] == first["uncertainty"]
    seeded = _ask(client, profile="drawn", uncertainty={"seed": first["uncertainty"]["seed"]})
    assert seeded["uncertainty"] == first["uncertainty"]
    other = _ask(client, profile="drawn", uncertainty={"seed": "7"})
    assert other["uncertainty"]["latency_us"] != first["uncertainty"]["latency_us"]


def test_one_piece_costs_no_more_than_it_was_measured_to_take(client: httpx.Client) -> None:
    """Whole messages took 95 % of what their stages add up to; other sizes have no measurement."""
    rows = "".join(
        f"{size},0,{10 + 0.01 * size},{12 + 0.02 * size},{0.95 * (22 + 0.03 * size)}\n"
        for size in (256, 1024, 4096, 16_384, 65_536)
    )
    trace = "message_bytes,repetition,copy_us,wire_us,total_us\n" + rows
    answer = _ask(client, measurements={"content": trace})
    whole = next(one for one in answer["baselines"] if one["name"] == "one piece")
    assert whole["measured_us"] == pytest.approx(0.95 * (22 + 0.03 * 65_536))
    assert whole["latency_us"] == whole["measured_us"]
    assert {one["measured_us"] for one in answer["baselines"] if one["fragments"] != 1} == {None}
    assert answer["uncertainty"]["one_piece_measured_us"] == whole["measured_us"]
    other = _ask(client, measurements={"content": trace}, message_bytes=65_535)
    whole = next(one for one in other["baselines"] if one["name"] == "one piece")
    assert whole["measured_us"] is None
    assert whole["latency_us"] == pytest.approx(22 + 0.03 * 65_535)


def test_a_job_gives_the_same(client: httpx.Client) -> None:
    asked = {"message_bytes": 65536, "measurements": {"content": TRACE}, "strategy": "repeat"}
    started = client.post("/optimize", json=asked, headers={"Prefer": "respond-async"})
    assert started.status_code == 202
    here = _ask(client, **{**asked, "relative_gap": 1e-5})  # another question, not the stored one
    for _ in range(400):
        job = client.get(f"/jobs/{started.json()['id']}").json()
        if job["state"] == "done":
            break
        time.sleep(0.05)
    answer = client.get(f"/optimizations/{job['answer_id']}").json()
    assert answer["uncertainty"] == here["uncertainty"]


def test_typed_costs_may_have_intervals_of_their_own(client: httpx.Client) -> None:
    """A cost without one is known exactly, or by `relative`."""
    stage = MYRINET["stages"][1]
    overhead = [0.8 * stage["overhead_us"], 1.5 * stage["overhead_us"]]
    one = {"stage": stage["name"], "overhead_us": overhead}
    known = _ask(client, pipeline=MYRINET, uncertainty={"intervals": [one]})["uncertainty"]
    assert known["source"] == "intervals"
    assert known["sentence"].endswith("For costs that are known to the intervals given.")
    both = {"intervals": [one], "relative": 0.1}
    wider = _ask(client, pipeline=MYRINET, uncertainty=both)["uncertainty"]["latency_us"]
    assert wider["p95"] - wider["p05"] > known["latency_us"]["p95"] - known["latency_us"]["p05"] > 0

    def refused(*intervals: dict[str, Any]) -> str:
        asked = {"message_bytes": 4096, "pipeline": MYRINET}
        asked["uncertainty"] = {"intervals": list(intervals)}
        answer = client.post("/optimize", json=asked)
        assert answer.status_code == 422, answer.text
        pointer: str = answer.json()["errors"][0]["pointer"]
        return pointer

    assert refused({"stage": "none", "overhead_us": [1, 2]}) == "/uncertainty/intervals/0/stage"
    assert refused(one, one) == "/uncertainty/intervals/1/stage"
    above = {**one, "overhead_us": [stage["overhead_us"] + 1, stage["overhead_us"] + 2]}
    assert refused(above) == "/uncertainty/intervals/0/overhead_us"
    assert refused({"stage": stage["name"]}).startswith("/uncertainty/intervals")


def test_typed_costs_need_their_errors(client: httpx.Client) -> None:
    assert _ask(client, pipeline=MYRINET)["uncertainty"] is None
    known = _ask(client, pipeline=MYRINET, uncertainty={"relative": 0.1})["uncertainty"]
    assert known["source"] == "relative"
    assert "±10 %" in known["sentence"]
    unknown = {"current": "whole", "mtu_bytes": 1460}
    asked = {"message_bytes": 4096, "pipeline": MYRINET, "uncertainty": unknown}
    refused = client.post("/optimize", json=asked)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/uncertainty/relative"


def test_the_setting_in_use_is_what_the_decision_is_about(client: httpx.Client) -> None:
    asked = {"pipeline": MYRINET, "strategy": "repeat"}
    current = {"relative": 0.05, "current": {"repeat": 3784}}
    known = _ask(client, **asked, uncertainty=current)["uncertainty"]
    assert known["decision"] == "keep_yours"
    assert known["sentence"].startswith("Keep your 3784 B:")
    whole = {"relative": 0.05, "current": "whole"}
    known = _ask(client, **asked, uncertainty=whole)["uncertainty"]
    assert known["decision"] == "set_it"
    assert known["compared_with"] == "current"


@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        ({"draws": 49}, "/uncertainty/draws"),
        ({"draws": 2001}, "/uncertainty/draws"),
        ({"relative": 0.0}, "/uncertainty/relative"),
        ({"relative": 1.1}, "/uncertainty/relative"),
        ({"seed": "18446744073709551616"}, "/uncertainty/seed"),
        ({"seed": 7}, "/uncertainty/seed"),
        ({"current": {"repeat": 0}}, "/uncertainty/current/repeat"),
        ({"current": "half"}, "/uncertainty/current"),
        ({"mtu_bytes": 0}, "/uncertainty/mtu_bytes"),
        ({"robust": 1}, "/uncertainty/robust"),
    ],
)
def test_what_is_beyond_the_limits_is_refused(
    client: httpx.Client, given: dict[str, Any], pointer: str
) -> None:
    asked = {"message_bytes": 4096, "pipeline": MYRINET, "uncertainty": given}
    refused = client.post("/optimize", json=asked)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == pointer
    assert "^(" not in refused.json()["detail"]  # rules are words, not patterns


def test_an_answer_of_an_earlier_version_is_read_with_null(client: httpx.Client) -> None:
    answer = _ask(client, measurements={"content": TRACE})
    del answer["uncertainty"]
    assert read_output(OptimizeOut, orjson.dumps(answer)).uncertainty is None


def test_audits_exports_and_tables_of_a_fit_have_it_too(client: httpx.Client) -> None:
    """Over the draws that its answers have, by one seed."""
    answer = _ask(client, measurements={"content": TRACE}, save_as="doors")
    seed = answer["uncertainty"]["seed"]
    messages = {"min_message_bytes": 4096, "max_message_bytes": 65536}
    asked = {"profile": "doors", "setting": {"static_bytes": 4096}, **messages}
    audit = client.post("/audit", json=asked).json()
    export = client.get("/profiles/doors/exports/ucx", params=messages).text
    table = client.post("/profiles/doors/tables", json={**messages, "relative_gap": 0.01}).json()
    for found, names in (
        (audit, {"setting", "best_size", "best_size_steps"}),
        (table, {"repeats", "cuts"}),
    ):
        assert {one["name"] for one in found["uncertainty"]["settings"]} == names
    for found in (audit, table):
        known = found["uncertainty"]
        assert (known["source"], known["draws"], known["seed"]) == ("fit", 400, seed)
        assert known["messages"] <= 24
        assert known["sentence"].endswith(".")
        regrets = [one["regret"] for one in known["settings"]]
        assert all(0.0 <= one["mean"] <= one["worst_drawn"] for one in regrets)
    head = " ".join(export.replace("#", " ").split())
    assert "in 400 draws of the fitted costs, over the best repeated sizes: mean " in head
    size = int(head.split("size for every message: ")[1].split()[0])
    assert ("bytes instead: mean" in head.replace("(", "bytes ")) == bool(size & (size - 1))


def test_typed_costs_are_audited_without_draws_unless_they_have_errors(
    client: httpx.Client,
) -> None:
    asked = {"pipeline": MYRINET, "setting": {"static_bytes": 4096}, "max_message_bytes": 8192}
    assert client.post("/audit", json=asked).json()["uncertainty"] is None
    drawn = client.post("/audit", json={**asked, "uncertainty": {"relative": 0.1}}).json()
    assert drawn["uncertainty"]["source"] == "relative"
    refused = client.post("/audit", json={**asked, "max_regret": 0.1, "in_draws": 0.9})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/uncertainty/relative"
    alone = client.post("/audit", json={**asked, "in_draws": 0.9})
    assert alone.json()["errors"][0]["pointer"] == "/in_draws"


class TestBaselines:
    """Answers beside the setting in use, one piece and the defaults of systems."""

    def test_the_setting_in_use_needs_no_errors(self, client: httpx.Client) -> None:
        """Of typed costs it is one baseline more, and another question."""
        plain = _ask(client, pipeline=MYRINET)
        assert [one["name"] for one in plain["baselines"]] == [
            *("one piece", "Ethernet packet", "GAM", "equal fragments")
        ]
        answer = _ask(client, pipeline=MYRINET, uncertainty={"current": {"repeat": 16_384}})
        assert answer["uncertainty"] is None
        assert answer["id"] != plain["id"]
        current = answer["baselines"][0]
        assert (current["name"], current["static_bytes"], current["fragments"]) == (
            *("current", 16_384, 4),
        )
        assert current["latency_us"] > answer["latency_us"]
        assert current["source"] is None
        assert answer["latency_us"] == plain["latency_us"]

    def test_one_piece_is_not_told_twice(self, client: httpx.Client) -> None:
        for given in ("whole", {"repeat": 65_536}, {"repeat": 2**40}):
            found = _ask(client, pipeline=MYRINET, uncertainty={"current": given})["baselines"]
            assert [one["strategy"] for one in found].count("single") == 1
            assert found[0]["name"] == "current"
            assert found[0]["fragments"] == 1

    def test_a_forbidden_setting_says_why(self, client: httpx.Client) -> None:
        limits = {"alignment_bytes": 1000}
        current = {"current": {"repeat": 16_384}}
        answer = _ask(client, pipeline=MYRINET, constraints=limits, uncertainty=current)
        assert answer["baselines"][0]["latency_us"] is None
        assert "alignment_bytes" in answer["baselines"][0]["declined"]

    def test_defaults_have_a_source_and_keep_the_alignment(self, client: httpx.Client) -> None:
        limits = {"alignment_bytes": 14_336}
        answer = _ask(client, pipeline=MYRINET, message_bytes=2**20, constraints=limits)
        found = {one["name"]: one for one in answer["baselines"]}
        nccl = found["NCCL network"]
        assert (nccl["default_bytes"], nccl["static_bytes"]) == (131_072, 143_360)
        assert nccl["parameter"] == "NCCL_P2P_NET_CHUNKSIZE"
        assert nccl["source"].startswith("https://github.com/NVIDIA/nccl/")

    def test_the_errors_are_told_of_the_same_settings(self, client: httpx.Client) -> None:
        asked = {"relative": 0.1, "current": {"repeat": 16_384}}
        answer = _ask(client, pipeline=MYRINET, uncertainty=asked)
        against = [one["name"] for one in answer["uncertainty"]["against"]]
        baselines = [one["name"] for one in answer["baselines"]]
        assert set(against) == set(baselines) - {"equal fragments"}


def test_a_fit_whose_errors_are_not_known_says_so(client: httpx.Client) -> None:
    """A signature of two sizes: nothing tells how far they are off. With a deviation it is told."""
    trace = Path(__file__).parents[1] / "data" / "traces" / "netgauge-loggp.out"
    measured = {"measurements": {"content": trace.read_text(encoding="utf-8")}}
    answer = _ask(client, **measured, save_as="signature")
    for one in (answer, _ask(client, profile="signature")):
        assert one["uncertainty"] is None
        assert "errors_not_known" in [said["code"] for said in one["warnings"]]
    known = _ask(client, profile="signature", uncertainty={"relative": 0.1})
    assert known["uncertainty"]["source"] == "relative"
    assert "errors_not_known" not in [said["code"] for said in known["warnings"]]
    typed = _ask(client, pipeline=MYRINET)
    assert "errors_not_known" not in [said["code"] for said in typed["warnings"]]


def test_a_cut_of_very_many_sizes_says_that_it_is_not_in_the_draws(client: httpx.Client) -> None:
    """What is said is of the cut that is advised instead."""
    stages = [
        {"name": "copy", "overhead_us": 0.001, "ns_per_byte": 1.0},
        {"name": "send", "overhead_us": 0.001, "ns_per_byte": 1.0},
    ]
    asked = {"message_bytes": 2**28, "pipeline": {"stages": stages}, "strategy": "ramp"}
    answer = _ask(client, **asked, uncertainty={"relative": 0.1})
    assert answer["fragments"] * len(stages) > 20_000
    assert _codes(answer) == ["answer_not_in_draws"]
    few = _ask(client, **{**asked, "message_bytes": 2**16}, uncertainty={"relative": 0.1})
    assert _codes(few) == []


def test_limits_that_no_repeated_size_keeps_leave_nothing_to_compare(client: httpx.Client) -> None:
    limits = {"min_fragment_bytes": 3333, "max_fragment_bytes": 3334}
    asked = {"message_bytes": 10_000, "pipeline": MYRINET, "constraints": limits}
    answer = _ask(client, **asked, uncertainty={"relative": 0.1})
    assert answer["uncertainty"] is None
    assert "no_repeated_size" in _codes(answer)


def _codes(answer: dict[str, Any]) -> list[str]:
    return [warning["code"] for warning in answer["warnings"]]


def test_the_cut_for_the_worst_draw_is_there_where_it_is_asked_for(client: httpx.Client) -> None:
    asked: dict[str, Any] = {"pipeline": MYRINET, "uncertainty": {"relative": 0.1}}
    plain = _ask(client, **asked)
    assert plain["uncertainty"]["robust"] is None
    asked["uncertainty"]["robust"] = True
    answer = _ask(client, **asked)
    assert answer["id"] != plain["id"]  # another question
    robust = answer["uncertainty"]["robust"]
    assert sum(robust["fragment_bytes"]) == 65536
    assert robust["lower_bound"] <= robust["worst_regret"] < robust["answer_worst_regret"]
    assert robust["other_draws"]["p95"] < robust["answer_in_other_draws"]["p95"]
    assert not robust["is_best_size"]
    kept = read_output(OptimizeOut, orjson.dumps(answer)).uncertainty
    assert kept is not None
    has_bound = robust["lower_bound"] > 0.0  # not where the machine is too busy to find one
    assert dict(uncertainty_facts(kept))["for the worst draw"].count("%") == 3 + has_bound


def test_an_answer_says_how_its_latency_moves(client: httpx.Client) -> None:
    answer = _ask(client, pipeline=MYRINET)
    found = answer["sensitivities"]
    assert found["basis"] == "optimum"
    assert [one["name"] for one in found["stages"]] == [one["name"] for one in MYRINET["stages"]]
    assert "10 % less cost there saves" in found["sentence"]
    for one in found["stages"]:
        assert one["by_overhead"]["falling"] == pytest.approx(one["by_overhead"]["rising"])
        less, more = one["changes"]
        assert less["lower_bound_us"] <= less["best_us"] < answer["unrounded_latency_us"]
        assert more["best_us"] <= more["same_cut_us"]
    # Euler: the latency without delay is linear in all costs together.
    total_us = sum(
        one["by_overhead"]["rising"] * stage["overhead_us"]
        + one["by_ns_per_byte"]["rising"] * stage["ns_per_byte"]
        for one, stage in zip(found["stages"], MYRINET["stages"], strict=True)
    )
    assert total_us == pytest.approx(answer["unrounded_latency_us"], rel=1e-6)


def test_an_answer_of_an_earlier_version_has_no_sensitivities(client: httpx.Client) -> None:
    answer = _ask(client, pipeline=MYRINET)
    del answer["sensitivities"]
    assert read_output(OptimizeOut, orjson.dumps(answer)).sensitivities is None
