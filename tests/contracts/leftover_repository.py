"""What the repository of leftovers does. Run on each database; graphs of references are in
tests/models/test_collection.py.
"""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import update

from models.base import utc_now
from models.records import Keep, KeyClaim, KeyedAnswer
from models.repositories.leftovers import MIN_AGE_S
from models.rows.request_key import RequestKeyRow
from models.session import Store

CLAIMS = [KeyClaim("local", name, name * 32, "machine 1 2.00") for name in "abc"]
ANSWER = KeyedAnswer(fingerprint="f" * 64, body_bytes=2, status=201, headers=b"[]", body=b"{}")


def kept(store: Store, *, age_s: float) -> None:
    """Answers of requests, so long ago; the last request is under way yet."""
    with store.unit_of_work() as work:
        for claim in CLAIMS:
            work.request_keys.claim(claim)
        for claim in CLAIMS[:-1]:
            work.request_keys.complete(claim, ANSWER)
        then = utc_now() - timedelta(seconds=age_s)
        work.leftovers._session.execute(update(RequestKeyRow).values(created_at=then))


class LeftoverContract:
    """What is finished and older than asked goes; all else stays."""

    def test_what_is_old_and_finished_goes(self, store: Store) -> None:
        """In batches, counted before as it goes."""
        kept(store, age_s=MIN_AGE_S + 60.0)
        with store.unit_of_work() as work:
            assert work.leftovers.take_turn()
            cutoffs = work.leftovers.cutoffs({"keys": Keep(age_s=60.0)})
            assert work.leftovers.count(cutoffs) == {"keys": 2}
            assert work.leftovers.tables(cutoffs) == [("keys", "request_key")]
            first = work.leftovers.due("request_key", cutoffs, after=None, limit=1)
            then = work.leftovers.due("request_key", cutoffs, after=first[-1], limit=9)
            assert [*first, *then] == [("local", "a"), ("local", "b")]
            assert work.leftovers.remove("request_key", cutoffs, [*first, *then]) == 2
        with store.reading() as work:
            assert work.leftovers.count(cutoffs) == {"keys": 0}

    def test_what_is_young_stays_whatever_is_asked(self, store: Store) -> None:
        """Somebody may be about to use it."""
        kept(store, age_s=MIN_AGE_S / 2.0)
        with store.reading() as work:
            for keep in (Keep(age_s=0.0), Keep(count=0)):
                cutoffs = work.leftovers.cutoffs({"keys": keep})
                assert work.leftovers.count(cutoffs) == {"keys": 0}

    def test_kinds_that_keep_everything_have_no_cutoff(self, store: Store) -> None:
        """Nothing of them is looked at."""
        kept(store, age_s=MIN_AGE_S + 60.0)
        with store.reading() as work:
            assert work.leftovers.cutoffs({}) == {}
            assert work.leftovers.tables({}) == []
