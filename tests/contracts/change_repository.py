"""What every repository of changes does, and that all the others tell it what they change."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

import pytest

from domain.errors import Conflict
from models.base import utc_now
from models.records import ChangedBy, JobState
from models.session import Store, UnitOfWork
from tests.support.records import GIVEN, a_fit, a_job, a_key, a_pipeline, a_table, a_verification

BY = ChangedBy("a program", "k" * 32, "r-1")
Told = list[tuple[str, str, str | None, str | None]]


def told(store: Store, *, limit: int = 50) -> Told:
    """(action, subject, before, after) of an owner's changes, the oldest first."""
    with store.reading() as unit:
        found = unit.changes.list(limit=limit)
    return [(one.action, one.subject, one.before, one.after) for one in reversed(found)]


def done(store: Store, act: Callable[[UnitOfWork], object]) -> Told:
    """What a transaction is said to have changed."""
    before = told(store)
    with store.unit_of_work() as unit:
        act(unit)
    return told(store)[len(before) :]


class ChangeContract:
    """A change is noted in the transaction that makes it, with who made it."""

    def test_a_change_says_who_made_it_and_when(self, store: Store) -> None:
        """Every field; nobody where nobody is named; a page begins behind a change."""
        mine, began = store.of("mine", BY), utc_now()
        with mine.unit_of_work() as unit:
            unit.profiles.create("p", a_pipeline(), GIVEN)
        with store.of("mine").unit_of_work() as unit:
            unit.profiles.delete("p")
        with mine.reading() as unit:
            last, first = unit.changes.list(limit=9)
            assert unit.changes.list(limit=1) == [last]
            assert unit.changes.list(after=last.id, limit=9) == [first]
            assert unit.changes.list(subject="p", limit=9) == [last, first]
            assert unit.changes.list(subject="\x00", limit=9) == []
            assert unit.changes.list(subject="q", limit=9) == []
        with store.reading() as unit:
            assert unit.changes.list(limit=9) == []  # of another owner
        assert (first.owner, first.action, first.subject) == ("mine", "profile.create", "p")
        assert (first.made_by, first.key_id, first.request) == ("a program", "k" * 32, "r-1")
        assert (last.action, last.made_by, last.key_id, last.request) == (
            *("profile.delete", ""),
            *(None, None),
        )
        assert began <= first.created_at <= last.created_at <= utc_now()

    def test_what_is_rolled_back_is_not_noted(self, store: Store) -> None:
        """There is a note exactly where there is the change."""
        with store.unit_of_work() as unit:
            unit.profiles.create("p", a_pipeline(), GIVEN)

        def revise_and_fail(unit: UnitOfWork) -> None:
            unit.profiles.add_revision("p", a_pipeline(2.0), GIVEN)
            unit.profiles.create("p", a_pipeline(), GIVEN)

        with pytest.raises(Conflict):
            done(store, revise_and_fail)
        assert told(store) == [("profile.create", "p", None, "1")]

    def test_every_repository_tells_what_it_changes(self, store: Store) -> None:
        """Of profiles, tables, measurements, jobs and keys; what changes nothing is not noted."""
        first, second = (
            a_table(profile_name="p", profile_revision=1, file=file) for file in (b"1", b"22")
        )
        job, key = a_job(request_digest="q"), a_key()
        browser = a_key(parent=key.id)
        expected: list[tuple[Callable[[UnitOfWork], object], Told]] = [
            (
                lambda unit: unit.profiles.create("p", a_pipeline(), GIVEN),
                [("profile.create", "p", None, "1")],
            ),
            (lambda unit: unit.profiles.create_if_absent("p", a_pipeline(), GIVEN), []),
            (
                lambda unit: unit.profiles.save("p", a_pipeline(2.0), GIVEN),
                [("profile.revise", "p", "1", "2")],
            ),
            (lambda unit: unit.profiles.set_current("p", 1), [("profile.use", "p", "2", "1")]),
            (
                lambda unit: unit.profiles.verify("p", 1, a_verification()),
                [("profile.verify", "p", None, "1")],
            ),
            (lambda unit: unit.tables.add(first), [("table.store", "p@1", None, first.digest)]),
            (lambda unit: unit.tables.add(first), []),
            (lambda unit: unit.tables.add(second), [("table.store", "p@1", None, second.digest)]),
            (
                lambda unit: unit.tables.activate_first(first.digest),
                [("table.activate", "p@1", None, first.digest)],
            ),
            (lambda unit: unit.tables.activate_first(second.digest), []),
            (
                lambda unit: unit.tables.activate("p", second.digest),
                [("table.activate", "p@1", first.digest, second.digest)],
            ),
            (lambda unit: unit.jobs.add(job), [("job.start", job.id, None, "q")]),
            (lambda unit: unit.jobs.add_unless_open(a_job(request_digest="q")), []),
            (lambda unit: unit.jobs.cancel(job.id), [("job.cancel", job.id, None, None)]),
            (lambda unit: unit.jobs.cancel(job.id), []),  # it has ended
            (lambda unit: unit.api_keys.add(key), [("key.create", key.id, None, "write")]),
            (lambda unit: unit.api_keys.add(browser), [("key.sign-in", browser.id, None, "write")]),
            (lambda unit: unit.api_keys.revoke(key.id), [("key.revoke", key.id, None, None)]),
            (lambda unit: unit.api_keys.revoke(key.id), []),
            (lambda unit: unit.profiles.delete("p"), [("profile.delete", "p", "1", None)]),
        ]
        for act, changes in expected:
            assert done(store, act) == changes
        with store.reading() as unit:
            assert unit.jobs.get(job.id).state is JobState.CANCELLED

    def test_measurements_and_their_fits_are_noted(self, store: Store) -> None:
        """A file once, however often it is sent."""
        with store.unit_of_work() as unit:
            digest = unit.traces.add(b"a trace", kind="direct")
            assert unit.traces.add(b"a trace", kind="direct") == digest
            fit_id = unit.fits.add([digest, digest], a_fit())
        assert told(store) == [
            ("trace.store", digest, None, None),
            ("fit.store", fit_id, None, f"{digest} {digest}"),
        ]

    def test_a_table_of_no_profile_is_named_by_its_digest(self, store: Store) -> None:
        """So that its changes are found."""
        table = a_table()
        with store.unit_of_work() as unit:
            unit.tables.add(table)
        assert told(store) == [("table.store", table.digest, None, table.digest)]

    def test_pages_have_each_change_once_while_others_write(self, store: Store) -> None:
        """What was there when the first page was read; half of the writes fail."""
        written = [_Writer(store, name) for name in ("a", "b", "c", "d")]
        for writer in written:
            writer.start()
        walks: list[tuple[list[str], list[str]]] = []
        while any(writer.is_alive() for writer in written) or len(walks) < 2:
            with store.reading() as unit:
                there = [one.id for one in unit.changes.list(limit=1000)]
            walks.append((there, _walked(store)))
        for writer in written:
            writer.join()
        for there, walked in walks:
            assert walked == sorted(walked, reverse=True)
            assert set(there) <= set(walked)
        with store.reading() as unit:
            noted = {(one.action, one.subject) for one in unit.changes.list(limit=1000)}
        kept = {name for writer in written for name in writer.kept}
        assert noted == {("profile.create", name) for name in kept}
        assert len(kept) == 4 * _Writer.NUMBER // 2


def _walked(store: Store) -> list[str]:
    """The identifiers of all pages of three, one transaction a page."""
    found: list[str] = []
    while True:
        with store.reading() as unit:
            page = unit.changes.list(after=found[-1] if found else None, limit=3)
        if not page:
            return found
        found += [one.id for one in page]


class _Undone(Exception):
    """A transaction is to be rolled back."""


class _Writer(threading.Thread):
    """Makes profiles, each in a transaction, every second of which fails at its end."""

    NUMBER = 10

    def __init__(self, store: Store, name: str) -> None:
        super().__init__()
        self._store = store
        self._name = name
        self.kept: list[str] = []

    def run(self) -> None:
        for number in range(self.NUMBER):
            name = f"{self._name}-{number}"
            with suppress(_Undone), self._store.unit_of_work() as unit:
                unit.profiles.create(name, a_pipeline(), GIVEN)
                if number % 2:
                    raise _Undone
                self.kept.append(name)
