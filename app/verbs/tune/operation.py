"""The stages of a way, measured one after the other, and what is refused before the first is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from app.console.files import check_target, write_whole
from app.console.measurable import check_profile
from app.console.stage_samples import check_stage, measure_stage
from app.console.transfers import (
    TRANSFERS_FILE,
    alignment_of,
    check_transfers,
    current_of,
    started,
)
from app.settings import Settings
from app.ui.grammar import Arguments
from app.ui.terminal import Output
from domain.errors import InvalidInput
from domain.units import format_bytes

_MEASURING = 0.45  # of the time; the race has its own, and the rest is for fits and starts
_HALVINGS = 9  # of the message: the sizes that are measured
_OF_MEMORY, _OF_GPU = frozenset({"memcpy", "crc32"}), frozenset({"h2d", "d2h"})


def check_tune(
    stages: Sequence[str],
    message_bytes: int,
    files: Sequence[str],
    arguments: Arguments,
    settings: Settings,
) -> None:
    """Check all that would be refused once stages were measured, and last that the transfers'
    probe starts. Raises InvalidInput, InconsistentInput, NotMeasurable, and what opening the
    database does.
    """
    check_transfers(
        stages, message_bytes, current_of(arguments.uncertainty_current, message_bytes), arguments
    )
    for stage in stages:
        asked = stage_of(stage, message_bytes, stages, arguments)
        if len(asked.bytes) < 2:
            raise InvalidInput(
                f"expected a longer message: {stage} is measured at its halves, and "
                f"{format_bytes(message_bytes)} has none",
                field="bytes",
            )
        check_stage(asked, asked.bytes)
    folder = Path(arguments.folder)
    if not folder.is_dir():
        raise InvalidInput("expected a folder that exists, for the measurements", field="folder")
    for file in (*files, str(folder / TRANSFERS_FILE)):
        check_target(file, field="folder", noun="the measurements", example="1-tcp.csv")
    check_profile(arguments.save_as, settings)
    with started(stages, message_bytes, arguments):
        pass


def measured(
    stage: str,
    file: str,
    message_bytes: int,
    among: Sequence[str],
    arguments: Arguments,
    output: Output,
) -> bool:
    """Measure a stage of several into its file; false where Ctrl-C ended it."""
    from measuring.probe import program

    asked = stage_of(stage, message_bytes, among, arguments)
    is_complete, text = measure_stage(program(), asked, file, output)
    write_whole(file, text.encode(), field="folder", noun="the measurements")
    return is_complete


def stage_of(
    stage: str, message_bytes: int, among: Sequence[str], arguments: Arguments
) -> Arguments:
    """Return the options by which `sluice measure` measures a stage of several.

    A copy of what a GPU has written, or is going to read, finds nothing in the processor's caches.
    """
    step = alignment_of((stage,))
    sizes = {max(1, message_bytes >> power) for power in range(_HALVINGS + 1)}
    return Arguments(
        **{
            **vars(arguments),
            "name": stage,
            "bytes": sorted({-(-size // step) * step for size in sizes}),
            "time_limit": arguments.time_limit * _MEASURING / len(among),
            "cold": stage in _OF_MEMORY and not _OF_GPU.isdisjoint(among),
            "host": None,
        }
    )
