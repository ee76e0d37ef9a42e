"""app/jobs/ledger.py: which job somebody gets who asks; on each database."""

from __future__ import annotations

import pytest

from app.jobs import ledger
from app.jobs.ledger import accept_job, cancel_job, get_job, running_jobs, shown_job
from app.operations.operation import OperationKind
from domain.errors import NotFound, Overloaded
from models.records import JobRecord, JobState
from models.session import Store
from tests.jobs.support import accepted
from tests.support.job_operations import AlreadyStored, Scripted


def finish(store: Store, state: JobState) -> JobRecord:
    """The job that is next, ended so."""
    with store.unit_of_work() as unit:
        if not unit.runners.all():
            unit.runners.register("x")
        job = unit.jobs.claim("x")
        assert job is not None
        unit.jobs.finish(job, state, {"best": b"{}"})
        return unit.jobs.get(job.id)


def test_the_same_question_has_one_open_job(store: Store) -> None:
    """While it waits and while it runs; not once somebody asked it to stop."""
    first = accepted(store)
    assert accepted(store) == first
    assert accepted(store, 2).id != first.id
    assert accept_job(store.of("somebody"), Scripted(1)).id != first.id
    with store.unit_of_work() as unit:
        unit.runners.register("x")
        unit.jobs.claim("x")
    again = accepted(store)
    assert (again.id, again.state) == (first.id, JobState.RUNNING)
    cancel_job(store, first.id)
    assert accepted(store).id != first.id


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.CANCELLED])
def test_what_came_to_nothing_is_asked_anew(store: Store, state: JobState) -> None:
    """Another try may end better."""
    first = accepted(store, named="audit")
    finish(store, state)
    assert accepted(store, named="audit").id != first.id


@pytest.mark.parametrize(
    ("named", "is_taken"),
    [("audit", True), ("export", True), ("optimize", False), ("compare", False), ("table", False)],
)
def test_a_result_is_taken_again_where_its_job_alone_keeps_it(
    store: Store, named: str, is_taken: bool
) -> None:
    """Others are where they are stored, or are no more."""
    accepted(store, named=named)
    done = finish(store, JobState.DONE)
    assert (accepted(store, named=named) == done) == is_taken


def test_what_is_stored_is_a_job_that_is_done(store: Store) -> None:
    """The first one that says so is the job of all who ask."""
    kept = AlreadyStored(1, named="table")
    done = accept_job(store, kept)
    assert (done.state, done.best, done.claim) == (JobState.DONE, b'{"kept": true}', 0)
    assert accept_job(store, kept) == done


def test_too_many_are_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all kinds together; what is there already is still found."""
    monkeypatch.setattr(ledger, "MAX_WAITING_JOBS", 2)
    jobs = [accepted(store, number, long=number == 1) for number in range(2)]
    assert accepted(store, 1, long=True) == jobs[1]
    with pytest.raises(Overloaded):
        accepted(store, 3)
    assert accept_job(store, AlreadyStored(1, named="table")).state is JobState.DONE
    finish(store, JobState.DONE)
    assert accepted(store, 3).state is JobState.QUEUED


def test_a_job_is_looked_at(store: Store) -> None:
    """With and without its request, and among those that run; unknown ones are not found."""
    job = accepted(store, named="audit")
    assert get_job(store, job.id) == job
    assert shown_job(store, job.id).request == b""
    assert running_jobs(store, OperationKind.AUDIT) == ()
    with store.unit_of_work() as unit:
        unit.runners.register("x")
        unit.jobs.claim("x")
    assert [found.id for found in running_jobs(store, OperationKind.AUDIT)] == [job.id]
    assert running_jobs(store, OperationKind.EXPORT) == ()
    for look in (get_job, shown_job, cancel_job):
        with pytest.raises(NotFound):
            look(store, "0" * 32)
