"""The parts behind the fast path, each by itself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.http.fastpath import responses
from app.http.fastpath.fast_path import ActiveTables, FastPath, LoadedTable, TableCache
from app.http.fastpath.lookups import Lookups
from app.http.fastpath.responses import CachedResponse, RenderedBodies
from app.schemas.base import read_output
from app.schemas.schedule import bound_below
from contract.schedule import TableScheduleOut
from domain.errors import StoreUnavailable
from domain.plan_table import PlanTable
from exports.table.lookup import BUFFERED_FRAGMENTS, PythonReader
from exports.table.lookup_native import open_reader
from exports.table.slt import digest_of, encode
from models.records import ActiveTable
from tests.support.compiler import require_native_kernels
from tests.support.counts import count
from tests.support.plan_tables import GOLDEN, a_plan_table, the_worked_example

GUARD_S = 60.0


def file_of(table: PlanTable, *, profile: str = "p") -> bytes:
    """The file of a plan table."""
    return encode(table, profile=profile, revision=1)


def a_table(number: int = 0) -> LoadedTable:
    """A small table; each number gives another file."""
    file = file_of(a_plan_table(seed=number))
    return LoadedTable.of(digest_of(file), file)


# --- one table ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GOLDEN)
def test_both_readers_make_the_same_answer(name: str) -> None:
    """Byte for byte and tag for tag, and as the schema says."""
    require_native_kernels()
    make, profile, revision = GOLDEN[name]
    file = encode(make(), profile=profile, revision=revision)
    digest = digest_of(file)
    native = LoadedTable(digest, file, open_reader(file))
    python = LoadedTable(digest, file, PythonReader.of(file))
    minimum, maximum = native.min_message_bytes, native.max_message_bytes
    for step in range(count(1000) + 1):
        message = minimum + (maximum - minimum) * step // count(1000)
        answer = native.schedule("", message)
        assert answer == python.schedule("", message) == native.sibling().schedule("", message)
        reported = read_output(TableScheduleOut, answer.body)
        assert sum(reported.fragment_bytes) == message
        assert (reported.profile is None) == (profile == "")
        assert reported.lower_bound_us <= reported.latency_us
        codes = {one.code for one in reported.warnings}
        assert ("no_repeated_size" in codes) == (reported.best_fixed is None)
        assert ("tolerance_missed" in codes) == (reported.relative_gap > native.head.relative_gap)


def test_the_form_of_an_answer() -> None:
    """What its tag promises never to change: whoever changes this raises FORM."""
    file = file_of(the_worked_example(), profile="worked-example")
    digest = digest_of(file)
    ready = LoadedTable.of(digest, file).schedule("", 333)
    assert ready.headers[0] == (b"etag", f'"{digest[:16]}-333-1"'.encode())
    assert list(orjson.loads(ready.body)) == [
        "strategy",
        "message_bytes",
        "fragment_bytes",
        "fragments",
        "latency_us",
        "lower_bound_us",
        "relative_gap",
        "status",
        "best_fixed",
        "constraints",
        "profile",
        "table",
        "warnings",
    ]
    assert ready.body.startswith(
        b'{"strategy":"table","message_bytes":333,"fragment_bytes":[146,187],"fragments":2,'
    )
    assert LoadedTable.of(digest, file).schedule(
        f"W/{ready.headers[0][1].decode()}", 333
    ) == CachedResponse(304, ready.headers[:2], b"", ready.route)


def test_long_answers_are_not_for_the_event_loop() -> None:
    """They are the same, made elsewhere."""
    file = file_of(a_plan_table([(14_990, 15_010, BUFFERED_FRAGMENTS + 1)]))
    table = LoadedTable.of(digest_of(file), file)
    assert table.short_body(15_000) is None
    reported = orjson.loads(table.schedule("", 15_000).body)
    assert reported["fragments"] == BUFFERED_FRAGMENTS + 1 == len(reported["fragment_bytes"])
    assert table.schedule("*", 15_000).status == 304


@given(
    st.floats(1e-6, 1e12),
    st.floats(0.0, 1.0),
    st.integers(2, 200_000),
)
def test_the_bound_is_never_rounded_up(latency_us: float, gap: float, operations: int) -> None:
    """Exactly: even where the true latency is as much below as rounding could make it."""
    bound = Fraction(bound_below(latency_us, gap, operations=operations))
    latency = Fraction(latency_us) * (1 - Fraction(operations, 2**53))
    assert bound * (1 + Fraction(gap)) <= latency
    assert bound >= latency / (1 + Fraction(gap)) * (1 - Fraction(operations + 9, 2**51))


# --- the cache, and what was rendered -------------------------------------------------------------


def test_the_least_recently_used_table_goes() -> None:
    """A table that was looked up stays, one that does not fit at all is not held."""
    tables = [a_table(number) for number in range(4)]
    size = max(table.memory_bytes for table in tables)
    cache = TableCache(2 * size + 10)
    for table in tables[:2]:
        cache.put(table)
        cache.put(table)
    assert (len(cache), cache.loaded_bytes) == (2, sum(one.memory_bytes for one in tables[:2]))
    assert cache.get(tables[0].digest) is tables[0]
    cache.put(tables[2])
    assert [cache.peek(one.digest) is not None for one in tables] == [True, False, True, False]
    none = TableCache(size - 1)
    none.put(max(tables, key=lambda table: table.memory_bytes))
    assert (len(none), none.loaded_bytes, none.free_bytes) == (0, 0, size - 1)
    assert cache.get("absent") is None


def tag(number: int) -> bytes:
    """A tag."""
    return b'"%d"' % number


def body(number: int, *, times: int = 10) -> bytes:
    """What it stands for."""
    return b"%d" % number * times


def test_what_comes_again_is_kept_and_what_comes_once_is_not() -> None:
    """Two generations of a few bodies; one that is asked for stays."""
    rendered = RenderedBodies(3)
    for number in range(20):
        rendered.see(tag(number), body(number))
    assert rendered.young == {}
    for number in range(20):
        rendered.see(tag(number), body(number))
        assert rendered.young[tag(number)] == body(number)
        assert (rendered.older(tag(0)) or rendered.young.get(tag(0))) == body(0)
        assert len(rendered.young) <= 3
    assert rendered.older(tag(5)) is None
    for _ in range(2):
        rendered.see(b"long", body(1, times=5000))
    assert b"long" not in rendered.young


def test_what_was_seen_once_is_forgotten_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that remembering is bounded as well."""
    monkeypatch.setattr(responses, "SEEN_ONCE", 4)
    rendered = RenderedBodies()
    for number in range(9):
        rendered.see(tag(number), body(number))
    rendered.see(tag(0), body(0))
    assert rendered.young == {}
    rendered.see(tag(0), body(0))
    assert rendered.young == {tag(0): body(0)}


