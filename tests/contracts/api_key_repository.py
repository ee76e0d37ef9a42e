"""What every repository of keys does. Run on each database."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from domain.errors import InvalidInput, NotFound
from models.base import utc_now
from models.records import KeyScope
from models.session import Store
from tests.support.records import TIMESTAMP, a_key


class ApiKeyContract:
    """A key is valid until it is revoked or expires."""

    def test_a_key_reads_back_equal(self, store: Store) -> None:
        """Every field; its identifier is taken once."""
        first = a_key()
        full = a_key(
            scope=KeyScope.ADMIN,
            name="\N{SNOWMAN}",
            parent=first.id,
            expires_at=TIMESTAMP,
            revoked_at=TIMESTAMP,
            requests_per_s=7,
        )
        with store.unit_of_work() as work:
            assert work.api_keys.count() == 0
            assert work.api_keys.add(first)
            assert work.api_keys.add(full)
            assert not work.api_keys.add(replace(first, name="other", digest="0" * 64))
        with store.reading() as work:
            assert work.api_keys.get(full.id) == full
            assert work.api_keys.list() == [first]
            assert work.api_keys.count() == 2
        with pytest.raises(InvalidInput), store.unit_of_work() as work:
            work.api_keys.add(a_key(name="\x00"))

    @pytest.mark.parametrize("scope", KeyScope)
    def test_every_scope_can_be_stored(self, store: Store, scope: KeyScope) -> None:
        """And is usable as it was made."""
        key = a_key(scope=scope)
        with store.unit_of_work() as work:
            assert work.api_keys.add(key)
            assert work.api_keys.usable() == [key]

    def test_what_is_revoked_or_old_is_not_usable(self, store: Store) -> None:
        """Nor the browsers that signed in by it; the others are."""
        kept, ended, short = a_key(), a_key(), a_key()
        browser, old = a_key(parent=ended.id), a_key(expires_at=TIMESTAMP)
        later = utc_now() + timedelta(hours=1)
        with store.unit_of_work() as work:
            for key in (kept, ended, short, browser, old):
                work.api_keys.add(key)
            assert {key.id for key in work.api_keys.usable()} == {
                key.id for key in (kept, ended, short, browser)
            }
            revoked = work.api_keys.revoke(ended.id)
            assert revoked.revoked_at is not None
            assert work.api_keys.revoke(ended.id) == revoked
            work.api_keys.expire(short.id, later)
            work.api_keys.expire(short.id, later + timedelta(hours=1))
            assert work.api_keys.get(short.id).expires_at == later
            assert {key.id for key in work.api_keys.usable()} == {kept.id, short.id}
            work.api_keys.expire(short.id, TIMESTAMP)
            assert [key.id for key in work.api_keys.usable()] == [kept.id]

    @pytest.mark.parametrize("key_id", ["absent", "\x00"])
    def test_an_unknown_key_is_not_found(self, store: Store, key_id: str) -> None:
        with store.unit_of_work() as work:
            for method in (work.api_keys.get, work.api_keys.revoke):
                with pytest.raises(NotFound):
                    method(key_id)
