"""Compilations, exports and audits as durable jobs."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count as numbers
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from app.operations.operation import Operation, Report
from app.operations.tasks import prepare_request
from app.questions import tables
from app.questions.source import Stored
from app.schemas.base import dump_json, read_output
from contract.jobs import JobOut
from domain.errors import StoreUnavailable
from models.records import JobRecord, JobState
from tests.app.scripted_solver import WAITS
from tests.app.serving import (
    GUARD_S,
    MYRINET,
    Live,
    scripted_engine,
    serving,
    settings_for,
    wait_for_end,
    wait_until,
)
from tests.app.test_jobs import ASYNC, killable, question
from tests.app.work_here import WorkHere
from tests.support.engines import solver_gate

RANGE = {"min_message_bytes": 4096, "max_message_bytes": 4100}
ONE = {"min_message_bytes": 4096, "max_message_bytes": 4096}
SETTING = {
    "steps": [{"from_bytes": 1, "size_bytes": 2048}, {"from_bytes": 9000, "size_bytes": None}]
}
AGGREGATE = {
    "total": {"name": "all", "overhead_us": 10.0, "ns_per_byte": 5.0},
    "bottleneck": {"name": "slowest", "overhead_us": 5.0, "ns_per_byte": 2.0},
}
_NAMES = numbers(1)


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> WorkHere:
    """Jobs work in the thread."""
    made = WorkHere()
    made.patch(monkeypatch)
    return made


@pytest.fixture
def name(client: httpx.Client) -> str:
    """A profile of this test."""
    return profile(client)


def profile(client: httpx.Client, **more: Any) -> str:
    """A new profile."""
    chosen = f"work-{next(_NAMES)}"
    body = {"name": chosen, "pipeline": MYRINET, **more}
    assert client.post("/profiles", json=body).status_code == 201
    return chosen


def start(client: httpx.Client, kind: str, name: str, **more: Any) -> httpx.Response:
    """Ask for a job of this kind."""
    if kind == "table":
        where = f"/profiles/{name}/tables"
        return client.post(where, json={**RANGE, **more}, headers=ASYNC)
    if kind == "audit":
        body = {"profile": name, "setting": SETTING, **ONE, **more}
        return client.post("/audit", json=body, headers=ASYNC)
    where = f"/profiles/{name}/exports/{more.pop('target', 'ucx')}"
    return client.get(where, params={**ONE, **more}, headers=ASYNC)


def accepted(response: httpx.Response) -> str:
    """Where the job is."""
    assert response.status_code == 202, response.text
    read_output(JobOut, response.content)
    return response.headers["location"]


def record(live: Live, location: str) -> JobRecord:
    with live.service.context.store.reading() as unit:
        return unit.jobs.get(location.rpartition("/")[2])


class TestResults:
    def test_each_has_the_document_that_is_else_the_answer(
        self, client: httpx.Client, name: str, work: WorkHere
    ) -> None:
        """The profile is pinned, and steps are counted to the last."""
        table = wait_for_end(client, accepted(start(client, "table", name)))
        assert client.get(f"/tables/{table['table']['digest']}").json() == table["table"]
        assert client.get(f"/profiles/{name}/table").json() == table["table"]
        export = wait_for_end(client, accepted(start(client, "export", name)))
        where = f"/profiles/{name}/exports/ucx"
        direct = client.get(where, params=ONE)
        assert export["export"]["text"] == direct.text
        assert export["export"]["file_name"] in direct.headers["content-disposition"]
        assert export["export"]["media_type"] == direct.headers["content-type"]
        audit = wait_for_end(client, accepted(start(client, "audit", name)))
        assert audit["audit"]["setting"]["steps"] == SETTING["steps"]
        for job, kind in ((table, "table"), (export, "export"), (audit, "audit")):
            read_output(JobOut, dump_json(job))
            assert (job["kind"], job["state"], job["attempts"], job["error"]) == (
                kind,
                "done",
                1,
                None,
            )
            assert job[kind]["profile"] == {"name": name, "revision": 1}
            others = {"best", "comparison", "table", "export", "audit", "answer_id"} - {kind}
            assert [job[other] for other in others] == [None] * 5
        assert audit["progress"]["steps_done"] == audit["progress"]["steps_total"] == 1

    def test_a_long_text_comes_once(self, client: httpx.Client, live: Live, work: WorkHere) -> None:
        """While the job is open, events have its steps and no result."""
        work.run = work.waits
        name = profile(client)
        location = accepted(start(client, "audit", name))
        wait_until(lambda: client.get(location).json()["progress"]["steps_done"] == 1)
        running = client.get(location).json()
        assert (running["state"], running["audit"]) == ("running", None)
        assert running["progress"]["steps_total"] == 2
        assert record(live, location).best is None
        work.gate.set()
        text = client.get(location + "/events").text
        last = json.loads(text.rpartition("data: ")[2])
        assert (last["state"], last["error"]["code"]) == ("failed", "memory_limit")

    def test_a_stored_table_is_done_at_once(
        self, client: httpx.Client, name: str, work: WorkHere
    ) -> None:
        """And chosen where that is asked for, whichever was chosen since."""
        first = client.post(f"/profiles/{name}/tables", json=ONE).json()
        job = start(client, "table", name, **ONE).json()
        assert (job["state"], job["attempts"], job["table"]) == ("done", 0, first)
        assert start(client, "table", name, **ONE).json() == job
        other = wait_for_end(client, accepted(start(client, "table", name, activate=True)))
        active = f"/profiles/{name}/table"
        assert client.get(active).json() == other["table"]
        for _ in range(2):
            assert start(client, "table", name, **ONE, activate=True).json()["table"] == first
            assert client.get(active).json() == first
            client.post(active, json={"digest": other["table"]["digest"]})
        assert len(work.asked) == 2

    def test_a_short_export_is_done_at_once(self, client: httpx.Client, name: str) -> None:
        """Without a process."""
        job = start(client, "export", name, target="loggopsim").json()
        assert job["state"] == "done"
        assert job["export"]["text"] == client.get(f"/profiles/{name}/exports/loggopsim").text

    @pytest.mark.parametrize(
        ("kind", "more", "status", "code"),
        [
            ("table", {"name": "nothing-here"}, 404, "not_found"),
            ("table", {"min_message_bytes": 9, "max_message_bytes": 8}, 422, "inconsistent_input"),
            ("export", {"name": "nothing-here"}, 404, "not_found"),
            ("export", {"target": "nccl"}, 409, "conflict"),
            ("export", {"option": "odd:1"}, 422, "inconsistent_input"),
            ("export", {"table": "0" * 64}, 404, "not_found"),
            ("audit", {"name": "nothing-here"}, 404, "not_found"),
            ("audit", {"workload": []}, 422, "invalid_input"),
            ("audit", {"min_message_bytes": 9, "max_message_bytes": 8}, 422, "inconsistent_input"),
        ],
    )
    def test_what_is_wrong_is_said_at_once(
        self, live: Live, name: str, kind: str, more: dict[str, Any], status: int, code: str
    ) -> None:
        """And nothing is stored."""
        before = live.stored()
        found = start(live.client, kind, **{"name": name, **more})
        assert (found.status_code, found.json()["code"]) == (status, code)
        assert live.stored() == before

    def test_an_aggregate_has_tables_and_exports_of_sizes_alone(self, client: httpx.Client) -> None:
        """Its export states the premise; what needs stages is declined."""
        name = profile(client, pipeline=None, aggregate=AGGREGATE)
        found = start(client, "export", name, target="simgrid")
        assert (found.status_code, found.json()["code"]) == (422, "strategy_declined")
        job = wait_for_end(client, accepted(start(client, "table", name)))
        assert job["state"] == "done"
        job = wait_for_end(client, accepted(start(client, "export", name, target="ucx")))
        assert job["state"] == "done"
        assert "premise: the latency is taken" in job["export"]["text"]


class TestTheSameQuestion:
    @pytest.mark.parametrize("kind", ["table", "audit", "export"])
    def test_is_asked_once(
        self, client: httpx.Client, name: str, work: WorkHere, kind: str
    ) -> None:
        """Joined while it is open; failed and cancelled it is asked anew; done it is there."""
        work.run = work.waits
        first = accepted(start(client, kind, name))
        assert accepted(start(client, kind, name)) == first
        assert accepted(start(client, kind, f"{name}@1")) == first
        wait_until(lambda: client.get(first).json()["progress"]["steps_done"] == 1)
        assert client.delete(first).status_code in (200, 202)
        assert wait_for_end(client, first)["state"] == "cancelled"
        second = accepted(start(client, kind, name))
        work.gate.set()
        failed = wait_for_end(client, second)
        assert (failed["state"], failed["error"]["code"]) == ("failed", "memory_limit")
        work.run = None
        third = accepted(start(client, kind, name))
        assert len({first, second, third}) == 3
        done = wait_for_end(client, third)
        assert done["state"] == "done"
        assert start(client, kind, name).json() == done
        assert len(work.asked) == 3

    def test_another_question_is_another_job(
        self, live: Live, name: str, work: WorkHere, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Another revision, setting, compiled table, fragment cap, or version of the program."""
        client, places = live.client, set()

        def ask(kind: str, at: str = name, **more: Any) -> None:
            location = accepted(start(client, kind, at, **more))
            assert location not in places
            assert wait_for_end(client, location)["state"] == "done"
            places.add(location)

        def ask_all() -> None:
            for kind in ("export", "audit"):
                ask(kind)

        ask_all()
        ask("audit", setting={"whole": True})
        ask("export", objective="worst")
        ask("table")
        ask("export")  # now by the active table; an audit does not use it
        monkeypatch.setattr("app.operations.operation.VERSION", "0.0.0")
        ask_all()
        context = live.service.context
        lower = replace(context.settings, max_fragments=context.settings.max_fragments - 1)

        def prepare(kind: str, request: bytes, stored: Stored) -> Operation[Any]:
            return prepare_request(kind, request, stored, lower)

        with monkeypatch.context() as patched:
            patched.setattr(live.service, "context", replace(context, settings=lower))
            patched.setattr(live.service.runner, "_prepare", prepare)
            ask_all()
        pipeline = {**MYRINET, "delay_us": 1.0}
        assert client.put(f"/profiles/{name}", json={"pipeline": pipeline}).status_code == 200
        ask_all()

    def test_a_job_answers_the_question_that_it_ran_for(
        self, live: Live, name: str, work: WorkHere, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Accepted under one limit and run under another: it is found under the other."""
        context = live.service.context
        lower = replace(context.settings, max_fragments=7)
        with monkeypatch.context() as patched:
            patched.setattr(live.service, "context", replace(context, settings=lower))
            location = accepted(start(live.client, "audit", name))
        done = wait_for_end(live.client, location)
        assert start(live.client, "audit", name).json() == done

    def test_a_table_that_was_deleted_is_compiled_again(
        self, client: httpx.Client, name: str, work: WorkHere
    ) -> None:
        """Its job is done, and yet not taken: lookups have nothing from it."""
        first = accepted(start(client, "table", name))
        wait_for_end(client, first)
        assert client.delete(f"/profiles/{name}").status_code == 204
        client.post("/profiles", json={"name": name, "pipeline": MYRINET})
        assert client.get(f"/profiles/{name}/tables").json()["items"] == []
        second = accepted(start(client, "table", name))
        assert second != first
        assert wait_for_end(client, second)["state"] == "done"

    def test_a_profile_that_was_made_anew_meanwhile_gets_no_table_of_the_old_one(
        self, client: httpx.Client, name: str, work: WorkHere
    ) -> None:
        """Of the same name and number; its lookups would be answered for another pipeline."""

        def meanwhile(question: Any, report: Report) -> object:
            client.delete(f"/profiles/{name}")
            pipeline = {"stages": MYRINET["stages"][1:]}
            client.post("/profiles", json={"name": name, "pipeline": pipeline})
            return tables.compile_table(question)

        work.run = meanwhile
        job = wait_for_end(client, accepted(start(client, "table", name)))
        assert (job["state"], job["error"]["code"]) == ("failed", "conflict")
        assert client.get(f"/profiles/{name}/table").status_code == 404
        # The old pipeline has gone, so of the same question this is another job.
        assert wait_for_end(client, accepted(start(client, "table", name)))["state"] == "done"

    def test_who_asks_may_wait_a_little(self, live: Live, name: str, work: WorkHere) -> None:
        """For a job that ends soon; no longer than was said for another."""
        location = accepted(start(live.client, "audit", name))
        service = live.service
        ended = asyncio.run(service.settled(record(live, location), within_s=GUARD_S))
        assert ended.state is JobState.DONE
        work.run = work.waits
        location = accepted(start(live.client, "export", name))
        is_open = asyncio.run(service.settled(record(live, location), within_s=0.1))
        assert not is_open.state.is_terminal
        work.gate.set()
        wait_for_end(live.client, location)


@pytest.mark.parametrize("kind", ["table", "audit", "export"])
def test_a_database_that_is_away_costs_no_job(
    live: Live, name: str, work: WorkHere, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Neither while it runs nor at its end: what was found is written once it is back."""
    tries, here = numbers(), work.here
    runner = live.service.runner
    assert runner is not None
    store = runner._store
    monkeypatch.setattr(runner, "_options", replace(runner._options, retry_s=0.01))

    def away() -> None:
        if next(tries) > 3:
            monkeypatch.undo()
        raise StoreUnavailable("the database is away")

    def meanwhile(question: Any, report: Report) -> object:
        monkeypatch.setattr(store, "unit_of_work", away)
        while next(tries) < 2:
            report.steps(1, 2)
            time.sleep(0.02)
        return here(question, report)

    work.run = meanwhile
    job = wait_for_end(live.client, accepted(start(live.client, kind, name)))
    assert (job["state"], job["attempts"]) == ("done", 1)
    assert next(tries) > 4


def test_events_go_on_after_a_moment_without_the_database(
    live: Live, name: str, work: WorkHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream stays open; the end comes once it can be seen."""
    work.run = work.waits
    location = accepted(start(live.client, "audit", name))
    tries, store = numbers(), live.service.context.store
    reading = store.reading

    def away() -> None:
        if next(tries) == 3:
            monkeypatch.setattr(store, "reading", reading)
            work.gate.set()
        raise StoreUnavailable("the database is away")

    with live.client.stream("GET", location + "/events") as stream:
        lines = stream.iter_lines()
        assert next(lines) == "id: 1"
        monkeypatch.setattr(store, "reading", away)
        assert [line for line in lines if line.startswith("event")][-1] == "event: failed"
    assert next(tries) > 3


class TestLines:
    def test_long_work_does_not_hold_up_solving(
        self, live: Live, name: str, work: WorkHere
    ) -> None:
        """However many compilations there are; one slot for long work is left to clients."""
        work.run = work.waits
        runner = live.service.runner
        assert runner is not None
        sizes = range(4097, 4101)
        asked = [start(live.client, "table", name, max_message_bytes=size) for size in sizes]
        places = [accepted(response) for response in asked]
        wait_until(lambda: (runner.running, runner.waiting) == (1, 3))
        body = {"message_bytes": 4096, "profile": "gms"}
        solved = live.client.post("/optimize", json=body, headers=ASYNC).headers["location"]
        assert wait_for_end(live.client, solved)["state"] == "done"
        states = [live.client.get(place).json()["state"] for place in places]
        assert states == ["running", "queued", "queued", "queued"]
        assert live.client.delete(places[-1]).json()["state"] == "cancelled"
        wait_until(lambda: runner.waiting == 2)
        work.gate.set()
        ends = [wait_for_end(live.client, place)["state"] for place in places]
        assert ends == ["failed", "failed", "failed", "cancelled"]


@pytest.fixture
def open_gate() -> Iterator[Callable[[], None]]:
    """Opens the gate that scripted solvers wait at: what waits ends."""
    yield solver_gate().touch
    solver_gate().unlink(missing_ok=True)


class TestProcesses:
    def test_a_service_that_stops_leaves_its_jobs_open(
        self, tmp_path: Path, open_gate: Callable[[], None]
    ) -> None:
        """Their processes are ended, and the next service goes on with them."""
        settings = settings_for(f"sqlite:///{tmp_path / 'sluice.db'}")
        with serving(settings, open_engine=scripted_engine) as live:
            location = accepted(start(live.client, "table", "gms"))
            wait_until(lambda: live.client.get(location).json()["progress"]["steps_done"] == 1)
            waits = question(WAITS, time_limit_s=GUARD_S)
            solve = live.client.post("/optimize", json=waits, headers=ASYNC)
            solved = solve.headers["location"]
            wait_until(lambda: live.client.get(solved).json()["state"] == "running")
            store = live.service.context.store
        with store.reading() as unit:
            assert unit.runners.all() == ()
            left = unit.jobs.list(limit=9)
        store.dispose()
        assert {(job.state, job.claim, job.losses) for job in left} == {(JobState.QUEUED, 1, 0)}
        open_gate()
        with serving(settings, open_engine=scripted_engine) as restarted:
            job = wait_for_end(restarted.client, location)
            assert (job["state"], job["attempts"]) == ("done", 2)
            other = wait_for_end(restarted.client, solved)
            assert (other["state"], other["attempts"]) == ("done", 2)
            assert restarted.client.get(f"/tables/{job['table']['digest']}").status_code == 200

    def test_kill_9_of_a_serving_process(
        self, database_url: str, open_gate: Callable[[], None]
    ) -> None:
        """What ran then is done by the next one, once; the processes that ran it go at once."""
        with killable(database_url) as (process, client):
            location = accepted(start(client, "table", "gms"))
            waits = question(WAITS, time_limit_s=GUARD_S)
            solve = client.post("/optimize", json=waits, headers=ASYNC)
            solved = solve.headers["location"]
            answered = client.post("/optimize", json={"message_bytes": 99, "profile": "gms"})
            wait_until(lambda: client.get(solved).json()["state"] == "running")
            wait_until(lambda: client.get(location).json()["progress"]["steps_done"] == 1)
            children = psutil.Process(process.pid).children(recursive=True)
            assert len(children) >= 4  # of each pool a guardian and what it guards
            process.send_signal(signal.SIGKILL)
            process.wait(GUARD_S)
            wait_until(lambda: not any(child.is_running() for child in children))
        read_back = f"/optimizations/{answered.json()['id']}"
        open_gate()
        with serving(settings_for(database_url), open_engine=scripted_engine) as restarted:
            job = wait_for_end(restarted.client, location)
            assert (job["state"], job["attempts"]) == ("done", 2)
            assert job["progress"]["steps_done"] == 1000
            listed = restarted.client.get("/profiles/gms/tables").json()["items"]
            assert [one["digest"] for one in listed] == [job["table"]["digest"]]
            assert accepted(start(restarted.client, "table", "gms")) == location
            job = wait_for_end(restarted.client, solved)
            assert (job["state"], job["attempts"]) == ("done", 2)
            assert restarted.client.get(f"/optimizations/{job['answer_id']}").status_code == 200
            assert restarted.client.get(read_back).content == answered.content
            assert restarted.stored()[0] == 2
