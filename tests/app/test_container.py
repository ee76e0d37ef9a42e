"""Limits of control groups, as the kernel writes them, and the workers that follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import settings as settings_module
from app.container import (
    MAX_WORKER_BYTES,
    MIN_SERVICE_BYTES,
    MIN_WORKER_BYTES,
    Container,
    bytes_of,
    groups_of,
    processes,
    quota_of,
    read_container,
)
from app.operations.tasks import service_pools
from app.settings import Settings

GIB = 2**30


@pytest.mark.parametrize(
    ("text", "processors"),
    [
        ("max 100000\n", None),
        ("50000 100000\n", 0.5),
        ("250000 100000\n", 2.5),
        ("-1 100000", None),
        ("0 100000", None),
        ("50000 0", None),
        ("50000", None),
        ("", None),
        (" ", None),
        ("a b", None),
        ("1 2 3", None),
    ],
)
def test_quotas(text: str, processors: float | None) -> None:
    assert quota_of(text) == processors


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("max\n", None),
        ("1073741824\n", GIB),
        ("9223372036854771712\n", None),
        ("-1", None),
        ("0", None),
        ("", None),
        ("1e9", None),
        ("\u0661", None),
    ],
)
def test_limits_of_memory(text: str, limit: int | None) -> None:
    assert bytes_of(text) == limit


@given(st.text())
def test_whatever_a_file_holds_is_a_limit_or_none(text: str) -> None:
    assert (quota_of(text) or 1.0) > 0.0
    assert (bytes_of(text) or 1) > 0
    groups_of(text)


def written(root: Path, files: Mapping[str, str]) -> Path:
    """A root with these files."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


NESTED = "kubepods.slice/pod1.slice"


@pytest.mark.parametrize(
    ("files", "found"),
    [
        pytest.param({}, Container(), id="no files"),
        pytest.param(
            {
                "proc/self/cgroup": "0::/\n",
                "sys/fs/cgroup/cpu.max": "50000 100000\n",
                "sys/fs/cgroup/memory.max": "1073741824\n",
            },
            Container(0.5, GIB),
            id="a container that sees its own group as the root",
        ),
        pytest.param(
            {
                "proc/self/cgroup": f"0::/{NESTED}/own\n",
                f"sys/fs/cgroup/{NESTED}/own/cpu.max": "max 100000\n",
                f"sys/fs/cgroup/{NESTED}/own/memory.max": "8589934592\n",
                f"sys/fs/cgroup/{NESTED}/cpu.max": "200000 100000\n",
                f"sys/fs/cgroup/{NESTED}/memory.max": "4294967296\n",
                "sys/fs/cgroup/kubepods.slice/cpu.max": "300000 100000\n",
                "sys/fs/cgroup/kubepods.slice/memory.max": "max\n",
            },
            Container(2.0, 4 * GIB),
            id="the smallest of the groups around it",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "0::/../other\n",
                "sys/fs/cgroup/memory.max": "4294967296\n",
                "sys/memory.max": "1\n",
            },
            Container(None, 4 * GIB),
            id="a path that leads out of the mount",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "5:cpu,cpuacct:/docker/a\n4:memory:/docker/a\n1:name=x:/y\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "150000\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "2147483648\n",
            },
            Container(1.5, 2 * GIB),
            id="version 1, where the mount is the group",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "2:cpu:/a\n3:memory:/a\n0::/\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
                "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "9223372036854771712\n",
                "sys/fs/cgroup/unified/memory.max": "max\n",
            },
            Container(),
            id="both versions, without limits",
        ),
        pytest.param({"sys/fs/cgroup/memory.max/x": ""}, Container(), id="a folder for a file"),
    ],
)
def test_what_the_files_state(files: Mapping[str, str], found: Container, tmp_path: Path) -> None:
    assert read_container(written(tmp_path, files)) == found


@pytest.mark.parametrize(
    ("container", "cores", "workers"),
    [
        (Container(), 8, 7),
        (Container(), 1, 1),
        (Container(0.5), 64, 1),
        (Container(2.5), 64, 1),
        (Container(4.0), 64, 3),
        (Container(4.0), 2, 1),
        (Container(None, 6 * GIB), 64, 3),  # 4.5 GiB are 9 processes of 512 MiB
        (Container(None, GIB), 64, 1),
        (Container(None, 1), 64, 1),
    ],
)
def test_how_many_workers_there_are(container: Container, cores: int, workers: int) -> None:
    assert container.workers(cores) == workers


@given(
    cores=st.integers(1, 256),
    processors=st.none() | st.floats(0.01, 300.0),
    memory_bytes=st.integers(7 * MIN_SERVICE_BYTES // 2, 2**42),
)
def test_all_workers_together_fit_beside_the_service(
    cores: int, processors: float | None, memory_bytes: int
) -> None:
    """Of a service as well as of a process that runs jobs alone."""
    container = Container(processors, memory_bytes)
    workers = container.workers(cores)
    each = container.worker_bytes(workers)
    assert 1 <= workers <= max(1, cores - 1)
    assert MIN_WORKER_BYTES <= each <= MAX_WORKER_BYTES
    own = max(MIN_SERVICE_BYTES, memory_bytes // 4)
    for has_clients in (True, False):
        pools = service_pools(solve_workers=workers, long_workers=2, has_clients=has_clients)
        assert sum(pool.slots for pool in pools.values()) <= processes(workers)
        assert sum(pool.slots for pool in pools.values()) * each <= memory_bytes - own


def test_what_was_set_by_hand_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings_module, "this_container", lambda: Container(1.0, 4 * GIB))
    monkeypatch.setattr(settings_module, "available_cores", lambda: 64)
    assert (Settings().worker_count, Settings().worker_memory) == (1, 3 * GIB // 5)
    assert Settings(workers=9).worker_count == 9
    assert Settings(workers=9).worker_memory == MIN_WORKER_BYTES
    assert Settings(worker_memory_bytes=5 * GIB).worker_memory == 5 * GIB
    assert Settings(engine="dask").worker_memory == MAX_WORKER_BYTES
    given_0 = Settings.from_environment({"SLUICE_WORKER_MEMORY_BYTES": "0"})
    assert given_0.worker_memory_bytes == 0
