"""Operations that behave in their own ways, most of them badly.

They run in the workers of the engines' tests. What needs no result hangs, so that only a kill can
end it.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count, repeat
from typing import Any

from app.operations.operation import Report
from domain.errors import Infeasible
from domain.problem import Problem
from domain.solution import Strategy

MIB = 2**20
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)"


@dataclass(frozen=True, slots=True)
class Behave:
    """An operation, as far as engines know them."""

    behaviour: str
    given: tuple[Any, ...] = ()

    def run(self, report: Report, /) -> object:
        """Behave."""
        return BEHAVIOURS[self.behaviour](report, *self.given)


def answers(_: Report, result: object = "answer") -> object:
    """The one that behaves."""
    return result


def ends_at_reports(report: Report) -> object:
    """Has no end, but reports often: engines without processes can end it, too."""
    for done in count():
        report.steps(done, 2**40)
        time.sleep(0.001)
    return None


def improves_then_waits(report: Report) -> object:
    """Improves a few times, and then goes on without any improvement."""
    for best in (1, 2, 3, 4):
        report.best(best)
    return ends_at_reports(report)


def reports(report: Report, number: int) -> object:
    """Takes so many steps, with a best result after the last but one."""
    for done in range(number):
        report.steps(done, number)
    report.best(number)
    report.steps(number, number)
    return number


def reports_in_threads(report: Report, number: int) -> object:
    """The same from several threads of it at a time."""
    threads = [
        threading.Thread(target=lambda: [report.best(best) for best in range(number)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return number


def measures(_: Report, content: bytes) -> object:
    """How long it is."""
    return len(content)


def fills(_: Report, length: int) -> object:
    """A long result."""
    return b"x" * length


def reads_files(report: Report) -> object:
    """What its files hold."""
    return [os.pread(file, 100, 0) for file in report.files]


def refuses(_: Report) -> object:
    """An error of the tree, which has to arrive as it is."""
    raise Infeasible("no fragmentation", field="constraints")


def raises(_: Report) -> object:
    """A defect in Python."""
    raise ZeroDivisionError("the user must not see this")


def waits(_: Report, time_s: float) -> object:
    """Takes a time."""
    time.sleep(time_s)
    return "waited"


def appends(_: Report, path: str) -> object:
    """Notes that it was run."""
    with open(path, "a") as file:
        file.write("x")
    return "noted"


def unpicklable(_: Report) -> object:
    """A result that cannot be sent."""
    return threading.Lock()


# --- hangs ----------------------------------------------------------------------------------------


def sleeps(_: Report) -> object:
    """Ignores every signal that can be ignored."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if number < signal.SIGRTMIN:
            signal.signal(number, signal.SIG_IGN)
    time.sleep(1000)
    return None


def spins(_: Report) -> object:
    """An endless call in C that never lets go of the interpreter's lock."""
    deque(repeat(None), maxlen=0)
    return None


def stubborn_grandchild(report: Report) -> object:
    """Starts processes that leave its group, its session and its environment, and hangs."""
    leave_stubborn_process()
    return sleeps(report)


def forks(report: Report) -> object:
    """Forks copies of itself that fork further, each its own session, and hangs."""
    for _ in range(3):
        if os.fork() == 0:
            os.setsid()
    return sleeps(report)


def stops(_: Report) -> object:
    """Stops itself, so that it does not even run."""
    os.kill(os.getpid(), signal.SIGSTOP)
    return None


def leave_stubborn_process() -> None:
    """An orphan in its own session, with an empty environment, that ignores SIGTERM."""
    marker = os.environ.get("ENGINE_TEST_MARKER", "")
    if os.fork() == 0:
        subprocess.Popen(
            [sys.executable, "-S", "-c", STUBBORN, marker], env={}, start_new_session=True
        )
        os._exit(0)
    os.wait()


def improves_then_spins(report: Report) -> object:
    """Improves a few times, then never lets anything of it run again."""
    for best in (1, 2, 3, 4):
        report.best(best)
    report.steps(4, 9)
    return spins(report)


def large_best_then_sleeps(report: Report, length: int) -> object:
    """A best result that fills the channel many times over."""
    report.best(b"x" * length)
    return sleeps(report)


# --- memory ---------------------------------------------------------------------------------------


def balloons_at_once(_: Report) -> object:
    """Asks for 16 GB in one piece."""
    return len(bytearray(16 * 1024 * MIB))


def balloons_slowly(_: Report) -> object:
    """Fills 16 GB piece by piece."""
    return len([b"x" * (16 * MIB) + bytes([number % 256]) for number in range(1024)])


def balloons_in_grandchildren(report: Report) -> object:
    """Starts processes that fill what no limit of one process forbids."""
    for _ in range(8):
        if os.fork() == 0:
            os.setsid()
            filled = b"x" * (160 * MIB)
            time.sleep(1000 + len(filled))
    return sleeps(report)


def balloons_shared(report: Report) -> object:
    """Fills shared memory, which limits on a process's own data do not count."""
    shared = mmap.mmap(-1, 16 * 1024 * MIB)
    for start in range(0, len(shared), 16 * MIB):
        shared[start : start + 16 * MIB] = b"x" * (16 * MIB)
    return sleeps(report)


