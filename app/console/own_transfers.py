"""sluice optimize of a user's own transfers: the size that they decide, without a model."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from app.console.files import TraceSource, is_of_own_transfers
from app.text.numbers import format_percent
from app.text.units import format_time, printable
from app.ui.parts import Column, Facts, Grid, Part
from app.ui.terminal import Output
from domain.errors import InconsistentInput
from domain.units import format_bytes

if TYPE_CHECKING:
    from app.questions.transfers import DecidedTransfers, TransfersQuestion
    from contract.transfers import TransfersOut

_MIN_US, _MANY = 0.001, 10.0  # shorter times are none, and larger shares are told as times
NOT_DECIDED = 6  # the exit code, as in the table of app/console/arguments.py
_OF_MODELS = (
    *(
        "transfers",
        "strategy",
        "save_as",
        "timeline",
        "relative",
        "robust",
        "sensitivities",
        "static_bytes",
    ),
    *("static_bytes", "allow_refragmentation", "relative_gap", "time_limit", "min_fragment_bytes"),
    *("max_fragment_bytes", "alignment_bytes", "max_fragments"),
)


def text_of(source: object) -> str | None:
    """Return the text of a file of own transfers, None for another source."""
    if not isinstance(source, TraceSource) or not is_of_own_transfers(source):
        return None
    return source.content.decode("utf-8", errors="replace")


def optimize_transfers(text: str, arguments: argparse.Namespace, output: Output) -> int:
    """Decide by the transfers in this text, and print that."""
    from app.questions.transfers import decide

    for name in _OF_MODELS:
        if getattr(arguments, name) not in (None, False):
            raise InconsistentInput(
                "this is of a model of stages: own transfers decide among the sizes that were "
                "transferred",
                field=name,
            )
    return show_decided(decide(question_of(text, arguments)), output)


def question_of(text: str, arguments: argparse.Namespace) -> TransfersQuestion:
    """Return what the options ask of a file's text."""
    from app.questions.transfers import TransfersQuestion

    current = arguments.current
    return TransfersQuestion(
        text,
        arguments.bytes,
        current["repeat"] if isinstance(current, dict) else None,
        current == "whole",
        tuple(arguments.where or ()),
    )


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
