"""What every job repository does. Run on each database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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
    multiple,
    rule,
    run_state_machine_as_test,
)

from domain.errors import Conflict, NotFound
from models.errors import Fenced
from models.identifiers import new_id
from models.records import (
    MAX_CRASHES,
    MAX_LOSSES,
    Blame,
    JobRecord,
    JobState,
)
from models.session import Store, UnitOfWork
from tests.support.counts import count
from tests.support.records import TIMESTAMP, a_job, an_answer

ENDS = tuple(state for state in JobState if state.is_terminal)


def claimed(work: UnitOfWork, runner: str = "x", *, pool: str = "solve") -> JobRecord:
    """The next job, now running in this runner."""
    if runner not in {found.name for found in work.runners.all()}:
        work.runners.register(runner)
    job = work.jobs.claim(runner, pool=pool)
    assert job is not None
    return job


class JobContract:
    """A job is queued, runs, and ends once."""

    def test_a_job_reads_back_equal(self, store: Store) -> None:
        """Every field."""
        answer = an_answer()
        full = a_job(
            pool="long",
            state=JobState.DONE,
            started_at=TIMESTAMP,
            finished_at=TIMESTAMP,
            not_before=TIMESTAMP,
            claim=3,
            crashes=1,
            losses=2,
            best_latency_us=1 / 3,
            lower_bound_us=0.1,
            best=b"\x00\xff",
            history=b"[]",
            request_digest="d" * 64,
            steps_done=3,
            steps_total=2**31 - 1,
            answer_id=answer.id,
            error=b"{}",
            cancel_requested=True,
        )
        plain = a_job()
        running = a_job(state=JobState.RUNNING, runner="x")
        with store.unit_of_work() as work:
            work.runners.register("x")
            work.answers.add(answer)
            for job in (full, plain, running):
                work.jobs.add(job)
        with store.reading() as work:
            for job in (full, plain, running):
                assert work.jobs.get(job.id) == job
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
        """By every method that takes one."""
        with store.unit_of_work() as work:
            for method in (work.jobs.get, work.jobs.shown, work.jobs.cancel):
                with pytest.raises(NotFound):
                    method(job_id)

    def test_a_job_is_found_by_its_question(self, store: Store) -> None:
        """The owner's newest in one of these states; none that was asked to stop."""
        first, other = a_job(request_digest="a"), a_job(request_digest="b")
        done = a_job(request_digest="a", state=JobState.DONE, finished_at=TIMESTAMP)
        theirs = a_job(request_digest="a", owner="somebody")
        with store.unit_of_work() as work:
            for job in (done, first, other, a_job(), theirs):
                work.jobs.add(job)
            assert work.jobs.find("a", *JobState) == max(done, first, key=lambda job: job.id)
            assert work.jobs.find("a", JobState.DONE) == done
            assert work.jobs.find("a", JobState.QUEUED) == first
            running = claimed(work)
            assert work.jobs.find("a", JobState.QUEUED) is None
            assert work.jobs.find("a", JobState.RUNNING) == running
            work.jobs.cancel(first.id)
            assert work.jobs.find("a", JobState.RUNNING) is None
            assert [work.jobs.find(one, JobState.DONE) for one in ("b", "", "\x00")] == [None] * 3
        with store.of("somebody").reading() as work:
            assert work.jobs.find("a", *JobState) == theirs

    def test_a_question_has_one_open_job_an_owner(self, store: Store) -> None:
        """Which is none once it has ended, or was asked to stop; without a digest any number."""
        with store.unit_of_work() as work:
            for job in (a_job(), a_job(), a_job(request_digest="a", owner="somebody")):
                assert work.jobs.add_unless_open(job)
            first = a_job(request_digest="a")
            assert work.jobs.add_unless_open(first)
            assert not work.jobs.add_unless_open(a_job(request_digest="a"))
            work.jobs.cancel(first.id)
            second = a_job(request_digest="a")
            assert work.jobs.add_unless_open(second)
            while (job := claimed(work)).id != second.id:
                pass
            assert not work.jobs.add_unless_open(a_job(request_digest="a"))
            work.jobs.cancel(second.id)
            third = a_job(request_digest="a")
            assert work.jobs.add_unless_open(third)
            work.jobs.finish(job, JobState.CANCELLED)
        with pytest.raises(Conflict), store.unit_of_work() as work:
            work.jobs.add(a_job(request_digest="a"))
        with store.unit_of_work() as work:
            work.jobs.finish(claimed(work), JobState.DONE)
            assert work.jobs.add_unless_open(a_job(request_digest="a"))

    def test_a_job_is_claimed_once(self, store: Store) -> None:
        """The oldest of the pool first; the claim starts it."""
        jobs = [a_job(pool=pool) for pool in ("solve", "long", "solve")]
        with store.unit_of_work() as work:
            work.runners.register("x")
            for job in jobs:
                work.jobs.add(job)
            assert work.jobs.waiting("solve", "long", "other") == {"solve": 2, "long": 1}
            found = [
                work.jobs.claim("x", pool=pool) for pool in ("solve", "solve", "solve", "long")
            ]
            assert [job and job.id for job in found] == [jobs[0].id, jobs[2].id, None, jobs[1].id]
            assert work.jobs.waiting("solve", "long", "other") == {}
            running = found[0]
            assert running is not None
            assert (running.state, running.claim, running.runner) == (JobState.RUNNING, 1, "x")
            assert running.started_at is not None
            assert work.jobs.get(running.id) == running

    def test_a_claim_needs_a_runner_that_is_there(self, store: Store) -> None:
        """Else nobody would notice that it is gone."""
        with store.unit_of_work() as work:
            work.jobs.add(a_job())
        with pytest.raises(Conflict), store.unit_of_work() as work:
            work.jobs.claim("unknown")

    def test_owners_take_turns(self, store: Store) -> None:
        """Whose jobs run the least is next, however many the others have, and since when."""
        owners = ["many"] * 6 + ["few"] * 2 + ["one"]
        with store.unit_of_work() as work:
            for owner in owners:
                work.jobs.add(a_job(owner=owner))
            found = [claimed(work) for _ in owners]
            assert [job.owner for job in found] == [
                *("many", "few", "one", "many", "few", "many", "many", "many", "many")
            ]
            work.jobs.finish(found[2], JobState.DONE)
            for owner in ("many", "one"):
                work.jobs.add(a_job(owner=owner))
            assert claimed(work).owner == "one"

    def test_a_claim_that_was_lost_writes_nothing(self, store: Store) -> None:
        """Neither how far it is, nor an end, nor that it goes back; the unit is rolled back."""
        answer = an_answer()
        with store.unit_of_work() as work:
            work.jobs.add(a_job())
            first = claimed(work)
            assert work.jobs.give_back(first) is JobState.QUEUED
        with store.unit_of_work() as work:
            second = claimed(work, "y")
        assert second.claim == 2

        def late(write: Any) -> None:
            def write_after_answer(work: UnitOfWork) -> None:
                work.answers.add(answer)
                write(work.jobs)

            with pytest.raises(Fenced), store.unit_of_work() as work:
                write_after_answer(work)

        for stale in (first, replace(second, claim=3)):
            late(lambda jobs, stale=stale: jobs.show(stale, steps_done=1))
            late(lambda jobs, stale=stale: jobs.show(stale))
            late(lambda jobs, stale=stale: jobs.give_back(stale, Blame.LOSS))
            late(lambda jobs, stale=stale: jobs.finish(stale, JobState.DONE))
        with store.reading() as work:
            assert work.jobs.get(second.id) == second
            assert work.answers.list(limit=9) == []
        with store.unit_of_work() as work:
            work.jobs.finish(second, JobState.DONE)
        late(lambda jobs: jobs.finish(second, JobState.FAILED))
        late(lambda jobs: jobs.show(second))

    def test_a_job_that_crashes_has_failed_in_the_end(self, store: Store) -> None:
        """After three crashes; losses are many more, and a stop on purpose counts nothing."""
        with store.unit_of_work() as work:
            job = a_job()
            work.jobs.add(job)
            for blame in (Blame.CRASH, Blame.NONE, Blame.LOSS, Blame.CRASH, Blame.NONE):
                assert work.jobs.give_back(claimed(work), blame, error=b"x") is JobState.QUEUED
            found = work.jobs.get(job.id)
            assert (found.claim, found.crashes, found.losses) == (5, MAX_CRASHES - 1, 1)
            assert (found.error, found.finished_at, found.runner) == (None, None, None)
            assert work.jobs.give_back(claimed(work), Blame.CRASH, error=b"x") is JobState.FAILED
            found = work.jobs.get(job.id)
            assert (found.state, found.crashes, found.error) == (JobState.FAILED, 3, b"x")
            assert found.finished_at is not None
            lost = a_job(losses=MAX_LOSSES - 1)
            work.jobs.add(lost)
            assert work.jobs.give_back(claimed(work), Blame.LOSS, error=b"y") is JobState.FAILED
            assert work.jobs.get(lost.id).error == b"y"

    def test_a_job_that_was_asked_to_stop_is_not_queued_again(self, store: Store) -> None:
        """It ends where it would have gone back."""
        with store.unit_of_work() as work:
            work.jobs.add(a_job())
            job = claimed(work)
            assert work.jobs.cancel(job.id).cancel_requested
            assert work.jobs.give_back(job, Blame.CRASH, error=b"x") is JobState.CANCELLED
            assert work.jobs.get(job.id).error is None

    def test_a_job_may_have_to_wait_before_it_is_begun_again(self, store: Store) -> None:
        """Others go first."""
        with store.unit_of_work() as work:
            work.jobs.add(a_job())
            first = claimed(work)
            work.jobs.give_back(first, Blame.CRASH, wait_s=3600.0)
            assert work.jobs.claim("x") is None
            assert work.jobs.waiting("solve", "long", "other") == {"solve": 1}
            second = a_job()
            work.jobs.add(second)
            assert claimed(work).id == second.id
            assert work.jobs.get(first.id).not_before is not None
            work.jobs.cancel(first.id)
            work.jobs.add(a_job())
            third = claimed(work)
            work.jobs.give_back(third, Blame.CRASH, wait_s=-1.0)
            again = claimed(work)
            assert (again.id, again.not_before) == (third.id, None)

    def test_a_cancel_ends_what_waits_and_asks_what_runs(self, store: Store) -> None:
        """What has ended stays as it is."""
        waits, runs, other = a_job(), a_job(), a_job()
        with store.unit_of_work() as work:
            work.jobs.add(runs)
            held = claimed(work)
            for job in (waits, other):
                work.jobs.add(job)
            ended = work.jobs.cancel(waits.id)
            assert (ended.state, ended.cancel_requested) == (JobState.CANCELLED, True)
            assert ended.finished_at is not None
            assert work.jobs.cancel(waits.id) == ended
            assert work.jobs.to_cancel("x") == set()
            assert not work.jobs.show(held)
            asked = work.jobs.cancel(runs.id)
            assert asked == replace(held, cancel_requested=True)
            assert work.jobs.to_cancel("x") == {runs.id}
            assert work.jobs.to_cancel("y") == set()
            assert work.jobs.show(held, steps_done=1, steps_total=2)
            work.jobs.finish(held, JobState.CANCELLED)
            assert work.jobs.to_cancel("x") == set()

    def test_progress_is_kept(self, store: Store) -> None:
        """It changes what it names and nothing else, and goes into the end."""
        with store.unit_of_work() as work:
            work.jobs.add(a_job())
            job = claimed(work)
            work.jobs.show(job, best_latency_us=2.5, lower_bound_us=1.5, best=b"{}", history=b"[]")
            expected = replace(
                job, best_latency_us=2.5, lower_bound_us=1.5, best=b"{}", history=b"[]"
            )
            assert work.jobs.get(job.id) == expected
            work.jobs.finish(
                job, JobState.FAILED, {"steps_done": 3}, error=b"e", request_digest="d"
            )
            ended = work.jobs.get(job.id)
            assert ended == replace(
                expected,
                state=JobState.FAILED,
                runner=None,
                steps_done=3,
                error=b"e",
                request_digest="d",
                finished_at=ended.finished_at,
            )

    def test_a_job_ends_with_a_stored_answer(self, store: Store) -> None:
        """An answer that is not stored is a conflict, and the job goes on."""
        answer = an_answer()
        with store.unit_of_work() as work:
            work.jobs.add(a_job())
            job = claimed(work)
            with pytest.raises(Conflict, match="running"):
                work.jobs.finish(job, JobState.RUNNING)
        with pytest.raises(Conflict), store.unit_of_work() as work:
            work.jobs.finish(job, JobState.DONE, answer_id=answer.id)
        with store.unit_of_work() as work:
            work.answers.add(answer)
            work.jobs.finish(job, JobState.DONE, answer_id=answer.id)
        with store.reading() as work:
            assert work.jobs.get(job.id).answer_id == answer.id

    def test_lists_are_newest_first(self, store: Store) -> None:
        """With a filter on the state, page by page."""
        jobs = [a_job() for _ in range(20)]
        with store.unit_of_work() as work:
            for number, job in enumerate(jobs):
                work.jobs.add(job)
                if number % 4:
                    held = claimed(work)
                    if number % 4 >= 2:
                        work.jobs.finish(held, ENDS[number % 3])
        newest_first = [job.id for job in reversed(jobs)]
        with store.reading() as work:
            assert _pages(work.jobs) == newest_first
            by_state = {state: _pages(work.jobs, state=state) for state in JobState}
            assert work.jobs.list(after="\x00", limit=3) == []
            for state, found in by_state.items():
                assert found == [job for job in newest_first if work.jobs.get(job).state is state]
        assert sorted(job for found in by_state.values() for job in found) == sorted(newest_first)
        assert all(by_state[state] for state in JobState)

    def test_no_sequence_of_calls_breaks_the_rules(self, store: Store) -> None:
        """Random calls against a model of the ledger."""

        class Machine(JobMachine):
            def __init__(self) -> None:
                super().__init__(store)

        run_state_machine_as_test(
            Machine,
            settings=settings(max_examples=count(25_000, share=2500), stateful_step_count=20),
        )


