"""What contract/keys.py declares, made of stored keys."""

from __future__ import annotations

from app.questions.keys import NewKey
from app.schemas.base import timestamp
from contract.keys import KeyOut, NewKeyOut
from models.records import ApiKeyRecord


def key_out(key: ApiKeyRecord) -> KeyOut:
    """Return a key as it is sent."""
    return KeyOut(
        id=key.id,
        owner=key.owner,
        name=key.name,
        scope=key.scope.value,
        created_at=timestamp(key.created_at),
        expires_at=None if key.expires_at is None else timestamp(key.expires_at),
        revoked_at=None if key.revoked_at is None else timestamp(key.revoked_at),
        requests_per_s=key.requests_per_s,
    )


def new_key_out(made: NewKey) -> NewKeyOut:
    """Return a new key as it is sent."""
    return NewKeyOut(**vars(key_out(made.record)), secret=made.secret)
