"""Jobs of several processes, while these are killed and stopped: each is done, and done once."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from functools import partial

import pytest

from models.records import JobState
from models.session import Store
from tests.jobs.support import accepted, answers, found, wait_until
from tests.support.chaos import Chaos, Member
from tests.support.counts import count

JOBS = 50
LEASE_S = 2.0
GUARD_S = 60.0
LOOK_S = 0.05  # between two looks at all jobs, which are work themselves


@pytest.fixture
def chaos(store: Store, database_url: str) -> Iterator[Chaos]:
    """Two runners with real workers."""
    command = ("-m", "tests.jobs.runner_process", database_url, str(LEASE_S))
    made = Chaos(
        store, database_url, partial(Member.start, command, dict(os.environ)), random.Random(13)
    )
    made.populate(2)
    yield made
    made.close()


LONG_JOBS = 10


def _are_ended(states: dict[str, int]) -> bool:
    return not states[JobState.QUEUED] + states[JobState.RUNNING]


def test_every_job_is_done_once_whatever_dies(chaos: Chaos, store: Store) -> None:
    """A runner and workers are killed, one runner is stopped for longer than its lease."""
    rng = random.Random(7)
    number = count(JOBS * 10)
    jobs = [accepted(store, at, "lasts", wall_s=rng.uniform(0.02, 0.12)) for at in range(number)]
    deeds = [chaos.kill_worker, chaos.kill_member, chaos.kill_worker] * max(1, number // JOBS)
    rng.shuffle(deeds)
    for at, deed in enumerate(deeds):
        enough = number * (at + 1) // (len(deeds) + 2)
        wait_until(lambda enough=enough: chaos.states()[JobState.DONE] >= enough, every_s=LOOK_S)
        deed()
    # Long ones, so that whoever is stopped is at one of them.
    jobs += [accepted(store, number + at, "lasts", wall_s=1.0) for at in range(LONG_JOBS)]
    short, number = number, number + LONG_JOBS

    def are_at_long_ones() -> bool:
        states = chaos.states()
        return states[JobState.DONE] >= short and states[JobState.RUNNING] >= len(chaos.members)

    wait_until(are_at_long_ones, every_s=LOOK_S)
    chaos.stop_member(GUARD_S)
    wait_until(lambda: _are_ended(chaos.states()), every_s=LOOK_S)
    stated = [json.loads(member.stop()) for member in chaos.members]
    assert [found(store, job).state for job in jobs] == [JobState.DONE] * number
    assert answers(store) == [*range(number)]
    assert sum(one["fenced"] for one in stated) >= 1, "nothing came too late: it shows nothing"
    assert (chaos.killed > 0, chaos.workers_killed > 0, chaos.stopped) == (True, True, 1)
