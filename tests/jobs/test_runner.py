"""app/jobs/runner.py: every job ends, once, and as it should; on each database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from itertools import count as numbers
from pathlib import Path

import pytest

from app.jobs.ledger import accept_job, cancel_job
from domain.errors import StoreUnavailable
from models.records import JobState
from models.session import Store, UnitOfWork, create_store
from tests.contracts.stored_bytes_repository import by_hand, figures
from tests.jobs.support import accepted, answers, ended, found, running, wait_until
from tests.support.job_operations import AlreadyStored, Word
from tests.support.records import an_answer


@pytest.fixture
def other(database_url: str) -> Iterator[Store]:
    """The same database, as another process sees it."""
    opened = create_store(database_url)
    yield opened
    opened.dispose()


def test_a_job_ends_with_its_answer(store: Store) -> None:
    """Both in one unit of work; its steps come to their end."""
    with running(store) as runner:
        job = ended(store, accepted(store, 7, "lasts", wall_s=0.05))
        assert (job.state, job.claim, job.runner) == (JobState.DONE, 1, None)
        assert (job.best_latency_us, job.lower_bound_us) == (2.0, 1.0)
        assert json.loads(job.best or b"")["number"] == 7
        assert job.steps_done == job.steps_total == 50
        assert [point["best_latency_us"] for point in json.loads(job.history or b"")] == [2.0]
        assert answers(store) == [7]
        with store.reading() as unit:
            assert unit.answers.get(job.answer_id or "").message_bytes == 7
        wait_until(lambda: (runner.running, runner.waiting, runner.fenced) == (0, 0, 0))


def test_a_result_without_room_is_not_kept(store: Store, tmp_path: Path) -> None:
    """The job fails and says so, without what was shown of it; others' results are kept."""
    mine = store.of("mine")
    with running(store.bounded(400), slots=2):
        job = accepted(mine, 1, "improves", gate=str(tmp_path / "gate"))
        wait_until(lambda: found(mine, job).best_latency_us == 3.0)
        with mine.unit_of_work() as unit:
            unit.answers.add(an_answer(body=b"x" * 250))
        (tmp_path / "gate").touch()
        failed = ended(mine, job)
        assert failed.state is JobState.FAILED
        problem = json.loads(failed.error or b"")
        assert problem["code"] == "quota_exceeded"
        assert "at most 400 bytes stored by one owner: mine stores" in problem["detail"]
        assert (failed.best, failed.history) == (None, None)
        assert ended(store, accepted(store, 2)).state is JobState.DONE
    assert figures(store) == by_hand(store)


def test_what_waited_before_it_started_is_run(store: Store) -> None:
    """The oldest first; pools by themselves."""
    jobs = [accepted(store, number, long=number % 2 == 1) for number in range(10)]
    with running(store, slots=2):
        assert {ended(store, job).state for job in jobs} == {JobState.DONE}
    assert answers(store) == [*range(10)]


def test_its_progress_is_shown(store: Store, tmp_path: Path) -> None:
    """The best so far with its history, and steps, while it runs."""
    with running(store):
        job = accepted(store, 1, "improves", gate=str(tmp_path / "gate"))
        wait_until(lambda: found(store, job).best_latency_us == 3.0)
        wait_until(lambda: found(store, job).steps_total == 2)
        shown = found(store, job)
        assert (shown.state, shown.lower_bound_us) == (JobState.RUNNING, 1.0)
        (tmp_path / "gate").touch()
        history = json.loads(ended(store, job).history or b"")
        assert [point["best_latency_us"] for point in history][-2:] == [3.0, 2.0]


def test_a_cancel_keeps_the_best_so_far(store: Store, other: Store, tmp_path: Path) -> None:
    """Also one that was asked for elsewhere; without a best there is none to keep."""
    with running(store, slots=2):
        improves, waits = (
            accepted(store, number, behaviour, gate=str(tmp_path / "gate"))
            for number, behaviour in enumerate(("improves", "waits"))
        )
        wait_until(lambda: found(store, improves).best is not None)
        wait_until(lambda: found(store, waits).state is JobState.RUNNING)
        for job in (improves, waits):
            assert cancel_job(other, job.id).cancel_requested
        kept = ended(store, improves)
        assert (kept.state, kept.error) == (JobState.CANCELLED, None)
        assert json.loads(kept.best or b"") == {
            "number": 0,
            "latency_us": 3.0,
            "why": "cancelled",
        }
        nothing = ended(store, waits)
        assert (nothing.state, nothing.answer_id) == (JobState.CANCELLED, None)
        assert answers(store) == [0]


def test_what_another_process_accepts_is_run(store: Store, other: Store) -> None:
    """Without anybody saying so in this process."""
    with running(store):
        assert ended(store, accepted(other)).state is JobState.DONE


