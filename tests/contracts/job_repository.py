"""What every job repository does. Run on each database."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    rule,
    run_state_machine_as_test,
)

from domain.errors import Conflict, NotFound
from models.records import JobRecord, JobState
from models.session import Store
from tests.support.counts import count
from tests.support.records import MOMENT, a_job, an_answer

ENDS = tuple(state for state in JobState if state.is_terminal)


class JobContract:
    """A job is queued, runs, and ends once."""

    def test_a_job_reads_back_equal(self, store: Store) -> None:
        """Every field."""
        answer = an_answer()
        full = a_job(
            state=JobState.DONE,
            started_at=MOMENT,
            finished_at=MOMENT,
            attempts=3,
            best_latency_us=1 / 3,
            lower_bound_us=0.1,
            best=b"\x00\xff",
            request_digest="d" * 64,
            steps_done=3,
            steps_total=2**31 - 1,
            answer_id=answer.id,
            error=b"{}",
            cancel_requested=True,
            runner="somewhere",
        )
        plain = a_job()
        with store.unit_of_work() as work:
            work.answers.add(answer)
            work.jobs.add(full)
            work.jobs.add(plain)
        with store.reading() as work:
            assert work.jobs.get(full.id) == full
            assert work.jobs.get(plain.id) == plain
            assert work.jobs.shown(full.id) == replace(full, request=b"")

    def test_an_identifier_is_used_once(self, store: Store) -> None:
        """The second job under it is a conflict."""
        job = a_job()
        with store.unit_of_work() as work:
            work.jobs.add(job)
        with store.unit_of_work() as work, pytest.raises(Conflict):
            work.jobs.add(a_job(id=job.id, kind="other"))

    @pytest.mark.parametrize("job_id", ["absent", "\x00"])
    def test_an_unknown_job_is_not_found(self, store: Store, job_id: str) -> None:
        """By every method that takes one; a claim just fails."""
        with store.unit_of_work() as work:
            for call in (
                lambda: work.jobs.get(job_id),
                lambda: work.jobs.shown(job_id),
                lambda: work.jobs.update(job_id, attempts=1),
                lambda: work.jobs.update(job_id),
                lambda: work.jobs.finish(job_id, JobState.DONE),
            ):
                with pytest.raises(NotFound):
                    call()
            assert not work.jobs.claim(job_id)

    def test_a_job_is_found_by_its_question(self, store: Store) -> None:
        """The newest in one of these states; none that was asked to stop."""
        first, second, other = (a_job(request_digest=digest) for digest in ("a", "a", "b"))
        every = tuple(JobState)
        with store.unit_of_work() as work:
            for job in (first, second, other, a_job()):
                work.jobs.add(job)
            assert work.jobs.find("a", *every) == second
            work.jobs.finish(second.id, JobState.FAILED)
            assert work.jobs.find("a", JobState.QUEUED, JobState.DONE) == first
            work.jobs.claim(first.id)
            assert work.jobs.find("a", JobState.QUEUED, JobState.DONE) is None
            running = work.jobs.find("a", JobState.RUNNING)
            assert running is not None
            assert running.id == first.id
            work.jobs.update(first.id, cancel_requested=True)
            assert work.jobs.find("a", JobState.RUNNING) is None
            work.jobs.update(other.id, request_digest="c")
            assert [work.jobs.find(one, *every) for one in ("b", "", "\x00")] == [None] * 3

    def test_a_job_is_claimed_once(self, store: Store) -> None:
        """The claim starts it; put back into the queue it can be claimed again."""
        job = a_job()
        with store.unit_of_work() as work:
            work.jobs.add(job)
            assert [work.jobs.claim(job.id), work.jobs.claim(job.id)] == [True, False]
            running = work.jobs.get(job.id)
            assert (running.state, running.attempts) == (JobState.RUNNING, 1)
            assert running.started_at is not None
            work.jobs.update(job.id, state=JobState.QUEUED)
            assert work.jobs.claim(job.id)
            assert work.jobs.get(job.id).attempts == 2

    def test_what_a_dead_process_left_is_taken_up(self, store: Store) -> None:
        """With what waits, the oldest first; what runs elsewhere and what has ended is left."""
        jobs = [a_job(kind=kind) for kind in "abcdef"]
        queued, ended, *running = jobs
        with store.unit_of_work() as work:
            assert work.jobs.runners() == set()
            for job in jobs:
                work.jobs.add(job)
            for job, runner in zip(running, ("x", "y", "x", None), strict=True):
                work.jobs.claim(job.id, runner=runner)
            work.jobs.finish(ended.id, JobState.DONE)
        with store.unit_of_work() as work:
            assert work.jobs.runners() == {"x", "y", None}
            assert work.jobs.take_up([]) == {queued.id: "a"}
            taken = work.jobs.take_up(["x", "z"])
            assert list(taken.items()) == [(jobs[n].id, jobs[n].kind) for n in (0, 2, 4)]
            assert work.jobs.runners() == {"y", None}
            assert [*work.jobs.take_up([None])] == [jobs[n].id for n in (0, 2, 4, 5)]
            assert work.jobs.get(jobs[2].id).attempts == 1
            running_still = work.jobs.get(jobs[3].id)
            assert (running_still.state, running_still.runner) == (JobState.RUNNING, "y")

    def test_a_released_job_was_never_claimed(self, store: Store) -> None:
        """As it was before; nothing happens where it is not this claim that is released."""
        job = a_job()
        with store.unit_of_work() as work:
            work.jobs.add(job)
            assert not work.jobs.release(job)
            work.jobs.claim(job.id)
            first = work.jobs.get(job.id)
            assert work.jobs.release(first)
            assert work.jobs.get(job.id) == job
            assert not work.jobs.release(first)
            for _ in range(2):
                work.jobs.claim(job.id)
                second = work.jobs.get(job.id)
                work.jobs.update(job.id, state=JobState.QUEUED)
            work.jobs.claim(job.id)
            assert not work.jobs.release(second)
            assert work.jobs.get(job.id).attempts == 3

    def test_progress_is_kept(self, store: Store) -> None:
        """An update changes what it names and nothing else."""
        job = a_job()
        with store.unit_of_work() as work:
            work.jobs.add(job)
            changed = work.jobs.update(
                job.id, best_latency_us=2.5, lower_bound_us=1.5, best=b"{}", cancel_requested=True
            )
        expected = replace(
            job, best_latency_us=2.5, lower_bound_us=1.5, best=b"{}", cancel_requested=True
        )
        assert changed == expected
        with store.reading() as work:
            assert work.jobs.get(job.id) == expected

    def test_an_update_neither_ends_nor_wakes_a_job(self, store: Store) -> None:
        """finish ends it; afterwards nothing changes it."""
        job = a_job()
        with store.unit_of_work() as work:
            work.jobs.add(job)
            for end in ENDS:
                with pytest.raises(Conflict, match="finish"):
                    work.jobs.update(job.id, state=end)
            with pytest.raises(Conflict):
                work.jobs.finish(job.id, JobState.RUNNING)
            assert work.jobs.finish(job.id, JobState.FAILED, error=b"problem")
            ended = work.jobs.get(job.id)
            with pytest.raises(Conflict, match="failed"):
                work.jobs.update(job.id, state=JobState.QUEUED)
            with pytest.raises(Conflict):
                work.jobs.update(job.id)
            assert work.jobs.get(job.id) == ended

    def test_a_job_ends_with_a_stored_answer(self, store: Store) -> None:
        """An answer that is not stored is a conflict, and the job goes on."""
        job, answer = a_job(), an_answer()
        with store.unit_of_work() as work:
            work.jobs.add(job)
        with pytest.raises(Conflict), store.unit_of_work() as work:
            work.jobs.finish(job.id, JobState.DONE, answer_id=answer.id)
        with store.unit_of_work() as work:
            work.answers.add(answer)
            assert work.jobs.finish(job.id, JobState.DONE, answer_id=answer.id)
        with store.reading() as work:
            assert work.jobs.get(job.id).answer_id == answer.id

    def test_lists_are_newest_first_and_unfinished_oldest_first(self, store: Store) -> None:
        """With a filter on the state, page by page."""
        jobs = [a_job() for _ in range(20)]
        with store.unit_of_work() as work:
            for number, job in enumerate(jobs):
                work.jobs.add(job)
                if number % 4 == 1:
                    work.jobs.claim(job.id)
                if number % 4 >= 2:
                    work.jobs.finish(job.id, ENDS[number % 3])
        newest_first = [job.id for job in reversed(jobs)]
        with store.reading() as work:
            assert _pages(work.jobs) == newest_first
            by_state = {state: _pages(work.jobs, state=state) for state in JobState}
            assert work.jobs.list(after="\x00", limit=3) == []
        assert by_state[JobState.RUNNING] == [
            job.id for n, job in reversed(list(enumerate(jobs))) if n % 4 == 1
        ]
        assert sorted(job for found in by_state.values() for job in found) == sorted(newest_first)

    def test_no_sequence_of_calls_leaves_a_terminal_state(self, store: Store) -> None:
        """Random calls against a model of the states."""

        class Machine(JobMachine):
            def __init__(self) -> None:
                super().__init__(store)

        run_state_machine_as_test(
            Machine, settings=settings(max_examples=count(200), stateful_step_count=15)
        )


class JobMachine(RuleBasedStateMachine):
    """The states that a job may go through, beside what is stored."""

    jobs = Bundle("jobs")

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store
        self._expected: dict[str, JobState] = {}
        self._ended: dict[str, JobRecord] = {}

    @rule(target=jobs)
    def add(self) -> str:
        """A new job is queued."""
        job = a_job()
        with self._store.unit_of_work() as work:
            work.jobs.add(job)
        self._expected[job.id] = JobState.QUEUED
        return job.id

    @rule(job=jobs)
    def claim(self, job: str) -> None:
        """Exactly the queued ones can be claimed."""
        with self._store.unit_of_work() as work:
            assert work.jobs.claim(job) == (self._expected[job] is JobState.QUEUED)
        if self._expected[job] is JobState.QUEUED:
            self._expected[job] = JobState.RUNNING

    @rule(job=jobs, state=st.sampled_from(JobState))
    def set_state(self, job: str, state: JobState) -> None:
        """An update goes between the two open states, and nowhere else."""
        if state.is_terminal or self._expected[job].is_terminal:
            with pytest.raises(Conflict), self._store.unit_of_work() as work:
                work.jobs.update(job, state=state)
        else:
            with self._store.unit_of_work() as work:
                work.jobs.update(job, state=state)
            self._expected[job] = state

    @rule(job=jobs, latency=st.floats(0, 1e300), ask=st.booleans())
    def report(self, job: str, latency: float, ask: bool) -> None:
        """Progress reaches open jobs only."""
        try:
            with self._store.unit_of_work() as work:
                after = work.jobs.update(job, best_latency_us=latency, cancel_requested=ask)
            assert after.best_latency_us == latency
            refused = None
        except Conflict as error:
            refused = error
        assert (refused is not None) == self._expected[job].is_terminal

    @rule(job=jobs, state=st.sampled_from(ENDS), error=st.none() | st.binary(max_size=9))
    def finish(self, job: str, state: JobState, error: bytes | None) -> None:
        """The first end is the end."""
        with self._store.unit_of_work() as work:
            first = work.jobs.finish(job, state, error=error)
            record = work.jobs.get(job)
        assert first == (not self._expected[job].is_terminal)
        if first:
            assert (record.state, record.error) == (state, error)
            assert record.finished_at is not None
            self._expected[job] = state
            self._ended[job] = record

    @rule(job=consumes(jobs))
    def forget(self, job: str) -> None:
        """Leave this job alone from here on; the invariant still watches it."""
        assert job in self._expected

    @invariant()
    def what_is_stored_is_what_is_expected(self) -> None:
        """States as in the model; ended jobs to the last byte as they ended."""
        with self._store.reading() as work:
            for job, state in self._expected.items():
                record = work.jobs.get(job)
                assert record.state is state
                assert self._ended.get(job, record) == record
            open_jobs = {
                job.id
                for state in JobState
                if not state.is_terminal
                for job in work.jobs.list(state=state, limit=10**6)
            }
        expected = {job for job, state in self._expected.items() if not state.is_terminal}
        assert open_jobs & set(self._expected) == expected


def _pages(jobs: Any, **filters: Any) -> list[str]:
    found: list[str] = []
    after = None
    while page := jobs.list(after=after, limit=3, **filters):
        found += [job.id for job in page]
        after = page[-1].id
    return found
