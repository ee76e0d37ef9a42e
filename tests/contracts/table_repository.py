"""What every repository of compiled tables does. Run on each database."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace

import pytest

from domain.errors import Conflict, NotFound
from domain.problem import FragmentLimits
from models.records import ActiveTable, TableRecord
from models.session import Store, UnitOfWork, create_store
from tests.support.records import GIVEN, a_pipeline, a_table


class TableContract:
    """Compiled tables are found by digest, by question and in pages, and never change."""

    def test_a_table_reads_back_byte_identical_after_a_restart(
        self, store: Store, database_url: str
    ) -> None:
        """File, document, floats and moments, from another store on the same database."""
        table = _of_profile(store, a_table(bytes(range(256)) * 4000))
        store.dispose()
        again = create_store(database_url)
        again.upgrade()
        with again.reading() as work:
            assert work.tables.get(table.digest) == table
        again.dispose()

    def test_the_greatest_values_are_kept(self, store: Store) -> None:
        """Of every constraint, and none of those that may be absent."""
        for at, limits in enumerate((FragmentLimits(*[2**48] * 4), FragmentLimits())):
            table = a_table(bytes([at]), limits=limits, fragment_cap=2**40, file_bytes=2**48)
            with store.unit_of_work() as work:
                work.tables.add(table)
            with store.reading() as work:
                assert work.tables.get(table.digest) == table

    def test_find_gives_the_newest_table_of_a_question(self, store: Store) -> None:
        """None where it was never asked."""
        older = _of_profile(store, a_table(b"older", question_digest="a"))
        newer = _of_profile(store, a_table(b"newer", question_digest="a"))
        _of_profile(store, a_table(b"other", question_digest="b"))
        with store.reading() as work:
            assert older.id < newer.id
            assert work.tables.find("a") == newer
            assert work.tables.find("c") is None

    def test_the_same_bytes_are_stored_once(self, store: Store) -> None:
        """The first record stays, whatever is told of them the second time."""
        table = _of_profile(store, a_table(b"file"))
        with store.unit_of_work() as work:
            work.tables.add(
                a_table(b"file", profile_name="gam", profile_revision=1, document=b"other")
            )
        with store.reading() as work:
            assert work.tables.get(table.digest) == table
            assert work.tables.list("gam", limit=9) == [table.summary()]

    def test_a_table_outlives_its_profile_without_belonging_to_it(self, store: Store) -> None:
        """By its digest it is there; its question and its profile's page do not find it."""
        table = _of_profile(store, a_table(b"file", question_digest="a"))
        with store.unit_of_work() as work:
            work.profiles.delete("gam")
        with store.reading() as work:
            found = work.tables.get(table.digest)
            assert (found.file, found.profile_name, found.profile_revision) == (b"file", None, None)
            assert work.tables.find("a") is None
            assert work.tables.list("gam", limit=9) == []

    def test_a_table_compiled_again_belongs_to_its_new_profile(self, store: Store) -> None:
        """The very bytes, after the profile was deleted and stored as it was."""
        table = _of_profile(store, a_table(b"file", question_digest="a"))
        with store.unit_of_work() as work:
            work.profiles.delete("gam")
        again = _of_profile(store, a_table(b"file", question_digest="a"))
        with store.reading() as work:
            found = work.tables.find("a")
        assert found is not None
        assert (found.id, found.profile_name) == (table.id, again.profile_name)

    def test_a_table_of_a_revision_that_is_not_there_is_a_conflict(self, store: Store) -> None:
        """Nothing of it is stored, also where its profile went while it was compiled."""
        table = a_table(profile_name="gam", profile_revision=1)
        with pytest.raises(Conflict), store.unit_of_work() as work:
            work.tables.add(table)
        with store.reading() as work, pytest.raises(NotFound):
            work.tables.get(table.digest)

    @pytest.mark.parametrize("digest", ["0" * 64, "", "\x00", "\ud800"])
    def test_an_unknown_digest_is_not_found(self, store: Store, digest: str) -> None:
        """Also one that no column could hold."""
        with store.reading() as work, pytest.raises(NotFound):
            work.tables.get(digest)

    def test_pages_run_newest_first(self, store: Store) -> None:
        """Of one profile, and of one revision of it."""
        tables = [_of_profile(store, a_table(bytes([number]))) for number in range(7)]
        with store.unit_of_work() as work:
            work.profiles.save("gam", a_pipeline(), GIVEN)
            second = a_table(b"second", profile_name="gam", profile_revision=2)
            work.tables.add(second)
        _of_profile(store, a_table(b"foreign"), profile="other")
        newest_first = [table.summary() for table in (second, *reversed(tables))]
        with store.reading() as work:
            page = work.tables.list("gam", limit=3)
            rest = work.tables.list("gam", after=page[-1].id, limit=9)
            assert page + rest == newest_first
            assert work.tables.list("gam", revision=2, limit=9) == [second.summary()]
            assert work.tables.list("gam", revision=1, limit=2) == newest_first[1:3]

    def test_filters_that_no_row_could_meet_find_nothing(self, store: Store) -> None:
        """Values that no column holds are no error."""
        with store.reading() as work:
            assert work.tables.list("\x00", limit=5) == []
            assert work.tables.list("gam", revision=2**40, limit=5) == []
            assert work.tables.list("gam", after="\udfff", limit=5) == []


