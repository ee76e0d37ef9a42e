"""sluice keys: made, listed, exchanged and revoked, in the database itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.console.argument_parts import add_owner
from app.ui.grammar import Arguments, Group
from app.ui.options import add_words
from contract.declare import words_of
from contract.keys import KeyIn, RotationIn
from contract.limits import (
    DEFAULT_KEY_KEPT_S,
    MAX_KEY_AGE_S,
    MAX_KEY_KEPT_S,
    MAX_KEY_REQUESTS_PER_S,
)
from domain.errors import InvalidInput

if TYPE_CHECKING:
    from app.ui.terminal import Output
    from models.session import Store

_DAY_S = 86_400


def add_verbs(command: Group) -> None:
    """Add the verbs."""
    listing = command.add("list", "list an owner's keys", "")
    create = command.add(
        "create",
        "make a key, and print its secret this once",
        "build-server --scope write --days 90",
    )
    create.argument("name", metavar="NAME", help="what it is for")
    add_words(create, words_of(KeyIn), required=("--scope",))
    rotate = command.add("rotate", "make a key in the place of another one", "7f3a5c --keep 600")
    add_words(rotate, words_of(RotationIn))
    revoke = command.add("revoke", "end a key at once", "7f3a5c")
    for verb in (rotate, revoke):
        verb.argument("id", metavar="ID", help="of the key")
    for verb in (listing, create, rotate, revoke):
        add_owner(verb)


def run(arguments: Arguments, output: Output) -> int:
    """Carry out the verb, in the database itself."""
    from app.console.stored import owned_store

    with owned_store(arguments) as store:
        _VERBS[arguments.verb](store, arguments, output)
    return 0


def _list(store: Store, arguments: Arguments, output: Output) -> None:
    from datetime import UTC, datetime

    from app.console.stored import emit
    from app.questions.keys import list_keys
    from app.verbs.keys.answer import key_out
    from app.verbs.keys.show import parts
    from contract.keys import KeysOut

    listed = KeysOut(tuple(map(key_out, list_keys(store))))
    emit(listed, output, parts(listed, datetime.now(UTC)))


def _create(store: Store, arguments: Arguments, output: Output) -> None:
    from app.console.stored import emit
    from app.questions.keys import create_key
    from app.verbs.keys.answer import new_key_out
    from app.verbs.keys.show import made
    from models.records import KeyScope

    lasts_s, rate = arguments.expires_in_s, arguments.requests_per_s
    if lasts_s is not None and not 0.0 < lasts_s <= MAX_KEY_AGE_S:
        raise InvalidInput(f"expected 0 < days <= {MAX_KEY_AGE_S // _DAY_S}", field="days")
    if rate is not None and not 1 <= rate <= MAX_KEY_REQUESTS_PER_S:
        raise InvalidInput("expected 1 <= requests-per-s <= 1000000", field="requests-per-s")
    expires_in_s = None if lasts_s is None else max(1, round(lasts_s))
    limits = {"expires_in_s": expires_in_s, "requests_per_s": rate}
    key = new_key_out(create_key(store, arguments.name, KeyScope(arguments.scope), **limits))
    emit(key, output, made(key))


def _rotate(store: Store, arguments: Arguments, output: Output) -> None:
    from app.console.stored import emit
    from app.questions.keys import rotate_key
    from app.verbs.keys.answer import new_key_out
    from app.verbs.keys.show import made

    kept_s = DEFAULT_KEY_KEPT_S if arguments.kept_s is None else arguments.kept_s
    if not 0 <= kept_s <= MAX_KEY_KEPT_S:
        raise InvalidInput(f"expected 0 <= keep <= {MAX_KEY_KEPT_S}", field="keep")
    key = new_key_out(rotate_key(store, arguments.id, kept_s=round(kept_s)))
    emit(key, output, made(key))


def _revoke(store: Store, arguments: Arguments, output: Output) -> None:
    from app.console.stored import emit
    from app.questions.keys import revoke_key
    from app.verbs.keys.answer import key_out
    from app.verbs.keys.show import revoked

    ended = key_out(revoke_key(store, arguments.id))
    emit(ended, output, revoked(ended))


_VERBS = {"list": _list, "create": _create, "rotate": _rotate, "revoke": _revoke}
