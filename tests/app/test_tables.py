"""Compiled plan tables through HTTP."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from http.client import HTTPConnection
from itertools import count as numbers
from pathlib import Path
from typing import Any

import httpx
import pytest

import solvers
from app.errors import RETRY_AFTER_S
from app.operations import table_work
from app.questions.tables import CompiledTable, TableQuestion, compile_table
from domain.errors import MemoryLimitReached, SluiceError, SolverFailed, TimeLimitReached
from domain.schedule import latency_us
from exports.table.slt import decode
from exports.table.twin import decode_json
from tests.app.serving import MYRINET, serving, settings_for, wait_until
from tests.support.long_work import SLOTS, GatedRun, long_here_engine, note_questions
from tests.support.plan_tables import whole_messages

BODY: dict[str, Any] = {"min_message_bytes": 100, "max_message_bytes": 1000, "relative_gap": 0.01}
_NAMES = numbers(1)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[TableQuestion]:
    """Compilations are whole messages, made in this process; gives what was compiled."""
    monkeypatch.setattr(solvers, "compile_table", whole_messages)
    return note_questions(monkeypatch, table_work, "compile_table")


@pytest.fixture
def name(client: httpx.Client) -> str:
    """A profile of this test."""
    chosen = f"tables-{next(_NAMES)}"
    created = client.post("/profiles", json={"name": chosen, "pipeline": MYRINET})
    assert created.status_code == 201
    return chosen


class TestCompiling:
    def test_the_answer_tells_of_the_table(
        self, client: httpx.Client, name: str, quick: list[TableQuestion]
    ) -> None:
        """Every field against the file itself."""
        answer = client.post(f"/profiles/{name}/tables", json=BODY)
        reported = answer.json()
        assert (answer.status_code, answer.headers["location"]) == (
            201,
            f"/tables/{reported['digest']}",
        )
        file = client.get(answer.headers["location"] + "?format=slt").content
        assert hashlib.sha256(file).hexdigest() == reported["digest"]
        stored = decode(file)
        assert (stored.profile, stored.revision) == (name, 1)
        assert reported["profile"] == {"name": name, "revision": 1}
        assert {key: reported[key] for key in BODY} == BODY
        assert reported["constraints"] == {
            "min_fragment_bytes": 1,
            "max_fragment_bytes": None,
            "alignment_bytes": 1,
            "max_fragments": None,
        }
        assert (reported["file_bytes"], reported["cut_entries"]) == (
            len(file),
            len(stored.table.cuts),
        )
        assert reported["repeat_entries"] == len(stored.table.repeats) == 3
        assert reported["worst"] == {"from_bytes": 550, "to_bytes": 999, "relative_gap": 0.25}
        assert reported["worst_repeat"]["relative_gap"] == 0.0
        assert reported["missed"] == [{"from_bytes": 550, "to_bytes": 1000, "relative_gap": 0.25}]
        assert (reported["missed_total"], reported["missed_bytes"]) == (1, 451)
        assert reported["counts"] == [{"from_bytes": 100, "to_bytes": 1000, "fragments": 1}]
        assert [one["code"] for one in reported["warnings"]] == ["tolerance_missed"]
        assert reported["pipeline"]["stages"] == MYRINET["stages"]
        assert len(quick) == 1

    def test_the_same_question_gives_the_stored_table(
        self, client: httpx.Client, name: str, quick: list[TableQuestion]
    ) -> None:
        """Byte for byte, with 200; pinned to the revision too; another question is compiled."""
        first = client.post(f"/profiles/{name}/tables", json=BODY)
        for same in (name, f"{name}@1"):
            again = client.post(f"/profiles/{same}/tables", json=BODY)
            assert (again.status_code, again.content) == (200, first.content)
            assert again.headers["location"] == first.headers["location"]
        assert len(quick) == 1
        for change in (
            {"min_message_bytes": 99},
            {"max_message_bytes": 1001},
            {"relative_gap": 0.02},
            {"constraints": {"alignment_bytes": 4}},
            {"constraints": {"max_fragments": 4}},
        ):
            other = client.post(f"/profiles/{name}/tables", json={**BODY, **change})
            assert other.status_code == 201
            assert other.json()["digest"] != first.json()["digest"]
        assert len(quick) == 6

    def test_the_defaults(
        self, client: httpx.Client, name: str, quick: list[TableQuestion]
    ) -> None:
        """1 B to 16 MiB within 0.1 %."""
        reported = client.post(f"/profiles/{name}/tables", json={}).json()
        assert (reported["min_message_bytes"], reported["max_message_bytes"]) == (1, 16_777_216)
        assert (reported["relative_gap"], reported["fragment_cap"]) == (0.001, 100_000)
        assert quick[0].fragment_cap == 100_000

    def test_a_new_revision_has_tables_of_its_own(
        self, client: httpx.Client, name: str, quick: list[TableQuestion]
    ) -> None:
        """The current one unless one is pinned; those of the first stay."""
        first = client.post(f"/profiles/{name}/tables", json=BODY).json()
        other = {"stages": MYRINET["stages"][:2]}
        client.put(f"/profiles/{name}", json={"pipeline": other})
        second = client.post(f"/profiles/{name}/tables", json=BODY).json()
        assert second["profile"]["revision"] == 2
        assert client.post(f"/profiles/{name}@1/tables", json=BODY).json() == first

        def listed(reference: str) -> list[str]:
            items = client.get(f"/profiles/{reference}/tables").json()["items"]
            return [one["digest"] for one in items]

        assert listed(name) == [second["digest"], first["digest"]]
        assert listed(f"{name}@1") == [first["digest"]]
        assert len(quick) == 2

    def test_an_aggregate_has_a_table_of_repeated_sizes(self, client: httpx.Client) -> None:
        """Its schedules repeat them, and it says so; costs of no pipeline are refused."""
        costs = {"name": "all", "overhead_us": 9.0, "ns_per_byte": 2.0}
        slow = {"name": "slow", "overhead_us": 3.0, "ns_per_byte": 1.0}
        chosen = f"tables-{next(_NAMES)}"
        body = {"name": chosen, "aggregate": {"total": costs, "bottleneck": slow}}
        assert client.post("/profiles", json=body).status_code == 201
        found = client.post(f"/profiles/{chosen}/tables", json=BODY).json()
        assert "repeated_sizes_alone" in [one["code"] for one in found["warnings"]]
        assert [stage["name"] for stage in found["pipeline"]["stages"]][-1] == "bottleneck"
        assert found["worst_repeat"]["relative_gap"] <= found["relative_gap"]
        size = BODY["max_message_bytes"]
        answer = client.get(f"/profiles/{chosen}/schedule?bytes={size}").json()
        fragments = answer["fragment_bytes"]
        assert sum(fragments) == size
        assert len(set(fragments[:-1])) <= 1
        body["aggregate"] = {"total": slow, "bottleneck": costs}
        body["name"] = f"tables-{next(_NAMES)}"
        client.post("/profiles", json=body)
        refused = client.post(f"/profiles/{body['name']}/tables", json=BODY)
        assert (refused.status_code, refused.json()["code"]) == (422, "strategy_declined")

    @pytest.mark.parametrize(
        ("change", "pointer"),
        [
            ({"min_message_bytes": 0}, "/min_message_bytes"),
            ({"min_message_bytes": 1001}, "/max_message_bytes"),
            ({"max_message_bytes": 2**48 + 1}, "/max_message_bytes"),
            ({"relative_gap": 0}, "/relative_gap"),
            ({"relative_gap": 1e-7}, "/relative_gap"),
            ({"relative_gap": 2}, "/relative_gap"),
            ({"constraints": {"alignment_bytes": 0}}, "/constraints/alignment_bytes"),
            ({"strategy": "exact"}, "/strategy"),
        ],
    )
    def test_a_bad_question_names_its_field(
        self,
        client: httpx.Client,
        quick: list[TableQuestion],
        change: dict[str, Any],
        pointer: str,
    ) -> None:
        refused = client.post("/profiles/myrinet-gam/tables", json={**BODY, **change})
        assert refused.status_code == 422
        assert [one["pointer"] for one in refused.json()["errors"]] == [pointer]
        assert quick == []

    @pytest.mark.parametrize("reference", ["absent", "myrinet-gam@99", "Upper", "a@b"])
    def test_an_unknown_profile_is_not_found(self, client: httpx.Client, reference: str) -> None:
        """To compile for, and to list the tables of."""
        for response in (
            client.post(f"/profiles/{reference}/tables", json=BODY),
            client.get(f"/profiles/{reference}/tables"),
        ):
            assert (response.status_code, response.json()["code"]) == (404, "not_found")


class TestEndings:
    @pytest.mark.parametrize(
        ("ending", "status"),
        [
            (TimeLimitReached("the compilation took longer than 120 s"), 422),
            (MemoryLimitReached("the compilation needed more memory"), 422),
            (SolverFailed("the process of the compilation ended unexpectedly"), 500),
        ],
    )
    def test_what_ends_it_is_said_and_nothing_is_stored(
        self,
        client: httpx.Client,
        name: str,
        monkeypatch: pytest.MonkeyPatch,
        ending: SluiceError,
        status: int,
    ) -> None:
        """An overrun, too much memory, a kill."""

        def ended(*_: Any) -> CompiledTable:
            raise ending

        monkeypatch.setattr(table_work, "compile_table", ended)
        refused = client.post(f"/profiles/{name}/tables", json=BODY)
        assert (refused.status_code, refused.json()["code"]) == (status, ending.code)
        assert client.get(f"/profiles/{name}/tables").json()["items"] == []

    def test_a_profile_that_goes_meanwhile_is_a_conflict(
        self,
        client: httpx.Client,
        name: str,
        quick: list[TableQuestion],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """409, and nothing is stored."""

        def deleting(question: TableQuestion, *more: Any) -> CompiledTable:
            assert client.delete(f"/profiles/{name}").status_code == 204
            return compile_table(question, *more)

        monkeypatch.setattr(table_work, "compile_table", deleting)
        refused = client.post(f"/profiles/{name}/tables", json=BODY)
        assert (refused.status_code, refused.json()["code"]) == (409, "conflict")

    def test_only_so_many_at_once_and_none_for_who_left(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A client that leaves ends its compilation; the one too many is told when to come back."""
        held = GatedRun()
        monkeypatch.setattr(table_work.TableWork, "run", held.as_method())
        settings = settings_for(f"sqlite:///{tmp_path / 'sluice.db'}")
        with serving(settings, open_engine=partial(long_here_engine, max_waiting=1)) as live:
            leaving = [HTTPConnection("127.0.0.1", live.port) for _ in range(3)]
            for number, connection in enumerate(leaving, 1):
                headers = {"Content-Type": "application/json"}
                connection.request("POST", "/profiles/gms/tables", json.dumps(BODY), headers)
                wait_until(lambda: held.running == min(number, SLOTS))  # noqa: B023  (called here)
            wait_until(lambda: live.service.counts.pending_tasks == 3)
            refused = live.client.post("/profiles/gms/tables", json=BODY)
            assert refused.status_code == 503
            assert int(refused.headers["retry-after"]) in RETRY_AFTER_S
            assert live.client.get("/healthz").status_code == 200
            for connection in leaving:
                connection.close()
            wait_until(lambda: held.running == 0 and live.service.counts.pending_tasks == 0)
            assert held.started >= SLOTS


