"""Families of processes, as the operating system sees them; real ones, no stand-ins."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from app.execution import processes
from tests.app.serving import GUARD_S, wait_until
from tests.execution.support import MARKER, marked

CHECKOUT = Path(__file__).parents[2]
MIB = 2**20
# Starts two children, of which the first starts another one; then waits to be told to go on.
FAMILY = """
import subprocess, sys
child = "import subprocess, sys; subprocess.Popen(['sleep', '600']).wait()"
subprocess.Popen([sys.executable, "-c", child])
subprocess.Popen(["sleep", "600"])
print("ready", flush=True)
sys.stdin.read()
"""
# Holds pages that its child shares: together they need them once.
SHARING = f"""
import os, sys
held = bytearray(os.urandom(1)) * (48 * {MIB})
child = os.fork()
if child == 0:
    import signal
    signal.pause()
print("ready", child, flush=True)
sys.stdin.read()
"""
# Starts children as fast as it can.
GROWING = """
import subprocess
print("ready", flush=True)
for _ in range(300):
    subprocess.Popen(["sleep", "600"])
import signal
signal.pause()
"""


@contextmanager
def running(code: str, **options: Any) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """A Python process in a session of its own, and what it said first; its group ends at last."""
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=CHECKOUT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )
    with process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().split()
        finally:
            processes.kill_group(process.pid)


def alive(pids: tuple[int, ...]) -> list[int]:
    """Those that have not ended; nobody may have waited for them yet."""
    found = []
    for pid in pids:
        try:
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                found.append(pid)
        except psutil.NoSuchProcess:
            continue
    return found


@pytest.fixture(params=["list of children", "psutil"])
def by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the kernel's list, and as where there is none."""
    if request.param == "psutil":
        monkeypatch.setattr(processes, "_kernel_lists_children", lambda: False)


@pytest.mark.usefixtures("by")
class TestDescendants:
    def test_all_generations(self) -> None:
        with running(FAMILY) as (root, _):
            wait_until(lambda: len(processes.descendants(root.pid)) == 3)
            found = processes.descendants(root.pid)
            parents = [psutil.Process(pid).ppid() for pid in found]
            assert parents[:2] == [root.pid, root.pid]
            assert parents[2] in found[:2]
            assert sorted(processes.children(root.pid)) == sorted(found[:2])

    def test_of_a_process_that_has_ended(self) -> None:
        ended = subprocess.Popen(["true"])
        ended.wait(GUARD_S)
        assert processes.descendants(ended.pid) == ()
        assert processes.children(ended.pid) == ()

    def test_zombies_belong_to_it(self) -> None:
        code = "import os; os.fork() or os._exit(0); print('ready', flush=True); os.read(0, 1)"
        with running(code) as (root, _):
            wait_until(lambda: len(processes.descendants(root.pid)) == 1)
            zombie = processes.descendants(root.pid)[0]
            wait_until(lambda: psutil.Process(zombie).status() == psutil.STATUS_ZOMBIE)
            assert processes.descendants(root.pid) == (zombie,)


class TestMemory:
    def test_shared_pages(self) -> None:
        """Counted for each of the two processes, or divided between them."""
        with running(SHARING) as (root, (_, child)):
            family = (root.pid, int(child))
            assert processes.resident_bytes(family) > 96 * MIB
            assert 48 * MIB < processes.proportional_bytes(family) < 96 * MIB

    def test_where_the_system_divides_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """What each has for itself; the shared pages belong to none of them."""

        class Undivided:
            def __init__(self, pid: int) -> None:
                self._own = process(pid)

            def memory_full_info(self) -> object:
                return type("Memory", (), {"uss": self._own.memory_full_info().uss})()

        process = psutil.Process
        with running(SHARING) as (root, (_, child)):
            family = (root.pid, int(child))
            monkeypatch.setattr(psutil, "Process", Undivided)
            assert 0 < processes.proportional_bytes(family) < 48 * MIB

    def test_of_processes_that_have_ended(self) -> None:
        ended = subprocess.Popen(["true"])
        ended.wait(GUARD_S)
        assert processes.resident_bytes([ended.pid]) == 0
        assert processes.proportional_bytes([ended.pid]) == 0


