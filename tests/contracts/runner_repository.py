"""What every runner repository does. Run on each database."""

from __future__ import annotations

import pytest

from domain.errors import Conflict
from models.records import MAX_LOSSES, JobState, RunnerRecord
from models.session import Store
from tests.support.records import a_job


class RunnerContract:
    """A runner beats until it leaves or is removed, and then has nothing."""

    def test_a_runner_beats_until_it_is_removed(self, store: Store) -> None:
        """Its name is used once; whoever was removed learns it at the next beat."""
        with store.unit_of_work() as work:
            for name in ("x", "y"):
                work.runners.register(name, process="here")
        with store.unit_of_work() as work, pytest.raises(Conflict):
            work.runners.register("x")
        with store.unit_of_work() as work:
            assert [work.runners.beat("x"), work.runners.beat("x")] == [True, True]
            assert work.runners.all() == (
                RunnerRecord("x", 2, "here"),
                RunnerRecord("y", 0, "here"),
            )
            assert work.runners.remove("x") == 0
            assert not work.runners.beat("x")
            assert work.runners.remove("x") is None
            assert work.runners.all() == (RunnerRecord("y", 0, "here"),)

    def test_only_who_has_not_beaten_since_is_removed(self, store: Store) -> None:
        """A beat between the last look and the removal saves it, and its jobs."""
        with store.unit_of_work() as work:
            work.runners.register("x")
            work.jobs.add(a_job())
            job = work.jobs.claim("x")
            seen = work.runners.all()[0].beats
            work.runners.beat("x")
            assert work.runners.remove("x", beats=seen) is None
            assert job is not None
            assert work.jobs.get(job.id) == job
            assert work.runners.remove("x", beats=seen + 1) == 1

    def test_what_a_removed_runner_ran_is_queued_again(self, store: Store) -> None:
        """As a loss; what somebody asked to stop is cancelled, what was lost too often failed."""
        waits, stops, dies, elsewhere = (a_job() for _ in range(4))
        with store.unit_of_work() as work:
            for job in (waits, stops):
                work.jobs.add(job)
            work.jobs.add(a_job(id=dies.id, losses=MAX_LOSSES - 1))
            work.runners.register("x")
            work.runners.register("y")
            for _ in range(3):
                assert work.jobs.claim("x") is not None
            work.jobs.add(elsewhere)
            assert work.jobs.claim("y") is not None
            work.jobs.cancel(stops.id)
            assert work.runners.remove("x", error=b"lost") == 3
            after = {job.id: job for job in work.jobs.list(limit=9)}
        found = after[waits.id]
        assert (found.state, found.claim, found.losses) == (JobState.QUEUED, 1, 1)
        assert (found.runner, found.started_at, found.error) == (None, None, None)
        assert (after[stops.id].state, after[stops.id].error) == (JobState.CANCELLED, None)
        assert (after[dies.id].state, after[dies.id].error) == (JobState.FAILED, b"lost")
        assert (after[elsewhere.id].state, after[elsewhere.id].runner) == (JobState.RUNNING, "y")
