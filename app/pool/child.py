"""The two processes of a worker: a guardian, and the solver that it guards.

Started as `python -m app.pool.child` with the numbers of two sockets. It forks before anything is
imported that starts threads: the parent stays small and becomes the guardian, the child the solver.
Nothing of the server is inherited but the two sockets and the pipe that takes the output.

    guardian  holds `control`. When the solver ends, or the server closes its side or dies, it
              kills and reaps everything below it, reports how the solver ended, and ends.
    solver    holds `channel`. Takes tasks, sends incumbents and answers. Dies with the guardian.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import shutil
import signal
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from app.pool import processes

NICENESS = 10  # look-ups and routes go first
_OOM_SCORE = 500  # where the machine runs out of memory, it is the solver that goes
_RETRY_S = 0.005


@dataclass(frozen=True, slots=True)
class ChildOptions:
    """How a worker is set up; travels as command line arguments."""

    control_fd: int
    channel_fd: int
    memory_bytes: int
    folder: str
    runner: str

    def arguments(self) -> list[str]:
        """As command line arguments."""
        return [
            str(self.control_fd),
            str(self.channel_fd),
            str(self.memory_bytes),
            self.folder,
            self.runner,
        ]

    @classmethod
    def parse(cls, arguments: Sequence[str]) -> ChildOptions:
        """From command line arguments."""
        control, channel, memory, folder, runner = arguments
        return cls(int(control), int(channel), int(memory), folder, runner)


def main(arguments: Sequence[str]) -> int:
    """Fork into guardian and solver. Only the guardian returns."""
    options = ChildOptions.parse(arguments)
    control = socket.socket(fileno=options.control_fd)
    channel = socket.socket(fileno=options.channel_fd)
    for end in (control, channel):
        end.set_inheritable(False)
    os.chdir(options.folder)
    processes.adopt_orphans()
    guardian = os.getpid()
    solver = os.fork()
    if solver == 0:
        control.close()
        _become_solver(guardian, channel, options)
    channel.close()
    return _guard(solver, control, options.folder)


# ---- the guardian -------------------------------------------------------------------------------


def _guard(solver: int, control: socket.socket, folder: str) -> int:
    status = _wait_for_end(solver, control)
    if status is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(solver, signal.SIGKILL)
        processes.send_all([solver])  # it may not have made its group yet
    while True:
        processes.send_all(processes.descendants(os.getpid()))
        try:
            pid, ended = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:  # nothing is left: orphans would be children of this process
            break
        if pid == solver:
            status = ended
        if pid == 0:
            time.sleep(_RETRY_S)
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):  # the server may be gone
        control.sendall(str(os.waitstatus_to_exitcode(status or 0)).encode())
    return 0


def _wait_for_end(solver: int, control: socket.socket) -> int | None:
    """Reap orphans until the solver has ended (its status) or the server wants it to (None)."""
    wake, waker = socket.socketpair()
    for end in (wake, waker):
        end.setblocking(False)
    signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
    stopping = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    for number in (signal.SIGCHLD, *stopping):
        signal.signal(number, lambda *_: None)  # the wake-up is all that is wanted
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(wake, select.POLLIN)
    while True:
        status = _reap(solver)
        if status is not None:
            return status
        ready = {fd for fd, _ in poll.poll()}
        if control.fileno() in ready:
            return None
        with contextlib.suppress(BlockingIOError):
            if set(wake.recv(4096)) & set(stopping):
                return None


def _reap(solver: int) -> int | None:
    status = None
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, ended = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == solver:
                status = ended
    return status


# ---- the solver ---------------------------------------------------------------------------------


def _become_solver(guardian: int, channel: socket.socket, options: ChildOptions) -> None:
    """Turn the forked process into the solver. Does not return."""
    code = 1
    try:
        processes.die_with_parent()
        if os.getppid() != guardian:
            os._exit(1)  # the guardian ended before it could be watched
        os.setsid()
        processes.give_way(NICENESS)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
            file.write(str(_OOM_SCORE))
        from app.pool.solver import serve

        serve(channel, options.runner, options.memory_bytes)
        code = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stderr.flush()
        os._exit(code)  # nothing of a broken interpreter is worth finishing


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
