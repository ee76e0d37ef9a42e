"""Progress of long work, on standard error and only where a person looks."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from app.console.screen import Screen
from app.execution.engine import Best, Event, Steps
from app.text.numbers import format_gap
from app.text.units import format_proven
from domain.solution import Solution

if TYPE_CHECKING:
    from app.console.running import Show

_QUIET_S = 0.5  # what ends sooner needs no progress
_CLEAR = "\r\x1b[K"


@contextmanager
def solving_line(screen: Screen) -> Iterator[Show]:
    """A line with the best so far and the seconds since the start, which is gone after."""
    with _line(screen) as show:
        best: Solution | None = None

        def tell(event: Event | None, elapsed_s: float) -> None:
            nonlocal best
            if isinstance(event, Best) and screen.is_terminal:
                best = pickle.loads(event.result).solution
            if elapsed_s >= _QUIET_S:
                show(f"{elapsed_s:.1f} s  {solving_text(best)}")

        yield tell


@contextmanager
def counting_line(screen: Screen, done_text: str = "solved") -> Iterator[Show]:
    """A line with how many steps of how many are done, which is gone after."""
    with _line(screen) as show:

        def tell(event: Event | None, elapsed_s: float) -> None:
            if isinstance(event, Steps) and elapsed_s >= _QUIET_S:
                show(f"{elapsed_s:.1f} s  {event.done} of {event.total} {done_text}")

        yield tell


@contextmanager
def share_line(screen: Screen, doing: str) -> Iterator[Show]:
    """A line with the share that is done, which is gone after."""
    with _line(screen) as show:

        def tell(event: Event | None, elapsed_s: float) -> None:
            if isinstance(event, Steps) and elapsed_s >= _QUIET_S:
                show(f"{elapsed_s:.1f} s  {doing}: {event.done / event.total:.0%}")

        yield tell


def solving_text(best: Solution | None) -> str:
    """The best so far, the bound and what may be missing, in words."""
    if best is None:
        return "solving; no answer yet"
    latency, bound = format_proven(best.latency_us, best.lower_bound_us)
    return f"best {latency}  bound {bound}  gap {format_gap(best.relative_gap)}"


@contextmanager
def _line(screen: Screen) -> Iterator[Callable[[str], None]]:
    stream = screen.stream
    if not screen.is_terminal:
        yield lambda text: None
        return

    def show(text: str) -> None:
        stream.write(_CLEAR + screen.words(text)[: screen.width - 1])
        stream.flush()

    try:
        yield show
    finally:
        stream.write(_CLEAR)
        stream.flush()
