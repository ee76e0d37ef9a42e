"""Hardware profiles, their revisions, and the run-time lookup, through HTTP."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from math import isfinite
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.questions.profiles import paper_profiles, verification_by
from app.schemas.base import dump_json
from app.schemas.verification import verification_out
from domain.errors import SluiceError
from domain.pipeline import pipeline_of_lines
from domain.verification import ModelVerdict, Verification, VerifiedSize
from measuring.transfers import read_transfers
from measuring.verdict import repeated_cut
from models.documents import dump_verification, load_verification
from tests.app.serving import MYRINET, Live, serving, settings_for
from tests.support.counts import is_campaign
from tests.support.records import a_verification
from tests.support.transfers import MESSAGE, SIZES, STAGES, transfers_of

OTHER: dict[str, Any] = {
    "stages": [{"name": "only", "overhead_us": 1.5, "ns_per_byte": 2.5}],
    "delay_us": 3.0,
}
NAMES_THAT_ARE_NONE = [
    "Upper",
    "with space",
    "-dash",
    ".dot",
    "x" * 65,
    "",
    "../etc/passwd",
    "a/b",
    "a\u0000b",
    "é",
    "a@1",
    "a\n",
    "'; DROP TABLE profiles; --",
    "<script>alert(1)</script>",
    "=1+1",
]


class TestPapers:
    def test_they_are_there_from_the_first_start(self, own: Live) -> None:
        names = [one["name"] for one in own.client.get("/profiles").json()["items"]]
        assert names == sorted(one.name for one in paper_profiles())
        assert {"myrinet-gam", "gms", "disk-study", "disk-study-two-networks"} <= set(names)

    def test_table_1(self, client: httpx.Client) -> None:
        """1 KB is 1024 bytes in Tables 1 and 3."""
        profile = client.get("/profiles/myrinet-gam").json()
        assert [stage["overhead_us"] for stage in profile["pipeline"]["stages"]] == [
            7.2,
            5.2,
            7.5,
            7.4,
        ]
        assert profile["pipeline"]["stages"][1]["ns_per_byte"] == 24.9 * 1000 / 1024
        assert profile["provenance"]["origin"] == "paper"

    def test_the_disk_study(self, client: httpx.Client) -> None:
        """Five times Table 1, 1 KB = 1000 bytes, then a disk of 4 ms and 5 MB/s."""
        stages = client.get("/profiles/disk-study").json()["pipeline"]["stages"]
        assert stages[0]["overhead_us"] == 36.0
        assert stages[0]["ns_per_byte"] == 36.0
        assert stages[4] == {"name": "disk", "overhead_us": 4000.0, "ns_per_byte": 200.0}
        two = client.get("/profiles/disk-study-two-networks").json()["pipeline"]["stages"]
        assert len(two) == 9
        assert two[4] == stages[4]

    def test_a_restart_leaves_changes_alone(self, database_url: str) -> None:
        """Neither a revision nor a deletion of the others is undone; a deleted one comes back."""
        with serving(settings_for(database_url)) as first:
            first.client.put("/profiles/gms", json={"pipeline": OTHER})
            assert first.client.delete("/profiles/disk-study").status_code == 204
        with serving(settings_for(database_url)) as second:
            assert second.client.get("/profiles/gms").json()["revision"] == 2
            assert second.client.get("/profiles/disk-study").json()["revision"] == 1


class TestProfiles:
    def test_create_read_delete(self, own: Live) -> None:
        client = own.client
        body = {"name": "mine", "pipeline": OTHER, "detail": "typed in"}
        created = client.post("/profiles", json=body)
        assert created.status_code == 201
        assert created.headers["location"] == "/profiles/mine"
        profile = client.get("/profiles/mine").json()
        assert profile == created.json()
        assert profile["pipeline"] == OTHER
        assert profile["provenance"] == {"origin": "given", "detail": "typed in", "fit_id": None}
        assert client.post("/profiles", json=body).status_code == 409
        assert client.delete("/profiles/mine").status_code == 204
        assert client.get("/profiles/mine").status_code == 404
        assert client.delete("/profiles/mine").status_code == 404

    def test_revisions_are_immutable_and_current_moves(self, own: Live) -> None:
        client = own.client
        client.post("/profiles", json={"name": "p", "pipeline": MYRINET})
        assert client.put("/profiles/p", json={"pipeline": OTHER}).json()["revision"] == 2
        assert client.get("/profiles/p").json()["pipeline"] == OTHER
        back = client.post("/profiles/p/current", json={"revision": 1}).json()
        assert (back["revision"], back["latest_revision"]) == (1, 2)
        assert back["pipeline"]["stages"] == MYRINET["stages"]
        third = client.put("/profiles/p", json={"pipeline": OTHER}).json()
        assert (third["revision"], third["latest_revision"]) == (3, 3)
        revisions = client.get("/profiles/p/revisions").json()["revisions"]
        assert [one["revision"] for one in revisions] == [1, 2, 3]
        assert [one["is_current"] for one in revisions] == [False, False, True]
        assert revisions[0]["pipeline"]["stages"] == MYRINET["stages"]
        assert client.post("/profiles/p/current", json={"revision": 4}).status_code == 404

    def test_a_pinned_revision_stays(self, own: Live) -> None:
        client = own.client
        client.post("/profiles", json={"name": "p", "pipeline": MYRINET})
        client.put("/profiles/p", json={"pipeline": OTHER})
        pinned = client.post("/optimize", json={"message_bytes": 99, "profile": "p@1"}).json()
        newest = client.post("/optimize", json={"message_bytes": 99, "profile": "p"}).json()
        assert pinned["profile"] == {"name": "p", "revision": 1}
        assert newest["profile"] == {"name": "p", "revision": 2}
        assert len(pinned["pipeline"]["stages"]) == 4

    def test_a_verification_is_sent_and_said_first(self, own: Live) -> None:
        """An answer of before is not sent again, and that of another revision says nothing."""
        client, asked = own.client, {"message_bytes": 4096, "profile": "v", "strategy": "single"}
        client.post("/profiles", json={"name": "v", "pipeline": OTHER})
        before = client.post("/optimize", json=asked).json()
        assert client.post("/optimize", json=asked).json()["id"] == before["id"]
        assert "verification" not in client.get("/profiles/v").json()
        found = a_verification(ModelVerdict.DOES_NOT_HOLD)
        with own.service.context.store.unit_of_work() as unit:
            unit.profiles.verify("v", 1, replace(found, stages=("only",), reasons=()))
        shown = client.get("/profiles/v").json()["verification"]
        assert (shown["verdict"], shown["stages"]) == ("does_not_hold", ["only"])
        assert client.get("/profiles/v/revisions").json()["revisions"][0]["verification"] == shown
        after = client.post("/optimize", json=asked).json()
        assert after["id"] != before["id"]
        assert after["warnings"][0]["code"] == "model_does_not_hold"
        assert after["warnings"][0]["detail"] == shown["detail"]
        comparison = {"profile": "v", "message_bytes": [64], "strategies": ["single"]}
        compared = client.post("/compare", json=comparison).json()
        assert compared["warnings"][0]["detail"] == shown["detail"]
        page = client.get("/ui/profiles/v").text
        assert "This model does not hold here and failed its verification on 20" in page
        client.put("/profiles/v", json={"pipeline": OTHER})
        assert client.post("/optimize", json=asked).json()["warnings"] == []
        assert "does not hold here" not in client.get("/ui/profiles/v").text
        assert "warnings" not in client.post("/compare", json=comparison).json()
        pinned = client.post("/optimize", json={**asked, "profile": "v@1"}).json()
        assert pinned["id"] == after["id"]

    def test_what_transfers_left_nothing_of_is_not_set(self, own: Live) -> None:
        """Though no errors of the costs are known: today's size stays."""
        client, current = own.client, {"current": {"repeat": 16384}}
        asked = {"message_bytes": 65536, "profile": "m", "uncertainty": current}
        client.post("/profiles", json={"name": "m", "pipeline": MYRINET})
        before = client.post("/optimize", json=asked).json()
        today_us = next(
            one["latency_us"] for one in before["baselines"] if one["name"] == "current"
        )
        assert not before["set_this"]["keeps_current"]
        assert 0.01 < 1.0 - before["set_this"]["latency_us"] / today_us < 0.3
        sizes = tuple(
            VerifiedSize(size, 65536 // size, 100.0, took, took - 1.0, took + 1.0, 9)
            for size, took in ((4096, 160.0), (16384, 100.0))
        )
        found = Verification(ModelVerdict.DOES_NOT_HOLD, 65536, ("only",), sizes)
        with own.service.context.store.unit_of_work() as unit:
            unit.profiles.verify("m", 1, found)
        after = client.post("/optimize", json=asked).json()["set_this"]
        assert (after["size_bytes"], after["keeps_current"]) == (16384, True)

    def test_answers_outlive_their_profile(self, own: Live) -> None:
        client = own.client
        client.post("/profiles", json={"name": "p", "pipeline": OTHER})
        sent = client.post("/optimize", json={"message_bytes": 99, "profile": "p"})
        client.delete("/profiles/p")
        assert client.get(f"/optimizations/{sent.json()['id']}").content == sent.content
        client.post("/profiles", json={"name": "p", "pipeline": MYRINET})
        again = client.post("/optimize", json={"message_bytes": 99, "profile": "p"})
        assert again.json()["id"] != sent.json()["id"]

    def test_pages(self, own: Live) -> None:
        for number in range(5):
            own.client.post("/profiles", json={"name": f"z{number}", "pipeline": OTHER})
        seen: list[str] = []
        cursor = None
        while True:
            query = {"limit": 2, **({"cursor": cursor} if cursor else {})}
            page = own.client.get("/profiles", params=query).json()
            seen += [one["name"] for one in page["items"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert seen == sorted(seen)
        assert len(seen) == len(set(seen)) == 5 + len(paper_profiles())

    @pytest.mark.parametrize("name", NAMES_THAT_ARE_NONE)
    def test_names_that_are_none(self, live: Live, name: str) -> None:
        """Refused where they are given, unknown where they are asked for; never a 500."""
        before = live.stored()
        response = live.client.post("/profiles", json={"name": name, "pipeline": OTHER})
        assert response.status_code == 422
        assert name == "" or name not in response.text
        quoted = httpx.URL("/profiles/").copy_with(
            raw_path=b"/profiles/" + "".join(f"%{byte:02x}" for byte in name.encode()).encode()
        )
        for method in ("GET", "PUT", "DELETE"):
            content = b'{"pipeline": {"stages": [{"name":"a","overhead_us":1,"ns_per_byte":1}]}}'
            headers = {"content-type": "application/json"}
            answer = live.client.request(
                method,
                str(live.client.base_url).rstrip("/") + quoted.raw_path.decode(),
                headers=headers,
                content=content if method == "PUT" else b"",
            )
            assert answer.status_code in (404, 405), (method, answer.status_code)
            assert answer.headers["content-type"] == "application/problem+json"
        assert live.stored() == before


class TestSchedule:
    def test_solved_once_then_looked_up(self, own: Live) -> None:
        first = own.client.get("/profiles/myrinet-gam/schedule?bytes=4096")
        again = own.client.get("/profiles/myrinet-gam/schedule?bytes=4096")
        assert first.status_code == 200
        assert again.content == first.content
        assert again.headers["etag"] == first.headers["etag"]
        assert own.stored()[0] == 1
        posted = own.client.post(
            "/optimize", json={"message_bytes": 4096, "profile": "myrinet-gam"}
        )
        assert posted.content == first.content

    def test_etag(self, client: httpx.Client) -> None:
        """Strong, and If-None-Match gives 304 without a body."""
        url = "/profiles/myrinet-gam/schedule?bytes=5555"
        etag = client.get(url).headers["etag"]
        assert etag.startswith('"')
        for wanted in (etag, f'"other", {etag}', f"W/{etag}", "*"):
            response = client.get(url, headers={"if-none-match": wanted})
            assert (response.status_code, response.content) == (304, b"")
            assert response.headers["etag"] == etag
        assert client.get(url, headers={"if-none-match": '"other"'}).status_code == 200

    def test_a_new_revision_is_a_new_schedule(self, own: Live) -> None:
        url = "/profiles/gms/schedule?bytes=8192"
        before = own.client.get(url)
        own.client.put("/profiles/gms", json={"pipeline": MYRINET})
        after = own.client.get(url, headers={"if-none-match": before.headers["etag"]})
        assert after.status_code == 200
        assert after.json()["profile"]["revision"] == 2
        pinned = own.client.get("/profiles/gms@1/schedule?bytes=8192")
        assert pinned.content == before.content

    @pytest.mark.parametrize(
        ("path", "status"),
        [
            ("/profiles/none/schedule?bytes=1", 404),
            ("/profiles/gms@9/schedule?bytes=1", 404),
            ("/profiles/NO/schedule?bytes=1", 404),
            ("/profiles/gms/schedule", 422),
            ("/profiles/gms/schedule?bytes=0", 422),
            ("/profiles/gms/schedule?bytes=1e3", 422),
            ("/profiles/gms/schedule?bytes=281474976710657", 422),
            ("/profiles/gms/schedule?bytes=5&x=1", 422),
        ],
    )
    def test_refusals(self, client: httpx.Client, path: str, status: int) -> None:
        response = client.get(path)
        assert response.status_code == status
        assert response.headers["content-type"] == "application/problem+json"


MODEL = [("copy", 20.0, 1.0), ("wire", 30.0, 4.0)]
SLOWER = [("copy", 20.0, 1.0), ("wire", 30.0, 6.0)]
HEAD = "message_bytes,fragment_bytes,repetition,latency_us,preempted,1_occupied_us,1_processor_us"


def one_stage(message: int, fragment: int, latency: str, runs: int = 6, facts: str = "") -> str:
    """Equal transfers through one stage."""
    row = f"{message},{fragment},0,{latency},0,1.0,1.0\n"
    return f"# processors: 2\n# stages: a\n{facts}{HEAD}\n{row * runs}"


@pytest.fixture(scope="session")
def verified(live: Live) -> str:
    """The name of a profile with two revisions, the first of which is MODEL."""
    for number, costs in enumerate((MODEL, SLOWER)):
        stages = [{"name": n, "overhead_us": g, "ns_per_byte": c} for n, g, c in costs]
        body = {"pipeline": {"stages": stages}}
        if number == 0:
            live.client.post("/profiles", json={"name": "to-verify", **body})
        else:
            live.client.put("/profiles/to-verify", json=body)
    return "to-verify"


class TestVerification:
    """POST /profiles/{name}/verification."""

    def test_the_verdict_is_kept_with_the_revision(self, live: Live, verified: str) -> None:
        """The current one or a pinned one; answers and lookups say it, and a later one replaces."""
        client, runs = live.client, {"transfers": transfers_of(pipeline_of_lines(MODEL))}
        lookup = f"/profiles/{verified}@1/schedule?bytes=65536"
        before = client.get(lookup).headers["etag"]
        sent = client.post(f"/profiles/{verified}@1/verification", json=runs)
        assert sent.status_code == 200, sent.text
        found = sent.json()
        assert (found["revision"], found["is_current"]) == (1, False)
        verdict = found["verification"]
        assert (verdict["verdict"], verdict["stages"]) == ("holds", list(STAGES))
        assert [size["fragment_bytes"] for size in verdict["sizes"]] == sorted(SIZES)
        machine = pipeline_of_lines(MODEL)
        for size in verdict["sizes"]:
            cut = repeated_cut(MESSAGE, size["fragment_bytes"])
            assert size["predicted_us"] == machine.latency_us(cut)
            assert size["measured_us"] == pytest.approx(machine.latency_us(cut), abs=0.001)
        after = client.get(lookup)
        assert after.headers["etag"] != before
        assert after.json()["warnings"][0]["code"] == "model_holds"
        current = client.post(f"/profiles/{verified}/verification", json=runs).json()
        assert (current["revision"], current["is_current"]) == (2, True)
        assert current["verification"]["verdict"] == "does_not_hold"
        again = {"transfers": transfers_of(pipeline_of_lines(SLOWER))}
        client.post(f"/profiles/{verified}/verification", json=again)
        listed = client.get(f"/profiles/{verified}/revisions").json()["revisions"]
        assert [one["verification"]["verdict"] for one in listed] == ["holds", "holds"]

    @pytest.mark.parametrize(
        ("transfers", "code", "words"),
        [
            ("nonsense", "unreadable_trace", "sluice verify writes"),
            ("\x00", "unreadable_trace", "sluice verify writes"),
            (one_stage(64, 64, "nan"), "unreadable_trace", "cannot be read"),
            (one_stage(64, 64, "1e400"), "unreadable_trace", "cannot be read"),
            (one_stage(64, 64, "0.0001"), "unreadable_trace", "cannot be read"),
            (one_stage(64, 64, '"' + "1" * 200_000), "unreadable_trace", "cannot be read"),
            (one_stage(10**30, 10**29, "1.0"), "unreadable_trace", "at most 281474976710656 bytes"),
            (one_stage(64, 64, "1.0", facts="# stages: a, \n"), "unreadable_trace", "names"),
            (one_stage(64, 64, "1.0", facts="# stages: \x07\n"), "unreadable_trace", "names"),
            (
                one_stage(64, 64, "1.0", facts=f"# stages: {'a, ' * 64}a\n"),
                "unreadable_trace",
                "at most 64 stages",
            ),
            (one_stage(64, 64, "1.0"), "invalid_input", "the model has 2 stages, and 1 were run"),
            (transfers_of(pipeline_of_lines(MODEL), processors="0"), "invalid_input", "processors"),
            (
                transfers_of(pipeline_of_lines(MODEL), processors="9" * 5000),
                "invalid_input",
                "processors",
            ),
        ],
    )
    def test_what_are_no_transfers_of_it(
        self, live: Live, verified: str, transfers: str, code: str, words: str
    ) -> None:
        """Nothing is stored of them."""
        before = live.client.get(f"/profiles/{verified}").json()
        sent = live.client.post(f"/profiles/{verified}/verification", json={"transfers": transfers})
        problem = sent.json()
        assert (sent.status_code, problem["code"]) == (422, code), sent.text[:300]
        assert words in problem["detail"]
        assert [one["pointer"] for one in problem["errors"]] == ["/transfers"]
        assert live.client.get(f"/profiles/{verified}").json() == before

    def test_more_than_is_compared_at_once(self, live: Live, verified: str) -> None:
        """Too many sizes, and too many fragments of all of them."""
        pair = transfers_of(pipeline_of_lines(MODEL)).partition("message_bytes,")[0]
        head = f"{pair}{HEAD},2_occupied_us,2_processor_us\n"
        row = "{},{},0,9.0,0,1.0,1.0,1.0,1.0\n"
        sizes = "".join(row.format(1000, size) for size in range(1, 258))
        fragments = "".join(row.format(99_000, size) for size in range(1, 200))
        for rows, words in ((sizes, "256 fragment sizes"), (fragments, "1000000 fragments")):
            body = {"transfers": head + rows}
            sent = live.client.post(f"/profiles/{verified}/verification", json=body)
            assert sent.status_code == 422
            assert words in sent.json()["detail"]

    def test_models_that_no_transfer_is_of(self, live: Live) -> None:
        """An aggregate, and a pipeline that takes no time; a revision that is not there."""
        free = {"stages": [{"name": "a", "overhead_us": 0, "ns_per_byte": 0}]}
        part = {"overhead_us": 1, "ns_per_byte": 1}
        models: dict[str, Any] = {"free-of-cost": {"pipeline": free}}
        models["from-outside"] = {"aggregate": {"total": part, "bottleneck": part}}
        body = {"transfers": one_stage(64, 64, "1.0")}
        for name, model in models.items():
            assert live.client.post("/profiles", json={"name": name, **model}).status_code == 201
            sent = live.client.post(f"/profiles/{name}/verification", json=body)
            assert (sent.status_code, sent.json()["code"]) == (422, "invalid_input"), sent.text
        for name in ("free-of-cost@9", "no-such-profile"):
            assert live.client.post(f"/profiles/{name}/verification", json=body).status_code == 404

    def test_too_few_runs(self, live: Live, verified: str) -> None:
        """Of five no two bound the median."""
        lines = transfers_of(pipeline_of_lines(MODEL)).splitlines()
        few = "\n".join(
            line for line in lines if line.split(",")[2:3] < ["5"] or not line[0].isdigit()
        )
        sent = live.client.post(f"/profiles/{verified}/verification", json={"transfers": few})
        assert (sent.status_code, sent.json()["code"]) == (422, "not_measurable"), sent.text


NUMBERS = st.sampled_from(
    ["", "-1", "0", "1e308", "1e-308", "0.001", "nan", "inf", "1_0", str(2**48 + 1), "9" * 30]
)
TIMES_US = st.floats(0.001, 9e14)


@st.composite
def files_of_transfers(draw: st.DrawFn) -> str:
    """Mostly ones that are read: any times, and here and there a cell that is none."""
    message = draw(st.integers(1, 300))
    rows = list[str]()
    for _ in range(draw(st.integers(1, 4))):
        row = [str(message), str(draw(st.integers(1, message))), "0", repr(draw(TIMES_US)), "0"]
        row += [repr(draw(TIMES_US)) for _ in range(4)]
        if draw(st.integers(0, 19)) == 0:
            row[draw(st.integers(0, 8))] = draw(NUMBERS)
        rows += [",".join(row)] * draw(st.integers(6, 7))
    processors = draw(st.sampled_from(["1", "64", "1000000"]))
    head = f"# processors: {processors}\n# stages: a, b\n{HEAD},2_occupied_us,2_processor_us\n"
    return head + "\n".join(rows)


COST = st.one_of(st.sampled_from([0.0, 5e-324, 1e-300, 0.001]), st.floats(0.0, 1e9))


@settings(max_examples=2000 if is_campaign() else 200, deadline=None)
@given(files_of_transfers(), st.lists(st.tuples(COST, COST), min_size=1, max_size=2))
def test_every_verdict_can_be_sent_and_stored(
    transfers: str, costs: list[tuple[float, float]]
) -> None:
    """Or the file is refused; predictions are those of the evaluator on whole bytes."""
    model = pipeline_of_lines([("stage", *cost) for cost in costs])
    try:
        found = verification_by(model, read_transfers(transfers))
    except SluiceError:
        return
    sent = json.loads(dump_json(verification_out(found)), parse_constant=pytest.fail)
    for size in sent["sizes"]:
        cut = repeated_cut(found.message_bytes, size["fragment_bytes"])
        assert size["predicted_us"] == model.latency_us(cut) > 0.0
        assert isfinite(size["ratio"])
    stored = dump_verification(found)
    json.loads(stored, parse_constant=pytest.fail)
    assert load_verification(stored, datetime.now(UTC)) == found
