"""What is kept no longer goes, and nothing that is needed: random graphs of references."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection, DateTime, Integer, LargeBinary, Table, insert, inspect, select

from app.settings import KEPT_KINDS
from models import collection
from models.base import Base, UtcTime, utc_now
from models.collection import Collector, collect, collectable, kept_by_owner, remember
from models.engines import open_engines, parse_url
from models.records import EVERYBODY, Keep
from models.repositories.leftovers import KINDS, MIN_AGE_S
from models.repositories.stored_bytes import count_anew
from models.session import Store
from tests.jobs.support import wait_until
from tests.support.counts import count

Row = dict[str, Any]
DAY_S = 86_400.0
NOW = utc_now()
ENDS = ("done", "failed", "cancelled")
# (table, its columns, the table that they name, the columns there), by hand: what must not dangle.
NAMES = (
    ("answer_body", ("answer_id",), "answer", ("id",)),
    ("job", ("answer_id",), "answer", ("id",)),
    ("compiled_table_file", ("digest",), "compiled_table", ("digest",)),
    ("active_table", ("digest",), "compiled_table", ("digest",)),
    ("further_trace", ("fit_id",), "fit", ("id",)),
    ("revision", ("fit_id",), "fit", ("id",)),
    ("fit", ("trace_digest",), "trace", ("digest",)),
    ("further_trace", ("trace_digest",), "trace", ("digest",)),
)
# Of each table what counts as stored; of jobs that have ended what came of them as well.
COUNTED = {
    "answer": ("name", "note"),
    "answer_body": ("body",),
    "hidden_answer": ("body",),
    "trace": ("compressed",),
    "fit": ("document", "request"),
    "revision": ("pipeline", "detail"),
    "verification": ("document",),
    "compiled_table_file": ("file", "document"),
    "job": ("request",),
    "request_key": ("headers", "body"),
}
PARTS = {"answer_body", "compiled_table_file", "further_trace"}
KIND_OF = {
    "job": "jobs",
    "answer": "answers",
    "hidden_answer": "answers",
    "compiled_table": "tables",
    "fit": "traces",
    "trace": "traces",
    "request_key": "keys",
    "change": "changes",
}


@contextmanager
def connected(url: str) -> Iterator[Connection]:
    writer, reader = open_engines(parse_url(url))
    with writer.begin() as connection:
        yield connection
    writer.dispose()
    reader.dispose()


def add(
    connection: Connection, table: str, tables: Mapping[str, Table] | None = None, **values: Any
) -> None:
    """A row, with something in every other column that has to have a value."""
    found: Table = (tables or Base.metadata.tables)[table]
    for column in found.columns:
        if column.name in values or column.nullable:
            continue
        if column.name == "owner":
            values["owner"] = "local"
        elif column.foreign_keys:
            raise AssertionError(f"{table}.{column.name} has to be given")
        elif isinstance(column.type.python_type, type):
            values[column.name] = _something(column.type)
    connection.execute(insert(found), values)


def _something(kind: Any) -> Any:
    if isinstance(kind, (UtcTime, DateTime)):
        return NOW
    if isinstance(kind, LargeBinary):
        return b"{}"
    if kind.python_type is bool:
        return False
    if isinstance(kind, Integer) or kind.python_type in (int, float):
        return 1
    return "x"


def digest(number: int) -> str:
    return f"{number:064x}"


def fill(
    connection: Connection, rng: random.Random, tables: Mapping[str, Table] | None = None
) -> None:
    """A database with random references between its rows, of random ages."""
    put = partial(add, connection, tables=tables)

    def age() -> datetime:
        return NOW - timedelta(seconds=rng.choice((10.0, 0.5, 3, 9, 40)) * rng.choice((1, DAY_S)))

    size = rng.randint(1, 8)
    for number in range(size):
        put("trace", digest=digest(number), created_at=age())
    fits = rng.randint(0, size)
    for number in range(fits):
        first = digest(rng.randrange(size))
        put("fit", id=f"fit{number}", trace_digest=first, created_at=age())
        for place in range(rng.randint(0, 2)):
            further = digest(rng.randrange(size))
            put(
                "further_trace",
                fit_id=f"fit{number}",
                place=place + 1,
                trace_digest=further,
            )
    put("profile", name="p", created_at=age())
    for number in range(3):
        fit = rng.choice([None, *(f"fit{one}" for one in range(fits))])
        put("revision", profile_name="p", number=number, fit_id=fit, created_at=age())
    for number in range(size):
        of = (
            {"profile_name": "p", "profile_revision": rng.randrange(3)}
            if rng.random() < 0.8
            else {"profile_name": None, "profile_revision": None}
        )
        put("compiled_table", digest=digest(number), created_at=age(), **of)
        put("compiled_table_file", digest=digest(number))
    for revision in range(3):
        if rng.random() < 0.6:
            chosen = digest(rng.randrange(size))
            put(
                "active_table",
                digest=chosen,
                profile_name="p",
                profile_revision=revision,
            )
    for number in range(size):
        put("answer", id=f"a{number}", created_at=age())
        put("answer_body", answer_id=f"a{number}")
        put("hidden_answer", id=f"h{number}", created_at=age())
        put(
            "request_key",
            key=f"k{number}",
            created_at=age(),
            status=rng.choice((None, 200)),
        )
    put("runner", name="r")
    for number in range(2 * size):
        state = rng.choice((*ENDS, "queued", "running"))
        asked = digest(rng.randrange(size))
        put(
            "job",
            id=f"j{number}",
            kind=rng.choice(("optimize", "export")),
            state=state,
            created_at=age(),
            finished_at=age() if state in ENDS else None,
            runner="r" if state == "running" else None,
            request=f'{{"table": "{asked}"}}'.encode(),
            answer_id=rng.choice([None, None, None, f"a{rng.randrange(size)}"]),
        )
    if tables is None:
        count_anew(connection)


def rows(connection: Connection, table: str) -> list[Row]:
    found: Table = Base.metadata.tables[table]
    ordered = connection.execute(select(found).order_by(*found.primary_key)).mappings()
    return [dict(row) for row in ordered]


def everything(connection: Connection) -> dict[str, list[Row]]:
    """All rows, but for what changes by itself."""
    return {table: rows(connection, table) for table in Base.metadata.tables}


def bytes_by_owner(stored: Mapping[str, list[Row]]) -> Counter[str]:
    """How many bytes each owner stores, by hand: shares no line with the product."""
    found: Counter[str] = Counter()
    owners = {row["id"]: row["owner"] for row in stored["answer"]}
    for table, columns in COUNTED.items():
        for row in stored[table]:
            owner = owners[row["answer_id"]] if table == "answer_body" else row["owner"]
            ended = table == "job" and row["finished_at"] is not None
            for column in (*columns, *(("best", "history", "error") if ended else ())):
                value = row[column] or b""
                found[owner] += len(value if isinstance(value, bytes) else value.encode())
    return found


def is_named(row: Row, table: str, stored: Mapping[str, list[Row]]) -> bool:
    """Whether anything that is no part of it names this row."""
    for naming, columns, named, targets in NAMES:
        if named != table or (naming in PARTS and (naming, table) != ("further_trace", "trace")):
            continue
        wanted = tuple(row[name] for name in targets)
        if any(tuple(one[name] for name in columns) == wanted for one in stored[naming]):
            return True
    asks = [one for one in stored["job"] if one["state"] not in ENDS and one["kind"] == "export"]
    return table == "compiled_table" and any(
        row["digest"].encode() in one["request"] for one in asks
    )


def expected(stored: dict[str, list[Row]], keeps: Mapping[str, Keep]) -> dict[str, list[Row]]:
    """What has to stay, row by row until nothing more goes. Shares no line with the product."""
    left = {table: list(found) for table, found in stored.items()}
    limits = {table: _limit(table, stored[table], keeps) for table in KIND_OF}
    while True:
        before = sum(map(len, left.values()))
        for table, limit in limits.items():
            left[table] = [
                row
                for row in left[table]
                if limit is None or not _is_old(table, row, limit) or is_named(row, table, left)
            ]
        for part, (column,), whole, (target,) in NAMES:
            if part in PARTS and whole != "trace":
                ids = {row[target] for row in left[whole]}
                left[part] = [row for row in left[part] if row[column] in ids]
        if sum(map(len, left.values())) == before:
            return left


def _time(table: str, row: Row) -> datetime | None:
    time: datetime | None = row["finished_at" if table == "job" else "created_at"]
    return None if table == "request_key" and row["status"] is None else time


def _limit(table: str, found: list[Row], keeps: Mapping[str, Keep]) -> datetime | None:
    keep = keeps.get(KIND_OF[table])
    if keep is None:
        return None
    limits = []
    if keep.age_s is not None:
        limits.append(NOW - timedelta(seconds=keep.age_s))
    times = sorted((t for row in found if (t := _time(table, row))), reverse=True)
    if keep.count is not None and len(times) > keep.count:
        last = times[keep.count - 1] if keep.count else NOW + timedelta(days=1)
        older = [time for time in times if time < last]
        limits += older[:1]
    return min(max(limits), NOW - timedelta(seconds=MIN_AGE_S)) if limits else None


def _is_old(table: str, row: Row, limit: datetime) -> bool:
    time = _time(table, row)
    return time is not None and time <= limit


def some_rules(rng: random.Random) -> dict[str, Keep]:
    """Of some kinds, by age, by count or both. Ages are those between which rows lie."""
    found = {}
    for kind in KINDS:
        if rng.random() < 0.85:
            age = rng.choice((None, 0.0, 2 * DAY_S, 5 * DAY_S, 20 * DAY_S))
            count = rng.choice((None, 0, 1, 3))
            if age is not None or count is not None:
                found[kind] = Keep(age, count)
    return found


def test_nothing_that_is_needed_goes_and_all_else_does(
    store: Store, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of random graphs: what stays is what an independent count says, and the dry run said it."""
    for seed in range(count(120)):
        rng = random.Random(seed)
        monkeypatch.setattr(collection, "BATCH", rng.choice((1, 2, 200)))
        with connected(database_url) as connection:
            for table in reversed(Base.metadata.sorted_tables):
                connection.execute(table.delete())
            fill(connection, rng)
            stored = everything(connection)
        keeps = some_rules(rng)
        left = expected(stored, keeps)
        said = collectable(store, keeps)
        went: Counter[str] = Counter()
        for kind, number in collect(store, keeps):
            went[kind] += number
        with connected(database_url) as connection:
            found = everything(connection)
            (counted,) = found.pop("owner_bytes")
            left.pop("owner_bytes")
            assert found == left, (seed, keeps)
            assert counted["stored_bytes"] == bytes_by_owner(found)["local"], (seed, keeps)
        assert +went == +Counter(said), (seed, keeps)
        assert sum(went.values()) == sum(len(stored[t]) - len(left[t]) for t in KIND_OF)


