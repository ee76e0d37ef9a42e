"""sluice admin collect: what is kept no longer, deleted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from app.settings import KEEP_ALL, KEPT_KINDS, Settings, keeps_of
from app.ui.grammar import Arguments, Command
from domain.errors import InvalidInput

if TYPE_CHECKING:
    from app.ui.terminal import Output
    from models.records import Keep
    from models.session import Store


def add_arguments(command: Command) -> None:
    """Add the rules, whose, and whether anything is deleted."""
    command.option("--keep", metavar="RULES", help="in its place, such as jobs=30d/10000")
    command.option("--owner", metavar="OWNER", help="of one owner alone")
    command.flag("--remember", help="store --keep, for OWNER or for all")
    command.flag("--forget", help="delete the rules of OWNER")
    command.flag("--dry-run", help="delete nothing; say what would go")


def run(arguments: Arguments, output: Output) -> int:
    """Delete what is kept no longer, or say how much that is; and count anew what owners store."""
    from app.console.checked import checked_settings
    from app.console.running import ticking_line
    from app.questions.keys import check_owner
    from models.collection import recount
    from models.session import create_store

    settings, given = checked_settings(), _keeps(arguments.keep)
    owner = None if arguments.owner is None else check_owner(arguments.owner)
    _check_remembering(arguments)
    store = create_store(settings.database_url)
    try:
        with ticking_line(output.err, "looking" if arguments.dry_run else "deleting"):
            store.upgrade()
            if _remember(store, arguments, given):
                settings, given = replace(settings, retention=""), None
            found = _collected(_kept(store, settings, owner, given), is_dry_run=arguments.dry_run)
            if not arguments.dry_run:
                recount(store)
            with store.reading() as unit:
                every = unit.stored_bytes.by_owner()
    finally:
        store.dispose()
    stored = {one: number for one, number in every.items() if owner in (None, one)}
    if output.wants_json:
        said = {"dry_run": arguments.dry_run, "rows": found, "stored_bytes": stored}
        output.document(json.dumps(said).encode())
    else:
        verb = "would go" if arguments.dry_run else "are gone"
        gone = [f"{number} rows of {kind} {verb}" for kind, number in found.items()]
        output.parts([*gone, *(f"{one} stores {number} bytes" for one, number in stored.items())])
    return 0


def _check_remembering(arguments: Arguments) -> None:
    """Raise InvalidInput where what is to be remembered or forgotten contradicts the rest."""
    if arguments.remember and (not arguments.keep or arguments.dry_run):
        raise InvalidInput("--remember takes --keep, and no --dry-run", field="remember")
    if arguments.forget and (arguments.owner is None or arguments.keep or arguments.dry_run):
        rule = "--forget takes --owner, and neither --keep nor --dry-run"
        raise InvalidInput(rule, field="forget")


def _remember(store: Store, arguments: Arguments, given: Mapping[str, Keep] | None) -> bool:
    """Store or forget rules, where that is asked; return whether what is given is stored."""
    from models import collection
    from models.records import EVERYBODY

    owner = EVERYBODY if arguments.owner is None else arguments.owner
    if arguments.remember and given is not None:
        collection.remember(store, given, owner)
    if arguments.forget:
        with store.unit_of_work() as unit:
            unit.retention.forget(owner)
    return bool(arguments.remember)


def _kept(
    store: Store, settings: Settings, owner: str | None, given: Mapping[str, Keep] | None
) -> list[tuple[Store, Mapping[str, Keep]]]:
    """Return the store of each owner whose rows may go, and what he keeps.

    By what is given; else as the database says, but for the environment. Raises InvalidInput where
    nothing says it.
    """
    from models import collection

    if given is not None:
        with store.reading() as unit:
            owners = [owner] if owner else unit.leftovers.owners() or [store.owner]
        return [(store.of(name), given) for name in owners]
    found = collection.kept_by_owner(store, settings.keeps if settings.retention else None)
    if not found and not settings.retention and not collection.has_rules(store):
        rule = "nothing says what is kept: give --keep, or set SLUICE_RETENTION"
        raise InvalidInput(rule, field="keep")
    return [(one, kept) for one, kept in found if owner in (None, one.owner)]


def _collected(
    kept: Sequence[tuple[Store, Mapping[str, Keep]]], *, is_dry_run: bool
) -> Counter[str]:
    """Delete what is kept no longer; return how many rows of each kind go, or would."""
    from models import collection

    found: Counter[str] = Counter()
    for store, keeps in kept:
        found.update(dict.fromkeys(keeps, 0))
        if is_dry_run:
            found.update(collection.collectable(store, keeps))
        else:
            for kind, number in collection.collect(store, keeps):
                found[kind] += number
    return found


def _keeps(rules: str | None) -> Mapping[str, Keep] | None:
    if not rules:
        return None
    try:
        return keeps_of(rules)
    except ValueError:
        raise InvalidInput(
            f"expected rules such as answers=90d,jobs=30d/10000 of {', '.join(KEPT_KINDS)}, or "
            f"{KEEP_ALL}",
            field="keep",
        ) from None
