"""What a container may use: its control groups' limits on processors and memory, and what follows.

The files are those of the Linux kernel: Documentation/admin-guide/cgroup-v2.rst (`cpu.max`,
`memory.max`), and for version 1 `cpu.cfs_quota_us` and `memory.limit_in_bytes`. A group has no more
than the groups around it: the smallest limit holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

MIB = 2**20
MAX_WORKER_BYTES = 2048 * MIB  # what a worker is given where no container is smaller
LONG_WORKERS = 2  # where nothing else is set
MIN_WORKER_BYTES = 256 * MIB
WANTED_WORKER_BYTES = 512 * MIB  # there are rather fewer workers than smaller ones
SERVICE_SHARE = 4  # the service itself has one part of so many of a container's memory,
MIN_SERVICE_BYTES = 512 * MIB  # or this: itself, bodies, tables, and traces in /tmp
_NO_LIMIT_BYTES = 2**60  # version 1 says a number near 2^63 where there is none
_V2 = ("", "unified")  # where version 2 is mounted: alone, or beside version 1
_V1_PROCESSORS, _V1_MEMORY = ("cpu", "cpu,cpuacct", "cpuacct,cpu"), ("memory",)


@dataclass(frozen=True, slots=True)
class Container:
    """The limits: processors as a number that may have a fraction, bytes; None for no limit."""

    processors: float | None = None
    memory_bytes: int | None = None

    @property
    def workers_bytes(self) -> int | None:
        """What all workers together may take; the rest is the service's own."""
        if self.memory_bytes is None:
            return None
        own = max(MIN_SERVICE_BYTES, self.memory_bytes // SERVICE_SHARE)
        return max(0, self.memory_bytes - own)

    def workers(self, cores: int, worker_bytes: int = 0, long_workers: int = LONG_WORKERS) -> int:
        """Return how many workers solve by default: one fewer than the cores, at least one.

        `cores` are those that the process may run on, `worker_bytes` what was set for each worker,
        0 for nothing. There are no more than have room.
        """
        if self.processors is not None:
            cores = min(cores, int(self.processors))
        count = max(1, cores - 1)
        room = self.workers_bytes
        if room is None:
            return count
        each = worker_bytes or WANTED_WORKER_BYTES
        fitting = (processes(one, long_workers) * each <= room for one in range(1, count + 1))
        return max(1, sum(fitting))

    def worker_bytes(self, workers: int, long_workers: int = LONG_WORKERS) -> int:
        """Return what each process has by default where so many workers solve.

        All of them together have no more than `workers_bytes`, unless each would have less than
        MIN_WORKER_BYTES, in which no solver fits.
        """
        room = self.workers_bytes
        if room is None:
            return MAX_WORKER_BYTES
        share = room // processes(workers, long_workers)
        return min(MAX_WORKER_BYTES, max(MIN_WORKER_BYTES, share))


def processes(workers: int, long_workers: int = LONG_WORKERS) -> int:
    """Return the most worker processes at a time: those that solve, read files, do long work.

    A service has two that read; a process that only runs jobs has as many for long work as for
    solving.
    """
    return workers + 2 + max(long_workers, workers)


@cache
def this_container() -> Container:
    """Return the limits of this process, as they were when they were asked for first."""
    return read_container()


def read_container(root: Path = Path("/")) -> Container:
    """Return the limits that the files below `root` state; what is not there limits nothing."""
    mounted = root / "sys/fs/cgroup"
    groups = groups_of(_text(root / "proc/self/cgroup"))
    unified = [mounted / place for place in _V2]
    quotas = [
        quota_of(_text(folder / "cpu.max")) for folder in _folders(unified, groups.get("", "/"))
    ]
    quotas += [
        quota_of(f"{_text(folder / 'cpu.cfs_quota_us')} {_text(folder / 'cpu.cfs_period_us')}")
        for folder in _folders([mounted / one for one in _V1_PROCESSORS], groups.get("cpu", "/"))
    ]
    limits = [
        bytes_of(_text(folder / "memory.max")) for folder in _folders(unified, groups.get("", "/"))
    ]
    limits += [
        bytes_of(_text(folder / "memory.limit_in_bytes"))
        for folder in _folders([mounted / one for one in _V1_MEMORY], groups.get("memory", "/"))
    ]
    return Container(
        min((one for one in quotas if one is not None), default=None),
        min((one for one in limits if one is not None), default=None),
    )


def groups_of(text: str) -> dict[str, str]:
    """Return the group of each controller from /proc/self/cgroup; "" is version 2.

    Lines are `number:controllers:path` (cgroups(7)).
    """
    found: dict[str, str] = {}
    for line in text.splitlines():
        parts = line.split(":", 2)
        if len(parts) == 3:
            for controller in parts[1].split(","):
                found[controller] = parts[2]
    return found


def quota_of(text: str) -> float | None:
    """Return the processors of `quota period` in µs: `max 100000`, `50000 100000`, `-1 100000`."""
    words = text.split()
    with suppress(ValueError, ZeroDivisionError, OverflowError):
        if len(words) == 2 and int(words[0]) > 0 and int(words[1]) > 0:
            return int(words[0]) / int(words[1])
    return None


def bytes_of(text: str) -> int | None:
    """Return a limit in bytes; None for `max`, and for the number that means none."""
    word = text.strip()
    with suppress(ValueError):  # of more digits than Python reads
        if word.isascii() and word.isdigit() and 0 < int(word) < _NO_LIMIT_BYTES:
            return int(word)
    return None


def _folders(mounts: Sequence[Path], group: str) -> Iterator[Path]:
    """Yield the folders of a group and of all around it, up to the mounts themselves.

    In a container the mount may be the group already, whose path is then that of the machine: what
    is not there is passed over.
    """
    parts = [part for part in PurePosixPath(group).parts if part not in ("/", "..")]
    for mount in mounts:
        for length in range(len(parts), -1, -1):
            yield mount.joinpath(*parts[:length])


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""
