"""Long work in the test's own process: the same outcome, and no other process is waited for.

The one place of the golden tests that knows how the service gives work away.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

from analysis import explain, explore
from app.console import running
from app.verbs.optimize.page import report as report_curves
from tests.support.in_process_engine import InProcessEngine

_LONG_S = 300.0
_LIMITS = (
    *((explore, name) for name in ("COUNTS_LIMIT_S", "SIZES_LIMIT_S", "ALTERNATIVES_LIMIT_S")),
    *((explain, name) for name in ("SOLVES_LIMIT_S", "ONE_SOLVE_LIMIT_S")),
    *((report_curves, name) for name in ("_COUNTS_S", "_SIZES_S", "_ALTERNATIVES_S")),
)


@contextmanager
def work_here() -> Iterator[None]:
    """Until the block ends, commands start no process, and nothing is cut off by time."""
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(running, "open_local_engine", InProcessEngine))
        for module, name in _LIMITS:
            stack.enter_context(mock.patch.object(module, name, _LONG_S))
        yield
