"""sluice admin backup: all that is stored, in one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from app.ui.grammar import Arguments, Command

if TYPE_CHECKING:
    from app.ui.terminal import Output


def add_arguments(command: Command) -> None:
    """Add the file."""
    command.argument("file", metavar="FILE", help="which is not there yet")


def run(arguments: Arguments, output: Output) -> int:
    """Write a backup."""
    from app.console.checked import checked_settings
    from app.console.running import ticking_line
    from app.console.stored import say_rows
    from models.backup import backup

    url = checked_settings().database_url
    with ticking_line(output.err, "writing the backup"):
        rows = backup(url, Path(arguments.file))
    return say_rows(output, rows, "saved")
