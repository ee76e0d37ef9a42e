"""Durable jobs: accepted, watched, cancelled, run again after a crash."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.jobs.ledger import Heartbeat, RunnerOptions, accept_job, this_process
from app.operations.tasks import prepare_request
from app.questions.source import Stored
from app.schemas.base import dump_json, read_output
from app.settings import Settings
from contract.jobs import JobOut
from domain.solution import Status
from models.records import MAX_CRASHES, MAX_LOSSES, Blame, JobRecord
from models.session import Store, UnitOfWork, create_store
from tests.app.scripted_solver import ANSWERS, CRASHES, IMPROVES, WAITS
from tests.app.serving import (
    GUARD_S,
    LARGE,
    LARGE_BYTES,
    MYRINET,
    Live,
    scripted_engine,
    serving,
    settings_for,
    wait_for_end,
    wait_until,
)
from tests.support.engines import solver_gate

ASYNC = {"prefer": "respond-async"}
IMPATIENT = httpx.Timeout(GUARD_S, read=0.5)  # of the answer alone: to be heard may take longer
CHECKOUT = Path(__file__).parents[2]


def question(behaviour: str, **more: Any) -> dict[str, Any]:
    """A question that goes to the engine, whose solver does as the first stage says."""
    stages = [{"name": behaviour, "overhead_us": 9.0, "ns_per_byte": 9.0}, *LARGE["stages"]]
    return {"message_bytes": LARGE_BYTES, "pipeline": {"stages": stages}, **more}


@pytest.fixture
def gate() -> Iterator[Callable[[], None]]:
    """Opens the gate that solvers wait at."""
    yield solver_gate().touch
    solver_gate().unlink(missing_ok=True)


@pytest.fixture
def gated(gate: Callable[[], None], database_url: str) -> Iterator[Live]:
    """A server of one test whose solvers wait at its gate, on each database in turn."""
    with serving(settings_for(database_url), open_engine=scripted_engine) as running:
        yield running


@contextmanager
def killable(database_url: str) -> Iterator[tuple[subprocess.Popen[bytes], httpx.Client]]:
    """A server in a process of its own, whose solvers follow the script."""
    command = [sys.executable, "-m", "tests.app.scripted_server", database_url]
    with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=GUARD_S) as client:
                wait_until(lambda: client.get("/readyz").status_code == 200)
                yield process, client
        finally:
            process.kill()


class TestAccept:
    def test_202_with_the_address_of_a_durable_job(self, own: Live) -> None:
        """Quick questions too; the row is there before the answer."""
        body = {"message_bytes": 4096, "pipeline": MYRINET}
        response = own.client.post("/optimize", json=body, headers=ASYNC)
        assert response.status_code == 202
        assert response.headers["preference-applied"] == "respond-async"
        read_output(JobOut, response.content)
        job = wait_for_end(own.client, response.headers["location"])
        assert (job["state"], job["attempts"], job["error"]) == ("done", 1, None)
        answer = own.client.get(f"/optimizations/{job['answer_id']}").json()
        assert answer["fragment_bytes"] == job["best"]["fragment_bytes"]
        assert answer["latency_us"] == job["progress"]["best_latency_us"]
        read_output(JobOut, dump_json(job))

    def test_a_stored_answer_is_the_answer_of_the_job(self, client: httpx.Client) -> None:
        body = {"message_bytes": 6001, "profile": "gms"}
        stored = client.post("/optimize", json=body).json()["id"]
        location = client.post("/optimize", json=body, headers=ASYNC).headers["location"]
        assert wait_for_end(client, location)["answer_id"] == stored

    @pytest.mark.parametrize(
        "prefer", ["respond-async", "wait=5, respond-async", "Respond-Async; x=y"]
    )
    def test_spellings(self, client: httpx.Client, prefer: str) -> None:
        body = {"message_bytes": 64, "profile": "gms"}
        response = client.post("/optimize", json=body, headers={"prefer": prefer})
        assert response.status_code == 202
        wait_for_end(client, response.headers["location"])

    def test_any_solving_call(self, client: httpx.Client) -> None:
        looked_up = client.get("/profiles/gms/schedule?bytes=777", headers=ASYNC)
        assert looked_up.status_code == 202
        assert wait_for_end(client, looked_up.headers["location"])["state"] == "done"
        compared = client.post(
            "/compare",
            json={"profile": "gms", "message_bytes": [777], "strategies": ["auto", "ramp"]},
            headers=ASYNC,
        )
        assert compared.status_code == 202
        job = wait_for_end(client, compared.headers["location"])
        read_output(JobOut, dump_json(job))
        assert [row["strategy"] for row in job["comparison"]["rows"]] == ["auto", "ramp"]
        assert job["comparison"]["rows"][1]["declined"]

    @pytest.mark.parametrize(
        ("body", "status"),
        [
            ({"message_bytes": 1, "profile": "nothing-here"}, 404),
            ({"message_bytes": 0, "profile": "gms"}, 422),
            (
                {
                    "message_bytes": 9,
                    "profile": "gms",
                    "constraints": {"max_fragment_bytes": 2, "max_fragments": 2},
                },
                422,
            ),
        ],
        ids=["unknown profile", "invalid", "infeasible"],
    )
    def test_bad_input_is_refused_at_once_and_stores_nothing(
        self, live: Live, body: dict[str, Any], status: int
    ) -> None:
        before = live.stored()
        assert live.client.post("/optimize", json=body, headers=ASYNC).status_code == status
        assert live.stored() == before

    def test_the_profile_is_pinned_when_the_job_is_accepted(self, own: Live) -> None:
        location = own.client.get("/profiles/gms/schedule?bytes=64", headers=ASYNC).headers[
            "location"
        ]
        wait_for_end(own.client, location)
        with own.service.context.store.reading() as unit:
            job = unit.jobs.list(limit=10)[0]
        assert json.loads(job.request)["profile"] == "gms@1"

    @pytest.mark.parametrize("id", ["0" * 32, "x", "%00", "..%2f"])
    def test_unknown_jobs(self, client: httpx.Client, id: str) -> None:
        for method, path in (("GET", ""), ("GET", "/events"), ("DELETE", "")):
            response = client.request(method, f"/jobs/{id}{path}")
            assert response.status_code == 404
            assert response.headers["content-type"] == "application/problem+json"


class TestProgress:
    def test_the_best_so_far_is_shown_while_it_runs(
        self, gate: Callable[[], None], gated: Live
    ) -> None:
        location = gated.client.post("/optimize", json=question(IMPROVES), headers=ASYNC).headers[
            "location"
        ]
        wait_until(lambda: gated.client.get(location).json()["best"] is not None)
        job = gated.client.get(location).json()
        assert job["state"] == "running"
        assert job["progress"]["best_latency_us"] == job["best"]["latency_us"]
        assert job["progress"]["lower_bound_us"] == 1.0
        gate()
        assert wait_for_end(gated.client, location)["best"]["fragments"] == 4

    @pytest.mark.usefixtures("native_kernels")
    def test_the_history_has_every_improvement_that_was_seen(
        self, gate: Callable[[], None], gated: Live
    ) -> None:
        """Latency and bound with their moment; the last point is the end."""
        location = gated.client.post("/optimize", json=question(IMPROVES), headers=ASYNC).headers[
            "location"
        ]
        wait_until(lambda: gated.client.get(location).json()["best"] is not None)
        running = gated.client.get(location).json()["progress"]
        assert len(running["history"]) == 1
        gate()
        ended = wait_for_end(gated.client, location)["progress"]
        assert ended["history"][0] == running["history"][0]
        assert len(ended["history"]) == 2
        for name in ("best_latency_us", "lower_bound_us"):
            assert ended["history"][-1][name] == ended[name]
        timestamps = [point["elapsed_s"] for point in ended["history"]]
        assert timestamps == sorted(timestamps)
        assert timestamps[-1] <= ended["elapsed_s"] + 0.1

    def test_events_end_with_the_job(self, gate: Callable[[], None], gated: Live) -> None:
        location = gated.client.post("/optimize", json=question(IMPROVES), headers=ASYNC).headers[
            "location"
        ]
        events: list[tuple[str, str]] = []
        with gated.client.stream("GET", location + "/events") as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            name = ""
            for line in stream.iter_lines():
                key, _, value = line.partition(": ")
                if key == "event":
                    name = value
                elif key == "data":
                    events.append((name, value))
                    if json.loads(value)["best"] is not None:
                        gate()
        assert [name for name, _ in events[:-1]] == ["progress"] * (len(events) - 1)
        assert events[-1][0] == "done"
        last = json.loads(events[-1][1])
        assert last == gated.client.get(location).json()
        assert gated.service.counts.open_streams == 0

    def test_events_of_a_job_that_has_ended(self, client: httpx.Client) -> None:
        location = client.get("/profiles/gms/schedule?bytes=65", headers=ASYNC).headers["location"]
        wait_for_end(client, location)
        text = client.get(location + "/events", headers={"last-event-id": "6"}).text
        assert text.startswith("id: 7\nevent: done\ndata: {")
        assert text.count("event:") == 1


class TestCancel:
    def test_a_running_job_keeps_its_best_answer(self, scripted: Live) -> None:
        """Stored as an answer that says it was cut off."""
        client = scripted.client
        location = client.post("/optimize", json=question(IMPROVES), headers=ASYNC).headers[
            "location"
        ]
        wait_until(lambda: client.get(location).json()["best"] is not None)
        assert client.delete(location).status_code in (200, 202)
        job = wait_for_end(client, location)
        assert (job["state"], job["cancel_requested"]) == ("cancelled", True)
        answer = client.get(f"/optimizations/{job['answer_id']}").json()
        assert (answer["status"], answer["fragments"]) == (Status.TIME_LIMIT, 2)
        assert client.delete(location).status_code == 200
        assert client.get(location).json()["state"] == "cancelled"

    def test_a_job_without_an_answer_ends_without_one(self, scripted: Live) -> None:
        client, before = scripted.client, scripted.stored()[0]
        location = client.post("/optimize", json=question(WAITS), headers=ASYNC).headers["location"]
        wait_until(lambda: client.get(location).json()["state"] == "running")
        client.delete(location)
        job = wait_for_end(client, location)
        assert (job["state"], job["answer_id"], job["best"]) == ("cancelled", None, None)
        assert scripted.stored()[0] == before

    def test_a_waiting_job_ends_at_once(self, scripted: Live) -> None:
        client = scripted.client
        behind = [
            client.post(
                "/optimize", json=question(WAITS, message_bytes=LARGE_BYTES + n), headers=ASYNC
            ).headers["location"]
            for n in range(4)
        ]
        wait_until(lambda: scripted.service.runner.waiting > 0)
        response = client.delete(behind[-1])
        assert (response.status_code, response.json()["state"]) == (200, "cancelled")
        assert response.json()["attempts"] == 0
        for location in behind[:-1]:
            client.delete(location)
            assert wait_for_end(client, location)["state"] == "cancelled"

    def test_a_client_that_goes_away_cancels_its_solve(self, scripted: Live) -> None:
        before = scripted.stored()[0]
        with pytest.raises(httpx.ReadTimeout):
            scripted.client.post("/optimize", json=question(WAITS), timeout=IMPATIENT)
        wait_until(lambda: scripted.service.counts.pending_tasks == 0)
        # The only worker is free again.
        answer = scripted.client.post("/optimize", json=question(ANSWERS))
        assert answer.json()["fragments"] == 4
        assert scripted.stored()[0] == before + 1


class TestFailure:
    def test_the_problem_is_kept(self, scripted: Live) -> None:
        """A solver that crashes, again and again, fails its job and nothing else."""
        client = scripted.client
        location = client.post("/optimize", json=question(CRASHES), headers=ASYNC).headers[
            "location"
        ]
        job = wait_for_end(client, location)
        assert job["state"] == "failed"
        assert (job["error"]["code"], job["attempts"]) == ("solver_failed", MAX_CRASHES)
        read_output(JobOut, dump_json(job))
        assert client.post("/optimize", json=question(ANSWERS)).status_code == 200

    def test_a_limit_without_an_answer_is_named(self, scripted: Live) -> None:
        body = question(WAITS, time_limit_s=0.2)
        location = scripted.client.post("/optimize", json=body, headers=ASYNC).headers["location"]
        job = wait_for_end(scripted.client, location)
        assert (job["state"], job["error"]["code"]) == ("failed", "time_limit")
        direct = scripted.client.post("/optimize", json=body)
        assert (direct.status_code, direct.json()["code"]) == (422, "time_limit")

    def test_a_declined_strategy_fails_the_job(self, client: httpx.Client) -> None:
        body = {"message_bytes": 64, "profile": "gms", "strategy": "ramp"}
        location = client.post("/optimize", json=body, headers=ASYNC).headers["location"]
        job = wait_for_end(client, location)
        assert (job["state"], job["error"]["code"]) == ("failed", "strategy_declined")


def test_a_restart(database_url: str) -> None:
    """Jobs that were queued or running when the process died end, each with one answer.

    What another process is at is left to it, a cancel that was asked for holds, and a job that was
    lost too often is given up.
    """
    store = create_store(database_url)
    begun, elsewhere, unwanted, deadly, queued = (stored(store, n) for n in range(5))
    there = Heartbeat(store, RunnerOptions(), lambda: None)
    there.start()
    with store.unit_of_work() as unit:
        unit.runners.register("gone", process=ended_process())
        for job, runner in ((begun, "gone"), (elsewhere, there.name), (unwanted, "gone")):
            assert claim(unit, runner).id == job.id
        unit.jobs.cancel(unwanted.id)
        for _ in range(MAX_LOSSES - 1):
            unit.jobs.give_back(claim(unit, "gone"), Blame.LOSS)
        assert claim(unit, "gone").id == deadly.id
    with serving(settings_for(database_url)) as restarted:
        jobs = (queued, begun, unwanted, deadly)
        ends = [wait_for_end(restarted.client, f"/jobs/{job.id}") for job in jobs]
        assert [end["state"] for end in ends] == ["done", "done", "cancelled", "failed"]
        assert [end["attempts"] for end in ends] == [1, 2, 1, MAX_LOSSES]
        assert ends[3]["error"]["code"] == "solver_failed"
        left = restarted.client.get(f"/jobs/{elsewhere.id}").json()
        assert (left["state"], left["attempts"]) == ("running", 1)
        assert restarted.stored()[0] == 2
    there.close()
    store.dispose()


def stored(store: Store, number: int) -> JobRecord:
    """A job of a question of this number."""
    request = json.dumps({"message_bytes": 4096 + number, "pipeline": MYRINET}).encode()
    with store.reading() as unit:
        operation = prepare_request("optimize", request, Stored.of_unit(unit), Settings())
    return accept_job(store, operation)


def claim(unit: UnitOfWork, runner: str) -> JobRecord:
    """The oldest job that waits."""
    found = unit.jobs.claim(runner)
    assert found is not None
    return found


def ended_process() -> str:
    """A process of this machine that is no more."""
    machine, number, _ = this_process().split()
    return f"{machine} {number} 0.00"
