"""Many writers at once, and writers that are killed."""

from __future__ import annotations

import random
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import closing, suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from app.questions.answers import describe_answer
from domain.errors import Conflict, NotFound
from models.errors import Fenced
from models.records import JobRecord, JobState
from models.session import Store, create_store
from tests.support.counts import count, is_campaign
from tests.support.records import GIVEN, a_job, a_pipeline, a_table, an_answer
from tests.support.writers import (
    PROCESSES,
    digest,
    read_on,
    started,
    upgrade_once,
    write_for_ever,
    write_some,
)

HANG_S = 120.0
THREADS = 16


def test_sixteen_threads_write_without_an_error(store: Store) -> None:
    """Every row is there, and of a shared profile every revision, numbered without a gap."""
    each, barrier = count(100), Barrier(THREADS)

    def write() -> list[str]:
        barrier.wait(HANG_S)
        written = []
        for _ in range(each):
            answer = an_answer()
            with store.unit_of_work() as work:
                work.answers.add(answer)
                work.profiles.save("shared", a_pipeline(), GIVEN)
            with store.reading() as work:
                assert work.answers.get(answer.id) == answer
            written.append(answer.id)
        return written

    with ThreadPoolExecutor(THREADS) as pool:
        written = [job.result(HANG_S) for job in [pool.submit(write) for _ in range(THREADS)]]
    _check_all_there(store, [answer for part in written for answer in part])


def test_of_a_name_and_a_note_given_at_once_both_are_kept(store: Store) -> None:
    """Who comes second sees what the first has given, and says so in the log."""
    answer = an_answer()
    with store.unit_of_work() as work:
        work.answers.add(answer)
    with ThreadPoolExecutor(1) as pool:
        with store.unit_of_work() as work:
            work.answers.describe(answer.id, name="named", note=None)
            second = pool.submit(describe_answer, store, answer.id, note="noted")
            with pytest.raises(FutureTimeout):  # it waits for this one
                second.result(0.5)
        assert second.result(HANG_S) == replace(answer, name="named", note="noted")
    with store.reading() as work:
        assert work.answers.get(answer.id) == replace(answer, name="named", note="noted")
        (change,) = work.changes.list(limit=9)
    assert (change.before, change.after) == ("named", "named")


