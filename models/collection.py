"""Deleting what is kept no longer: in small batches, by one process at a time."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from domain.errors import Conflict, StoreUnavailable
from models.records import Keep

if TYPE_CHECKING:
    from models.session import Store

log = logging.getLogger("sluice.jobs")

BATCH = 200  # rows that are deleted at once: nobody waits for long


def collect(
    store: Store, keeps: Mapping[str, Keep], *, may_go_on: Callable[[], bool] = lambda: True
) -> Iterator[tuple[str, int]]:
    """Delete what is not to be kept, a batch a transaction; yield a kind and how many rows went.

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
    """Return how many rows of each kind `collect` would delete now."""
    with store.reading() as unit:
        return unit.leftovers.count(unit.leftovers.cutoffs(keeps))


class Collector:
    """Deletes in a thread of its own while `may_collect`, and counts what went by its kind."""

    def __init__(self, store: Store, keeps: Mapping[str, Keep], *, every_s: float) -> None:
        self._store = store
        self._keeps = keeps
        self._every_s = every_s
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name="sluice-collector", daemon=True)
        self.may_collect = False
        self.collected: Counter[str] = Counter()

    def start(self) -> None:
        """Begin, where there is anything that is not kept for ever."""
        if self._keeps:
            self._thread.start()

    def close(self) -> None:
        """End after the batch that is under way."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join()

    def _work(self) -> None:
        while not self._closing.wait(self._every_s):
            try:
                for kind, number in collect(self._store, self._keeps, may_go_on=self._may_go_on):
                    self.collected[kind] += number
            except StoreUnavailable as error:
                log.warning("the collector waits for the database: %s", error)
            except Exception:
                log.exception("the collector met an unexpected error")

    def _may_go_on(self) -> bool:
        return self.may_collect and not self._closing.is_set()
