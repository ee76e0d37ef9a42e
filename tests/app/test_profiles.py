"""Hardware profiles, their revisions, and the run-time lookup, through HTTP."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import httpx
import pytest

from app.questions.profiles import paper_profiles
from domain.verification import ModelVerdict
from tests.app.serving import MYRINET, Live, serving, settings_for
from tests.support.records import a_verification

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
