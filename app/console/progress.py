"""Progress of long work, on standard error and only where a person looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from app.console.screen import Screen
from app.text.numbers import format_gap
from app.text.units import format_proven
from domain.solution import Solution

_QUIET_S = 0.5  # what ends sooner needs no progress
_CLEAR = "\r\x1b[K"


@contextmanager
def solving_line(screen: Screen) -> Iterator[Callable[[Solution | None, float], None]]:
    """A line that is told the best so far and the seconds since the start, and is gone after."""
    with _line(screen) as show:

        def tell(best: Solution | None, elapsed_s: float) -> None:
            if elapsed_s >= _QUIET_S:
                show(f"{elapsed_s:.1f} s  {solving_text(best)}")

        yield tell


@contextmanager
def counting_line(screen: Screen) -> Iterator[Callable[[int, int], None]]:
    """A line that is told how many parts of how many are done, and is gone after."""
    with _line(screen) as show:
        yield lambda done, total: show(f"{done} of {total} solved")


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
