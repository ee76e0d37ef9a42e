"""Two real services on one database under random kills: a campaign, since each start takes long.

It prints what it measured.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx
import pytest

from models.records import JobState
from models.session import Store
from tests.app.serving import LARGE, LARGE_BYTES, MYRINET
from tests.support.chaos import Chaos, Member
from tests.support.counts import is_campaign

JOBS, KILLS = 500, 20
LEASE_S = 15
DEAD_S, FRESH_S, DELETE_S = 20.0, 2.0, 5.0  # within which work is taken over, begun and ended
GUARD_S = 1800.0  # a loaded machine starts a service in minutes
LONG_S = 900.0
ASYNC = {"prefer": "respond-async"}
LASTS_BYTES = 5_000_000_000  # its exact solve takes minutes, and has no answer before


@dataclass
class Services:
    """The members of a chaos as clients see them."""

    chaos: Chaos
    rng: random.Random

    def client(self, at: int | None = None) -> httpx.Client:
        """One that asks a member, any of them where none is said."""
        members = self.chaos.members
        address = members[self.rng.randrange(len(members)) if at is None else at].ready["address"]
        return httpx.Client(base_url=address, timeout=30.0)

    def accepted(self, body: dict[str, Any]) -> str:
        """Where a job is, asked for until somebody has accepted it."""
        end_s = time.monotonic() + GUARD_S
        while time.monotonic() < end_s:
            with suppress(httpx.HTTPError), self.client() as client:
                answer = client.post("/optimize", json=body, headers=ASYNC)
                if answer.status_code == 202:
                    return str(answer.json()["id"])
            time.sleep(0.1)
        raise AssertionError("nobody accepted a job")


def start(url: str, **more: str) -> Member:
    """A service, once it is ready."""
    environment = {
        **os.environ,
        "SLUICE_DATABASE_URL": url,
        "SLUICE_WORKERS": "1",
        "SLUICE_LEASE_S": str(LEASE_S),
        "SLUICE_DRAIN_S": "0",
        **more,
    }
    member = Member.start(("-m", "app.cli", "serve", "--port", "0", "--json"), environment)
    with httpx.Client(base_url=member.ready["address"], timeout=30.0) as client:
        seconds(lambda: _is_ready(client) or not member.lives)
    assert member.lives, "a service ended while it started"
    return member


def seconds(condition: Callable[[], bool]) -> float:
    """How long it takes until this holds."""
    began_s = time.monotonic()
    while not condition():
        assert time.monotonic() < began_s + GUARD_S, "waited in vain"
        time.sleep(0.02)
    return time.monotonic() - began_s


def _is_ready(client: httpx.Client) -> bool:
    with suppress(httpx.HTTPError):
        return client.get("/readyz").status_code == 200
    return False


def small(number: int) -> dict[str, Any]:
    """A question of this number alone."""
    return {"message_bytes": 4096 + number, "pipeline": MYRINET}


def large(number: int, time_limit_s: float) -> dict[str, Any]:
    """One that takes so long."""
    size = LARGE_BYTES + number
    return {"message_bytes": size, "pipeline": LARGE, "time_limit_s": time_limit_s}


@pytest.fixture
def services(store: Store, database_url: str) -> Iterator[Services]:
    """Two services."""
    rng = random.Random(13)
    chaos = Chaos(store, database_url, partial(start, database_url), rng)
    chaos.populate(2)
    yield Services(chaos, rng)
    chaos.close()


def lasting(number: int) -> dict[str, Any]:
    """One that takes longer than a test looks at it."""
    return large(LASTS_BYTES + number - LARGE_BYTES, LONG_S) | {
        "strategy": "exact",
        "relative_gap": 1e-9,
    }


def every_job_is_done_once(services: Services, store: Store) -> None:
    """500 jobs, 20 kills of services and 20 of workers, one service stopped beyond its lease."""
    chaos, rng = services.chaos, services.rng
    deeds = [chaos.kill_member] * KILLS + [chaos.kill_worker] * KILLS
    rng.shuffle(deeds)
    jobs: list[str] = []
    for number in range(JOBS):
        body = large(number, 20.0) if number % 50 == 0 else small(number)
        jobs.append(services.accepted(body))
        if number % (JOBS // len(deeds)) == 5 and deeds:
            deeds.pop()()
    for deed in deeds:
        deed()
    services.accepted(large(JOBS, 60.0))
    began_s = time.monotonic()
    chaos.stop_member(GUARD_S)
    seconds(lambda: _sum_of(services, "sluice_fenced_total") >= 1)
    print(f"stopped beyond its lease and fenced after {time.monotonic() - began_s:.1f} s")
    waited_s = seconds(lambda: not _open(chaos))
    with store.reading() as unit:
        found = [unit.jobs.get(job) for job in jobs]
        kept = [answer.id for answer in unit.answers.list(limit=10**6)]
    print(
        f"{chaos.killed} services and {chaos.workers_killed} workers killed; "
        f"claims {_counts(job.claim for job in found)}, "
        f"losses {_counts(job.losses for job in found)}, "
        f"crashes {_counts(job.crashes for job in found)}; the last ended after {waited_s:.0f} s"
    )
    assert {job.state for job in found} == {JobState.DONE}
    assert sorted(kept) == sorted({str(job.answer_id) for job in found} | set(kept))
    assert len(kept) == len(set(jobs)) + 1


def work_goes_where_there_is_room(services: Services, database_url: str, store: Store) -> None:
    """Fresh work, the work of a service that was killed or stopped, and an end from elsewhere."""
    chaos = services.chaos
    accepts = start(database_url, SLUICE_RUN_JOBS="0")
    try:
        with httpx.Client(base_url=accepts.ready["address"], timeout=30.0) as client:
            fresh_s = max(_begun_after(client, store, small(10_000 + n)) for n in range(20))
            _begun_after(client, store, lasting(1))
            job = _newest(store)
            assert client.delete(f"/jobs/{job}").status_code == 202
            delete_s = seconds(lambda: client.get(f"/jobs/{job}").json()["state"] == "cancelled")
            _begun_after(client, store, lasting(2))
            job = _newest(store)
            holder = next(member for member in chaos.members if chaos.held_by(member))
            holder.kill()
            killed_s = seconds(lambda: _claim(store, job) == 2)
            chaos.members[chaos.members.index(holder)] = start(database_url)
            holder = next(member for member in chaos.members if chaos.held_by(member))
            holder.process.send_signal(signal.SIGSTOP)
            stopped_s = seconds(lambda: _claim(store, job) == 3)
            holder.process.send_signal(signal.SIGCONT)
            client.delete(f"/jobs/{job}")
    finally:
        accepts.kill()
    print(
        f"fresh work of another service begun after {fresh_s:.2f} s at most of 20; "
        f"a deleted job of another service ended after {delete_s:.2f} s; "
        f"the work of a killed one taken after {killed_s:.2f} s, of a stopped one {stopped_s:.2f} s"
    )
    assert fresh_s <= FRESH_S
    assert delete_s <= DELETE_S
    assert max(killed_s, stopped_s) <= DEAD_S


def _begun_after(client: httpx.Client, store: Store, body: dict[str, Any]) -> float:
    """Seconds from the acceptance of a job until somebody runs it."""
    job = client.post("/optimize", json=body, headers=ASYNC).json()["id"]
    return seconds(lambda: _claim(store, job) > 0)


def _newest(store: Store) -> str:
    with store.reading() as unit:
        return unit.jobs.list(limit=1)[0].id


def _claim(store: Store, job: str) -> int:
    with store.reading() as unit:
        return unit.jobs.get(job).claim


def _open(chaos: Chaos) -> int:
    states = chaos.states()
    return states[JobState.QUEUED] + states[JobState.RUNNING]


def _sum_of(services: Services, metric: str) -> float:
    total = 0.0
    for at in range(len(services.chaos.members)):
        with suppress(httpx.HTTPError), services.client(at) as client:
            for line in client.get("/metrics").text.splitlines():
                if line.startswith(f"{metric} "):
                    total += float(line.split()[1])
    return total


def _counts(values: Any) -> dict[int, int]:
    found: dict[int, int] = {}
    for value in values:
        found[value] = found.get(value, 0) + 1
    return dict(sorted(found.items()))


if is_campaign():

    def test_every_job_is_done_once(services: Services, store: Store) -> None:
        every_job_is_done_once(services, store)

    def test_work_goes_where_there_is_room(
        services: Services, database_url: str, store: Store
    ) -> None:
        work_goes_where_there_is_room(services, database_url, store)
