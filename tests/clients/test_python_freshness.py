"""What the Python clients keep: answers by their ETag, a table file on disk, events of a job."""

from __future__ import annotations

import json
import os
import stat
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exports.table.slt import digest_of
from sluice_client import (
    Client,
    InvalidTable,
    NotFound,
    Retry,
    Table,
    Unavailable,
    UnexpectedAnswer,
    Unreachable,
    pipeline_of_lines,
)
from sluice_client.calls import Answer
from sluice_client.events import EventParser
from sluice_client.memory import Memory
from tests.app.serving import serving, settings_for
from tests.clients.python_clients import KINDS, opened
from tests.clients.scripted_http import Step, answer, break_off, pieces, problem, scripted
from tests.support.malformed_tables import good

QUICK = Retry(first_wait_s=0.0, max_wait_s=0.0)
ALIGNED = (Path(__file__).parents[1] / "data" / "tables" / "v1" / "aligned.slt").read_bytes()
PIPELINE = pipeline_of_lines([("copy", 1.0, 2.0), ("wire", 2.0, 4.0)])
Opened = Callable[..., AbstractContextManager[Any]]


@pytest.fixture(params=KINDS)
def client_of(request: pytest.FixtureRequest) -> Opened:
    """Opens a client of each kind in turn."""
    return partial(opened, request.param)


def table_answer(data: bytes, *, tag: str | None = None) -> Step:
    """A table file as the service sends it."""
    return answer(body=data, headers={"ETag": f'"{tag or digest_of(data)}"'})


NOT_MODIFIED = answer(body=b"", status=304)

# --- answers by their ETag ------------------------------------------------------------------------


def test_what_has_not_changed_is_not_sent_again(client_of: Opened) -> None:
    """Asked for by its tag; a 304 gives the answer that was kept, a 200 a new one."""
    steps = [table_answer(b"one"), NOT_MODIFIED, table_answer(b"two"), NOT_MODIFIED]
    with scripted(lambda _: steps) as server, client_of(server.address) as client:
        found = [client.active_table_file("a") for _ in range(4)]
        assert found == [b"one", b"one", b"two", b"two"]
        tags = [request.headers.get("if-none-match") for request in server.requests]
        assert tags == [None, *(f'"{digest_of(data)}"' for data in (b"one", b"one", b"two"))]


def test_each_address_has_its_own_answer(client_of: Opened) -> None:
    """By the whole of it, parameters included."""
    with (
        scripted(lambda _: [table_answer(b"one"), table_answer(b"two")]) as server,
        client_of(server.address) as client,
    ):
        assert client.table_file("a") == b"one"
        assert client.active_table_file("a") == b"two"
        assert all("if-none-match" not in request.headers for request in server.requests)


def test_a_client_without_memory_keeps_nothing(client_of: Opened) -> None:
    """And asks plainly."""
    with (
        scripted(lambda _: [table_answer(b"one"), table_answer(b"one")]) as server,
        client_of(server.address, memory_bytes=0) as client,
    ):
        assert client.table_file("a") == client.table_file("a") == b"one"
        assert "if-none-match" not in server.requests[1].headers


def test_a_304_that_was_not_asked_for_is_an_error(client_of: Opened) -> None:
    """There is nothing to answer with."""
    with (
        scripted(lambda _: [NOT_MODIFIED]) as server,
        client_of(server.address) as client,
        pytest.raises(UnexpectedAnswer),
    ):
        client.table_file("a")


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 900)), max_size=40))
def test_the_memory_holds_no_more_than_it_may(uses: list[tuple[int, int]]) -> None:
    """The least recently used go first; what is kept is the last answer of its target."""
    memory, last = Memory(3000), {}
    for target, size in uses:
        kept = Answer(200, {"etag": f'"{size}"'}, bytes(size))
        assert memory.take(str(target), kept, None) is kept
        last[str(target)] = kept
        stored = [one for one in map(memory.get, map(str, range(6))) if one is not None]
        assert sum(len(one.body) + 512 for one in stored) <= 3000
        assert memory.get(str(target)) is kept
        assert all(memory.get(name) in (None, one) for name, one in last.items())


def test_threads_share_the_memory() -> None:
    """Without a lost count."""
    memory = Memory(20_000)

    def use(number: int) -> None:
        for at in range(500):
            memory.take(str((at * number) % 97), Answer(200, {"etag": "t"}, bytes(at)), None)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stored = [one for one in map(memory.get, map(str, range(97))) if one is not None]
    assert sum(len(one.body) + 512 for one in stored) == memory._stored_bytes <= 20_000


# --- a table file on disk -------------------------------------------------------------------------


