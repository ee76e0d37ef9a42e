"""What a user's own transfers decide, printed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from app.text.numbers import format_percent
from app.text.units import format_time, printable
from app.ui.parts import Column, Facts, Grid, Part
from app.ui.terminal import Output
from domain.units import format_bytes

if TYPE_CHECKING:
    from app.questions.transfers import DecidedTransfers
    from contract.transfers import TransfersOut

_MIN_US, _MANY = 0.001, 10.0  # shorter times are none, and larger shares are told as times
NOT_DECIDED = 6  # the exit code, as in the table of app/console/arguments.py


def show_decided(decided: DecidedTransfers, output: Output) -> int:
    """Print a decision; the exit code is 0 where a size is set or kept."""
    from app.schemas.base import dump_json
    from app.schemas.transfers import transfers_out

    found = transfers_out(decided)
    if output.wants_json:
        output.document(dump_json(found))
    else:
        output.parts(transfers_parts(found))
    return 0 if found.is_decided else NOT_DECIDED


def transfers_parts(found: TransfersOut) -> Iterator[Part]:
    """Yield the decision, what it rests on, and the sizes."""
    from app.schemas.transfers import transfer_facts

    yield printable(found.set_this.sentence)
    yield ""
    yield Facts(tuple((name, printable(value)) for name, value in transfer_facts(found)))
    if found.sizes:
        yield ""
        yield sizes_grid(found)


def sizes_grid(found: TransfersOut) -> Grid:
    """Return a row for each size: its median, 90 % interval, runs, and regret."""
    headings = ("fragments of", "median", "90 % interval", "runs", "regret at most")
    return Grid(tuple(map(Column, headings)), tuple(size_rows(found)))


def _time(time_us: float) -> str:
    return format_time(time_us) if time_us >= _MIN_US else f"below {format_time(_MIN_US)}"


def size_rows(found: TransfersOut) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each size's row."""
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
