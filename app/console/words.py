"""Numbers and names as a reader meets them; every function is pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import groupby

MOST_RUNS = 12
_SMALLEST_SHOWN_GAP = 1e-9


def time_text(time_us: float, micro: str = "µs") -> str:
    """A time in µs with digits that suit its magnitude."""
    if time_us >= 1e9:
        return f"{time_us:.6g} {micro}"
    decimals = 1 if time_us >= 100_000 else 3
    return f"{time_us:.{decimals}f} {micro}"


def gap_text(gap: float) -> str:
    """A relative gap in percent: three digits, no rounding to an unearned zero."""
    if gap <= 0.0:
        return "0 %"
    if gap < _SMALLEST_SHOWN_GAP:
        return "< 1e-7 %"
    if gap >= 1e6:
        return f"{gap * 100.0:.2e} %"
    return f"{gap * 100.0:.3g} %" if gap < 1.0 else f"{gap * 100.0:.0f} %"


def excess_text(latency_us: float, reference_us: float) -> str:
    """By how much a latency is above another: "+12.3 %"; "" where there is nothing to divide by."""
    if reference_us <= 0.0:
        return ""
    excess = latency_us / reference_us - 1.0
    if abs(excess) < 5e-8:
        return "equal"
    return f"{excess * 100.0:+.3g} %" if excess < 1.0 else f"{excess * 100.0:+.0f} %"


def sizes_text(sizes: Sequence[int]) -> str:
    """Fragment sizes in order, equal neighbours together: "3 x 4096, 17"; long lists shortened."""
    runs = [(size, len(list(group))) for size, group in groupby(sizes)]
    if len(runs) <= MOST_RUNS:
        return ", ".join(map(_run_text, runs))
    left_out = sum(count for _, count in runs[8:-3])
    words = [*map(_run_text, runs[:8]), f"… {left_out} more …", *map(_run_text, runs[-3:])]
    return ", ".join(words)


def _run_text(run: tuple[int, int]) -> str:
    size, count = run
    return f"{count} × {size}" if count > 1 else str(size)


def printable(text: str) -> str:
    """The text without characters that could steer a terminal."""
    return "".join(character if character.isprintable() else "?" for character in text)


def width_of(text: str) -> int:
    """Columns that a text takes: East Asian wide characters two, combining ones none."""
    return sum(_columns(character) for character in printable(text))


def fit_to(text: str, columns: int, *, cut_off: str = "…") -> str:
    """The text in exactly so many columns: padded, or cut with a mark."""
    text = printable(text)
    if width_of(text) > columns:
        while text and width_of(text) > columns - 1:
            text = text[:-1]
        text += cut_off
    return text + " " * (columns - width_of(text))


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