def test_choices_by_path() -> None:
    """A name where its current revision has a table; a revision where it has one."""
    active = ActiveTables(
        [
            ActiveTable("a", 2, 1, "one"),
            ActiveTable("a", 2, 2, "two"),
            ActiveTable("b", 3, 1, "three"),
        ]
    )
    assert active.digests == {"a": "two", "a@1": "one", "a@2": "two", "b@1": "three"}
    assert active.schedules["/profiles/a@1/schedule"].digest == "one"
    assert active.tables["/profiles/a/table"] == "two"
    assert active.since(ActiveTables()) == ["two", "one", "three"]
    assert active.since(active) == []
    assert ActiveTables([ActiveTable("a", 1, 1, "one")]).since(active) == []


# --- keeping them fresh ---------------------------------------------------------------------------


class FakeStore:
    """A store whose choices a test changes, and whose readings it may hold up."""

    def __init__(self, tables: dict[str, bytes]) -> None:
        self.tables_by_digest = tables
        self.active: list[ActiveTable] = []
        self.refusal: Exception | None = None
        self.before = lambda: None
        self.after = lambda: None
        self.readings = 0
        self.tables = self

    def watch_choices(self, act: Any) -> None:
        self.commit = act

    def of(self, owner: str) -> FakeStore:
        assert owner == "local"
        return self

    @contextmanager
    def reading(self) -> Iterator[FakeStore]:
        self.readings += 1
        if self.refusal is not None:
            raise self.refusal
        yield self

    def active_all(self) -> list[ActiveTable]:
        self.before()
        found = list(self.active)
        self.after()
        return found

    def get(self, digest: str) -> Any:
        class Record:
            file = self.tables_by_digest[digest]

        return Record