class JobMachine(RuleBasedStateMachine):
    """What is expected of each job, beside what is stored. Runners come and go."""

    jobs = Bundle("jobs")
    claims = Bundle("claims")
    runners = Bundle("runners")

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._owner = new_id()  # the database is that of all runs: each has an owner and a pool
        self._store = store.of(self._owner)
        self._expected: dict[str, JobRecord] = {}
        self._alive: set[str] = set()

    @rule(target=jobs, digest=st.sampled_from([None, "a", "b"]))
    def add(self, digest: str | None) -> Any:
        """A new job is queued, unless one of its question is open."""
        job = a_job(owner=self._owner, pool=self._owner, request_digest=digest)
        is_open = any(
            not other.state.is_terminal and not other.cancel_requested
            for other in self._expected.values()
            if digest is not None and other.request_digest == digest
        )
        with self._store.unit_of_work() as work:
            assert work.jobs.add_unless_open(job) == (not is_open)
        if is_open:
            return multiple()
        self._expected[job.id] = job
        return job.id

    @rule(target=runners)
    def start(self) -> str:
        """A new runner."""
        name = new_id()
        with self._store.unit_of_work() as work:
            work.runners.register(name)
        self._alive.add(name)
        return name

    @rule(runner=consumes(runners))
    def stop(self, runner: str) -> None:
        """What it ran is given back as lost."""
        held = [job for job in self._expected.values() if job.runner == runner]
        with self._store.unit_of_work() as work:
            assert work.runners.remove(runner, error=b"lost") == len(held)
        for job in held:
            self._expect_back(job, Blame.LOSS)

    @rule(target=claims, runner=runners)
    def claim(self, runner: str) -> Any:
        """The oldest one that waits."""
        waiting = sorted(j.id for j in self._expected.values() if j.state is JobState.QUEUED)
        with self._store.unit_of_work() as work:
            found = work.jobs.claim(runner, pool=self._owner)
        if found is None:
            assert not waiting
            return multiple()
        assert (found.id, found.runner) == (waiting[0], runner)
        assert found.claim == self._expected[found.id].claim + 1
        self._expected[found.id] = found
        return found

    @rule(claim=claims, done=st.integers(0, 9))
    def show(self, claim: JobRecord, done: int) -> None:
        """Progress reaches who has the claim."""
        with self._fenced_unless_held(claim) as held, self._store.unit_of_work() as work:
            asked = work.jobs.show(claim, steps_done=done)
            assert asked == self._expected[claim.id].cancel_requested
        if held:
            self._expect(claim.id, steps_done=done)

    @rule(claim=claims, blame=st.sampled_from(Blame))
    def give_back(self, claim: JobRecord, blame: Blame) -> None:
        """Who has the claim gives it back once."""
        with self._fenced_unless_held(claim) as held, self._store.unit_of_work() as work:
            work.jobs.give_back(claim, blame, error=b"lost")
        if held:
            self._expect_back(self._expected[claim.id], blame)

    @rule(claim=claims, state=st.sampled_from(ENDS), error=st.none() | st.binary(max_size=9))
    def finish(self, claim: JobRecord, state: JobState, error: bytes | None) -> None:
        """Who has the claim ends it, once."""
        with self._fenced_unless_held(claim) as held, self._store.unit_of_work() as work:
            work.jobs.finish(claim, state, error=error)
        if held:
            self._expect(claim.id, state=state, error=error, runner=None)

    @rule(job=jobs)
    def cancel(self, job: str) -> None:
        """Ends what waits, marks what runs."""
        with self._store.unit_of_work() as work:
            work.jobs.cancel(job)
        state = self._expected[job].state
        if state is JobState.QUEUED:
            self._expect(job, state=JobState.CANCELLED, cancel_requested=True)
        elif state is JobState.RUNNING:
            self._expect(job, cancel_requested=True)

    @invariant()
    def what_is_stored_is_what_is_expected(self) -> None:
        """Field by field; when it ended and when it began aside."""
        with self._store.reading() as work:
            for job in self._expected.values():
                stored = work.jobs.get(job.id)
                assert replace(stored, started_at=None, finished_at=None) == replace(
                    job, started_at=None, finished_at=None
                )

    def _expect(self, job: str, **changes: Any) -> None:
        self._expected[job] = replace(self._expected[job], **changes)

    def _expect_back(self, job: JobRecord, blame: Blame) -> None:
        crashes = job.crashes + (blame is Blame.CRASH)
        losses = job.losses + (blame is Blame.LOSS)
        has_failed = crashes >= MAX_CRASHES or losses >= MAX_LOSSES
        state = JobState.FAILED if has_failed else JobState.QUEUED
        if job.cancel_requested:
            state = JobState.CANCELLED
        error = b"lost" if state is JobState.FAILED else None
        counts = {"crashes": crashes, "losses": losses}
        self._expect(job.id, state=state, runner=None, error=error, **counts)

    @contextmanager
    def _fenced_unless_held(self, claim: JobRecord) -> Iterator[bool]:
        now = self._expected[claim.id]
        if now.state is JobState.RUNNING and now.claim == claim.claim:
            yield True
            return
        with pytest.raises(Fenced):
            yield False


def _pages(jobs: Any, **filters: Any) -> list[str]:
    found: list[str] = []
    after = None
    while page := jobs.list(after=after, limit=3, **filters):
        found += [job.id for job in page]
        after = page[-1].id
    return found
