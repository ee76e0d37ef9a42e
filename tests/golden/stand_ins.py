"""A machine for the commands that measure theirs: two processors, little to do, made-up times.

Its programs are started as the real ones are, so that nothing here knows who starts them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from app.console import racing
from measuring import probe
from tests.golden.programs import install

# Of commands that measure: no program but those here, and nothing of the user's own settings.
ALONE = {"PATH": "<folder>/programs", "CC": "", "GLIBC_TUNABLES": ""}
# The clock ends none of them, however busy the machine is.
PATIENT = ("--time-limit", "600")
_LOAD = (0.25, 0.25, 0.25)
_PROCESSORS = {0, 1}
_STANDING = SimpleNamespace(monotonic=lambda: 0.0)


@contextmanager
def measured_here(folder: Path) -> Iterator[None]:
    """Until the block ends, the built probe is the one in this folder, which is made."""
    install(folder)
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(probe, "BUILD", folder))
        stack.enter_context(mock.patch.object(os, "getloadavg", return_value=_LOAD))
        stack.enter_context(mock.patch.object(os, "sched_getaffinity", return_value=_PROCESSORS))
        # So that what a race took is the time of its runs, which are made up.
        stack.enter_context(mock.patch.object(racing, "time", _STANDING))
        shutil.copy(folder / "probe", probe.object_path())
        yield