def test_what_may_go_is_every_table_that_grows() -> None:
    """Each table is one of those that go, a part of one, or one that a profile or runner is."""
    kept = {"profile", "revision", "verification", "active_table", "runner", "api_key"}
    kept |= {"retention", "owner_bytes"}
    assert set(Base.metadata.tables) - kept == set(KIND_OF) | PARTS
    assert set(KEPT_KINDS) == set(KINDS) == set(KIND_OF.values())


def test_one_process_deletes_at_a_time(store: Store, database_url: str) -> None:
    """Where another one has its turn nothing goes."""
    with connected(database_url) as connection:
        for number in range(3):
            add(connection, "answer", id=f"a{number}", created_at=NOW - timedelta(days=9))
    keeps = {"answers": Keep(DAY_S)}
    if store.dialect == "postgresql":
        with store.unit_of_work() as unit:
            assert unit.leftovers.take_turn()
            assert list(collect(store, keeps)) == []
    assert sum(number for _, number in collect(store, keeps)) == 3


def test_what_is_named_at_that_very_moment_stays(store: Store, database_url: str) -> None:
    """The keys were read before: what they say is looked at again in the deletion itself."""
    with connected(database_url) as connection:
        add(connection, "answer", id="a0", created_at=NOW - timedelta(days=9))
    with store.reading() as unit:
        cutoffs = unit.leftovers.cutoffs({"answers": Keep(DAY_S)})
        keys = unit.leftovers.due("answer", cutoffs, after=None, limit=9)
    assert keys == [("a0",)]
    with connected(database_url) as connection:
        add(connection, "job", id="j0", state="queued", answer_id="a0")
    with store.unit_of_work() as unit:
        assert unit.leftovers.remove("answer", cutoffs, keys) == 0