def test_a_job_whose_process_crashes_is_tried_three_times(store: Store) -> None:
    """Then it has failed, and tells how; those beside it do not notice."""
    with running(store):
        jobs = [accepted(store, n, "crashes" if n == 1 else "answers") for n in range(4)]
        ends = [ended(store, job) for job in jobs]
    assert [job.state.value for job in ends] == ["done", "failed", "done", "done"]
    assert (ends[1].claim, ends[1].crashes, ends[1].losses) == (3, 3, 0)
    assert json.loads(ends[1].error or b"")["code"] == "solver_failed"
    assert [job.crashes for job in ends] == [0, 3, 0, 0]


@pytest.mark.parametrize(
    ("behaviour", "code"), [("refuses", "strategy_declined"), ("cannot be kept", "conflict")]
)
def test_a_refusal_is_its_end(store: Store, behaviour: str, code: str) -> None:
    """Of the operation itself, and of what keeps its result: nothing is stored."""
    with running(store):
        job = ended(store, accepted(store, 1, behaviour))
    assert (job.state, job.claim, answers(store)) == (JobState.FAILED, 1, [])
    assert json.loads(job.error or b"")["code"] == code


def test_a_request_that_cannot_be_read_fails(store: Store) -> None:
    """With an error that shows nothing of it; other jobs go on."""
    job = accepted(store, behaviour="answers")
    with store.unit_of_work() as unit:
        claimed = unit.jobs.get(job.id)
        unit.jobs.cancel(job.id)
        unit.jobs.add(type(claimed)(id="odd", request=b"no JSON", created_at=job.created_at))
    with running(store):
        odd = ended(store, type(claimed)(id="odd", request=b"", created_at=job.created_at))
        assert ended(store, accepted(store, 2)).state is JobState.DONE
    assert (odd.state, json.loads(odd.error or b"")["code"]) == (JobState.FAILED, "internal_error")


def test_what_is_stored_already_is_not_run(store: Store) -> None:
    """By the time that it is claimed."""
    job = accepted(store, 1, "crashes", named="table")  # prepared as one whose result is at hand
    with running(store):
        job = ended(store, job)
    assert (job.state, job.best, job.crashes) == (JobState.DONE, b'{"kept": true}', 0)
    done = accept_job(store, AlreadyStored(2, named="table"))
    assert (done.state, done.claim, done.best) == (JobState.DONE, 0, b'{"kept": true}')


def test_a_stop_on_purpose_counts_nothing(store: Store, tmp_path: Path) -> None:
    """What runs is given back, and another runner goes on with it."""
    with running(store) as runner:
        job = accepted(store, 5, "waits", gate=str(tmp_path / "gate"))
        wait_until(lambda: runner.running == 1)
    given_back = found(store, job)
    assert (given_back.state, given_back.claim) == (JobState.QUEUED, 1)
    with store.reading() as unit:
        assert unit.runners.all() == ()
    (tmp_path / "gate").touch()
    with running(store):
        job = ended(store, job)
    assert (job.state, job.claim, job.crashes, job.losses) == (JobState.DONE, 2, 0, 0)
    assert answers(store) == [5]


def test_a_runner_that_drains_ends_what_runs(store: Store, tmp_path: Path) -> None:
    """It begins nothing more."""
    with running(store) as runner:
        first = accepted(store, 1, "lasts", wall_s=0.3)
        wait_until(lambda: runner.running == 1)
        second = accepted(store, 2)
        runner.close(drain_s=60.0)
    assert found(store, first).state is JobState.DONE
    assert found(store, second).state is JobState.QUEUED


def test_a_runner_that_was_held_for_dead_changes_nothing(
    store: Store, other: Store, tmp_path: Path
) -> None:
    """What it had is run again, also by itself; its own write is fenced."""
    with running(store) as runner:
        job = accepted(store, 3, "waits", gate=str(tmp_path / "gate"))
        wait_until(lambda: found(store, job).state is JobState.RUNNING)
        was = runner.name
        with other.unit_of_work() as unit:
            assert unit.runners.remove(was) == 1
        wait_until(lambda: runner.fenced == 1 and runner.name != was)
        (tmp_path / "gate").touch()
        job = ended(store, job)
    assert (job.state, job.claim, job.losses) == (JobState.DONE, 2, 1)
    assert answers(store) == [3]


def test_a_late_answer_is_rolled_back(store: Store, other: Store, tmp_path: Path) -> None:
    """It was found after the job was given to another one, which has not noticed yet."""
    gate = tmp_path / "gate"
    with running(store, beat_s=3600.0, show_s=3600.0) as runner:
        job = accepted(store, 3, "waits", gate=str(gate))
        wait_until(lambda: found(store, job).state is JobState.RUNNING)
        with other.unit_of_work() as unit:
            unit.runners.remove(runner.name)
            unit.runners.register("other")
            taken = unit.jobs.claim("other")
        assert taken is not None
        gate.touch()
        wait_until(lambda: runner.fenced == 1)
        assert answers(store) == []
        assert found(store, job) == taken


