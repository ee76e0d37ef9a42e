"""Plots a long stored trace in a process of its own, with a memory cap and a time limit.

Run as `python -m app.plot_apart <memory bytes>` it takes a stored fit from its input and writes the
plot, or the error, to its output; both pickled by this program and no other.
"""

from __future__ import annotations

import pickle
import resource
import subprocess
import sys
from typing import cast

from app.flows.fit_plot import StoredFit, plot_stored
from app.pool.processes import die_with_parent
from app.settings import CHECKOUT
from domain.errors import MemoryLimitReached, SluiceError, SolverFailed, TimeLimitReached
from domain.fit_plot import FitPlot

TIME_LIMIT_S = 120.0


def plot_apart(stored: StoredFit, *, memory_bytes: int) -> FitPlot:
    """Plot in a child process; blocks. Raises LimitReached and SolverFailed."""
    command = [sys.executable, "-m", "app.plot_apart", str(memory_bytes)]
    try:
        child = subprocess.run(
            command,
            input=pickle.dumps(stored),
            stdout=subprocess.PIPE,
            timeout=TIME_LIMIT_S,
            check=False,
            cwd=CHECKOUT,
        )
    except subprocess.TimeoutExpired:
        raise TimeLimitReached(f"the plot took longer than {TIME_LIMIT_S:g} s") from None
    if child.returncode != 0:
        raise SolverFailed("the process that plotted the trace ended unexpectedly")
    outcome = pickle.loads(child.stdout)  # what our own child wrote
    if isinstance(outcome, SluiceError):
        raise outcome
    return cast(FitPlot, outcome)


def _main() -> None:
    die_with_parent()
    memory_bytes = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    outcome: FitPlot | SluiceError
    try:
        outcome = plot_stored(pickle.loads(sys.stdin.buffer.read()))
    except SluiceError as refusal:
        outcome = refusal
    except MemoryError:
        outcome = MemoryLimitReached(f"the plot needed more than {memory_bytes} bytes of memory")
    sys.stdout.buffer.write(pickle.dumps(outcome))


if __name__ == "__main__":
    _main()
