"""Deleting what is kept no longer: owner by owner, in small batches, by one process at a time.

What is kept is in the database: whichever process deletes knows it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from domain.errors import Conflict, StoreUnavailable
from models.records import EVERYBODY, Keep
from models.repositories.retention import rules_of

if TYPE_CHECKING:
    from models.session import Store

log = logging.getLogger("sluice.jobs")

BATCH = 200  # rows that are deleted at once: nobody waits for long
RECOUNT_S = 3600.0  # between two looks whether what owners store is counted right


def collect(
    store: Store, keeps: Mapping[str, Keep], *, may_go_on: Callable[[], bool] = lambda: True
) -> Iterator[tuple[str, int]]:
    """Delete what the store's owner is not to keep, a batch a transaction; yield a kind and how
    many rows went.

    Ends where another process deletes. What is named at that very moment stays for now.
    """
    with store.reading() as unit:
        cutoffs = unit.leftovers.cutoffs(keeps)
        tables = unit.leftovers.tables(cutoffs)
    for kind, table in tables:
        after = None
        while may_go_on():
            with store.reading() as unit:
                keys = unit.leftovers.due(table, cutoffs, after=after, limit=BATCH)
            if not keys:
                break
            after = keys[-1]
            with suppress(Conflict), store.unit_of_work() as unit:
                if not unit.leftovers.take_turn():
                    return
                removed = unit.leftovers.remove(table, cutoffs, keys)
                yield kind, removed


def collectable(store: Store, keeps: Mapping[str, Keep]) -> dict[str, int]:
    """Return how many rows of each kind `collect` would delete of the store's owner now."""
    with store.reading() as unit:
        return unit.leftovers.count(unit.leftovers.cutoffs(keeps))


def recount(store: Store) -> dict[str, int]:
    """Correct how many bytes each owner stores; return by how much, of those that were not right.

    Others store on meanwhile. What software of before this figure stores and deletes beside this
    one is not counted until then.
    """
    with store.reading() as unit:
        drifts = unit.stored_bytes.drifts()
    if drifts:
        with store.unit_of_work() as unit:
            unit.stored_bytes.correct(drifts)
    return {drift.owner: drift.off_bytes for drift in drifts}


def remember(store: Store, keeps: Mapping[str, Keep], owner: str = EVERYBODY) -> None:
    """Have an owner keep this from now on, or all that have no rules of their own."""
    with store.unit_of_work() as unit:
        unit.retention.set(owner, keeps)


def has_rules(store: Store) -> bool:
    """Return whether the database says anything of what is kept."""
    with store.reading() as unit:
        return bool(unit.retention.all())


def kept_by_owner(
    store: Store, keeps: Mapping[str, Keep] | None = None
) -> list[tuple[Store, Mapping[str, Keep]]]:
    """Return the store of each owner that does not keep everything, and what he keeps.

    That is what the database says; `keeps` is in the place of what it says of everybody.
    """
    with store.reading() as unit:
        rules = unit.retention.all()
        if keeps is not None:
            rules[EVERYBODY] = keeps
        if not any(rules.values()):
            return []
        owners = sorted({store.owner, *unit.leftovers.owners()})
        found = [(owner, rules_of(owner, rules)) for owner in owners]
    return [(store.of(owner), kept) for owner, kept in found if kept]


class Collector:
    """Deletes in a thread of its own while `may_collect`, and counts what went by its kind."""

    def __init__(self, store: Store, *, every_s: float) -> None:
        self._store = store
        self._every_s = every_s
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name="sluice-collector", daemon=True)
        self._recount_at_s = 0.0
        self.may_collect = False
        self.collected: Counter[str] = Counter()

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End after the batch that is under way."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join()

    def _work(self) -> None:
        while not self._closing.wait(self._every_s):
            try:
                self._collect()
            except StoreUnavailable as error:
                log.warning("the collector waits for the database: %s", error)
            except Exception:
                log.exception("the collector met an unexpected error")

    def _collect(self) -> None:
        if not self._may_go_on():
            return
        for store, keeps in kept_by_owner(self._store):
            for kind, number in collect(store, keeps, may_go_on=self._may_go_on):
                self.collected[kind] += number
        now_s = time.monotonic()
        if now_s >= self._recount_at_s and self._may_go_on():
            self._recount_at_s = now_s + RECOUNT_S
            for owner, by_bytes in recount(self._store).items():
                log.info("%s stores %+d bytes against what was counted", owner, by_bytes)

    def _may_go_on(self) -> bool:
        return self.may_collect and not self._closing.is_set()
