"""The cluster besides the contract of engines: what is lost, who is let in, what Dask is told."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import dask
import distributed
import psutil
import pytest
from distributed import Client

from app.execution import cluster as cluster_module
from app.execution import node as node_module
from app.execution.cluster import ClusterEngine
from app.execution.engine import Lost, Pool, Stopped
from app.execution.node import ClusterOptions, check_versions, run_task, set_up_dask, versions
from domain.errors import Conflict, InvalidInput, NotReady
from tests.execution.support import (
    GUARD_S,
    is_alive,
    pool_options,
    submit,
    task_of,
    wait_until,
)
from tests.support.chaos import CHECKOUT, Member
from tests.support.cluster import TestCluster, cluster, wait_for_slots
from tests.support.system import require_system

ONE_SLOT = {Pool.SOLVE: pool_options(1)}


@pytest.fixture(scope="module")
def shared() -> Iterator[TestCluster]:
    with cluster(1) as made:
        yield made


@pytest.fixture
def made(shared: TestCluster) -> TestCluster:
    """One worker with one slot, whatever the test before has left."""
    shared.heal()
    return shared


@pytest.fixture
def engine(made: TestCluster) -> Iterator[ClusterEngine]:
    engine = ClusterEngine(made.options(), {Pool.SOLVE: pool_options(2)})
    wait_for_slots(engine, 1)
    yield engine
    engine.close()


# --- what is lost


def test_what_ran_at_a_killed_worker_is_lost_and_what_waited_is_not_blamed(
    made: TestCluster, engine: ClusterEngine
) -> None:
    """Another engine's task waits at the scheduler, which gives it to the next worker."""
    other = ClusterEngine(made.options(), ONE_SLOT)
    wait_for_slots(other, 1)
    running = submit(engine, "improves_then_waits")
    wait_until(lambda: running.best == 4)
    waiting = submit(other, "answers")
    made.workers.pop().kill()
    assert running.end() == Lost(was_started=True)
    wait_until(lambda: not is_alive(running.pid))
    made.start_worker()
    assert waiting.result() == "answer"
    other.close()


def test_a_lost_scheduler_loses_what_runs_and_the_next_one_is_found(
    made: TestCluster, engine: ClusterEngine
) -> None:
    """The worker ends what it ran, and joins the next scheduler with the same processes."""
    before = submit(engine, "process_id").result()
    running = submit(engine, "improves_then_waits")
    wait_until(lambda: running.best == 4)
    waiting = submit(engine, "process_id")
    assert made.scheduler is not None
    made.scheduler.kill()
    assert running.end() == Lost(was_started=True)
    wait_until(lambda: engine.capacity(Pool.SOLVE).slots == 0)
    with pytest.raises(NotReady):
        submit(engine, "answers")
    wait_until(lambda: not is_alive(running.pid))
    made.start_scheduler()
    assert waiting.result() != running.pid
    assert before == running.pid


def test_a_worker_that_stops_ends_what_it_runs_first(
    made: TestCluster, engine: ClusterEngine
) -> None:
    running = submit(engine, "waits", 0.5)
    wait_until(lambda: running.has_started)
    waiting = submit(engine, "answers")
    made.workers.pop().stop()
    assert running.result() == "waited"
    made.start_worker()
    assert waiting.result() == "answer"


def test_a_worker_that_may_not_wait_gives_back_what_it_runs() -> None:
    """That counts nothing: it was on purpose."""
    with cluster(1, {"SLUICE_WORK_DRAIN_S": "0"}) as made:
        engine = ClusterEngine(made.options(), ONE_SLOT)
        wait_for_slots(engine, 1)
        running = submit(engine, "improves_then_waits")
        wait_until(lambda: running.best == 4)
        made.workers.pop().stop()
        assert running.end() == Stopped(is_closing=True)
        engine.close()


