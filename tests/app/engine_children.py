"""Solvers that behave badly, each in its own way. The name of the first stage says which one.

Run in the workers of the engine's tests, in place of `solvers.solve`. What needs no answer hangs,
so that only a kill can end it.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import repeat

from domain.errors import Infeasible
from domain.problem import Problem
from domain.schedule import Schedule, latency_us
from domain.solution import Notice, Solution, Status, Strategy

Report = Callable[[Solution], None]

MIB = 2**20
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)"


def solve(
    problem: Problem,
    strategy: Strategy,
    *,
    relative_gap: float,
    time_limit_s: float,
    static_bytes: int | None,
    on_incumbent: Report,
) -> Solution:
    """Behave as the first stage is named."""
    behaviour = BEHAVIOURS[problem.pipeline.stages[0].name]
    return behaviour(problem, on_incumbent)


def solution_of(problem: Problem, fragments: int, *notices: Notice) -> Solution:
    """A valid answer with this many fragments, the rest of the bytes in the first one."""
    each = problem.message_bytes // fragments
    sizes = (problem.message_bytes - each * (fragments - 1), *repeat(each, fragments - 1))
    return Solution(
        problem=problem,
        strategy=Strategy.EXACT,
        schedule=Schedule(sizes),
        latency_us=latency_us(problem.pipeline, sizes),
        lower_bound_us=0.0,
        status=Status.PROVEN_GAP,
        notices=notices,
    )


def quick(problem: Problem, _: Report) -> Solution:
    """The only one that behaves."""
    return solution_of(problem, 1)


# ---- hangs --------------------------------------------------------------------------------------


def sleep(problem: Problem, _: Report) -> Solution:
    """Sleeps, and ignores every signal that can be ignored."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if number < signal.SIGRTMIN:
            signal.signal(number, signal.SIG_IGN)
    time.sleep(1000)
    return solution_of(problem, 1)


def spin(problem: Problem, _: Report) -> Solution:
    """An endless loop in C that never lets go of the interpreter's lock."""
    deque(repeat(None), maxlen=0)
    return solution_of(problem, 1)


def stubborn_grandchild(problem: Problem, report: Report) -> Solution:
    """Starts processes that leave its group, its session and its environment, and hangs."""
    leave_stubborn_process()
    return sleep(problem, report)


def forks(problem: Problem, report: Report) -> Solution:
    """Forks copies of itself that fork further, each its own session, and hangs."""
    for _ in range(3):
        if os.fork() == 0:
            os.setsid()
    return sleep(problem, report)


def stopped(problem: Problem, _: Report) -> Solution:
    """Stops itself, so that it does not even run."""
    os.kill(os.getpid(), signal.SIGSTOP)
    return solution_of(problem, 1)


def leave_stubborn_process() -> None:
    """An orphan in its own session, with an empty environment, that ignores SIGTERM."""
    marker = os.environ.get("ENGINE_TEST_MARKER", "")
    if os.fork() == 0:
        subprocess.Popen(
            [sys.executable, "-S", "-c", STUBBORN, marker], env={}, start_new_session=True
        )
        os._exit(0)
    os.wait()


# ---- memory -------------------------------------------------------------------------------------


def balloon_at_once(problem: Problem, _: Report) -> Solution:
    """Asks for 16 GB in one piece."""
    return solution_of(problem, len(bytearray(16 * 1024 * MIB)))


def balloon_slowly(problem: Problem, _: Report) -> Solution:
    """Fills 16 GB piece by piece."""
    pieces = [b"x" * (16 * MIB) + bytes([number % 256]) for number in range(1024)]
    return solution_of(problem, len(pieces))


def balloon_in_grandchild(problem: Problem, report: Report) -> Solution:
    """Starts a process that fills 16 GB in pieces that no limit of one process forbids."""
    for _ in range(8):
        if os.fork() == 0:
            os.setsid()
            filled = b"x" * (160 * MIB)
            time.sleep(1000 + len(filled))
    return sleep(problem, report)


