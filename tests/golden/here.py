"""Long work in the test's own process: the same outcome, and no other process is waited for.

The one place of the golden tests that knows how the service gives work away.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from app.apart import Apart, Watch, unwatched
from app.flows import explore
from app.progress_file import Steps
from app.web import report_curves

_LONG_S = 300.0
_LIMITS = (
    *((explore, name) for name in ("COUNTS_LIMIT_S", "SIZES_LIMIT_S", "RIVALS_LIMIT_S")),
    *((report_curves, name) for name in ("_COUNTS_S", "_SIZES_S", "_RIVALS_S")),
)


@contextmanager
def work_here() -> Iterator[None]:
    """Until the block ends, no process is started for a piece of work, and none is cut off."""
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(Apart, "run", _run))
        for module, name in _LIMITS:
            stack.enter_context(mock.patch.object(module, name, _LONG_S))
        yield


def _run(child: Apart[Any], watch: Watch = unwatched) -> Any:
    task = pickle.loads(pickle.dumps(child._task))
    task.prepare()
    return pickle.loads(pickle.dumps(task.run(lambda done, total: watch(Steps(done, total)))))
