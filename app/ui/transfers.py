"""What a user's own transfers decide, as parts: the size to set, what that rests on, all sizes."""

from __future__ import annotations

from collections.abc import Iterator

from app.schemas.transfers import transfer_facts
from app.text.numbers import format_percent
from app.text.units import format_time, printable
from app.ui.parts import Column, Facts, Grid, Part
from contract.transfers import TransfersOut
from domain.units import format_bytes

_MIN_US, _MANY = 0.001, 10.0  # shorter times are none, and larger shares are told as times


def transfers_parts(found: TransfersOut) -> Iterator[Part]:
    """Yield the decision, what it rests on, and the sizes."""
    yield printable(found.set_this.sentence)
    yield ""
    yield Facts(tuple((name, printable(value)) for name, value in transfer_facts(found)))
    if found.sizes:
        yield ""
        yield sizes_grid(found)


def sizes_grid(found: TransfersOut) -> Grid:
    """Return a row for each size: its median, 90 % interval, runs, and regret."""
    headings = ("fragments of", "median", "90 % interval", "runs", "regret at most")
    caption = (
        "Sizes that were transferred, with the 90 % interval of each median, and what each costs "
        "at most over the best round size"
    )
    return Grid(tuple(map(Column, headings)), tuple(_size_rows(found)), caption)


def _time(time_us: float) -> str:
    return format_time(time_us) if time_us >= _MIN_US else f"below {format_time(_MIN_US)}"


def _size_rows(found: TransfersOut) -> Iterator[tuple[str, ...]]:
    for size in found.sizes:
        mark = (
            " (yours)"
            if found.is_current_known and size.fragment_bytes == found.current_bytes
            else ""
        )
        yield (
            f"{format_bytes(size.fragment_bytes)} × {size.fragments}{mark}",
            _time(size.latency_us),
            " to ".join(map(_time, size.latency_us_interval)),
            str(size.runs),
            format_percent(size.regret) if size.regret < _MANY else f"{size.regret:,.0f} times",
        )
