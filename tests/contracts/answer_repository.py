"""What every answer repository does. Run on each database."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta, timezone
from itertools import product

import pytest

from domain.errors import Conflict, InvalidInput, NotFound
from domain.solution import Strategy
from models.records import AnswerRecord, AnswerSummary
from models.session import Store, create_store
from tests.support.records import GIVEN, TIMESTAMP, a_pipeline, an_answer


class AnswerContract:
    """Answers are found by identifier, by question and in pages; only their names may change."""

    def test_an_answer_reads_back_byte_identical_after_a_restart(
        self, store: Store, database_url: str
    ) -> None:
        """Body, floats and microseconds, from another store on the same database."""
        answer = an_answer(profile_name="gam", profile_revision=3, body=bytes(range(256)) * 1000)
        with store.unit_of_work() as work:
            work.answers.add(answer)
        store.dispose()
        again = create_store(database_url)
        again.upgrade()
        with again.reading() as work:
            assert work.answers.get(answer.id) == answer
        again.dispose()

    def test_it_is_called_something_else(self, store: Store) -> None:
        """And nothing, while the rest of it stays; by its owner alone, in text that can be kept."""
        answer = an_answer()
        with store.unit_of_work() as work:
            work.answers.add(answer)
            work.answers.describe(answer.id, name=None, note="later")
            named = replace(answer, name=None, note="later")
            assert work.answers.get(answer.id) == named
            assert work.answers.list(limit=1) == [named.summary()]
            with pytest.raises(InvalidInput):
                work.answers.describe(answer.id, name="\0", note=None)
        for owned, known in ((store.of("another"), answer.id), (store, "0" * 32), (store, "\0")):
            with pytest.raises(NotFound), owned.unit_of_work() as work:
                work.answers.describe(known, name="mine", note=None)

    def test_times_are_kept_as_timestamps(self, store: Store) -> None:
        """A time in another zone is the same moment, read back in UTC."""
        abroad = TIMESTAMP.astimezone(timezone(timedelta(hours=5, minutes=45)))
        answer = an_answer(created_at=abroad)
        with store.unit_of_work() as work:
            work.answers.add(answer)
        with store.reading() as work:
            found = work.answers.get(answer.id).created_at
        assert (found, found.utcoffset()) == (TIMESTAMP, timedelta(0))

    def test_find_gives_the_newest_answer_to_a_question(self, store: Store) -> None:
        """None where it was never asked."""
        older, newer = an_answer(question_digest="a"), an_answer(question_digest="a")
        with store.unit_of_work() as work:
            assert work.answers.find("a") is None
            for answer in (older, newer, an_answer(question_digest="b")):
                work.answers.add(answer)
        with store.reading() as work:
            assert work.answers.find("a") == newer

    @pytest.mark.parametrize("answer_id", ["absent", "", "\x00", "\ud800"])
    def test_an_unknown_answer_is_not_found(self, store: Store, answer_id: str) -> None:
        """Also one that no column could hold."""
        with store.reading() as work, pytest.raises(NotFound):
            work.answers.get(answer_id)

    def test_an_identifier_is_used_once(self, store: Store) -> None:
        """The second answer under it is a conflict, the first one stays."""
        answer = an_answer()
        with store.unit_of_work() as work:
            work.answers.add(answer)
        with pytest.raises(Conflict), store.unit_of_work() as work:
            work.answers.add(an_answer(id=answer.id, body=b"other"))
        with store.reading() as work:
            assert work.answers.get(answer.id) == answer

    def test_an_answer_outlives_its_profile(self, store: Store) -> None:
        """It keeps the profile's name and revision as text."""
        answer = an_answer(profile_name="gam", profile_revision=1)
        with store.unit_of_work() as work:
            work.profiles.create("gam", a_pipeline(), GIVEN)
            work.answers.add(answer)
        with store.unit_of_work() as work:
            work.profiles.delete("gam")
        with store.reading() as work:
            assert work.answers.get(answer.id) == answer
            assert work.answers.list(profile="gam", limit=5) == [answer.summary()]

    def test_every_combination_of_filters_is_a_filter(self, store: Store) -> None:
        """Compared with a filter in Python, page by page, newest first."""
        stored = _varied(120)
        with store.unit_of_work() as work:
            for answer in stored:
                work.answers.add(answer)
        newest_first = [answer.summary() for answer in reversed(stored)]
        choices = ((None, "gam", "no"), (None, 1, 7), (None, 64, 5), (None, "exact", "single"))
        with store.reading() as work:
            for profile, revision, size, strategy in product(*choices):
                expected = [
                    each
                    for each in newest_first
                    if profile in (None, each.profile_name)
                    and revision in (None, each.profile_revision)
                    and size in (None, each.message_bytes)
                    and strategy in (None, each.strategy)
                ]
                found: list[AnswerSummary] = []
                after = None
                while page := work.answers.list(
                    profile=profile,
                    revision=revision,
                    message_bytes=size,
                    strategy=strategy,
                    after=after,
                    limit=7,
                ):
                    found += page
                    after = page[-1].id
                assert found == expected

    def test_pages_have_no_gap_and_no_repeat_while_answers_come(self, store: Store) -> None:
        """Whatever was there at the first page is seen exactly once."""
        stored = _varied(60)
        with store.unit_of_work() as work:
            for answer in stored:
                work.answers.add(answer)
        seen: list[str] = []
        after = None
        while True:
            with store.unit_of_work() as work:
                page = work.answers.list(after=after, limit=7)
                work.answers.add(an_answer())
            if not page:
                break
            seen += [summary.id for summary in page]
            after = page[-1].id
        assert seen == [answer.id for answer in reversed(stored)]

    def test_filters_that_no_row_could_meet_find_nothing(self, store: Store) -> None:
        """Values that no column holds are no error."""
        with store.unit_of_work() as work:
            work.answers.add(an_answer())
            answers = work.answers
            assert answers.list(profile="\x00", limit=5) == []
            assert answers.list(profile="\udfff", limit=5) == []
            assert answers.list(strategy="no such", limit=5) == []
            assert answers.list(message_bytes=2**70, limit=5) == []
            assert answers.list(message_bytes=2**62, limit=5) == []
            assert answers.list(revision=2**40, limit=5) == []
            assert answers.list(after="\x00", limit=5) == []


def _varied(number: int) -> list[AnswerRecord]:
    rng = random.Random(7)
    profiles = ((None, None), ("gam", 1), ("gam", 2), ("gms", 1))
    answers = []
    for _ in range(number):
        name, revision = rng.choice(profiles)
        answers.append(
            an_answer(
                profile_name=name,
                profile_revision=revision,
                message_bytes=rng.choice((64, 4096)),
                strategy=rng.choice((Strategy.EXACT, Strategy.RAMP)),
            )
        )
    return answers