def improves_then_balloons(report: Report) -> object:
    """Knows a result before it runs out of memory."""
    report.best(2)
    return balloons_at_once(report)


def shares_with_forks(_: Report, length: int, number: int) -> object:
    """Holds memory that its children share: together they need it once."""
    held = b"x" * length
    children = []
    for _each in range(number):
        pid = os.fork()
        if pid == 0:
            time.sleep(1000)
        children.append(pid)
    time.sleep(0.3)  # so that the engine looks at it
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return len(held)


def fills_and_frees(_: Report, length: int) -> object:
    """Needs memory for a moment."""
    return "freed" if len(bytearray(b"x") * length) == length else "not filled"


def keeps(_: Report, length: int) -> object:
    """Keeps memory after its end."""
    _KEPT.append(bytearray(b"x") * length)
    return os.getpid()


_KEPT: list[bytearray] = []


# --- crashes --------------------------------------------------------------------------------------


def exits(_: Report) -> object:
    """Ends without a word."""
    os._exit(3)


def aborts(_: Report) -> object:
    """What a failed check in C++ does."""
    os.abort()


def segfaults(_: Report) -> object:
    """Reads where nothing is."""
    return ctypes.string_at(0)


def kills_itself(_: Report) -> object:
    """As the system does where memory runs out."""
    os.kill(os.getpid(), signal.SIGKILL)
    return None


def improves_then_crashes(report: Report) -> object:
    """Knows a result before it crashes."""
    report.best(3)
    os.abort()


def says_bad_alloc(_: Report) -> object:
    """What a library in C++ does that is refused memory."""
    os.write(2, b"terminate called after throwing an instance of 'std::bad_alloc'\n")
    os.abort()


def closes_descriptors(_: Report) -> object:
    """Closes whatever is open."""
    os.closerange(0, 4096)
    return "closed"


def scribbles(_: Report) -> object:
    """Writes into every descriptor that it finds."""
    for descriptor in range(3, 4096):
        try:
            os.write(descriptor, b"\xff" * 64)
        except OSError:
            continue
    return sleeps(_)


# --- what is left behind, and what is seen --------------------------------------------------------


def leaves_process(_: Report) -> object:
    """Leaves a process behind."""
    leave_stubborn_process()
    return "left"


def leaves_threads(report: Report) -> object:
    """Threads of it go on, one of them reporting."""

    def report_on() -> None:
        for _ in range(200):
            report.best("late")
            report.steps(1, 1)
            time.sleep(0.001)

    threading.Thread(target=report_on).start()
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    return "left"


def prints(_: Report) -> object:
    """Prints more than any pipe holds, through every layer."""
    for _line in range(2000):
        print("solving " * 100)
    sys.stdout.flush()
    os.write(1, b"x" * 100_000)
    os.write(2, b"x" * 100_000)
    return "printed"


def sees(_: Report) -> object:
    """Which files it has open, which settings it sees, and how it may behave."""
    folder = "/proc/self/fd"
    files = []
    for name in os.listdir(folder):
        try:
            files.append(os.readlink(f"{folder}/{name}"))
        except OSError:  # the listing itself
            continue
    return {
        "files": files,
        "environment": dict(os.environ),
        "niceness": os.nice(0),
        "core": resource.getrlimit(resource.RLIMIT_CORE),
    }


def process_id(_: Report) -> object:
    """Its process id."""
    return os.getpid()


def solves(report: Report, problem: Problem, relative_gap: float, time_limit_s: float) -> object:
    """What operations do: the real solvers, deep in native code."""
    import solvers

    return solvers.solve(
        problem,
        Strategy.AUTO,
        relative_gap=relative_gap,
        time_limit_s=time_limit_s,
        on_incumbent=report.best,
    )


def warm_up() -> None:
    """Note that it was called, where tests want to know."""
    path = os.environ.get("ENGINE_TEST_WARM_UPS")
    if path:
        with open(path, "a") as file:
            file.write("w")


def cannot_warm_up() -> None:
    """What a broken installation does."""
    raise ImportError("no solvers here")


def ends_in_warm_up() -> None:
    """What a library does that is not made for this processor."""
    os._exit(3)


def hangs_in_warm_up() -> None:
    """What waits for something that never comes."""
    time.sleep(1000.0)


BEHAVIOURS: dict[str, Callable[..., object]] = {
    behaviour.__name__: behaviour
    for behaviour in (
        answers,
        ends_at_reports,
        improves_then_waits,
        reports,
        reports_in_threads,
        measures,
        fills,
        reads_files,
        waits,
        appends,
        fills_and_frees,
        refuses,
        raises,
        unpicklable,
        sleeps,
        spins,
        stubborn_grandchild,
        forks,
        stops,
        improves_then_spins,
        large_best_then_sleeps,
        balloons_at_once,
        balloons_slowly,
        balloons_in_grandchildren,
        balloons_shared,
        improves_then_balloons,
        shares_with_forks,
        keeps,
        exits,
        aborts,
        segfaults,
        kills_itself,
        improves_then_crashes,
        says_bad_alloc,
        closes_descriptors,
        scribbles,
        leaves_process,
        leaves_threads,
        prints,
        sees,
        process_id,
        solves,
    )
}