def test_the_collector_deletes_while_it_may(store: Store, database_url: str) -> None:
    """And counts; another process's turn changes nothing."""
    with connected(database_url) as connection:
        add(connection, "answer", id="a0", created_at=NOW - timedelta(days=9))
    collector = Collector(store, every_s=0.01)
    remember(store, {"answers": Keep(DAY_S)})
    looked = threading.Event()

    def may_go_on() -> bool:
        looked.set()
        return collector.may_collect

    collector._may_go_on = may_go_on  # type: ignore[method-assign]
    collector.start()
    try:
        assert looked.wait(60)
        assert collector.collected == {}
        collector.may_collect = True
        wait_until(lambda: collector.collected["answers"] == 1)
    finally:
        collector.close()
    with connected(database_url) as connection:
        assert rows(connection, "answer") == []


def test_the_collector_counts_anew(store: Store, database_url: str) -> None:
    """What software of before has stored is found, once; also where everything is kept."""
    with connected(database_url) as connection:
        add(connection, "hidden_answer", id="h0", owner="mine", body=b"12345")
    collector = Collector(store, every_s=0.01)
    collector.may_collect = True

    def figures() -> dict[str, int]:
        with store.reading() as unit:
            return unit.stored_bytes.by_owner()

    collector.start()
    try:
        wait_until(lambda: figures() == {"mine": 5})
    finally:
        collector.close()


