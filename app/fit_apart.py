"""Fits a long trace in a process of its own, with a memory cap and a time limit.

Run as `python -m app.fit_apart <kind or nothing> <memory bytes> <plot or nothing>` it reads the
trace from its input and writes the fit, or the error, to its output.
"""

from __future__ import annotations

import pickle
import resource
import subprocess
import sys
from typing import cast

from app.flows.fit_trace import FittedTrace, fit_bytes
from app.pool.processes import die_with_parent
from app.settings import CHECKOUT
from domain.errors import MemoryLimitReached, SluiceError, SolverFailed, TimeLimitReached
from domain.fit import TraceFit
from domain.fit_plot import FitPlot

TIME_LIMIT_S = 120.0


def fit_apart(
    content: bytes, *, kind: str | None, memory_bytes: int, wants_plot: bool = False
) -> FittedTrace:
    """Fit in a child process; blocks. Raises as `fit_bytes` does, and LimitReached."""
    command = [sys.executable, "-m", "app.fit_apart", kind or "", str(memory_bytes)]
    command.append("plot" if wants_plot else "")
    try:
        child = subprocess.run(
            command,
            input=content,
            stdout=subprocess.PIPE,
            timeout=TIME_LIMIT_S,
            check=False,
            cwd=CHECKOUT,
        )
    except subprocess.TimeoutExpired:
        raise TimeLimitReached(f"the fit took longer than {TIME_LIMIT_S:g} s") from None
    if child.returncode != 0:
        raise SolverFailed("the process that fitted the trace ended unexpectedly")
    # Our own child wrote these bytes, so they may be unpickled.
    outcome = pickle.loads(child.stdout)
    if isinstance(outcome, SluiceError):
        raise outcome
    fit, plot = cast(tuple[TraceFit, FitPlot | None], outcome)
    return FittedTrace(fit, (content,), plot)


def _main() -> None:
    die_with_parent()
    kind, memory_bytes, wants_plot = sys.argv[1] or None, int(sys.argv[2]), bool(sys.argv[3])
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    outcome: tuple[TraceFit, FitPlot | None] | SluiceError
    try:
        fitted = fit_bytes(sys.stdin.buffer.read(), kind=kind, wants_plot=wants_plot)
        outcome = fitted.fit, fitted.plot
    except SluiceError as refusal:
        outcome = refusal
    except MemoryError:
        outcome = MemoryLimitReached(f"the fit needed more than {memory_bytes} bytes of memory")
    sys.stdout.buffer.write(pickle.dumps(outcome))


if __name__ == "__main__":
    _main()
