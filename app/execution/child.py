"""The processes below an engine: one that forks workers, and the two processes of each worker.

The fork server is started as `python -m app.execution.child`. What operations need is imported and
warmed up in it once, so that a worker is there within milliseconds, also where one that crashed or
was killed is replaced, and shares that memory with the others. It has one thread when it forks.
Nothing of the engine's process is inherited but the sockets and the pipe that come with a request.

    fork server         holds `requests`. Forks a guardian for each. Kills what a killed guardian
                        has left. Ends when the engine closes its side or dies, after all others.
    guardian            holds `control`. Says who it is. When the operation process ends, or the
                        engine shuts its side or dies, it kills and reaps everything below it,
                        reports how the operation process ended, and ends.
    operation process   holds `channel`. Takes tasks, sends what they report and how they end. Dies
                        with the guardian.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import NoReturn

from app.execution import operation_process, processes

RUN_OPERATION = "app.execution.operation_process:run_operation"

_RETRY_S = 0.005
_REQUEST_BYTES = 2**16
_ENDS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What the workers of a pool run, and how; travels with `control`, `channel` and a pipe.

    `runner` ("module:function") is called with a task's work and a report, and returns its
    result; `warm_up`, too, is a function, called once before the first task. `niceness` above 0
    lets everything else on the machine go first. Each worker has a `folder` of its own.
    """

    runner: str = RUN_OPERATION
    warm_up: str = ""
    niceness: int = 10
    folder: str = ""


# --- the fork server ------------------------------------------------------------------------------


def main(arguments: Sequence[str]) -> int:
    """Serve forks on the socket of this number until the engine closes its side."""
    requests = socket.socket(fileno=int(arguments[0]))
    requests.set_inheritable(False)
    processes.adopt_orphans()  # those of guardians that were killed
    wake = _woken_by(signal.SIGCHLD)
    nothing = os.open(os.devnull, os.O_WRONLY)
    guardians: set[int] = set()
    warm: dict[str, bool] = {"": True}
    while True:
        ready = wait((requests, wake))
        _taken(wake)
        _reap_guardians(guardians)
        if requests not in ready:
            continue
        packed, files, _, _ = socket.recv_fds(requests, _REQUEST_BYTES, 3)
        if not packed:
            break
        options = WorkerOptions(**json.loads(packed))
        _print_to(files[2])
        is_warm = _warm_up(options.warm_up, warm)
        try:
            pid = os.fork()
        except OSError:  # no process is left; the engine tries again
            sys.excepthook(*sys.exc_info())
        else:
            if pid == 0:
                requests.close()
                wake.close()
                _become_guardian(options, files, is_warm=is_warm)
            guardians.add(pid)
        for file in files:
            os.close(file)
        _print_to(nothing)
    while guardians or processes.children(os.getpid()):  # each sees that its side is closed, too
        _reap_guardians(guardians)
        time.sleep(_RETRY_S)
    return 0


def _warm_up(name: str, warm: dict[str, bool]) -> bool:
    """Call a warm-up that was not called before; return whether it did not fail.

    One that failed is called again in the operation process, whose end is then reported.
    """
    if name not in warm:
        try:
            operation_process.named(name)()
            warm[name] = True
        except BaseException:
            warm[name] = False
        gc.collect()
        gc.freeze()  # a collection in a worker would write to these pages, and so copy them
    return warm[name]


def _print_to(file: int) -> None:
    for number in (1, 2):
        os.dup2(file, number)


def _reap_guardians(guardians: set[int]) -> None:
    """Reap those that have ended; what is below this process besides guardians was left by one."""
    guardians.difference_update(_reaped())
    for pid in processes.children(os.getpid()):
        if pid not in guardians:
            processes.kill_tree(pid)


# --- the guardian ---------------------------------------------------------------------------------


def _become_guardian(options: WorkerOptions, files: Sequence[int], *, is_warm: bool) -> NoReturn:
    """Turn the forked process into a guardian, and fork the operation process from it."""
    code = 1
    try:
        os.setsid()
        _forget_wake_up()
        control, channel = (socket.socket(fileno=file) for file in files[:2])
        os.close(files[2])
        os.environ["TMPDIR"], tempfile.tempdir = options.folder, None
        os.chdir(options.folder)
        processes.adopt_orphans()
        guardian = os.getpid()
        pid = os.fork()
        if pid == 0:
            control.close()
            _become_operation_process(guardian, channel, options, is_warm=is_warm)
        channel.close()
        with contextlib.suppress(OSError):  # the engine may be gone
            control.send(str(guardian).encode())
        code = _guard(pid, control, options.folder)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)  # a guardian has nothing to finish, and somebody waits for it


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
        control.send(str(os.waitstatus_to_exitcode(status or 0)).encode())
    return 0


def _wait_for_end(guarded: int, control: socket.socket) -> int | None:
    """Reap orphans until the operation process has ended (its status) or has to (None)."""
    wake = _woken_by(signal.SIGCHLD, *_ENDS)
    while True:
        if (status := _reaped().get(guarded)) is not None:
            return status
        if control in wait((control, wake)) or set(_taken(wake)) & set(_ENDS):
            return None


def _reaped() -> dict[int, int]:
    """Reap the children that have ended; return their statuses."""
    ended: dict[int, int] = {}
    with contextlib.suppress(ChildProcessError):
        while (one := os.waitpid(-1, os.WNOHANG))[0] != 0:
            ended[one[0]] = one[1]
    return ended


def _taken(wake: socket.socket) -> bytes:
    """Return what has arrived at a socket that does not wait."""
    with contextlib.suppress(BlockingIOError):
        return wake.recv(_REQUEST_BYTES)
    return b""


def _woken_by(*numbers: signal.Signals) -> socket.socket:
    """Return a socket at which the numbers of these signals arrive, one byte each."""
    wake, waker = socket.socketpair()
    for end in (wake, waker):
        end.setblocking(False)
    signal.set_wakeup_fd(waker.detach(), warn_on_full_buffer=False)
    for number in numbers:
        signal.signal(number, lambda *_: None)  # the wake-up is all that is wanted
    return wake


def _forget_wake_up() -> None:
    """Undo `_woken_by` in a fork."""
    os.close(signal.set_wakeup_fd(-1))
    for number in (signal.SIGCHLD, *_ENDS):
        signal.signal(number, signal.SIG_DFL)


# --- the operation process ------------------------------------------------------------------------


def _become_operation_process(
    guardian: int, channel: socket.socket, options: WorkerOptions, *, is_warm: bool
) -> NoReturn:
    """Turn the forked process into the operation process."""
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
        warm_up = "" if is_warm else options.warm_up
        operation_process.serve(channel, runner_name=options.runner, warm_up_name=warm_up)
        code = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        os._exit(code)  # nothing of a broken interpreter is worth finishing


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