def test_it_is_off_by_default(store: Store, database_url: str) -> None:
    """Nothing that says otherwise: everything is kept."""
    with connected(database_url) as connection:
        add(connection, "answer", id="a0", created_at=NOW - timedelta(days=9))
    assert kept_by_owner(store) == []
    assert collectable(store, {}) == {}
    assert list(collect(store, {})) == []


def test_the_foreign_keys_here_are_all_there_are(database_url: str) -> None:
    """So that the independent count misses none; references to what never goes aside."""
    with connected(database_url) as connection:
        found = {
            (table, key["referred_table"])
            for table in Base.metadata.tables
            for key in inspect(connection).get_foreign_keys(table)
        }
    never = {"profile", "revision", "runner", "api_key"}
    assert {one for one in found if one[1] not in never} == {(a, c) for a, _, c, _ in NAMES}


def test_what_goes_first_frees_what_it_named(store: Store, database_url: str) -> None:
    """A job its answer, a fit its traces: the dry run counts them, and one run deletes them."""
    old = NOW - timedelta(days=9)
    with connected(database_url) as connection:
        for number in range(3):
            add(connection, "trace", digest=digest(number), created_at=old)
            add(connection, "answer", id=f"a{number}", created_at=old)
        add(connection, "fit", id="f", trace_digest=digest(0), created_at=old)
        add(connection, "further_trace", fit_id="f", place=1, trace_digest=digest(1))
        add(connection, "fit", id="kept", trace_digest=digest(2), created_at=NOW)
        add(connection, "job", id="j", state="done", finished_at=old, answer_id="a0")
        add(connection, "job", id="open", state="queued", answer_id="a1")
    keeps = {"jobs": Keep(DAY_S), "answers": Keep(DAY_S), "traces": Keep(DAY_S)}
    said = collectable(store, keeps)
    assert said == {"jobs": 1, "answers": 2, "traces": 3}
    went: Counter[str] = Counter()
    for kind, number in collect(store, keeps):
        went[kind] += number
    assert went == said
    with connected(database_url) as connection:
        assert [row["id"] for row in rows(connection, "answer")] == ["a1"]
        assert [row["digest"] for row in rows(connection, "trace")] == [digest(2)]


def of_owners(connection: Connection, *owners: str, days: tuple[int, ...] = (9, 8, 7)) -> None:
    """Answers of each, so many days old."""
    for owner in owners:
        for day in days:
            at = NOW - timedelta(days=day)
            add(connection, "answer", id=f"{owner}{day}", owner=owner, created_at=at)


def left_of(url: str) -> list[str]:
    with connected(url) as connection:
        return [row["id"] for row in rows(connection, "answer")]


def collected(store: Store) -> int:
    """Collect of everybody, as the database says; return how many rows went."""
    return sum(number for of, keeps in kept_by_owner(store) for _, number in collect(of, keeps))


def test_who_stores_much_deletes_nobody_elses(store: Store, database_url: str) -> None:
    """Counts are of each owner."""
    with connected(database_url) as connection:
        of_owners(connection, "loud", days=(6, 5, 4, 3, 2))
        of_owners(connection, "quiet", days=(9, 8))
    remember(store, {"answers": Keep(None, 2)})
    assert collected(store) == 3
    assert left_of(database_url) == ["loud2", "loud3", "quiet8", "quiet9"]


def test_an_owner_may_have_rules_of_his_own(store: Store, database_url: str) -> None:
    """They hold in the place of all's, until they are forgotten; the last word counts."""
    with connected(database_url) as connection:
        of_owners(connection, "a", "b", "c")
    remember(store, {"answers": Keep(None, 1)})
    remember(store, {}, "a")
    remember(store, {"answers": Keep(8.5 * DAY_S)}, "b")
    remember(store, {"answers": Keep(None, 2)})
    assert collected(store) == 2
    assert left_of(database_url) == ["a7", "a8", "a9", "b7", "b8", "c7", "c8"]
    with store.unit_of_work() as unit:
        assert unit.retention.all() == {
            EVERYBODY: {"answers": Keep(None, 2)},
            "a": {},
            "b": {"answers": Keep(8.5 * DAY_S)},
        }
        unit.retention.forget("a")
    assert collected(store) == 1
    remember(store, {})
    assert collected(store) == 0
    assert left_of(database_url) == ["a7", "a8", "b7", "b8", "c7", "c8"]


def test_the_last_of_many_writers_has_the_word(store: Store) -> None:
    """None of them fails, though all begin with no row."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: remember(store, {"jobs": Keep(None, n)}), range(24)))
    with store.reading() as unit:
        (kept,) = unit.retention.all().values()
    assert kept["jobs"].count in range(24)
