"""What is counted of what owners store. Run on each database.

The figures are checked against rows that are read and measured by hand, and against the recount.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from threading import Barrier
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from sqlalchemy import delete, select, update

from domain.errors import Conflict, NotFound, QuotaExceeded
from models import collection
from models.base import Base
from models.errors import Fenced
from models.identifiers import new_id
from models.records import (
    Blame,
    HiddenAnswerRecord,
    JobRecord,
    JobState,
    Keep,
    KeyClaim,
    KeyedAnswer,
    StoredBytes,
)
from models.repositories import leftovers
from models.repositories.leftovers import KINDS
from models.rows import AnswerBodyRow, JobRow, RequestKeyRow
from models.session import Store, UnitOfWork
from tests.models.test_collection import bytes_by_owner
from tests.support.counts import count
from tests.support.records import (
    GIVEN,
    TIMESTAMP,
    a_fit,
    a_job,
    a_pipeline,
    a_table,
    a_verification,
    an_answer,
)

OWNERS = ("mine", "theirs")
SNOWMAN = "\N{SNOWMAN}"  # one character, three bytes
Act = Callable[[UnitOfWork], object]


def by_hand(store: Store) -> dict[str, int]:
    """How much each owner stores, of those that store anything, by reading all of it."""
    with store.reading() as work:
        connection = work._connection
        rows = {
            name: [dict(row) for row in connection.execute(select(table)).mappings()]
            for name, table in Base.metadata.tables.items()
        }
    return dict(+bytes_by_owner(rows))


def figures(store: Store) -> dict[str, int]:
    """The same as it is counted."""
    with store.reading() as work:
        return dict(+Counter(work.stored_bytes.by_owner()))


def written(store: Store, act: Act) -> None:
    """Act in a unit of work of its own."""
    with store.unit_of_work() as work:
        act(work)


def note(name: str | None, text: str | None = None) -> dict[str, Any]:
    """What an answer is called."""
    return {"name": name, "note": text}


class StoredBytesContract:
    """Each owner's figure is what he stores, whatever is done and whatever fails."""

    def test_what_is_stored_is_counted_in_bytes(self, store: Store) -> None:
        """Also text, which has more bytes than characters; and less once it is gone."""
        mine = store.of("mine")
        answer = an_answer(body=b"12345", **note(SNOWMAN))
        written(mine, lambda work: work.answers.add(answer))
        assert figures(store) == by_hand(store) == {"mine": 8}
        written(mine, lambda work: work.answers.describe(answer.id, **note("ab", SNOWMAN)))
        assert figures(store) == by_hand(store) == {"mine": 10}
        with mine.reading() as work:
            assert work.stored_bytes.totals() == StoredBytes(10, 10)
            assert work.stored_bytes.drifts() == []

    def test_nobody_stores_anything_at_first(self, store: Store) -> None:
        """Zero of all, and nobody."""
        with store.reading() as work:
            assert work.stored_bytes.totals() == StoredBytes(0, 0)
            assert work.stored_bytes.by_owner() == {}

    def test_what_is_too_much_is_refused_whole(self, store: Store) -> None:
        """With the figures; another owner stores on, and what takes less is not refused."""
        mine, theirs = (store.of(owner).bounded(100) for owner in OWNERS)
        answer = an_answer(body=b"x" * 90, **note(None))
        written(mine, lambda work: work.answers.add(answer))
        said = "at most 100 bytes stored by one owner: mine stores 90, and this adds 11;"
        with pytest.raises(QuotaExceeded, match=said), mine.unit_of_work() as work:
            work.answers.add(an_answer(body=b"y" * 11, **note(None)))
        assert figures(store) == by_hand(store) == {"mine": 90}
        written(mine, lambda work: work.answers.add(an_answer(body=b"z" * 10, **note(None))))
        written(theirs, lambda work: work.answers.add(an_answer(body=b"z" * 100, **note(None))))
        assert figures(store) == by_hand(store) == {"mine": 100, "theirs": 100}
        unbounded = mine.bounded(None)
        written(unbounded, lambda work: work.answers.describe(answer.id, **note("n" * 50)))
        written(mine, lambda work: work.answers.describe(answer.id, **note("n" * 20)))  # less
        with pytest.raises(QuotaExceeded, match="stores 120, and this adds 1;"):
            written(mine, lambda work: work.answers.describe(answer.id, **note("n" * 21)))
        written(mine, lambda work: work.answers.describe(answer.id, **note(None)))
        assert figures(store)["mine"] == 100

    def test_who_stores_too_much_may_delete_and_end(self, store: Store) -> None:
        """A profile goes, and jobs end that left something: neither is asked for room."""
        mine = store.of("mine")
        written(mine, lambda work: work.profiles.create("p", a_pipeline(), GIVEN))
        jobs = [a_job(owner="mine") for _ in range(4)]
        with mine.unit_of_work() as work:
            work.runners.register("r")
            for job in jobs:
                work.jobs.add(job)
            claimed = [work.jobs.claim("r") for _ in jobs]
            first, second, third, _ = (job for job in claimed if job is not None)
            work.jobs.show(first, best=b"12345", history=b"[]")
            work.jobs.show(third, best=b"123")
        full = mine.bounded(1)
        for act, adds in (
            (lambda work: work.jobs.finish(first, JobState.FAILED, error=b"{}"), 9),
            (lambda work: work.jobs.finish(second, JobState.CANCELLED, {"best": b"12"}), 2),
            (lambda work: work.jobs.give_back(third), 0),
            (lambda work: work.jobs.cancel(third.id), 3),
            (lambda work: work.runners.remove("r", error=b"lost"), 0),
        ):
            before = figures(store)["mine"]
            written(full, act)
            assert figures(store) == by_hand(store)
            assert figures(store) == {"mine": before + adds}
        written(full, lambda work: work.profiles.delete("p"))
        assert figures(store) == by_hand(store)

    def test_a_result_is_refused_and_its_job_may_fail(self, store: Store) -> None:
        """What was shown of it goes with that, where it is asked to."""
        mine = store.of("mine")
        job = a_job(owner="mine")
        with mine.unit_of_work() as work:
            work.runners.register("r")
            work.jobs.add(job)
            claimed = work.jobs.claim("r")
            assert claimed is not None
            work.jobs.show(claimed, best=b"12345")
        full = mine.bounded(len(job.request))
        with pytest.raises(QuotaExceeded):
            written(full, lambda work: work.jobs.finish(claimed, JobState.DONE, {"best": b"1"}))
        with store.reading() as work:
            assert work.stored_bytes.by_owner() == {"mine": len(job.request)}
        none: Any = {"best": None}
        written(full, lambda work: work.jobs.finish(claimed, JobState.FAILED, none, error=b"{}"))
        assert figures(store) == by_hand(store) == {"mine": len(job.request) + 2}

    def test_what_was_not_counted_is_found(self, store: Store) -> None:
        """As of software of before, which stores and deletes beside this one; a correction counts
        once, however many saw the same.
        """
        answers = [an_answer(body=b"12345", **note(None)) for _ in range(2)]
        for owner, answer in zip(OWNERS, answers, strict=True):
            with store.of(owner).unit_of_work() as work:
                work.answers.add(answer)
        unseen = [
            delete(AnswerBodyRow).where(AnswerBodyRow.answer_id == answers[0].id),
            update(AnswerBodyRow)
            .where(AnswerBodyRow.answer_id == answers[1].id)
            .values(body=b"123456789"),
        ]
        with store.unit_of_work() as work:
            for statement in unseen:
                work._connection.execute(statement)
        with store.reading() as work:
            drifts = work.stored_bytes.drifts()
        assert [(drift.owner, drift.off_bytes) for drift in drifts] == [("mine", -5), ("theirs", 4)]
        with store.of("mine").unit_of_work() as work:
            work.answers.add(an_answer(body=b"1", **note(None)))  # between the look and the deed
        for _ in range(2):
            written(store, lambda work: work.stored_bytes.correct(drifts))
        assert figures(store) == by_hand(store) == {"mine": 1, "theirs": 9}
        assert collection.recount(store) == {}

    def test_an_owner_whom_nobody_counted_is_found(self, store: Store) -> None:
        """Who stored by software of before alone has no row yet."""
        with store.of("mine").unit_of_work() as work:
            work.answers.add(an_answer(body=b"12345", **note(None)))
            work._tally.change("mine", -5)
        assert figures(store) == {}
        assert collection.recount(store) == {"mine": 5}
        assert figures(store) == {"mine": 5}

    def test_of_two_at_once_both_count(self, store: Store) -> None:
        """Many threads store and delete of two owners: no figure is lost, and nobody waits for
        somebody who waits for him.
        """
        barrier, threads = Barrier(8), 8

        def write(seed: int) -> None:
            rng = random.Random(seed)
            barrier.wait(60)
            for _ in range(count(200)):
                owned = store.of(rng.choice(OWNERS))
                with suppress(Conflict, NotFound), owned.unit_of_work() as work:
                    work.answers.add(an_answer(body=b"x" * rng.randrange(9)))
                    if rng.random() < 0.5:
                        work.profiles.save("p", a_pipeline(), GIVEN)
                    elif rng.random() < 0.5:
                        work.profiles.delete("p")
                    work._tally.change(rng.choice(OWNERS), 0)

        with ThreadPoolExecutor(threads) as pool:
            for done in [pool.submit(write, seed) for seed in range(threads)]:
                done.result(120)
        assert figures(store) == by_hand(store)

    def test_of_two_at_once_the_second_has_no_room(self, store: Store) -> None:
        """Each alone would fit: what counts is the figure after both."""
        mine = store.of("mine").bounded(100)
        barrier = Barrier(4)

        def write(_: int) -> bool:
            barrier.wait(60)
            try:
                written(
                    mine, lambda work: work.answers.add(an_answer(body=b"x" * 60, **note(None)))
                )
            except QuotaExceeded:
                return False
            return True

        with ThreadPoolExecutor(4) as pool:
            assert sorted(pool.map(write, range(4))) == [False, False, False, True]
        assert figures(store) == by_hand(store) == {"mine": 60}

    def test_no_sequence_of_calls_makes_a_figure_wrong(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Random calls of two owners, each compared with what is there by hand."""
        monkeypatch.setattr(leftovers, "MIN_AGE_S", 0.0)

        class Machine(StoringMachine):
            def __init__(self) -> None:
                super().__init__(store)

        run_state_machine_as_test(
            Machine, settings=settings(max_examples=count(400, share=40), stateful_step_count=30)
        )


class StoringMachine(RuleBasedStateMachine):
    """Whatever is stored, changed or deleted, by two owners with the same names."""

    owners = st.sampled_from(OWNERS)
    sizes = st.integers(0, 40)
    names = st.sampled_from(("p", "q"))
    texts = st.text(st.sampled_from("a" + SNOWMAN), max_size=5) | st.none()
    numbers = st.integers(0, 10**6)

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store
        self._answers = {owner: list[str]() for owner in OWNERS}
        self._claimed: list[JobRecord] = []
        self._keys: list[KeyClaim] = []
        with store.unit_of_work() as work:
            for table in reversed(Base.metadata.sorted_tables):
                work._connection.execute(delete(table))
            work.runners.register("r")

    @invariant()
    def each_figure_is_what_is_there(self) -> None:
        """By hand, and by the statement that recounts."""
        assert figures(self._store) == by_hand(self._store)
        with self._store.reading() as work:
            assert work.stored_bytes.drifts() == []

    @rule(owner=owners, size=sizes, name=texts)
    def answer(self, owner: str, size: int, name: str | None) -> None:
        """An answer."""
        record = an_answer(body=b"x" * size, **note(name))
        written(self._store.of(owner), lambda work: work.answers.add(record))
        self._answers[owner].append(record.id)

    @rule(owner=owners, at=numbers, name=texts, text=texts)
    def describe(self, owner: str, at: int, name: str | None, text: str | None) -> None:
        """Another name."""
        if found := self._answers[owner]:
            chosen = found[at % len(found)]
            act: Act = lambda work: work.answers.describe(chosen, **note(name, text))  # noqa: E731
            with suppress(NotFound):
                written(self._store.of(owner), act)

    @rule(owner=owners, size=sizes, room=st.integers(-20, 20))
    def answer_where_there_may_be_room(self, owner: str, size: int, room: int) -> None:
        """Refused exactly where there is none."""
        before = figures(self._store).get(owner, 0)
        bounded = self._store.of(owner).bounded(max(0, before + room))
        record = an_answer(body=b"x" * size, **note(None))
        fits = size == 0 or before + size <= max(0, before + room)
        try:
            written(bounded, lambda work: work.answers.add(record))
        except QuotaExceeded:
            assert not fits
        else:
            assert fits
            self._answers[owner].append(record.id)

    @rule(owner=owners, size=sizes, is_kept=st.booleans())
    def hidden_answer(self, owner: str, size: int, is_kept: bool) -> None:
        """One that may be undone by what fails after it."""
        record = HiddenAnswerRecord(
            id=new_id(), created_at=TIMESTAMP, question_digest="1", cut_off=False, body=b"x" * size
        )
        with suppress(NotFound), self._store.of(owner).unit_of_work() as work:
            work.hidden_answers.add(record)
            if not is_kept:
                work.profiles.get("nobody")

    @rule(owner=owners, number=st.integers(0, 3), fits=st.integers(0, 2))
    def trace(self, owner: str, number: int, fits: int) -> None:
        """A file, which may be there, and fits of it."""
        with self._store.of(owner).unit_of_work() as work:
            digest = work.traces.add(b"x" * 10**number, kind="direct")
            for _ in range(fits):
                work.fits.add([digest, digest], a_fit())

    @rule(owner=owners, name=names)
    def save(self, owner: str, name: str) -> None:
        """A profile, or a revision more."""
        written(self._store.of(owner), lambda work: work.profiles.save(name, a_pipeline(), GIVEN))

    @rule(owner=owners, name=names, number=st.integers(1, 2))
    def verify(self, owner: str, name: str, number: int) -> None:
        """A verification in the place of another one."""
        act: Act = lambda work: work.profiles.verify(name, number, a_verification())  # noqa: E731
        with suppress(NotFound):
            written(self._store.of(owner), act)

    @rule(owner=owners, name=names)
    def delete_profile(self, owner: str, name: str) -> None:
        """With its revisions and verifications."""
        with suppress(NotFound):
            written(self._store.of(owner), lambda work: work.profiles.delete(name))

    @rule(owner=owners, name=names | st.none(), size=st.integers(1, 3))
    def table(self, owner: str, name: str | None, size: int) -> None:
        """A table, which may be there."""
        record = a_table(b"x" * size, profile_name=name, profile_revision=name and 1)
        with suppress(Conflict):
            written(self._store.of(owner), lambda work: work.tables.add(record))

    @rule(owner=owners, size=sizes, is_done=st.booleans())
    def job(self, owner: str, size: int, is_done: bool) -> None:
        """A job that waits, or has its result already."""
        ended: dict[str, Any] = {"state": JobState.DONE, "finished_at": TIMESTAMP, "best": b"12345"}
        job = a_job(owner=owner, request=b"x" * size, **(ended if is_done else {}))
        with self._store.of(owner).unit_of_work() as work:
            if size % 2:
                work.jobs.add(job)
            else:
                work.jobs.add_unless_open(job)

    @rule(size=sizes)
    def claim(self, size: int) -> None:
        """A runner has one, and shows how far it is."""
        with self._store.unit_of_work() as work:
            job = work.jobs.claim("r")
            if job is not None:
                work.jobs.show(job, best=b"x" * size, history=b"[]")
                self._claimed.append(job)

    @rule(at=numbers, state=st.sampled_from([JobState.DONE, JobState.FAILED, JobState.CANCELLED]))
    def finish(self, at: int, state: JobState) -> None:
        """It ends, with what was shown or another result."""
        if self._claimed:
            job = self._claimed.pop(at % len(self._claimed))
            changes: Any = {"best": b"x" * (at % 9)} if at % 2 else {}
            with suppress(Fenced), self._store.of(job.owner).unit_of_work() as work:
                work.jobs.finish(job, state, changes, error=b"{}" if at % 3 else None)

    @rule(at=numbers, blame=st.sampled_from(list(Blame)))
    def give_back(self, at: int, blame: Blame) -> None:
        """It waits again, or has failed too often."""
        if self._claimed:
            job = self._claimed.pop(at % len(self._claimed))
            with suppress(Fenced), self._store.of(job.owner).unit_of_work() as work:
                work.jobs.give_back(job, blame, error=b"too often")

    @rule()
    def lose_the_runner(self) -> None:
        """All that it ran waits again, or was lost too often."""
        with self._store.unit_of_work() as work:
            work.runners.remove("r", error=b"lost")
            work.runners.register("r")

    @rule(owner=owners, at=numbers)
    def cancel(self, owner: str, at: int) -> None:
        """Somebody asks a job to stop."""
        with self._store.of(owner).unit_of_work() as work:
            if found := work.jobs.list(limit=9):
                work.jobs.cancel(found[at % len(found)].id)

    @rule(owner=owners, size=sizes)
    def answer_under_a_key(self, owner: str, size: int) -> None:
        """A request's answer is kept under its key."""
        claim = KeyClaim(owner, new_id(), new_id(), "")
        answer = KeyedAnswer(
            fingerprint="f" * 64, body_bytes=size, status=200, headers=b"[]", body=b"x" * size
        )
        with self._store.of(owner).unit_of_work() as work:
            work.request_keys.claim(claim)
            if size % 4:
                work.request_keys.complete(claim, answer)
            else:
                work.request_keys.release(claim)

    @rule(share=st.integers(0, 3))
    def sweep(self, share: int) -> None:
        """Answers under keys of both owners go, some or all."""
        with self._store.unit_of_work() as work:
            old = datetime.now(UTC) - timedelta(days=2)
            few = update(RequestKeyRow).where(RequestKeyRow.body_bytes > share)
            work._connection.execute(few.values(created_at=old))
            work.request_keys.sweep(old + timedelta(days=1))

    @rule(owner=owners, kinds=st.sets(st.sampled_from(KINDS)), kept=st.integers(0, 3))
    def collect(self, owner: str, kinds: set[str], kept: int) -> None:
        """Retention deletes what is beyond so many of some kinds."""
        with self._store.unit_of_work() as work:
            # Of jobs whose runner is gone none is run again.
            ended = JobRow.finished_at.is_not(None)
            work._connection.execute(update(JobRow).where(ended).values(finished_at=TIMESTAMP))
        for _ in collection.collect(self._store.of(owner), dict.fromkeys(kinds, Keep(0.0, kept))):
            pass
