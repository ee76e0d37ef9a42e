"""Long work in the test's own process: the same outcome, and no other process is waited for.

The one place of the golden tests that knows how the service gives work away.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from app.apart import Apart, Watch, unwatched
from app.flows import explore
from app.progress_file import Steps

_LONG_S = 300.0


@contextmanager
def work_here() -> Iterator[None]:
    """Until the block ends, no process is started for a piece of work, and none is cut off."""
    with (
        mock.patch.object(Apart, "run", _run),
        mock.patch.object(explore, "COUNTS_LIMIT_S", _LONG_S),
        mock.patch.object(explore, "SIZES_LIMIT_S", _LONG_S),
    ):
        yield


def _run(child: Apart[Any], watch: Watch = unwatched) -> Any:
    task = pickle.loads(pickle.dumps(child._task))
    task.prepare()
    return pickle.loads(pickle.dumps(task.run(lambda done, total: watch(Steps(done, total)))))