class TestStored:
    def test_the_three_forms(
        self, client: httpx.Client, name: str, quick: list[TableQuestion]
    ) -> None:
        """By parameter and by media type; each under a strong tag of its own. Files are immutable,
        and what is told of one says what was measured since.
        """
        answer = client.post(f"/profiles/{name}/tables", json=BODY)
        digest, where = answer.json()["digest"], answer.headers["location"]
        forms = {
            "slt": ("application/vnd.sluice.table", f'"{digest}"'),
            "json": ("application/vnd.sluice.table+json", f'"{digest}-json"'),
            "summary": ("application/json", f'"{digest}-summary"'),
        }
        bodies = {}
        for form, (media, tag) in forms.items():
            for response in (
                client.get(where, params={"format": form}),
                client.get(where, headers={"Accept": f"text/html;q=0.2, {media}"}),
            ):
                assert response.status_code == 200
                assert response.headers["content-type"] == media
                assert response.headers["etag"] == tag
                kept = "no-cache" if form == "summary" else "private, max-age=31536000, immutable"
                assert response.headers["cache-control"] == kept
                assert response.headers["vary"] == "Accept"
                assert bodies.setdefault(form, response.content) == response.content
            held = client.get(where, params={"format": form}, headers={"If-None-Match": tag})
            assert (held.status_code, held.content, held.headers["etag"]) == (304, b"", tag)
        assert bodies["summary"] == answer.content == client.get(where).content
        assert decode(bodies["slt"]) == decode_json(bodies["json"])
        octets = client.get(where, headers={"Accept": "application/octet-stream"})
        assert octets.content == bodies["slt"]
        assert octets.headers["content-disposition"].endswith('.slt"')

    @pytest.mark.parametrize("digest", ["0" * 64, "0" * 63, "F" * 64, "a b", "%00"])
    def test_an_unknown_digest_is_not_found(self, client: httpx.Client, digest: str) -> None:
        refused = client.get(f"/tables/{digest}")
        assert (refused.status_code, refused.json()["code"]) == (404, "not_found")

    def test_an_unknown_form_is_refused(self, client: httpx.Client) -> None:
        """It names its parameter."""
        refused = client.get(f"/tables/{'0' * 64}?format=xml")
        assert refused.status_code == 422
        assert refused.json()["errors"][0]["pointer"] == "/format"

    def test_a_table_outlives_its_profile(
        self, client: httpx.Client, name: str, quick: list[TableQuestion]
    ) -> None:
        """Under its digest; a profile that is stored again compiles its own, and gets it back."""
        first = client.post(f"/profiles/{name}/tables", json=BODY)
        where = first.headers["location"]
        file = client.get(where + "?format=slt").content
        client.delete(f"/profiles/{name}")
        assert client.get(where + "?format=slt").content == file
        assert client.get(where).content == first.content
        client.post("/profiles", json={"name": name, "pipeline": MYRINET})
        assert client.get(f"/profiles/{name}/tables").json()["items"] == []
        again = client.post(f"/profiles/{name}/tables", json=BODY)
        assert (again.status_code, again.headers["location"]) == (201, where)
        assert len(client.get(f"/profiles/{name}/tables").json()["items"]) == 1
        assert len(quick) == 2

    def test_pages(self, client: httpx.Client, name: str, quick: list[TableQuestion]) -> None:
        """Newest first, with what a page shows; a cursor that is none is refused."""
        bodies = [{**BODY, "max_message_bytes": 500 + at} for at in range(5)]
        made = [client.post(f"/profiles/{name}/tables", json=body).json() for body in bodies]
        seen: list[dict[str, Any]] = []
        cursor: str | None = ""
        while cursor is not None:
            query = {"limit": 2, **({"cursor": cursor} if cursor else {})}
            page = client.get(f"/profiles/{name}/tables", params=query).json()
            seen += page["items"]
            cursor = page["next_cursor"]
        assert [one["digest"] for one in seen] == [one["digest"] for one in reversed(made)]
        shown = seen[0].keys() - {"warnings"}
        newest = {key: made[-1][key] for key in shown if key in made[-1]}
        worst = made[-1]["worst"]["relative_gap"]
        assert seen[0] == {
            **newest,
            "worst_relative_gap": worst,
            "active": False,
            "warnings": [],
        }
        assert [one["active"] for one in seen] == [False] * 4 + [True]
        refused = client.get(f"/profiles/{name}/tables?cursor=nonsense")
        assert refused.status_code == 422


def test_a_table_of_the_paper_is_compiled_for_real(client: httpx.Client) -> None:
    """In a process of its own; what is read is as good as it says, against solving anew."""
    body = {"min_message_bytes": 1000, "max_message_bytes": 9000}
    reported = client.post("/profiles/myrinet-gam/tables", json=body).json()
    assert (reported["missed"], reported["warnings"]) == ([], [])
    assert reported["worst"]["relative_gap"] <= 1e-3
    table = decode(client.get(f"/tables/{reported['digest']}?format=slt").content).table
    for message in range(1000, 9000, 397):
        question = {"message_bytes": message, "profile": "myrinet-gam"}
        best = client.post("/optimize", json=question).json()
        latency = latency_us(table.pipeline, table.cut_at(message))
        assert latency <= best["latency_us"] * (1.0 + table.relative_gap_at(message)) * (1 + 1e-9)
        assert latency >= best["lower_bound_us"] * (1.0 - 1e-9)
