"""Refreshing the lookups of a running service.

A commit of this process that may change the active tables empties the fast path before the writer
goes on, so that its client reads what it wrote: the framework answers, from the database, until the
active tables are read anew. What other processes write is seen within SLUICE_LOOKUP_REFRESH_S.
While the database cannot be reached the fast path goes on with what it has.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import groupby
from typing import TYPE_CHECKING, TypeVar

from app.http.fastpath.fast_path import BOOK_BYTES, ActiveTables, FastPath, LoadedTable
from domain.errors import SluiceError
from models.records import ApiKeyRecord
from models.session import Store

if TYPE_CHECKING:
    from app.http.access import Gate

log = logging.getLogger("sluice.lookup")

_RETRY_S = 1.0
_KEYS_S = 1  # how often to look at keys where tables are not looked at

T = TypeVar("T")


class Lookups:
    """One per service. Coroutines are for the event loop's thread, `outdated` for any."""

    def __init__(
        self, store: Store, fast_path: FastPath, *, refresh_s: int, gate: Gate | None = None
    ) -> None:
        self.fast_path = fast_path
        self._gate = gate
        self._store = store
        self._refresh_s = refresh_s
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sluice-lookup")
        self._lock = threading.Lock()
        self._generation = 0
        self._last: Mapping[str, ActiveTables] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._due = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._has_failed = False
        store.watch_choices(self.outdated)

    async def start(self) -> None:
        """Read the active tables and load them, as far as they fit; then keep them fresh."""
        self._loop = asyncio.get_running_loop()
        await self.refresh()
        self._task = asyncio.create_task(self._keep_fresh())

    async def close(self) -> None:
        """Answer nothing from memory any more, and end the thread."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        with self._lock:
            self._loop = None
            self.fast_path.forget()
        self._thread.shutdown(cancel_futures=True)

    def outdated(self) -> None:
        """Forget the active tables: others may have been committed."""
        with self._lock:
            self._generation += 1
            self.fast_path.forget()
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._due.set)

    async def _keep_fresh(self) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._due.wait(), self._pause_s())
            self._due.clear()
            try:
                await self.refresh()
            except Exception:
                self._has_failed = True
                log.exception("the active tables could not be read")

    def _pause_s(self) -> float | None:
        if self._has_failed:
            return max(self._refresh_s, _RETRY_S)
        return self._refresh_s or (_KEYS_S if self._gate else None)

    async def refresh(self) -> None:
        """Read the active tables, and the keys that are valid, as the database has them now."""
        with self._lock:
            generation = self._generation
        try:
            found, keys = await self._in_thread(self._read)
        except SluiceError as refusal:
            if not self._has_failed:
                log.warning("lookups go on with the tables in memory: %s", refusal.detail)
            self._has_failed = True
            return
        self._has_failed = False
        if self._gate is not None:
            self._gate.exchange(keys)
        fresh = [
            (owner, digest)
            for owner, tables in found.items()
            for digest in tables.since(self._last.get(owner, ActiveTables()))
        ]
        self._last = found
        with self._lock:
            if generation == self._generation:
                self.fast_path.exchange(found)
        for owner, digest in fresh:
            if self.fast_path.cache.free_bytes < BOOK_BYTES:
                break  # no table needs less: thousands more need not be read to be left out
            await self._load(owner, digest)

    def _read(self) -> tuple[Mapping[str, ActiveTables], Sequence[ApiKeyRecord]]:
        with self._store.reading() as unit:
            active = unit.tables.active_all()  # owner by owner
            keys = unit.api_keys.usable() if self._gate is not None else []
        grouped = groupby(active, key=lambda one: one.owner)
        return {owner: ActiveTables(tables) for owner, tables in grouped}, keys

    async def _load(self, owner: str, digest: str) -> None:
        """Load a table that became active, where it fits without displacing another one."""
        cache = self.fast_path.cache
        if cache.peek(digest, owner) is not None:
            return
        try:
            table = await self._in_thread(lambda: self._loaded(owner, digest))
        except SluiceError as refusal:
            log.warning("the table %s is not cached: %s", digest[:16], refusal.detail)
            return
        if table.memory_bytes <= cache.free_bytes:
            cache.put(table, owner)

    def _loaded(self, owner: str, digest: str) -> LoadedTable:
        with self._store.of(owner).reading() as unit:
            file = unit.tables.get(digest).file
        return LoadedTable.of(digest, file)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
