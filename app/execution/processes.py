"""What the operating system knows about a family of processes, and how to end one.

Linux keeps all of it in /proc. Where there is none, a family is unknown (empty), and what is left
are process groups and the end of the pipe that the guardian watches.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

_TRIES, _PAUSE_S = 20, 0.05
_SETTINGS = "SLUICE_"
_FOR_CHILDREN = ("SLUICE_KERNELS",)  # which the solvers read wherever they run


def environment_for_children() -> dict[str, str]:
    """The environment without the server's settings: the database's address may hold a password."""
    return {
        name: text
        for name, text in os.environ.items()
        if name in _FOR_CHILDREN or not name.startswith(_SETTINGS)
    }


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, so that none is ever lost."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def give_way(niceness: int) -> None:
    """Have this process, the leader of its session, yield the processor to everything else.

    Where the kernel schedules sessions against each other (sched(7), autogroups), a process's own
    niceness counts inside its session alone: to be of use, the session has to be given it.
    """
    os.nice(niceness)
    for _ in range(_TRIES):
        try:
            with open("/proc/self/autogroup", "w") as file:
                file.write(str(niceness))
            return
        except BlockingIOError:  # who is not root may do it ten times a second on this machine
            time.sleep(_PAUSE_S)
        except OSError:
            return  # no such file, or not to be written: there are no autogroups


def die_with_parent() -> None:
    """Have the kernel kill this process when the thread that started it ends."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _prctl(option: int, value: int) -> None:
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    rest = (ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))
    if libc.prctl(ctypes.c_int(option), *rest) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def descendants(root: int) -> tuple[int, ...]:
    """Every process below this one, nearest first, zombies included."""
    parents = None if _kernel_lists_children() else _parents()
    found: dict[int, None] = {}
    level = [root]
    while level:
        below = (_children(pid) if parents is None else parents.get(pid, ()) for pid in level)
        level = [pid for pids in below for pid in pids if pid not in found]
        found.update(dict.fromkeys(level))
    return tuple(found)


def with_environment(entry: str) -> tuple[int, ...]:
    """Every process that was started with this entry ("NAME=value") in its environment."""
    wanted = entry.encode()
    try:
        names = list(filter(str.isdigit, os.listdir("/proc")))
    except OSError:
        return ()
    return tuple(
        int(name) for name in names if wanted in _read(f"/proc/{name}/environ").split(b"\0")
    )


def resident_bytes(pids: Iterable[int]) -> int:
    """Memory in use by these processes; pages that several share count once for each."""
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    fields = (_read(f"/proc/{pid}/statm").split() for pid in pids)
    return page_bytes * sum(int(field[1]) for field in fields if len(field) > 1)


def proportional_bytes(pids: Iterable[int]) -> int:
    """The same with shared pages divided among those that share them: exact, and slow to ask."""
    total = 0
    for pid in pids:
        for line in _read(f"/proc/{pid}/smaps_rollup").splitlines():
            if line.startswith(b"Pss:"):
                total += int(line.split()[1]) * 1024
    return total


def send_all(pids: Iterable[int], number: signal.Signals = signal.SIGKILL) -> None:
    """Send a signal to each; those that have ended meanwhile do not matter."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _kernel_lists_children() -> bool:
    pid = os.getpid()
    return os.path.exists(f"/proc/{pid}/task/{pid}/children")


def _children(pid: int) -> Iterator[int]:
    # Each thread has its own list.
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            yield from map(int, _read(f"/proc/{pid}/task/{thread}/children").split())


def _parents() -> dict[int, list[int]]:
    """The children of every process, for kernels that do not list them."""
    children: dict[int, list[int]] = {}
    with contextlib.suppress(OSError):
        for name in filter(str.isdigit, os.listdir("/proc")):
            # "pid (command) state parent ...": the command may hold anything, even parentheses.
            fields = _read(f"/proc/{name}/stat").rpartition(b")")[2].split()
            if len(fields) > 1:
                children.setdefault(int(fields[1]), []).append(int(name))
    return children


def _read(path: str) -> bytes:
    """The file's bytes; empty where the process has ended or is not ours to read."""
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read()
    except OSError:
        return b""
