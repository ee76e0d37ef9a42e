"""Our own exact solves, each with its certificate: the only file that knows how they are called."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from unittest.mock import patch

from bench.engines.primal import Engine, EngineRun
from solvers.contract import Deadline
from solvers.exact.lp import lines as reduced_dual
from solvers.exact.lp.lines import CountResult
from solvers.exact.structured import solve_count
from solvers.kernels import active
from solvers.kernels.native import CHOICES
from solvers.line_problem import LineProblem

TIME_LIMIT_S = 120.0
CERTIFIED = "certified"
KERNELS = "SLUICE_KERNELS"


def has_native() -> bool:
    """Whether the kernels were compiled here; without them the native side is left out."""
    return active.NATIVE is not None


def certified(lines: LineProblem, k: int, *, time_limit_s: float = TIME_LIMIT_S) -> EngineRun:
    """The production path as it is configured in this process."""
    return _run_of(solve_count(lines, k, Deadline.after(time_limit_s)))


def _by_glop(lines: LineProblem, k: int) -> EngineRun:
    return _run_of(reduced_dual.solve_count(lines, k, Deadline.after(TIME_LIMIT_S)))


def _run_of(result: CountResult) -> EngineRun:
    gap = (result.upper_us - result.lower_us) / result.upper_us
    return EngineRun(CERTIFIED, result.upper_us, gap)


OURS = Engine("sluice", certified)
NATIVE = Engine("sluice native", certified)
REDUCED_DUAL = Engine("reduced dual by GLOP", _by_glop)


@contextmanager
def numpy_engine() -> Iterator[Engine]:
    """The same without the compiled kernels, in a process that has never loaded them.

    Its times include handing over the problem and the result, some tenths of a millisecond.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        with patch.dict(os.environ, {KERNELS: CHOICES[-1]}):  # which the process reads at its start
            assert not process.submit(has_native).result()
        yield Engine("sluice numpy", partial(_in_worker, process))


def _in_worker(process: ProcessPoolExecutor, lines: LineProblem, k: int) -> EngineRun:
    return process.submit(certified, lines, k).result()
