"""What the workers of the engine's benchmark run: work of known length, and what it measured."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from itertools import repeat

from app.operations.operation import Report

_STEP = 20_000


@dataclass(frozen=True, slots=True)
class Nothing:
    """Returns at once."""

    def run(self, report: Report, /) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class Burn:
    """Uses so much processor time, and returns how much it was."""

    cpu_s: float

    def run(self, report: Report, /) -> float:
        """Count."""
        end_s, number = time.process_time() + self.cpu_s, 0
        while time.process_time() < end_s:
            for _ in range(_STEP):
                number = (number * 1_103_515_245 + 12_345) & 0x7FFFFFFF
        return self.cpu_s


@dataclass(frozen=True, slots=True)
class Spin:
    """One call in C that never lets go of the interpreter's lock."""

    def run(self, report: Report, /) -> None:
        """Never return."""
        deque(repeat(None), maxlen=0)


@dataclass(frozen=True, slots=True)
class Tell:
    """Reports so many results, each the time of its report, and so many steps after each."""

    number: int
    pause_s: float
    steps: int = 0

    def run(self, report: Report, /) -> None:
        """Report."""
        for done in range(self.number):
            report.best(time.monotonic())
            for step in range(self.steps):
                report.steps(done * self.steps + step, self.number * self.steps)
            time.sleep(self.pause_s)


@dataclass(frozen=True, slots=True)
class Carry:
    """Brings so much with it and takes so much back."""

    content: bytes
    result_bytes: int

    def run(self, report: Report, /) -> bytes:
        """Fill the result."""
        return b"x" * self.result_bytes