def a_store(*names: str) -> FakeStore:
    """A store in which each of these profiles has an active table."""
    tables, active = {}, []
    for number, name in enumerate(names):
        file = file_of(a_plan_table(seed=number), profile=name)
        tables[digest_of(file)] = file
        active.append(ActiveTable(name, 1, 1, digest_of(file)))
    store = FakeStore(tables)
    store.active = active
    return store


def lookups_of(store: Any, *, refresh_s: int = 0) -> Lookups:
    """Lookups of this store, with room for many tables."""
    return Lookups(store, FastPath(TableCache(2**24)), refresh_s=refresh_s)


async def until(condition: Any) -> None:
    """Return when it holds."""
    async with asyncio.timeout(GUARD_S):
        while not condition():
            await asyncio.sleep(0.005)


def test_a_commit_during_a_reading_is_not_lost() -> None:
    """What was read before it is never used, and it is read anew."""
    store = a_store("a", "b")
    lookups = lookups_of(store)
    digests = {one.profile_name: one.digest for one in store.active}
    held_up, go_on = threading.Event(), threading.Event()

    def hold_up() -> None:
        held_up.set()
        assert go_on.wait(GUARD_S)

    async def run() -> None:
        await lookups.start()
        assert lookups.fast_path.active.digests["a"] == digests["a"]
        store.after = hold_up
        store.commit()
        assert lookups.fast_path.active.digests == {}
        await until(held_up.is_set)
        store.after = lambda: None
        store.active = store.active[1:]  # committed while the old choices are being read
        store.commit()
        go_on.set()
        await until(lambda: lookups.fast_path.active.digests != {})
        assert set(lookups.fast_path.active.digests) == {"b", "b@1"}
        await lookups.close()
        assert lookups.fast_path.active.digests == {}

    asyncio.run(run())


def test_readings_that_fail_are_tried_again() -> None:
    """By the pause where there is one; a defect ends nothing; what is known stays."""
    store = a_store("a")
    lookups = lookups_of(store, refresh_s=1)

    async def run() -> None:
        await lookups.start()
        for refusal in (StoreUnavailable("away"), RuntimeError("a defect")):
            store.refusal, store.readings = refusal, 0
            lookups._due.set()
            await until(lambda: store.readings > 0)
            assert lookups.fast_path.active.digests
        store.refusal, store.active = None, []
        await until(lambda: not lookups.fast_path.active.digests)
        await lookups.close()

    asyncio.run(run())


def test_without_a_pause_only_commits_are_followed() -> None:
    """0 switches looking by the clock off."""
    assert lookups_of(a_store("a"))._pause_s() is None
    assert lookups_of(a_store("a"), refresh_s=7)._pause_s() == 7


def test_a_damaged_file_keeps_no_other_one_out() -> None:
    """It is said, and left to whoever asks for it."""
    store = a_store("a", "b")
    first = store.active[0].digest
    store.tables_by_digest[first] = store.tables_by_digest[first][:-1]
    lookups = lookups_of(store)

    async def run() -> None:
        await lookups.start()
        cache = lookups.fast_path.cache
        assert [cache.peek(one.digest) is not None for one in store.active] == [False, True]
        await lookups.close()

    asyncio.run(run())


def test_loading_takes_no_room_from_tables_in_use() -> None:
    """Tables that were chosen anew and do not fit wait until they are asked for."""
    store = a_store("a", "b", "c")
    room = 2 * a_table().memory_bytes + 5000
    lookups = Lookups(store, FastPath(TableCache(room)), refresh_s=0)  # type: ignore[arg-type]

    async def run() -> None:
        await lookups.start()
        cache = lookups.fast_path.cache
        held = [cache.peek(one.digest) is not None for one in store.active]
        assert held == [True, True, False]
        assert cache.loaded_bytes <= room
        assert store.readings == 3  # the choices and two tables: where no room is, none is read
        await lookups.close()

    asyncio.run(run())
