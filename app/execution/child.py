"""The two processes of a worker: a guardian, and the operation process that it guards.

Started as `python -m app.execution.child` with a `ChildOptions`. It forks before anything is
imported that starts threads: the parent stays small and becomes the guardian, the child runs the
operations. Nothing of the engine's process is inherited but two sockets and the pipe that takes
the output.

    guardian            holds `control`. When the operation process ends, or the engine closes its
                        side or dies, it kills and reaps everything below it, reports how the
                        operation process ended, and ends.
    operation process   holds `channel`. Takes tasks, sends what they report and how they end. Dies
                        with the guardian.
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

from app.execution import processes

_RETRY_S = 0.005


@dataclass(frozen=True, slots=True)
class ChildOptions:
    """How a worker is set up; travels as command line arguments.

    `runner` and `warm_up` are "module:function"; an empty `warm_up` is none.
    """

    control_fd: int
    channel_fd: int
    folder: str
    runner: str
    warm_up: str
    niceness: int

    def arguments(self) -> list[str]:
        """Return the command line arguments that `parse` reads."""
        return [
            str(self.control_fd),
            str(self.channel_fd),
            self.folder,
            self.runner,
            self.warm_up,
            str(self.niceness),
        ]

    @classmethod
    def parse(cls, arguments: Sequence[str]) -> ChildOptions:
        """Return the options of command line arguments."""
        control, channel, folder, runner, warm_up, niceness = arguments
        return cls(int(control), int(channel), folder, runner, warm_up, int(niceness))


def main(arguments: Sequence[str]) -> int:
    """Fork into guardian and operation process. Only the guardian returns."""
    options = ChildOptions.parse(arguments)
    control = socket.socket(fileno=options.control_fd)
    channel = socket.socket(fileno=options.channel_fd)
    for end in (control, channel):
        end.set_inheritable(False)
    os.chdir(options.folder)
    processes.adopt_orphans()
    guardian = os.getpid()
    pid = os.fork()
    if pid == 0:
        control.close()
        _become_operation_process(guardian, channel, options)
    channel.close()
    return _guard(pid, control, options.folder)


# --- the guardian ---------------------------------------------------------------------------------


def _guard(guarded: int, control: socket.socket, folder: str) -> int:
    status = _wait_for_end(guarded, control)
    if status is None:
        processes.kill_group(guarded)
    while True:
        processes.send_all(processes.descendants(os.getpid()))
        try:
            pid, ended = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:  # nothing is left: orphans would be children of this process
            break
        if pid == guarded:
            status = ended
        if pid == 0:
            time.sleep(_RETRY_S)
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):  # the engine may be gone
        control.sendall(str(os.waitstatus_to_exitcode(status or 0)).encode())
    return 0


def _wait_for_end(guarded: int, control: socket.socket) -> int | None:
    """Reap orphans until the operation process has ended (its status) or has to (None)."""
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
        status = _reap(guarded)
        if status is not None:
            return status
        ready = {fd for fd, _ in poll.poll()}
        if control.fileno() in ready:
            return None
        with contextlib.suppress(BlockingIOError):
            if set(wake.recv(4096)) & set(stopping):
                return None


def _reap(guarded: int) -> int | None:
    status = None
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, ended = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == guarded:
                status = ended
    return status


# --- the operation process ------------------------------------------------------------------------


def _become_operation_process(guardian: int, channel: socket.socket, options: ChildOptions) -> None:
    """Turn the forked process into the operation process. Does not return."""
    code = 1
    try:
        processes.die_with_parent()
        if os.getppid() != guardian:
            os._exit(1)  # the guardian ended before it could be watched
        os.setsid()
        if options.niceness:
            processes.give_way(options.niceness)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        processes.prefer_for_oom_kill()
        from app.execution.operation_process import serve

        serve(channel, runner_name=options.runner, warm_up_name=options.warm_up)
        code = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        os._exit(code)  # nothing of a broken interpreter is worth finishing


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))  # a guardian has nothing to finish, and somebody waits for it