def test_a_database_that_is_away_costs_no_job(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was found is written once it is back; the job was begun once."""
    tries = numbers()
    real = store.unit_of_work

    def away() -> AbstractContextManager[UnitOfWork]:
        if next(tries) > 4:
            return real()
        raise StoreUnavailable("the database is away")

    with running(store) as runner:
        job = accepted(store, 1, "waits", gate=str(tmp_path / "gate"))
        wait_until(lambda: runner.running == 1)  # claimed and begun: both take a unit of work
        monkeypatch.setattr(store, "unit_of_work", away)
        (tmp_path / "gate").touch()
        wait_until(lambda: next(tries) > 5)
        job = ended(store, job)
    assert (job.state, job.claim, answers(store)) == (JobState.DONE, 1, [1])


def test_a_best_result_that_cannot_be_read_fails_its_job_alone(
    store: Store, tmp_path: Path
) -> None:
    """Others beside it are shown, and end."""
    gate = str(tmp_path / "gate")
    with running(store, slots=2) as runner:
        poisoned, other = (
            accepted(store, n, "poisons" if n == 1 else "improves", gate=gate) for n in (1, 2)
        )
        assert ended(store, poisoned).state is JobState.FAILED
        wait_until(lambda: found(store, other).best is not None)
        (tmp_path / "gate").touch()
        assert ended(store, other).state is JobState.DONE
        wait_until(lambda: runner.running == 0)
    assert answers(store) == [2]


@pytest.mark.parametrize("slots", [1, 2, 4])
def test_parts_make_the_same_whole(store: Store, slots: int) -> None:
    """However many run at a time; its steps are parts."""
    word = Word(9, named="compare")
    with running(store, slots=slots):
        job = ended(store, accept_job(store, word))
    assert job.state is JobState.DONE
    assert json.loads(job.best or b"") == {"word": "abcdefghi", "latency_us": 1.0}
    assert job.steps_done == job.steps_total == 9


def test_a_cancel_ends_all_parts(store: Store, tmp_path: Path) -> None:
    """Those that run and those that would have followed."""
    with running(store, slots=2) as runner:
        word = Word(6, "waits", named="compare", gate=str(tmp_path / "gate"))
        job = accept_job(store, word)
        wait_until(lambda: found(store, job).steps_done == 1)
        cancel_job(store, job.id)
        job = ended(store, job)
        assert (job.state, job.answer_id) == (JobState.CANCELLED, None)
        wait_until(lambda: runner.running == 0)
        assert ended(store, accepted(store, 2)).state is JobState.DONE


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_what_joins_the_parts_is_a_task_where_it_is_long(
    store: Store, tmp_path: Path, is_cancelled: bool
) -> None:
    """It follows them, and ends as they do."""
    with running(store, slots=2) as runner:
        job = accept_job(store, Word(3, "joins", named="compare", gate=str(tmp_path / "gate")))
        wait_until(lambda: found(store, job).steps_done == 3)
        if is_cancelled:
            cancel_job(store, job.id)
        else:
            (tmp_path / "gate").touch()
        job = ended(store, job)
        wait_until(lambda: runner.running == 0)
    if is_cancelled:
        assert (job.state, job.best) == (JobState.CANCELLED, None)
    else:
        assert json.loads(job.best or b"") == {"word": "abc", "latency_us": 1.0}
        assert (job.state, job.steps_done, job.steps_total) == (JobState.DONE, 4, 4)


def test_two_runners_share_the_jobs(store: Store, other: Store) -> None:
    """Each job is run once."""
    with running(store, slots=2), running(other, slots=2):
        jobs = [accepted(store, number, "lasts", wall_s=0.01) for number in range(30)]
        ends = [ended(store, job) for job in jobs]
    assert {(job.state, job.claim) for job in ends} == {(JobState.DONE, 1)}
    assert answers(store) == [*range(30)]


def test_it_begins_no_more_than_it_has_room_for(store: Store, tmp_path: Path) -> None:
    """The rest waits in the ledger, where others may take it; one slot of two is left to clients
    that wait for long work.
    """
    gate = str(tmp_path / "gate")
    with running(store, slots=2) as runner:
        jobs = [accepted(store, n, "waits", gate=gate, long=n >= 4) for n in range(8)]
        wait_until(lambda: runner.running == 3)
        wait_until(lambda: runner.waiting == 5)
        states = [found(store, job).state.value for job in jobs]
        assert [states[:4].count("running"), states[4:].count("running")] == [2, 1]
        Path(gate).touch()
        assert {ended(store, job).state for job in jobs} == {JobState.DONE}