def balloon_shared(problem: Problem, report: Report) -> Solution:
    """Fills shared memory, which limits on a process's own data do not count."""
    shared = mmap.mmap(-1, 16 * 1024 * MIB)
    for start in range(0, len(shared), 16 * MIB):
        shared[start : start + 16 * MIB] = b"x" * (16 * MIB)
    return sleep(problem, report)


def incumbent_then_balloon(problem: Problem, report: Report) -> Solution:
    """Knows an answer before it runs out of memory."""
    report(solution_of(problem, 2))
    return balloon_at_once(problem, report)


# ---- crashes ------------------------------------------------------------------------------------


def exits(_: Problem, __: Report) -> Solution:
    """Ends without a word."""
    os._exit(3)


def aborts(_: Problem, __: Report) -> Solution:
    """What a failed check in C++ does."""
    os.abort()


def segfaults(problem: Problem, _: Report) -> Solution:
    """Reads where nothing is."""
    ctypes.string_at(0)
    return solution_of(problem, 1)


def incumbent_then_crash(problem: Problem, report: Report) -> Solution:
    """Knows an answer before it crashes."""
    report(solution_of(problem, 3))
    os.abort()


def raises(_: Problem, __: Report) -> Solution:
    """A defect in Python."""
    raise ZeroDivisionError("the user must not see this")


def infeasible(_: Problem, __: Report) -> Solution:
    """An error of the tree, which has to arrive as it is."""
    raise Infeasible("no cut", field="constraints")


# ---- the rest -----------------------------------------------------------------------------------


def incumbents_then_spin(problem: Problem, report: Report) -> Solution:
    """Improves a few times, then never lets anything of it run again."""
    for fragments in (1, 2, 3, 4):
        report(solution_of(problem, fragments))
    return spin(problem, report)


def large_incumbent_then_sleep(problem: Problem, report: Report) -> Solution:
    """An answer that fills the channel many times over."""
    report(solution_of(problem, problem.message_bytes))
    return sleep(problem, report)


def leaves_process(problem: Problem, _: Report) -> Solution:
    """Answers, and leaves a process behind."""
    leave_stubborn_process()
    return solution_of(problem, 1)


def late_incumbents(problem: Problem, report: Report) -> Solution:
    """Answers, while a thread of it still reports."""

    def report_on() -> None:
        for _ in range(200):
            report(solution_of(problem, 5))
            time.sleep(0.001)

    threading.Thread(target=report_on).start()
    return solution_of(problem, 1)


def chatters(problem: Problem, _: Report) -> Solution:
    """Prints more than any pipe holds."""
    for _line in range(2000):
        print("solving " * 100)
    sys.stdout.flush()
    return solution_of(problem, 1)


def open_files(problem: Problem, _: Report) -> Solution:
    """Tells which files it has open, and what of the server's settings it sees."""
    folder = "/proc/self/fd"
    found = []
    for name in os.listdir(folder):
        try:
            found.append(os.readlink(f"{folder}/{name}"))
        except OSError:  # the listing itself
            continue
    settings = [name for name in os.environ if name.startswith("SLUICE_")]
    return solution_of(
        problem, 1, Notice("files", "\n".join(found)), Notice("settings", " ".join(settings))
    )


def process_id(problem: Problem, _: Report) -> Solution:
    """Tells its process id."""
    return solution_of(problem, 1, Notice("pid", str(os.getpid())))


BEHAVIOURS: dict[str, Callable[[Problem, Report], Solution]] = {
    behaviour.__name__: behaviour
    for behaviour in (
        quick,
        sleep,
        spin,
        stubborn_grandchild,
        forks,
        stopped,
        balloon_at_once,
        balloon_slowly,
        balloon_in_grandchild,
        balloon_shared,
        incumbent_then_balloon,
        exits,
        aborts,
        segfaults,
        incumbent_then_crash,
        raises,
        infeasible,
        incumbents_then_spin,
        large_incumbent_then_sleep,
        leaves_process,
        late_incumbents,
        chatters,
        open_files,
        process_id,
    )
}