def test_a_client_that_is_gone_leaves_nothing_running(made: TestCluster) -> None:
    code = (
        "import os, sys\n"
        "from app.execution.cluster import ClusterEngine\n"
        "from app.execution.node import ClusterOptions\n"
        "from tests.execution.test_cluster import ONE_SLOT\n"
        "from tests.execution.support import submit, wait_until\n"
        "from tests.support.cluster import wait_for_slots\n"
        "engine = ClusterEngine(ClusterOptions(sys.argv[1]), ONE_SLOT)\n"
        "wait_for_slots(engine, 1)\n"
        "heard = submit(engine, 'improves_then_spins')\n"
        "wait_until(lambda: heard.best == 4)\n"
        "print(f'{{\"pid\": {heard.pid}}}', flush=True)\n"
        "sys.stdin.read()\n"
    )
    client = Member.start(("-c", code, made.address), made.environment)
    pid = int(client.ready["pid"])
    assert is_alive(pid)
    client.kill()
    wait_until(lambda: not is_alive(pid))


def test_a_scheduler_that_is_stopped_for_a_while_loses_nothing(
    made: TestCluster, engine: ClusterEngine
) -> None:
    running = submit(engine, "waits", 0.2)
    wait_until(lambda: running.has_started)
    assert made.scheduler is not None
    made.scheduler.process.send_signal(signal.SIGSTOP)
    waiting = submit(engine, "answers")
    made.scheduler.process.send_signal(signal.SIGCONT)
    assert (running.result(), waiting.result()) == ("waited", "answer")