class TestTheEnd:
    def test_of_a_tree(self) -> None:
        with running(FAMILY) as (root, _):
            wait_until(lambda: len(processes.descendants(root.pid)) == 3)
            family = (root.pid, *processes.descendants(root.pid))
            processes.kill_tree(root.pid)
            wait_until(lambda: not alive(family))

    def test_of_a_tree_that_grows(self) -> None:
        """None of those that were started on the way is left."""
        marker = f"{os.getpid()}-{id(processes)}"
        with running(GROWING, env={**os.environ, MARKER: marker}) as (root, _):
            wait_until(lambda: len(processes.descendants(root.pid)) > 5)
            processes.kill_tree(root.pid)
            wait_until(lambda: not alive((root.pid,)))
            wait_until(lambda: not marked(marker))

    def test_of_a_group(self) -> None:
        with running(FAMILY) as (root, _):
            wait_until(lambda: len(processes.descendants(root.pid)) == 3)
            family = (root.pid, *processes.descendants(root.pid))
            processes.kill_group(root.pid)
            wait_until(lambda: not alive(family))

    def test_of_a_leader_without_a_group(self) -> None:
        """It may not have made one yet."""
        child = subprocess.Popen(["sleep", "600"])
        processes.kill_group(child.pid)
        assert child.wait(GUARD_S) == -signal.SIGKILL

    def test_signals_to_those_that_have_ended(self) -> None:
        ended = subprocess.Popen(["true"])
        ended.wait(GUARD_S)
        processes.send_all([ended.pid])
        processes.kill_group(ended.pid)
        processes.kill_tree(ended.pid)


def test_it_dies_with_its_parent() -> None:
    """Also where the parent is killed and can tell nobody."""
    child = "from app.execution.processes import die_with_parent as d; d(); print(1, flush=True)"
    wait = "import signal; signal.pause()"
    code = (
        "import subprocess, sys\n"
        f"below = subprocess.Popen([sys.executable, '-c', {child + '; ' + wait!r}],\n"
        "    stdout=subprocess.PIPE)\n"
        "below.stdout.readline()\n"
        f"print('ready', below.pid, flush=True); {wait}"
    )
    with running(code) as (root, (_, below)):
        assert alive((int(below),))
        root.kill()
        wait_until(lambda: not alive((int(below),)))


def test_orphans_are_adopted() -> None:
    code = (
        "import subprocess, sys\n"
        "from app.execution.processes import adopt_orphans\n"
        "adopt_orphans()\n"
        "subprocess.run(['sh', '-c', 'sleep 600 & exit 0'], check=True)\n"
        "print('ready', flush=True); sys.stdin.read()"
    )
    with running(code) as (root, _):
        (orphan,) = processes.descendants(root.pid)
        assert psutil.Process(orphan).ppid() == root.pid


def test_it_goes_before_the_service() -> None:
    code = (
        "from app.execution.processes import prefer_for_oom_kill\n"
        "prefer_for_oom_kill(); print(open('/proc/self/oom_score_adj').read())"
    )
    with running(code) as (_, (score,)):
        assert int(score) == 500


def test_what_a_guardian_needs_loads_no_psutil() -> None:
    """It stays small, and starts at once."""
    code = (
        "import os, sys\n"
        "from app.execution import processes\n"
        "processes.descendants(os.getpid()); processes.send_all([])\n"
        "print('psutil' in sys.modules)"
    )
    with running(code) as (_, (loaded,)):
        assert loaded == "False"


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other libraries have no such rule")
def test_freed_memory_is_kept_for_what_is_asked_for_next() -> None:
    """Arrays that grow: by itself the library maps each of them anew, all its pages."""
    script = (
        "import resource, numpy\n"
        "from app.execution.processes import keep_freed_memory\n"
        "keep_freed_memory()\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "for more in range(100):\n"
        "    numpy.ones(2**18 + 512 * more)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 2000  # of 50 000 pages: those of three arrays