def test_a_file_is_fetched_and_kept_fresh(client_of: Opened, tmp_path: Path) -> None:
    """It comes once, is asked for by its digest, and is replaced when there is another one."""
    path = tmp_path / "rack.slt"
    steps = [table_answer(good()), NOT_MODIFIED, table_answer(ALIGNED)]
    with scripted(lambda _: steps) as server, client_of(server.address) as client:
        assert client.fetch_table("rack", path)
        before = (path.stat().st_ino, path.stat().st_mtime_ns)  # reading moves the third time
        assert Table.open(path).schedule(333) == [146, 187]
        assert not client.fetch_table("rack", str(path))
        assert (path.stat().st_ino, path.stat().st_mtime_ns) == before
        assert client.fetch_table("rack", path)
        assert path.read_bytes() == ALIGNED
        assert [request.target for request in server.requests] == [
            "/profiles/rack/table?format=slt"
        ] * 3
        tags = [request.headers.get("if-none-match") for request in server.requests]
        assert tags == [None, f'"{digest_of(good())}"', f'"{digest_of(good())}"']
    assert os.listdir(tmp_path) == ["rack.slt"]


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (table_answer(good()[:-1]), InvalidTable),
        (table_answer(b""), InvalidTable),
        (table_answer(ALIGNED, tag=digest_of(good())), InvalidTable),
        (answer(body=b"<html>"), InvalidTable),
        (problem(404, "not_found"), NotFound),
        (problem(503, "overloaded"), Unavailable),
        (break_off, Unreachable),
    ],
)
def test_whatever_goes_wrong_leaves_the_file_as_it_was(
    client_of: Opened, tmp_path: Path, step: Step, kind: type[Exception]
) -> None:
    """And nothing beside it."""
    path = tmp_path / "rack.slt"
    path.write_bytes(good()[:300])  # damaged: so it is asked for
    with (
        scripted(lambda _: [step] * 4) as server,
        client_of(server.address, retry=QUICK) as client,
        pytest.raises(kind),
    ):
        client.fetch_table("rack", path)
    assert path.read_bytes() == good()[:300]
    assert os.listdir(tmp_path) == ["rack.slt"]


def test_the_same_file_without_its_tag_is_no_change(client_of: Opened, tmp_path: Path) -> None:
    """As a proxy that drops ETag sends it."""
    path = tmp_path / "rack.slt"
    path.write_bytes(good())
    with (
        scripted(lambda _: [answer(body=good())]) as server,
        client_of(server.address) as client,
    ):
        assert not client.fetch_table("rack", path)


def test_who_may_read_the_file_and_where_it_lies_stay_as_they_were(
    client_of: Opened, tmp_path: Path
) -> None:
    """Its mode, and the link to it."""
    path, link = tmp_path / "real.slt", tmp_path / "link.slt"
    path.write_bytes(good())
    path.chmod(0o640)
    link.symlink_to(path)
    with (
        scripted(lambda _: [table_answer(ALIGNED)]) as server,
        client_of(server.address) as client,
    ):
        assert client.fetch_table("rack", link)
    assert link.is_symlink()
    assert path.read_bytes() == ALIGNED
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_folder_that_is_not_there_is_the_systems_error(client_of: Opened, tmp_path: Path) -> None:
    """After the table came."""
    with (
        scripted(lambda _: [table_answer(good())]) as server,
        client_of(server.address) as client,
        pytest.raises(FileNotFoundError),
    ):
        client.fetch_table("rack", tmp_path / "none" / "rack.slt")


def test_readers_see_whole_tables_while_the_file_is_replaced(tmp_path: Path) -> None:
    """Each opening gives one of the two."""
    path = tmp_path / "rack.slt"
    path.write_bytes(good())
    seen, ended = set(), threading.Event()

    def read() -> None:
        while not ended.is_set():
            seen.add(Table.open(path).digest)

    reader = threading.Thread(target=read)
    reader.start()
    steps = [table_answer((ALIGNED, good())[at % 2]) for at in range(100)]
    with scripted(lambda _: steps) as server, Client(server.address) as client:
        changes = [client.fetch_table("rack", path) for _ in steps]
    ended.set()
    reader.join()
    assert changes == [True] * 100
    assert seen <= {digest_of(good()), digest_of(ALIGNED)}
    assert seen


