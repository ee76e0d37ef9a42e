"""sluice admin restore: a backup, put into a database."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from app.ui.grammar import Arguments, Command

if TYPE_CHECKING:
    from app.ui.terminal import Output


def add_arguments(command: Command) -> None:
    """Add the file, and what of it is taken."""
    command.argument("file", metavar="FILE", help="a backup, of either database")
    command.flag("--replace", help="first delete all that is there")
    command.flag("--without-keys", help="leave out all keys: one may be revoked by now")


def run(arguments: Arguments, output: Output) -> int:
    """Put a backup into the database."""
    from app.console.checked import checked_settings
    from app.console.running import ticking_line
    from app.console.stored import say_rows
    from models import restore as restoring

    url, file = checked_settings().database_url, Path(arguments.file)
    with ticking_line(output.err, "restoring"):
        rows = restoring.restore(
            file, url, replace=arguments.replace, with_keys=not arguments.without_keys
        )
    return say_rows(output, rows, "restored")
