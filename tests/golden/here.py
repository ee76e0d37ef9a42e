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
from app.progress_file import Steps


@contextmanager
def work_here() -> Iterator[None]:
    """Until the block ends, no process is started for a piece of work."""
    with mock.patch.object(Apart, "run", _run):
        yield


def _run(child: Apart[Any], watch: Watch = unwatched) -> Any:
    task = pickle.loads(pickle.dumps(child._task))
    task.prepare()
    return pickle.loads(pickle.dumps(task.run(lambda done, total: watch(Steps(done, total)))))