def test_the_service_itself_answers_304(tmp_path: Path) -> None:
    """For the lookup, the tables, the exports and the file; and a switch is seen at once."""
    statuses: list[int] = []
    http = httpx.Client(event_hooks={"response": [lambda one: statuses.append(one.status_code)]})
    path = tmp_path / "rack.slt"
    with (
        serving(settings_for(f"sqlite:///{tmp_path / 'sluice.db'}")) as live,
        http,
        Client(f"http://127.0.0.1:{live.port}", http=http) as client,
    ):
        client.create_profile(name="rack", pipeline=PIPELINE)
        assert client.schedule("rack", 4096) == client.schedule("rack", 4096)
        first = client.compile_table("rack", min_message_bytes=1024, max_message_bytes=8192)
        assert client.schedule("rack", 4096).table == first.digest
        second = client.compile_table("rack", min_message_bytes=1024, max_message_bytes=4096)
        assert client.fetch_table("rack", path)
        assert Table.open(path).digest == first.digest
        statuses.clear()
        for _ in range(2):
            client.schedule("rack", 4096)
            client.table(first.digest)
            client.table_file(first.digest)
            client.active_table("rack")
            client.export("rack", "ucx", min_message_bytes=1024, max_message_bytes=8192)
            assert not client.fetch_table("rack", path)
        assert statuses == [304, 200, 200, 200, 200, 304] + [304] * 6
        client.activate_table("rack", digest=second.digest)
        assert client.schedule("rack", 4096).table == second.digest
        assert client.fetch_table("rack", path)
        assert Table.open(path).digest == second.digest


# --- events ---------------------------------------------------------------------------------------


def job(state: str) -> dict[str, Any]:
    """A job as events carry it."""
    progress = {
        "elapsed_s": 0.5,
        "best_latency_us": None,
        "lower_bound_us": None,
        "relative_gap": None,
        "history": [],
        "steps_done": None,
        "steps_total": None,
    }
    nothing = (
        *("started_at", "finished_at", "best", "answer_id", "error"),
        *("comparison", "table", "audit", "export"),
    )
    return {
        "id": "j",
        "kind": "optimize",
        "state": state,
        "created_at": "now",
        "attempts": 1,
        "cancel_requested": False,
        "progress": progress,
        **dict.fromkeys(nothing),
    }


def event(number: int, name: str, state: str) -> bytes:
    """An event as the service writes it."""
    return f"id: {number}\nevent: {name}\ndata: {json.dumps(job(state))}\n\n".encode()


def test_events_go_on_where_the_connection_broke(client_of: Opened) -> None:
    """Asked for behind the last one that was seen; what came in between resets the patience."""
    steps = [
        pieces(event(1, "progress", "queued"), event(2, "progress", "running"), is_whole=False),
        problem(503, "overloaded"),
        pieces(b": still running\n\n"),
        pieces(event(3, "progress", "running")[:40], is_whole=False),
        pieces(event(3, "progress", "running"), event(4, "done", "done"), b"ignored"),
    ]
    with (
        scripted(lambda _: steps) as server,
        client_of(server.address, retry=Retry(2, 0.0, 0.0)) as client,
    ):
        seen = [(one.name, one.job.state) for one in client.job_events("j")]
        assert seen == [
            ("progress", "queued"),
            ("progress", "running"),
            ("progress", "running"),
            ("done", "done"),
        ]
        behind = [request.headers.get("last-event-id") for request in server.requests]
        assert behind == [None, "2", "2", "2", "2"]


def test_events_end_when_the_patience_does(client_of: Opened) -> None:
    """A stream that says nothing is a failure each time."""
    with (
        scripted(lambda _: [pieces()] * 4) as server,
        client_of(server.address, retry=QUICK) as client,
    ):
        with pytest.raises(Unreachable, match="before the job did"):
            list(client.job_events("j"))
        assert len(server.requests) == 4


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"id": 1}', b"NaN"])
def test_an_event_of_another_kind_is_an_error(client_of: Opened, data: bytes) -> None:
    """As any other answer is."""
    with (
        scripted(lambda _: [pieces(b"data: " + data + b"\n\n")]) as server,
        client_of(server.address) as client,
        pytest.raises(UnexpectedAnswer),
    ):
        list(client.job_events("j"))


@given(st.data(), st.sampled_from(["\n", "\r", "\r\n"]))
def test_events_are_read_in_whatever_pieces_they_come(data: st.DataObject, end: str) -> None:
    """Each kind of end of line, comments, fields without a value, separators inside the data."""
    lines = [
        ": a comment",
        "id: 7",
        "event: progress",
        "data: {",
        "data:  \u2028\x0b\x85}",
        "",
        "",
        "data",
        "retry: 10",
        "unknown: x",
        "",
        "event: dropped",
        "",
        "id: 8",
        "data:x",
        "",
    ]
    stream = "".join(line + end for line in lines).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    parser, seen = EventParser(), []
    for low, high in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        seen += parser.feed(stream[low:high])
    seen += parser.feed(b"\n" if end == "\r" else b"")
    assert seen == [
        ("progress", "{\n \u2028\x0b\x85}".encode()),
        ("message", b""),
        ("message", b"x"),
    ]
    assert parser.last_id == "8"