def test_tables_are_kept_and_chosen_while_their_profile_comes_and_goes(store: Store) -> None:
    """Whoever comes too late is told so; nobody waits for somebody who waits for it."""
    tables = [a_table(bytes([at] * 9), profile_name="p", profile_revision=1) for at in range(3)]

    def write(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(count(400)):
            with suppress(Conflict, NotFound), store.unit_of_work() as work:
                table = rng.choice(tables)
                match rng.randrange(4):
                    case 0:
                        work.profiles.delete("p")
                    case 1:
                        work.profiles.create("p", a_pipeline(), GIVEN)
                    case 2:
                        work.tables.activate("p", table.digest)
                    case _:
                        work.tables.add(table)
                        work.tables.activate_first(table.digest)

    with ThreadPoolExecutor(4) as pool:
        for job in [pool.submit(write, seed) for seed in range(4)]:
            job.result(HANG_S)
    with store.reading() as work:
        assert len(work.tables.active_all()) <= 1


def test_processes_write_without_an_error(store: Store, database_url: str) -> None:
    """As with threads: nobody sees a locked database, neither who writes nor who reads."""
    store.dispose()
    results, seen, stop = PROCESSES.Queue(), PROCESSES.Queue(), PROCESSES.Event()
    writers, readers, each = (16, 4, 500) if is_campaign() else (4, 1, 16)
    reading = [started(read_on, database_url, stop, seen) for _ in range(readers)]
    writing = [started(write_some, database_url, each, results) for _ in range(writers)]
    parts = [results.get(timeout=10 * HANG_S) for _ in writing]
    stop.set()
    lists = [seen.get(timeout=HANG_S) for _ in reading]
    assert [part for part in (*parts, *lists) if isinstance(part, str)] == []
    for process in (*writing, *reading):
        process.join(HANG_S)
    written = [one for part in parts for one in part]
    ranked_s = sorted(seconds for _, seconds in written)
    print(f"writes: p99 {1e3 * ranked_s[len(ranked_s) * 99 // 100]:.1f} ms; lists: {sum(lists)}")
    _check_all_there(store, [answer for answer, _ in written])


def test_each_job_is_claimed_once_and_ended_once(store: Store) -> None:
    """Sixteen threads claim what there is, and each tries to end all that any of them has."""
    barrier = Barrier(THREADS)
    jobs = [a_job() for _ in range(40)]
    with store.unit_of_work() as work:
        work.runners.register("here")
        for job in jobs:
            work.jobs.add(job)
    claimed: list[JobRecord] = []

    def race() -> int:
        barrier.wait(HANG_S)
        while job := _claimed(store):
            claimed.append(job)
        barrier.wait(HANG_S)
        return sum(_ends(store, job) for job in tuple(claimed))

    with ThreadPoolExecutor(THREADS) as pool:
        ends = [turn.result(HANG_S) for turn in [pool.submit(race) for _ in range(THREADS)]]
    assert sorted(job.id for job in claimed) == [job.id for job in jobs]
    assert {job.claim for job in claimed} == {1}
    assert sum(ends) == len(jobs)


def _claimed(store: Store) -> JobRecord | None:
    with store.unit_of_work() as work:
        return work.jobs.claim("here")


def _ends(store: Store, job: JobRecord) -> bool:
    try:
        with store.unit_of_work() as work:
            work.jobs.finish(job, JobState.DONE)
    except Fenced:
        return False
    return True


def test_of_many_who_ask_the_same_one_gets_a_job(store: Store) -> None:
    """Sixteen threads accept jobs of the same few questions."""
    barrier = Barrier(THREADS)

    def race() -> list[bool]:
        barrier.wait(HANG_S)
        added = []
        for question in "abcdef":
            with store.unit_of_work() as work:
                added.append(work.jobs.add_unless_open(a_job(request_digest=question)))
        return added

    with ThreadPoolExecutor(THREADS) as pool:
        won = [turn.result(HANG_S) for turn in [pool.submit(race) for _ in range(THREADS)]]
    assert [sum(each) for each in zip(*won, strict=True)] == [1] * 6


def test_readers_do_not_wait_for_a_writer(store: Store) -> None:
    """While a unit of work is open, readings see the last commit."""
    before, during = an_answer(), an_answer()
    with store.unit_of_work() as work:
        work.answers.add(before)
    with store.unit_of_work() as work:
        work.answers.add(during)
        with ThreadPoolExecutor(1) as pool:
            seen = pool.submit(_identifiers, store).result(HANG_S)
    assert seen == [before.id]
    assert _identifiers(store) == [during.id, before.id]


def test_several_starters_find_one_schema(empty_database_url: str) -> None:
    """Processes that start together on an empty database all come up."""
    results = PROCESSES.Queue()
    starters = [started(upgrade_once, empty_database_url, results) for _ in range(4)]
    assert [results.get(timeout=HANG_S) for _ in starters] == ["done"] * len(starters)
    for process in starters:
        process.join(HANG_S)


def test_killed_writers_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """kill -9 in the middle of writes on SQLite: the file is sound, every answer whole."""
    file = tmp_path / "sluice.db"
    url = f"sqlite:///{file}"
    store = create_store(url)
    store.upgrade()
    store.dispose()
    rng = random.Random(5)
    acknowledged: list[str] = []
    for _ in range(count(200)):
        receive, send = PROCESSES.Pipe(duplex=False)
        writer = started(write_for_ever, url, send)
        send.close()
        acknowledged.append(receive.recv())  # it is writing now
        time.sleep(rng.uniform(0.0, 0.05))
        writer.kill()
        writer.join(HANG_S)
        acknowledged += _rest(receive)
        with closing(sqlite3.connect(file)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    store = create_store(url)
    store.upgrade()
    with store.reading() as work:
        for answer_id in acknowledged:
            answer = work.answers.get(answer_id)
            assert digest(answer.body) == answer.question_digest
        # A unit of work is there as a whole or not at all.
        with_job = {job.answer_id for job in work.jobs.list(limit=10**6)}
        stored = {answer.id for answer in work.answers.list(limit=10**6)}
    assert with_job == stored >= set(acknowledged)
    store.dispose()


def _rest(receive: Connection[Any, Any]) -> list[str]:
    found = []
    try:
        while True:
            found.append(receive.recv())
    except EOFError:
        return found


def _identifiers(store: Store) -> list[str]:
    with store.reading() as work:
        return [answer.id for answer in work.answers.list(limit=10**6)]


def _check_all_there(store: Store, written: list[str]) -> None:
    assert sorted(_identifiers(store)) == sorted(written)
    with store.reading() as work:
        numbers = [revision.number for revision in work.profiles.revisions("shared")]
        latest = work.profiles.get("shared").latest
    assert numbers == list(range(1, len(written) + 1))
    assert latest == len(written)
