"""What every repository of requests' keys does. Run on each database."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from models.base import utc_now
from models.errors import Fenced
from models.records import KeyClaim, KeyedAnswer
from models.session import Store, create_store

MINE = KeyClaim("local", "k", "a" * 32, "machine 1 2.00")
OTHER = replace(MINE, token="b" * 32, process="")
ANSWER = KeyedAnswer(
    fingerprint="f" * 64, body_bytes=2**40, status=201, headers=b"[]", body=bytes(range(256)) * 9
)


def answer_too_late(store: Store) -> None:
    """Store something, and an answer with it."""
    with store.unit_of_work() as work:
        work.request_keys.claim(replace(MINE, key="with it"))
        work.request_keys.complete(MINE, ANSWER)


class RequestKeyContract:
    """A key is of one request at a time, and keeps one answer."""

    def test_the_first_one_has_it_and_its_answer_stays(
        self, store: Store, database_url: str
    ) -> None:
        """Byte for byte, also after a restart; whoever comes later is given it."""
        with store.unit_of_work() as work:
            found = work.request_keys.claim(MINE)
            assert (found.token, found.process, found.answer) == (MINE.token, MINE.process, None)
        with store.unit_of_work() as work:
            assert work.request_keys.claim(OTHER).token == MINE.token
            assert work.request_keys.touch(MINE)
            assert not work.request_keys.touch(OTHER)
            work.request_keys.release(OTHER)
            work.request_keys.complete(MINE, ANSWER)
        again = create_store(database_url)
        with again.unit_of_work() as work:
            assert work.request_keys.claim(OTHER).answer == ANSWER
            work.request_keys.release(MINE)  # too late: it was answered
            assert work.request_keys.claim(OTHER).answer == ANSWER
        again.dispose()

    def test_keys_of_owners_are_apart(self, store: Store) -> None:
        foreign = replace(MINE, owner="foreign", token="c" * 32)
        with store.unit_of_work() as work:
            work.request_keys.claim(MINE)
            work.request_keys.complete(MINE, ANSWER)
            assert work.request_keys.claim(foreign).token == foreign.token

    def test_who_was_taken_over_stores_nothing(self, store: Store) -> None:
        """Neither the answer nor what was to be stored with it."""
        with store.unit_of_work() as work:
            work.request_keys.claim(MINE)
        with store.unit_of_work() as work:
            assert not work.request_keys.take_over(OTHER, "z" * 32)
            assert work.request_keys.take_over(OTHER, MINE.token)
        with pytest.raises(Fenced):
            answer_too_late(store)
        with store.unit_of_work() as work:
            late = replace(OTHER, key="with it")
            assert work.request_keys.claim(late).token == late.token
            work.request_keys.complete(OTHER, ANSWER)
            assert not work.request_keys.take_over(MINE, OTHER.token)
            assert work.request_keys.claim(MINE).answer == ANSWER

    def test_a_key_is_free_again_once_released_or_old(self, store: Store) -> None:
        with store.unit_of_work() as work:
            work.request_keys.claim(MINE)
            work.request_keys.release(MINE)
            assert work.request_keys.claim(OTHER).token == OTHER.token
            work.request_keys.complete(OTHER, ANSWER)
            assert work.request_keys.sweep(utc_now() - timedelta(minutes=5)) == 0
            assert work.request_keys.claim(MINE).answer == ANSWER
            assert work.request_keys.sweep(utc_now() + timedelta(minutes=5)) == 1
            assert work.request_keys.claim(MINE).token == MINE.token

    def test_a_key_that_others_release_meanwhile_is_had_or_not(self, store: Store) -> None:
        """Several claim and release the same key at once: each is told who has it, and nothing
        else.
        """
        with ThreadPoolExecutor(4) as others:
            taken = sum(others.map(partial(_claimed_often, store), "cdef"))
        assert taken >= 1
        with store.unit_of_work() as work:
            assert work.request_keys.claim(OTHER).token == OTHER.token


def _claimed_often(store: Store, name: str) -> int:
    taken, claim = 0, replace(MINE, token=name * 32)
    for _ in range(40):
        with store.unit_of_work() as work:
            taken += work.request_keys.claim(claim).token == claim.token
        with store.unit_of_work() as work:
            work.request_keys.release(claim)
    return taken
