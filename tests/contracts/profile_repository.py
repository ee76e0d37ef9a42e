"""What every profile repository does. Run on each database by tests/models/test_repositories.py."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.errors import Conflict, InvalidInput, NotFound
from domain.profile import Origin, Provenance
from domain.structure import Evidence, KnownOverlap, Structure, StructureKind
from domain.verification import ModelVerdict
from models.session import Store
from tests.support.records import GIVEN, a_fit, a_pipeline, a_verification, an_aggregate


class ProfileContract:
    """Profiles, their revisions, and which is current."""

    def test_a_created_profile_reads_back_equal(self, store: Store) -> None:
        """Every float, name and microsecond comes back as it was given."""
        with store.unit_of_work() as work:
            created = work.profiles.create("gam", a_pipeline(), GIVEN)
        with store.reading() as work:
            assert work.profiles.get("gam") == created
            assert work.profiles.revision("gam") == created.current
            assert work.profiles.revision("gam", 1).model == a_pipeline()
        assert (created.latest, created.current.number) == (1, 1)
        assert created.created_at.utcoffset() is not None

    def test_an_aggregate_is_a_revision_like_any_other(self, store: Store) -> None:
        """A profile may pass from one to the other and back."""
        with store.unit_of_work() as work:
            created = work.profiles.create("seen", an_aggregate(), GIVEN)
            revised = work.profiles.add_revision("seen", a_pipeline(), GIVEN)
        with store.reading() as work:
            assert work.profiles.revision("seen", 1) == created.current
            assert work.profiles.revision("seen", 1).model == an_aggregate()
            assert work.profiles.get("seen") == revised

    def test_a_taken_name_is_a_conflict_and_changes_nothing(self, store: Store) -> None:
        """Names are unique; create_if_absent says None."""
        with store.unit_of_work() as work:
            first = work.profiles.create("gam", a_pipeline(), GIVEN)
        with store.unit_of_work() as work:
            with pytest.raises(Conflict, match="already a hardware profile"):
                work.profiles.create("gam", a_pipeline(9.0), GIVEN)
            assert work.profiles.create_if_absent("gam", a_pipeline(9.0), GIVEN) is None
            # The transaction stays usable.
            work.profiles.create("gms", a_pipeline(), GIVEN)
        with store.reading() as work:
            assert work.profiles.get("gam") == first
            assert work.profiles.get("gms").latest == 1

    def test_a_name_outside_the_rule_is_refused(self, store: Store) -> None:
        """The rule on names is the domain's."""
        with store.unit_of_work() as work, pytest.raises(InvalidInput) as refused:
            work.profiles.create("No Such Name", a_pipeline(), GIVEN)
        assert refused.value.field == "name"

    def test_a_further_revision_becomes_current(self, store: Store) -> None:
        """Numbers count up; earlier revisions stay as they were."""
        with store.unit_of_work() as work:
            first = work.profiles.create("gam", a_pipeline(1.0), GIVEN).current
            second = work.profiles.add_revision("gam", a_pipeline(2.0), GIVEN)
            third = work.profiles.save("gam", a_pipeline(3.0), GIVEN)
        assert (second.current.number, third.current.number, third.latest) == (2, 3, 3)
        with store.reading() as work:
            assert work.profiles.revisions("gam") == [first, second.current, third.current]
            assert work.profiles.get("gam") == third
            assert work.profiles.revision("gam", 1) == first

    def test_save_creates_what_is_absent(self, store: Store) -> None:
        """Save is create or add_revision."""
        with store.unit_of_work() as work:
            assert work.profiles.save("new", a_pipeline(), GIVEN).latest == 1

    def test_current_rolls_back_and_forward(self, store: Store) -> None:
        """The next revision still gets a number of its own."""
        with store.unit_of_work() as work:
            work.profiles.create("gam", a_pipeline(1.0), GIVEN)
            work.profiles.add_revision("gam", a_pipeline(2.0), GIVEN)
        with store.unit_of_work() as work:
            back = work.profiles.set_current("gam", 1)
        assert (back.current.number, back.latest) == (1, 2)
        with store.reading() as work:
            assert work.profiles.get("gam") == back
        with store.unit_of_work() as work:
            assert work.profiles.set_current("gam", 2).current.number == 2
            work.profiles.set_current("gam", 1)
            assert work.profiles.add_revision("gam", a_pipeline(3.0), GIVEN).latest == 3

    def test_delete_takes_revisions_and_nothing_else(self, store: Store) -> None:
        """Afterwards the name is free and numbers from 1."""
        with store.unit_of_work() as work:
            work.profiles.save("gam", a_pipeline(), GIVEN)
            work.profiles.save("gam", a_pipeline(), GIVEN)
            work.profiles.save("gms", a_pipeline(), GIVEN)
        with store.unit_of_work() as work:
            work.profiles.delete("gam")
            with pytest.raises(NotFound):
                work.profiles.revision("gam", 1)
        with store.unit_of_work() as work:
            assert [profile.name for profile in work.profiles.list(limit=9)] == ["gms"]
            assert work.profiles.create("gam", a_pipeline(), GIVEN).latest == 1
            assert len(work.profiles.revisions("gam")) == 1

    @pytest.mark.parametrize("name", ["absent", "nul\x00", "\ud800", "x" * 100_000])
    def test_an_unknown_name_is_not_found(self, store: Store, name: str) -> None:
        """Also a name that no column could hold."""
        with store.unit_of_work() as work:
            profiles = work.profiles
            for call in (
                lambda: profiles.get(name),
                lambda: profiles.revision(name),
                lambda: profiles.revision(name, 1),
                lambda: profiles.revisions(name),
                lambda: profiles.add_revision(name, a_pipeline(), GIVEN),
                lambda: profiles.set_current(name, 1),
                lambda: profiles.delete(name),
            ):
                with pytest.raises(NotFound):
                    call()

    @pytest.mark.parametrize("number", [0, -1, 2, 2**31, 2**70])
    def test_an_unknown_revision_is_not_found(self, store: Store, number: int) -> None:
        """Also a number that no column could hold."""
        with store.unit_of_work() as work:
            work.profiles.create("gam", a_pipeline(), GIVEN)
            with pytest.raises(NotFound, match="revision"):
                work.profiles.revision("gam", number)
            with pytest.raises(NotFound, match="revision"):
                work.profiles.set_current("gam", number)
            assert work.profiles.get("gam").current.number == 1

    def test_pages_follow_the_bytes_of_names(self, store: Store) -> None:
        """Whatever the locale: '-' < '.' < digits < '_' < letters."""
        names = ["a", "a-b", "a.b", "a0", "a_b", "aa", "b", "0", "z"]
        with store.unit_of_work() as work:
            for name in names:
                work.profiles.create(name, a_pipeline(), GIVEN)
        with store.reading() as work:
            assert [profile.name for profile in work.profiles.list(limit=99)] == sorted(names)

    def test_a_search_finds_the_text_itself_anywhere_in_the_name(self, store: Store) -> None:
        """What is a pattern to a database is a character here; pages go on behind a name."""
        names = ["a-b", "a.b", "a_b", "ab", "b-a_b", "xa_by"]
        with store.unit_of_work() as work:
            for name in names:
                work.profiles.create(name, a_pipeline(), GIVEN)
        found = {
            "a_b": ["a_b", "b-a_b", "xa_by"],
            ".": ["a.b"],
            "%": [],
            "\x00": [],
            "": names,
        }
        with store.reading() as work:
            for text, expected in found.items():
                page = work.profiles.list(containing=text, limit=99)
                assert [profile.name for profile in page] == sorted(expected)
            behind = work.profiles.list(containing="a_b", after="a_b", limit=1)
            assert [profile.name for profile in behind] == ["b-a_b"]

    def test_pages_have_no_gap_and_no_repeat_while_profiles_come(self, store: Store) -> None:
        """Whoever was there at the first page is seen once, in order."""
        names = [f"p{number:03}" for number in range(0, 100, 2)]
        with store.unit_of_work() as work:
            for name in names:
                work.profiles.create(name, a_pipeline(), GIVEN)
        seen: list[str] = []
        after = None
        for turn in range(1, 100):
            with store.unit_of_work() as work:
                page = work.profiles.list(after=after, limit=7)
                work.profiles.create(f"p{2 * turn - 1:03}", a_pipeline(), GIVEN)
            if not page:
                break
            seen += [profile.name for profile in page]
            after = seen[-1]
        assert seen == sorted(set(seen))
        assert set(names) <= set(seen)

    def test_a_page_behind_an_impossible_name_is_empty(self, store: Store) -> None:
        """A cursor from nowhere is no error."""
        with store.reading() as work:
            assert work.profiles.list(after="\x00", limit=5) == []

    def test_provenance_is_kept_and_its_fit_must_be_stored(self, store: Store) -> None:
        """A revision from a fit refers to it."""
        with store.unit_of_work() as work:
            digest = work.traces.add(b"trace", kind="direct")
            fit_id = work.fits.add([digest], a_fit())
            origin = Provenance(Origin.FIT, "fitted; µs", fit_id)
            work.profiles.create("gam", a_pipeline(), origin)
        with store.reading() as work:
            assert work.profiles.revision("gam").provenance == origin
        with pytest.raises(Conflict), store.unit_of_work() as work:
            work.profiles.create("gms", a_pipeline(), Provenance(Origin.FIT, "", "absent"))
        with store.reading() as work, pytest.raises(NotFound):
            work.profiles.get("gms")

    def test_a_later_structure_is_found_behind_any_number_of_fits(self, store: Store) -> None:
        """Only what begins show tells; the current revision has none that counts."""
        bare, seen = a_fit(), Evidence(50, 800, 0.03, 0.4, 0.0, 0.01)
        serial, none = (
            replace(bare, overlap=KnownOverlap(Structure(kind, ("copy", "send"), seen)))
            for kind in (StructureKind.SERIAL, StructureKind.SWEEP)
        )
        named = '"structure":{"kind":"serial"'  # in a text it is no structure
        titled = replace(bare, understood=(("format", named),))
        with store.unit_of_work() as work:
            digest = work.traces.add(b"a trace", kind=bare.kind)
            of = [work.fits.add((digest,), fit) for fit in (bare, serial, none, titled)]
            work.profiles.create("gam", a_pipeline(), GIVEN)
            for fit_id in (of[0], of[1], *[of[0], of[2]] * 9, of[3]):
                origin = Provenance(Origin.FIT, "fitted", fit_id)
                work.profiles.add_revision("gam", a_pipeline(), origin)
        with store.reading() as work:
            assert work.profiles.later_structure("gam", 1) == (3, of[1])
            assert work.profiles.later_structure("gam", 2) == (3, of[1])
            assert work.profiles.later_structure("gam", 3) is None
            assert work.profiles.later_structure("gam", 30) is None
            assert work.profiles.later_structure("other", 1) is None
            assert work.profiles.later_structure("a\0b", 1 << 80) is None
            seen = work.profiles.of_begins("gam")
            assert seen is not None
            assert (seen.current, seen.newest) == (22, (3, of[1]))
            assert seen.numbers == {3, *range(5, 22, 2)}
            assert work.profiles.of_begins("other") is None
            assert work.profiles.of_begins("a\0b") is None
        with store.unit_of_work() as work:
            work.profiles.set_current("gam", 1)
            assert work.profiles.later_structure("gam", 1) is None

    def test_a_verification_is_of_one_revision_and_replaced(self, store: Store) -> None:
        """It reads back equal, wherever the revision is read; the revision stays as it was."""
        first, second = a_verification(ModelVerdict.DOES_NOT_HOLD), a_verification()
        with store.unit_of_work() as work:
            work.profiles.create("gam", a_pipeline(), GIVEN)
            work.profiles.add_revision("gam", a_pipeline(2.0), GIVEN)
            assert work.profiles.verify("gam", 1, first).verification == first
        with store.unit_of_work() as work:
            assert work.profiles.revision("gam", 1).verification == first
            assert work.profiles.verify("gam", 1, second).model == a_pipeline()
        with store.reading() as work:
            assert work.profiles.revision("gam", 1).verification == second
            assert work.profiles.get("gam").current.verification is None
            found = [one.verification for one in work.profiles.revisions("gam")]
            assert found == [second, None]
        with store.unit_of_work() as work:
            work.profiles.verify("gam", 2, first)
            assert work.profiles.get("gam").current.verification == first
            assert work.profiles.list(limit=5)[0].current.verification == first

    def test_a_verification_goes_with_its_profile(self, store: Store) -> None:
        """A new profile of the name has none."""
        with store.unit_of_work() as work:
            work.profiles.create("gam", a_pipeline(), GIVEN)
            work.profiles.verify("gam", 1, a_verification())
            work.profiles.delete("gam")
            assert work.profiles.create("gam", a_pipeline(), GIVEN).current.verification is None
        with store.reading() as work:
            assert work.profiles.get("gam").current.verification is None

    @pytest.mark.parametrize(("name", "number"), [("gms", 1), ("gam", 2), ("gam", 2**70)])
    def test_what_is_not_there_is_not_verified(self, store: Store, name: str, number: int) -> None:
        """And nothing is kept."""
        with store.unit_of_work() as work:
            work.profiles.create("gam", a_pipeline(), GIVEN)
        with pytest.raises(NotFound), store.unit_of_work() as work:
            work.profiles.verify(name, number, a_verification())
        with store.reading() as work:
            assert work.profiles.get("gam").current.verification is None

    def test_provenance_that_no_column_can_hold_is_refused(self, store: Store) -> None:
        """NUL and lone surrogates name the field."""
        for detail in ("a\x00b", "a\ud800b"):
            with pytest.raises(InvalidInput) as refused, store.unit_of_work() as work:
                work.profiles.create("gam", a_pipeline(), Provenance(Origin.GIVEN, detail))
            assert refused.value.field == "provenance"
        with store.reading() as work:
            assert work.profiles.list(limit=5) == []
