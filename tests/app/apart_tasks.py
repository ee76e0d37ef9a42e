"""What the process of tests/app/test_apart.py is given to do."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from app.apart import ReportSteps
from domain.errors import PoorFit


@dataclass(frozen=True)
class Do:
    """One of the things below; `noun` is what it is called in a refusal."""

    what: str
    noun: str = "work"

    def prepare(self) -> None:
        """Nothing to load."""

    def run(self, report: ReportSteps) -> object:
        """Do it."""
        if self.what in _REPORTING:
            return _REPORTING[self.what](report)
        return _THINGS[self.what]()


def _refuse() -> object:
    raise PoorFit("too little of it", field="measurements")


def _count(report: ReportSteps) -> object:
    for done in range(4):
        report(done, 3)
    return "counted"


def _begin(report: ReportSteps) -> object:
    report(1, 3)
    time.sleep(600)
    return None


_REPORTING: dict[str, Callable[[ReportSteps], object]] = {"count": _count, "begin": _begin}
_THINGS: dict[str, Callable[[], object]] = {
    "answer": lambda: ("fine", 1.5),
    "refuse": _refuse,
    "sleep": lambda: time.sleep(600),
    "die": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "crash": lambda: int("no number"),
    "allocate": lambda: [bytearray(2**24) for _ in range(2**10)],
    "environment": lambda: sorted(os.environ),
    "limits": lambda: (os.nice(0), resource.getrlimit(resource.RLIMIT_CORE)),
}