def test_a_scheduler_that_hangs_loses_what_it_routes(
    made: TestCluster, engine: ClusterEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is used again once it answers, by a client that leaves nothing of the one before."""
    monkeypatch.setattr("app.execution.cluster._ANSWER_S", 0.5)
    running = submit(engine, "improves_then_waits")
    wait_until(lambda: running.best == 4)
    assert made.scheduler is not None
    assert engine._cluster.connection is not None
    client = engine._cluster.connection._client
    made.scheduler.process.send_signal(signal.SIGSTOP)
    try:
        assert running.end() == Lost(was_started=True)
        assert engine.capacity(Pool.SOLVE).slots == 0
    finally:
        made.scheduler.process.send_signal(signal.SIGCONT)
    wait_for_slots(engine, 1)
    wait_until(lambda: not is_alive(running.pid))
    assert submit(engine, "answers").result() == "answer"
    assert client.status == "closed"
    assert client.scheduler_comm.closed()


def test_a_cancel_is_heard_while_a_result_is_fetched(
    made: TestCluster, engine: ClusterEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its worker is stopped, and later has a place for the next one."""
    worker = made.workers[0].process

    async def wait_and_stop(future: Any) -> None:
        monkeypatch.undo()
        await cast(Any, distributed.wait)(future)
        worker.send_signal(signal.SIGSTOP)

    monkeypatch.setattr(cluster_module, "wait", wait_and_stop)
    try:
        running = submit(engine, "fills", 2**19)
        wait_until(lambda: psutil.Process(worker.pid).status() == psutil.STATUS_STOPPED)
        engine.cancel(*running.key)
        assert running.end() == Stopped()
    finally:
        worker.send_signal(signal.SIGCONT)
    assert submit(engine, "answers").result() == "answer"


def test_a_result_that_was_lost_before_it_was_fetched_is_made_again_by_the_same_worker(
    made: TestCluster, tmp_path: Path
) -> None:
    """As Dask would have it, which knows of no claims."""
    security = made.options().security()
    with Client(made.address, security=security, set_as_default=False) as client:
        task = task_of("appends", str(tmp_path / "runs"))
        for _ in range(2):
            key = ("sluice", task.id, task.claim, "a topic")
            client.submit(run_task, task, "a topic", key=key, pure=False).result(GUARD_S)
            wait_until(lambda: not any(client.has_what().values()))  # it is forgotten
    assert (tmp_path / "runs").stat().st_size == 2


def test_a_connection_that_was_cut_loses_what_runs(made: TestCluster) -> None:
    """Dask connects again by itself, and forgets what this engine had asked to hear."""
    engine = ClusterEngine(made.options(), {Pool.SOLVE: pool_options(1)})
    wait_for_slots(engine, 1)
    _cut(engine)  # nothing runs: what is next is heard as before
    heard = submit(engine, "improves_then_waits")
    wait_until(lambda: heard.best == 4)
    _cut(engine)
    assert heard.end() == Lost(was_started=True)
    wait_until(lambda: not is_alive(heard.pid))
    wait_for_slots(engine, 1)
    again = submit(engine, "improves_then_waits")
    wait_until(lambda: again.best == 4)
    engine.close()


def test_a_client_that_was_cut_off_is_closed_for_good(made: TestCluster) -> None:
    """Also where Dask connects again while it closes: nothing is left that garbage collection would
    have to close.
    """
    engine = ClusterEngine(made.options(), ONE_SLOT)
    clients: list[Any] = []
    for _ in range(3):
        wait_for_slots(engine, 1)
        assert engine._cluster.connection is not None
        clients.append(engine._cluster.connection._client)
        heard = submit(engine, "improves_then_waits")
        wait_until(lambda heard=heard: heard.best == 4)
        _cut(engine)
        assert heard.end() == Lost(was_started=True)
    engine.close()
    assert [client.status for client in clients] == ["closed"] * 3
    assert all(
        client.scheduler_comm is None or client.scheduler_comm.closed() for client in clients
    )


def _cut(engine: ClusterEngine) -> None:
    """Break the connection as a network does, and wait until Dask has seen it."""
    connection = engine._cluster.connection
    assert connection is not None
    client = connection._client
    comm = client.scheduler_comm
    client.loop.add_callback(comm.comm.abort)
    wait_until(lambda: client.scheduler_comm is not comm)


def test_an_engine_closes_while_there_is_no_scheduler(
    made: TestCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And however often it has tried, no more is open than at first."""
    monkeypatch.setattr(node_module, "CONNECT_S", 0.05)
    for name in ("CONNECT_S", "RETRY_S"):
        monkeypatch.setattr(f"app.execution.cluster.{name}", 0.05)
    engine = ClusterEngine(ClusterOptions("tls://127.0.0.1:1"), ONE_SLOT)
    with pytest.raises(NotReady, match="cannot be reached"):
        submit(engine, "answers")
    tries: list[tuple[int, int]] = []

    def counted(options: ClusterOptions, address: str) -> Client:
        process = psutil.Process()
        tries.append((process.num_threads(), process.num_fds()))
        return node_module.client_of(options, address)

    monkeypatch.setattr(cluster_module, "client_of", counted)
    wait_until(lambda: len(tries) > 9)
    engine.close()
    assert tries[-1] <= tries[2]


def test_a_cancelled_task_that_waits_at_the_scheduler_never_runs(
    made: TestCluster, engine: ClusterEngine, tmp_path: Path
) -> None:
    other = ClusterEngine(made.options(), ONE_SLOT)
    wait_for_slots(other, 1)
    running = submit(engine, "ends_at_reports")
    wait_until(lambda: running.has_started)
    waiting = submit(other, "appends", str(tmp_path / "runs"))
    wait_until(lambda: other.capacity(Pool.SOLVE).busy == 1)
    other.cancel(*waiting.key)
    assert waiting.end() == Stopped()
    time.sleep(0.5)  # the scheduler hears of it later: Dask's client sends such messages together
    engine.cancel(*running.key)
    assert running.end() == Stopped()
    assert submit(other, "answers").result() == "answer"
    assert not (tmp_path / "runs").exists()
    other.close()


def test_tasks_that_have_ended_are_forgotten_together(
    made: TestCluster, engine: ClusterEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each by itself would be a message, after which Dask's client lets the next task wait."""
    security = made.options().security()
    with Client(made.address, security=security, set_as_default=False) as client:

        def known() -> int:
            return sum(map(len, client.has_what().values()))

        for together_s, left in ((cluster_module._TOGETHER_S, 0), (3600.0, 3)):
            monkeypatch.setattr(cluster_module, "_TOGETHER_S", together_s)
            for _ in range(3):
                submit(engine, "answers").result()
            wait_until(lambda left=left: known() == left)


# --- who is let in


def _openssl(*words: str | Path) -> None:
    require_system(shutil.which("openssl"), "openssl", "apt-get install openssl")
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


def _authority(folder: Path) -> dict[str, str]:
    """A certificate that signs, and one that it has signed; as settings name them."""
    folder.mkdir()
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    signs = ("-keyout", folder / "ca.key", "-out", folder / "ca.pem")
    _openssl("req", "-x509", *curve, *signs, "-subj", "/CN=engine", "-days", "2")
    asks = ("-keyout", folder / "key.pem", "-out", folder / "asks.pem")
    _openssl("req", *curve, *asks, "-subj", "/CN=member")
    by = ("-CA", folder / "ca.pem", "-CAkey", folder / "ca.key", "-CAcreateserial", "-days", "2")
    _openssl("x509", "-req", "-in", folder / "asks.pem", *by, "-out", folder / "cert.pem")
    names = {"CA": "ca.pem", "CERT": "cert.pem", "KEY": "key.pem"}
    return {f"SLUICE_DASK_TLS_{name}": str(folder / file) for name, file in names.items()}


def test_members_know_each_other_by_certificates_of_one_authority(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither a certificate of another authority nor a connection without TLS is let in."""
    ours, others = _authority(tmp_path / "ours"), _authority(tmp_path / "others")
    with cluster(1, ours, address="tls://127.0.0.1:0") as made:
        engine = ClusterEngine(made.options(), ONE_SLOT)
        wait_for_slots(engine, 1)
        assert submit(engine, "answers").result() == "answer"
        for options in (
            ClusterOptions(made.address, *others.values()),
            ClusterOptions(made.address),  # by this user's own
        ):
            caplog.clear()
            stranger = ClusterEngine(options, ONE_SLOT)
            wait_until(lambda: "cannot be used" in caplog.text)
            with pytest.raises(NotReady):
                submit(stranger, "answers")
            stranger.close()
        assert made.scheduler is not None
        ports = {*_ports(made.scheduler), *_ports(made.workers[0])}
        assert len(ports) > 2
        assert [_in_clear(port, path) for port in ports for path in PATHS] == [False] * (
            len(ports) * len(PATHS)
        )
        engine.close()


PATHS = ("/health", "/metrics", "/json/counts.json", "/status", "/info/main/workers.html")


def _ports(member: Member) -> set[int]:
    """Where a process listens."""
    connections = psutil.Process(member.process.pid).net_connections()
    return {one.laddr.port for one in connections if one.status == psutil.CONN_LISTEN}


def _in_clear(port: int, path: str) -> bool:
    """Whether anything is told there without TLS."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=GUARD_S)
    try:
        connection.request("GET", path)
        return connection.getresponse().status < 400
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("address", "field"),
    [
        ("tcp://10.0.0.1:8786", "SLUICE_DASK_ADDRESS"),
        ("tcp://engine-scheduler:8786", "SLUICE_DASK_ADDRESS"),
        ("tcp://0.0.0.0:8786", "SLUICE_DASK_ADDRESS"),
        ("http://127.0.0.1:8786", "SLUICE_DASK_ADDRESS"),
        ("127.0.0.1:8786", "SLUICE_DASK_ADDRESS"),
        ("tls://", "SLUICE_DASK_ADDRESS"),
        ("tls://10.0.0.1:port", "SLUICE_DASK_ADDRESS"),
        ("tcp://127.0.0.1:8786", "SLUICE_DASK_ADDRESS"),
        ("tls://10.0.0.1:8786", "SLUICE_DASK_TLS_CA"),
    ],
)
def test_addresses_without_certificates_are_refused(address: str, field: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        ClusterOptions(address).check()
    assert refusal.value.field == field


_AS_ANOTHER_USER = """
import asyncio, os, sys
from distributed import Client
import distributed.comm.tcp
os.setgid(65534)
os.setuid(65534)
async def run():
    async with Client(sys.argv[1], asynchronous=True, timeout=2, set_as_default=False) as client:
        print(await client.run_on_scheduler(os.getuid))
asyncio.run(run())
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root may become another user")
@pytest.mark.parametrize("scheme", ["tls", "tcp"])
def test_another_user_of_the_machine_runs_nothing(
    made: TestCluster, engine: ClusterEngine, scheme: str
) -> None:
    """Neither with Dask's own client nor by the files, which he cannot read."""
    folder = node_module._own_folder()
    assert folder.stat().st_mode & 0o777 == 0o700
    address = made.address.replace("tls", scheme)
    command = [sys.executable, "-c", _AS_ANOTHER_USER, address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=GUARD_S)
    assert (done.stdout, done.returncode) == ("", 1)
    read = [sys.executable, "-c", f"import os; os.setuid(65534); open({str(folder / 'key.pem')!r})"]
    refused = subprocess.run(read, capture_output=True, text=True, timeout=GUARD_S)
    assert "PermissionError" in refused.stderr
    assert submit(engine, "answers").result() == "answer"


def test_a_folder_of_certificates_that_others_may_write_to_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever put a certificate there would be let in, and could be taken for the scheduler."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    require_system(shutil.which("openssl"), "openssl", "apt-get install openssl")
    options = ClusterOptions("tls://127.0.0.1:0")
    options.make_certificate()
    options.security()
    folder = tmp_path / "sluice" / "engine"
    for mode in (0o720, 0o702, 0o1777):
        folder.chmod(mode)
        with pytest.raises(InvalidInput, match=f"chmod go-w {folder}"):
            options.security()
        with pytest.raises(InvalidInput, match=f"chmod go-w {folder}"):
            node_module.run_scheduler(options, lambda _: pytest.fail("it listens"))
    folder.chmod(0o700)
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(InvalidInput, match="a folder of this user, not of user"):
        options.security()


def test_a_certificate_that_is_there_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    options = ClusterOptions("tls://127.0.0.1:8786")
    options.check()
    with pytest.raises(Conflict, match="start sluice admin engine scheduler"):
        options.security()
    require_system(shutil.which("openssl"), "openssl", "apt-get install openssl")
    options.make_certificate()
    key = tmp_path / "cache" / "sluice" / "engine" / "key.pem"
    before = key.read_bytes()
    options.make_certificate()
    assert key.read_bytes() == before
    assert [one.name for one in (tmp_path / "cache" / "sluice").iterdir()] == ["engine"]
    options.security()
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    with pytest.raises(Conflict, match="no certificate can be made"):
        options.make_certificate()


def test_each_file_of_a_certificate_has_to_be_there(tmp_path: Path) -> None:
    files = {**_authority(tmp_path / "ours")}
    for name in files:
        given = {**files, name: str(tmp_path / "none")}
        with pytest.raises(InvalidInput) as refusal:
            ClusterOptions("tls://127.0.0.1:8786", *given.values()).check()
        assert refusal.value.field == name


def test_members_of_other_versions_are_refused() -> None:
    check_versions(versions())
    check_versions(list(versions()))
    with pytest.raises(Conflict):
        check_versions(("0.0.1", *versions()[1:]))


# --- what Dask is told, and when it is there


def test_what_dask_would_do_besides_is_off() -> None:
    set_up_dask()
    expected = {
        "distributed.scheduler.allowed-failures": 0,
        "distributed.scheduler.work-stealing": True,
        "distributed.scheduler.worker-saturation": 1.0,
        "distributed.scheduler.worker-ttl": "30s",
        "distributed.worker.profile.enabled": False,
        "distributed.worker.memory.terminate": False,
        "distributed.worker.http.routes": [],
        "distributed.scheduler.http.routes": [],
    }
    assert {name: dask.config.get(name) for name in expected} == expected
    assert dask.config.get("distributed.admin.low-level-log-length") <= 100


def test_dask_is_not_loaded_unless_it_is_wanted() -> None:
    """Neither by the service nor by any command."""
    code = (
        "import sys\n"
        "import app.cli, app.main, app.serving, app.jobs.runner, app.operations.tasks\n"
        "from app.settings import Settings\n"
        "app.operations.tasks.open_engine(Settings(workers=1)).close()\n"
        "print({'dask', 'distributed', 'tornado'} & set(sys.modules))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
        timeout=GUARD_S,
    )
    assert done.stdout == "set()\n"
