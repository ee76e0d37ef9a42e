"""What every job repository tells of jobs that end and of those that wait. Run on each database."""

from __future__ import annotations

from contextlib import suppress

from models.records import MAX_LOSSES, JobEnd, JobState, Waiting
from models.session import Store
from tests.contracts.job_repository import claimed
from tests.support.records import a_job


class JobEndContract:
    """Ends are told once, and what waits by its kind."""

    def test_each_end_is_told_once_it_is_committed(self, store: Store) -> None:
        """By whoever wrote it, with the code of its error; what was rolled back is not."""
        told: list[JobEnd] = []
        store.watch_job_ends(told.extend)
        waits, done, fails, lost = a_job(), a_job(), a_job(), a_job()
        with store.unit_of_work() as work:
            for job in (done, fails, lost):
                work.jobs.add(job)
            first, second, third = (claimed(work) for _ in range(3))
            work.jobs.add(waits)
        assert told == []
        error = b'{"code": "time_limit"}'
        with suppress(ZeroDivisionError), store.unit_of_work() as work:
            work.jobs.finish(first, JobState.DONE)
            raise ZeroDivisionError
        with store.unit_of_work() as work:
            work.jobs.cancel(waits.id)
            work.jobs.cancel(waits.id)
            work.jobs.finish(first, JobState.DONE)
            work.jobs.finish(second, JobState.FAILED, error=error)
            work.jobs.give_back(third)
        for _ in range(MAX_LOSSES):
            assert {(one.state, one.code) for one in told} == {
                (JobState.CANCELLED, ""),
                (JobState.DONE, ""),
                (JobState.FAILED, "time_limit"),
            }
            with store.unit_of_work() as work:
                claimed(work)
                work.jobs.recover("x", error=b'{"code": "solver_failed"}')
        assert [(one.kind, one.state, one.code) for one in told] == [
            ("optimize", JobState.CANCELLED, ""),
            ("optimize", JobState.DONE, ""),
            ("optimize", JobState.FAILED, "time_limit"),
            ("optimize", JobState.FAILED, "solver_failed"),
        ]
        assert [one.run_s is None for one in told] == [True, False, False, False]

    def test_what_waits_is_told_by_kind(self, store: Store) -> None:
        """With the oldest of each; what runs waits no more."""
        jobs = [a_job(), a_job(kind="audit"), a_job(), a_job(kind="table")]
        with store.unit_of_work() as work:
            for job in jobs:
                work.jobs.add(job)
            claimed(work)
            assert work.jobs.waiting_by_kind() == (
                Waiting("audit", 1, jobs[1].created_at),
                Waiting("optimize", 1, jobs[2].created_at),
                Waiting("table", 1, jobs[3].created_at),
            )
