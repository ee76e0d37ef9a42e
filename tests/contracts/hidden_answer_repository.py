"""What every repository of answers about hidden messages does. Run on each database."""

from __future__ import annotations

import pytest

from domain.errors import Conflict, NotFound
from models.identifiers import new_id
from models.records import HiddenAnswerRecord
from models.session import Store, create_store
from tests.support.records import TIMESTAMP


def a_hidden_answer(*, digest: str = "d" * 64, cut_off: bool = False) -> HiddenAnswerRecord:
    """An answer of odd bytes under a new identifier."""
    return HiddenAnswerRecord(
        id=new_id(),
        created_at=TIMESTAMP,
        question_digest=digest,
        cut_off=cut_off,
        body=bytes(range(256)),
    )


class HiddenAnswerContract:
    """Answers are found by identifier and by question, and never change."""

    def test_an_answer_reads_back_byte_identical_after_a_restart(
        self, store: Store, database_url: str
    ) -> None:
        """From another store on the same database."""
        answer = a_hidden_answer()
        with store.unit_of_work() as work:
            work.hidden_answers.add(answer)
        store.dispose()
        again = create_store(database_url)
        again.upgrade()
        with again.reading() as work:
            assert work.hidden_answers.get(answer.id) == answer
        again.dispose()

    def test_find_gives_the_newest_answer_that_time_did_not_end(self, store: Store) -> None:
        """None where there is none."""
        first, newest = a_hidden_answer(), a_hidden_answer()
        cut_off, other = a_hidden_answer(cut_off=True), a_hidden_answer(digest="e" * 64)
        with store.unit_of_work() as work:
            work.hidden_answers.add(cut_off)
            assert work.hidden_answers.find("d" * 64) is None
            for answer in (first, newest, a_hidden_answer(cut_off=True), other):
                work.hidden_answers.add(answer)
        with store.reading() as work:
            assert work.hidden_answers.find("d" * 64) == newest

    def test_an_identifier_is_taken_once(self, store: Store) -> None:
        """Nothing is overwritten."""
        answer = a_hidden_answer()
        with store.unit_of_work() as work:
            work.hidden_answers.add(answer)
        with pytest.raises(Conflict), store.unit_of_work() as work:
            work.hidden_answers.add(answer)

    @pytest.mark.parametrize("answer_id", ["absent", "", "\x00", "\ud800"])
    def test_an_unknown_answer_is_not_found(self, store: Store, answer_id: str) -> None:
        """Also one that no column could hold."""
        with store.reading() as work, pytest.raises(NotFound):
            work.hidden_answers.get(answer_id)
