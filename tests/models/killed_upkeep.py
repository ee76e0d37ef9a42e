"""Backups, restores and migrations that are killed at their steps, in children of this process.

It has no threads, so that it may fork; each child kills itself where it comes to a step.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy.engine.default import DefaultExecutionContext

from models import all_rows, backup, backup_file, restore
from models.session import create_store


def dies_at(module: Any, name: str, call: int) -> None:
    """Have this process die at a call of a function, before it does anything."""
    real, calls = getattr(module, name), 0

    def counted(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **named)

    setattr(module, name, counted)


def killed(step: tuple[Any, str, int], work: Callable[[], object]) -> bool:
    """Whether a child that works so was killed at this step; else it has come to its end."""
    pid = os.fork()
    if pid == 0:
        dies_at(*step)
        try:
            work()
        finally:
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status)


BACKUP = (
    (backup, "copy_rows", 1),
    (backup, "_copy_file", 1),
    (backup_file, "row_counts", 1),
    (os, "link", 1),
    (os, "unlink", 1),
)
RESTORE = (
    (restore, "upgrade", 1),
    (restore, "_empty", 1),
    (all_rows, "insert", 1),
    (all_rows, "insert", 9),
    (restore, "row_counts", 2),
)


def killed_migrations(url: str, statements: list[int]) -> None:
    """Print a line for each statement: whether a child that migrates died before it."""
    for number in statements:
        step = (DefaultExecutionContext, "pre_exec", number)

        def work() -> None:
            create_store(url).upgrade()

        print("statement", number, killed(step, work), True, flush=True)


def main(verb: str, url: str, file: str) -> None:
    """Print a line for each step: whether a child died there, and whether the file is there.

    Of migrations `file` is the numbers of the statements.
    """
    if verb == "upgrade":
        killed_migrations(url, [int(word) for word in file.split(",")])
        return
    for step in BACKUP if verb == "backup" else RESTORE:
        place = Path(file)

        def work(place: Path = place) -> None:
            if verb == "backup":
                backup.backup(url, place)
            else:
                restore.restore(place, url)

        is_killed = killed(step, work)
        print(step[1], step[2], is_killed, place.exists(), flush=True)
        if verb == "backup" and place.exists():
            place.unlink()


if __name__ == "__main__":
    main(*sys.argv[1:])