class ActiveTableContract:
    """At most one table of a revision is active; the choice goes with the revision."""

    def test_the_first_one_is_chosen_and_a_later_one_replaces_it(self, store: Store) -> None:
        """By `activate_first` only where there is none; by `activate` always, and back."""
        first, second = (_of_profile(store, a_table(file)) for file in (b"first", b"second"))
        with store.unit_of_work() as work:
            assert work.tables.active("gam") is None
            work.tables.activate_first(first.digest)
            work.tables.activate_first(second.digest)
            assert work.tables.active("gam") == first
        for chosen in (second, second, first):
            with store.unit_of_work() as work:
                work.tables.activate("gam", chosen.digest)
            with store.reading() as work:
                assert work.tables.active("gam") == work.tables.active("gam", 1) == chosen
                summary = work.tables.active_summary("gam")
                assert summary == replace(chosen.summary(), is_active=True)
                listed = {one.digest: one.is_active for one in work.tables.list("gam", limit=9)}
                assert listed == {one.digest: one is chosen for one in (first, second)}

    def test_each_revision_has_its_own_and_the_current_one_counts(self, store: Store) -> None:
        """Rolling back switches; a revision without one has none."""
        first = _of_profile(store, a_table(b"first"))
        second = a_table(b"second", profile_name="gam", profile_revision=2)
        with store.unit_of_work() as work:
            work.tables.activate("gam", first.digest)
            work.profiles.add_revision("gam", a_pipeline(), GIVEN)
        with store.unit_of_work() as work:
            assert work.tables.active("gam") is None
            assert work.tables.active("gam", 1) == first
            work.tables.add(second)
            work.tables.activate("gam", second.digest)
            assert work.tables.active_all() == [
                ActiveTable("gam", 2, 1, first.digest),
                ActiveTable("gam", 2, 2, second.digest),
            ]
            work.profiles.set_current("gam", 1)
        with store.reading() as work:
            assert work.tables.active("gam") == first
            assert {one.current_revision for one in work.tables.active_all()} == {1}

    def test_a_table_of_another_one_is_a_conflict(self, store: Store) -> None:
        """Of another profile, of another revision than is meant, of none at all."""
        mine, other = _of_profile(store, a_table(b"a")), a_table(b"b")
        _of_profile(store, other, profile="other")
        loose = a_table(b"c")
        with store.unit_of_work() as work:
            work.tables.add(loose)
        for digest, revision in ((other.digest, None), (loose.digest, None), (mine.digest, 2)):
            with pytest.raises(Conflict), store.unit_of_work() as work:
                work.tables.activate("gam", digest, revision=revision)
        with store.unit_of_work() as work:
            work.tables.activate_first(loose.digest)
            work.tables.activate("gam", mine.digest, revision=1)
        with store.reading() as work:
            assert [one.digest for one in work.tables.active_all()] == [mine.digest]

    @pytest.mark.parametrize("name", ["gam", "absent", "\x00"])
    @pytest.mark.parametrize("digest", ["0" * 64, "", "\x00", "\ud800"])
    def test_what_is_not_stored_is_not_found(self, store: Store, name: str, digest: str) -> None:
        """Neither a table nor a profile."""
        _of_profile(store, a_table(b"a"))
        with pytest.raises(NotFound), store.unit_of_work() as work:
            work.tables.activate(name, digest)

    def test_a_choice_goes_with_its_profile(self, store: Store) -> None:
        """Stored again under the same name, the profile has none; its old table comes back."""
        table = _of_profile(store, a_table(b"a"))
        with store.unit_of_work() as work:
            work.tables.activate("gam", table.digest)
        with store.unit_of_work() as work:
            work.profiles.delete("gam")
        with store.reading() as work:
            assert work.tables.active_all() == []
        _of_profile(store, a_table(b"a"))
        with store.unit_of_work() as work:
            assert work.tables.active("gam") is None
            work.tables.activate_first(table.digest)
            assert work.tables.active("gam") is not None

    def test_no_row_could_have_these(self, store: Store) -> None:
        """Values that no column holds find nothing."""
        with store.reading() as work:
            for name, revision in (("\x00", None), ("gam", 2**40), ("\udfff", 1)):
                assert work.tables.active(name, revision) is None
                assert work.tables.active_summary(name, revision) is None

    def test_watchers_hear_of_what_may_change_a_choice(self, store: Store) -> None:
        """After the commit, and of nothing else; of nothing that was rolled back."""
        heard: list[int] = []
        store.watch_choices(lambda: heard.append(1))
        table = _of_profile(store, a_table(b"a"))
        assert heard == []
        acts: list[Callable[[UnitOfWork], object]] = [
            lambda work: work.tables.activate("gam", table.digest),
            lambda work: work.profiles.add_revision("gam", a_pipeline(), GIVEN),
            lambda work: work.profiles.set_current("gam", 1),
            lambda work: work.profiles.delete("gam"),
        ]
        for number, act in enumerate(acts, start=1):
            if number < len(acts):
                _rolled_back(store, act)
            with store.unit_of_work() as work:
                act(work)
            assert len(heard) == number
        with store.reading() as work:
            work.tables.active_all()
        assert len(heard) == len(acts)


def _rolled_back(store: Store, act: Callable[[UnitOfWork], object]) -> None:
    with contextlib.suppress(RuntimeError), store.unit_of_work() as work:
        act(work)
        raise RuntimeError


def _of_profile(store: Store, table: TableRecord, *, profile: str = "gam") -> TableRecord:
    """The table stored as one of the first revision of this profile, which is made if need be."""
    values = {name: getattr(table, name) for name in TableRecord.__slots__}
    kept = TableRecord(**{**values, "profile_name": profile, "profile_revision": 1})
    with store.unit_of_work() as work:
        work.profiles.create_if_absent(profile, a_pipeline(), GIVEN)
        work.tables.add(kept)
    return kept
