"""Families of processes: who belongs to one, the memory that it uses, and how to end it.

psutil answers what is asked seldom, on every system that it knows. What a watcher asks forty times
a second stays by hand: psutil looks at every process of the machine to find one's children (3.3 ms
among 86 processes, against 0.16 ms for the kernel's own list of children). psutil is imported where
it is used: a guardian, which needs only the list, stays 4 MiB smaller and starts sooner.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from functools import cache

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_OOM_SCORE = 500  # of at most 1000
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of malloc.h
_KEPT_BYTES = 2**24  # of what was freed, a thread

_TRIES, _PAUSE_S = 20, 0.05
_KILL_ROUNDS = 200
_SETTINGS = "SLUICE_"
_FOR_CHILDREN = ("SLUICE_KERNELS",)  # which the solvers read wherever they run


# --- of this process, and of those that it starts -------------------------------------------------


def environment_for_children() -> dict[str, str]:
    """Return the environment without the service's settings, among them the database's password."""
    return {
        name: text
        for name, text in os.environ.items()
        if name in _FOR_CHILDREN or not name.startswith(_SETTINGS)
    }


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, so that none is ever lost."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Have the kernel kill this process when the thread that started it ends."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def prefer_for_oom_kill() -> None:
    """Have the kernel end this process before the service where the machine runs out of memory."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write(str(_OOM_SCORE))


def keep_freed_memory() -> None:
    """Have the C library keep memory that was freed for what is asked for next.

    It gives arrays of a megabyte back to the system at once, and each page of the next one is then
    a fault: together they can take as long as the solve. Other libraries have no such rule.
    """
    with contextlib.suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES // 2)


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


def _prctl(option: int, value: int) -> None:
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    rest = (ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))
    if libc.prctl(ctypes.c_int(option), *rest) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


# --- who belongs to a family ----------------------------------------------------------------------


def descendants(root: int) -> tuple[int, ...]:
    """Return every process below this one, nearest first, zombies included; none where it ended."""
    found: dict[int, None] = {}
    level = [root]
    while level:
        level = [pid for parent in level for pid in children(parent) if pid not in found]
        found.update(dict.fromkeys(level))
    return tuple(found)


def children(parent: int) -> tuple[int, ...]:
    """Return the processes right below this one, zombies included; none where it ended."""
    if _kernel_lists_children():
        return tuple(_listed_children(parent))
    import psutil

    try:
        return tuple(child.pid for child in psutil.Process(parent).children())
    except psutil.NoSuchProcess:
        return ()


@cache
def _kernel_lists_children() -> bool:
    return os.path.exists("/proc/thread-self/children")


def _listed_children(pid: int) -> Iterator[int]:
    # Each thread has its own list.
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with (
                contextlib.suppress(OSError),
                open(f"/proc/{pid}/task/{thread}/children", "rb", buffering=0) as file,
            ):
                yield from map(int, file.read().split())


# --- its memory -----------------------------------------------------------------------------------


def resident_bytes(pids: Iterable[int]) -> int:
    """Return the memory in use by these processes; what several share counts once for each."""
    import psutil

    total = 0
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            total += psutil.Process(pid).memory_info().rss
    return total


def proportional_bytes(pids: Iterable[int]) -> int:
    """Return the same with shared pages divided among those that share them: exact, and slow.

    Where the system does not divide them (PSS), what each process has for itself (USS).
    """
    import psutil

    total = 0
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            memory = psutil.Process(pid).memory_full_info()
            total += getattr(memory, "pss", memory.uss)
    return total


# --- its end --------------------------------------------------------------------------------------


def send_all(pids: Iterable[int], number: signal.Signals = signal.SIGKILL) -> None:
    """Send a signal to each; those that have ended meanwhile do not matter."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def kill_group(leader: int) -> None:
    """Kill the process group of this leader, and the leader also where it has no group yet."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    send_all([leader])


def kill_tree(root: int) -> None:
    """Kill this process and everything below it, also what is started meanwhile.

    From the root downwards, because a process whose parent has ended is below it no more; those
    are found all the same where an ancestor of theirs adopts orphans and is killed with it. The
    children of the caller stay as zombies until it waits for them.
    """
    family = dict.fromkeys((root, *descendants(root)))
    send_all(family, signal.SIGSTOP)  # nobody starts another one while they are counted
    for _ in range(_KILL_ROUNDS):
        grown = [pid for parent in tuple(family) for pid in descendants(parent)]
        fresh = [pid for pid in grown if pid not in family]
        if not fresh:
            break
        send_all(fresh, signal.SIGSTOP)
        family.update(dict.fromkeys(fresh))
    send_all(family)
