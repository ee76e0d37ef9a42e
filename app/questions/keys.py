"""Keys: made, listed, exchanged and revoked.

A secret is shown once, and stored as its SHA-256.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from app.questions.profiles import seed_paper_profiles
from contract.limits import DEFAULT_KEY_KEPT_S, MAX_KEY_NAME
from domain.errors import Conflict, InvalidInput
from models.identifiers import new_id
from models.records import ApiKeyRecord, KeyScope

if TYPE_CHECKING:
    from models.session import Store

MAX_KEYS = 1000  # of one owner that can be used, those of browsers aside
SESSION_S = 12 * 3600  # of a browser that signed in
MAX_BROWSERS = 100  # that are signed in by one key; one more ends the oldest
FIRST_KEY = "first"
_PREFIX = "slk_"  # so that those who search texts for secrets find one
_BYTES = 32
_OWNER = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key with its secret, which is nowhere else."""

    record: ApiKeyRecord
    secret: str


def is_owner(text: str) -> bool:
    """Return whether an owner can be called so."""
    return _OWNER.fullmatch(text) is not None


def check_owner(text: str) -> str:
    """Return the name of an owner. Raises InvalidInput."""
    if not is_owner(text):
        raise InvalidInput(
            "expected an owner of at most 64 lower-case letters, digits, '.', '_' and '-'",
            field="owner",
        )
    return text


def create_key(
    store: Store,
    name: str,
    scope: KeyScope,
    *,
    expires_in_s: int | None = None,
    requests_per_s: int | None = None,
) -> NewKey:
    """Return a new key of the store's owner. Raises InvalidInput, and Conflict for too many."""
    if not 1 <= len(name) <= MAX_KEY_NAME:
        raise InvalidInput(f"expected a name of 1 to {MAX_KEY_NAME} characters", field="name")
    made = _made(store.owner, name, scope, expires_in_s, requests_per_s=requests_per_s)
    with store.unit_of_work() as unit:
        now = datetime.now(UTC)
        known = unit.api_keys.list()
        if sum(is_usable(key, now) for key in known) >= MAX_KEYS:
            raise Conflict(f"an owner has at most {MAX_KEYS} keys", field="name")
        unit.api_keys.add(made.record)
    if not known:
        seed_paper_profiles(store)  # as every service does for the first owner
    return made


def create_first_key(store: Store) -> NewKey | None:
    """Return a key for all, of the first owner, where there is no key yet; else None.

    Of several processes that start together one has it.
    """
    made = _made(store.owner, "first key", KeyScope.ADMIN, None, key_id=FIRST_KEY)
    with store.unit_of_work() as unit:
        is_first = unit.api_keys.count() == 0 and unit.api_keys.add(made.record)
    return made if is_first else None


def list_keys(store: Store) -> list[ApiKeyRecord]:
    """Return the owner's keys, the newest first, without those of browsers."""
    with store.reading() as unit:
        return unit.api_keys.list()


def rotate_key(store: Store, key_id: str, *, kept_s: int = DEFAULT_KEY_KEPT_S) -> NewKey:
    """Return a new key in the place of this one, which goes on for `kept_s`. Raises NotFound."""
    with store.unit_of_work() as unit:
        old = unit.api_keys.get(key_id)
        now = datetime.now(UTC)
        if not is_usable(old, now) or old.parent is not None:
            raise Conflict("the key is revoked or has expired: make a new one", field="id")
        lasts = None
        if old.expires_at is not None:
            lasts = round((old.expires_at - old.created_at).total_seconds())
        made = _made(old.owner, old.name, old.scope, lasts, requests_per_s=old.requests_per_s)
        unit.api_keys.add(made.record)
        unit.api_keys.expire(key_id, now + timedelta(seconds=kept_s))
    return made


def revoke_key(store: Store, key_id: str) -> ApiKeyRecord:
    """End a key at once, with the browsers that signed in by it. Raises NotFound."""
    with store.unit_of_work() as unit:
        return unit.api_keys.revoke(key_id)


def sign_in(store: Store, key_id: str) -> NewKey:
    """Return a key for a browser, for a time, that may do what this key may. Raises NotFound."""
    with store.unit_of_work() as unit:
        parent = unit.api_keys.get(key_id)
        made = _made(
            parent.owner,
            parent.name,
            parent.scope,
            SESSION_S,
            parent=parent.parent or parent.id,
            until=parent.expires_at,
            requests_per_s=parent.requests_per_s,
        )
        unit.api_keys.add(made.record)
        unit.api_keys.keep_browsers(parent.parent or parent.id, MAX_BROWSERS)
    return made


def is_usable(key: ApiKeyRecord, now: datetime) -> bool:
    """Return whether a key is neither revoked nor expired."""
    return key.revoked_at is None and (key.expires_at is None or key.expires_at > now)


def _made(
    owner: str,
    name: str,
    scope: KeyScope,
    expires_in_s: int | None,
    *,
    key_id: str | None = None,
    parent: str | None = None,
    until: datetime | None = None,
    requests_per_s: int | None = None,
) -> NewKey:
    secret, now = _PREFIX + secrets.token_urlsafe(_BYTES), datetime.now(UTC)
    ends = [now + timedelta(seconds=expires_in_s)] if expires_in_s is not None else []
    if until is not None:
        ends.append(until)
    record = ApiKeyRecord(
        id=key_id or new_id(),
        owner=owner,
        name=name,
        digest=hashlib.sha256(secret.encode()).hexdigest(),
        scope=scope,
        parent=parent,
        created_at=now,
        expires_at=min(ends, default=None),
        requests_per_s=requests_per_s,
    )
    return NewKey(record, secret)
